/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches over a run what else hits the CPUs of both ends: looks once before the warm-up, and once at the end. */
#ifndef LAYOVER_CMD_NOISE_H
#define LAYOVER_CMD_NOISE_H

#include "load/run.h"
#include "view/noise.h"

struct noise_observer {
	struct run *run;
	struct noise_watch watch;
	int shared_first; /* the CPU that both ends were on at the begin; -1: none, or not known */
	struct noise_report report;

	/* Private. */
	pid_t tid; /* the measuring thread */
	void (*look)(struct noise_observer *o);
	int rc;
	char why[256];
};

/* Looks first. Called by the thread that measures, which is placed as the plan says. 0 or -errno with a sentence. */
int noise_start(struct noise_observer *o, struct run *run);

/* The run is over, its client still open. Fills in the report. */
void noise_finish(struct noise_observer *o);

/* After noise_start(), whatever became of the run. */
void noise_close(struct noise_observer *o);

#endif
