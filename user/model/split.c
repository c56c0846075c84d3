// SPDX-License-Identifier: GPL-2.0-only
#include "model/split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/sort.h"

enum { BAND_TRIPS_MIN = 10, CPU_PAIRS = 64 };

/* Which of the leg's CPUs a stage goes from and to. */
static void stage_cpus(int stage, enum side *leg, enum leg_cpu *from, enum leg_cpu *to)
{
	static const struct {
		int hook;
		enum leg_cpu from, to;
	} table[] = {
		{HOOK_softirq, CPU_IRQ, CPU_SOFTIRQ},     {HOOK_stack_in, CPU_SOFTIRQ, CPU_SOFTIRQ},
		{HOOK_sock_in, CPU_SOFTIRQ, CPU_SOFTIRQ}, {HOOK_data_ready, CPU_SOFTIRQ, CPU_WAKER},
		{HOOK_wakeup, CPU_WAKER, CPU_WAKER},      {HOOK_running, CPU_WAKER, CPU_READER},
		{HOOK_copy, CPU_READER, CPU_READER},      {HOOK_recv_exit, CPU_READER, CPU_READER},
	};
	const struct stage_info *info = &stage_infos[stage];
	bool receives = info->hook > HOOK_irq;

	/* a stage of the receiver belongs to the leg that the other side sent */
	*leg = receives ? (info->side == SIDE_client ? SIDE_server : SIDE_client) : info->side;
	*from = *to = CPU_SEND;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].hook == info->hook) {
			*from = table[i].from;
			*to = table[i].to;
		}
}

/* The most frequent CPU pair of a stage over trips order[0 … n). */
static void frequent_cpus(const struct trips *trips, const struct sort_item *order, size_t n,
			  int stage, int *from, int *to)
{
	struct {
		uint16_t from, to;
		size_t count;
	} pairs[CPU_PAIRS];
	size_t pair_count = 0, best = 0;
	enum leg_cpu a, b;
	enum side leg;

	*from = *to = -1;
	stage_cpus(stage, &leg, &a, &b);
	for (size_t i = 0; i < n; i++) {
		const uint16_t *cpu = trips->cpu[order[i].index][leg];
		size_t p = 0;

		if (cpu[a] == CPU_UNKNOWN || cpu[b] == CPU_UNKNOWN)
			continue;
		while (p < pair_count && (pairs[p].from != cpu[a] || pairs[p].to != cpu[b]))
			p++;
		if (p == CPU_PAIRS)
			continue;
		if (p == pair_count) {
			pairs[p].from = cpu[a];
			pairs[p].to = cpu[b];
			pairs[p].count = 0;
			pair_count++;
		}
		pairs[p].count++;
		if (pairs[p].count > pairs[best].count)
			best = p;
	}
	if (pair_count) {
		*from = pairs[best].from;
		*to = pairs[best].to;
	}
}

static double share_of(const struct trips *trips, const struct sort_item *order, size_t n,
		       int stage)
{
	double part = 0, whole = 0;

	for (size_t i = 0; i < n; i++) {
		part += (double)trips_stage(trips, order[i].index, stage);
		whole += (double)order[i].key;
	}
	return whole > 0 ? part / whole : 0;
}

/* The trips between the percentiles p - 0.5 and p + 0.5. */
static void band_of(size_t count, double p, size_t *first, size_t *n)
{
	size_t last = (size_t)((p + 0.5) / 100 * (double)count);

	*first = (size_t)((p - 0.5) / 100 * (double)count);
	*n = last > *first ? last - *first : 0;
}

/* Keeps the largest in order; tops start with stage -1 and share 0. */
static void offer_top(struct band_top *tops, int stage, double share)
{
	struct band_top offered = {stage, share, -1, -1};

	for (int i = 0; i < BAND_TOPS; i++) {
		struct band_top held = tops[i];

		if (offered.stage < 0 || (held.stage >= 0 && held.share >= offered.share))
			continue;
		tops[i] = offered;
		offered = held;
	}
}

static void fill_band(const struct trips *trips, const struct sort_item *order, enum band band,
		      struct split *out)
{
	static const double percentile[BANDS] = {[BAND_P50] = 50, [BAND_P99] = 99};
	struct band_top *tops = out->top[band];
	size_t first, n;

	band_of(trips->count, percentile[band], &first, &n);
	out->band_known[band] = n >= BAND_TRIPS_MIN;
	for (int i = 0; i < BAND_TOPS; i++)
		tops[i].stage = -1;
	for (int r = 0; r < out->count; r++) {
		struct stage_row *row = &out->rows[r];

		row->band_share[band] = share_of(trips, order + first, n, row->stage);
		offer_top(tops, row->stage, row->band_share[band]);
	}
	for (int i = 0; i < BAND_TOPS; i++)
		if (tops[i].stage >= 0)
			frequent_cpus(trips, order + first, n, tops[i].stage, &tops[i].cpu_from,
				      &tops[i].cpu_to);
}

static void fill_row(const struct trips *trips, const struct sort_item *order, int stage,
		     int64_t *values, int64_t *scratch, struct stage_row *row)
{
	row->stage = stage;
	row->passed = trips->passed[stage];
	for (size_t i = 0; i < trips->count; i++)
		values[i] = (int64_t)trips_stage(trips, i, stage);
	dist_of(values, scratch, trips->count, &row->dist);
	row->share = share_of(trips, order, trips->count, stage);
	frequent_cpus(trips, order, trips->count, stage, &row->cpu_from, &row->cpu_to);
}

static void count_trips(const struct trips *trips, struct split *out)
{
	size_t alone = 0;

	out->trips = trips->count;
	for (size_t i = 0; i < trips->count; i++) {
		uint8_t flags = trips->flags[i];

		out->unmatched += (flags & TRIP_UNMATCHED) != 0;
		alone += (flags & TRIP_ALONE) != 0;
	}
	out->alone = alone && alone + out->unmatched == trips->count;
	for (size_t i = 0; i < trips->count; i++) {
		uint8_t flags = trips->flags[i];
		/* Where the other end is traced, a trip without its record is not whole. */
		bool lacking = (flags & TRIP_ALONE) && !out->alone;

		if (flags & TRIP_UNMATCHED)
			continue;
		if ((flags & TRIP_MATCHED) && !lacking)
			out->matched++;
		else
			out->partial++;
	}
}

/* All trips by their round trip; equal ones keep their order. */
static void order_trips(const uint64_t *rtt_ns, size_t n, struct sort_item *order,
			struct sort_item *scratch)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_item){(int64_t)rtt_ns[i], i};
	sort_items(order, scratch, n);
}

int split_of(const struct trips *trips, const uint64_t *rtt_ns, struct split *out)
{
	size_t n = trips->count;
	struct sort_item *order = calloc(n + 1, sizeof(*order));
	/* Of the same size as the values and their scratch together, which are needed afterwards. */
	struct sort_item *scratch = calloc(n + 1, sizeof(*scratch));
	int64_t *values = (int64_t *)scratch;

	memset(out, 0, sizeof(*out));
	if (!order || !scratch) {
		free(order);
		free(scratch);
		return err_set(-ENOMEM, "out of memory for the split");
	}
	order_trips(rtt_ns, n, order, scratch);
	count_trips(trips, out);
	for (int s = 0; s < STAGES; s++)
		if (trips->stage[s])
			fill_row(trips, order, s, values, values + n, &out->rows[out->count++]);
	for (int band = 0; band < BANDS; band++)
		fill_band(trips, order, band, out);
	free(scratch);
	free(order);
	return 0;
}
