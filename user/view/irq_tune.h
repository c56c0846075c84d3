/* SPDX-License-Identifier: GPL-2.0-only */
/* What `layover irq tune` prints. */
#ifndef LAYOVER_VIEW_IRQ_TUNE_H
#define LAYOVER_VIEW_IRQ_TUNE_H

#include <stdbool.h>

#include "model/overhead.h"
#include "model/stages.h"
#include "model/trial.h"
#include "tune/axes.h"

/* A stage's part of the round trips around the percentile in question, ns. */
struct tune_stage {
	int stage;
	double now_ns, best_ns;
};

struct tune_report {
	const char *target, *device, *driver;
	const struct load_plan *plan;
	const struct axes *axes;
	const struct trial *trials;
	const struct dist *dists; /* of each trial */
	char *const *refused;     /* why a combination could not be measured, NULL: it could */
	enum trial_by by;
	uint64_t took_ns;
	int rounds;
	int best;     /* 0: as it is now */
	bool matters; /* the best is better than now, beyond noise */
	struct overhead
		gain; /* measured afresh: off is the best, on is now; pairs 0: not measured */
	struct tune_stage stages[STAGES]; /* the largest gain first */
	int stage_count;
	char no_stages[300]; /* why there are none, "" else */
	bool stopped, applied;
};

/* Text under 80 columns, or one JSON object. 0 or -errno with a sentence. */
int view_tune_text(const struct tune_report *report);
int view_tune_json(const struct tune_report *report);

/* The line that tells how far it is, over the one before on a terminal's stderr; done: wipes it. */
void view_tune_progress(const char *what, int left, int all, double seconds_left);
void view_tune_progress_done(void);

#endif
