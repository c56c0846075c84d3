/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Joins the turn records of both ends of one flow with the driver's trips. A client's record finds its
 * trip by time (same clock), a server's record finds the client's by the message id (TCP sequence number,
 * driver's UDP number). Records come in order per end, in any order between the ends. The server's may come
 * from another kernel, whose clock has nothing to do with this one's.
 */
#ifndef LAYOVER_JOIN_H
#define LAYOVER_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "model/trips.h"

struct record_queue {
	struct turn_record *records;
	size_t head, count, capacity; /* records[head … head + count) wait */
};

/* The server's end when another kernel recorded it. */
struct far_end {
	bool used;
	uint32_t hooks;  /* mask of the hooks that were loaded there */
	bool ids_repeat; /* the messages are too short for ids that stay unique */
	/*
	 * The server's clock minus the client's lies between these, as the exchange told that brought the
	 * records last added. Only tells equal ids apart, which are 256 trips away from each other or more.
	 */
	int64_t ahead_min, ahead_max;
};

struct join {
	/* When a trip's message left the NIC, by the client's clock; 0: not known. NULL: never known. */
	uint64_t (*nic_time)(const void *nic, size_t trip);
	const void *nic;
	uint32_t hooks; /* mask of the hooks that were loaded */
	struct far_end far;
	struct record_queue clients, servers;
	size_t next_trip; /* trips before this one have had their chance */
	bool server_seen; /* at least one record of the server's end arrived */
	struct trips trips;
};

/* Takes one record, of either end. 0 or -ENOMEM with a sentence. */
int join_add(struct join *join, const struct turn_record *record);

/*
 * Joins what can be joined. start_ns and rtt_ns are those of all trips so far, ascending. With `final`
 * the rest is settled too: trips without a server's record, and trips without any. 0 or -ENOMEM.
 */
int join_run(struct join *join, const uint64_t *start_ns, const uint64_t *rtt_ns, size_t count,
	     bool final);

void join_free(struct join *join);

#endif
