// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/top_source.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/error.h"
#include "load/clock.h"

/* Of a flow of which nothing is known yet. */
#define SLOW_FIRST_NS (10ULL * NS_PER_MS)
/* Who has not had a turn for so long may lose its place, if others need one. */
#define IDLE_NS (5ULL * NS_PER_S)

enum { EVICTED_MAX = 256 /* per interval */ };

static bool is_slow(const struct top_end *end, const struct turn_record *r)
{
	uint64_t slow = end->slow_ns ? end->slow_ns : SLOW_FIRST_NS, start = record_first_send(r);
	struct trip unused;
	uint64_t took = 0;

	if (r->role == ROLE_CLIENT)
		return start && r->t[HOOK_recv_exit] >= start + slow;
	return path_residence(r, 0, &unused, &start, &took) && took >= slow;
}

/* Whether a row of it would be listed: the filter speaks of either end. */
static bool fits(const struct top_source *s, const struct top_end *end)
{
	const struct top_end *peer = top_peer_of(&s->top, end);

	return watch_filter_fits_end(&s->filter, &end->head.who, end->head.who.family) ||
	       (peer && watch_filter_fits_end(&s->filter, &peer->head.who, peer->head.who.family));
}

static void take_turn(void *arg, const struct turn_record *record)
{
	struct top_source *s = arg;
	const struct top_end *end = top_end_of(&s->top, record->entry - 1, record->socket);

	if (focus_has(&s->focus, record->socket) && !s->rc)
		s->rc = focus_add_turn(&s->focus, record);
	if (end && is_slow(end, record) && fits(s, end))
		events_add_turn(&s->events, record, &end->head.who, end->peer != 0);
}

static void take_stall(void *arg, const struct stall_record *record)
{
	struct top_source *s = arg;
	int cause;
	bool counts = top_stall(&s->top, record, &cause);
	const struct top_end *end = top_end_of(&s->top, record->entry - 1, record->socket);
	const struct flow_record *who = end && end->head.who.family ? &end->head.who : NULL;

	if (!who && record->entry)
		who = &book_head(s->book, record->entry - 1)->who;
	if (counts && who && who->socket == record->socket &&
	    (end ? fits(s, end) : watch_filter_fits_end(&s->filter, who, true)))
		events_add_stall(&s->events, record, cause, who);
	if (focus_has(&s->focus, record->socket) && !s->rc)
		s->rc = focus_add_stall(&s->focus, record);
}

/* Who had the CPU that a reader waited for: what a diagnosis of the focus tells. */
static void take_hog(void *arg, const struct hog_record *record)
{
	struct top_source *s = arg;

	if (s->focus.active && !s->rc)
		s->rc = focus_add_hog(&s->focus, record);
}

int top_source_open(struct top_source *s, const struct watch_filter *filter, uint32_t sockets)
{
	const struct probe_wish wish = {.proto = IPPROTO_TCP,
					.hardware = probes_hardware(),
					.stalls = true,
					.heads = sockets};
	const struct watch_sinks sinks = {NULL, take_stall, take_hog, s};
	int rc = collect_open(&s->collect, &wish);

	if (rc)
		return rc;
	s->filter = *filter;
	s->events.hooks = collect_hooks(s->collect);
	s->delack_seen = collect_watch(s->collect, (uint16_t)filter->port, &sinks);
	collect_set_slow(s->collect, SLOW_FIRST_NS);
	rc = book_open(&s->book, s->collect, sockets);
	if (!rc)
		rc = top_open(&s->top, sockets, clock_ns());
	if (!rc)
		rc = collect_attach(s->collect);
	return rc;
}

void top_source_close(struct top_source *s)
{
	focus_end(&s->focus);
	book_close(s->book);
	collect_close(s->collect);
	top_free(&s->top);
	s->book = NULL;
	s->collect = NULL;
}

static int leave(struct top_source *s, uint32_t index)
{
	struct top_head head = *book_head(s->book, index);
	struct top_hist hist;
	int rc = book_hist(s->book, index, &hist);

	if (!rc)
		rc = top_leave(&s->top, index, &head, &hist);
	return rc ? rc : book_give_back(s->book, index);
}

int top_source_drain(struct top_source *s)
{
	int rc = collect_drain(s->collect, take_turn, s);
	uint32_t index;

	if (rc < 0)
		return err_set(rc, "cannot read the record buffer: %s", strerror(-rc));
	rc = s->rc;
	events_settle(&s->events);
	while (!rc && book_next_done(s->book, &index))
		rc = leave(s, index);
	return rc;
}

/* Only when the book is nearly full. */
static int make_room(struct top_source *s)
{
	uint32_t wanted = s->top.places / 16 < EVICTED_MAX ? s->top.places / 16 : EVICTED_MAX;
	int rc = 0;

	for (uint32_t n = 0; !rc && n < wanted && s->top.open + wanted > s->top.places; n++) {
		uint32_t index = top_idlest(&s->top, clock_ns(), IDLE_NS);

		if (index == TOP_END_NONE)
			break;
		rc = leave(s, index);
		s->evicted++;
	}
	return rc;
}

static int take_all(struct top_source *s)
{
	uint32_t used = book_used(s->book);
	struct top_hist hist;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < used; i++) {
		struct top_head head = *book_head(s->book, i);
		bool wanted = head.who.socket && top_wants_hist(&s->top, i, &head);

		if (wanted)
			rc = book_hist(s->book, i, &hist);
		if (!rc)
			rc = top_take(&s->top, i, &head, wanted ? &hist : NULL);
	}
	return rc;
}

/* What the kernel tells as records: all of the focus, of the others what is slow for them. */
static void tell_wishes(const struct top_source *s)
{
	for (uint32_t i = 0; i < s->top.used; i++) {
		const struct top_end *end = &s->top.ends[i];
		uint64_t slow = end->slow_ns ? end->slow_ns : SLOW_FIRST_NS;

		if (end->head.who.socket)
			book_want(s->book, i, focus_has(&s->focus, end->head.who.socket), slow);
	}
}

static int take_focus(struct top_source *s)
{
	const struct top_end *end = top_end_of(&s->top, s->focus.index, s->focus.who.socket);
	const struct top_row *row = NULL;

	for (size_t i = 0; end && !row && i < s->top.row_count; i++)
		if (s->top.rows[i].who.socket == s->focus.who.socket)
			row = &s->top.rows[i];
	return focus_interval(&s->focus, row, end ? end->bins : NULL);
}

/* Rows that the filter does not want. */
static void drop_unwanted(struct top_source *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->top.row_count; i++) {
		const struct top_row *row = &s->top.rows[i];

		if (watch_filter_fits_end(&s->filter, &row->who, true) ||
		    (row->both_ends && watch_filter_fits_end(&s->filter, &row->peer, true)))
			s->top.rows[kept++] = *row;
	}
	s->top.row_count = kept;
}

int top_source_snapshot(struct top_source *s)
{
	static struct top_part_hist parts[TOP_ROLES * TOP_ROWS];
	int rc = top_source_drain(s);

	if (!rc)
		rc = make_room(s);
	if (!rc)
		rc = take_all(s);
	if (!rc)
		rc = book_parts(s->book, parts);
	if (rc)
		return rc;
	top_take_parts(&s->top, parts);
	rc = top_finish(&s->top, clock_ns());
	if (rc)
		return rc;
	drop_unwanted(s);
	tell_wishes(s);
	collect_counters(s->collect, &s->counters);
	return take_focus(s);
}

int top_source_focus(struct top_source *s, const struct top_row *row)
{
	int rc = 0;

	focus_end(&s->focus);
	if (row)
		rc = focus_begin(&s->focus, row, collect_hooks(s->collect));
	tell_wishes(s);
	return rc;
}
