/* SPDX-License-Identifier: GPL-2.0-only */
/* What `watch` shows: one row per flow and interval. */
#ifndef LAYOVER_VIEW_WATCH_H
#define LAYOVER_VIEW_WATCH_H

#include <jansson.h>

#include "model/dist.h"
#include "model/split.h"

struct watch_row {
	double seconds; /* how long the interval was */
	char comm[24], local[80], remote[80];
	uint32_t pid;   /* 0: not known */
	int role;       /* enum role */
	bool both_ends; /* the server's stages are in the split */
	uint64_t one_way, stalls;
	struct dist took;
	struct split split;
};

/* Heads an interval that ended so long after the start. */
void view_watch_head(uint64_t at_ns);
void view_watch_row(const struct watch_row *row, bool stages);

/* A new reference. */
json_t *view_watch_json(const struct watch_row *row);

/* Prints and releases the rows of one interval as one line. 0 or -errno with a sentence. */
int view_watch_json_line(json_t *rows, uint64_t at_ns, double seconds);

#endif
