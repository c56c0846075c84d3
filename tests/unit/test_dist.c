// SPDX-License-Identifier: GPL-2.0-only
/* Percentiles against a definition that is slow and obvious. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/dist.h"

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
			int64_t got = dist_percentile(values, n, per_mille[p] / 10.0);

			if (got != DIST_NONE)
				assert_int_equal(got, brute_percentile(values, n, per_mille[p]));
		}
	}
}

/* How many samples a percentile needs for a tail of DIST_TAIL_MIN. */
static void thin_tails_are_no_numbers(void **state)
{
	static const struct {
		double p;
		size_t enough;
	} rows[] = {{90, 100}, {99, 1000}, {99.9, 10000}, {10, 91}};
	int64_t *values = calloc(10000, sizeof(*values));

	(void)state;
	assert_non_null(values);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		assert_true(dist_percentile(values, rows[r].enough - 1, rows[r].p) == DIST_NONE);
		assert_true(dist_percentile(values, rows[r].enough, rows[r].p) == 0);
	}
	assert_true(dist_percentile(values, 1, 50) == 0); /* a median needs no tail */
	free(values);
}

static void summary_of_known_values(void **state)
{
	int64_t values[] = {50, 10, 40, 20, 30};
	struct dist d;

	(void)state;
	dist_of(values, 5, &d);
	assert_int_equal(d.count, 5);
	assert_int_equal(d.min, 10);
	assert_int_equal(d.p50, 30);
	assert_int_equal(d.max, 50);
	assert_true(d.p90 == DIST_NONE && d.p99 == DIST_NONE && d.p99_9 == DIST_NONE);
	assert_true(fabs(d.mean - 30) < 1e-9);
	assert_true(fabs(d.stddev - sqrt(250)) < 1e-9);
}

static void nothing_has_no_distribution(void **state)
{
	struct dist d;

	(void)state;
	dist_of(NULL, 0, &d);
	assert_int_equal(d.count, 0);
	assert_true(d.min == DIST_NONE && d.p50 == DIST_NONE && d.max == DIST_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_exact),
		cmocka_unit_test(thin_tails_are_no_numbers),
		cmocka_unit_test(summary_of_known_values),
		cmocka_unit_test(nothing_has_no_distribution),
	};

	return cmocka_run_group_tests_name("dist", tests, NULL, NULL);
}
