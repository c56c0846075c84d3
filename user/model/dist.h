/* SPDX-License-Identifier: GPL-2.0-only */
/* Exact distributions of integer nanoseconds. Pure C: no I/O. */
#ifndef LAYOVER_DIST_H
#define LAYOVER_DIST_H

#include <stddef.h>
#include <stdint.h>

/* A percentile whose tail holds fewer samples than this is not a number (DIST_NONE). */
enum { DIST_TAIL_MIN = 10 };
#define DIST_NONE INT64_MIN

struct dist {
	uint64_t count;
	int64_t min, p50, p90, p99, p99_9, max; /* ns; DIST_NONE where not known */
	double mean, stddev;                    /* ns; 0 when count is 0 */
};

/* The distribution of values[0..n). Sorts values in place. n may be 0: every field is then none. */
void dist_of(int64_t *values, size_t n, struct dist *out);

/* Nearest-rank percentile (0 < p < 100) of sorted values, DIST_NONE when the tail is too thin. */
int64_t dist_percentile(const int64_t *sorted, size_t n, double p);

#endif
