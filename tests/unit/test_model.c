// SPDX-License-Identifier: GPL-2.0-only
/* The model: hook times become stages that sum to the trip, whatever is missing or contradicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/join.h"
#include "model/overhead.h"
#include "model/path.h"
#include "model/split.h"

#define ALL_HOOKS ((1u << HOOKS) - 1)

enum { START = 1000000, STEP = 100 };

/* A complete trip: every hook 100 ns after the one before, no retransmission, nothing held. */
static uint64_t whole_trip(struct turn_record *client, struct turn_record *server)
{
	static const struct {
		bool of_client;
		int from, to;
	} parts[] = {{true, HOOK_send_enter, HOOK_dev_xmit},
		     {false, HOOK_irq, HOOK_recv_exit},
		     {false, HOOK_send_enter, HOOK_dev_xmit},
		     {true, HOOK_irq, HOOK_recv_exit}};
	uint64_t now = START;

	*client = (struct turn_record){.role = ROLE_CLIENT, .send_id = 7, .recv_id = 9};
	*server = (struct turn_record){.role = ROLE_SERVER, .send_id = 9, .recv_id = 7};
	for (int p = 0; p < 4; p++) {
		struct turn_record *record = parts[p].of_client ? client : server;

		for (int h = parts[p].from; h <= parts[p].to; h++) {
			if (h == HOOK_send_exit)
				continue;
			record->t[h] = now += STEP;
		}
	}
	return now + STEP - START;
}

static uint64_t sum_of(const struct trip *trip)
{
	uint64_t sum = 0;

	for (int s = 0; s < STAGES; s++)
		sum += trip->stage_ns[s];
	return sum;
}

static void test_whole_trip(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(sum_of(&trip), rtt);
	assert_int_equal(trip.flags, TRIP_MATCHED);
	assert_int_equal(trip.stage_ns[STAGE_client_user], 2 * STEP);
	assert_int_equal(trip.stage_ns[STAGE_client_syscall], STEP);
	assert_int_equal(trip.stage_ns[STAGE_client_wire], STEP);
	assert_int_equal(trip.stage_ns[STAGE_server_wakeup], STEP);
	assert_int_equal(trip.stage_ns[STAGE_server_app], STEP);
	assert_int_equal(trip.stage_ns[STAGE_server_wire], STEP);
	assert_int_equal(trip.stage_ns[STAGE_client_receive], STEP);
	assert_int_equal(trip.stage_ns[STAGE_client_held], 0);
}

/* Every subset of missing hooks still sums, and time goes only to the stage that ends next. */
static void test_any_hooks_missing(void **state)
{
	struct turn_record client, server;
	struct trip trip;

	(void)state;
	for (uint32_t missing = 0; missing < 1u << HOOKS; missing++) {
		uint64_t rtt = whole_trip(&client, &server);

		for (int h = 0; h < HOOKS; h++)
			if (missing & 1u << h)
				client.t[h] = server.t[h] = 0;
		path_split(&client, &server, START, rtt, ALL_HOOKS & ~missing, &trip);
		assert_int_equal(sum_of(&trip), rtt);
		assert_int_equal(trip.stage_ns[STAGE_client_unattributed], 0);
		assert_true(trip.flags & TRIP_MATCHED);
	}
}

static void test_missing_hook_merges_forward(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	server.t[HOOK_data_ready] = 0;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_server_socket], 0);
	assert_int_equal(trip.stage_ns[STAGE_server_notify], 2 * STEP);
	server.t[HOOK_irq] = server.t[HOOK_softirq] = 0;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_wire], 3 * STEP);
	assert_int_equal(trip.stage_ns[STAGE_server_driver], 0);
}

static void test_lost_anchor_is_partial(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	server.t[HOOK_stack_in] = 0;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.flags, TRIP_PARTIAL);
	assert_int_equal(sum_of(&trip), rtt);
}

/* Random times, contradictory as can be: still no time lost or invented. */
static void test_nonsense_still_sums(void **state)
{
	struct turn_record client, server;
	struct trip trip;

	(void)state;
	srand(1);
	for (int round = 0; round < 100003; round++) {
		uint64_t rtt = (uint64_t)rand() % 100000;

		for (int h = 0; h < HOOKS; h++) {
			client.t[h] = rand() % 3 ? START - 20000 + (uint64_t)rand() % 140000 : 0;
			server.t[h] = rand() % 3 ? START - 20000 + (uint64_t)rand() % 140000 : 0;
		}
		path_split(&client, round % 5 ? &server : NULL, START, rtt, ALL_HOOKS, &trip);
		assert_int_equal(sum_of(&trip), rtt);
		for (int s = 0; s < STAGES; s++)
			assert_true(trip.stage_ns[s] <= rtt);
	}
}

static void test_held_bytes(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	client.t[HOOK_send_exit] = client.t[HOOK_dev_queue] - 30;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_send], STEP - 30);
	assert_int_equal(trip.stage_ns[STAGE_client_held], 30);
	/* The usual case: the packet left during the call. */
	client.t[HOOK_send_exit] = client.t[HOOK_dev_queue] + 30;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_held], 0);
	assert_false(trip.flags & TRIP_DISORDER);
}

static void test_retransmission(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	client.flags = RECORD_RETRANSMITTED;
	client.t[HOOK_re_queue] = client.t[HOOK_dev_xmit] + 40;
	client.t[HOOK_re_xmit] = client.t[HOOK_dev_xmit] + 50;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_retrans], 40);
	assert_int_equal(trip.stage_ns[STAGE_client_qdisc], STEP + 10);
	assert_int_equal(trip.stage_ns[STAGE_client_wire], 50);
	assert_true(trip.flags & TRIP_RETRANS);
	/* Spurious: the first copy had arrived before the second one left. */
	client.t[HOOK_re_queue] = server.t[HOOK_copy];
	client.t[HOOK_re_xmit] = server.t[HOOK_copy] + 1;
	path_split(&client, &server, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_retrans], 0);
	assert_int_equal(trip.stage_ns[STAGE_client_wire], STEP);
	assert_int_equal(sum_of(&trip), rtt);
}

static void test_server_not_traced(void **state)
{
	struct turn_record client, server;
	uint64_t rtt = whole_trip(&client, &server);
	struct trip trip;

	(void)state;
	path_split(&client, NULL, START, rtt, ALL_HOOKS, &trip);
	assert_int_equal(trip.stage_ns[STAGE_server_host],
			 client.t[HOOK_irq] - client.t[HOOK_dev_xmit]);
	assert_int_equal(trip.flags, TRIP_MATCHED | TRIP_ALONE);
	assert_int_equal(sum_of(&trip), rtt);
}

/* n trips, records in two queues; every `lose`-th server record is lost. */
static void feed(struct join *join, uint64_t *start, uint64_t *rtt, size_t n, size_t lose)
{
	for (size_t i = 0; i < n; i++) {
		struct turn_record client, server;

		rtt[i] = whole_trip(&client, &server);
		start[i] = START + i * 10000;
		client.send_id = server.recv_id = i % 256; /* as one-byte UDP messages */
		client.recv_id = server.send_id = i % 256;
		for (int h = 0; h < HOOKS; h++) {
			client.t[h] += client.t[h] ? i * 10000 : 0;
			server.t[h] += server.t[h] ? i * 10000 : 0;
		}
		assert_int_equal(join_add(join, &client), 0);
		if (!lose || i % lose != lose - 1)
			assert_int_equal(join_add(join, &server), 0);
	}
}

static void test_join(void **state)
{
	enum { TRIPS = 3001 };
	static uint64_t start[TRIPS], rtt[TRIPS];
	struct join join = {.hooks = ALL_HOOKS};
	struct split *split = malloc(sizeof(*split));

	(void)state;
	feed(&join, start, rtt, TRIPS, 1000);
	assert_int_equal(join_run(&join, start, rtt, TRIPS, true), 0);
	assert_int_equal(split_of(&join.trips, rtt, split), 0);
	assert_int_equal(split->trips, TRIPS);
	assert_int_equal(split->matched, TRIPS - 3);
	assert_int_equal(split->partial, 3);
	assert_int_equal(split->unmatched, 0);
	join_free(&join);
	free(split);
}

static void test_trip_without_record(void **state)
{
	enum { TRIPS = 101 };
	static uint64_t start[TRIPS + 1], rtt[TRIPS + 1];
	struct join join = {.hooks = ALL_HOOKS};
	struct split *split = malloc(sizeof(*split));
	double share = 0;

	(void)state;
	feed(&join, start, rtt, TRIPS, 0);
	start[TRIPS] = START + TRIPS * 10000;
	rtt[TRIPS] = 5000000000; /* more than 32 bits of nanoseconds */
	assert_int_equal(join_run(&join, start, rtt, TRIPS + 1, true), 0);
	assert_int_equal(split_of(&join.trips, rtt, split), 0);
	assert_int_equal(split->unmatched, 1);
	assert_int_equal(trips_stage(&join.trips, TRIPS, STAGE_client_unattributed), 5000000000);
	for (int r = 0; r < split->count; r++)
		share += split->rows[r].share;
	assert_true(share > 0.999999 && share < 1.000001);
	join_free(&join);
	free(split);
}

static void test_overhead(void **state)
{
	struct overhead_pair pairs[] = {{{100, 200}, {110, 230}}, {{104, 210}, {112, 250}},
					{{98, 190}, {110, 210}}};
	struct overhead overhead;

	(void)state;
	overhead_of(pairs, 3, &overhead);
	assert_true(overhead.p50.difference_ns > 9.99 && overhead.p50.difference_ns < 10.01);
	/* t(0.975, 2) * s / sqrt(3) = 4.303 * 2 / 1.732 */
	assert_true(overhead.p50.high_ns - overhead.p50.difference_ns > 4.96);
	assert_true(overhead.p50.high_ns - overhead.p50.difference_ns < 4.98);
	overhead_of(pairs, 1, &overhead);
	assert_int_equal(overhead.pairs, 1);
}

static void test_stage_keys_are_unique(void **state)
{
	(void)state;
	for (int a = 0; a < STAGES; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(stage_infos[a].key, stage_infos[b].key);
	assert_string_equal(stage_infos[STAGE_server_wakeup].key, "server.wakeup");
	assert_int_equal(stage_ended_by(SIDE_client, HOOK_running), STAGE_server_wakeup);
	assert_int_equal(stage_ended_by(SIDE_server, HOOK_irq), STAGE_server_wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_trip),
		cmocka_unit_test(test_any_hooks_missing),
		cmocka_unit_test(test_missing_hook_merges_forward),
		cmocka_unit_test(test_lost_anchor_is_partial),
		cmocka_unit_test(test_nonsense_still_sums),
		cmocka_unit_test(test_held_bytes),
		cmocka_unit_test(test_retransmission),
		cmocka_unit_test(test_server_not_traced),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_trip_without_record),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_stage_keys_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
