/* SPDX-License-Identifier: GPL-2.0-only */
/* What `load` shows. */
#ifndef LAYOVER_VIEW_FLOOD_H
#define LAYOVER_VIEW_FLOOD_H

#include "load/flood.h"

/* The heading of view_flood_row()'s columns. */
void view_flood_head(const struct flood *flood);

/* What happened between two counts, one line; `since` is the start of all. */
void view_flood_row(const struct flood_counts *since, const struct flood_counts *from,
		    const struct flood_counts *to);

/* The sums, as text or as JSON on stdout. 0 or -errno with a sentence. */
int view_flood_text(const struct flood *flood);
int view_flood_json(const struct flood *flood);

#endif
