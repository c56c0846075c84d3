// SPDX-License-Identifier: GPL-2.0-only
#include "model/placement.h"

const struct placement_info placement_infos[PLACEMENTS] = {
	[PLACEMENT_WAKE] =
		{"cross_cpu_wakeup", "the reader is woken from another CPU than it runs on",
		 "bind the reader to the CPU that takes its packets in (taskset), or the "
		 "interrupt to the reader's: 'layover irq plan DEV near-reader'"},
	[PLACEMENT_HOP] =
		{"rps_hop", "packets are handed on to another CPU before the stack",
		 "turn RPS off for this device, or choose the reader's CPU: 'layover irq show'"},
};

/* Each kind: between which CPUs of a leg, and which stages pay; the leg's receiver is server or client. */
static const struct {
	enum leg_cpu from, to;
	int stages[2][2]; /* by side of the receiver: the server's, the client's */
} crossings[PLACEMENTS] = {
	[PLACEMENT_WAKE] = {CPU_WAKER,
			    CPU_READER,
			    {{STAGE_server_notify, STAGE_server_wakeup},
			     {STAGE_client_notify, STAGE_client_wakeup}}},
	[PLACEMENT_HOP] = {CPU_IRQ,
			   CPU_SOFTIRQ,
			   {{STAGE_server_softirq, STAGE_server_driver},
			    {STAGE_client_softirq, STAGE_client_driver}}},
};

static bool crosses(const struct live_turn *turn, enum placement_kind kind, bool client_end)
{
	/* A leg is named by its sender. */
	const uint16_t *cpu = turn->trip.cpu[client_end ? SIDE_server : SIDE_client];
	uint16_t from = cpu[crossings[kind].from], to = cpu[crossings[kind].to];
	/* A reader that was not asleep was not woken from anywhere. */
	bool woken = turn->trip.seen >> crossings[kind].stages[client_end][1] & 1;

	return from != CPU_UNKNOWN && to != CPU_UNKNOWN && from != to && woken;
}

static bool look_at(const struct live_flow *flow, struct placement *p)
{
	const int *stages = crossings[p->kind].stages[p->client_end];
	uint64_t spent = 0, all = 0;

	for (size_t i = 0; i < flow->turn_count; i++) {
		const struct live_turn *turn = &flow->turns[i];
		const uint16_t *cpu = turn->trip.cpu[p->client_end ? SIDE_server : SIDE_client];

		all += turn->took_ns;
		if (!crosses(turn, p->kind, p->client_end))
			continue;
		spent += turn->trip.stage_ns[stages[0]] + turn->trip.stage_ns[stages[1]];
		p->turns++;
		p->from = cpu[crossings[p->kind].from];
		p->to = cpu[crossings[p->kind].to];
	}
	p->time = all ? (double)spent / (double)all : 0;
	return p->turns && 100 * p->turns >= PLACEMENT_TURNS_PERCENT * flow->turn_count &&
	       100 * spent >= PLACEMENT_TIME_PERCENT * all;
}

int placement_of(const struct live_flow *flow, struct placement out[PLACEMENTS_MAX])
{
	int n = 0;

	for (int i = 0; i < PLACEMENTS_MAX; i++) {
		struct placement p = {.kind = (enum placement_kind)(i / 2), .client_end = i % 2};

		if (look_at(flow, &p))
			out[n++] = p;
	}
	return n;
}
