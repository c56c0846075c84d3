// SPDX-License-Identifier: GPL-2.0-only
#include "model/receiver.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

static int count_way(struct receiver *r, const uint16_t *cpu)
{
	struct receiver_way *more;

	for (int i = 0; i < r->way_count; i++) {
		struct receiver_way *way = &r->ways[i];

		if (way->irq == cpu[CPU_IRQ] && way->softirq == cpu[CPU_SOFTIRQ] &&
		    way->reader == cpu[CPU_READER]) {
			way->turns++;
			return 0;
		}
	}
	more = realloc(r->ways, sizeof(*more) * (size_t)(r->way_count + 1));
	if (!more)
		return err_set(-ENOMEM, "no memory for the CPUs of a flow");
	r->ways = more;
	r->ways[r->way_count++] =
		(struct receiver_way){cpu[CPU_IRQ], cpu[CPU_SOFTIRQ], cpu[CPU_READER], 1};
	return 0;
}

static int by_turns(const void *a, const void *b)
{
	uint64_t x = ((const struct receiver_way *)a)->turns,
		 y = ((const struct receiver_way *)b)->turns;

	return (x < y) - (x > y);
}

static bool differ(uint16_t a, uint16_t b)
{
	return a != CPU_UNKNOWN && b != CPU_UNKNOWN && a != b;
}

int receiver_of(const struct live_flow *flow, uint64_t from_ns, uint64_t until_ns,
		struct receiver *out)
{
	bool server = flow->role == ROLE_SERVER;
	const struct live_flow *from = server && flow->peer ? flow->peer : flow;
	/* Legs are named by their sender. */
	int side = server ? SIDE_client : SIDE_server, rc = 0;
	uint64_t woken = 1ULL << (server ? STAGE_server_wakeup : STAGE_client_wakeup);

	*out = (struct receiver){0};
	for (size_t i = 0; i < from->turn_count && !rc; i++) {
		const struct trip *trip = &from->turns[i].trip;
		const uint16_t *cpu = trip->cpu[side];
		bool slept = trip->seen & woken;

		if (from->turns[i].start_ns < from_ns || from->turns[i].start_ns >= until_ns)
			continue;
		out->turns++;
		out->wakeups += slept;
		out->across += slept && differ(cpu[CPU_WAKER], cpu[CPU_READER]);
		out->wrong += differ(cpu[CPU_SOFTIRQ], cpu[CPU_READER]);
		rc = count_way(out, cpu);
	}
	if (out->way_count)
		qsort(out->ways, (size_t)out->way_count, sizeof(*out->ways), by_turns);
	return rc;
}

void receiver_free(struct receiver *receiver)
{
	free(receiver->ways);
	*receiver = (struct receiver){0};
}
