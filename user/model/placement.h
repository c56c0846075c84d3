/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a flow's packets and readers meet: nothing waits for long there, but every turn pays for it. Pure C. */
#ifndef LAYOVER_PLACEMENT_H
#define LAYOVER_PLACEMENT_H

#include "model/live.h"

enum placement_kind {
	PLACEMENT_WAKE, /* the reader runs on another CPU than the softirq that wakes it */
	PLACEMENT_HOP,  /* packets are announced on one CPU and taken in on another (RPS) */
	PLACEMENTS,
};

struct placement_info {
	const char *key, *text, *advice;
};

extern const struct placement_info placement_infos[PLACEMENTS];

struct placement {
	enum placement_kind kind;
	bool client_end;   /* it is the client that receives there */
	uint16_t from, to; /* the CPUs, of the last turn that crossed */
	size_t turns;      /* that crossed */
	double time; /* of the turns' time, the stages in which the crossing is paid for; 0 … 1 */
};

enum {
	PLACEMENTS_MAX = 2 * PLACEMENTS,
	PLACEMENT_TURNS_PERCENT = 50, /* of the turns must cross */
	PLACEMENT_TIME_PERCENT = 1,   /* of their time must be paid for it */
};

/* What crosses in most of the flow's turns and costs, into out. Returns how many. */
int placement_of(const struct live_flow *flow, struct placement out[PLACEMENTS_MAX]);

#endif
