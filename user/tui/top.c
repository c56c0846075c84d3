// SPDX-License-Identifier: GPL-2.0-only
#include "tui/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "load/clock.h"
#include "view/names.h"

enum { LEAST_LINES = 10, LEAST_COLUMNS = 40, KEY_RESIZE_ = 0632 };

static const uint64_t intervals[] = {100 * NS_PER_MS,  200 * NS_PER_MS,  500 * NS_PER_MS,
				     1ULL * NS_PER_S,  2ULL * NS_PER_S,  5ULL * NS_PER_S,
				     10ULL * NS_PER_S, 30ULL * NS_PER_S, 60ULL * NS_PER_S};
enum { INTERVALS = sizeof(intervals) / sizeof(intervals[0]) };

struct page_info {
	const char *title;
	void (*draw)(struct tui_top *tui);
	enum tui_page first; /* of the pages beside it */
	int beside;
};

static const struct page_info pages[PAGES] = {
	[PAGE_FLOWS] = {"Flows", tui_draw_flows, PAGE_FLOWS, 4},
	[PAGE_STAGES] = {"Stages", tui_draw_stages, PAGE_FLOWS, 4},
	[PAGE_CPUS] = {"CPUs/IRQs", tui_draw_cpus, PAGE_FLOWS, 4},
	[PAGE_EVENTS] = {"Events", tui_draw_events, PAGE_FLOWS, 4},
	[PAGE_SPLIT] = {"Split", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_HEAT] = {"Heat map", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_HISTOGRAM] = {"Histogram", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_SLOWEST] = {"Slowest", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_SOCKET] = {"Socket", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_CAUSE] = {"Cause", tui_draw_flow, PAGE_SPLIT, 6},
	[PAGE_TRIP] = {"Trip", tui_draw_trip, PAGE_TRIP, 1},
};

/* --- what is shown ------------------------------------------------------------------------------- */

void tui_top_begin(struct tui_top *tui, struct screen *screen)
{
	*tui = (struct tui_top){.screen = screen, .interval_ns = NS_PER_S};
	tui->sort = top_column_by_key("rate");
	tui->format.utf8 = screen->utf8;
}

void tui_top_end(struct tui_top *tui)
{
	free(tui->shot.rows);
	tui->shot = (struct tui_shot){0};
}

static bool has_text(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

/* Whether the filter's text is somewhere in what could be shown of the row. */
static bool row_fits(const char *filter, const struct top_row *row)
{
	char comm[NAMES_COMM_MAX], address[NAMES_ADDRESS_MAX], pid[16];

	if (!*filter)
		return true;
	snprintf(pid, sizeof(pid), "%u", row->who.pid);
	return has_text(names_comm(&row->who, comm), filter) ||
	       (row->both_ends && has_text(names_comm(&row->peer, comm), filter)) ||
	       has_text(names_address(&row->who, false, address), filter) ||
	       has_text(names_address(&row->who, true, address), filter) ||
	       has_text(top_cause_name(row->cause), filter) || !strcmp(pid, filter);
}

static void sort_rows(struct tui_top *tui)
{
	const struct top_column *by = &top_columns[tui->sort];

	top_sort(tui->shot.rows, tui->shot.count, by->value, by->by_text, tui->reverse);
}

/* The cursor stays on its flow, wherever that is now. */
static void find_selected(struct tui_top *tui)
{
	struct tui_cursor *cursor = &tui->cursors[PAGE_FLOWS];
	const struct tui_shot *shot = &tui->shot;

	for (size_t i = 0; tui->selected && i < shot->count; i++)
		if (shot->rows[i].who.socket == tui->selected) {
			cursor->at = i;
			return;
		}
	if (cursor->at >= shot->count)
		cursor->at = shot->count ? shot->count - 1 : 0;
}

static int take_rows(struct tui_top *tui, const struct top *top)
{
	struct tui_shot *shot = &tui->shot;
	struct top_row *grown;

	if (top->row_count > shot->room) {
		grown = realloc(shot->rows, top->row_count * sizeof(*grown));
		if (!grown)
			return err_set(-ENOMEM, "no memory for %zu flows", top->row_count);
		shot->rows = grown;
		shot->room = top->row_count;
	}
	shot->flows = top->row_count;
	shot->count = 0;
	shot->rate = shot->stall_rate = 0;
	for (size_t i = 0; i < top->row_count; i++) {
		shot->rate += top->rows[i].rate;
		shot->stall_rate += top->rows[i].stall_rate;
		if (row_fits(tui->filter, &top->rows[i]))
			shot->rows[shot->count++] = top->rows[i];
	}
	sort_rows(tui);
	find_selected(tui);
	return 0;
}

int tui_top_take(struct tui_top *tui, const struct top *top, const struct focus *focus,
		 const struct socket_facts *facts, const struct collect_counters *counters)
{
	struct tui_shot *shot = &tui->shot;

	if (tui->frozen)
		return 0;
	memcpy(shot->stages, top->stages, sizeof(shot->stages));
	memcpy(shot->history, top->history, sizeof(shot->history));
	shot->stage_count = top->stage_count;
	shot->stage_turns = top->stage_turns;
	shot->seconds = top->seconds;
	shot->turns = top->turns[0];
	shot->at_ns = top->at_ns;
	shot->open = top->open;
	shot->places = top->places;
	shot->event_count = tui->events->count;
	shot->counters = *counters;
	shot->facts = *facts;
	shot->focus = *focus;
	return take_rows(tui, top);
}

/* --- drawing ------------------------------------------------------------------------------------- */

int tui_bottom(const struct tui_top *tui)
{
	return tui->screen->lines - 1;
}

void tui_scroll(struct tui_cursor *cursor, int rows, size_t count)
{
	size_t room = rows > 0 ? (size_t)rows : 1;

	if (cursor->at >= count)
		cursor->at = count ? count - 1 : 0;
	if (cursor->first > cursor->at)
		cursor->first = cursor->at;
	if (cursor->at >= cursor->first + room)
		cursor->first = cursor->at - room + 1;
	if (cursor->first + room > count)
		cursor->first = count > room ? count - room : 0;
}

size_t tui_count(const struct tui_top *tui, enum tui_page page)
{
	const struct tui_shot *shot = &tui->shot;

	switch (page) {
	case PAGE_FLOWS:
		return shot->count;
	case PAGE_STAGES:
		return (size_t)shot->stage_count;
	case PAGE_CPUS:
		return (size_t)(tui->load->cpu_count + tui->load->irq_count);
	case PAGE_EVENTS:
		return shot->event_count < EVENTS_KEPT ? shot->event_count : EVENTS_KEPT;
	case PAGE_SPLIT:
	case PAGE_TRIP:
		return STAGES;
	case PAGE_SLOWEST:
		return (size_t)shot->focus.slowest_count;
	case PAGE_SOCKET:
		return (size_t)shot->facts.count;
	default:
		return 0;
	}
}

static void draw_title(const struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	const struct tui_shot *shot = &tui->shot;
	char left[256], right[96], rate[TOP_TEXT_MAX], stalls[TOP_TEXT_MAX], clock[16];
	bool wide = s->columns >= 72;
	time_t now = time(NULL);
	struct tm local;
	int n, width;

	top_text_rate(shot->rate, rate);
	top_text_rate(shot->stall_rate, stalls);
	strftime(clock, sizeof(clock), "%H:%M:%S  ", localtime_r(&now, &local));
	n = snprintf(left, sizeof(left), " layover top  %zu flow%s", shot->flows,
		     shot->flows == 1 ? "" : "s");
	if (wide)
		snprintf(left + n, sizeof(left) - (size_t)n, "  %s trips/s  %s stalls/s", rate,
			 stalls);
	snprintf(right, sizeof(right), "%s  %s%.1fs  %s ", tui->frozen ? " FROZEN" : "",
		 wide ? clock : "", (double)tui->interval_ns / 1e9,
		 s->utf8 || tui->format.unit != UNIT_US ? top_unit_names[tui->format.unit] : "us");
	width = screen_width(right);
	screen_put(s, 0, 0, s->columns, INK_TITLE, "");
	screen_put(s, 0, 0, s->columns - width, INK_TITLE, left);
	screen_put_right(s, 0, s->columns - width, width, INK_TITLE, right);
}

/* What the figures are of, if not of one interval of all flows. */
static void scope_text(const struct tui_top *tui, char *text, size_t size)
{
	char comm[NAMES_COMM_MAX], remote[NAMES_ADDRESS_MAX];
	const struct flow_record *who = &tui->shot.focus.who;

	*text = '\0';
	if (tui->depth && tui->shot.focus.active && who->family)
		snprintf(text, size, "%s %s ", names_comm(who, comm),
			 names_address(who, true, remote));
	else if (*tui->filter)
		snprintf(text, size, "filter: %s (%zu of %zu) ", tui->filter, tui->shot.count,
			 tui->shot.flows);
	else if (tui->baseline)
		snprintf(text, size, "since %.0f s ago ", tui->shot.seconds);
}

static void draw_tabs(const struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	const struct page_info *info = &pages[tui->page];
	char text[160];
	int x = 0;

	screen_put(s, 1, 0, s->columns, INK_TAB, "");
	for (int i = 0; i < info->beside; i++) {
		enum tui_page page = (enum tui_page)((int)info->first + i);

		snprintf(text, sizeof(text), " %d %s ", i + 1, pages[page].title);
		x = screen_add(s, 1, x, page == tui->page ? INK_TAB_ON : INK_TAB, text);
	}
	scope_text(tui, text, sizeof(text));
	if (screen_width(text) < s->columns - x)
		screen_put_right(s, 1, x, s->columns - x, INK_TAB, text);
}

/* As many keys as fit. */
static void draw_footer(const struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	int y = s->lines - 1, x = 0;
	char key[16];

	if (tui->message[0]) {
		screen_put(s, y, 0, s->columns, INK_ALARM, tui->message);
		return;
	}
	screen_put(s, y, 0, s->columns, INK_PLAIN, "");
	for (int a = 1; a < ACTIONS; a++) {
		const struct key_info *info = &key_infos[a];

		if (!info->footer[0] ||
		    x + (int)strcspn(info->names, " ") + (int)strlen(info->footer) + 1 > s->columns)
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(info->names, " "), info->names);
		x = screen_add(s, y, x, INK_KEY, key);
		x = screen_add(s, y, x, INK_KEY_TEXT, info->footer) + 1;
	}
}

void tui_top_draw(struct tui_top *tui)
{
	struct screen *s = tui->screen;

	screen_clear(s);
	if (s->lines < LEAST_LINES || s->columns < LEAST_COLUMNS) {
		screen_line(s, 0, 0, INK_PLAIN, "The terminal is too");
		screen_line(s, 1, 0, INK_PLAIN, "small: 40x10 at least.");
		screen_line(s, 2, 0, INK_PLAIN, "Sampling goes on.");
	} else {
		draw_title(tui);
		draw_tabs(tui);
		pages[tui->page].draw(tui);
		draw_footer(tui);
		tui_draw_box(tui);
	}
	screen_show(s, tui->wants_redraw);
	tui->wants_redraw = false;
}

/* --- keys ---------------------------------------------------------------------------------------- */

static void keep_selected(struct tui_top *tui)
{
	const struct tui_cursor *cursor = &tui->cursors[PAGE_FLOWS];

	if (tui->page == PAGE_FLOWS && cursor->at < tui->shot.count)
		tui->selected = tui->shot.rows[cursor->at].who.socket;
}

static void move(struct tui_top *tui, struct tui_cursor *cursor, size_t count, enum action action)
{
	size_t page = (size_t)(tui_bottom(tui) - TUI_TOP - 2), last = count ? count - 1 : 0;

	switch (action) {
	case ACTION_UP:
		cursor->at -= cursor->at > 0;
		break;
	case ACTION_DOWN:
		cursor->at += cursor->at < last;
		break;
	case ACTION_PAGE_UP:
		cursor->at -= cursor->at > page ? page : cursor->at;
		break;
	case ACTION_PAGE_DOWN:
		cursor->at = cursor->at + page < last ? cursor->at + page : last;
		break;
	case ACTION_HOME:
		cursor->at = 0;
		break;
	case ACTION_END:
		cursor->at = last;
		break;
	default:
		break;
	}
}

static void go_down(struct tui_top *tui, enum tui_page page)
{
	if (tui->depth < (int)(sizeof(tui->below) / sizeof(tui->below[0])))
		tui->below[tui->depth++] = tui->page;
	tui->page = page;
	tui->cursors[page] = (struct tui_cursor){0};
}

static void open_flow(struct tui_top *tui)
{
	size_t at = tui->cursors[PAGE_FLOWS].at;

	if (at >= tui->shot.count)
		return;
	tui->focus_row = tui->shot.rows[at];
	tui->wants_focus = true;
	go_down(tui, PAGE_SPLIT);
}

static void open_event(struct tui_top *tui)
{
	size_t at = tui->cursors[PAGE_EVENTS].at;
	const struct event *event =
		at < tui->shot.event_count
			? events_by_number(tui->events, tui->shot.event_count - at)
			: NULL;

	if (!event)
		return;
	tui->trip_is_event = true;
	tui->trip_event = *event;
	go_down(tui, PAGE_TRIP);
}

static void open_trip(struct tui_top *tui)
{
	size_t at = tui->cursors[PAGE_SLOWEST].at;

	if (at >= (size_t)tui->shot.focus.slowest_count)
		return;
	tui->trip_is_event = false;
	tui->trip = tui->shot.focus.slowest[at];
	go_down(tui, PAGE_TRIP);
}

static void enter(struct tui_top *tui)
{
	if (tui->page == PAGE_FLOWS)
		open_flow(tui);
	else if (tui->page == PAGE_EVENTS)
		open_event(tui);
	else if (tui->page == PAGE_SLOWEST)
		open_trip(tui);
}

static void go_back(struct tui_top *tui)
{
	if (!tui->depth) {
		if (*tui->filter) {
			tui->filter[0] = '\0';
			snprintf(tui->message, sizeof(tui->message), " The filter is off.");
		}
		return;
	}
	tui->page = tui->below[--tui->depth];
	if (!tui->depth) {
		tui->focus_row.who.socket = 0;
		tui->wants_focus = true;
	}
}

static void change_interval(struct tui_top *tui, bool longer)
{
	int i = 0;

	if (longer) {
		while (i < INTERVALS - 1 && intervals[i] <= tui->interval_ns)
			i++;
	} else {
		for (i = INTERVALS - 1; i > 0 && intervals[i] >= tui->interval_ns;)
			i--;
	}
	tui->interval_ns = intervals[i];
	tui->wants_interval = true;
}

static void change_page(struct tui_top *tui, int number)
{
	const struct page_info *info = &pages[tui->page];

	if (number < info->beside)
		tui->page = (enum tui_page)((int)info->first + number);
}

static void open_box(struct tui_top *tui, enum tui_box box)
{
	tui->box = box;
	tui->menu = (struct tui_cursor){0};
	if (box == BOX_SORT)
		tui->menu.at = (size_t)tui->sort;
	if (box == BOX_FILTER)
		snprintf(tui->typed, sizeof(tui->typed), "%s", tui->filter);
}

static void toggle_frozen(struct tui_top *tui)
{
	tui->frozen = !tui->frozen;
	snprintf(tui->message, sizeof(tui->message), "%s",
		 tui->frozen ? " FROZEN: the display stands still, sampling goes on. p thaws it."
			     : "");
}

static void act(struct tui_top *tui, enum action action, int key)
{
	switch (action) {
	case ACTION_QUIT:
		tui->wants_quit = true;
		break;
	case ACTION_HELP:
		open_box(tui, BOX_HELP);
		break;
	case ACTION_FILTER:
		open_box(tui, BOX_FILTER);
		break;
	case ACTION_SORT:
		open_box(tui, BOX_SORT);
		break;
	case ACTION_COLUMNS:
		open_box(tui, BOX_COLUMNS);
		break;
	case ACTION_ENTER:
		enter(tui);
		break;
	case ACTION_BACK:
		go_back(tui);
		break;
	case ACTION_NEXT:
		change_page(tui, ((int)tui->page - (int)pages[tui->page].first + 1) %
					 pages[tui->page].beside);
		break;
	case ACTION_PAGE:
		change_page(tui, key - '1');
		break;
	case ACTION_REVERSE:
		tui->reverse = !tui->reverse;
		sort_rows(tui);
		find_selected(tui);
		break;
	case ACTION_FREEZE:
		toggle_frozen(tui);
		break;
	case ACTION_BASELINE:
		tui->baseline = !tui->baseline;
		tui->wants_baseline = true;
		break;
	case ACTION_SLOWER:
	case ACTION_FASTER:
		change_interval(tui, action == ACTION_SLOWER);
		break;
	case ACTION_UNIT:
		tui->format.unit = (enum top_unit)((tui->format.unit + 1) % TOP_UNITS);
		break;
	case ACTION_WRITE:
		tui->wants_report = true;
		break;
	case ACTION_REDRAW:
		tui->wants_redraw = true;
		break;
	default:
		move(tui, &tui->cursors[tui->page], tui_count(tui, tui->page), action);
		keep_selected(tui);
	}
}

/* A new text takes effect at once, on the rows that are there; those it had hidden come with the next interval. */
static void set_filter(struct tui_top *tui, const char *text)
{
	size_t kept = 0;

	snprintf(tui->filter, sizeof(tui->filter), "%s", text);
	for (size_t i = 0; i < tui->shot.count; i++)
		if (row_fits(tui->filter, &tui->shot.rows[i]))
			tui->shot.rows[kept++] = tui->shot.rows[i];
	tui->shot.count = kept;
	find_selected(tui);
}

static void key_in_filter(struct tui_top *tui, int key)
{
	size_t n = strlen(tui->typed);
	enum action action = key_action(key);

	if (action == ACTION_ENTER)
		set_filter(tui, tui->typed);
	if (action == ACTION_ENTER || action == ACTION_BACK)
		tui->box = BOX_NONE;
	else if ((key == 0x7f || key == 8 || key == 0407 /* KEY_BACKSPACE */) && n)
		tui->typed[n - 1] = '\0';
	else if (key == 21 /* Ctrl-U */)
		tui->typed[0] = '\0';
	else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(tui->typed)) {
		tui->typed[n] = (char)key;
		tui->typed[n + 1] = '\0';
	}
}

static void key_in_menu(struct tui_top *tui, int key)
{
	enum action action = key_action(key);
	size_t count = tui->box == BOX_HELP ? ACTIONS + TOP_GROUPS : (size_t)top_column_count;
	int column = (int)tui->menu.at;

	if (action == ACTION_BACK || action == ACTION_QUIT || action == ACTION_HELP) {
		tui->box = BOX_NONE;
	} else if (tui->box == BOX_SORT && action == ACTION_ENTER) {
		tui->sort = column;
		sort_rows(tui);
		find_selected(tui);
		tui->box = BOX_NONE;
	} else if (tui->box == BOX_COLUMNS && (action == ACTION_ENTER || key == ' ')) {
		tui->hidden ^= 1u << column;
	} else if (tui->box == BOX_COLUMNS && action == ACTION_COLUMNS) {
		tui->box = BOX_NONE;
	} else {
		move(tui, &tui->menu, count, action);
	}
}

static void click(struct tui_top *tui)
{
	struct tui_cursor *cursor = &tui->cursors[tui->page];
	int y, x, at = 0;
	char text[32];

	if (!screen_mouse(&y, &x))
		return;
	if (y == 1) {
		for (int i = 0; i < pages[tui->page].beside; i++) {
			snprintf(text, sizeof(text), " %d %s ", i + 1,
				 pages[(int)pages[tui->page].first + i].title);
			at += screen_width(text);
			if (x < at) {
				change_page(tui, i);
				return;
			}
		}
	} else if (y == TUI_TOP && tui->page == PAGE_FLOWS) {
		tui_click_head(tui, x);
		sort_rows(tui);
		find_selected(tui);
	} else if (y > TUI_TOP && y < tui_bottom(tui) &&
		   cursor->first + (size_t)(y - TUI_TOP - 1) < tui_count(tui, tui->page)) {
		cursor->at = cursor->first + (size_t)(y - TUI_TOP - 1);
		keep_selected(tui);
	}
}

void tui_top_key(struct tui_top *tui, int key)
{
	tui->message[0] = '\0';
	if (key == KEY_RESIZE_)
		return; /* the loop has seen to it */
	if (key_action(key) == ACTION_REDRAW)
		tui->wants_redraw = true;
	else if (tui->box == BOX_FILTER)
		key_in_filter(tui, key);
	else if (tui->box != BOX_NONE)
		key_in_menu(tui, key);
	else if (key_action(key) == ACTION_MOUSE)
		click(tui);
	else
		act(tui, key_action(key), key);
}
