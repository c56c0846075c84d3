/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads with several messages under way: by a schedule (open loop), or a window of a fixed depth. */
#ifndef LAYOVER_OVERLAP_H
#define LAYOVER_OVERLAP_H

#include "load/client.h"
#include "load/look.h"
#include "load/noise.h"

struct overlap_result {
	uint64_t warmup_trips, warmup_ns; /* what was discarded */
	uint64_t lost_unmeasured;         /* of the warm-up */
	uint64_t tried;                   /* measured messages sent */
	uint64_t duration_ns;             /* first measured send to the end */
	bool stopped;                     /* client_stop() ended it early */
	struct noise receiver; /* what hit the receiver's thread; not known: there is none */
};

/*
 * Warms up and measures as the client's plan says (plan_overlaps()), once per client. An open loop has a receiver
 * thread of its own, on the second of the client's CPUs. Response and service times go to out; look, whose
 * call is set, sees them on their way, NULL: nobody does. 0 or -errno with a sentence; ends within 10 s after the server has gone.
 */
int overlap_run(struct load_client *client, struct samples *out, struct look *look,
		struct overlap_result *result);

#endif
