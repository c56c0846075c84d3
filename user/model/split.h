/* SPDX-License-Identifier: GPL-2.0-only */
/* The split: the distribution of every stage over all measured trips, and what dominates. Pure C. */
#ifndef LAYOVER_SPLIT_H
#define LAYOVER_SPLIT_H

#include <stdbool.h>

#include "model/dist.h"
#include "model/trips.h"

enum { BAND_TOPS = 2 };

/* Trips around a percentile of the round trip, within half a percent on each side. */
enum band { BAND_P50, BAND_P99, BANDS };

struct stage_row {
	int stage;       /* enum stage */
	uint64_t passed; /* trips that passed it; the statistics count the others as 0 ns */
	struct dist dist;
	double share;             /* of the sum of all round trips, 0 … 1 */
	double band_share[BANDS]; /* the same over the trips of a band */
	int cpu_from, cpu_to;     /* the most frequent pair over all trips, -1 unknown */
};

struct split {
	struct stage_row rows[STAGES]; /* stages that occurred, in path order */
	int count;
	uint64_t trips, matched, partial, unmatched; /* trips is their sum */
	bool alone;             /* no record of the server's end was seen at all */
	bool band_known[BANDS]; /* the band holds trips enough to speak of */
	struct band_top {
		int stage; /* -1: none */
		double share;
		int cpu_from, cpu_to; /* most frequent in the band, -1 unknown */
	} top[BANDS][BAND_TOPS];      /* the stages with the largest shares, largest first */
};

/* Computes everything from the trips. rtt_ns holds trips->count values. 0 or -ENOMEM with a sentence. */
int split_of(const struct trips *trips, const uint64_t *rtt_ns, struct split *out);

#endif
