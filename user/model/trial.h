/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which of several ways is the quickest, measured in rounds: every round measures all that are left once, so that a
 * drift of the machine falls on all alike. Losers are given up early. Pure C.
 */
#ifndef LAYOVER_TRIAL_H
#define LAYOVER_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/dist.h"
#include "model/trips.h"

/* By which figure of the round trips. */
enum trial_by { TRIAL_P50, TRIAL_P99, TRIAL_FIGURES };

struct trial_round {
	double figure[TRIAL_FIGURES]; /* ns */
};

/* Starts as {0}; the n-th round of all trials is the same time. */
struct trial {
	uint64_t *rtt_ns; /* of all rounds */
	size_t count, room;
	struct trial_round *rounds;
	int round_count;
	bool out; /* given up */
};

/* The round trips of one more round; n must be positive. 0 or -ENOMEM with a sentence. */
int trial_add(struct trial *trial, const uint64_t *rtt_ns, size_t n);

/* The median of its rounds' figures, ns: to be shown; trial_ratio() compares. Infinity without rounds. */
double trial_score(const struct trial *trial, enum trial_by by);

/*
 * How one compares with another one: the median of their ratios round by round, which a drift of the machine leaves
 * alone; infinity when they have no round in common.
 */
double trial_ratio(const struct trial *a, const struct trial *to, enum trial_by by);

/* Of the round trips of all rounds together. 0 or -ENOMEM with a sentence. */
int trial_dist(const struct trial *trial, struct dist *out);

/*
 * Gives up those that lost clearly: in every round slower than the best of all, by more than noise does. Never the
 * first one, which the others are compared with. Returns how many are left.
 */
int trials_prune(struct trial *all, int n, enum trial_by by);

/*
 * The best of those left: among all within 3 % of the quickest (trial_ratio) the one with the fewest changes (by
 * index), so that nothing is advised that does not matter.
 */
int trials_best(const struct trial *all, int n, enum trial_by by, const int *changes);

/*
 * The stages of the trips around the percentile in question, half a percent and at least ten trips to each side: adds
 * their means, which sum to those trips' mean, to sum. 0; -ENODATA with a sentence: fewer than 20 trips; -ENOMEM.
 */
int trial_stages(const struct trips *trips, const uint64_t *rtt_ns, enum trial_by by,
		 double sum[STAGES]);

void trial_free(struct trial *trial);

#endif
