// SPDX-License-Identifier: GPL-2.0-only
/* layover top: all flows of the machine, live. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/args.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/scenarios.h"
#include "cmd/top_live.h"
#include "cmd/top_source.h"
#include "load/clock.h"
#include "view/top.h"
#include "view/view.h"

struct top_options {
	struct watch_filter filter;
	uint64_t interval_ns, count, sockets;
	const char *sort;
	int sort_column;
	bool batch, json, lab, reverse, ascii, mono;
	int report; /* on exit */
};

#define AT(field) offsetof(struct top_options, field)

static const struct setting top_settings[] = {
	{"delay", 'd', "TIME", "how long an interval is; default 1s", SETTING_TIME, AT(interval_ns),
	 NS_PER_S, 0, NULL},
	{"count", 'n', "N", "end after N intervals", SETTING_COUNT, AT(count), 1, 1000000000, NULL},
	{"sort", 's', "COLUMN", "sort by this column; default rate", SETTING_TEXT, AT(sort), 0, 0,
	 NULL},
	{"reverse", 'r', NULL, "sort the other way round", SETTING_FLAG, AT(reverse), 0, 0, NULL},
	{"sockets", 0, "N", "room for so many sockets; default 32768", SETTING_COUNT, AT(sockets),
	 16, 1000000, NULL},
	{"lab", 0, NULL,
	 "show flows made on purpose in two network namespaces: a healthy one, a stalled one, one across CPUs (needs root)",
	 SETTING_FLAG, AT(lab), 0, 0, NULL},
	{.doc = "Output:"},
	{"batch", 'b', NULL, "print text, one block per interval, no screen", SETTING_FLAG,
	 AT(batch), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON Lines: one object per interval", SETTING_FLAG, AT(json), 0,
	 0, NULL},
	{"ascii", 0, NULL, "draw with ASCII only", SETTING_FLAG, AT(ascii), 0, 0, NULL},
	{"mono", 0, NULL, "no colours; so does NO_COLOR in the environment", SETTING_FLAG, AT(mono),
	 0, 0, NULL},
	{"report-on-exit", 0, NULL, "print the last screen as text when it is left (default)",
	 SETTING_WORD, AT(report), true, 0, NULL},
	{"no-report-on-exit", 0, NULL, "do not print it", SETTING_WORD, AT(report), false, 0, NULL},
	{0},
};

static const char doc[] =
	"Shows the TCP flows of this host, live: trips per second, how long they take, where they wait, what stalls them.\v"
	"Examples:\n"
	"  layover top                   every TCP flow of this host\n"
	"  layover top --port 6379       those of one service\n"
	"  layover top --lab             a demonstration on traffic of its own\n"
	"  layover top -b -n 3 -s p99    three intervals as text, slowest first\n";

static void parse_options(struct top_options *o, int argc, char **argv)
{
	const struct settings parts[] = {
		{watch_filter_settings, &o->filter}, {top_settings, o}, {NULL, NULL}};

	o->interval_ns = NS_PER_S;
	o->sockets = TOP_SOCKETS_DEFAULT;
	o->sort = "rate";
	o->report = true;
	settings_parse(parts, "", doc, NULL, argc, argv);
	if (watch_filter_finish(&o->filter))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
	if (o->interval_ns < 100ULL * NS_PER_MS)
		exit(say_error(EXIT_USAGE, "--delay: at least 100ms"));
	o->sort_column = top_column_by_key(o->sort);
	if (o->sort_column < 0)
		exit(say_error(EXIT_USAGE, "--sort: there is no column '%s'", o->sort));
}

static volatile bool stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = true;
}

/* Sleeps until then, reading records meanwhile. */
static int wait_until(struct top_source *s, uint64_t until)
{
	int rc = 0;

	while (!rc && !stopped && clock_ns() < until) {
		uint64_t left = until - clock_ns();
		struct timespec nap = clock_timespec(left < TOP_DRAIN_NS ? left : TOP_DRAIN_NS);

		nanosleep(&nap, NULL);
		rc = top_source_drain(s);
	}
	return rc;
}

static int print(const struct top_options *o, struct top_source *s, uint64_t *told)
{
	const struct top_column *by = &top_columns[o->sort_column];
	struct style style = view_style();
	const struct top_format format = {UNIT_US, style.utf8};
	int rc = 0;

	top_sort(s->top.rows, s->top.row_count, by->value, by->by_text, o->reverse);
	if (o->json)
		rc = view_top_json(&s->top, &s->events, *told, &s->counters);
	else
		view_top_text(&s->top, &s->events, &s->counters, &format);
	*told = s->events.count;
	return rc;
}

static int run_batch(const struct top_options *o, struct top_source *s)
{
	uint64_t begun = clock_ns(), told = 0;
	int rc = 0;

	for (uint64_t n = 1; !rc && !stopped && (!o->count || n <= o->count); n++) {
		rc = wait_until(s, begun + n * o->interval_ns);
		if (!rc)
			rc = top_source_snapshot(s);
		if (!rc)
			rc = print(o, s, &told);
	}
	return rc;
}

static int run_live(const struct top_options *o, struct top_source *s)
{
	const struct top_live_wish wish = {
		.screen = {o->ascii, o->mono},
		.interval_ns = o->interval_ns,
		.count = o->count,
		.sort = o->sort_column,
		.reverse = o->reverse,
		.report_on_exit = o->report,
	};

	return top_live(s, &wish);
}

int cmd_top(int argc, char **argv)
{
	static struct top_source source;
	struct top_options o = {0};
	struct scene scene = {.lab = LAB_NONE};
	int rc;

	parse_options(&o, argc, argv);
	if (o.batch || o.json) {
		signal(SIGINT, on_stop);
		signal(SIGTERM, on_stop);
	} else {
		top_live_block();
	}
	rc = o.lab ? scene_start_three(&scene) : 0;
	if (rc)
		return say_error(rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s", err_text(rc));
	if (o.lab)
		o.filter.netns = scene_namespace(&scene);
	rc = top_source_open(&source, &o.filter, (uint32_t)o.sockets);
	if (rc) {
		top_source_close(&source);
		scene_end(&scene);
		return say_error(EXIT_CANNOT, "flows cannot be watched: %s", err_text(rc));
	}
	rc = o.batch || o.json ? run_batch(&o, &source) : run_live(&o, &source);
	top_source_close(&source);
	scene_end(&scene);
	return rc ? say_error(rc == -ENOTTY ? EXIT_CANNOT : EXIT_FAILED, "%s", err_text(rc))
		  : EXIT_OK;
}
