// SPDX-License-Identifier: GPL-2.0-only
/* layover ping: a ping-pong against a server, its latency, and in which layer each trip waited. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/args.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/version.h"
#include "cmd/command.h"
#include "lab/lab.h"
#include "load/clock.h"
#include "load/run.h"
#include "model/dist.h"

/* --- the command line ----------------------------------------------------------------------------
 */

enum split_mode { SPLIT_IF_ALLOWED, SPLIT_NEVER, SPLIT_ALWAYS };

enum option_key {
	KEY_LAB = 0x100,
	KEY_TIMEOUT,
	KEY_CLIENT_CPU,
	KEY_SERVER_CPU,
	KEY_SERVER_DELAY,
	KEY_UNCONNECTED,
	KEY_VERIFY,
	KEY_DUMP,
	KEY_SPLIT,
	KEY_NO_SPLIT,
	KEY_OVERHEAD,
};

struct ping_options {
	struct load_plan plan;
	const char *target; /* NULL: the lab */
	const char *dump;
	enum split_mode split;
	bool lab, json, overhead, time_given;
};

static const struct argp_option options[] = {
	{"lab", KEY_LAB, NULL, 0, "make both ends here, in two network namespaces (needs root)", 0},
	{NULL, 0, NULL, 0, "Messages:", 1},
	{"udp", 'u', NULL, 0, "UDP instead of TCP", 1},
	{"ipv4", '4', NULL, 0, "use IPv4 only", 1},
	{"ipv6", '6', NULL, 0, "use IPv6 only", 1},
	{"bytes", 'm', "SIZE", 0, "size of request and reply, 1 to 1G (UDP: 65507); default 64", 1},
	{"unconnected", KEY_UNCONNECTED, NULL, 0, "UDP sockets without connect(), to compare", 1},
	{"verify", KEY_VERIFY, NULL, 0, "fill and check the payload of every message", 1},
	{NULL, 0, NULL, 0, "How long:", 2},
	{"iterations", 'i', "N", 0, "measure N round trips", 2},
	{"time", 't', "TIME", 0, "measure for TIME (2s, 500ms; a bare number: seconds); default 2s",
	 2},
	{"warmup", 'w', "WHAT", 0,
	 "discard this first: a time or a number of trips; default 1000 trips, "
	 "or 400ms if that is over sooner",
	 2},
	{"timeout", KEY_TIMEOUT, "TIME", 0,
	 "a UDP trip without reply is lost after TIME; default 1s", 2},
	{NULL, 0, NULL, 0, "Where:", 3},
	{"client-cpu", KEY_CLIENT_CPU, "CPU", 0,
	 "run the client on CPU; default: not pinned, in the lab "
	 "the first CPU",
	 3},
	{"server-cpu", KEY_SERVER_CPU, "CPU", 0,
	 "run the server on its host's CPU; default: not pinned, "
	 "in the lab the second CPU",
	 3},
	{"server-delay", KEY_SERVER_DELAY, "TIME", 0,
	 "the server computes for TIME before it replies", 3},
	{NULL, 0, NULL, 0, "The split:", 4},
	{"split", KEY_SPLIT, NULL, 0,
	 "insist on the split by stage; exit 3 where it is not allowed", 4},
	{"no-split", KEY_NO_SPLIT, NULL, 0, "measure without hooks in the kernel", 4},
	{"overhead", KEY_OVERHEAD, NULL, 0, "measure what the hooks cost, too", 4},
	{NULL, 0, NULL, 0, "Output:", 5},
	{"json", 'j', NULL, 0, "print JSON", 5},
	{"dump", KEY_DUMP, "FILE", 0, "write one CSV row per measured trip to FILE", 5},
	{0},
};

/* A bare number is trips, anything else a time. */
static int parse_warmup(const char *text, struct load_plan *plan)
{
	plan->warmup_trips = plan->warmup_ns = 0;
	if (!text[strspn(text, "0123456789")])
		return parse_count("--warmup", text, 0, 1000000000, &plan->warmup_trips);
	return parse_time("--warmup", text, NS_PER_S, &plan->warmup_ns);
}

static int parse_server_cpu(const char *text, int *cpu)
{
	uint64_t value;
	int rc = parse_count("--server-cpu", text, 0, CPUS_MAX - 1,
			     &value); /* the server knows its own */

	if (!rc)
		*cpu = (int)value;
	return rc;
}

/* Options that have a value. 0 or -errno with a sentence. */
static int parse_value(int key, const char *arg, struct ping_options *o)
{
	struct load_plan *plan = &o->plan;

	switch (key) {
	case 'm':
		return parse_size("--bytes", arg, 1, PLAN_TCP_BYTES_MAX, &plan->bytes);
	case 'i':
		return parse_count("--iterations", arg, 1, 1000000000, &plan->iterations);
	case 't':
		o->time_given = true;
		return parse_time("--time", arg, NS_PER_S, &plan->duration_ns);
	case 'w':
		return parse_warmup(arg, plan);
	case KEY_TIMEOUT:
		return parse_time("--timeout", arg, NS_PER_S, &plan->timeout_ns);
	case KEY_CLIENT_CPU:
		return parse_cpu("--client-cpu", arg, &plan->client_cpu);
	case KEY_SERVER_CPU:
		return parse_server_cpu(arg, &plan->server_cpu);
	case KEY_SERVER_DELAY:
		return parse_time("--server-delay", arg, NS_PER_S, &plan->server_delay_ns);
	default:
		o->dump = arg;
		return 0;
	}
}

static error_t parse_flag(int key, struct ping_options *o)
{
	switch (key) {
	case KEY_LAB:
		o->lab = true;
		return 0;
	case 'u':
		o->plan.proto = PLAN_UDP;
		return 0;
	case '4':
		o->plan.family = PLAN_IPV4;
		return 0;
	case '6':
		o->plan.family = PLAN_IPV6;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case KEY_UNCONNECTED:
		o->plan.unconnected = true;
		return 0;
	case KEY_VERIFY:
		o->plan.verify = true;
		return 0;
	case KEY_SPLIT:
		o->split = SPLIT_ALWAYS;
		return 0;
	case KEY_NO_SPLIT:
		o->split = SPLIT_NEVER;
		return 0;
	case KEY_OVERHEAD:
		o->overhead = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What only the whole command line can tell. */
static int finish_options(struct ping_options *o)
{
	if (o->lab && o->target)
		return err_set(-EINVAL, "--lab makes its own server; leave out '%s'", o->target);
	if (!o->lab && !o->target)
		return err_set(-EINVAL, "name a TARGET where 'layover serve' runs, or use --lab");
	if (o->plan.iterations && !o->time_given)
		o->plan.duration_ns = 0;
	if (o->lab && o->plan.client_cpu < 0)
		o->plan.client_cpu = cpus_nth(0);
	if (o->lab && o->plan.server_cpu < 0)
		o->plan.server_cpu = cpus_nth(o->plan.client_cpu == cpus_nth(1) ? 0 : 1);
	return plan_check(&o->plan);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct ping_options *o = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (o->target)
			return -err_set(-EINVAL, "one TARGET only, not '%s'", arg);
		o->target = arg;
		return 0;
	case ARGP_KEY_END:
		return -finish_options(o);
	default:
		return arg ? -parse_value(key, arg, o) : parse_flag(key, o);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "TARGET\n--lab",
	.doc = "Sends one message at a time to TARGET, HOST[:PORT] ([::1]:7117 for IPv6 with a "
	       "port), where "
	       "'layover serve' runs, and measures every round trip.\v"
	       "Examples:\n"
	       "  layover ping --lab                     both ends on this machine\n"
	       "  layover ping --lab --udp -m 1448 -j    UDP, 1448 bytes, JSON\n"
	       "  layover ping 192.0.2.7 -i 100000       TCP to a server, 100000 trips\n\n"
	       "The first Ctrl-C ends the measurement and prints it, the second leaves at once.",
};

/* --- the run
 * -------------------------------------------------------------------------------------- */

enum { SECOND_STOP_NS = 100 * NS_PER_MS };

static struct lab lab;
static struct load_client *_Atomic running; /* for the signal handler */
static _Atomic uint64_t stopped_at;	    /* when the first stop signal came, 0: none */

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

/* Opens the client, measures, closes it. 0 or -errno with a sentence. */
static int measure(struct run *run, const char *target, make_socket_fn *make_socket, void *arg)
{
	int rc = client_open(&run->client, run->plan, target, make_socket, arg);

	if (rc)
		return rc;
	atomic_store(&running, run->client);
	if (atomic_load(&stopped_at))
		client_stop(run->client);
	rc = run_measure(run);
	atomic_store(&running, NULL);
	client_close(run->client);
	run->client = NULL;
	return rc;
}

static int measure_in_lab(struct run *run)
{
	int family = run->plan->family == PLAN_IPV6 ? AF_INET6 : AF_INET;
	char target[LAB_TARGET_MAX];
	int rc = lab_serve(&lab, family, target);

	return rc ? rc : measure(run, target, lab_client_socket, &lab);
}

/* An exit code; a sentence was printed unless it is EXIT_OK. */
static int run_ping(const struct ping_options *o, struct run *run)
{
	int rc;

	lab = LAB_NONE;
	catch_stops();
	if (o->lab) {
		rc = lab_create(&lab);
		if (rc)
			return say_error(rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s",
					 err_text(rc));
		rc = measure_in_lab(run);
		lab_destroy(&lab);
	} else {
		rc = measure(run, o->target, client_plain_socket, NULL);
	}
	if (rc)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	if (run->samples.count)
		return EXIT_OK;
	if (run->samples.lost)
		return say_error(EXIT_FAILED,
				 "nothing was measured: none of %llu trips came back in time",
				 (unsigned long long)run->samples.lost);
	return say_error(EXIT_FAILED,
			 "nothing was measured: stopped before the first trip was over");
}

/* --- the report
 * ----------------------------------------------------------------------------------- */

static json_t *ns_or_null(int64_t ns)
{
	return ns == DIST_NONE ? json_null() : json_integer(ns);
}

static json_t *cpu_or_null(int cpu)
{
	return cpu < 0 ? json_null() : json_integer(cpu);
}

static json_t *load_to_json(const struct run *run)
{
	const struct load_plan *plan = run->plan;

	return json_pack("{s:s, s:I, s:s, s:o, s:o, s:I, s:I, s:I}", "protocol",
			 plan->proto == PLAN_UDP ? "udp" : "tcp", "bytes", (json_int_t)plan->bytes,
			 "io", "blocking", "client_cpu", cpu_or_null(plan->client_cpu),
			 "server_cpu", cpu_or_null(plan->server_cpu), "duration_ns",
			 (json_int_t)run->duration_ns, "warmup_trips",
			 (json_int_t)run->warmup_trips, "warmup_ns", (json_int_t)run->warmup_ns);
}

static json_t *rtt_to_json(const struct run *run, const struct dist *d)
{
	const struct samples *s = &run->samples;

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "count", (json_int_t)d->count, "min_ns", ns_or_null(d->min), "p50_ns",
			 ns_or_null(d->p50), "p90_ns", ns_or_null(d->p90), "p99_ns",
			 ns_or_null(d->p99), "p99_9_ns", ns_or_null(d->p99_9), "max_ns",
			 ns_or_null(d->max), "mean_ns", (json_int_t)(d->mean + 0.5), "stddev_ns",
			 (json_int_t)(d->stddev + 0.5), "lost", (json_int_t)s->lost, "late",
			 (json_int_t)s->late, "duplicated", (json_int_t)s->duplicated,
			 "out_of_order", (json_int_t)s->out_of_order);
}

static void print_json(const struct run *run, const struct dist *d)
{
	struct utsname host;
	json_t *out;

	uname(&host);
	out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "schema", "layover/1",
			"version", LAYOVER_VERSION, "host", host.nodename, "kernel", host.release,
			"clock", "CLOCK_MONOTONIC", "command", "ping", "load", load_to_json(run),
			"rtt", rtt_to_json(run, d));
	json_dumpf(out, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(out);
}

static void print_us(const char *name, int64_t ns)
{
	if (ns == DIST_NONE)
		printf("  %s -", name);
	else
		printf("  %s %.2f", name, (double)ns / NS_PER_US);
}

static void print_cpu(const char *side, int cpu)
{
	if (cpu < 0)
		printf(", %s not pinned", side);
	else
		printf(", %s on CPU %d", side, cpu);
}

static void print_text(const struct run *run, const struct dist *d)
{
	const struct load_plan *plan = run->plan;
	const struct samples *s = &run->samples;

	printf("%s, %llu bytes", plan->proto == PLAN_UDP ? "UDP" : "TCP",
	       (unsigned long long)plan->bytes);
	print_cpu("client", plan->client_cpu);
	print_cpu("server", plan->server_cpu);
	printf("\n%llu trips in %.3f s; %llu trips before that discarded as warm-up\n",
	       (unsigned long long)d->count, (double)run->duration_ns / NS_PER_S,
	       (unsigned long long)run->warmup_trips);
	printf("lost %llu  late %llu  duplicated %llu  out of order %llu\n",
	       (unsigned long long)s->lost, (unsigned long long)s->late,
	       (unsigned long long)s->duplicated, (unsigned long long)s->out_of_order);
	printf("rtt us:");
	print_us("min", d->min);
	print_us("p50", d->p50);
	print_us("p90", d->p90);
	print_us("p99", d->p99);
	print_us("p99.9", d->p99_9);
	print_us("max", d->max);
	print_us("mean", (int64_t)(d->mean + 0.5));
	putchar('\n');
}

static int report(const struct ping_options *o, const struct run *run)
{
	size_t n = run->samples.count;
	int64_t *values = malloc(n * sizeof(*values));
	struct dist d;

	if (!values)
		return say_error(EXIT_FAILED, "no memory to sort %zu samples", n);
	for (size_t i = 0; i < n; i++)
		values[i] = (int64_t)run->samples.rtt_ns[i];
	dist_of(values, n, &d);
	free(values);
	if (o->json)
		print_json(run, &d);
	else
		print_text(run, &d);
	return EXIT_OK;
}

int cmd_ping(int argc, char **argv)
{
	struct ping_options o = {0};
	struct run run = {.plan = &o.plan};
	int code;

	plan_default(&o.plan);
	args_parse(&argp, argc, argv, &o);
	code = run_ping(&o, &run);
	if (code == EXIT_OK)
		code = report(&o, &run);
	samples_free(&run.samples);
	return code;
}
