// SPDX-License-Identifier: GPL-2.0-only
/* layover watch: the split of live flows of other programs, interval by interval. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/args.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/watching.h"
#include "load/clock.h"
#include "model/split.h"
#include "view/view.h"
#include "view/watch.h"

struct watch_options {
	struct watch_filter filter;
	uint64_t interval_ns, count; /* 0: until it is stopped */
	bool json, stages;
};

#define AT(field) offsetof(struct watch_options, field)

static const struct setting watch_settings[] = {
	{"interval", 'i', "TIME", "how often to print; default 1s", SETTING_TIME, AT(interval_ns),
	 NS_PER_S, 0, NULL},
	{"count", 'n', "N", "print N times, then end", SETTING_COUNT, AT(count), 1, 1000000000,
	 NULL},
	{.doc = "Output:"},
	{"stages", 's', NULL, "print the stages of each flow, too", SETTING_FLAG, AT(stages), 0, 0,
	 NULL},
	{"json", 'j', NULL, "print JSON Lines: one object per interval", SETTING_FLAG, AT(json), 0,
	 0, NULL},
	{0},
};

static const char doc[] =
	"Shows the TCP flows of other programs: turns per second, how long they took, and in which layer they waited. A "
	"client's turn is from its first write to the return of its receive call; a server's, where its client is not "
	"seen, from the request's arrival to the reply's transmission.\v"
	"Examples:\n"
	"  layover watch                           every TCP flow of this machine\n"
	"  layover watch --port 6379 -i 5 -n 12    a minute of one service\n"
	"  layover watch --comm nginx -s           with the stages of each flow\n";

static volatile bool stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = true;
}

static void parse_options(struct watch_options *o, int argc, char **argv)
{
	const struct settings parts[] = {
		{watch_filter_settings, &o->filter}, {watch_settings, o}, {NULL, NULL}};

	o->interval_ns = NS_PER_S;
	settings_parse(parts, "", doc, NULL, argc, argv);
	if (watch_filter_finish(&o->filter))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
	if (o->interval_ns < 10ULL * NS_PER_MS)
		exit(say_error(EXIT_USAGE, "--interval: at least 10ms"));
}

/* The distribution and the stages of what a flow did in the interval. */
static int compute(const struct live_flow *flow, struct watch_row *row)
{
	struct trips trips = {0};
	uint64_t *times = malloc((flow->turn_count + 1) * sizeof(*times));
	int64_t *values = malloc((2 * flow->turn_count + 1) * sizeof(*values));
	int rc = times && values ? trips_grow(&trips, flow->turn_count) : -ENOMEM;

	for (size_t i = 0; !rc && i < flow->turn_count; i++) {
		times[i] = flow->turns[i].took_ns;
		values[i] = (int64_t)times[i];
		rc = trips_set(&trips, i, &flow->turns[i].trip);
	}
	if (!rc) {
		dist_of(values, values + flow->turn_count, flow->turn_count, &row->took);
		rc = split_of(&trips, times, &row->split);
	}
	trips_free(&trips);
	free(values);
	free(times);
	return rc;
}

static void name(const struct live_flow *flow, struct watch_row *row)
{
	const struct live_flow *other = flow->peer;

	watching_comm(flow, row->comm);
	row->pid = flow->known ? flow->who.pid : 0;
	row->role = flow->role;
	watching_address(flow, false, row->local);
	watching_address(flow, true, row->remote);
	row->both_ends = other != NULL;
	row->one_way = flow->one_way;
	row->stalls = flow->stall_count + (other ? other->stall_count : 0);
}

static int print_interval(const struct watch_options *o, const struct watching *w, double seconds,
			  uint64_t at_ns)
{
	json_t *list = o->json ? json_array() : NULL;
	struct watch_row *row = malloc(sizeof(*row));
	size_t shown = 0;
	int rc = row ? 0 : -ENOMEM;

	if (!o->json)
		view_watch_head(at_ns);
	for (size_t i = 0; !rc && i < w->live.count; i++) {
		const struct live_flow *flow = w->live.flows[i];

		if ((!flow->turn_count && !flow->one_way) ||
		    (flow->role == ROLE_SERVER && flow->peer) ||
		    !watch_filter_fits(&o->filter, flow))
			continue;
		*row = (struct watch_row){.seconds = seconds};
		name(flow, row);
		rc = compute(flow, row);
		if (!rc && list)
			json_array_append_new(list, view_watch_json(row));
		else if (!rc)
			view_watch_row(row, o->stages);
		shown++;
	}
	free(row);
	if (!rc && list)
		rc = view_watch_json_line(list, at_ns, seconds);
	else if (!rc && !shown)
		printf("no turns\n");
	fflush(stdout);
	return rc;
}

static int watch(const struct watch_options *o, struct watching *w)
{
	uint64_t begun = clock_ns(), last = begun;
	int rc = 0;

	for (uint64_t n = 1; !rc && !stopped && (!o->count || n <= o->count); n++) {
		uint64_t until = begun + n * o->interval_ns, now = clock_ns();

		rc = watching_gather(w, until > now ? until - now : 0, &stopped, false);
		now = clock_ns();
		if (!rc)
			rc = print_interval(o, w, (double)(now - last) / NS_PER_S, now - begun);
		live_clear(&w->live);
		last = now;
	}
	return rc;
}

int cmd_watch(int argc, char **argv)
{
	struct watch_options o = {0};
	struct watching w = {0};
	int rc;

	parse_options(&o, argc, argv);
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	rc = watching_open(&w, &o.filter);
	if (rc) {
		watching_close(&w);
		return say_error(EXIT_CANNOT, "flows cannot be watched: %s", err_text(rc));
	}
	rc = watch(&o, &w);
	watching_close(&w);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}
