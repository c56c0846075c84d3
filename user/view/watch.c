// SPDX-License-Identifier: GPL-2.0-only
#include "view/watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "abi/record.h"
#include "base/error.h"
#include "view/text.h"

enum { PROGRAM = 18, ADDRESSES = 42 };

void view_watch_head(uint64_t at_ns)
{
	struct style style = view_style();

	printf("\n%8.1f s  %-*s %-*s\n", (double)at_ns / 1e9, PROGRAM, "program", ADDRESSES,
	       "flow");
	printf("  %10s %8s %8s %8s %8s %8s  where (p50), %s\n", "turns/s", "p50", "p90", "p99",
	       "max", "stalls", style.micro);
}

static void print_stages(const struct split *split)
{
	for (int r = 0; r < split->count; r++) {
		const struct stage_row *row = &split->rows[r];

		printf("    %-16s", stage_infos[row->stage].key);
		text_us(row->dist.p[DIST_P50], 9);
		text_us(row->dist.p[DIST_P90], 9);
		text_us(row->dist.p[DIST_P99], 9);
		text_us(row->dist.max, 9);
		printf("%7.1f%%\n", row->share * 100);
	}
}

/* Where few turns are, the shares of all of them say more than none. */
static int top_stage(const struct split *split, double *share)
{
	int top = -1;

	if (split->band_known[BAND_P50]) {
		*share = split->top[BAND_P50][0].share;
		return split->top[BAND_P50][0].stage;
	}
	*share = 0;
	for (int r = 0; r < split->count; r++) {
		if (split->rows[r].share <= *share)
			continue;
		*share = split->rows[r].share;
		top = split->rows[r].stage;
	}
	return top;
}

void view_watch_row(const struct watch_row *row, bool stages)
{
	struct style style = view_style();
	double share;
	int top = top_stage(&row->split, &share);

	printf("%s[%u] %s %s %s%s\n", row->comm, row->pid, row->local,
	       row->role == ROLE_CLIENT ? style.arrow : "<-", row->remote,
	       row->role == ROLE_CLIENT ? "" : "  (server)");
	if (!row->took.count) {
		printf("  %10s one-way: %llu messages without an answer\n", "-",
		       (unsigned long long)row->one_way);
		return;
	}
	printf("  %10.1f ", (double)row->took.count / row->seconds);
	text_us(row->took.p[DIST_P50], 8);
	putchar(' ');
	text_us(row->took.p[DIST_P90], 8);
	putchar(' ');
	text_us(row->took.p[DIST_P99], 8);
	putchar(' ');
	text_us(row->took.max, 8);
	printf(" %8llu", (unsigned long long)row->stalls);
	if (top >= 0)
		printf("  %.0f %% %s", share * 100, stage_infos[top].key);
	putchar('\n');
	if (stages)
		print_stages(&row->split);
}

static void set_ns(json_t *object, const char *key, int64_t ns)
{
	json_object_set_new(object, key, ns == DIST_NONE ? json_null() : json_integer(ns));
}

static json_t *dist_object(const struct dist *d)
{
	json_t *object = json_object();

	json_object_set_new(object, "count", json_integer((json_int_t)d->count));
	set_ns(object, "min_ns", d->min);
	set_ns(object, "p50_ns", d->p[DIST_P50]);
	set_ns(object, "p90_ns", d->p[DIST_P90]);
	set_ns(object, "p99_ns", d->p[DIST_P99]);
	set_ns(object, "p99_9_ns", d->p[DIST_P99_9]);
	set_ns(object, "max_ns", d->max);
	set_ns(object, "mean_ns", d->count ? llround(d->mean) : DIST_NONE);
	return object;
}

json_t *view_watch_json(const struct watch_row *row)
{
	json_t *stages = json_array();

	for (int r = 0; r < row->split.count; r++) {
		json_t *stage = dist_object(&row->split.rows[r].dist);

		json_object_set_new(stage, "key",
				    json_string(stage_infos[row->split.rows[r].stage].key));
		json_object_set_new(stage, "share", json_real(row->split.rows[r].share));
		json_array_append_new(stages, stage);
	}
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:b, s:f, s:o, s:o, s:I, s:I}", "program",
			 row->comm, "pid", (int)row->pid, "role",
			 row->role == ROLE_CLIENT ? "client" : "server", "local", row->local,
			 "remote", row->remote, "both_ends", row->both_ends, "turns_per_second",
			 (double)row->took.count / row->seconds, "turn", dist_object(&row->took),
			 "stages", stages, "one_way", (json_int_t)row->one_way, "stalls",
			 (json_int_t)row->stalls);
}

int view_watch_json_line(json_t *rows, uint64_t at_ns, double seconds)
{
	json_t *line =
		json_pack("{s:s, s:s, s:I, s:f, s:o}", "schema", "layover/1", "command", "watch",
			  "at_ns", (json_int_t)at_ns, "interval_s", seconds, "flows", rows);
	int rc = line ? json_dumpf(line, stdout, JSON_COMPACT) : -1;

	json_decref(line);
	putchar('\n');
	return rc ? err_set(-EIO, "cannot write JSON") : 0;
}
