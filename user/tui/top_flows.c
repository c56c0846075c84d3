// SPDX-License-Identifier: GPL-2.0-only
/* The page of flows. */
#include <stdio.h>
#include <string.h>

#include "tui/top.h"

enum { COLUMNS_MAX = 32 };

static void draw_heads(const struct tui_top *tui, const int *width)
{
	const struct screen *s = tui->screen;
	int x = 0;

	screen_put(s, TUI_TOP, 0, s->columns, INK_HEAD, "");
	for (int c = 0; c < top_column_count; c++) {
		enum ink ink = c == tui->sort ? INK_HEAD_ON : INK_HEAD;

		if (!width[c])
			continue;
		if (top_columns[c].left)
			screen_put(s, TUI_TOP, x, width[c], ink, top_columns[c].title);
		else
			screen_put_right(s, TUI_TOP, x, width[c], ink, top_columns[c].title);
		x += width[c] + 1;
	}
}

/* An address is told apart by its end. */
static const char *shortened(const struct screen *s, const char *text, int width, char *out)
{
	int have = screen_width(text);
	const char *from = text;

	if (have <= width || width < 4)
		return text;
	while (*from && screen_width(from) > width - 1)
		from++;
	while (((unsigned char)*from & 0xc0) == 0x80)
		from++;
	snprintf(out, TOP_TEXT_MAX, "%s%.90s", s->utf8 ? "…" : "+", from);
	return out;
}

static enum ink ink_of(const struct top_row *row, int column, bool selected)
{
	const char *key = top_columns[column].key;

	if (selected)
		return INK_SELECTED;
	if (!strcmp(key, "cause") || (!strcmp(key, "stalls") && row->stalls))
		return INK_ALARM;
	if (row->closed || !row->turns)
		return INK_DIM;
	return !strcmp(key, "program") || !strcmp(key, "p50") ? INK_STRONG : INK_PLAIN;
}

static void draw_row(const struct tui_top *tui, const struct top_row *row, int y, const int *width,
		     bool selected)
{
	const struct screen *s = tui->screen;
	char text[TOP_TEXT_MAX], shorter[TOP_TEXT_MAX];
	int x = 0;

	if (selected)
		screen_put(s, y, 0, s->columns, INK_SELECTED, "");
	for (int c = 0; c < top_column_count; c++) {
		enum ink ink = ink_of(row, c, selected);

		if (!width[c])
			continue;
		top_columns[c].format(row, &tui->format, text);
		if (top_columns[c].bar)
			screen_bar(s, y, x, width[c], row->share);
		else if (top_columns[c].left)
			screen_put(s, y, x, width[c], ink,
				   top_columns[c].address ? shortened(s, text, width[c], shorter)
							  : text);
		else
			screen_put_right(s, y, x, width[c], ink, text);
		x += width[c] + 1;
	}
}

/* What the colours of the bars mean, or what is more important than that. */
static void draw_legend(const struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	int x = 0;

	if (tui->shot.counters.no_place) {
		screen_line(s, y, 0, INK_ALARM,
			    "%llu sockets have no place: see --sockets; their turns are in Stages",
			    (unsigned long long)tui->shot.counters.no_place);
		return;
	}
	for (int g = 0; g < TOP_GROUPS && x < s->columns; g++) {
		char letter[2] = {top_group_infos[g].letter, '\0'};

		x = screen_add(s, y, x, (enum ink)(INK_GROUP + g),
			       s->colours && s->utf8 ? "██" : letter);
		x = screen_add(s, y, x + 1, INK_DIM, top_group_infos[g].key) + 1;
	}
}

static void fit(const struct tui_top *tui, int *width)
{
	top_columns_fit(tui->screen->columns, tui->hidden, width);
}

void tui_draw_flows(struct tui_top *tui)
{
	struct tui_cursor *cursor = &tui->cursors[PAGE_FLOWS];
	int bottom = tui_bottom(tui) - 1, width[COLUMNS_MAX];

	fit(tui, width);
	draw_heads(tui, width);
	tui_scroll(cursor, bottom - TUI_TOP - 1, tui->shot.count);
	for (int y = TUI_TOP + 1; y < bottom; y++) {
		size_t i = cursor->first + (size_t)(y - TUI_TOP - 1);

		if (i < tui->shot.count)
			draw_row(tui, &tui->shot.rows[i], y, width, i == cursor->at);
	}
	if (!tui->shot.count)
		screen_line(tui->screen, TUI_TOP + 2, 0, INK_DIM, "%s",
			    *tui->filter
				    ? "No flow has this text in it. Esc takes the filter off."
				    : "No TCP flow has been seen yet: one is seen when it sends.");
	draw_legend(tui, bottom);
}

void tui_click_head(struct tui_top *tui, int x)
{
	int width[COLUMNS_MAX], at = 0;

	fit(tui, width);
	for (int c = 0; c < top_column_count; c++) {
		if (!width[c])
			continue;
		at += width[c] + 1;
		if (x >= at)
			continue;
		if (tui->sort == c)
			tui->reverse = !tui->reverse;
		tui->sort = c;
		return;
	}
}
