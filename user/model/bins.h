/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of nanoseconds in bounded memory, for runs too long to keep every value: each power of two is
 * divided into BINS_PER_OCTAVE, so that a bin is never wider than 0.1 % of its values. Pure C.
 */
#ifndef LAYOVER_BINS_H
#define LAYOVER_BINS_H

#include <stddef.h>
#include <stdint.h>

enum { BINS_BITS = 10, BINS_PER_OCTAVE = 1 << BINS_BITS, BINS_OCTAVES = 64 - BINS_BITS };
enum { BINS = BINS_PER_OCTAVE * BINS_OCTAVES };

/* What is known exactly whatever the bins: number, extremes, mean, variance. Starts as {0}. */
struct moments {
	uint64_t count;
	int64_t min, max;     /* when count is not 0 */
	double mean, squares; /* of deviations from the mean */
};

struct bins {
	struct moments exact;
	uint64_t *counts; /* BINS of them */
};

void moments_add(struct moments *moments, int64_t value);
/* The moments of both together. */
void moments_merge(struct moments *into, const struct moments *from);
/* Of a sample; 0 when count is below 2. */
double moments_stddev(const struct moments *moments);

/* Allocates. 0 or -ENOMEM with a sentence. bins_free() gives it back; it takes what never was allocated. */
int bins_open(struct bins *bins);
void bins_free(struct bins *bins);

/* Empties it. */
void bins_clear(struct bins *bins);

/* Counts a value; a negative one counts as 0. */
void bins_add(struct bins *bins, int64_t value);

/* Counts all of from's values: the histogram of several flows is exactly that of all their values. */
void bins_merge(struct bins *into, const struct bins *from);

/* The value that stands for all of a bin (0 … BINS - 1): its middle, within minimum and maximum. */
int64_t bins_value(const struct bins *bins, size_t bin);

#endif
