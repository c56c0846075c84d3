// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/plan_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/place.h"
#include "load/clock.h"
#include "load/io.h"
#include "load/peer.h"
#include "load/plan.h"
#include "load/token.h"

#define AT(field) offsetof(struct load_plan, field)

/* A bare number is trips, anything else a time. */
static int parse_warmup(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	plan->warmup_trips = plan->warmup_ns = 0;
	if (!text[strspn(text, "0123456789")])
		return parse_count(what, text, 0, PLAN_TRIPS_MAX, &plan->warmup_trips);
	return parse_time(what, text, NS_PER_S, &plan->warmup_ns);
}

static int parse_duration(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	plan->time_given = true;
	return parse_time(what, text, NS_PER_S, &plan->duration_ns);
}

/* The index of text in names, or -EINVAL with a sentence that lists them. */
static int parse_name(const char *what, const char *text, const char *const *names, int *index)
{
	char list[160] = "";

	for (*index = 0; names[*index]; (*index)++) {
		if (!strcmp(names[*index], text))
			return 0;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 *index ? ", " : "", names[*index]);
	}
	return err_set(-EINVAL, "%s: '%s' is none of %s", what, text, list);
}

static int parse_transport(void *into, const char *what, const char *text)
{
	return parse_name(what, text, plan_proto_names, &((struct load_plan *)into)->proto);
}

/* "20,20" */
static int parse_sizes(const char *what, const char *text, uint64_t max, struct plan_writes *sizes)
{
	char *list = strdup(text), *rest = list, *word;
	int rc = list ? 0 : -ENOMEM;

	sizes->count = 0;
	while (!rc && (word = strsep(&rest, ","))) {
		if (sizes->count == max)
			rc = err_set(-ERANGE, "%s: at most %llu sizes", what,
				     (unsigned long long)max);
		else
			rc = parse_size(what, word, 1, PLAN_TCP_BYTES_MAX,
					&sizes->bytes[sizes->count++]);
	}
	free(list);
	return rc;
}

static int parse_bytes(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;
	struct plan_writes sizes;
	int rc = parse_sizes(what, text, 2, &sizes);

	if (rc)
		return rc;
	plan->bytes = sizes.bytes[0];
	plan->reply_bytes = sizes.count == 2 ? sizes.bytes[1] : 0;
	return 0;
}

/* The writes tell the message's size; a -m after them must agree. */
static int parse_parts(const char *what, const char *text, struct plan_writes *writes,
		       uint64_t *bytes)
{
	int rc = parse_sizes(what, text, PLAN_WRITES_MAX, writes);

	if (!rc)
		*bytes = plan_writes_bytes(writes);
	return rc;
}

static int parse_writes(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	return parse_parts(what, text, &plan->writes, &plan->bytes);
}

static int parse_reply_writes(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	return parse_parts(what, text, &plan->reply_writes, &plan->reply_bytes);
}

/* "uring-poll=500": so many looks before it sleeps. */
static int parse_method(const char *what, const char *text, struct load_plan *plan, int *method)
{
	static const char polling[] = "uring-poll=";

	if (strncmp(text, polling, sizeof(polling) - 1))
		return parse_name(what, text, io_method_names, method);
	*method = IO_URING_POLL;
	return parse_count(what, text + sizeof(polling) - 1, 1, 1000000000, &plan->polls);
}

static int parse_io(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	return parse_method(what, text, plan, &plan->io);
}

static int parse_server_io(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	return parse_method(what, text, plan, &plan->server_io);
}

static int parse_nodelay(void *into, const char *what, const char *text)
{
	(void)what;
	(void)text;
	((struct load_plan *)into)->nodelay = true;
	return 0;
}

static int parse_no_nodelay(void *into, const char *what, const char *text)
{
	(void)what;
	(void)text;
	((struct load_plan *)into)->nodelay = false;
	return 0;
}

static int parse_cork(void *into, const char *what, const char *text)
{
	return parse_name(what, text, plan_cork_names, &((struct load_plan *)into)->cork);
}

static int parse_congestion(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;

	if (strlen(text) >= sizeof(plan->congestion))
		return err_set(-EINVAL, "%s: '%s' is no congestion control", what, text);
	snprintf(plan->congestion, sizeof(plan->congestion), "%s", text);
	return 0;
}

/* "2" or "2-5" */
static int parse_range(const char *what, const char *text, bool here, struct plan_cpus *cpus)
{
	char *end, allowed[128];
	long first = strtol(text, &end, 10), last = first;
	bool good = end != text;

	if (*end == '-') {
		text = end + 1;
		last = strtol(text, &end, 10);
		good = good && end != text;
	}
	if (!good || *end || first < 0 || last < first || last >= CPUS_MAX)
		return err_set(-EINVAL, "%s: CPUs are named as in 0,2-5", what);
	for (long cpu = first; cpu <= last; cpu++) {
		cpus_format_allowed(allowed, sizeof(allowed));
		if (here && !cpus_allowed((int)cpu))
			return err_set(-EINVAL,
				       "%s: %ld is not a CPU this process may run on (allowed: %s)",
				       what, cpu, allowed);
		if (cpus->count == PLAN_CPUS_MAX)
			return err_set(-ERANGE, "%s: at most %d CPUs", what, PLAN_CPUS_MAX);
		cpus->cpu[cpus->count++] = (int)cpu;
	}
	return 0;
}

/* here: they are this machine's; the server knows its own. */
static int parse_cpus(const char *what, const char *text, bool here, struct plan_cpus *cpus)
{
	char *list = strdup(text), *rest = list, *word;
	int rc = list ? 0 : -ENOMEM;

	cpus->count = 0;
	while (!rc && (word = strsep(&rest, ",")))
		rc = parse_range(what, word, here, cpus);
	free(list);
	return rc;
}

static int parse_client_cpus(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;
	int rc = parse_cpus(what, text, true, &plan->client_cpus);

	plan->client_cpu = plan->client_cpus.cpu[0];
	return rc;
}

static int parse_server_cpus(void *into, const char *what, const char *text)
{
	struct load_plan *plan = into;
	int rc = parse_cpus(what, text, false, &plan->server_cpus);

	plan->server_cpu = plan->server_cpus.cpu[0];
	return rc;
}

static int parse_peer(void *into, const char *what, const char *text)
{
	return peer_parse(what, text, &((struct load_plan *)into)->peer);
}

static int parse_token(void *into, const char *what, const char *text)
{
	static struct token token; /* the last one given */
	struct load_plan *plan = into;

	(void)what;
	plan->token = &token;
	return token_read(text, &token);
}

void plan_pin_lab(struct load_plan *plan)
{
	if (plan->client_cpu < 0)
		plan->client_cpu = cpus_nth(0);
	if (plan->server_cpu < 0)
		plan->server_cpu = cpus_nth(plan->client_cpu == cpus_nth(1) ? 0 : 1);
}

#define METHODS                                                                                             \
	"how the client moves messages: block (default), spin, select, poll, epoll, uring, uring-poll[=N] " \
	"(looks N times before it sleeps, default 1000), uring-fixed (registered buffers)"

const struct setting plan_common_settings[] = {
	{.doc = "Messages:"},
	{"udp", 'u', NULL, "UDP instead of TCP", SETTING_WORD, AT(proto), PLAN_UDP, 0, NULL},
	{"transport", 0, "WHAT",
	 "tcp, udp, mcast (UDP to a group, IPv4), raw (IP, needs root), unix (stream)", SETTING_OWN,
	 0, 0, 0, parse_transport},
	{"ipv4", '4', NULL, "use IPv4 only", SETTING_WORD, AT(family), PLAN_IPV4, 0, NULL},
	{"ipv6", '6', NULL, "use IPv6 only", SETTING_WORD, AT(family), PLAN_IPV6, 0, NULL},
	{"bytes", 'm', "SIZE[,SIZE]",
	 "size of request and reply, or of each, 1 to 1G (UDP: 65507); default 64", SETTING_OWN, 0,
	 0, 0, parse_bytes},
	{"unconnected", 0, NULL, "UDP sockets without connect(), to compare", SETTING_FLAG,
	 AT(unconnected), 0, 0, NULL},
	{.doc = "Socket options:"},
	{"sndbuf", 0, "SIZE", "SO_SNDBUF of both ends", SETTING_SIZE, AT(sndbuf), 1, 1 << 30, NULL},
	{"rcvbuf", 0, "SIZE", "SO_RCVBUF of both ends", SETTING_SIZE, AT(rcvbuf), 1, 1 << 30, NULL},
	{"busy-poll", 0, "US", "SO_BUSY_POLL: the kernel polls the device for US microseconds",
	 SETTING_COUNT, AT(busy_poll_us), 1, 1000000, NULL},
	{"tos", 0, "N", "IP_TOS or IPV6_TCLASS", SETTING_INT, AT(tos), 0, 255, NULL},
	{"nodelay", 0, NULL, "TCP_NODELAY: small writes leave at once (default)", SETTING_OWN, 0, 0,
	 0, parse_nodelay},
	{"no-nodelay", 0, NULL, "Nagle's algorithm instead", SETTING_OWN, 0, 0, 0,
	 parse_no_nodelay},
	{"quickack", 0, NULL, "TCP_QUICKACK again after every message", SETTING_FLAG, AT(quickack),
	 0, 0, NULL},
	{"cork", 0, "HOW", "TCP_CORK around every message: flush, or hold (it is never taken off)",
	 SETTING_OWN, 0, 0, 0, parse_cork},
	{"congestion", 0, "NAME", "TCP_CONGESTION", SETTING_OWN, 0, 0, 0, parse_congestion},
	{"mss", 0, "SIZE", "TCP_MAXSEG", SETTING_COUNT, AT(mss), 88, 65535, NULL},
	{"bind", 0, "ADDR[:PORT]", "the client's messages come from there", SETTING_TEXT, AT(bind),
	 0, 0, NULL},
	{.doc = "How long:"},
	{"time", 't', "TIME", "measure for TIME (2s, 500ms; a bare number: seconds); default 2s",
	 SETTING_OWN, 0, 0, 0, parse_duration},
	{"warmup", 'w', "WHAT",
	 "discard this first: a time or a number of trips; default 1000 trips, or 400ms if that is "
	 "over sooner",
	 SETTING_OWN, 0, 0, 0, parse_warmup},
	{.doc = "The server:"},
	{"token-file", 0, "FILE", "the secret that the server's --token-file has, too", SETTING_OWN,
	 0, 0, 0, parse_token},
	{"shutdown-server", 0, NULL,
	 "the server ends afterwards, if it was started with --allow-shutdown", SETTING_FLAG,
	 AT(shutdown_server), 0, 0, NULL},
	{.doc = "Where:"},
	{"client-cpu", 0, "CPU",
	 "run the client on CPU; default: not pinned, in the lab the first CPU", SETTING_CPU,
	 AT(client_cpu), 0, 0, NULL},
	/* The server knows its own CPUs. */
	{"server-cpu", 0, "CPU",
	 "run the server on its host's CPU; default: not pinned, in the lab the second CPU",
	 SETTING_INT, AT(server_cpu), 0, CPUS_MAX - 1, NULL},
	{"client-cpus", 0, "LIST",
	 "the client's threads on these CPUs, in turn (0,2-5): load's senders; an open loop's sender, then its "
	 "receiver",
	 SETTING_OWN, 0, 0, 0, parse_client_cpus},
	{"server-cpus", 0, "LIST", "the server's sessions on these CPUs, in turn: load's flows",
	 SETTING_OWN, 0, 0, 0, parse_server_cpus},
	{"numa", 0, "NODE", "both ends on the CPUs and in the memory of their host's NUMA node",
	 SETTING_INT, AT(numa), 0, PLACE_NODES_MAX - 1, NULL},
	{"fifo", 0, "N",
	 "SCHED_FIFO with priority N for the measuring threads of both ends (needs privileges)",
	 SETTING_INT, AT(fifo), 1, PLACE_FIFO_MAX, NULL},
	{"mlock", 0, NULL,
	 "lock the memory of the client and the server's messages; says so where it is not allowed",
	 SETTING_FLAG, AT(lock_memory), 0, 0, NULL},
	{0},
};

const struct setting plan_trip_settings[] = {
	{.doc = "Round trips:"},
	{"peer", 0, "WHAT",
	 "what answers at TARGET: layover (default), sockperf ('sockperf sr', port 11111), echo (any TCP or UDP echo "
	 "service, port 7)",
	 SETTING_OWN, 0, 0, 0, parse_peer},
	{"writes", 0, "SIZE,...", "send the request in writes of these sizes", SETTING_OWN, 0, 0, 0,
	 parse_writes},
	{"reply-writes", 0, "SIZE,...", "the server sends the reply in writes of these sizes",
	 SETTING_OWN, 0, 0, 0, parse_reply_writes},
	{"receive-first", 0, NULL,
	 "the server begins: it sends then receives, the client receives then sends", SETTING_FLAG,
	 AT(receive_first), 0, 0, NULL},
	{"crr", 0, NULL, "connect, request, reply and close for every trip", SETTING_FLAG, AT(crr),
	 0, 0, NULL},
	{"verify", 0, NULL, "fill and check the payload of every message", SETTING_FLAG, AT(verify),
	 0, 0, NULL},
	{"rate", 0, "N",
	 "send N messages per second, whether replies come or not: response time counts from when each should "
	 "have left, service time from when it did",
	 SETTING_COUNT, AT(rate), 1, 10000000, NULL},
	{"depth", 0, "N", "keep N messages under way; default 1", SETTING_COUNT, AT(depth), 1, 4096,
	 NULL},
	{"playback", 0, "FILE", "send as its lines say: time in seconds, size in bytes (UDP)",
	 SETTING_TEXT, AT(playback), 0, 0, NULL},
	{"io", 0, "METHOD", METHODS, SETTING_OWN, 0, 0, 0, parse_io},
	{"server-io", 0, "METHOD", "the same for the server", SETTING_OWN, 0, 0, 0,
	 parse_server_io},
	{"iterations", 'i', "N", "measure N round trips", SETTING_COUNT, AT(iterations), 1,
	 PLAN_TRIPS_MAX, NULL},
	{"timeout", 0, "TIME", "a datagram's trip without reply is lost after TIME; default 1s",
	 SETTING_TIME, AT(timeout_ns), NS_PER_S, 0, NULL},
	{"server-delay", 0, "TIME", "the server computes for TIME before it replies", SETTING_TIME,
	 AT(server_delay_ns), NS_PER_S, 0, NULL},
	{0},
};
