/* SPDX-License-Identifier: GPL-2.0-only */
/* From the kernel's book and records to the model of `top`. */
#ifndef LAYOVER_TOP_SOURCE_H
#define LAYOVER_TOP_SOURCE_H

#include "cmd/watching.h"
#include "collect/book.h"
#include "model/events.h"
#include "model/focus.h"
#include "model/top.h"

enum { TOP_SOCKETS_DEFAULT = 32768 };

/* Records are read, and places of closed sockets given back, as often as this. */
#define TOP_DRAIN_NS (100ULL * NS_PER_MS)

struct top_source {
	struct collect *collect;
	struct book *book;
	struct watch_filter filter;
	struct top top;
	struct events events;
	struct focus focus;
	struct collect_counters counters; /* as of the last snapshot */
	bool delack_seen;
	uint64_t evicted; /* idle sockets that lost their place */
	int rc;
};

/* Loads, attaches, begins to count. 0 or -errno with a sentence; top_source_close() is due either way. */
int top_source_open(struct top_source *s, const struct watch_filter *filter, uint32_t sockets);
void top_source_close(struct top_source *s);

/* Reads records and gives back places. 0 or -errno with a sentence. */
int top_source_drain(struct top_source *s);

/* Ends an interval: rows, stages and the focus are new. 0 or -errno with a sentence. */
int top_source_snapshot(struct top_source *s);

/* Looks at one row's flow closely (NULL: at none any more). 0 or -errno with a sentence. */
int top_source_focus(struct top_source *s, const struct top_row *row);

#endif
