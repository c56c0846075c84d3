// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "base/error.h"
#include "view/names.h"
#include "view/top.h"

/* Of rates and shares: what a float holds. */
enum { REAL_DIGITS = 7 };

static json_t *ns(double value)
{
	return value < 0 ? json_null() : json_integer(llround(value));
}

static json_t *end_object(const struct flow_record *who)
{
	char comm[NAMES_COMM_MAX], local[NAMES_ADDRESS_MAX], remote[NAMES_ADDRESS_MAX];

	return json_pack("{s:s, s:i, s:I, s:s, s:s, s:s}", "program", names_comm(who, comm), "pid",
			 (int)who->pid, "netns", (json_int_t)who->netns, "role",
			 who->role == ROLE_SERVER ? "server" : "client", "local",
			 names_address(who, false, local), "remote",
			 names_address(who, true, remote));
}

static json_t *row_stages(const struct top_row *row)
{
	double stage_ns[STAGES], sum = top_row_stages(row, stage_ns);
	json_t *list = json_array();

	for (int s = 0; sum > 0 && s < STAGES; s++)
		if (stage_ns[s] > 0)
			json_array_append_new(list, json_pack("{s:s, s:o, s:f}", "key",
							      stage_infos[s].key, "mean_ns",
							      ns(stage_ns[s]), "share",
							      stage_ns[s] / sum));
	return list;
}

static json_t *row_object(const struct top_row *row)
{
	json_t *out = end_object(&row->who);
	const struct top_figures *f = &row->figures;
	json_t *figures = json_pack(
		"{s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:s?, s:I}", "turns",
		(json_int_t)row->turns, "total_turns", (json_int_t)row->total, "turns_per_second",
		row->rate, "p50_ns", ns((double)f->p50), "p99_ns", ns((double)f->p99), "max_ns",
		ns((double)f->max), "mean_ns", ns(row->turns ? row->mean_ns : -1), "one_way",
		(json_int_t)row->one_way, "stalls", (json_int_t)row->stalls, "cause",
		row->cause < 0 ? NULL : top_cause_name(row->cause), "idle_ns",
		(json_int_t)row->idle_ns);

	json_object_update(out, figures);
	json_decref(figures);
	json_object_set_new(out, "closed", json_boolean(row->closed));
	json_object_set_new(out, "peer", row->both_ends ? end_object(&row->peer) : json_null());
	json_object_set_new(out, "peer_turns", json_integer((json_int_t)row->peer_turns));
	json_object_set_new(out, "cpu_softirq", json_integer(row->cpu_softirq));
	json_object_set_new(out, "cpu_reader", json_integer(row->cpu_reader));
	json_object_set_new(out, "stages", row_stages(row));
	return out;
}

static json_t *stage_objects(const struct top *top)
{
	json_t *list = json_array();

	for (int i = 0; i < top->stage_count; i++) {
		const struct top_stage *s = &top->stages[i];

		json_array_append_new(
			list, json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:f}", "key",
					stage_infos[s->stage].key, "passed", (json_int_t)s->passed,
					"p50_ns", ns((double)s->p50), "p90_ns", ns((double)s->p90),
					"p99_ns", ns((double)s->p99), "max_ns", ns((double)s->max),
					"mean_ns", ns(s->mean_ns), "share", s->share));
	}
	return list;
}

static json_t *event_objects(const struct events *events, uint64_t since)
{
	json_t *list = json_array();
	uint64_t first = events->count > EVENTS_KEPT ? events->count - EVENTS_KEPT + 1 : 1;

	for (uint64_t n = since + 1 > first ? since + 1 : first; n <= events->count; n++) {
		const struct event *e = events_by_number(events, n);
		json_t *object = end_object(&e->who);

		json_object_set_new(object, "at_ns", json_integer((json_int_t)e->at_ns));
		json_object_set_new(object, "took_ns", json_integer((json_int_t)e->took_ns));
		json_object_set_new(object, "kind", json_string(e->is_stall ? "stall" : "outlier"));
		json_object_set_new(object, "cause",
				    e->cause < 0 ? json_null()
						 : json_string(top_cause_name(e->cause)));
		json_array_append_new(list, object);
	}
	return list;
}

/* All but the flows. */
static json_t *head_object(const struct top *top, const struct events *events, uint64_t since,
			   const struct collect_counters *counters)
{
	return json_pack(
		"{s:s, s:s, s:I, s:f, s:{s:I, s:I}, s:{s:I, s:I, s:I}, s:I, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I}}",
		"schema", "layover/1", "command", "top", "at_ns", (json_int_t)top->at_ns,
		"interval_s", top->seconds, "turns", "client", (json_int_t)top->turns[0], "server",
		(json_int_t)top->turns[1], "sockets", "seen", (json_int_t)top->flows, "open",
		(json_int_t)top->open, "closed", (json_int_t)top->closed_flows, "stalls",
		(json_int_t)top->stalls, "stages", stage_objects(top), "events",
		event_objects(events, since), "counters", "dropped", (json_int_t)counters->dropped,
		"recursion_misses", (json_int_t)counters->recursion_misses, "no_place",
		(json_int_t)counters->no_place, "unplaced", (json_int_t)counters->unplaced,
		"not_listed", (json_int_t)top->not_listed);
}

/* The locks of stdio would be a third of the time: JSON comes in chunks of a few bytes. */
static int put(const char *text, size_t size, void *unused)
{
	(void)unused;
	return fwrite_unlocked(text, 1, size, stdout) == size ? 0 : -1;
}

/* Prints it and lets go of it. */
static int print(json_t *object, size_t flags)
{
	const size_t format = JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS) | flags;
	int rc = object ? json_dump_callback(object, put, NULL, format) : -1;

	json_decref(object);
	return rc;
}

/* One flow is in memory at a time: ten thousand of them as one tree are 160 MB. */
int view_top_json(const struct top *top, const struct events *events, uint64_t since,
		  const struct collect_counters *counters)
{
	int rc;

	putchar('{');
	rc = print(head_object(top, events, since, counters), JSON_EMBED);
	fputs(",\"flows\":[", stdout);
	for (size_t i = 0; !rc && i < top->row_count; i++) {
		if (i)
			putchar(',');
		rc = print(row_object(&top->rows[i]), 0);
	}
	puts("]}");
	if (fflush(stdout))
		rc = -1;
	return rc ? err_set(-EIO, "cannot write JSON") : 0;
}
