/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How well the mean is known. Consecutive trips resemble each other (a busy moment slows many), so the
 * interval is not computed from single trips but from the means of consecutive batches of them: of at least
 * BATCHES_MIN and always fewer than BATCHES. Two batches become one when there are too many. Pure C.
 */
#ifndef LAYOVER_BATCHES_H
#define LAYOVER_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BATCHES = 64, BATCHES_MIN = 8 };

/* Starts as {0}. */
struct batches {
	double sum[BATCHES]; /* of each full batch */
	int full;
	uint64_t size;   /* values per batch; 0: nothing was added */
	double open_sum; /* of the batch that is being filled */
	uint64_t open_count;
	double all_sum;
	uint64_t all_count;
};

/* The mean is within mean ± half_ns with 95 % confidence. */
struct mean_interval {
	bool known; /* there are batches enough */
	double mean_ns, half_ns;
};

/* The next value in the order of time. Values of several flows may be added in turn. */
void batches_add(struct batches *batches, int64_t value);

/* Student's interval of the batch means. */
struct mean_interval batches_interval(const struct batches *batches);

#endif
