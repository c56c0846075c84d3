// SPDX-License-Identifier: GPL-2.0-only
/* layover load: messages in one direction, as many as can be, or at a rate. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/args.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/plan_settings.h"
#include "lab/lab.h"
#include "load/clock.h"
#include "load/flood.h"
#include "view/flood.h"

struct load_options {
	struct load_plan plan;
	const char *target; /* NULL: the lab */
	uint64_t flows, threads, interval_ns;
	bool lab, json;
};

#define AT(field) offsetof(struct load_options, field)

/* "max" or a number. */
static int parse_rate(void *into, const char *what, const char *text)
{
	struct load_options *o = into;

	o->plan.rate = 0;
	return strcmp(text, "max") ? parse_count(what, text, 1, 1000000000, &o->plan.rate) : 0;
}

static const struct setting load_settings[] = {
	{"lab", 0, NULL, "make both ends here, in two network namespaces (needs root)",
	 SETTING_FLAG, AT(lab), 0, 0, NULL},
	{"flows", 'P', "N", "send through N flows; default 1", SETTING_COUNT, AT(flows), 1,
	 FLOOD_FLOWS_MAX, NULL},
	{"threads", 'T', "N", "share them among N threads; default 1", SETTING_COUNT, AT(threads),
	 1, FLOOD_THREADS_MAX, NULL},
	{"rate", 'r', "N", "messages per second of all flows together, or max (default)",
	 SETTING_OWN, 0, 0, 0, parse_rate},
	{"interval", 'i', "TIME", "print a line every TIME (default 1s; 0: none)", SETTING_TIME,
	 AT(interval_ns), NS_PER_S, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char doc[] =
	"Sends messages to TARGET, where 'layover serve' runs and counts them: how many per second leave and "
	"arrive, by the programs' own count and by the receiving interface's.\v"
	"Examples:\n"
	"  layover load --lab --udp -m 1 -P 64     small packets, as many as can be\n"
	"  layover load 192.0.2.7 -m 64k -t 10     TCP throughput\n"
	"  layover load 192.0.2.7 -u -r 50000      a background load for 'layover ping'\n";

static int finish_options(struct load_options *o)
{
	o->plan.mode = PLAN_SINK;
	if (o->lab == (o->target != NULL))
		return err_set(-EINVAL, "name a TARGET where 'layover serve' runs, or use --lab");
	if (o->lab && (o->plan.token || o->plan.shutdown_server))
		return err_set(-EINVAL, "--lab makes its own server; leave out %s",
			       o->plan.token ? "--token-file" : "--shutdown-server");
	if (o->lab)
		plan_pin_lab(&o->plan);
	if (o->threads > o->flows)
		return err_set(-EINVAL, "%llu threads for %llu flows: each needs one",
			       (unsigned long long)o->threads, (unsigned long long)o->flows);
	return plan_check(&o->plan);
}

static void parse_options(struct load_options *o, int argc, char **argv)
{
	const struct settings parts[] = {
		{load_settings, o}, {plan_common_settings, &o->plan}, {NULL, NULL}};

	plan_default(&o->plan);
	o->flows = o->threads = 1;
	o->interval_ns = NS_PER_S;
	settings_parse(parts, "TARGET\n--lab", doc, &o->target, argc, argv);
	if (finish_options(o))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
}

static struct lab lab;

static void on_stop(int signal)
{
	(void)signal;
	atomic_store(&flood_stop, true);
}

static void show_interval(void *arg, const struct flood_counts *from, const struct flood_counts *to)
{
	const struct flood *flood = arg;

	view_flood_row(&flood->first, from, to);
}

static int run_in_lab(struct load_options *o, struct flood *flood)
{
	int family = o->plan.family == PLAN_IPV6 ? AF_INET6 : AF_INET;
	static char target[LAB_TARGET_MAX];
	int rc = lab_create(&lab);

	if (rc)
		return rc;
	rc = lab_serve(&lab, family, target);
	flood->target = target;
	flood->make_socket = lab_client_socket;
	flood->arg = &lab;
	if (!rc)
		rc = flood_run(flood);
	lab_destroy(&lab);
	return rc;
}

int cmd_load(int argc, char **argv)
{
	struct load_options o = {0};
	struct flood flood = {.plan = &o.plan, .make_socket = client_plain_socket};
	int rc;

	parse_options(&o, argc, argv);
	flood.target = o.target;
	flood.flows = (unsigned int)o.flows;
	flood.threads = (unsigned int)o.threads;
	if (!o.json) {
		flood.interval_ns = o.interval_ns;
		flood.interim = show_interval;
		flood.interim_arg = &flood;
		view_flood_head(&flood);
	}
	lab = LAB_NONE;
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	signal(SIGHUP, on_stop);
	rc = o.lab ? run_in_lab(&o, &flood) : flood_run(&flood);
	if (rc)
		return say_error(rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s", err_text(rc));
	if (flood.last.received == flood.first.received)
		return say_error(EXIT_FAILED, "nothing was measured: no message arrived");
	rc = o.json ? view_flood_json(&flood) : view_flood_text(&flood);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}
