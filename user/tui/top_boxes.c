// SPDX-License-Identifier: GPL-2.0-only
/* What lies above a page: the filter's line, menus, help. */
#include <stdio.h>
#include <string.h>

#include "tui/top.h"

enum { BOX_WIDTH = 70 };

static void draw_frame(const struct tui_top *tui, int lines, const char *title, int *y, int *x,
		       int *width)
{
	const struct screen *s = tui->screen;

	*width = s->columns - 4 < BOX_WIDTH ? s->columns - 4 : BOX_WIDTH;
	*x = (s->columns - *width) / 2;
	*y = (s->lines - lines - 2) / 2 > 1 ? (s->lines - lines - 2) / 2 : 1;
	for (int i = 0; i < lines + 2; i++) {
		bool edge = i == 0 || i == lines + 1;

		screen_put(s, *y + i, *x, *width, INK_PLAIN, "");
		screen_fill(s, *y + i, *x + 1, edge ? *width - 2 : 0, INK_HEAD, "─", '-');
		screen_fill(s, *y + i, *x, 1, INK_HEAD,
			    !edge ? "│"
			    : i   ? "└"
				  : "┌",
			    edge ? '+' : '|');
		screen_fill(s, *y + i, *x + *width - 1, 1, INK_HEAD,
			    !edge ? "│"
			    : i   ? "┘"
				  : "┐",
			    edge ? '+' : '|');
	}
	screen_add(s, *y, *x + 2, INK_HEAD_ON, title);
}

static void draw_filter(const struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	int x = screen_add(s, s->lines - 1, 0, INK_KEY, "Filter: ");

	screen_put(s, s->lines - 1, x, s->columns - x, INK_STRONG, tui->typed);
	screen_add(s, s->lines - 1, x + screen_width(tui->typed), INK_SELECTED, " ");
}

static int menu_lines(const struct tui_top *tui, size_t count)
{
	int most = tui->screen->lines - 5;

	return (int)count < most ? (int)count : most;
}

static void draw_columns_menu(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	bool sorting = tui->box == BOX_SORT;
	int lines = menu_lines(tui, (size_t)top_column_count), y, x, width;

	draw_frame(tui, lines, sorting ? " Sort by (Enter) " : " Columns (Enter, Esc) ", &y, &x,
		   &width);
	tui_scroll(&tui->menu, lines, (size_t)top_column_count);
	for (int i = 0; i < lines; i++) {
		int c = (int)tui->menu.first + i;
		enum ink ink = (size_t)c == tui->menu.at ? INK_SELECTED : INK_PLAIN;
		bool on = sorting ? c == tui->sort : !(tui->hidden & 1u << c);
		char text[160];

		snprintf(text, sizeof(text), "%s %-9s %s", on ? "[x]" : "[ ]", top_columns[c].title,
			 top_columns[c].help);
		screen_put(s, y + 1 + i, x + 2, width - 4, ink, text);
	}
}

static void draw_help(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	const size_t count = ACTIONS - 1 + 1 + TOP_GROUPS;
	int lines = menu_lines(tui, count), y, x, width;

	draw_frame(tui, lines, " Keys (Esc) ", &y, &x, &width);
	tui_scroll(&tui->menu, 1, count - (size_t)lines + 1);
	for (int i = 0; i < lines; i++) {
		int row = (int)tui->menu.at + i, group = row - (int)ACTIONS;

		if (row < ACTIONS - 1) {
			screen_put(s, y + 1 + i, x + 2, 9, INK_KEY, key_infos[row + 1].names);
			screen_put(s, y + 1 + i, x + 12, width - 14, INK_PLAIN,
				   key_infos[row + 1].text);
		} else if (group >= 0) {
			char name[32];

			snprintf(name, sizeof(name), "%c %s", top_group_infos[group].letter,
				 top_group_infos[group].key);
			screen_put(s, y + 1 + i, x + 2, 9, (enum ink)(INK_GROUP + group), name);
			screen_put(s, y + 1 + i, x + 12, width - 14, INK_PLAIN,
				   top_group_infos[group].text);
		}
	}
}

void tui_draw_box(struct tui_top *tui)
{
	if (tui->box == BOX_FILTER)
		draw_filter(tui);
	else if (tui->box == BOX_SORT || tui->box == BOX_COLUMNS)
		draw_columns_menu(tui);
	else if (tui->box == BOX_HELP)
		draw_help(tui);
}
