// SPDX-License-Identifier: GPL-2.0-only
#include "model/overhead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P50, P99 };

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void overhead_block(uint64_t *rtt_ns, size_t n, double out[2])
{
	qsort(rtt_ns, n, sizeof(*rtt_ns), by_value);
	out[P50] = (double)rtt_ns[(n - 1) / 2];
	out[P99] = (double)rtt_ns[(n - 1) * 99 / 100];
}

/* 97.5 % quantile of Student's t with f degrees of freedom (Cornish-Fisher; 1 and 2 are exact). */
static double student_t(double f)
{
	const double z = 1.959964;

	if (f < 1.5)
		return 12.706;
	if (f < 2.5)
		return 4.303;
	return z + (pow(z, 3) + z) / (4 * f) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * f * f);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_double);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static struct overhead_figure figure_of(const struct overhead_pair *pairs, size_t n, int which,
					double *scratch)
{
	struct overhead_figure f = {0};
	double squares = 0, half;

	for (size_t i = 0; i < n; i++)
		scratch[i] = pairs[i].off[which];
	f.off_ns = median(scratch, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = pairs[i].on[which];
	f.on_ns = median(scratch, n);
	for (size_t i = 0; i < n; i++)
		f.difference_ns += (pairs[i].on[which] - pairs[i].off[which]) / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += pow(pairs[i].on[which] - pairs[i].off[which] - f.difference_ns, 2);
	half = student_t((double)n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
	f.low_ns = f.difference_ns - half;
	f.high_ns = f.difference_ns + half;
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
