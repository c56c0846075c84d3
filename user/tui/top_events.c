// SPDX-License-Identifier: GPL-2.0-only
/* The page of events, and one of them or one trip, moment by moment. */
#include <stdio.h>
#include <time.h>

#include "load/clock.h"
#include "tui/top.h"
#include "view/names.h"

/* When something was, by the clock on the wall. */
static void wall_time(uint64_t at_ns, char *text, size_t size)
{
	uint64_t now = clock_ns();
	time_t then = time(NULL) - (time_t)((now - at_ns) / NS_PER_S);
	struct tm local;

	strftime(text, size, "%H:%M:%S", localtime_r(&then, &local));
}

static int main_stage(const struct trip *trip)
{
	int best = 0;

	for (int st = 1; st < STAGES; st++)
		if (trip->stage_ns[st] > trip->stage_ns[best])
			best = st;
	return best;
}

static const char *const kinds[] = {
	[STALL_HELD] = "bytes held",
	[STALL_DELACK] = "ACK held back",
	[STALL_RESENT] = "sent again",
};

static void why_text(const struct event *e, char *text, size_t size)
{
	int stage;

	if (e->is_stall) {
		snprintf(text, size, "%s: %s", kinds[e->stall.kind],
			 e->cause < 0 ? "other reasons" : top_cause_name(e->cause));
		return;
	}
	stage = main_stage(&e->trip);
	snprintf(text, size, "%.0f %% %s",
		 100.0 * (double)e->trip.stage_ns[stage] / (double)e->took_ns,
		 stage_infos[stage].key);
}

static void draw_event(const struct tui_top *tui, const struct event *e, int y, bool selected)
{
	const struct screen *s = tui->screen;
	enum ink ink = selected ? INK_SELECTED : INK_PLAIN;
	char text[TOP_TEXT_MAX], comm[NAMES_COMM_MAX], address[NAMES_ADDRESS_MAX];

	if (selected)
		screen_put(s, y, 0, s->columns, ink, "");
	wall_time(e->at_ns, text, sizeof(text));
	screen_put(s, y, 0, 8, ink, text);
	screen_put(s, y, 9, 7,
		   selected      ? ink
		   : e->is_stall ? INK_ALARM
				 : INK_STRONG,
		   e->is_stall ? "stall" : "outlier");
	screen_put(s, y, 17, 12, ink, names_comm(&e->who, comm));
	screen_put(s, y, 30, 19, ink, e->who.family ? names_address(&e->who, true, address) : "?");
	top_text_ns(e->took_ns ? (double)e->took_ns : -1, &tui->format, text);
	screen_put_right(s, y, 50, 8, ink, text);
	why_text(e, text, sizeof(text));
	screen_put(s, y, 59, s->columns - 59, ink, text);
}

void tui_draw_events(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	struct tui_cursor *cursor = &tui->cursors[PAGE_EVENTS];
	int bottom = tui_bottom(tui);
	size_t count = tui_count(tui, PAGE_EVENTS);

	screen_put(s, TUI_TOP, 0, s->columns, INK_HEAD,
		   "TIME     WHAT    PROGRAM      REMOTE                  TOOK WHY");
	tui_scroll(cursor, bottom - TUI_TOP - 1, count);
	for (int y = TUI_TOP + 1; y < bottom; y++) {
		size_t i = cursor->first + (size_t)(y - TUI_TOP - 1);
		const struct event *e =
			i < count ? events_by_number(tui->events, tui->shot.event_count - i) : NULL;

		if (e)
			draw_event(tui, e, y, i == cursor->at);
	}
	if (!count)
		screen_line(s, TUI_TOP + 2, 0, INK_DIM,
			    "Nothing yet: stalls and outliers appear here as they happen.");
}

/* --- one of them --------------------------------------------------------------------------------- */

enum { KEY = 21, NUMBER = 9 };

/* A waterfall: each stage as long as it took, where it was. */
static void draw_waterfall(struct tui_top *tui, const struct trip *trip, uint64_t took, int y)
{
	const struct screen *s = tui->screen;
	struct tui_cursor *cursor = &tui->cursors[PAGE_TRIP];
	int bottom = tui_bottom(tui), bar = KEY + 2 * NUMBER + 1, width = s->columns - bar - 1;
	uint64_t at = 0;
	size_t n = 0;

	screen_put(s, y, 0, s->columns, INK_HEAD, "STAGE");
	screen_put_right(s, y, KEY, NUMBER, INK_HEAD, "AT");
	screen_put_right(s, y++, KEY + NUMBER, NUMBER, INK_HEAD, "TOOK");
	for (int st = 0; st < STAGES; st++) {
		uint64_t ns = trip->stage_ns[st];
		enum ink ink = (enum ink)(INK_GROUP + (int)top_group_of(st));
		char text[TOP_TEXT_MAX];
		int from, cells;

		if (!ns)
			continue;
		if (n++ >= cursor->at && y < bottom) {
			screen_put(s, y, 0, KEY, INK_PLAIN, stage_infos[st].key);
			top_text_ns((double)at, &tui->format, text);
			screen_put_right(s, y, KEY, NUMBER, INK_DIM, text);
			top_text_ns((double)ns, &tui->format, text);
			screen_put_right(s, y, KEY + NUMBER, NUMBER, INK_STRONG, text);
			from = (int)((double)at / (double)took * width);
			cells = (int)((double)ns / (double)took * width + 0.5);
			screen_fill(s, y, bar + from, cells > 0 ? cells : 1, ink,
				    cells > 0 ? "█" : "▏", '#');
			y++;
		}
		at += ns;
	}
	if (cursor->at >= n)
		cursor->at = n ? n - 1 : 0;
}

static void draw_moment(const struct tui_top *tui, int y, uint64_t from, uint64_t at,
			const char *what)
{
	char text[TOP_TEXT_MAX];

	if (!at)
		return;
	top_text_ns(at > from ? (double)(at - from) : 0, &tui->format, text);
	screen_put_right(tui->screen, y, 0, 12, INK_STRONG, text);
	screen_line(tui->screen, y, 14, INK_PLAIN, "%s", what);
}

static void draw_stall(const struct tui_top *tui, const struct event *e, int y)
{
	static const char *const moments[][3] = {
		[STALL_HELD] = {"a write returns and leaves bytes behind",
				"an acknowledgement arrives that frees them", "they leave"},
		[STALL_DELACK] = {"data arrives, its acknowledgement is put off",
				  "the delayed-ACK timer fires", "the acknowledgement leaves"},
		[STALL_RESENT] = {"", "", "known bytes leave again"},
	};
	const struct stall_record *r = &e->stall;
	const char *const *what = moments[r->kind];
	uint64_t from = r->begin ? r->begin : r->end;
	const struct screen *s = tui->screen;

	screen_put_right(s, y, 0, 12, INK_HEAD, "AFTER");
	screen_put(s, y, 14, s->columns - 14, INK_HEAD, "WHAT");
	draw_moment(tui, y + 1, from, r->begin, what[0]);
	draw_moment(tui, y + 2, from, r->cause, what[1]);
	draw_moment(tui, y + 3, from, r->end, what[2]);
	if (r->kind == STALL_HELD)
		screen_line(s, y + 5, 0, INK_PLAIN, "%u bytes, with %u packets not acknowledged.",
			    r->bytes, r->in_flight);
	if (e->cause < 0)
		return;
	screen_line(s, y + 6, 0, INK_ALARM, "%s", top_cause_name(e->cause));
	screen_line(s, y + 7, 2, INK_PLAIN, "%s", cause_infos[e->cause].text);
	screen_line(s, y + 8, 2, INK_PLAIN, "Remedy: %s", cause_infos[e->cause].remedy);
}

void tui_draw_trip(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	const struct event *e = &tui->trip_event;
	char comm[NAMES_COMM_MAX], local[NAMES_ADDRESS_MAX], remote[NAMES_ADDRESS_MAX],
		took[TOP_TEXT_MAX], when[16];
	const struct flow_record *who = tui->trip_is_event ? &e->who : &tui->shot.focus.who;
	uint64_t ns = tui->trip_is_event ? e->took_ns : tui->trip.took_ns;

	wall_time(tui->trip_is_event ? e->at_ns : tui->trip.start_ns + ns, when, sizeof(when));
	top_text_ns((double)ns, &tui->format, took);
	screen_line(s, TUI_TOP, 0, INK_STRONG, "%s[%u] %s %s %s", names_comm(who, comm), who->pid,
		    names_address(who, false, local), s->utf8 ? "→" : "->",
		    names_address(who, true, remote));
	screen_line(s, TUI_TOP + 1, 0, INK_PLAIN, "%s at %s, took %s",
		    tui->trip_is_event && e->is_stall ? "A stall" : "A trip that ended", when,
		    took);
	if (tui->trip_is_event && e->is_stall)
		draw_stall(tui, e, TUI_TOP + 3);
	else
		draw_waterfall(tui, tui->trip_is_event ? &e->trip : &tui->trip.trip, ns,
			       TUI_TOP + 2);
}
