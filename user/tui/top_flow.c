// SPDX-License-Identifier: GPL-2.0-only
/* The pages of one flow. */
#include <stdio.h>
#include <string.h>

#include "tui/top.h"
#include "view/names.h"

enum { KEY = 18, NUMBER = 9, SHARE = 7, BAR = 16, LABEL = 9 };

/* --- the split ----------------------------------------------------------------------------------- */

static void draw_split(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct focus *f = &tui->shot.focus;
	struct tui_cursor *cursor = &tui->cursors[PAGE_SPLIT];
	int bottom = tui_bottom(tui), x = KEY + NUMBER + SHARE + 1;
	double stage_ns[STAGES], sum = top_row_stages(&f->row, stage_ns);
	char text[TOP_TEXT_MAX];
	size_t n = 0;

	screen_put(s, y, 0, s->columns, INK_HEAD, "STAGE");
	screen_put_right(s, y, KEY, NUMBER, INK_HEAD, "MEAN");
	screen_put_right(s, y, KEY + NUMBER, SHARE, INK_HEAD, "SHARE");
	screen_put(s, y++, x + BAR + 1, s->columns, INK_HEAD, "HISTORY");
	for (int st = 0; st < STAGES; st++) {
		enum ink ink = (enum ink)(INK_GROUP + (int)top_group_of(st));

		if (stage_ns[st] <= 0 || n++ < cursor->at || y >= bottom)
			continue;
		screen_put(s, y, 0, KEY, INK_PLAIN, stage_infos[st].key);
		top_text_ns(stage_ns[st], &tui->format, text);
		screen_put_right(s, y, KEY, NUMBER, INK_STRONG, text);
		snprintf(text, sizeof(text), "%.1f%%", stage_ns[st] / sum * 100);
		screen_put_right(s, y, KEY + NUMBER, SHARE, INK_PLAIN, text);
		screen_gauge(s, y, x, BAR, ink, stage_ns[st] / sum);
		screen_spark(s, y, x + BAR + 1, s->columns - x - BAR - 1, ink, f->history[st],
			     FOCUS_COLUMNS);
		y++;
	}
	if (cursor->at >= n)
		cursor->at = n ? n - 1 : 0;
	if (!n)
		screen_line(s, y, 0, INK_DIM, "No trip in this interval.");
}

/* --- heat map ------------------------------------------------------------------------------------ */

/* The levels that have anything in the columns that are shown. */
static bool heat_range(const struct focus *f, int columns, int *low, int *high)
{
	*low = FOCUS_LEVELS;
	*high = -1;
	for (int c = FOCUS_COLUMNS - columns; c < FOCUS_COLUMNS; c++)
		for (int l = 0; l < FOCUS_LEVELS; l++) {
			if (!f->heat[c][l])
				continue;
			*low = l < *low ? l : *low;
			*high = l > *high ? l : *high;
		}
	return *high >= 0;
}

static uint32_t sum_of_levels(const uint32_t *column, int from, int step)
{
	uint32_t n = 0;

	for (int l = from; l < from + step && l < FOCUS_LEVELS; l++)
		n += column[l];
	return n;
}

/* In factors of four below the fullest cell. */
static int heat_of(uint32_t n, uint32_t most)
{
	int heat = INK_HEATS - 1;

	for (uint32_t limit = most / 2; heat > 0 && n <= limit; limit /= 3)
		heat--;
	return heat;
}

static void draw_heat_rows(const struct tui_top *tui, int y, int rows, int low, int step)
{
	const struct screen *s = tui->screen;
	const struct focus *f = &tui->shot.focus;
	int columns = s->columns - LABEL - 1;
	uint32_t most = 1;
	char text[TOP_TEXT_MAX];

	columns = columns < FOCUS_COLUMNS ? columns : FOCUS_COLUMNS;
	for (int c = FOCUS_COLUMNS - columns; c < FOCUS_COLUMNS; c++)
		for (int r = 0; r < rows; r++) {
			uint32_t n = sum_of_levels(f->heat[c], low + r * step, step);

			most = n > most ? n : most;
		}
	for (int r = 0; r < rows; r++, y++) {
		int level = low + (rows - 1 - r) * step;

		top_text_ns((double)focus_level_ns(level), &tui->format, text);
		screen_put_right(s, y, 0, LABEL, INK_DIM, text);
		for (int i = 0; i < columns; i++) {
			uint32_t n =
				sum_of_levels(f->heat[FOCUS_COLUMNS - columns + i], level, step);
			int heat = heat_of(n, most);

			if (n)
				screen_fill(s, y, LABEL + 1 + i, 1, (enum ink)(INK_HEAT + heat),
					    s->colours ? "█"
						       : (const char *[]){"░", "░", "▒", "▒", "▓",
									  "█"}[heat],
					    " .:-=+#"[heat + 1]);
		}
	}
}

static void draw_heat(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	int rows = tui_bottom(tui) - y - 2, low, high, step = 1;
	int columns = s->columns - LABEL - 1;

	columns = columns < FOCUS_COLUMNS ? columns : FOCUS_COLUMNS;
	screen_put(
		s, y++, 0, s->columns, INK_HEAD,
		"     TIME  trips of each interval by how long they took, the newest at the right");
	if (!heat_range(&tui->shot.focus, columns, &low, &high)) {
		screen_line(s, y, 0, INK_DIM, "No trip since this flow was opened.");
		return;
	}
	/* Not a line that jumps about: some room around what is there. */
	low = low > 2 ? low - 2 : 0;
	high += 2;
	while ((high - low) / step + 1 > rows)
		step++;
	rows = (high - low) / step + 1;
	draw_heat_rows(tui, y, rows, low, step);
}

/* --- histogram ----------------------------------------------------------------------------------- */

static void draw_histogram(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct focus *f = &tui->shot.focus;
	int bottom = tui_bottom(tui), low = TOP_BINS, high = -1, step = 1, bar = LABEL + 10;
	uint64_t most = 1, all = 0;
	char text[TOP_TEXT_MAX];

	for (int i = 0; i < TOP_BINS; i++) {
		if (!f->total[i])
			continue;
		all += f->total[i];
		low = i < low ? i : low;
		high = i;
	}
	screen_put(s, y++, 0, s->columns, INK_HEAD,
		   "     TIME    TRIPS  since the flow was opened");
	if (high < 0) {
		screen_line(s, y, 0, INK_DIM, "No trip since this flow was opened.");
		return;
	}
	while ((high - low) / step + 1 > bottom - y)
		step++;
	for (int pass = 0; pass < 2; pass++)
		for (int i = low, at = y; i <= high; i += step, at++) {
			uint64_t n = 0;

			for (int k = i; k < i + step && k < TOP_BINS; k++)
				n += f->total[k];
			most = n > most ? n : most;
			if (!pass)
				continue;
			top_text_ns((double)top_bin_ns((uint32_t)(i + step / 2)), &tui->format,
				    text);
			screen_put_right(s, at, 0, LABEL, INK_PLAIN, text);
			snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
			screen_put_right(s, at, LABEL, 9, INK_STRONG, text);
			screen_gauge(s, at, bar, s->columns - bar - 8, INK_GROUP + GROUP_SOCKET,
				     (double)n / (double)most);
			snprintf(text, sizeof(text), "%.1f%%", 100.0 * (double)n / (double)all);
			screen_put_right(s, at, s->columns - 7, 7, INK_DIM, n ? text : "");
		}
}

/* --- slowest trips ------------------------------------------------------------------------------- */

static void draw_slowest(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct focus *f = &tui->shot.focus;
	struct tui_cursor *cursor = &tui->cursors[PAGE_SLOWEST];
	int bottom = tui_bottom(tui), from = 0;
	char text[TOP_TEXT_MAX];

	screen_put(s, y, 0, s->columns, INK_HEAD,
		   "     TOOK  stages in path order; Enter opens a trip");
	tui_scroll(cursor, bottom - y - 1, (size_t)f->slowest_count);
	from = (int)cursor->first;
	for (int i = from; i < f->slowest_count && ++y < bottom; i++) {
		const struct live_turn *turn = &f->slowest[i];
		int width = s->columns - LABEL - 2, x = LABEL + 1, cells;
		uint64_t at = 0;

		top_text_ns((double)turn->took_ns, &tui->format, text);
		screen_put_right(s, y, 0, LABEL,
				 (size_t)i == cursor->at ? INK_SELECTED : INK_STRONG, text);
		for (int st = 0; st < STAGES; st++) {
			at += turn->trip.stage_ns[st];
			cells = (int)((double)at / (double)turn->took_ns * width + 0.5) -
				(x - LABEL - 1);
			screen_fill(s, y, x, cells, (enum ink)(INK_GROUP + (int)top_group_of(st)),
				    s->colours ? "█"
					       : (char[]){top_group_infos[top_group_of(st)].letter,
							  '\0'},
				    top_group_infos[top_group_of(st)].letter);
			x += cells > 0 ? cells : 0;
		}
	}
	if (!f->slowest_count)
		screen_line(s, y + 1, 0, INK_DIM, "No trip since this flow was opened.");
}

/* --- socket, cause ------------------------------------------------------------------------------- */

static void draw_socket(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct socket_facts *facts = &tui->shot.facts;
	struct tui_cursor *cursor = &tui->cursors[PAGE_SOCKET];
	int bottom = tui_bottom(tui);
	size_t first;

	if (!facts->count) {
		screen_line(s, y, 0, INK_DIM, "%s", facts->why);
		return;
	}
	tui_scroll(cursor, 1, (size_t)facts->count);
	first = cursor->at;
	for (size_t i = first; i < (size_t)facts->count && y < bottom; i++, y++) {
		const struct socket_fact *row = &facts->rows[i];

		screen_put(s, y, 0, 16, INK_PLAIN, row->name);
		screen_put(s, y, 17, 26, INK_STRONG, row->value);
		screen_put(s, y, 44, s->columns - 44, INK_DIM, row->help);
	}
}

/* Words in lines of the screen's width; returns the line after them. */
static int wrap(const struct screen *s, int y, int x, enum ink ink, const char *text)
{
	size_t room = (size_t)(s->columns - x - 1);

	while (*text) {
		size_t n = strlen(text);
		char line[256];

		if (n > room) {
			for (n = room; n > 0 && text[n] != ' '; n--)
				;
			n = n ? n : room;
		}
		snprintf(line, sizeof(line), "%.*s", (int)n, text);
		screen_line(s, y++, x, ink, "%s", line);
		text += n;
		text += *text == ' ';
	}
	return y;
}

static void draw_cause(struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct diagnosis *d = &tui->shot.focus.diagnosis;
	int bottom = tui_bottom(tui);
	char line[256], wait[TOP_TEXT_MAX];

	if (!d->verdict_count)
		y = wrap(
			s, y, 0, INK_PLAIN,
			"No cause of waiting, as far as can be told from the trips since this flow was opened.");
	for (int i = 0; i < d->verdict_count && y < bottom - 3; i++) {
		const struct verdict *v = &d->verdicts[i];

		top_text_ns((double)v->wait_ns, &tui->format, wait);
		snprintf(line, sizeof(line),
			 "%s (%s): %zu trips, typically %s, %.0f %% of the slow time",
			 cause_infos[v->cause].key, grade_names[v->grade], v->turns, wait,
			 v->saving * 100);
		y = wrap(s, y, 0, INK_ALARM, line);
		snprintf(line, sizeof(line), "The message waited because %s.",
			 cause_infos[v->cause].text);
		y = wrap(s, y, 2, INK_PLAIN, line);
		snprintf(line, sizeof(line), "Evidence: %s.", v->evidence);
		y = wrap(s, y, 2, INK_PLAIN, line);
		snprintf(line, sizeof(line), "Remedy, at the %s: %s.",
			 v->client_end ? "client" : "server", cause_infos[v->cause].remedy);
		y = wrap(s, y, 2, INK_STRONG, line) + 1;
	}
	for (int i = 0; i < d->moment_count && y < bottom; i++, y++) {
		const struct moment *m = &d->moments[i];

		top_text_ns((double)m->at_ns, &tui->format, wait);
		screen_put_right(s, y, 0, LABEL, INK_STRONG, wait);
		screen_line(s, y, LABEL + 2, INK_PLAIN, "%-7s %s",
			    m->client_end ? "client" : "server", m->what);
	}
}

/* --- all of them --------------------------------------------------------------------------------- */

/* Two lines: who it is, and how it does. Returns the line after them. */
static int draw_who(const struct tui_top *tui, int y)
{
	const struct screen *s = tui->screen;
	const struct focus *f = &tui->shot.focus;
	char comm[NAMES_COMM_MAX], peer[NAMES_COMM_MAX] = "", local[NAMES_ADDRESS_MAX],
				   remote[NAMES_ADDRESS_MAX];
	char p50[TOP_TEXT_MAX], p99[TOP_TEXT_MAX], max[TOP_TEXT_MAX], rate[TOP_TEXT_MAX];
	const struct top_row *row = &f->row;
	const char *arrow =
		f->who.role == ROLE_SERVER ? (s->utf8 ? "←" : "<-") : (s->utf8 ? "→" : "->");

	if (f->peer.socket)
		names_comm(&f->peer, peer);
	screen_line(s, y, 0, INK_STRONG, "%s[%u] %s %s %s %s", names_comm(&f->who, comm),
		    f->who.pid, names_address(&f->who, false, local), arrow,
		    names_address(&f->who, true, remote), peer);
	top_text_ns(row->turns ? (double)row->figures.p50 : -1, &tui->format, p50);
	top_text_ns(row->turns ? (double)row->figures.p99 : -1, &tui->format, p99);
	top_text_ns(row->turns ? (double)row->figures.max : -1, &tui->format, max);
	top_text_rate(row->rate, rate);
	screen_line(s, y + 1, 0, f->gone ? INK_ALARM : INK_PLAIN,
		    "%s%s trips/s  p50 %s  p99 %s  max %s  stalls %llu  %s",
		    f->gone ? "ENDED  " : "", rate, p50, p99, max, (unsigned long long)row->stalls,
		    top_cause_name(row->cause));
	return y + 2;
}

void tui_draw_flow(struct tui_top *tui)
{
	int y;

	if (!tui->shot.focus.active) {
		screen_line(tui->screen, TUI_TOP, 0, INK_DIM,
			    "Its trips are told from now on; the first interval is not over yet.");
		return;
	}
	y = draw_who(tui, TUI_TOP);
	switch (tui->page) {
	case PAGE_SPLIT:
		draw_split(tui, y);
		break;
	case PAGE_HEAT:
		draw_heat(tui, y);
		break;
	case PAGE_HISTOGRAM:
		draw_histogram(tui, y);
		break;
	case PAGE_SLOWEST:
		draw_slowest(tui, y);
		break;
	case PAGE_SOCKET:
		draw_socket(tui, y);
		break;
	default:
		draw_cause(tui, y);
	}
}
