// SPDX-License-Identifier: GPL-2.0-only
/* The model of `top`: snapshots subtracted, ends joined, rows; its columns; events and the focus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/events.h"
#include "model/focus.h"
#include "model/top.h"
#include "view/names.h"
#include "view/top_columns.h"

enum { PLACES = 12000 };

#define S 1000000000ULL

static struct top top;

static int set_up(void **state)
{
	(void)state;
	return top_open(&top, PLACES, S);
}

static int tear_down(void **state)
{
	(void)state;
	top_free(&top);
	return 0;
}

/* What the kernel keeps of one socket. */
struct fake {
	struct top_head head;
	struct top_hist hist;
};

static void begin(struct fake *f, uint64_t socket, bool server, uint16_t port)
{
	struct flow_record who = {.socket = socket,
				  .family = 2,
				  .role = server ? ROLE_SERVER : ROLE_CLIENT,
				  .local = {10, 0, 0, server ? 2 : 1},
				  .remote = {10, 0, 0, server ? 1 : 2},
				  .local_port = server ? 80 : port,
				  .remote_port = server ? port : 80,
				  .pid = 7,
				  .comm = "prog"};

	f->head.who = who;
	f->head.state = TOP_OPEN;
}

/* n turns of so many ns, of which the gap took a part. */
static void turns(struct fake *f, uint64_t n, uint64_t ns, uint64_t gap)
{
	f->head.turns += n;
	f->head.complete = f->head.turns;
	f->head.sum_ns += n * ns;
	f->head.part_ns[TOP_GAP] += n * gap;
	f->head.part_ns[TOP_SEND] += n * (ns - gap);
	f->hist.bins[top_bin(ns >> TOP_SHIFT, TOP_BINS)] += (uint32_t)n;
}

static void take(uint32_t index, const struct fake *f)
{
	assert_int_equal(top_take(&top, index, &f->head, &f->hist), 0);
}

static const struct top_row *only_row(uint64_t at)
{
	assert_int_equal(top_finish(&top, at), 0);
	assert_int_equal(top.row_count, 1);
	return &top.rows[0];
}

static void bins_are_within_a_32nd(void **state)
{
	(void)state;
	for (uint64_t ns = 1024; ns < 60 * S; ns += ns / 977 + 1) {
		int64_t middle = top_bin_ns(top_bin(ns >> TOP_SHIFT, TOP_BINS));
		double error = ((double)middle - (double)ns) / (double)ns;

		if (error < -0.0323 || error > 0.0323)
			fail_msg("%llu ns are counted as %lld", (unsigned long long)ns,
				 (long long)middle);
	}
	assert_int_equal(top_bin(UINT64_MAX, TOP_BINS), TOP_BINS - 1);
	assert_int_equal(top_bin(0, TOP_BINS), 0);
}

static void an_interval_is_the_difference_of_two_snapshots(void **state)
{
	struct fake f = {0};
	const struct top_row *row;

	(void)state;
	begin(&f, 5, false, 4000);
	turns(&f, 991, 50000, 20000);
	take(3, &f);
	row = only_row(2 * S);
	assert_int_equal(row->turns, 991);
	assert_int_equal(row->total, 991);
	turns(&f, 101, 400000, 20000);
	take(3, &f);
	row = only_row(4 * S);
	assert_int_equal(row->turns, 101);
	assert_int_equal(row->total, 1092);
	assert_true(row->rate > 50.49 && row->rate < 50.51);
	assert_true(row->mean_ns == 400000);
	assert_true(row->figures.p50 > 400000 * 0.967 && row->figures.p50 < 400000 * 1.033);
	take(3, &f);
	row = only_row(5 * S);
	assert_int_equal(row->turns, 0);
	assert_true(row->figures.p50 == TOP_NONE);
	assert_int_equal(top.turns[0], 1092);
}

static void counts_never_go_backwards(void **state)
{
	struct fake f = {0};

	(void)state;
	begin(&f, 5, false, 4000);
	turns(&f, 10, 50000, 0);
	f.head.complete = 11; /* one more that may go on */
	f.head.open_ns = 70000;
	take(0, &f);
	assert_int_equal(only_row(2 * S)->turns, 11);
	f.head.complete = 10; /* read while it was written */
	take(0, &f);
	assert_int_equal(only_row(3 * S)->turns, 0);
	turns(&f, 1, 90000, 0);
	take(0, &f);
	assert_int_equal(only_row(4 * S)->turns, 0);
	assert_int_equal(top.turns[0], 11);
}

static void a_place_used_again_starts_from_nothing(void **state)
{
	struct fake f = {0};
	const struct top_row *row;

	(void)state;
	begin(&f, 5, false, 4000);
	turns(&f, 1009, 50000, 0);
	take(0, &f);
	only_row(2 * S);
	turns(&f, 13, 50000, 0);
	assert_int_equal(top_leave(&top, 0, &f.head, &f.hist), 0);
	row = only_row(3 * S);
	assert_true(row->closed);
	assert_int_equal(row->turns, 13);
	assert_int_equal(row->total, 1022);
	assert_int_equal(top_finish(&top, 4 * S), 0);
	assert_int_equal(top.row_count, 0);
	/* The counters go on where they were, the histogram is a new one. */
	memset(&f.hist, 0, sizeof(f.hist));
	begin(&f, 6, false, 4001);
	turns(&f, 211, 3000000, 0);
	take(0, &f);
	row = only_row(5 * S);
	assert_int_equal(row->turns, 211);
	assert_int_equal(row->total, 211);
	assert_true(row->figures.p50 > 2900000);
	assert_int_equal(top.turns[0], 1009 + 13 + 211);
	assert_int_equal(top.flows, 2);
	assert_int_equal(top.closed_flows, 1);
}

static void two_ends_on_one_host_are_one_row(void **state)
{
	struct fake client = {0}, server = {0};
	double stage_ns[STAGES], sum;
	const struct top_row *row;

	(void)state;
	begin(&client, 1, false, 4000);
	begin(&server, 2, true, 4000);
	turns(&client, 100, 50000, 40000);
	turns(&server, 100, 30000, 12000);
	take(0, &server);
	take(1, &client);
	row = only_row(2 * S);
	assert_true(row->both_ends);
	assert_int_equal(row->who.socket, 1);
	sum = top_row_stages(row, stage_ns);
	assert_true(sum > 49999 && sum < 50001);
	assert_true(stage_ns[STAGE_client_network] == 10000);
	assert_true(stage_ns[STAGE_server_app] == 12000);
	assert_true(stage_ns[STAGE_server_host] == 0);
	assert_true(row->share[GROUP_APP] > 0.239 && row->share[GROUP_APP] < 0.241);
	/* The client ends first: its server does not become a row of its own for that. */
	assert_int_equal(top_leave(&top, 1, &client.head, &client.hist), 0);
	take(0, &server);
	assert_true(only_row(3 * S)->closed);
	assert_int_equal(top_finish(&top, 4 * S), 0);
	assert_int_equal(top.row_count, 0);
}

static void a_lone_end_keeps_its_gap(void **state)
{
	struct fake client = {0};
	double stage_ns[STAGES];

	(void)state;
	begin(&client, 1, false, 4000);
	turns(&client, 100, 50000, 40000);
	take(0, &client);
	assert_true(top_row_stages(only_row(2 * S), stage_ns) == 50000);
	assert_true(stage_ns[STAGE_server_host] == 40000);
}

static void five_thousand_pairs_are_found(void **state)
{
	enum { PAIRS = 5003 };
	struct fake f = {0};

	(void)state;
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		begin(&f, i + 1, i >= PAIRS, (uint16_t)(1024 + i % PAIRS));
		take(i, &f);
	}
	assert_int_equal(top_finish(&top, 2 * S), 0);
	assert_int_equal(top.row_count, PAIRS);
	for (size_t i = 0; i < top.row_count; i++) {
		assert_true(top.rows[i].both_ends);
		assert_int_equal(top.rows[i].peer.remote_port, top.rows[i].who.local_port);
	}
}

static void all_that_closed_is_counted(void **state)
{
	enum { MANY = TOP_CLOSED_MAX + 977 };
	struct fake f = {0};

	(void)state;
	begin(&f, 1, false, 4000);
	for (uint32_t i = 0; i < MANY; i++) {
		f.head.who.socket = i + 1;
		turns(&f, 3, 50000, 0);
		assert_int_equal(top_leave(&top, 0, &f.head, &f.hist), 0);
	}
	assert_int_equal(top_finish(&top, 2 * S), 0);
	assert_int_equal(top.row_count, TOP_CLOSED_MAX);
	assert_int_equal(top.not_listed, 977);
	assert_int_equal(top.turns[0], 3 * MANY);
	assert_int_equal(top.closed_flows, MANY);
	assert_int_equal(top.open, 0);
	assert_int_equal(top.used, 1);
}

static void a_baseline_is_what_figures_are_since(void **state)
{
	struct fake f = {0};
	const struct top_row *row;

	(void)state;
	begin(&f, 1, false, 4000);
	turns(&f, 1009, 50000, 0);
	take(0, &f);
	only_row(2 * S);
	assert_int_equal(top_set_baseline(&top, true), 0);
	for (uint64_t s = 3; s <= 6; s++) {
		turns(&f, 101, 800000, 0);
		take(0, &f);
		row = only_row(s * S);
	}
	assert_int_equal(row->turns, 404);
	assert_true(row->rate > 100.9 && row->rate < 101.1);
	assert_true(row->figures.p50 > 700000);
	assert_int_equal(top_set_baseline(&top, false), 0);
	turns(&f, 7, 800000, 0);
	take(0, &f);
	assert_int_equal(only_row(7 * S)->turns, 7);
	assert_int_equal(top.turns[0], 1009 + 404 + 7);
}

static struct stall_record stall(uint32_t entry, uint64_t socket, enum stall_kind kind, int reason,
				 uint64_t begin_ns, uint64_t cause_ns, uint64_t end_ns)
{
	return (struct stall_record){.socket = socket,
				     .entry = entry,
				     .kind = (uint8_t)kind,
				     .reason = (uint8_t)reason,
				     .begin = begin_ns,
				     .cause = cause_ns,
				     .end = end_ns};
}

static void a_stall_has_its_cause_in_the_row(void **state)
{
	struct fake client = {0}, server = {0};
	struct stall_record record;
	const struct top_row *row;
	int cause;

	(void)state;
	begin(&client, 1, false, 4000);
	begin(&server, 2, true, 4000);
	/* The first one comes before the socket was taken at all. */
	record = stall(1, 1, STALL_HELD, HOLD_NAGLE, 100, 200, 300);
	assert_true(top_stall(&top, &record, &cause));
	assert_int_equal(cause, CAUSE_nagle);
	turns(&client, 5, 40000000, 0);
	take(0, &client);
	take(1, &server);
	row = only_row(2 * S);
	assert_int_equal(row->stalls, 1);
	assert_int_equal(row->cause, CAUSE_nagle);
	/* A held-back acknowledgement alone is none. */
	record = stall(2, 2, STALL_DELACK, 0, 1000, 1400, 1410);
	assert_false(top_stall(&top, &record, &cause));
	take(0, &client);
	assert_int_equal(only_row(3 * S)->stalls, 0);
	assert_int_equal(top.rows[0].cause, -1);
	/* Bytes that waited for it are. */
	record = stall(1, 1, STALL_HELD, HOLD_NAGLE, 1001, 1415, 1420);
	assert_true(top_stall(&top, &record, &cause));
	assert_int_equal(top.ends[0].now.causes[CAUSE_delayed_ack], 1);
	/* A retransmission of the other end is the row's as well. */
	for (int i = 0; i < 3; i++) {
		record = stall(2, 2, STALL_RESENT, RESEND_RTO, 0, 0, 2000);
		assert_true(top_stall(&top, &record, &cause));
	}
	row = only_row(4 * S);
	assert_int_equal(row->stalls, 4);
	assert_int_equal(row->cause, CAUSE_rto);
	assert_int_equal(top.stalls, 5);
}

static void a_thin_tail_has_no_p99(void **state)
{
	struct top_figures figures;
	uint32_t bins[TOP_BINS] = {0};

	(void)state;
	bins[100] = 99;
	top_figures_of(bins, &figures);
	assert_true(figures.p99 == TOP_NONE);
	bins[200] = 1;
	top_figures_of(bins, &figures);
	assert_true(figures.p50 == top_bin_ns(100) && figures.p99 == top_bin_ns(100));
	assert_true(figures.max == top_bin_ns(200));
}

static void an_outlier_is_far_from_the_usual(void **state)
{
	struct fake f = {0};

	(void)state;
	begin(&f, 1, false, 4000);
	turns(&f, 500, 100000, 0);
	take(0, &f);
	assert_true(top.ends[0].slow_ns > 900000 && top.ends[0].slow_ns < 1100000);
}

static void the_idlest_leaves_first(void **state)
{
	struct fake f = {0};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		begin(&f, i + 1, false, (uint16_t)(4000 + i));
		f.head.last_ns = (uint64_t[]){20, 10, 90}[i] * S;
		take(i, &f);
	}
	assert_int_equal(top_idlest(&top, 100 * S, 5 * S), 1);
	assert_int_equal(top_idlest(&top, 100 * S, 95 * S), TOP_END_NONE);
}

static void stages_of_all_flows_sum_to_their_time(void **state)
{
	static struct top_part_hist parts[TOP_ROLES * TOP_ROWS];
	struct fake client = {0}, server = {0};
	double share = 0;

	(void)state;
	begin(&client, 1, false, 4000);
	begin(&server, 2, true, 4000);
	turns(&client, 100, 50000, 40000);
	turns(&server, 100, 30000, 12000);
	for (int role = 0; role < 2; role++) {
		const struct fake *f = role ? &server : &client;

		for (int p = 0; p < TOP_PARTS; p++) {
			parts[role * TOP_ROWS + p].sum_ns = f->head.part_ns[p];
			parts[role * TOP_ROWS + p].count = f->head.part_ns[p] ? 100 : 0;
			parts[role * TOP_ROWS + p]
				.bins[top_bin(f->head.part_ns[p] / 100, TOP_PART_BINS)] =
				f->head.part_ns[p] ? 100 : 0;
		}
		parts[role * TOP_ROWS + TOP_WHOLE].sum_ns = f->head.sum_ns;
		parts[role * TOP_ROWS + TOP_WHOLE].count = 100;
	}
	take(0, &client);
	take(1, &server);
	top_take_parts(&top, parts);
	only_row(2 * S);
	assert_int_equal(top.stage_turns, 100);
	for (int i = 0; i < top.stage_count; i++)
		share += top.stages[i].share;
	assert_true(share > 0.9999 && share < 1.0001);
	assert_int_equal(top.stage_count, 4); /* client.send, network, server.send, app */
}

static void columns_always_fit(void **state)
{
	int width[64];

	(void)state;
	for (int cells = 40; cells <= 300; cells++) {
		int sum = -1, left_out = 0;

		top_columns_fit(cells, 0, width);
		for (int c = 0; c < top_column_count; c++)
			if (width[c])
				sum += width[c] + 1;
			else if (top_columns[c].priority > left_out)
				left_out = top_columns[c].priority;
		assert_true(sum <= cells);
		/* What is there is more important than what is not. */
		for (int c = 0; c < top_column_count; c++)
			assert_true(!width[c] || top_columns[c].priority > left_out);
	}
}

static void a_name_cannot_reach_the_terminal(void **state)
{
	struct flow_record who = {
		.family = 10, .remote = {0xfe, 0x80, [15] = 1}, .remote_port = 80};
	char text[NAMES_ADDRESS_MAX];

	(void)state;
	memcpy(who.comm, "\033[2J\xff\xc3\x28\x01\x7f\x9b 12345", FLOW_COMM);
	names_comm(&who, text);
	assert_int_equal(strlen(text), FLOW_COMM);
	for (const char *c = text; *c; c++)
		assert_true(*c >= ' ' && *c < 0x7f);
	assert_string_equal(names_address(&who, true, text), "[fe80::1]:80");
}

static void the_newest_events_are_kept(void **state)
{
	static struct events events;
	struct stall_record record = {.end = 1};

	(void)state;
	for (int i = 0; i < EVENTS_KEPT + 3; i++)
		events_add_stall(&events, &record, CAUSE_rto, NULL);
	assert_int_equal(events_newest(&events, 0)->number, EVENTS_KEPT + 3);
	assert_int_equal(events_newest(&events, EVENTS_KEPT - 1)->number, 4);
	assert_null(events_newest(&events, EVENTS_KEPT));
	assert_null(events_by_number(&events, 3));
}

static void the_focus_keeps_the_slowest(void **state)
{
	static struct focus focus;
	struct top_row row = {.who = {.socket = 1, .role = ROLE_CLIENT}};
	uint32_t bins[TOP_BINS] = {0};

	(void)state;
	assert_int_equal(focus_begin(&focus, &row, 0), 0);
	for (uint64_t i = 1; i <= 50; i++) {
		struct turn_record r = {.socket = 1, .role = ROLE_CLIENT};

		r.t[HOOK_send_tcp] = i * S;
		r.t[HOOK_recv_exit] = i * S + (i * 37 % 53) * 1000;
		assert_int_equal(focus_add_turn(&focus, &r), 0);
	}
	assert_int_equal(focus_interval(&focus, &row, bins), 0);
	bins[77] = 13;
	assert_int_equal(focus_interval(&focus, &row, bins), 0);
	assert_int_equal(focus.slowest_count, FOCUS_TRIPS);
	assert_int_equal(focus.slowest[0].took_ns, 52000);
	for (int i = 1; i < FOCUS_TRIPS; i++)
		assert_true(focus.slowest[i].took_ns <= focus.slowest[i - 1].took_ns);
	assert_int_equal(focus.total[77], 13);
	assert_int_equal(focus.heat[FOCUS_COLUMNS - 1][77 / 8], 13);
	focus_end(&focus);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(bins_are_within_a_32nd),
		TEST(an_interval_is_the_difference_of_two_snapshots),
		TEST(counts_never_go_backwards),
		TEST(a_place_used_again_starts_from_nothing),
		TEST(two_ends_on_one_host_are_one_row),
		TEST(a_lone_end_keeps_its_gap),
		TEST(five_thousand_pairs_are_found),
		TEST(all_that_closed_is_counted),
		TEST(a_baseline_is_what_figures_are_since),
		TEST(a_stall_has_its_cause_in_the_row),
		TEST(a_thin_tail_has_no_p99),
		TEST(an_outlier_is_far_from_the_usual),
		TEST(the_idlest_leaves_first),
		TEST(stages_of_all_flows_sum_to_their_time),
		TEST(columns_always_fit),
		TEST(a_name_cannot_reach_the_terminal),
		TEST(the_newest_events_are_kept),
		TEST(the_focus_keeps_the_slowest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
