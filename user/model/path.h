/* SPDX-License-Identifier: GPL-2.0-only */
/* One round trip: the hook times of both ends become stages that sum to it. Pure C. */
#ifndef LAYOVER_PATH_H
#define LAYOVER_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "model/stages.h"

/* The CPUs worth keeping, per leg. */
enum leg_cpu { CPU_SEND, CPU_IRQ, CPU_SOFTIRQ, CPU_WAKER, CPU_READER, LEG_CPUS };

enum { CPU_UNKNOWN = UINT16_MAX };

enum trip_flags {
	TRIP_MATCHED = 1 << 0,   /* every hook that must fire did, on both ends */
	TRIP_PARTIAL = 1 << 1,   /* some of them did not: their stages are merged, the sum holds */
	TRIP_ALONE = 1 << 2,     /* there is no usable record of the server's end */
	TRIP_RETRANS = 1 << 3,   /* a byte of it was sent more than once */
	TRIP_DISORDER = 1 << 4,  /* a hook was left out because it lay before its predecessor */
	TRIP_UNMATCHED = 1 << 5, /* no usable record at all: the whole trip is unattributed */
};

struct trip {
	uint64_t stage_ns[STAGES];     /* sums to the round trip */
	uint64_t seen;                 /* bit mask of the stages that the trip passed */
	uint16_t cpu[SIDES][LEG_CPUS]; /* by the leg's sender; CPU_UNKNOWN where not known */
	uint8_t flags;                 /* enum trip_flags */
};

/*
 * Splits the round trip [start_ns, start_ns + rtt_ns) of the client's clock. server may be NULL: then all
 * between the client's transmit and its first receive hook is `server.host`. `hooks` is the mask of hooks
 * that were loaded, which decides between matched and partial.
 */
void path_split(const struct turn_record *client, const struct turn_record *server,
		uint64_t start_ns, uint64_t rtt_ns, uint32_t hooks, struct trip *out);

/*
 * The same with a server whose times are those of another clock; its loaded hooks may be others, too. Only
 * differences of that clock are used: the time the server held the message. What the client's gap holds
 * beyond it is `client.network`, both ways together. A server's record that claims more than the gap is
 * not used, and the trip is partial.
 */
void path_split_far(const struct turn_record *client, const struct turn_record *server,
		    uint64_t start_ns, uint64_t rtt_ns, uint32_t client_hooks,
		    uint32_t server_hooks, struct trip *out);

/*
 * A server's turn whose client is not seen: from its first receive hook to the transmission of the reply. False when
 * the record does not hold both. *start_ns and *took_ns receive that time.
 */
bool path_residence(const struct turn_record *server, uint32_t hooks, struct trip *out,
		    uint64_t *start_ns, uint64_t *took_ns);

/* The first of a record's hooks on the way out, 0: none of them fired. */
uint64_t record_first_send(const struct turn_record *record);

/* A trip of which nothing is known but how long it took. */
void path_unmatched(uint64_t rtt_ns, struct trip *out);

#endif
