// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "view/text.h"
#include "view/top.h"

/* Bytes that are not cells: those that continue a UTF-8 character. */
static int continuation_bytes(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) == 0x80;
	return n;
}

static void print_cell(const char *text, int width, bool left, bool last)
{
	int cells = width + continuation_bytes(text);

	if (left && last)
		printf("%s", text);
	else
		printf("%*.*s%s", left ? -cells : cells, cells, text, last ? "" : " ");
}

static int last_column(const int *width)
{
	int last = 0;

	for (int c = 0; c < top_column_count; c++)
		if (width[c])
			last = c;
	return last;
}

static void print_heads(const int *width)
{
	for (int c = 0; c < top_column_count; c++)
		if (width[c])
			print_cell(top_columns[c].title, width[c], top_columns[c].left,
				   c == last_column(width));
	putchar('\n');
}

static void print_row(const struct top_row *row, const int *width, const struct top_format *format)
{
	char text[TOP_TEXT_MAX];

	for (int c = 0; c < top_column_count; c++) {
		if (!width[c])
			continue;
		top_columns[c].format(row, format, text);
		print_cell(text, width[c], top_columns[c].left, c == last_column(width));
	}
	putchar('\n');
}

static void print_counters(const struct top *top, const struct collect_counters *counters)
{
	if (counters->no_place)
		printf("%llu sockets have no place (--sockets); %llu turns of such were counted in the stages only\n",
		       (unsigned long long)counters->no_place,
		       (unsigned long long)counters->unplaced);
	if (top->not_listed)
		printf("%llu sockets closed too many at a time to be listed\n",
		       (unsigned long long)top->not_listed);
	if (counters->dropped)
		printf("%llu records were dropped\n", (unsigned long long)counters->dropped);
}

void view_top_text(const struct top *top, const struct events *events,
		   const struct collect_counters *counters, const struct top_format *format)
{
	time_t now = time(NULL);
	struct tm local;
	char clock[16];
	int *width = (int[64]){0};
	double rate = 0;

	for (size_t i = 0; i < top->row_count; i++)
		rate += top->rows[i].rate;
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	printf("\n%s  %zu flows, %.0f trips/s in %.1f s; times in %s\n"
	       "since the start: %llu trips, %llu stalls, %llu events\n",
	       clock, top->row_count, rate, top->seconds, top_unit_names[format->unit],
	       (unsigned long long)top->turns[0], (unsigned long long)top->stalls,
	       (unsigned long long)events->count);
	print_counters(top, counters);
	top_columns_fit(TEXT_COLUMNS, 0, width);
	print_heads(width);
	for (size_t i = 0; i < top->row_count; i++)
		print_row(&top->rows[i], width, format);
	fflush(stdout);
}
