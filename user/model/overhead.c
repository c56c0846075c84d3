// SPDX-License-Identifier: GPL-2.0-only
#include "model/overhead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/sort.h"

enum { P50, P99 };

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void overhead_block(uint64_t *rtt_ns, size_t n, double out[2])
{
	qsort(rtt_ns, n, sizeof(*rtt_ns), by_value);
	out[P50] = (double)rtt_ns[(n - 1) / 2];
	out[P99] = (double)rtt_ns[(n - 1) * 99 / 100];
}

static struct overhead_figure figure_of(const struct overhead_pair *pairs, size_t n, int which,
					double *scratch)
{
	struct overhead_figure f = {0};
	double skip = floor(((double)n - 1.96 * sqrt((double)n)) / 2);
	size_t outer = skip > 0 ? (size_t)skip : 0;

	for (size_t i = 0; i < n; i++)
		scratch[i] = pairs[i].off[which];
	f.off_ns = sort_median(scratch, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = pairs[i].on[which];
	f.on_ns = sort_median(scratch, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = pairs[i].on[which] - pairs[i].off[which];
	f.difference_ns = sort_median(scratch, n);
	f.low_ns = scratch[outer];
	f.high_ns = scratch[n - 1 - outer];
	return f;
}

void overhead_of(const struct overhead_pair *pairs, size_t n, struct overhead *out)
{
	double *scratch = malloc((n + 1) * sizeof(*scratch));

	memset(out, 0, sizeof(*out));
	out->pairs = n;
	if (n >= 2 && scratch) {
		out->p50 = figure_of(pairs, n, P50, scratch);
		out->p99 = figure_of(pairs, n, P99, scratch);
	}
	free(scratch);
}
