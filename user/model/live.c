// SPDX-License-Identifier: GPL-2.0-only
#include "model/live.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A client's turns at the end of a block may be told before their server's: so many wait for the next one. */
enum { WAIT_TURNS = 4 };

static int by_socket(const void *a, const void *b)
{
	uint64_t x = ((const struct live_flow *)a)->socket,
		 y = ((const struct live_flow *)b)->socket;

	return (x > y) - (x < y);
}

/* Makes room for one more element of an array. */
static int make_room(void *array, size_t count, size_t *room, size_t size)
{
	void **at = array, *grown;

	if (count < *room)
		return 0;
	grown = realloc(*at, (*room ? *room * 2 : 16) * size);
	if (!grown)
		return err_set(-ENOMEM, "no memory for more of the watched flows");
	*at = grown;
	*room = *room ? *room * 2 : 16;
	return 0;
}

/* The flow of that socket, made if need be; NULL in *out when there are too many. */
static int find(struct live *live, uint64_t socket, struct live_flow **out)
{
	struct live_flow key = {.socket = socket}, *flow;
	void *node = tfind(&key, &live->tree, by_socket);
	int rc;

	*out = node ? *(struct live_flow **)node : NULL;
	if (*out)
		return 0;
	if (live->count >= live->flows_max) {
		live->left_out++;
		return 0;
	}
	rc = make_room(&live->flows, live->count, &live->room, sizeof(void *));
	flow = rc ? NULL : calloc(1, sizeof(*flow));
	if (!flow)
		return rc ? rc : err_set(-ENOMEM, "no memory for another flow");
	flow->socket = socket;
	flow->live = live;
	if (!tsearch(flow, &live->tree, by_socket)) {
		free(flow);
		return err_set(-ENOMEM, "no memory for another flow");
	}
	live->flows[live->count++] = flow;
	*out = flow;
	return 0;
}

int live_add_turn(struct live *live, const struct turn_record *record)
{
	struct live_flow *flow;
	int rc = find(live, record->socket, &flow);

	if (rc || !flow)
		return rc;
	flow->role = record->role;
	flow->ports = record->flow;
	rc = make_room(&flow->records, flow->record_count, &flow->record_room,
		       sizeof(*flow->records));
	if (!rc)
		flow->records[flow->record_count++] = *record;
	return rc;
}

int live_add_flow(struct live *live, const struct flow_record *record)
{
	struct live_flow *flow;
	int rc = find(live, record->socket, &flow);

	if (rc || !flow)
		return rc;
	flow->who = *record;
	flow->role = record->role;
	flow->ports = record->role == ROLE_CLIENT
			      ? (uint32_t)record->local_port << 16 | record->remote_port
			      : (uint32_t)record->remote_port << 16 | record->local_port;
	flow->known = true;
	return 0;
}

int live_add_stall(struct live *live, const struct stall_record *record)
{
	struct live_flow *flow;
	int rc = find(live, record->socket, &flow);

	if (rc || !flow)
		return rc;
	rc = make_room(&flow->stalls, flow->stall_count, &flow->stall_room, sizeof(*flow->stalls));
	if (!rc)
		flow->stalls[flow->stall_count++] = *record;
	return rc;
}

int live_add_hog(struct live *live, const struct hog_record *record)
{
	int rc = make_room(&live->hogs, live->hog_count, &live->hog_room, sizeof(*live->hogs));

	if (!rc)
		live->hogs[live->hog_count++] = *record;
	return rc;
}

/* The other end of a connection on this host has the same ports the other way round, and answers its bytes. */
static bool are_peers(const struct live_flow *client, const struct live_flow *server)
{
	if (server->role != ROLE_SERVER || server->peer || server->ports != client->ports)
		return false;
	return !client->known || !server->known ||
	       !memcmp(client->who.remote, server->who.local, sizeof(server->who.local));
}

static void find_peers(struct live *live)
{
	for (size_t i = 0; i < live->count; i++) {
		struct live_flow *client = live->flows[i];

		if (client->role != ROLE_CLIENT || client->peer)
			continue;
		for (size_t k = 0; k < live->count; k++) {
			if (!are_peers(client, live->flows[k]))
				continue;
			client->peer = live->flows[k];
			client->peer->peer = client;
			break;
		}
	}
}

static int keep_turn(struct live_flow *flow, const struct turn_record *r,
		     const struct live_turn *turn)
{
	struct live_turn *kept;
	int rc = make_room(&flow->turns, flow->turn_count, &flow->turn_room, sizeof(*flow->turns));

	if (rc)
		return rc;
	kept = &flow->turns[flow->turn_count++];
	*kept = *turn;
	kept->sent = r->send_bytes;
	kept->received = r->recv_bytes;
	kept->writes = r->writes;
	kept->reads = r->reads;
	return 0;
}

/* The server's record of the same turn, at or after *next; NULL: not there. */
static const struct turn_record *answer_to(const struct turn_record *client,
					   const struct live_flow *server, size_t *next)
{
	for (size_t i = *next; server && i < server->record_count; i++) {
		const struct turn_record *r = &server->records[i];

		if (r->recv_id != client->send_id || r->send_id != client->recv_id)
			continue;
		/* Told twice where it went on after its send call: the last word counts. */
		while (i + 1 < server->record_count && r[1].recv_id == r->recv_id &&
		       r[1].send_id == r->send_id) {
			r++;
			i++;
		}
		*next = i + 1;
		return r;
	}
	return NULL;
}

static void drop_first(struct live_flow *flow, size_t n)
{
	memmove(flow->records, flow->records + n,
		(flow->record_count - n) * sizeof(*flow->records));
	flow->record_count -= n;
}

static int join_client(const struct live *live, struct live_flow *flow, bool final)
{
	size_t next = 0, done = 0;
	int rc = 0;

	for (; !rc && done < flow->record_count; done++) {
		const struct turn_record *r = &flow->records[done], *server;
		struct live_turn turn = {.start_ns = record_first_send(r)};

		server = answer_to(r, flow->peer, &next);
		if (!server && flow->peer && !final && flow->record_count - done <= WAIT_TURNS)
			break;
		if (!turn.start_ns || r->t[HOOK_recv_exit] <= turn.start_ns) {
			flow->one_way++;
			continue;
		}
		turn.took_ns = r->t[HOOK_recv_exit] - turn.start_ns;
		path_split(r, server, turn.start_ns, turn.took_ns, live->hooks, &turn.trip);
		rc = keep_turn(flow, r, &turn);
	}
	drop_first(flow, done);
	if (flow->peer)
		drop_first(flow->peer, next);
	return rc;
}

static int join_server(const struct live *live, struct live_flow *flow)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < flow->record_count; i++) {
		const struct turn_record *r = &flow->records[i];
		struct live_turn turn = {0};

		if (path_residence(r, live->hooks, &turn.trip, &turn.start_ns, &turn.took_ns))
			rc = keep_turn(flow, r, &turn);
		else
			flow->one_way++;
	}
	flow->record_count = 0;
	return rc;
}

int live_join(struct live *live, bool final)
{
	int rc = 0;

	find_peers(live);
	for (size_t i = 0; !rc && i < live->count; i++)
		if (live->flows[i]->role == ROLE_CLIENT)
			rc = join_client(live, live->flows[i], final);
	for (size_t i = 0; !rc && i < live->count; i++) {
		struct live_flow *flow = live->flows[i];

		if (flow->role == ROLE_SERVER && !flow->peer)
			rc = join_server(live, flow);
		else if (flow->role == ROLE_SERVER && flow->record_count > 1024)
			drop_first(flow, flow->record_count - 1024); /* their client's are lost */
	}
	return rc;
}

void live_clear(struct live *live)
{
	live->hog_count = 0;
	for (size_t i = 0; i < live->count; i++) {
		live->flows[i]->turn_count = live->flows[i]->stall_count = 0;
		live->flows[i]->one_way = 0;
	}
}

static void keep_node(void *node)
{
	(void)node; /* the flows array owns it */
}

void live_free(struct live *live)
{
	tdestroy(live->tree, keep_node);
	for (size_t i = 0; i < live->count; i++) {
		free(live->flows[i]->records);
		free(live->flows[i]->turns);
		free(live->flows[i]->stalls);
		free(live->flows[i]);
	}
	free(live->flows);
	free(live->hogs);
	*live = (struct live){0};
}
