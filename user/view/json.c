// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "base/version.h"
#include "load/io.h"
#include "view/view.h"

static void set_ns(json_t *object, const char *name, int64_t ns)
{
	json_object_set_new(object, name, ns == DIST_NONE ? json_null() : json_integer(ns));
}

static void set_count(json_t *object, const char *name, uint64_t count)
{
	json_object_set_new(object, name, json_integer((json_int_t)count));
}

static void set_cpu(json_t *object, const char *name, int cpu)
{
	json_object_set_new(object, name, cpu < 0 ? json_null() : json_integer(cpu));
}

static void set_dist(json_t *object, const struct dist *d)
{
	set_ns(object, "min_ns", d->min);
	set_ns(object, "p50_ns", d->p[DIST_P50]);
	set_ns(object, "p90_ns", d->p[DIST_P90]);
	set_ns(object, "p99_ns", d->p[DIST_P99]);
	set_ns(object, "p99_9_ns", d->p[DIST_P99_9]);
	set_ns(object, "max_ns", d->max);
	set_ns(object, "mean_ns", llround(d->mean));
}

json_t *view_json_header(const char *command)
{
	struct utsname host;

	uname(&host);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "schema", "layover/1", "version",
			 LAYOVER_VERSION, "host", host.nodename, "kernel", host.release, "clock",
			 "CLOCK_MONOTONIC", "command", command);
}

int view_json_print(json_t *value)
{
	int rc = value ? json_dumpf(value, stdout, JSON_INDENT(2)) : -1;

	json_decref(value);
	putchar('\n');
	if (rc || fflush(stdout))
		return err_set(-EIO, "cannot write the JSON to standard output: %s",
			       strerror(errno));
	return 0;
}

static json_t *load_object(const struct run *run)
{
	const struct load_plan *plan = run->plan;
	json_t *load = json_object();

	json_object_set_new(load, "protocol", json_string(plan_proto_names[plan->proto]));
	set_count(load, "bytes", plan->bytes);
	set_count(load, "reply_bytes", plan_reply_bytes(plan));
	json_object_set_new(load, "io", json_string(io_method_names[plan->io]));
	json_object_set_new(load, "server_io", json_string(io_method_names[plan->server_io]));
	set_cpu(load, "client_cpu", plan->client_cpu);
	set_cpu(load, "server_cpu", plan->server_cpu);
	set_count(load, "duration_ns", run->duration_ns);
	set_count(load, "warmup_trips", run->warmup_trips);
	set_count(load, "warmup_ns", run->warmup_ns);
	return load;
}

static json_t *rtt_object(const struct report *report)
{
	const struct samples *s = &report->run->samples;
	json_t *rtt = json_object();

	set_count(rtt, "count", report->rtt.count);
	set_dist(rtt, &report->rtt);
	set_ns(rtt, "stddev_ns", llround(report->rtt.stddev));
	set_count(rtt, "lost", s->lost);
	set_count(rtt, "late", s->late);
	set_count(rtt, "duplicated", s->duplicated);
	set_count(rtt, "out_of_order", s->out_of_order);
	return rtt;
}

/* From when a message really left; "rtt" counts from when it should have. */
static json_t *service_object(const struct dist *dist)
{
	json_t *service = json_object();

	set_count(service, "count", dist->count);
	set_dist(service, dist);
	set_ns(service, "stddev_ns", llround(dist->stddev));
	return service;
}

static json_t *stage_object(const struct stage_row *row)
{
	const struct stage_info *info = &stage_infos[row->stage];
	json_t *stage = json_object();

	json_object_set_new(stage, "key", json_string(info->key));
	json_object_set_new(stage, "side",
			    json_string(info->side == SIDE_client ? "client" : "server"));
	json_object_set_new(stage, "layer", json_string(info->layer));
	set_count(stage, "count", row->passed);
	set_dist(stage, &row->dist);
	json_object_set_new(stage, "share", json_real(row->share));
	json_object_set_new(stage, "share_p50", json_real(row->band_share[BAND_P50]));
	json_object_set_new(stage, "share_p99", json_real(row->band_share[BAND_P99]));
	set_cpu(stage, "cpu_from", row->cpu_from);
	set_cpu(stage, "cpu_to", row->cpu_to);
	return stage;
}

static json_t *split_object(const struct split *split)
{
	json_t *stages = json_array();

	for (int r = 0; r < split->count; r++)
		json_array_append_new(stages, stage_object(&split->rows[r]));
	return json_pack("{s:o}", "stages", stages);
}

static json_t *counters_object(const struct report *report)
{
	json_t *counters = json_object();

	set_count(counters, "trips", report->split->trips);
	set_count(counters, "matched", report->split->matched);
	set_count(counters, "partial", report->split->partial);
	set_count(counters, "unmatched", report->split->unmatched);
	set_count(counters, "dropped", report->counters.dropped);
	set_count(counters, "unfinished", report->counters.unfinished);
	set_count(counters, "recursion_misses", report->counters.recursion_misses);
	return counters;
}

static json_t *server_object(const struct server_report *server)
{
	json_t *object = json_object(), *counters = json_object();

	json_object_set_new(object, "traced", json_boolean(server->traced));
	json_object_set_new(object, "reason",
			    server->reason ? json_string(server->reason) : json_null());
	json_object_set_new(object, "same_kernel", json_boolean(server->same_kernel));
	json_object_set_new(object, "kernel", json_string(server->kernel));
	set_count(counters, "dropped", server->counters.dropped);
	set_count(counters, "unfinished", server->counters.unfinished);
	set_count(counters, "recursion_misses", server->counters.recursion_misses);
	json_object_set_new(object, "counters", counters);
	return object;
}

static json_t *effect_object(const struct overhead_figure *f)
{
	json_t *effect = json_object();

	set_ns(effect, "off_ns", llround(f->off_ns));
	set_ns(effect, "on_ns", llround(f->on_ns));
	set_ns(effect, "difference_ns", llround(f->difference_ns));
	set_ns(effect, "low_ns", llround(f->low_ns));
	set_ns(effect, "high_ns", llround(f->high_ns));
	return effect;
}

int view_json(const struct report *report)
{
	json_t *out = view_json_header("ping");

	json_object_set_new(out, "load", load_object(report->run));
	json_object_set_new(out, "rtt", rtt_object(report));
	if (report->service.count)
		json_object_set_new(out, "service", service_object(&report->service));
	if (report->split) {
		json_object_set_new(out, "split", split_object(report->split));
		json_object_set_new(out, "server", server_object(&report->server));
		json_object_set_new(out, "counters", counters_object(report));
	}
	if (report->nic.interface[0])
		json_object_set_new(out, "nic",
				    json_pack("{s:s, s:I, s:I}", "interface", report->nic.interface,
					      "stamped", (json_int_t)report->nic.stamped,
					      "clock_uncertainty_ns",
					      (json_int_t)report->nic.uncertainty_ns));
	if (report->overhead.pairs >= 2)
		json_object_set_new(out, "overhead",
				    json_pack("{s:I, s:o, s:o}", "pairs",
					      (json_int_t)report->overhead.pairs, "p50",
					      effect_object(&report->overhead.p50), "p99",
					      effect_object(&report->overhead.p99)));
	return view_json_print(out);
}
