/* SPDX-License-Identifier: GPL-2.0-only */
/* Load in one direction: many flows that send as fast as they can, or at a rate; the server counts. */
#ifndef LAYOVER_FLOOD_H
#define LAYOVER_FLOOD_H

#include <stdatomic.h>

#include "load/client.h"
#include "load/noise.h"

enum { FLOOD_FLOWS_MAX = 250, FLOOD_THREADS_MAX = 64 };

/* A sum over all flows since the start. */
struct flood_counts {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint64_t sent, sent_bytes;
	uint64_t received, received_bytes; /* the server's own count */
	/* The receiving interface's counters; 0 and "" where the server knows none. */
	uint64_t rx_packets, rx_bytes;
	char interface[16];
};

struct flood {
	const struct load_plan
		*plan; /* mode PLAN_SINK; rate is for all flows together, 0: the most */
	const char *target;
	make_socket_fn *make_socket;
	void *arg;
	unsigned int flows, threads;
	uint64_t interval_ns; /* 0: no interim counts */
	/* Called after each interval with the counts at its begin and end. */
	void (*interim)(void *arg, const struct flood_counts *from, const struct flood_counts *to);
	void *interim_arg;

	/* Results: of the measured part, after the warm-up; `last` when what was under way has arrived. */
	struct flood_counts first, last;
	uint64_t duration_ns;      /* first to the end of sending */
	struct noise_report noise; /* of all senders, and of the server's threads */
};

/* Runs to its end, or flood_stop(). 0 or -errno with a sentence. */
int flood_run(struct flood *flood);

/* Set it, also in a signal handler, to end the running flood. */
extern atomic_bool flood_stop;

#endif
