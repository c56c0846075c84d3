// SPDX-License-Identifier: GPL-2.0-only
/* Which of several is the quickest: winners, losers, and noise that is neither. On which CPUs a flow is received. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/live.h"
#include "model/receiver.h"
#include "model/trial.h"

enum { TRIALS = 20, TRIPS = 499 };

static uint64_t seed;

/* 0 ... 1, the same in every run */
static double chance(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

/* One more round for all that are left: trips of about typical[i] ns with a tail, on a machine that drifts. */
static void add_round(struct trial *all, const double *typical)
{
	double drift = 1 + 0.1 * chance();
	uint64_t rtt[TRIPS];

	for (int i = 0; i < TRIALS; i++) {
		if (all[i].out)
			continue;
		for (int k = 0; k < TRIPS; k++)
			rtt[k] = (uint64_t)(typical[i] * drift *
					    (0.95 + 0.1 * chance() + (k % 50 ? 0 : chance())));
		assert_int_equal(trial_add(&all[i], rtt, TRIPS), 0);
	}
}

static void free_all(struct trial *all)
{
	for (int i = 0; i < TRIALS; i++)
		trial_free(&all[i]);
}

static void test_loser_and_winner(void **state)
{
	struct trial all[TRIALS] = {{0}};
	double typical[TRIALS];
	int changes[TRIALS], left = TRIALS;

	(void)state;
	seed = 1;
	for (int i = 0; i < TRIALS; i++) {
		typical[i] = i < 10 ? 100000 : 130000;
		changes[i] = i ? 1 : 0;
	}
	typical[0] = 150000; /* now */
	typical[13] = 70000;
	typical[17] = 400000;
	add_round(all, typical);
	left = trials_prune(all, TRIALS, TRIAL_P50);
	assert_true(all[17].out); /* hopeless at once, the others not yet */
	assert_int_equal(left, TRIALS - 1);
	for (int round = 1; round < 4; round++) {
		add_round(all, typical);
		left = trials_prune(all, TRIALS, TRIAL_P50);
	}
	assert_int_equal(left, 2); /* now, and the winner */
	assert_int_equal(all[0].round_count, 4);
	assert_int_equal(all[5].round_count, 3);
	assert_int_equal(all[17].round_count, 1);
	assert_int_equal(trials_best(all, TRIALS, TRIAL_P50, changes), 13);
	assert_true(fabs(trial_score(&all[13], TRIAL_P50) / 70000 - 1.05) < 0.06);
	free_all(all);
}

/* All are the same: nobody is given up, and what changes least is best. */
static void test_nothing_matters(void **state)
{
	struct trial all[TRIALS] = {{0}};
	double typical[TRIALS];
	int changes[TRIALS];

	(void)state;
	seed = 2;
	for (int i = 0; i < TRIALS; i++) {
		typical[i] = 100000;
		changes[i] = i ? 1 + i % 3 : 0;
	}
	for (int round = 0; round < 6; round++) {
		add_round(all, typical);
		assert_int_equal(trials_prune(all, TRIALS, TRIAL_P50), TRIALS);
	}
	assert_int_equal(trials_best(all, TRIALS, TRIAL_P50, changes), 0);
	free_all(all);
}

/* The machine slows down and slows down, and the last round was cut short: what is compared is round with round. */
static void test_drift(void **state)
{
	struct trial all[2] = {{0}};
	const int changes[2] = {0, 1};
	uint64_t rtt[TRIPS];

	(void)state;
	for (uint64_t round = 1; round <= 5; round++)
		for (int i = 0; i < 2; i++) {
			if (!i && round > 3)
				continue;
			for (int k = 0; k < TRIPS; k++)
				rtt[k] = (i ? 90 : 100) * round * 1000;
			assert_int_equal(trial_add(&all[i], rtt, TRIPS), 0);
		}
	assert_true(trial_score(&all[0], TRIAL_P50) < trial_score(&all[1], TRIAL_P50));
	assert_true(fabs(trial_ratio(&all[1], &all[0], TRIAL_P50) - 0.9) < 1e-9);
	assert_int_equal(trials_best(all, 2, TRIAL_P50, changes), 1);
	assert_int_equal(trials_prune(all, 2, TRIAL_P50), 2); /* the first one stays, as ever */
	assert_true(isinf(trial_ratio(&all[0], &(struct trial){0}, TRIAL_P50)));
	trial_free(&all[0]);
	trial_free(&all[1]);
}

/* Much the same median, but one has a bad tail: by p99 it is another one that is best. */
static void test_by_tail(void **state)
{
	struct trial all[2] = {{0}};
	const int changes[2] = {0, 1};
	struct dist dist;
	uint64_t rtt[2000];

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2000; k++)
			rtt[k] = (i ? 1200 : 1000) + (uint64_t)(k % 50 || i ? 0 : 9000);
		assert_int_equal(trial_add(&all[i], rtt, 2000), 0);
	}
	assert_int_equal(trials_best(all, 2, TRIAL_P50, changes), 0);
	assert_int_equal(trials_best(all, 2, TRIAL_P99, changes), 1);
	assert_int_equal(trial_dist(&all[0], &dist), 0);
	assert_int_equal(dist.p[DIST_P50], 1000);
	assert_int_equal(dist.p[DIST_P99], 10000);
	trial_free(&all[0]);
	trial_free(&all[1]);
}

/* 1000 trips, 1 to 1000 us: of each, one half is the wake-up of the server, one the wire. */
static void test_stages(void **state)
{
	struct trips trips = {0};
	uint64_t rtt[1000];
	double sum[STAGES] = {0}, all = 0;

	(void)state;
	assert_int_equal(trips_grow(&trips, 1000), 0);
	for (size_t i = 0; i < 1000; i++) {
		size_t us = (i * 7) % 1000 + 1; /* in no order */
		struct trip trip = {.flags = TRIP_MATCHED};

		rtt[i] = us * 1000;
		trip.stage_ns[STAGE_server_wakeup] = trip.stage_ns[STAGE_client_wire] = us * 500;
		trip.seen = 1ULL << STAGE_server_wakeup | 1ULL << STAGE_client_wire;
		assert_int_equal(trips_set(&trips, i, &trip), 0);
	}
	assert_int_equal(trial_stages(&trips, rtt, TRIAL_P50, sum), 0);
	for (int s = 0; s < STAGES; s++)
		all += sum[s];
	assert_true(fabs(all - 500000) < 1);
	assert_true(fabs(sum[STAGE_server_wakeup] - 250000) < 1);
	memset(sum, 0, sizeof(sum));
	assert_int_equal(trial_stages(&trips, rtt, TRIAL_P99, sum), 0);
	assert_true(fabs(sum[STAGE_client_wire] - 495000) < 500);
	trips.count = 19;
	assert_int_equal(trial_stages(&trips, rtt, TRIAL_P50, sum), -ENODATA);
	trips.count = 1000;
	trips_free(&trips);
}

static struct live_turn turn(int side, uint16_t softirq, uint16_t waker, uint16_t reader,
			     bool slept)
{
	struct live_turn t = {.start_ns = 7, .took_ns = 1};

	memset(t.trip.cpu, 0xff, sizeof(t.trip.cpu));
	t.trip.cpu[side][CPU_SOFTIRQ] = softirq;
	t.trip.cpu[side][CPU_WAKER] = waker;
	t.trip.cpu[side][CPU_READER] = reader;
	if (slept)
		t.trip.seen = 1ULL
			      << (side == SIDE_client ? STAGE_server_wakeup : STAGE_client_wakeup);
	return t;
}

/* A client receives on the reply's leg, its server on the request's, both from the same turns. */
static void test_receivers(void **state)
{
	struct live_turn turns[] = {
		turn(SIDE_server, 1, 1, 0, true),           turn(SIDE_server, 1, 1, 0, true),
		turn(SIDE_server, 0, 0, 0, true),           turn(SIDE_server, 1, 1, 0, false),
		turn(SIDE_server, CPU_UNKNOWN, 1, 1, true),
	};
	struct live_flow client = {.role = ROLE_CLIENT, .turns = turns, .turn_count = 5};
	struct live_flow server = {.role = ROLE_SERVER, .peer = &client};
	struct receiver r;

	(void)state;
	assert_int_equal(receiver_of(&client, 7, 8, &r), 0);
	assert_int_equal(r.turns, 5);
	assert_int_equal(r.wakeups, 4);
	assert_int_equal(r.across, 2);
	assert_int_equal(r.wrong, 3);
	assert_int_equal(r.way_count, 3);
	assert_int_equal(r.ways[0].turns, 3);
	assert_int_equal(r.ways[0].softirq, 1);
	receiver_free(&r);
	assert_int_equal(receiver_of(&client, 8, 100, &r), 0);
	assert_int_equal(r.turns, 0);
	receiver_free(&r);
	turns[0] = turn(SIDE_client, 0, 0, 1, true);
	assert_int_equal(receiver_of(&server, 0, UINT64_MAX, &r), 0);
	assert_int_equal(r.turns, 5);
	assert_int_equal(r.across, 1);
	assert_int_equal(r.wrong, 1);
	receiver_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loser_and_winner),
		cmocka_unit_test(test_nothing_matters),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_by_tail),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_receivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
