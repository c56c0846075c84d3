/* SPDX-License-Identifier: GPL-2.0-only */
/* The screens of `top`: what is shown, and what keys change of that. It draws what it is given; it reads nothing. */
#ifndef LAYOVER_TUI_TOP_H
#define LAYOVER_TUI_TOP_H

#include "collect/collect.h"
#include "collect/socket_facts.h"
#include "model/events.h"
#include "model/focus.h"
#include "model/top.h"
#include "tui/keys.h"
#include "tui/screen.h"
#include "tune/cpu_load.h"
#include "view/top_columns.h"

/* Pages: of the machine, of one flow, and what opens from a line. */
enum tui_page {
	PAGE_FLOWS,
	PAGE_STAGES,
	PAGE_CPUS,
	PAGE_EVENTS,
	PAGE_SPLIT, /* of the flow that is looked at, from here on */
	PAGE_HEAT,
	PAGE_HISTOGRAM,
	PAGE_SLOWEST,
	PAGE_SOCKET,
	PAGE_CAUSE,
	PAGE_TRIP, /* one event or trip, moment by moment */
	PAGES
};

/* What takes the keys, above the page. */
enum tui_box { BOX_NONE, BOX_FILTER, BOX_SORT, BOX_COLUMNS, BOX_HELP };

/* All that is shown of an interval, by itself: when it is frozen, sampling goes on beneath. */
struct tui_shot {
	struct top_row *rows;
	size_t count, room;
	size_t flows; /* before the filter */
	struct top_stage stages[STAGES];
	float history[STAGES][TOP_HISTORY];
	int stage_count;
	uint64_t stage_turns;
	double seconds, rate, stall_rate;
	uint64_t turns, at_ns, event_count;
	size_t open, places;
	struct collect_counters counters;
	struct focus focus; /* its live flows are not to be used */
	struct socket_facts facts;
};

/* Where the cursor is in a list, and which line is the first one on the screen. */
struct tui_cursor {
	size_t at, first;
};

struct tui_top {
	struct screen *screen;
	struct tui_shot shot;
	const struct events *events;
	const struct cpu_load *load;
	const struct top_cpu *cpus, *cpus_before; /* of the book; by CPU number */
	struct top_format format;

	enum tui_page page, below[4]; /* Esc goes back to the last one below */
	int depth;
	enum tui_box box;
	struct tui_cursor cursors[PAGES], menu;
	uint64_t selected; /* Flows: the socket of the line with the cursor */

	int sort;
	bool reverse, frozen, baseline;
	unsigned int hidden; /* columns, by bits */
	uint64_t interval_ns;
	char filter[64], typed[64];
	char message[160]; /* in place of the footer, until the next key */

	/* The trip that is open. */
	bool trip_is_event;
	struct event trip_event;
	struct live_turn trip;

	/* What the loop is to do; it clears them. */
	bool wants_quit, wants_report, wants_focus, wants_baseline, wants_interval, wants_redraw;
	struct top_row focus_row; /* wants_focus: its socket is 0 for none */
};

/* Starts with the flows. */
void tui_top_begin(struct tui_top *tui, struct screen *screen);
void tui_top_end(struct tui_top *tui);

/* Takes over a new interval, unless the display is frozen. 0 or -ENOMEM with a sentence. */
int tui_top_take(struct tui_top *tui, const struct top *top, const struct focus *focus,
		 const struct socket_facts *facts, const struct collect_counters *counters);

/* Draws everything that is to be seen. */
void tui_top_draw(struct tui_top *tui);

/* One key as curses has it. */
void tui_top_key(struct tui_top *tui, int key);

/* --- between the pages' files -------------------------------------------------------------------- */

/* Lines that a page may use: from TUI_TOP to below tui_bottom(). */
enum { TUI_TOP = 2 };
int tui_bottom(const struct tui_top *tui);

/* Moves the cursor's window so that it lies in it; rows: on the screen, count: that there are. */
void tui_scroll(struct tui_cursor *cursor, int rows, size_t count);

/* How many lines a page's list has, 0: it has none to choose from. */
size_t tui_count(const struct tui_top *tui, enum tui_page page);

void tui_draw_flows(struct tui_top *tui);
void tui_draw_stages(struct tui_top *tui);
void tui_draw_cpus(struct tui_top *tui);
void tui_draw_events(struct tui_top *tui);
void tui_draw_flow(struct tui_top *tui); /* PAGE_SPLIT … PAGE_CAUSE */
void tui_draw_trip(struct tui_top *tui);
void tui_draw_box(struct tui_top *tui);

/* A click on the heads of the flows: sorts. */
void tui_click_head(struct tui_top *tui, int x);

#endif
