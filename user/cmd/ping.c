// SPDX-License-Identifier: GPL-2.0-only
/* layover ping: a ping-pong against a server, its latency, and in which layer each trip waited. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/noise.h"
#include "cmd/observe.h"
#include "cmd/outputs.h"
#include "cmd/plan_settings.h"
#include "cmd/report.h"
#include "cmd/sweep.h"
#include "cmd/tracing.h"
#include "collect/probes.h"
#include "lab/lab.h"
#include "load/clock.h"
#include "load/run.h"

/* --- the command line ----------------------------------------------------------------------------
 */

enum split_mode { SPLIT_IF_ALLOWED, SPLIT_NEVER, SPLIT_ALWAYS };

struct ping_options {
	struct load_plan plan;
	struct outputs outputs;
	const char *target;                 /* NULL: the lab */
	int split;                          /* enum split_mode */
	uint32_t hooks_with, hooks_without; /* masks of enum hook */
	bool lab, overhead, hw_timestamps;
	struct sweep sweep;
};

#define AT(field) offsetof(struct ping_options, field)

/* "-copy,+send_enter" */
static int parse_hooks(void *into, const char *what, const char *text)
{
	struct ping_options *o = into;
	char *list = strdup(text), *rest = list, *word;
	int rc = list ? 0 : -ENOMEM;

	while (!rc && (word = strsep(&rest, ","))) {
		int hook = *word ? hook_by_name(word + 1) : -1;

		if (hook < 0 || (*word != '+' && *word != '-'))
			rc = err_set(-EINVAL,
				     "%s: '%s' is not + or - and a hook; "
				     "'layover doctor' lists them",
				     what, word);
		else if (*word == '+')
			o->hooks_with |= 1u << hook;
		else
			o->hooks_without |= 1u << hook;
	}
	free(list);
	return rc;
}

static const struct setting lab_settings[] = {
	{"lab", 0, NULL, "make both ends here, in two network namespaces (needs root)",
	 SETTING_FLAG, AT(lab), 0, 0, NULL},
	{0},
};

static const struct setting sweep_settings[] = {
	{"sweep", 0, "SIZES",
	 "measure one size after the other, into one table: 1..64k doubles, or a list", SETTING_OWN,
	 0, 0, 0, sweep_parse},
	{0},
};

static const struct setting ping_settings[] = {
	{.doc = "The split:"},
	{"split", 0, NULL, "insist on the split by stage; exit 3 where it is not allowed",
	 SETTING_WORD, AT(split), SPLIT_ALWAYS, 0, NULL},
	{"no-split", 0, NULL, "measure without hooks in the kernel", SETTING_WORD, AT(split),
	 SPLIT_NEVER, 0, NULL},
	{"overhead", 0, NULL,
	 "alternate blocks with and without hooks: what the hooks themselves cost", SETTING_FLAG,
	 AT(overhead), 0, 0, NULL},
	{"hooks", 0, "LIST",
	 "leave out hooks or add optional ones: -copy,+send_enter; 'layover doctor' lists them",
	 SETTING_OWN, 0, 0, 0, parse_hooks},
	{"hw-timestamps", 0, NULL,
	 "have the NIC stamp what it sends: the driver and NIC become a stage of their own",
	 SETTING_FLAG, AT(hw_timestamps), 0, 0, NULL},
	{0},
};

/* Half a round trip has no stages, and stages are kept for every trip. */
static int finish_outputs(struct ping_options *o)
{
	const char *lone = o->outputs.half ? "--half" : "--histogram-only";
	int rc;

	if (o->outputs.half || o->outputs.histogram_only) {
		if (o->split == SPLIT_ALWAYS || o->overhead || o->hw_timestamps)
			return err_set(-EINVAL, "%s goes without the split: leave out %s", lone,
				       o->overhead        ? "--overhead"
				       : o->hw_timestamps ? "--hw-timestamps"
							  : "--split");
		o->split = SPLIT_NEVER;
	}
	rc = outputs_check(&o->outputs, &o->plan);
	return rc ? rc : plan_check(&o->plan);
}

/* Each size must do: none is to fail when others have been measured. */
static int check_sweep(const struct ping_options *o)
{
	struct load_plan plan = o->plan;
	int rc = 0;

	if (!o->sweep.count)
		return 0;
	if (o->overhead || o->outputs.dump || o->outputs.full_log || plan.writes.count ||
	    plan.reply_bytes || plan.playback)
		return err_set(-EINVAL,
			       "--sweep goes without --overhead, --dump, --full-log, --writes, "
			       "--playback and a reply size");
	if (!o->outputs.format->print_sweep)
		return err_set(-EINVAL, "--sweep cannot be told in the format %s",
			       o->outputs.format->name);
	for (uint64_t i = 0; !rc && i < o->sweep.count; i++) {
		plan.bytes = o->sweep.bytes[i];
		rc = plan_check(&plan);
	}
	return rc;
}

/* What only the whole command line can tell. */
static int finish_options(struct ping_options *o)
{
	int rc;

	if (o->lab && o->target)
		return err_set(-EINVAL, "--lab makes its own server; leave out '%s'", o->target);
	if (o->lab && (o->plan.token || o->plan.shutdown_server))
		return err_set(-EINVAL, "--lab makes its own server; leave out %s",
			       o->plan.token ? "--token-file" : "--shutdown-server");
	if (o->lab && o->plan.peer)
		return err_set(-EINVAL, "--lab makes its own server; leave out --peer");
	if (!o->lab && !o->target)
		return err_set(-EINVAL, "name a TARGET where 'layover serve' runs, or use --lab");
	if (o->plan.iterations && !o->plan.time_given)
		o->plan.duration_ns = 0;
	if (o->lab)
		plan_pin_lab(&o->plan);
	if (o->hw_timestamps && (o->overhead || o->split == SPLIT_NEVER))
		return err_set(-EINVAL,
			       "--hw-timestamps goes neither with --overhead nor --no-split");
	rc = finish_outputs(o);
	return rc ? rc : check_sweep(o);
}

static const char doc[] =
	"Sends one message at a time to TARGET, HOST[:PORT] ([::1]:7117 for IPv6 with a port), where "
	"'layover serve' runs, and measures every round trip.\v"
	"Examples:\n"
	"  layover ping --lab                     both ends on this machine\n"
	"  layover ping --lab --udp -m 1448 -j    UDP, 1448 bytes, JSON\n"
	"  layover ping 192.0.2.7 -i 100000       TCP to a server, 100000 trips\n\n"
	"The first Ctrl-C ends the measurement and prints it, the second leaves at once.";

static void parse_options(struct ping_options *o, int argc, char **argv)
{
	const struct settings parts[] = {{lab_settings, o},
					 {plan_common_settings, &o->plan},
					 {plan_trip_settings, &o->plan},
					 {sweep_settings, &o->sweep},
					 {ping_settings, o},
					 {output_settings, &o->outputs},
					 {NULL, NULL}};

	plan_default(&o->plan);
	settings_parse(parts, "TARGET\n--lab", doc, &o->target, argc, argv);
	if (finish_options(o))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
}

/* --- the run
 * -------------------------------------------------------------------------------------- */

enum { SECOND_STOP_NS = 100 * NS_PER_MS };

static struct lab lab;
static struct load_client *_Atomic running; /* for the signal handler */
static _Atomic uint64_t stopped_at;         /* when the first stop signal came, 0: none */

static void on_stop(int signal)
{
	struct load_client *client = atomic_load(&running);
	uint64_t now = clock_ns(), first = atomic_load(&stopped_at);

	(void)signal;
	if (!first)
		atomic_store(&stopped_at, now);
	else if (now - first > SECOND_STOP_NS) { /* timeout(1) sends its signal twice */
		lab_abandon(&lab);
		_exit(EXIT_FAILED);
	}
	if (client)
		client_stop(client);
}

static void catch_stops(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_stop};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* One measurement and everything that looks on. */
struct attempt {
	struct run run;
	struct tracing tracing;
	struct observer observer;
	struct noise_observer noise;
};

/* Opens the client, measures, closes it. 0 or -errno with a sentence. */
static int measure(struct attempt *a, const char *target, make_socket_fn *make_socket, void *arg)
{
	struct run *run = &a->run;
	struct tracing *tracing = &a->tracing;
	/* In the lab not before its server, which would inherit it. */
	int rc = observe_open(&a->observer, run->plan);

	if (!rc)
		rc = client_open(&run->client, run->plan, target, make_socket, arg);
	if (rc)
		return rc;
	atomic_store(&running, run->client);
	if (atomic_load(&stopped_at))
		client_stop(run->client);
	if (tracing->collect && tracing->hw_timestamps)
		rc = client_hw_timestamps(run->client);
	if (!rc && tracing->collect)
		rc = tracing_start(tracing, run);
	if (!rc)
		rc = noise_start(&a->noise, run);
	if (!rc) {
		observe_start(&a->observer, run);
		rc = run_measure(run);
		observe_finish(&a->observer);
		if (!rc)
			noise_finish(&a->noise);
	}
	if (!rc && tracing->collect)
		rc = tracing_finish(tracing);
	atomic_store(&running, NULL);
	client_close(run->client);
	run->client = NULL;
	return rc;
}

/* An exit code: whether the run goes on without. */
static int no_split(const struct ping_options *o, const char *why)
{
	if (o->split == SPLIT_ALWAYS || o->overhead)
		return say_error(EXIT_CANNOT, "no split: %s", why);
	say_note("no split, latency only: %s", why);
	err_clear();
	return EXIT_OK;
}

/* Loads the hooks as the options want them. An exit code; a sentence was printed unless EXIT_OK. */
static int prepare_split(const struct ping_options *o, struct tracing *tracing)
{
	struct probe_wish wish = {
		.proto = plan_traced_proto(&o->plan),
		.hardware = !o->lab && probes_hardware(),
		.with = o->hooks_with,
		.without = o->hooks_without,
	};
	int rc;

	if (o->split == SPLIT_NEVER)
		return EXIT_OK;
	if (plan_overlaps(&o->plan))
		return no_split(o, "messages that overlap have no turns; use one at a time for it");
	if (!wish.proto)
		return no_split(o, "the hooks follow the turns of one TCP or UDP flow");
	tracing->hw_timestamps = o->hw_timestamps;
	rc = tracing_open(tracing, &wish, o->overhead);
	if (!rc)
		return EXIT_OK;
	tracing->overhead = false;
	return no_split(o, err_text(rc));
}

/* An exit code: what --hw-timestamps, --fifo and raw sockets need is missing, or it failed. */
static int say_failed(int rc)
{
	if (!rc)
		return EXIT_OK;
	return say_error(rc == -EOPNOTSUPP || rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s",
			 err_text(rc));
}

static int run_in_lab(const struct ping_options *o, struct attempt *a)
{
	int family = o->plan.family == PLAN_IPV6 ? AF_INET6 : AF_INET;
	char target[LAB_TARGET_MAX];
	int code, rc = lab_create(&lab);

	if (rc)
		return say_error(rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s", err_text(rc));
	rc = lab_serve(&lab, family, target); /* first: it must not inherit the hooks */
	code = rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : prepare_split(o, &a->tracing);
	if (code == EXIT_OK) {
		rc = measure(a, target, lab_client_socket, &lab);
		code = say_failed(rc);
	}
	lab_destroy(&lab);
	return code;
}

static int run_to_target(const struct ping_options *o, struct attempt *a)
{
	int code = prepare_split(o, &a->tracing);
	int rc;

	if (code != EXIT_OK)
		return code;
	rc = measure(a, o->target, client_plain_socket, NULL);
	return say_failed(rc);
}

/* An exit code; a sentence was printed unless it is EXIT_OK. */
static int run_ping(const struct ping_options *o, struct attempt *a)
{
	int code;

	lab = LAB_NONE;
	if (outputs_memory(&o->outputs, &o->plan, o->split != SPLIT_NEVER))
		return say_error(EXIT_FAILED, "%s", err_text(-ENOMEM));
	catch_stops();
	code = o->lab ? run_in_lab(o, a) : run_to_target(o, a);
	if (code != EXIT_OK)
		return code;
	if (report_trips(&a->run, &a->observer))
		return EXIT_OK;
	if (a->run.samples.lost)
		return say_error(EXIT_FAILED,
				 "nothing was measured: none of %llu trips came back in time",
				 (unsigned long long)a->run.samples.lost);
	return say_error(EXIT_FAILED,
			 "nothing was measured: stopped before the first trip was over");
}

static int print_report(const struct ping_options *o, struct attempt *a, enum report_sweep sweep)
{
	const struct report_sources sources = {
		.run = &a->run,
		.outputs = &o->outputs,
		.observer = &a->observer,
		.tracing = &a->tracing,
		.noise = &a->noise.report,
		.lab = o->lab,
		.sweep = sweep,
	};
	int rc = report_print(&sources);

	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}

static int ping_once(const struct ping_options *o, enum report_sweep sweep)
{
	struct attempt a = {.run.plan = &o->plan, .observer.outputs = &o->outputs};
	int code = run_ping(o, &a);

	if (code == EXIT_OK)
		code = print_report(o, &a, sweep);
	observe_close(&a.observer);
	noise_close(&a.noise);
	tracing_close(&a.tracing);
	samples_free(&a.run.samples);
	return code;
}

int cmd_ping(int argc, char **argv)
{
	struct ping_options o = {0};
	int code = EXIT_OK;

	parse_options(&o, argc, argv);
	if (!o.sweep.count)
		return ping_once(&o, SWEEP_NONE);
	for (uint64_t i = 0; code == EXIT_OK && i < o.sweep.count && !atomic_load(&stopped_at);
	     i++) {
		o.plan.bytes = o.sweep.bytes[i];
		o.plan.more = i + 1 < o.sweep.count;
		code = ping_once(&o, i ? SWEEP_NEXT : SWEEP_FIRST);
	}
	return code;
}
