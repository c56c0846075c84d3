// SPDX-License-Identifier: GPL-2.0-only
#include "model/dist.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t dist_percentile(const int64_t *sorted, size_t n, double p)
{
	/* The rank is computed in parts per million: p has at most four decimals, doubles none exact. */
	uint64_t ppm = (uint64_t)llround(p * 1e4);
	uint64_t rank = ((uint64_t)n * ppm + 999999) / 1000000;
	uint64_t tail = ppm >= 500000 ? n - rank : rank;

	if (n == 0 || rank == 0)
		return DIST_NONE;
	/* The median of few samples is still a median; a tail percentile of few is a guess. */
	if (ppm != 500000 && tail < DIST_TAIL_MIN)
		return DIST_NONE;
	return sorted[rank - 1];
}

void dist_of(int64_t *values, size_t n, struct dist *out)
{
	double sum = 0, squares = 0;

	*out = (struct dist){n,         DIST_NONE, DIST_NONE, DIST_NONE, DIST_NONE,
			     DIST_NONE, DIST_NONE, 0,         0};
	if (n == 0)
		return;
	qsort(values, n, sizeof(*values), compare);
	for (size_t i = 0; i < n; i++)
		sum += (double)values[i];
	out->mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		double d = (double)values[i] - out->mean;

		squares += d * d;
	}
	out->stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	out->min = values[0];
	out->max = values[n - 1];
	out->p50 = dist_percentile(values, n, 50);
	out->p90 = dist_percentile(values, n, 90);
	out->p99 = dist_percentile(values, n, 99);
	out->p99_9 = dist_percentile(values, n, 99.9);
}
