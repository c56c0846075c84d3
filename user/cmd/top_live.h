/* SPDX-License-Identifier: GPL-2.0-only */
/* The live screen of `top`: signals, timers and keys in one loop. */
#ifndef LAYOVER_TOP_LIVE_H
#define LAYOVER_TOP_LIVE_H

#include "cmd/top_source.h"
#include "tui/screen.h"

struct top_live_wish {
	struct screen_wish screen;
	uint64_t interval_ns, count; /* count 0: until it is left */
	int sort;                    /* column */
	bool reverse;
	bool report_on_exit; /* the last screen is printed as text when it is left */
};

/*
 * Shows the source until it is left, by a key or a signal; the terminal is then as it was. The signals it handles must be
 * blocked already (top_live_block()). 0 or -errno with a sentence.
 */
int top_live(struct top_source *source, const struct top_live_wish *wish);

/* Blocks the signals that top_live() reads. Called before anything that takes time, so that none is lost. */
void top_live_block(void);

#endif
