/* SPDX-License-Identifier: GPL-2.0-only */
/* From what a run has gathered to what is shown of it. */
#ifndef LAYOVER_REPORT_H
#define LAYOVER_REPORT_H

#include "cmd/observe.h"
#include "cmd/outputs.h"
#include "cmd/tracing.h"
#include "load/run.h"
#include "view/view.h"

/* Everything that a report is made of; lab: both ends were made here. */
struct report_sources {
	const struct run *run;
	const struct outputs *outputs;
	const struct observer *observer;
	struct tracing *tracing;
	const struct noise_report *noise;
	bool lab;
	enum report_sweep sweep;
};

/* Trips that were answered: also where samples were not kept. */
uint64_t report_trips(const struct run *run, const struct observer *observer);

/* Computes the report once, writes the files that were asked for, prints it. 0 or -errno with a sentence. */
int report_print(const struct report_sources *from);

#endif
