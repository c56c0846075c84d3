/* SPDX-License-Identifier: GPL-2.0-only */
/* One measurement: warm-up, then blocks of measured trips with room for other work in between. */
#ifndef LAYOVER_RUN_H
#define LAYOVER_RUN_H

#include "load/client.h"
#include "load/look.h"
#include "load/noise.h"

enum {
	RUN_BLOCK_TRIPS = 4096,
	RUN_BLOCK_MS = 100,
	RUN_SETTLE_TRIPS = 16, /* unmeasured, after every pause */
};

struct run {
	const struct load_plan *plan;
	struct load_client *client;
	/*
	 * Called after the warm-up (before the first block), after every block (unless its last
	 * trip was lost: then the next one follows at once) and after the trip that closes the last
	 * turn; NULL: nothing to do. A negative result ends the run and is its result.
	 */
	int (*between)(void *arg);
	void *arg;
	struct samples
		*into; /* where the next block's trips go; NULL: to samples. between() may set it */

	/* Overlapping messages: who looks at their samples meanwhile; call NULL: nobody. */
	struct look look;

	/* Results. samples belong to the caller afterwards: samples_free(). */
	struct samples samples;
	uint64_t tried;           /* measured trips, answered or lost, into whatever samples */
	uint64_t lost_unmeasured; /* in warm-up and between blocks */
	uint64_t warmup_trips, warmup_ns; /* what was discarded */
	uint64_t duration_ns;             /* first measured send to the end of the last block */
	bool stopped;                     /* client_stop() ended it early */
	struct noise receiver;            /* an open loop's second thread; else not known */
};

/* 0 (also when stopped), or -errno with a sentence; what was measured until then is in samples. */
int run_measure(struct run *run);

#endif
