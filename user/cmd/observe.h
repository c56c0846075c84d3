/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks on while a run measures, between its blocks only (where messages overlap, meanwhile and from another thread): what the run costs the operating system, how well
 * its mean is known, interim lines, and bins instead of samples.
 */
#ifndef LAYOVER_OBSERVE_H
#define LAYOVER_OBSERVE_H

#include <stdio.h>

#include "cmd/outputs.h"
#include "collect/os_cost.h"
#include "load/run.h"
#include "model/batches.h"
#include "model/bins.h"

/* Starts as {.outputs = …}. */
struct observer {
	const struct outputs *outputs;
	struct run *run;
	int (*between)(void *arg); /* whoever else works between blocks, or NULL */
	void *arg;

	/* Results. */
	struct os_counts cost;
	struct batches batches;
	struct bins bins, service; /* --histogram-only: all that is kept */
	bool ci_reached;           /* --until-ci ended the run */

	struct calls *calls;
	struct os_counts before; /* the block that is running */
	bool block_runs;
	size_t taken;                          /* samples already looked at */
	struct bins recent;                    /* since the last interim line */
	uint64_t begun_ns, line_ns, line_lost; /* when measuring began; at the last interim line */
};

/* Allocates and opens what the outputs want. 0 or -errno with a sentence; observe_close() either way. */
int observe_open(struct observer *o, const struct load_plan *plan);

/* Hangs itself between the run's blocks, around what is there already. */
void observe_start(struct observer *o, struct run *run);

/* The run is over, its client still open. */
void observe_finish(struct observer *o);

void observe_close(struct observer *o);

#endif
