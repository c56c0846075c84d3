// SPDX-License-Identifier: GPL-2.0-only
#include "model/events.h"

#include <string.h>

static struct event *next_event(struct events *e)
{
	struct event *event = &e->kept[e->count % EVENTS_KEPT];

	*event = (struct event){.number = ++e->count, .cause = -1};
	return event;
}

void events_add_stall(struct events *e, const struct stall_record *record, int cause,
		      const struct flow_record *who)
{
	struct event *event = next_event(e);

	event->is_stall = true;
	event->at_ns = record->end;
	event->took_ns = record->begin ? record->end - record->begin : 0;
	event->cause = cause;
	event->stall = *record;
	if (who)
		event->who = *who;
}

void events_add_turn(struct events *e, const struct turn_record *record,
		     const struct flow_record *who, bool paired)
{
	if (paired && record->role == ROLE_SERVER) {
		e->servers[e->server_count++ % EVENTS_PENDING] = *record;
		return;
	}
	if (e->pending_count == EVENTS_PENDING) {
		e->left_out++;
		return;
	}
	e->pending[e->pending_count++] = (struct event_pending){*record, *who, paired, false};
}

static const struct turn_record *server_of(const struct events *e, const struct turn_record *client)
{
	for (size_t i = 0; i < EVENTS_PENDING && i < e->server_count; i++) {
		const struct turn_record *r = &e->servers[i];

		if (r->recv_id == client->send_id && r->send_id == client->recv_id &&
		    r->flow == client->flow)
			return r;
	}
	return NULL;
}

static void make_event(struct events *e, const struct event_pending *p,
		       const struct turn_record *server)
{
	const struct turn_record *r = &p->record;
	uint64_t start = record_first_send(r), took;
	struct trip trip;
	struct event *event;

	if (r->role == ROLE_SERVER) {
		if (!path_residence(r, e->hooks, &trip, &start, &took))
			return;
	} else {
		if (!start || r->t[HOOK_recv_exit] <= start)
			return;
		took = r->t[HOOK_recv_exit] - start;
		path_split(r, server, start, took, e->hooks, &trip);
	}
	event = next_event(e);
	event->at_ns = start + took;
	event->took_ns = took;
	event->start_ns = start;
	event->trip = trip;
	event->who = p->who;
}

void events_settle(struct events *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->pending_count; i++) {
		struct event_pending *p = &e->pending[i];
		const struct turn_record *server = p->paired ? server_of(e, &p->record) : NULL;

		if (server || !p->paired || p->waited) {
			make_event(e, p, server);
			continue;
		}
		p->waited = true;
		e->pending[kept++] = *p;
	}
	e->pending_count = kept;
}

const struct event *events_by_number(const struct events *e, uint64_t number)
{
	const struct event *event;

	if (!number || number > e->count)
		return NULL;
	event = &e->kept[(number - 1) % EVENTS_KEPT];
	return event->number == number ? event : NULL;
}

const struct event *events_newest(const struct events *e, size_t n)
{
	return n < e->count ? events_by_number(e, e->count - n) : NULL;
}
