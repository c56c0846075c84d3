/* SPDX-License-Identifier: GPL-2.0-only */
/* The one flow that is looked at closely: all of its turns come as records, for as long as it is looked at. Pure C. */
#ifndef LAYOVER_FOCUS_H
#define LAYOVER_FOCUS_H

#include "model/top.h"

enum {
	FOCUS_COLUMNS = 240,                           /* intervals that are kept */
	FOCUS_LEVELS = 2 * TOP_BINS / (1 << TOP_BITS), /* of the heat map: half octaves */
	FOCUS_TRIPS = 16,                              /* the slowest ones */
};

struct focus {
	bool active;
	uint32_t index;               /* of its place */
	struct flow_record who, peer; /* peer.socket 0: not on this host */

	/* From the book. */
	uint32_t last[TOP_BINS], total[TOP_BINS]; /* as last read; since it is looked at */
	bool started;
	uint32_t heat[FOCUS_COLUMNS][FOCUS_LEVELS]; /* turns, the newest column last */
	int columns;
	float history[STAGES][FOCUS_COLUMNS]; /* mean ns per turn, the newest last */
	struct top_row row;                   /* as in the last interval */
	bool gone;

	/* From records. */
	struct live live;
	size_t seen;                           /* turns of live that were looked at */
	struct live_turn slowest[FOCUS_TRIPS]; /* slowest first */
	int slowest_count;
	uint64_t records;
	struct diagnosis diagnosis;
};

/* Looks at the flow of that row from now on. 0 or -ENOMEM with a sentence. */
int focus_begin(struct focus *focus, const struct top_row *row, uint32_t hooks);
void focus_end(struct focus *focus);

/* Whether it is one of its two sockets. */
bool focus_has(const struct focus *focus, uint64_t socket);

/* One turn of it. 0 or -ENOMEM with a sentence. */
int focus_add_turn(struct focus *focus, const struct turn_record *record);
int focus_add_stall(struct focus *focus, const struct stall_record *record);

/* A wait for a CPU, of whatever reader. */
int focus_add_hog(struct focus *focus, const struct hog_record *record);

/* The end of an interval: its row (NULL: the flow is gone) and its histogram (TOP_BINS; NULL: not known). */
int focus_interval(struct focus *focus, const struct top_row *row, const uint32_t *bins);

/* The middle of a level of the heat map, ns. */
int64_t focus_level_ns(int level);

#endif
