// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/plan_settings.h"

#include <string.h>

#include "base/args.h"
#include "base/cpus.h"
#include "load/clock.h"
#include "load/plan.h"

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

const struct setting plan_settings[] = {
	{.doc = "Messages:"},
	{"udp", 'u', NULL, "UDP instead of TCP", SETTING_WORD, AT(proto), PLAN_UDP, 0, NULL},
	{"ipv4", '4', NULL, "use IPv4 only", SETTING_WORD, AT(family), PLAN_IPV4, 0, NULL},
	{"ipv6", '6', NULL, "use IPv6 only", SETTING_WORD, AT(family), PLAN_IPV6, 0, NULL},
	{"bytes", 'm', "SIZE", "size of request and reply, 1 to 1G (UDP: 65507); default 64",
	 SETTING_SIZE, AT(bytes), 1, PLAN_TCP_BYTES_MAX, NULL},
	{"unconnected", 0, NULL, "UDP sockets without connect(), to compare", SETTING_FLAG,
	 AT(unconnected), 0, 0, NULL},
	{"verify", 0, NULL, "fill and check the payload of every message", SETTING_FLAG, AT(verify),
	 0, 0, NULL},
	{.doc = "How long:"},
	{"iterations", 'i', "N", "measure N round trips", SETTING_COUNT, AT(iterations), 1,
	 PLAN_TRIPS_MAX, NULL},
	{"time", 't', "TIME", "measure for TIME (2s, 500ms; a bare number: seconds); default 2s",
	 SETTING_OWN, 0, 0, 0, parse_duration},
	{"warmup", 'w', "WHAT",
	 "discard this first: a time or a number of trips; default 1000 trips, or 400ms if that is "
	 "over sooner",
	 SETTING_OWN, 0, 0, 0, parse_warmup},
	{"timeout", 0, "TIME", "a UDP trip without reply is lost after TIME; default 1s",
	 SETTING_TIME, AT(timeout_ns), NS_PER_S, 0, NULL},
	{.doc = "Where:"},
	{"client-cpu", 0, "CPU",
	 "run the client on CPU; default: not pinned, in the lab the first CPU", SETTING_CPU,
	 AT(client_cpu), 0, 0, NULL},
	/* The server knows its own CPUs. */
	{"server-cpu", 0, "CPU",
	 "run the server on its host's CPU; default: not pinned, in the lab the second CPU",
	 SETTING_INT, AT(server_cpu), 0, CPUS_MAX - 1, NULL},
	{"server-delay", 0, "TIME", "the server computes for TIME before it replies", SETTING_TIME,
	 AT(server_delay_ns), NS_PER_S, 0, NULL},
	{0},
};
