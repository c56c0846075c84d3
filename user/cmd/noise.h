/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches over a run what else hits the CPUs of both ends: looks once after the warm-up, and once at the end. */
#ifndef LAYOVER_CMD_NOISE_H
#define LAYOVER_CMD_NOISE_H

#include "load/run.h"
#include "view/noise.h"

struct noise_observer {
	struct run *run;
	int (*between)(void *arg); /* whoever else works between blocks, or NULL */
	void *arg;
	struct noise_watch watch;
	int shared_first; /* the CPU that both ends were on at the begin; -1: none, or not known */
	struct noise_report report;
};

/* Hangs itself between the run's blocks; where messages overlap it looks at once. 0 or -errno with a sentence. */
int noise_start(struct noise_observer *o, struct run *run);

/* The run is over, its client still open. Fills in the report. */
void noise_finish(struct noise_observer *o);

/* After noise_start(), whatever became of the run. */
void noise_close(struct noise_observer *o);

#endif
