// SPDX-License-Identifier: GPL-2.0-only
/* The model: hook times become stages that sum to the trip, whatever is missing or contradicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* --- a server with a clock of its own ---------------------------------------------------------- */

#define HOURS(n) (3600ULL * 1000000000ULL * (n))

static void move(struct turn_record *record, uint64_t by)
{
	for (int h = 0; h < HOOKS; h++)
		record->t[h] += record->t[h] ? by : 0;
}

/* The whole trip, at 10 h of the client's clock, with the server's clock `ahead` of it. */
static uint64_t far_trip(struct turn_record *client, struct turn_record *server, uint64_t ahead)
{
	uint64_t rtt = whole_trip(client, server);

	move(client, HOURS(10));
	move(server, HOURS(10) + ahead);
	return rtt;
}

static void split_far(const struct turn_record *client, const struct turn_record *server,
		      uint64_t rtt, struct trip *trip)
{
	path_split_far(client, server, START + HOURS(10), rtt, ALL_HOOKS, ALL_HOOKS, trip);
	assert_int_equal(sum_of(trip), rtt);
}

/* Whatever the other clock shows, all stages are the same; the two wires are one. */
static void test_two_clocks(void **state)
{
	const uint64_t ahead[] = {0, HOURS(5), -HOURS(5), HOURS(100000), 1, -1ULL};
	struct turn_record client, server;
	struct trip near, far;

	(void)state;
	for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		uint64_t rtt = far_trip(&client, &server, ahead[i]);

		split_far(&client, &server, rtt, &far);
		assert_int_equal(far.flags, TRIP_MATCHED);
		rtt = whole_trip(&client, &server);
		path_split(&client, &server, START, rtt, ALL_HOOKS, &near);
		assert_int_equal(far.stage_ns[STAGE_client_network],
				 near.stage_ns[STAGE_client_wire] +
					 near.stage_ns[STAGE_server_wire]);
		for (int s = 0; s < STAGES; s++)
			if (s != STAGE_client_network && s != STAGE_client_wire &&
			    s != STAGE_server_wire)
				assert_int_equal(far.stage_ns[s], near.stage_ns[s]);
		assert_false(far.seen & (1ULL << STAGE_client_wire | 1ULL << STAGE_server_wire));
		assert_memory_equal(far.cpu, near.cpu, sizeof(far.cpu));
	}
}

/* Longer at the server than away from the client: one of the records is wrong, the sum is not. */
static void test_negative_network(void **state)
{
	struct turn_record client, server;
	struct trip trip;
	uint64_t rtt;

	(void)state;
	rtt = far_trip(&client, &server, HOURS(1));
	server.t[HOOK_dev_xmit] += 2 * STEP; /* exactly as long */
	split_far(&client, &server, rtt, &trip);
	assert_int_equal(trip.flags, TRIP_MATCHED);
	assert_int_equal(trip.stage_ns[STAGE_client_network], 0);
	server.t[HOOK_dev_xmit] += 4 * STEP + 1; /* longer, even without the doubtful hooks */
	split_far(&client, &server, rtt, &trip);
	assert_int_equal(trip.flags, TRIP_PARTIAL | TRIP_ALONE | TRIP_DISORDER);
	assert_int_equal(trip.stage_ns[STAGE_server_host],
			 client.t[HOOK_irq] - client.t[HOOK_dev_xmit]);
	server.t[HOOK_dev_xmit] = 1; /* before it came */
	server.t[HOOK_dev_queue] = server.t[HOOK_send_tcp] = server.t[HOOK_send_enter] = 1;
	split_far(&client, &server, rtt, &trip);
	assert_true(trip.flags & TRIP_PARTIAL);
}

/* A softirq that had started long before its packet came: its stages merge, the network does not shrink. */
static void test_stale_softirq_far_away(void **state)
{
	struct turn_record client, server;
	struct trip trip;
	uint64_t rtt;

	(void)state;
	rtt = far_trip(&client, &server, HOURS(1));
	server.t[HOOK_irq] = 0;
	server.t[HOOK_softirq] -= 1000000;
	split_far(&client, &server, rtt, &trip);
	assert_int_equal(trip.flags, TRIP_MATCHED | TRIP_DISORDER);
	assert_int_equal(trip.stage_ns[STAGE_server_driver], 0);
	assert_int_equal(trip.stage_ns[STAGE_client_network], 4 * STEP);
}

static void test_spurious_retransmission_far_away(void **state)
{
	struct turn_record client, server;
	struct trip trip;
	uint64_t rtt;

	(void)state;
	rtt = far_trip(&client, &server, -HOURS(1));
	client.t[HOOK_re_queue] = client.t[HOOK_irq] - 10;
	client.t[HOOK_re_xmit] = client.t[HOOK_irq] - 5;
	split_far(&client, &server, rtt, &trip);
	assert_int_equal(trip.stage_ns[STAGE_client_retrans], 0);
	assert_int_equal(trip.stage_ns[STAGE_client_network], 2 * STEP);
	assert_int_equal(trip.flags, TRIP_MATCHED);
}

static void test_any_hooks_missing_far_away(void **state)
{
	struct turn_record client, server;
	struct trip trip;

	(void)state;
	for (uint32_t missing = 0; missing < 1u << HOOKS; missing++) {
		uint64_t rtt = far_trip(&client, &server, HOURS(3));

		for (int h = 0; h < HOOKS; h++) {
			if (missing & 1u << h)
				server.t[h] = 0;
			if (missing & 1u << (HOOKS - 1 - h)) /* another kernel lacks others */
				client.t[h] = 0;
		}
		split_far(&client, &server, rtt, &trip);
		assert_int_equal(trip.stage_ns[STAGE_client_unattributed], 0);
	}
}

static void test_nonsense_from_afar_still_sums(void **state)
{
	struct turn_record client, server;
	struct trip trip;

	(void)state;
	srand(2);
	for (int round = 0; round < 100003; round++) {
		uint64_t rtt = (uint64_t)rand() % 100000;

		for (int h = 0; h < HOOKS; h++) {
			client.t[h] =
				rand() % 3 ? START + HOURS(10) - 20000 + (uint64_t)rand() % 140000
					   : 0;
			server.t[h] = rand() % 3 ? (uint64_t)rand() << (rand() % 34) : 0;
		}
		split_far(&client, &server, rtt, &trip);
		for (int s = 0; s < STAGES; s++)
			assert_true(trip.stage_ns[s] <= rtt);
	}
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

enum { FAR_TRIPS = 5003, PERIOD = 10000, BLOCK = 500 };

/*
 * Trips with ids of one byte against a server `ahead` of us, of which trip i's record is lost where
 * lost(i); in blocks, with an exchange after each that tells the clocks' difference to `width`. Every trip
 * must end with its own record or with none: how long the server took tells which it was.
 */
static void join_far(uint64_t ahead, int64_t width, bool (*lost)(size_t), struct split *split)
{
	static uint64_t start[FAR_TRIPS], rtt[FAR_TRIPS];
	struct join join = {.hooks = ALL_HOOKS,
			    .far = {.used = true, .hooks = ALL_HOOKS, .ids_repeat = true}};

	join.far.ahead_min = (int64_t)ahead - width / 3;
	join.far.ahead_max = (int64_t)ahead + width;
	for (size_t i = 0; i < FAR_TRIPS; i++) {
		struct turn_record client, server;

		rtt[i] = far_trip(&client, &server, ahead) + i;
		start[i] = START + HOURS(10) + i * PERIOD;
		move(&client, i * PERIOD);
		move(&server, i * PERIOD);
		for (int h = 0; h < HOOKS; h++) { /* i ns more at the server */
			server.t[h] += h < HOOK_irq && server.t[h] ? i : 0;
			client.t[h] += client.t[h] && h >= HOOK_irq ? i : 0;
		}
		client.send_id = server.recv_id = client.recv_id = server.send_id = i % 256;
		assert_int_equal(join_add(&join, &client), 0);
		if (!lost(i))
			assert_int_equal(join_add(&join, &server), 0);
		if (i % BLOCK == BLOCK - 1)
			assert_int_equal(join_run(&join, start, rtt, i + 1, false), 0);
	}
	assert_int_equal(join_run(&join, start, rtt, FAR_TRIPS, true), 0);
	assert_int_equal(split_of(&join.trips, rtt, split), 0);
	for (size_t i = 0; i < FAR_TRIPS; i++) {
		if (lost(i))
			assert_true(join.trips.flags[i] & TRIP_ALONE);
		else
			assert_int_equal(trips_stage(&join.trips, i, STAGE_server_app), STEP + i);
	}
	join_free(&join);
}

static bool none(size_t i)
{
	(void)i;
	return false;
}

static bool the_first(size_t i)
{
	return i == 0;
}

static bool every_hundredth(size_t i)
{
	return i % 100 == 99;
}

static bool half_a_block(size_t i)
{
	return i >= 1000 && i < 1250;
}

static void test_short_ids_of_another_clock(void **state)
{
	bool (*const losses[])(size_t) = {none, the_first, every_hundredth, half_a_block};
	const uint64_t ahead[] = {HOURS(5), -HOURS(5)};
	struct split *split = malloc(sizeof(*split));

	(void)state;
	for (size_t a = 0; a < 2; a++)
		for (size_t l = 0; l < sizeof(losses) / sizeof(losses[0]); l++) {
			size_t lost = 0;

			for (size_t i = 0; i < FAR_TRIPS; i++)
				lost += losses[l](i);
			join_far(ahead[a], 300000, losses[l], split);
			assert_int_equal(split->matched, FAR_TRIPS - lost);
			assert_int_equal(split->partial, lost);
			assert_int_equal(split->unmatched, 0);
		}
	free(split);
}

/* Ids that stay unique need no clock at all: it may even jump between two trips. */
static void test_unique_ids_of_a_clock_that_jumps(void **state)
{
	enum { TRIPS = 301 };
	static uint64_t start[TRIPS], rtt[TRIPS];
	struct join join = {.hooks = ALL_HOOKS, .far = {.used = true, .hooks = ALL_HOOKS}};
	struct split *split = malloc(sizeof(*split));

	(void)state;
	for (size_t i = 0; i < TRIPS; i++) {
		struct turn_record client, server;

		rtt[i] = far_trip(&client, &server, i * HOURS(i % 2 ? 3 : 1));
		start[i] = START + HOURS(10) + i * PERIOD;
		move(&client, i * PERIOD);
		client.send_id = server.recv_id = 1000 + i;
		client.recv_id = server.send_id = 5000 + i;
		join_add(&join, &client);
		join_add(&join, &server);
	}
	assert_int_equal(join_run(&join, start, rtt, TRIPS, true), 0);
	assert_int_equal(split_of(&join.trips, rtt, split), 0);
	assert_int_equal(split->matched, TRIPS);
	join_free(&join);
	free(split);
}

/* A server whose records answer nothing must not fill the memory. */
static void test_strange_records_do_not_pile_up(void **state)
{
	struct join join = {.hooks = ALL_HOOKS, .far = {.used = true, .hooks = ALL_HOOKS}};
	struct turn_record server = {.role = ROLE_SERVER};

	(void)state;
	for (int block = 0; block < 40; block++) {
		for (int i = 0; i < 4096; i++)
			assert_int_equal(join_add(&join, &server), 0);
		assert_int_equal(join_run(&join, NULL, NULL, 0, false), 0);
	}
	assert_in_range(join.servers.count, 4096, 20000);
	assert_in_range(join.servers.capacity, 4096, 100000);
	join_free(&join);
}

static void test_overhead(void **state)
{
	struct overhead_pair pairs[101];
	struct overhead overhead;

	(void)state;
	for (int i = 0; i < 101; i++) {
		pairs[i] = (struct overhead_pair){{1000, 2000}, {1000 + i, 2000 + 2 * i}};
		if (i > 90)
			pairs[i].on[0] =
				1e9; /* outliers move neither the median nor the interval */
	}
	overhead_of(pairs, 101, &overhead);
	assert_true(overhead.p50.difference_ns == 50 && overhead.p99.difference_ns == 100);
	/* ranks 101/2 -+ 1.96 * sqrt(101)/2: 40.65, rounded outwards */
	assert_true(overhead.p50.low_ns == 40 && overhead.p50.high_ns == 60);
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
		cmocka_unit_test(test_two_clocks),
		cmocka_unit_test(test_negative_network),
		cmocka_unit_test(test_stale_softirq_far_away),
		cmocka_unit_test(test_spurious_retransmission_far_away),
		cmocka_unit_test(test_any_hooks_missing_far_away),
		cmocka_unit_test(test_nonsense_from_afar_still_sums),
		cmocka_unit_test(test_short_ids_of_another_clock),
		cmocka_unit_test(test_unique_ids_of_a_clock_that_jumps),
		cmocka_unit_test(test_strange_records_do_not_pile_up),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_stage_keys_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
