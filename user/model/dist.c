// SPDX-License-Identifier: GPL-2.0-only
#include "model/dist.h"

#include <math.h>

#include "model/sort.h"

const struct percentile_info percentile_infos[DIST_PERCENTILES] = {
	[DIST_P25] = {25, "p25", "p25"},
	[DIST_P50] = {50, "p50", "p50"},
	[DIST_P75] = {75, "p75", "p75"},
	[DIST_P90] = {90, "p90", "p90"},
	[DIST_P99] = {99, "p99", "p99"},
	[DIST_P99_9] = {99.9, "p99.9", "p99_9"},
	[DIST_P99_99] = {99.99, "p99.99", "p99_99"},
	[DIST_P99_999] = {99.999, "p99.999", "p99_999"},
};

/* --- values in order ----------------------------------------------------------------------------- */

int64_t ordered_at(const struct ordered *values, uint64_t rank)
{
	uint64_t before = 0;
	size_t bin = 0;

	if (values->sorted)
		return values->sorted[rank - 1];
	/* The ends are known exactly. */
	if (rank == 1)
		return values->bins->exact.min;
	if (rank == values->count)
		return values->bins->exact.max;
	while (before + values->bins->counts[bin] < rank)
		before += values->bins->counts[bin++];
	return bins_value(values->bins, bin);
}

bool ordered_next(const struct ordered *values, size_t *cursor, int64_t *value, uint64_t *n)
{
	size_t first = *cursor;

	if (values->sorted) {
		if (first >= values->count)
			return false;
		*value = values->sorted[first];
		while (*cursor < values->count && values->sorted[*cursor] == *value)
			++*cursor;
		*n = *cursor - first;
		return true;
	}
	while (*cursor < BINS && !values->bins->counts[*cursor])
		++*cursor;
	if (*cursor >= BINS)
		return false;
	*value = bins_value(values->bins, *cursor);
	*n = values->bins->counts[(*cursor)++];
	return true;
}

/* --- percentiles --------------------------------------------------------------------------------- */

/* Parts per million: p has at most four decimals, doubles none exact. */
static uint64_t ppm_of(double p)
{
	return (uint64_t)llround(p * 1e4);
}

int64_t dist_percentile(const struct ordered *values, double p)
{
	uint64_t n = values->count, ppm = ppm_of(p);
	uint64_t rank = (n * ppm + 999999) / 1000000;
	uint64_t tail = ppm >= 500000 ? n - rank : rank;

	if (n == 0 || rank == 0)
		return DIST_NONE;
	/* The median of few samples is still a median; a tail percentile of few is a guess. */
	if (ppm != 500000 && tail < DIST_TAIL_MIN)
		return DIST_NONE;
	return ordered_at(values, rank);
}

/* The binomial distribution relative to its mode: what is so much rarer cannot be seen in the sum. */
#define NEGLIGIBLE 1e-18

/* Of n values, how many are below the percentile: k + 1 is as likely as k times this. */
static double ratio_up(double n, double q, double k)
{
	return (n - k) / (k + 1) * (q / (1 - q));
}

/*
 * The sum of all relative probabilities on one side of the mode, without it, and how far they reach.
 * step is 1 or -1.
 */
static double side_sum(double n, double q, double mode, int step, double *end)
{
	double k = mode, likely = 1, sum = 0;

	for (;;) {
		likely = step > 0 ? likely * ratio_up(n, q, k) : likely / ratio_up(n, q, k - 1);
		k += step;
		if (k < 0 || k > n || likely < NEGLIGIBLE)
			break;
		sum += likely;
	}
	*end = k - step;
	return sum;
}

/*
 * Walks from the mode outwards while what lies farther out is more than `tail`; the first k, if any, at
 * which k and everything beyond it is at most that. May leave 0 … n.
 */
static double walk_out(double n, double q, double mode, int step, double rest, double tail)
{
	double k = mode, likely = 1;

	while (rest > tail) {
		likely = step > 0 ? likely * ratio_up(n, q, k) : likely / ratio_up(n, q, k - 1);
		k += step;
		if (k < 0 || k > n)
			return k;
		rest -= likely;
	}
	return k + step;
}

void dist_rank_interval(uint64_t n, double p, uint64_t *low, uint64_t *high)
{
	double q = (double)ppm_of(p) / 1e6, count = (double)n;
	double mode = fmin(floor((count + 1) * q), count), end;
	double below = side_sum(count, q, mode, -1, &end);
	double above = side_sum(count, q, mode, 1, &end);
	double tail = 0.025 * (below + 1 + above);

	/*
	 * The low end is right unless fewer than low values are below the percentile: the largest low with
	 * P(k <= low - 1) <= 2.5 %. Likewise the smallest high with P(k >= high) <= 2.5 %.
	 */
	*low = (uint64_t)(walk_out(count, q, mode, -1, below, tail) + 1);
	*high = (uint64_t)walk_out(count, q, mode, 1, above, tail);
}

/* --- distributions ------------------------------------------------------------------------------- */

static struct rank_interval interval_of(const struct ordered *values, double p)
{
	uint64_t low, high;

	dist_rank_interval(values->count, p, &low, &high);
	return (struct rank_interval){
		low > 0 ? ordered_at(values, low) : DIST_NONE,
		high <= values->count ? ordered_at(values, high) : DIST_NONE,
	};
}

static void fill(const struct ordered *values, struct dist *out)
{
	*out = (struct dist){.count = values->count, .min = DIST_NONE, .max = DIST_NONE};
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		double p = percentile_infos[i].percent;

		out->p[i] = dist_percentile(values, p);
		out->interval[i] = out->p[i] == DIST_NONE
					   ? (struct rank_interval){DIST_NONE, DIST_NONE}
					   : interval_of(values, p);
	}
	if (values->count) {
		out->min = ordered_at(values, 1);
		out->max = ordered_at(values, values->count);
	}
}

void dist_of(int64_t *values, int64_t *scratch, size_t n, struct dist *out)
{
	struct ordered ordered = {.sorted = values, .count = n};
	double sum = 0, squares = 0;

	sort_values(values, scratch, n);
	fill(&ordered, out);
	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		sum += (double)values[i];
	out->mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		double d = (double)values[i] - out->mean;

		squares += d * d;
	}
	out->stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

void dist_of_bins(const struct bins *bins, struct dist *out)
{
	struct ordered ordered = {.bins = bins, .count = bins->exact.count};

	fill(&ordered, out);
	out->mean = bins->exact.mean;
	out->stddev = moments_stddev(&bins->exact);
}

void dist_of_parts(const struct dist_part *parts, size_t n, int64_t *into, int64_t *scratch,
		   struct dist *out)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].count; k++)
			into[count++] = (int64_t)parts[i].values[k];
	dist_of(into, scratch, count, out);
}
