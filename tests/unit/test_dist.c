// SPDX-License-Identifier: GPL-2.0-only
/* Percentiles against a definition that is slow and obvious. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/batches.h"
#include "model/dist.h"
#include "model/sort.h"

/* A small generator with a known seed: every run tests the same values. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest rank: the smallest value of which at least p percent of all are not larger. */
static int64_t brute_percentile(const int64_t *values, size_t n, unsigned int per_mille)
{
	int64_t best = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t not_larger = 0;

		for (size_t k = 0; k < n; k++)
			not_larger += values[k] <= values[i];
		if (not_larger * 1000 >= n * per_mille && values[i] < best)
			best = values[i];
	}
	return best;
}

static void fill(int64_t *values, size_t n, uint64_t seed, uint64_t range)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (int64_t)(next_random(&seed) % range) - (int64_t)range / 4;
}

static void percentiles_are_exact(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 19, 20, 99, 100, 101, 997, 1000, 1009};
	static const unsigned int per_mille[] = {100, 250, 500, 900, 990, 999};
	int64_t values[1009];

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t n = sizes[s];

		fill(values, n, n, n % 2 ? 10 : 1000000); /* with many equal values, too */
		qsort(values, n, sizeof(*values), compare);
		for (size_t p = 0; p < sizeof(per_mille) / sizeof(per_mille[0]); p++) {
			struct ordered ordered = {values, NULL, n};
			int64_t got = dist_percentile(&ordered, per_mille[p] / 10.0);

			if (got != DIST_NONE)
				assert_int_equal(got, brute_percentile(values, n, per_mille[p]));
		}
	}
}

static int64_t percentile(const int64_t *sorted, size_t n, double p)
{
	struct ordered ordered = {sorted, NULL, n};

	return dist_percentile(&ordered, p);
}

/* How many samples a percentile needs for a tail of DIST_TAIL_MIN. */
static void thin_tails_are_no_numbers(void **state)
{
	static const struct {
		double p;
		size_t enough;
	} rows[] = {{90, 100}, {99, 1000}, {99.9, 10000},   {10, 91},
		    {25, 37},  {75, 40},   {99.99, 100000}, {99.999, 1000000}};
	int64_t *values = calloc(1000000, sizeof(*values));

	(void)state;
	assert_non_null(values);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		assert_true(percentile(values, rows[r].enough - 1, rows[r].p) == DIST_NONE);
		assert_true(percentile(values, rows[r].enough, rows[r].p) == 0);
	}
	assert_true(percentile(values, 1, 50) == 0); /* a median needs no tail */
	free(values);
}

static void summary_of_known_values(void **state)
{
	int64_t values[] = {50, 10, 40, 20, 30}, scratch[5];
	struct dist d;

	(void)state;
	dist_of(values, scratch, 5, &d);
	assert_int_equal(d.count, 5);
	assert_int_equal(d.min, 10);
	assert_int_equal(d.p[DIST_P50], 30);
	assert_int_equal(d.max, 50);
	for (int i = 0; i < DIST_PERCENTILES; i++)
		assert_true((d.p[i] == DIST_NONE) == (i != DIST_P50));
	assert_true(fabs(d.mean - 30) < 1e-9);
	assert_true(fabs(d.stddev - sqrt(250)) < 1e-9);
}

static void nothing_has_no_distribution(void **state)
{
	struct dist d;

	(void)state;
	dist_of(NULL, NULL, 0, &d);
	assert_int_equal(d.count, 0);
	assert_true(d.min == DIST_NONE && d.p[DIST_P50] == DIST_NONE && d.max == DIST_NONE);
}

/* --- sorting ------------------------------------------------------------------------------------ */

static void sorts_as_qsort_does(void **state)
{
	static const uint64_t ranges[] = {2, 1000, 1ULL << 20, 1ULL << 33};
	enum { N = 5003 };
	int64_t *values = malloc(4 * N * sizeof(*values)), *wanted = values + N;
	int64_t *scratch = values + 2L * N;

	(void)state;
	assert_non_null(values);
	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
		for (size_t n = 0; n <= N; n = n * 3 + 1) {
			fill(values, n, n, ranges[r]); /* a quarter is negative */
			if (n > 3) {
				values[1] = INT64_MAX;
				values[2] = INT64_MIN;
			}
			memcpy(wanted, values, n * sizeof(*values));
			qsort(wanted, n, sizeof(*values), compare);
			sort_values(values, scratch, n);
			assert_memory_equal(values, wanted, n * sizeof(*values));
		}
	}
	free(values);
}

static void equal_items_keep_their_order(void **state)
{
	enum { N = 1000 };
	struct sort_item items[N], scratch[N];
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < N; i++)
		items[i] = (struct sort_item){(int64_t)(next_random(&seed) % 50) - 20, i};
	sort_items(items, scratch, N);
	for (size_t i = 1; i < N; i++) {
		assert_true(items[i - 1].key <= items[i].key);
		if (items[i - 1].key == items[i].key)
			assert_true(items[i - 1].index < items[i].index);
	}
}

/* --- confidence ---------------------------------------------------------------------------------- */

/* Textbook values: David and Nagaraja; Hahn and Meeker. 0 and n + 1: beyond the sample. */
static void rank_intervals_are_the_textbooks(void **state)
{
	static const struct {
		uint64_t n;
		double p;
		uint64_t low, high;
	} rows[] = {
		{5, 50, 0, 6},     {6, 50, 1, 6}, {10, 50, 2, 9},       {20, 50, 6, 15},
		{100, 50, 40, 61}, {1, 50, 0, 2}, {1000, 50, 469, 532},
	};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		uint64_t low, high;

		dist_rank_interval(rows[r].n, rows[r].p, &low, &high);
		assert_int_equal(low, rows[r].low);
		assert_int_equal(high, rows[r].high);
	}
}

/* The slow way: adds up the binomial distribution from its definition. */
static double binomial_below(uint64_t n, double q, uint64_t k)
{
	double sum = 0;

	for (uint64_t i = 0; i < k; i++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) -
			   lgamma((double)(n - i) + 1) + (double)i * log(q) +
			   (double)(n - i) * log(1 - q));
	return sum;
}

static void rank_intervals_hold_95_percent(void **state)
{
	static const uint64_t sizes[] = {40, 1000, 12345};
	static const double percents[] = {10, 25, 50, 90, 99};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t p = 0; p < sizeof(percents) / sizeof(percents[0]); p++) {
			uint64_t n = sizes[s], low, high;
			double q = percents[p] / 100;

			dist_rank_interval(n, percents[p], &low, &high);
			if (low > 0) {
				assert_true(binomial_below(n, q, low) <= 0.025);
				assert_true(binomial_below(n, q, low + 1) > 0.025);
			}
			if (high <= n) {
				assert_true(binomial_below(n, q, high) >= 0.975);
				assert_true(binomial_below(n, q, high - 1) < 0.975);
			}
		}
}

/* Many samples of a known distribution: the true median is in the interval in about 95 of 100. */
static void intervals_cover_the_truth(void **state)
{
	enum { N = 999, RUNS = 2000 };
	int64_t values[N], scratch[N];
	int median = 0, mean = 0;
	uint64_t seed = 11;

	(void)state;
	for (int run = 0; run < RUNS; run++) {
		struct batches batches = {0};
		struct mean_interval interval;
		struct dist d;

		for (size_t i = 0; i < N; i++) {
			values[i] = (int64_t)(next_random(&seed) % 1000001);
			batches_add(&batches, values[i]);
		}
		dist_of(values, scratch, N, &d);
		interval = batches_interval(&batches);
		assert_true(interval.known && fabs(interval.mean_ns - d.mean) < 1e-3);
		median += d.interval[DIST_P50].low <= 500000 && d.interval[DIST_P50].high >= 500000;
		mean += fabs(interval.mean_ns - 500000) <= interval.half_ns;
	}
	assert_in_range(median, RUNS * 94 / 100, RUNS * 97 / 100);
	assert_in_range(mean, RUNS * 94 / 100, RUNS * 965 / 1000);
}

/* Single trips would promise an interval a tenth as wide as it is. */
static void slow_moments_widen_the_interval(void **state)
{
	struct batches batches = {0};
	struct mean_interval interval;
	uint64_t seed = 5;
	bool slow = false;
	double single;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		if (i % 1000 == 0)
			slow = next_random(&seed) & 1;
		batches_add(&batches, slow ? 60000 : 40000);
	}
	interval = batches_interval(&batches);
	single = 1.96 * 10000 / sqrt(100000);
	assert_true(interval.known && interval.half_ns > 5 * single);
}

static void few_values_have_no_interval(void **state)
{
	struct batches batches = {0};

	(void)state;
	for (int i = 0; i < BATCHES_MIN; i++) {
		assert_false(batches_interval(&batches).known);
		batches_add(&batches, 100);
	}
	assert_true(batches_interval(&batches).known);
	assert_true(batches_interval(&batches).half_ns == 0);
}

/* --- bins and flows ------------------------------------------------------------------------------- */

static bool within(double got, double wanted, double error)
{
	return fabs(got - wanted) <= error * fabs(wanted);
}

static void bins_are_exact_to_a_tenth_of_a_percent(void **state)
{
	enum { N = 200000 };
	int64_t *values = malloc(2 * N * sizeof(*values));
	struct dist exact, binned;
	struct bins bins;
	uint64_t seed = 3;

	(void)state;
	assert_non_null(values);
	assert_int_equal(bins_open(&bins), 0);
	for (size_t i = 0; i < N; i++) {
		/* from 20 ns to 20 s, every order of magnitude alike */
		values[i] =
			(int64_t)(20 * exp((double)(next_random(&seed) % 1000000) / 1e6 * 20.7));
		bins_add(&bins, values[i]);
	}
	dist_of(values, values + N, N, &exact);
	dist_of_bins(&bins, &binned);
	assert_int_equal(binned.count, N);
	assert_true(binned.min == exact.min && binned.max == exact.max);
	assert_true(within(binned.mean, exact.mean, 1e-9));
	assert_true(within(binned.stddev, exact.stddev, 1e-6));
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		assert_true((exact.p[i] == DIST_NONE) == (binned.p[i] == DIST_NONE));
		if (exact.p[i] != DIST_NONE)
			assert_true(within((double)binned.p[i], (double)exact.p[i], 0.0005));
	}
	bins_free(&bins);
	free(values);
}

static void every_value_has_its_bin(void **state)
{
	struct bins bins;

	(void)state;
	assert_int_equal(bins_open(&bins), 0);
	for (int64_t value = 1; value > 0 && value < INT64_MAX / 3;
	     value = value * 2 + value / 7 + 1) {
		struct ordered ordered = {NULL, &bins, 3};
		int64_t seen;
		uint64_t n;
		size_t at = 0;

		bins_clear(&bins);
		bins_add(&bins, value);
		bins.exact.min = 0; /* so that the middle is not cut to the extremes */
		bins.exact.max = INT64_MAX;
		assert_true(ordered_next(&ordered, &at, &seen, &n));
		assert_true(n == 1 && within((double)seen, (double)value, 0.0005));
		assert_false(ordered_next(&ordered, &at, &seen, &n));
	}
	bins_free(&bins);
}

/* Three flows of different speed: the percentiles are those of all values, not means of percentiles. */
static void flows_merge(void **state)
{
	uint64_t a[1000], b[3000], c[1];
	const struct dist_part parts[] = {{a, 1000}, {b, 3000}, {c, 1}, {NULL, 0}};
	struct bins all, one;
	int64_t into[4001], scratch[4001];
	struct dist merged, binned;

	(void)state;
	assert_int_equal(bins_open(&all) | bins_open(&one), 0);
	for (size_t i = 0; i < 3000; i++)
		b[i] = 10000 + i;
	for (size_t i = 0; i < 1000; i++)
		a[i] = 100000 + i;
	c[0] = 7;
	dist_of_parts(parts, 4, into, scratch, &merged);
	assert_int_equal(merged.count, 4001);
	assert_int_equal(merged.min, 7);
	assert_int_equal(merged.max, 100999);
	assert_int_equal(merged.p[DIST_P50], 10000 + 1999); /* rank 2001; the first is c's */
	assert_int_equal(merged.p[DIST_P90], 100000 + 3601 - 3002);
	for (size_t p = 0; p < 3; p++) {
		bins_clear(&one);
		for (size_t i = 0; i < parts[p].count; i++)
			bins_add(&one, (int64_t)parts[p].values[i]);
		bins_merge(&all, &one);
	}
	dist_of_bins(&all, &binned);
	assert_true(binned.count == 4001 && binned.min == 7 && binned.max == 100999);
	assert_true(within(binned.mean, merged.mean, 1e-9));
	assert_true(within(binned.stddev, merged.stddev, 1e-9));
	assert_true(within((double)binned.p[DIST_P90], (double)merged.p[DIST_P90], 0.0005));
	bins_free(&all);
	bins_free(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_exact),
		cmocka_unit_test(thin_tails_are_no_numbers),
		cmocka_unit_test(summary_of_known_values),
		cmocka_unit_test(nothing_has_no_distribution),
		cmocka_unit_test(sorts_as_qsort_does),
		cmocka_unit_test(equal_items_keep_their_order),
		cmocka_unit_test(rank_intervals_are_the_textbooks),
		cmocka_unit_test(rank_intervals_hold_95_percent),
		cmocka_unit_test(intervals_cover_the_truth),
		cmocka_unit_test(slow_moments_widen_the_interval),
		cmocka_unit_test(few_values_have_no_interval),
		cmocka_unit_test(bins_are_exact_to_a_tenth_of_a_percent),
		cmocka_unit_test(every_value_has_its_bin),
		cmocka_unit_test(flows_merge),
	};

	return cmocka_run_group_tests_name("dist", tests, NULL, NULL);
}
