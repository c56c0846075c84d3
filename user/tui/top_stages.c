// SPDX-License-Identifier: GPL-2.0-only
/* The page of stages: all flows together. */
#include <stdio.h>

#include "tui/top.h"

enum { KEY = 16, NUMBER = 7, SHARE = 7, BAR = 9 };

static void draw_head(const struct tui_top *tui)
{
	static const char *const names[] = {"P50", "P90", "P99", "MAX", "MEAN"};
	const struct screen *s = tui->screen;
	int x = KEY;

	screen_put(s, TUI_TOP, 0, s->columns, INK_HEAD, "STAGE");
	for (int i = 0; i < 5; i++, x += NUMBER)
		screen_put_right(s, TUI_TOP, x, NUMBER, INK_HEAD, names[i]);
	screen_put_right(s, TUI_TOP, x, SHARE, INK_HEAD, "SHARE");
	screen_put(s, TUI_TOP, x + SHARE + BAR + 1, s->columns, INK_HEAD, "HISTORY");
}

static void draw_number(const struct tui_top *tui, int y, int x, double ns, enum ink ink)
{
	char text[TOP_TEXT_MAX];

	top_text_ns(ns, &tui->format, text);
	screen_put_right(tui->screen, y, x, NUMBER, ink, text);
}

static void draw_stage(const struct tui_top *tui, const struct top_stage *stage, int y,
		       bool selected)
{
	const struct screen *s = tui->screen;
	enum ink ink = selected ? INK_SELECTED : INK_PLAIN;
	enum ink colour = (enum ink)(INK_GROUP + (int)top_group_of(stage->stage));
	const double numbers[] = {(double)stage->p50, (double)stage->p90, (double)stage->p99,
				  (double)stage->max, stage->mean_ns};
	char share[16];
	int x = KEY;

	if (selected)
		screen_put(s, y, 0, s->columns, INK_SELECTED, "");
	screen_put(s, y, 0, KEY, ink, stage_infos[stage->stage].key);
	for (int i = 0; i < 5; i++, x += NUMBER)
		draw_number(tui, y, x, numbers[i], ink);
	snprintf(share, sizeof(share), "%.1f%%", stage->share * 100);
	screen_put_right(s, y, x, SHARE, ink, share);
	screen_gauge(s, y, x + SHARE + 1, BAR - 1, colour, stage->share);
	screen_spark(s, y, x + SHARE + BAR + 1, s->columns - x - SHARE - BAR - 1, colour,
		     tui->shot.history[stage->stage], TOP_HISTORY);
}

void tui_draw_stages(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	struct tui_cursor *cursor = &tui->cursors[PAGE_STAGES];
	int bottom = tui_bottom(tui) - 1;
	size_t count = (size_t)tui->shot.stage_count;

	draw_head(tui);
	tui_scroll(cursor, bottom - TUI_TOP - 1, count);
	for (int y = TUI_TOP + 1; y < bottom; y++) {
		size_t i = cursor->first + (size_t)(y - TUI_TOP - 1);

		if (i < count)
			draw_stage(tui, &tui->shot.stages[i], y, i == cursor->at);
	}
	if (cursor->at < count)
		screen_line(s, bottom, 0, INK_DIM, "%s",
			    stage_infos[tui->shot.stages[cursor->at].stage].text);
	else
		screen_line(s, TUI_TOP + 2, 0, INK_DIM, "No trip has ended yet.");
}
