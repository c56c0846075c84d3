/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows of other programs: their sockets, turns and stalls as the kernel side tells them, joined. Pure C. */
#ifndef LAYOVER_LIVE_H
#define LAYOVER_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "abi/stall.h"
#include "model/path.h"

/* One turn. Of a client: a round trip. Of a server without its client here: the time it held the message. */
struct live_turn {
	uint64_t start_ns, took_ns;
	uint32_t sent, received; /* bytes */
	uint16_t writes, reads;
	struct trip trip; /* stages that sum to took_ns */
};

/* One socket. */
struct live_flow {
	uint64_t socket;
	enum role role;
	uint32_t ports; /* client port << 16 | server port */
	bool known;     /* `who` was told */
	struct flow_record who;
	const struct live *live; /* that it is one of */
	struct live_flow *peer;  /* the other end on this host, NULL: not seen */

	/* Since live_clear(). */
	struct turn_record *records; /* not joined yet */
	size_t record_count, record_room;
	struct live_turn *turns;
	size_t turn_count, turn_room;
	struct stall_record *stalls;
	size_t stall_count, stall_room;
	uint64_t one_way; /* turns without an answer: nothing was received between two messages */
};

struct live {
	uint32_t hooks;    /* mask of the hooks that were loaded */
	size_t flows_max;  /* more are not kept */
	uint64_t left_out; /* records of flows that were not kept */
	struct live_flow **flows;
	size_t count, room;
	void *tree; /* by socket */

	/* Since live_clear(): readers that waited for a CPU, in the order of their ends but for what CPUs tell late. */
	struct hog_record *hogs;
	size_t hog_count, hog_room;
};

/* Each takes one record. 0 or -ENOMEM with a sentence. */
int live_add_turn(struct live *live, const struct turn_record *record);
int live_add_flow(struct live *live, const struct flow_record *record);
int live_add_hog(struct live *live, const struct hog_record *record);
int live_add_stall(struct live *live, const struct stall_record *record);

/*
 * Joins what has been added. Without `final`, client turns whose server's record may still come are left for the next
 * call. 0 or -ENOMEM with a sentence.
 */
int live_join(struct live *live, bool final);

/* Forgets turns and stalls, keeps the flows. */
void live_clear(struct live *live);

void live_free(struct live *live);

#endif
