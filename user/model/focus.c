// SPDX-License-Identifier: GPL-2.0-only
#include "model/focus.h"

#include <string.h>

enum {
	BINS_PER_LEVEL = (1 << TOP_BITS) / 2,
	TURNS_KEPT = 8192, /* for the diagnosis: then it starts anew */
};

int focus_begin(struct focus *f, const struct top_row *row, uint32_t hooks)
{
	int rc;

	focus_end(f);
	f->active = true;
	f->index = row->index;
	f->who = row->who;
	f->row = *row;
	if (row->both_ends)
		f->peer = row->peer;
	f->live.hooks = hooks;
	f->live.flows_max = 2;
	rc = live_add_flow(&f->live, &f->who);
	if (!rc && f->peer.socket)
		rc = live_add_flow(&f->live, &f->peer);
	return rc;
}

void focus_end(struct focus *f)
{
	if (f->active)
		live_free(&f->live);
	memset(f, 0, sizeof(*f));
}

bool focus_has(const struct focus *f, uint64_t socket)
{
	return f->active && socket && (socket == f->who.socket || socket == f->peer.socket);
}

int focus_add_turn(struct focus *f, const struct turn_record *record)
{
	f->records++;
	return live_add_turn(&f->live, record);
}

int focus_add_stall(struct focus *f, const struct stall_record *record)
{
	return live_add_stall(&f->live, record);
}

int focus_add_hog(struct focus *f, const struct hog_record *record)
{
	return live_add_hog(&f->live, record);
}

int64_t focus_level_ns(int level)
{
	return top_bin_ns((uint32_t)(level * BINS_PER_LEVEL + BINS_PER_LEVEL / 2));
}

static void take_bins(struct focus *f, const uint32_t *bins)
{
	uint32_t *column = f->heat[FOCUS_COLUMNS - 1];

	memmove(f->heat[0], f->heat[1], (FOCUS_COLUMNS - 1) * sizeof(f->heat[0]));
	memset(column, 0, sizeof(f->heat[0]));
	for (int i = 0; bins && f->started && i < TOP_BINS; i++) {
		uint32_t n = bins[i] - f->last[i];

		if ((int32_t)n <= 0)
			continue;
		f->total[i] += n;
		column[i / BINS_PER_LEVEL] += n;
	}
	if (bins)
		memcpy(f->last, bins, sizeof(f->last));
	f->columns += f->started && f->columns < FOCUS_COLUMNS;
	f->started |= bins != NULL;
}

static void take_history(struct focus *f)
{
	double stage_ns[STAGES];

	top_row_stages(&f->row, stage_ns);
	for (int s = 0; s < STAGES; s++) {
		memmove(f->history[s], f->history[s] + 1, (FOCUS_COLUMNS - 1) * sizeof(float));
		f->history[s][FOCUS_COLUMNS - 1] = (float)stage_ns[s];
	}
}

static void keep_slowest(struct focus *f, const struct live_turn *turn)
{
	int at = f->slowest_count;

	if (at == FOCUS_TRIPS && turn->took_ns <= f->slowest[at - 1].took_ns)
		return;
	if (at == FOCUS_TRIPS)
		at--;
	else
		f->slowest_count++;
	for (; at > 0 && f->slowest[at - 1].took_ns < turn->took_ns; at--)
		f->slowest[at] = f->slowest[at - 1];
	f->slowest[at] = *turn;
}

/* The flow as live.h has it: the client's, or a lone server's. */
static struct live_flow *main_flow(struct focus *f)
{
	for (size_t i = 0; i < f->live.count; i++)
		if (f->live.flows[i]->socket == f->who.socket)
			return f->live.flows[i];
	return NULL;
}

static int take_turns(struct focus *f)
{
	struct live_flow *flow;
	int rc = live_join(&f->live, false);

	flow = main_flow(f);
	if (rc || !flow)
		return rc;
	for (; f->seen < flow->turn_count; f->seen++)
		keep_slowest(f, &flow->turns[f->seen]);
	rc = diagnose_flow(flow, &f->diagnosis);
	if (flow->turn_count > TURNS_KEPT || f->live.hog_count > TURNS_KEPT) {
		live_clear(&f->live);
		f->seen = 0;
	}
	return rc;
}

int focus_interval(struct focus *f, const struct top_row *row, const uint32_t *bins)
{
	if (!f->active)
		return 0;
	f->gone = !row;
	if (row)
		f->row = *row;
	take_bins(f, bins);
	take_history(f);
	return take_turns(f);
}
