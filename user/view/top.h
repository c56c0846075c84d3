/* SPDX-License-Identifier: GPL-2.0-only */
/* `top` without a screen: one interval as text or as a line of JSON. */
#ifndef LAYOVER_VIEW_TOP_H
#define LAYOVER_VIEW_TOP_H

#include "collect/collect.h"
#include "model/events.h"
#include "model/top.h"
#include "view/top_columns.h"

/* Prints the rows, sorted already, and what is known of the whole. */
void view_top_text(const struct top *top, const struct events *events,
		   const struct collect_counters *counters, const struct top_format *format);

/* Events after number `since` are told. 0 or -errno with a sentence. */
int view_top_json(const struct top *top, const struct events *events, uint64_t since,
		  const struct collect_counters *counters);

#endif
