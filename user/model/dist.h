/* SPDX-License-Identifier: GPL-2.0-only */
/* Distributions of integer nanoseconds: exact from all values, to 0.1 % from bins. Pure C: no I/O. */
#ifndef LAYOVER_DIST_H
#define LAYOVER_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/bins.h"

/* A percentile whose tail holds fewer samples than this is not a number (DIST_NONE). */
enum { DIST_TAIL_MIN = 10 };
#define DIST_NONE INT64_MIN

/* The percentiles that are computed, as a table. */
enum {
	DIST_P25,
	DIST_P50,
	DIST_P75,
	DIST_P90,
	DIST_P99,
	DIST_P99_9,
	DIST_P99_99,
	DIST_P99_999,
	DIST_PERCENTILES
};

struct percentile_info {
	double percent;
	const char *name; /* "p99.9" */
	const char *key;  /* "p99_9": in names of JSON and CSV */
};

extern const struct percentile_info percentile_infos[DIST_PERCENTILES];

/* 95 % confidence interval of a percentile; DIST_NONE where the sample does not reach that far. */
struct rank_interval {
	int64_t low, high; /* ns */
};

struct dist {
	uint64_t count;
	int64_t min, max;                                /* ns; DIST_NONE where not known */
	int64_t p[DIST_PERCENTILES];                     /* the same */
	struct rank_interval interval[DIST_PERCENTILES]; /* where p is known, else none */
	double mean, stddev;                             /* ns; 0 when count is 0 */
};

/* The values of a distribution in ascending order: sorted, or (sorted is NULL) in bins. Not owned. */
struct ordered {
	const int64_t *sorted;
	const struct bins *bins;
	uint64_t count;
};

/* The value of a rank, 1 … count. */
int64_t ordered_at(const struct ordered *values, uint64_t rank);

/*
 * Goes through the distinct values, smallest first: *cursor starts at 0; *n is how many there are of *value.
 * False after the last one.
 */
bool ordered_next(const struct ordered *values, size_t *cursor, int64_t *value, uint64_t *n);

/*
 * The distribution of values[0..n), which get sorted in place; scratch has room for n as well. n may be 0:
 * every field is then none.
 */
void dist_of(int64_t *values, int64_t *scratch, size_t n, struct dist *out);

/* The same of what was counted in bins: count, min, max, mean and stddev are exact. */
void dist_of_bins(const struct bins *bins, struct dist *out);

/* One array of several flows. */
struct dist_part {
	const uint64_t *values; /* ns */
	size_t count;
};

/*
 * The distribution of the values of several flows together, which cannot be had from theirs. into receives
 * all values, sorted; into and scratch have room for the sum of the counts.
 */
void dist_of_parts(const struct dist_part *parts, size_t n, int64_t *into, int64_t *scratch,
		   struct dist *out);

/* Nearest-rank percentile (0 < p < 100), DIST_NONE when the tail is too thin. */
int64_t dist_percentile(const struct ordered *values, double p);

/*
 * The ranks between which the p-th percentile of what was sampled lies with at least 95 % confidence, by the
 * binomial distribution; *low is 0 and *high is n + 1 where no sample is far enough out.
 */
void dist_rank_interval(uint64_t n, double p, uint64_t *low, uint64_t *high);

#endif
