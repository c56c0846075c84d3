/* SPDX-License-Identifier: GPL-2.0-only */
/* The split of a driver's run: hooks attached around it, records drained and joined between its blocks. */
#ifndef LAYOVER_TRACING_H
#define LAYOVER_TRACING_H

#include <stdbool.h>

#include "collect/collect.h"
#include "load/host.h"
#include "load/remote.h"
#include "load/run.h"
#include "model/join.h"
#include "model/overhead.h"

struct tracing {
	struct collect *collect; /* NULL: no split */
	struct join join;
	struct collect_counters counters; /* of this end; valid after tracing_close() too */

	/* The server's end: seen from here on the same kernel, else asked for, if it can tell. */
	bool same_kernel;
	char server_kernel[HOST_KERNEL_MAX];
	uint32_t with, without; /* masks of enum hook, for both ends */
	struct remote remote;

	bool hw_timestamps;    /* wanted */
	struct nic_report nic; /* --hw-timestamps; interface is empty without */

	/* --overhead: blocks alternate between hooks attached and detached. */
	bool overhead;
	struct overhead_pair *pairs;
	size_t pair_count;

	struct run *run;
	size_t blocks;      /* overhead: how many were measured */
	struct samples off; /* overhead: the round trips of the detached block */
	size_t on_before;   /* overhead: samples there were before the attached block */
	double off_figures[2], on_figures[2];
};

/*
 * Probes and loads the hooks of the wish; nothing is attached yet.
 * 0 or -errno with a sentence; the caller calls tracing_close() either way.
 */
int tracing_open(struct tracing *t, const struct probe_wish *wish, bool overhead);

/*
 * Points the hooks at the client's flow, attaches them and hangs itself between the run's blocks. A server
 * on another kernel is asked to record its own end.
 */
int tracing_start(struct tracing *t, struct run *run);

/* Detaches and settles what is left to join. 0 or -errno with a sentence. */
int tracing_finish(struct tracing *t);

void tracing_close(struct tracing *t);

#endif
