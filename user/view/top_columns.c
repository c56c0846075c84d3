// SPDX-License-Identifier: GPL-2.0-only
#include "view/top_columns.h"

#include <stdio.h>
#include <string.h>

#include "view/names.h"

const char *const top_unit_names[TOP_UNITS] = {"µs", "ms", "auto"};

static void digits(double value, char *text)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(text, TOP_TEXT_MAX, "%.*f", decimals, value);
}

void top_text_ns(double ns, const struct top_format *format, char *text)
{
	static const struct {
		double ns;
		const char *suffix;
	} steps[] = {{1e9, "s"}, {1e6, "m"}, {1e3, "u"}, {1, "n"}};
	int i = 0;

	if (ns < 0)
		snprintf(text, TOP_TEXT_MAX, "-");
	else if (format->unit == UNIT_US)
		digits(ns / 1e3, text);
	else if (format->unit == UNIT_MS)
		snprintf(text, TOP_TEXT_MAX, ns < 99.95e6 ? "%.3f" : "%.1f", ns / 1e6);
	else {
		while (i < 3 && ns < steps[i].ns)
			i++;
		digits(ns / steps[i].ns, text);
		strncat(text, steps[i].suffix, TOP_TEXT_MAX - strlen(text) - 1);
	}
}

void top_text_rate(double per_second, char *text)
{
	if (per_second >= 99999.5)
		snprintf(text, TOP_TEXT_MAX, "%.0fk", per_second / 1000);
	else if (per_second >= 99.95 || per_second == 0)
		snprintf(text, TOP_TEXT_MAX, "%.0f", per_second);
	else
		digits(per_second, text);
}

const char *top_cause_name(int cause)
{
	return cause < 0 ? "" : cause_infos[cause].key;
}

/* --- the columns --------------------------------------------------------------------------------- */

static void program(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	names_comm(&row->who, text);
}

static void pid(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	snprintf(text, TOP_TEXT_MAX, "%u", row->who.pid);
}

static void role(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	snprintf(text, TOP_TEXT_MAX, "%s",
		 row->who.role == ROLE_SERVER ? "server"
		 : row->both_ends             ? "both"
					      : "client");
}

static void local(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	names_address(&row->who, false, text);
}

static void remote(const struct top_row *row, const struct top_format *format, char *text)
{
	const char *arrows[2][2] = {{"->", "<-"}, {"→", "←"}};
	char address[NAMES_ADDRESS_MAX];

	names_address(&row->who, true, address);
	snprintf(text, TOP_TEXT_MAX, "%s%s", arrows[format->utf8][row->who.role == ROLE_SERVER],
		 address);
}

static void peer_program(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	*text = '\0';
	if (row->both_ends)
		names_comm(&row->peer, text);
}

static void rate(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	top_text_rate(row->rate, text);
}

static void ns_or_none(double ns, const struct top_row *row, const struct top_format *format,
		       char *text)
{
	top_text_ns(row->turns ? ns : -1, format, text);
}

static void p50(const struct top_row *row, const struct top_format *format, char *text)
{
	ns_or_none((double)row->figures.p50, row, format, text);
}

static void p99(const struct top_row *row, const struct top_format *format, char *text)
{
	ns_or_none((double)row->figures.p99, row, format, text);
}

static void longest(const struct top_row *row, const struct top_format *format, char *text)
{
	ns_or_none((double)row->figures.max, row, format, text);
}

static void mean(const struct top_row *row, const struct top_format *format, char *text)
{
	ns_or_none(row->mean_ns, row, format, text);
}

static int largest(const struct top_row *row)
{
	int best = 0;

	for (int g = 1; g < TOP_GROUPS; g++)
		if (row->share[g] > row->share[best])
			best = g;
	return best;
}

static void where(const struct top_row *row, const struct top_format *format, char *text)
{
	int group = largest(row);

	(void)format;
	if (row->share[group] > 0)
		snprintf(text, TOP_TEXT_MAX, "%s %.0f%%", top_group_infos[group].key,
			 (double)row->share[group] * 100);
	else
		*text = '\0';
}

static void stalls(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	if (row->stalls)
		top_text_rate(row->stall_rate, text);
	else
		snprintf(text, TOP_TEXT_MAX, "-");
}

static void cause(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	snprintf(text, TOP_TEXT_MAX, "%s",
		 row->stalls && row->cause < 0 ? "other" : top_cause_name(row->cause));
}

static void cpus(const struct top_row *row, const struct top_format *format, char *text)
{
	if (!row->total)
		snprintf(text, TOP_TEXT_MAX, "-");
	else
		snprintf(text, TOP_TEXT_MAX, "%u%s%u", row->cpu_softirq, format->utf8 ? "→" : ">",
			 row->cpu_reader);
}

static void total(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	snprintf(text, TOP_TEXT_MAX, "%llu", (unsigned long long)row->total);
}

static void one_way(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	snprintf(text, TOP_TEXT_MAX, "%llu", (unsigned long long)row->one_way);
}

static void idle(const struct top_row *row, const struct top_format *format, char *text)
{
	(void)format;
	if (row->closed)
		snprintf(text, TOP_TEXT_MAX, "closed");
	else
		snprintf(text, TOP_TEXT_MAX, "%.0fs", (double)row->idle_ns / 1e9);
}

static double value_pid(const struct top_row *row)
{
	return row->who.pid;
}

static double value_rate(const struct top_row *row)
{
	return row->rate;
}

static double value_p50(const struct top_row *row)
{
	return row->turns ? (double)row->figures.p50 : -1;
}

static double value_p99(const struct top_row *row)
{
	return row->turns ? (double)row->figures.p99 : -1;
}

static double value_max(const struct top_row *row)
{
	return row->turns ? (double)row->figures.max : -1;
}

static double value_mean(const struct top_row *row)
{
	return row->mean_ns;
}

static double value_stalls(const struct top_row *row)
{
	return row->stall_rate;
}

/* Wake-ups across CPUs first. */
static double value_cpus(const struct top_row *row)
{
	return (row->cpu_softirq != row->cpu_reader) * 65536.0 + row->cpu_reader;
}

static double value_total(const struct top_row *row)
{
	return (double)row->total;
}

static double value_one_way(const struct top_row *row)
{
	return (double)row->one_way;
}

static double value_idle(const struct top_row *row)
{
	return (double)row->idle_ns;
}

static double value_where(const struct top_row *row)
{
	int group = largest(row);

	return group + (double)row->share[group];
}

static int text_program(const struct top_row *a, const struct top_row *b)
{
	return strncmp(a->who.comm, b->who.comm, FLOW_COMM);
}

static int text_peer(const struct top_row *a, const struct top_row *b)
{
	return strncmp(a->peer.comm, b->peer.comm, FLOW_COMM);
}

static int text_local(const struct top_row *a, const struct top_row *b)
{
	int order = memcmp(a->who.local, b->who.local, 16);

	return order ? order : a->who.local_port - b->who.local_port;
}

static int text_remote(const struct top_row *a, const struct top_row *b)
{
	int order = memcmp(a->who.remote, b->who.remote, 16);

	return order ? order : a->who.remote_port - b->who.remote_port;
}

static int text_role(const struct top_row *a, const struct top_row *b)
{
	return a->who.role - b->who.role;
}

static int text_cause(const struct top_row *a, const struct top_row *b)
{
	return b->cause - a->cause;
}

const struct top_column top_columns[] = {
	{"program", "PROGRAM", 12, 100, 3, true, false, false, "the program of this end", NULL,
	 text_program, program},
	{"pid", "PID", 7, 30, 0, false, false, false, "its process", value_pid, NULL, pid},
	{"role", "ROLE", 6, 20, 0, true, false, false,
	 "client, server (its client is elsewhere), or both: the two ends are on this host", NULL,
	 text_role, role},
	{"local", "LOCAL", 20, 25, 27, true, false, true, "address and port of this end", NULL,
	 text_local, local},
	{"remote", "REMOTE", 17, 95, 30, true, false, true,
	 "the other end's; the arrow points from client to server", NULL, text_remote, remote},
	{"peer", "PEER", 12, 15, 3, true, false, false,
	 "the other end's program, where that is on this host", NULL, text_peer, peer_program},
	{"rate", "TRIPS/S", 7, 90, 0, false, false, false,
	 "round trips (of a lone server: turns) per second", value_rate, NULL, rate},
	{"p50", "P50", 6, 85, 1, false, false, false, "median time of a trip", value_p50, NULL,
	 p50},
	{"p99", "P99", 6, 84, 1, false, false, false, "99th percentile; a dash below 100 trips",
	 value_p99, NULL, p99},
	{"max", "MAX", 6, 40, 1, false, false, false, "the longest", value_max, NULL, longest},
	{"mean", "MEAN", 6, 18, 1, false, false, false, "the mean", value_mean, NULL, mean},
	{"where", "WHERE", 9, 80, 23, true, true, false,
	 "where the time goes, by the legend's parts", value_where, NULL, where},
	{"stalls", "STALL/S", 7, 35, 0, false, false, false, "stalls per second, at both ends",
	 value_stalls, NULL, stalls},
	{"cause", "CAUSE", 11, 70, 4, true, false, false,
	 "what most stalls of the flow come from (layover-causes(7))", NULL, text_cause, cause},
	{"cpus", "CPU", 5, 50, 0, false, false, false, "CPU of the softirq, CPU of the reader",
	 value_cpus, NULL, cpus},
	{"total", "TRIPS", 9, 16, 0, false, false, false, "trips since it was first seen",
	 value_total, NULL, total},
	{"one_way", "ONEWAY", 6, 10, 0, false, false, false,
	 "messages without an answer before the next one", value_one_way, NULL, one_way},
	{"idle", "IDLE", 6, 12, 0, false, false, false,
	 "since the last trip; closed: gone in the next interval", value_idle, NULL, idle},
};

const int top_column_count = sizeof(top_columns) / sizeof(top_columns[0]);

int top_column_by_key(const char *key)
{
	for (int c = 0; c < top_column_count; c++)
		if (!strcasecmp(key, top_columns[c].key) || !strcasecmp(key, top_columns[c].title))
			return c;
	return -1;
}

void top_columns_fit(int cells, unsigned int hidden, int width[])
{
	int left = cells + 1; /* the first one has no gap before it */
	bool grew = true;

	memset(width, 0, (size_t)top_column_count * sizeof(*width));
	for (int priority = 100; priority > 0; priority--)
		for (int c = 0; c < top_column_count; c++) {
			if (top_columns[c].priority != priority || (hidden & 1u << c))
				continue;
			if (top_columns[c].width + 1 > left) {
				priority = 0; /* nothing less important takes its place */
				break;
			}
			width[c] = top_columns[c].width;
			left -= width[c] + 1;
		}
	while (left > 0 && grew) {
		grew = false;
		for (int c = 0; c < top_column_count && left > 0; c++) {
			if (!width[c] || width[c] >= top_columns[c].width + top_columns[c].stretch)
				continue;
			width[c]++;
			left--;
			grew = true;
		}
	}
}
