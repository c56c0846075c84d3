// SPDX-License-Identifier: GPL-2.0-only
/* Rates and shares of what a run cost the operating system. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/os_cost.h"
#include "load/clock.h"

static struct os_counts counts(uint64_t second)
{
	struct os_counts c = {.wall_ns = second * NS_PER_S, .trips = 1000 * second};

	c.known[OS_PROCESS][OS_CPU] = c.known[OS_PROCESS][OS_SWITCHES] = true;
	c.known[OS_MACHINE][OS_CPU] = c.known[OS_MACHINE][OS_INTERRUPTS] = true;
	c.count[OS_PROCESS][OS_CPU] = second * NS_PER_S / 4;
	c.count[OS_PROCESS][OS_SWITCHES] = 2000 * second;
	c.count[OS_MACHINE][OS_CPU] = 30 * second; /* ticks */
	c.idle_ticks = 170 * (int64_t)second;
	c.count[OS_MACHINE][OS_INTERRUPTS] = 500 * second;
	return c;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6 * fabs(b);
}

static void rates_and_shares(void **state)
{
	const struct os_counts a = counts(3), b = counts(5), c = counts(9), d = counts(10);
	struct os_counts sum = {0};
	struct os_cost cost;

	(void)state;
	os_add(&sum, &a, &b); /* what passed between b and c is a pause */
	os_add(&sum, &c, &d);
	os_cost_of(&sum, &cost);
	assert_int_equal(sum.wall_ns, 3ULL * NS_PER_S);
	assert_true(near(cost.rate[OS_PROCESS][OS_CPU], 25));
	assert_true(near(cost.per_trip[OS_PROCESS][OS_CPU], 250000));
	assert_true(near(cost.rate[OS_PROCESS][OS_SWITCHES], 2000));
	assert_true(near(cost.per_trip[OS_PROCESS][OS_SWITCHES], 2));
	assert_true(near(cost.rate[OS_MACHINE][OS_CPU], 15));
	assert_true(near(cost.per_trip[OS_MACHINE][OS_CPU], 150000.0 * cost.cpus));
	assert_true(near(cost.per_trip[OS_MACHINE][OS_INTERRUPTS], 0.5));
}

static void what_is_not_known_is_no_number(void **state)
{
	const struct os_counts a = counts(3), b = counts(5);
	struct os_counts sum = {0}, still = a;
	struct os_cost cost;

	(void)state;
	os_add(&sum, &a, &b);
	os_cost_of(&sum, &cost);
	assert_true(isnan(cost.rate[OS_PROCESS][OS_INTERRUPTS]));
	assert_true(isnan(cost.rate[OS_MACHINE][OS_CALLS]) && !cost.counts_calls);
	sum = (struct os_counts){0};
	still.wall_ns++; /* so short a run that no tick passed */
	still.trips++;
	os_add(&sum, &a, &still);
	os_cost_of(&sum, &cost);
	assert_true(isnan(cost.rate[OS_MACHINE][OS_CPU]));
	sum = (struct os_counts){0};
	os_cost_of(&sum, &cost);
	assert_true(isnan(cost.rate[OS_PROCESS][OS_CPU]));
}

static void own_work_is_seen(void **state)
{
	struct os_counts before, after, sum = {0};
	struct os_cost cost;
	uint64_t until = clock_ns() + 200ULL * NS_PER_MS;
	/* Much longer than a CPU is taken from a virtual machine: a timer that fires before the thread
	 * has left its CPU costs no switch. */
	struct timespec nap = {0, 3L * NS_PER_MS};

	(void)state;
	os_read(NULL, &before);
	while (clock_ns() < until)
		;
	for (int i = 0; i < 53; i++)
		nanosleep(&nap, NULL);
	os_read(NULL, &after);
	after.trips = 47;
	os_add(&sum, &before, &after);
	os_cost_of(&sum, &cost);
	assert_true(cost.rate[OS_PROCESS][OS_CPU] > 10 && cost.rate[OS_PROCESS][OS_CPU] < 101);
	assert_true(cost.per_trip[OS_PROCESS][OS_SWITCHES] >= 1);
	assert_true(cost.rate[OS_MACHINE][OS_CPU] > 0 && cost.rate[OS_MACHINE][OS_CPU] <= 100);
	assert_true(cost.rate[OS_MACHINE][OS_SWITCHES] >= cost.rate[OS_PROCESS][OS_SWITCHES]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_and_shares),
		cmocka_unit_test(what_is_not_known_is_no_number),
		cmocka_unit_test(own_work_is_seen),
	};

	return cmocka_run_group_tests_name("os cost", tests, NULL, NULL);
}
