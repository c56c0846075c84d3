// SPDX-License-Identifier: GPL-2.0-only
/* HdrHistogram's text of percentiles, .hgrm, in microseconds: what its plotters read. */
#include <math.h>
#include <stdio.h>

#include "load/clock.h"
#include "view/view.h"

/* Steps between a percentile and the one with half its distance to 100 %: what the plotters expect. */
enum { TICKS = 5 };

/* The percentile of the next row; ever smaller steps towards 100. */
static double next_level(double level)
{
	double halvings = floor(log2(100 / (100 - level))) + 1;

	return level + 100 / (TICKS * exp2(halvings));
}

static double us(double ns)
{
	return ns / NS_PER_US;
}

static void print_row(int64_t value, double level, uint64_t passed)
{
	printf("%12.3f %2.12f %10llu %14.2f\n", us((double)value), level / 100,
	       (unsigned long long)passed, 1 / (1 - level / 100));
}

/* A value that reaches several levels has a row for each, only the largest has one and then 100 %. */
static void print_rows(const struct ordered *values)
{
	double count = (double)values->count, level = 0;
	uint64_t passed = 0, n;
	size_t cursor = 0;
	int64_t value = 0;

	while (passed < values->count && ordered_next(values, &cursor, &value, &n)) {
		passed += n;
		while (passed < values->count && 100 * (double)passed / count >= level) {
			print_row(value, level, passed);
			level = next_level(level);
		}
	}
	print_row(value, level, passed);
	printf("%12.3f %2.12f %10llu\n", us((double)value), 1.0, (unsigned long long)passed);
}

/* Values that were kept are one bucket, in which each nanosecond up to the largest is a bucket of its own. */
int view_hgrm(const struct report *report)
{
	unsigned long long octaves = report->binned ? BINS_OCTAVES : 1;
	unsigned long long per_octave =
		report->binned ? BINS_PER_OCTAVE : (unsigned long long)report->rtt.max + 1;

	printf("%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
	print_rows(&report->values);
	printf("#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", us(report->rtt.mean),
	       us(report->rtt.stddev));
	printf("#[Max     = %12.3f, Total count    = %12llu]\n", us((double)report->rtt.max),
	       (unsigned long long)report->rtt.count);
	printf("#[Buckets = %12llu, SubBuckets     = %12llu]\n", octaves, per_octave);
	if (report->half)
		printf("#[Half round trips]\n");
	return 0;
}
