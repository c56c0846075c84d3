// SPDX-License-Identifier: GPL-2.0-only
#include "model/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * How many client records may wait behind one whose server's record is missing: a few where that end is
 * traced (its record is lost), more where it has not spoken yet.
 */
enum { PATIENCE = 64, PATIENCE_ALONE = 4096 };

/* How many server records may wait for their client's: more than a block of trips leaves. */
enum { SERVERS_KEPT = 16384 };

/* How far two clocks may drift apart between a trip and the exchange after its block. */
enum { DRIFT_NS = 100000 };

static int push(struct record_queue *queue, const struct turn_record *record)
{
	if (queue->head + queue->count == queue->capacity) {
		size_t capacity = queue->capacity ? queue->capacity * 2 : 1024;
		struct turn_record *grown;

		if (queue->head > queue->capacity / 2) { /* room in front: move down instead */
			memmove(queue->records, queue->records + queue->head,
				queue->count * sizeof(*queue->records));
			queue->head = 0;
		} else {
			grown = realloc(queue->records, capacity * sizeof(*grown));
			if (!grown)
				return err_set(-ENOMEM, "out of memory for records");
			queue->records = grown;
			queue->capacity = capacity;
		}
	}
	queue->records[queue->head + queue->count++] = *record;
	return 0;
}

static void pop(struct record_queue *queue, size_t n)
{
	queue->head += n;
	queue->count -= n;
	if (!queue->count)
		queue->head = 0;
}

int join_add(struct join *join, const struct turn_record *record)
{
	if (record->role == ROLE_CLIENT)
		return push(&join->clients, record);
	join->server_seen = true;
	return push(&join->servers, record);
}

static uint64_t first_time(const struct turn_record *client)
{
	for (int hook = 0; hook <= HOOK_re_xmit; hook++)
		if (client->t[hook])
			return client->t[hook];
	return 0;
}

/*
 * Ids of short UDP messages repeat soon (one byte: 256 trips), so the time has to fit as well. Between two
 * clocks that is only asked where it must be, because one of them may have stood still in between.
 */
static bool time_fits(const struct far_end *far, const struct turn_record *server,
		      const struct turn_record *client)
{
	uint64_t seen = server->t[HOOK_recv_exit];
	int64_t after_start = (int64_t)(seen - first_time(client));
	int64_t after_end = (int64_t)(seen - client->t[HOOK_recv_exit]);

	if (!far->used)
		return after_start > 0 && after_end < 0;
	return !far->ids_repeat ||
	       (after_start > far->ahead_min - DRIFT_NS && after_end < far->ahead_max + DRIFT_NS);
}

static bool answers(const struct join *join, const struct turn_record *server,
		    const struct turn_record *client)
{
	return server->flow == client->flow && server->recv_id == client->send_id &&
	       server->send_id == client->recv_id && time_fits(&join->far, server, client);
}

/* The server's record of the same trip; it and all older ones leave the queue. NULL: not there. */
static const struct turn_record *take_server(struct join *join, const struct turn_record *client)
{
	struct record_queue *q = &join->servers;

	for (size_t i = 0; i < q->count; i++) {
		const struct turn_record *server = &q->records[q->head + i];

		if (!answers(join, server, client))
			continue;
		/* A turn that went on after its send call returned was told twice: the last word counts. */
		while (i + 1 < q->count && answers(join, server + 1, client)) {
			server++;
			i++;
		}
		pop(q, i + 1);
		return server; /* stays readable until the next push */
	}
	return NULL;
}

/* Puts one client record into its trip, if it belongs to a measured one. */
static int place(struct join *join, const struct turn_record *client,
		 const struct turn_record *server, const uint64_t *start_ns, const uint64_t *rtt_ns,
		 size_t count)
{
	uint64_t sent = first_time(client);
	struct turn_record mine;
	struct trip trip;
	size_t i;

	while (join->next_trip < count &&
	       start_ns[join->next_trip] + rtt_ns[join->next_trip] < sent)
		join->next_trip++;
	i = join->next_trip;
	if (i == count || start_ns[i] > sent || start_ns[i] + rtt_ns[i] < client->t[HOOK_recv_exit])
		return 0; /* warm-up, a settling trip, or a turn that the driver did not count */
	mine = *client;
	if (join->nic_time)
		mine.t[HOOK_nic_xmit] = join->nic_time(join->nic, i);
	if (server && join->far.used)
		path_split_far(&mine, server, start_ns[i], rtt_ns[i], join->hooks, join->far.hooks,
			       &trip);
	else
		path_split(&mine, server, start_ns[i], rtt_ns[i], join->hooks, &trip);
	join->next_trip++;
	return trips_set(&join->trips, i, &trip);
}

static int settle_unmatched(struct join *join, const uint64_t *rtt_ns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct trip trip;
		int rc;

		if (join->trips.flags[i] != TRIP_UNMATCHED)
			continue;
		path_unmatched(rtt_ns[i], &trip);
		rc = trips_set(&join->trips, i, &trip);
		if (rc)
			return rc;
	}
	return 0;
}

int join_run(struct join *join, const uint64_t *start_ns, const uint64_t *rtt_ns, size_t count,
	     bool final)
{
	int rc = trips_grow(&join->trips, count);

	while (!rc && join->clients.count) {
		const struct turn_record *client = &join->clients.records[join->clients.head];
		const struct turn_record *server = take_server(join, client);

		/* Its server's record comes later, when the next request reaches that end. */
		if (!server && !final &&
		    join->clients.count < (join->server_seen ? PATIENCE : PATIENCE_ALONE))
			break;
		rc = place(join, client, server, start_ns, rtt_ns, count);
		pop(&join->clients, 1);
	}
	if (join->servers.count > SERVERS_KEPT)
		pop(&join->servers, join->servers.count - SERVERS_KEPT);
	if (!rc && final)
		rc = settle_unmatched(join, rtt_ns, count);
	return rc;
}

void join_free(struct join *join)
{
	free(join->clients.records);
	free(join->servers.records);
	trips_free(&join->trips);
	*join = (struct join){0};
}
