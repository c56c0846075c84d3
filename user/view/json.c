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
	char name[32];

	set_ns(object, "min_ns", d->min);
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		snprintf(name, sizeof(name), "%s_ns", percentile_infos[i].key);
		set_ns(object, name, d->p[i]);
	}
	set_ns(object, "max_ns", d->max);
	set_ns(object, "mean_ns", llround(d->mean));
	set_ns(object, "stddev_ns", llround(d->stddev));
}

static void set_interval(json_t *object, const char *name, int64_t low, int64_t high)
{
	json_t *pair = json_array();

	json_array_append_new(pair, low == DIST_NONE ? json_null() : json_integer(low));
	json_array_append_new(pair, high == DIST_NONE ? json_null() : json_integer(high));
	json_object_set_new(object, name, pair);
}

/* 95 % confidence, lowest and highest value; null where the sample does not reach so far. */
static json_t *intervals_object(const struct report *report)
{
	const struct mean_interval *mean = &report->mean;
	json_t *intervals = json_object();
	char name[32];

	set_interval(intervals, "mean_ns",
		     mean->known ? llround(mean->mean_ns - mean->half_ns) : DIST_NONE,
		     mean->known ? llround(mean->mean_ns + mean->half_ns) : DIST_NONE);
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		snprintf(name, sizeof(name), "%s_ns", percentile_infos[i].key);
		set_interval(intervals, name, report->rtt.interval[i].low,
			     report->rtt.interval[i].high);
	}
	return intervals;
}

static void set_real(json_t *object, const char *key, const char *unit, double value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", key, unit);
	json_object_set_new(object, name, isnan(value) ? json_null() : json_real(value));
}

static json_t *os_object(const struct os_cost *os)
{
	static const char *const scopes[OS_SCOPES] = {"process", "machine"};
	json_t *out = json_object();

	set_count(out, "cpus", (uint64_t)os->cpus);
	for (int s = 0; s < OS_SCOPES; s++) {
		json_t *scope = json_object();

		for (int f = 0; f < OS_FIGURES; f++) {
			const struct os_figure_info *info = &os_figure_infos[f];

			set_real(scope, info->key, info->rate_unit, os->rate[s][f]);
			set_real(scope, info->key, info->trip_unit, os->per_trip[s][f]);
		}
		json_object_set_new(out, scopes[s], scope);
	}
	return out;
}

static json_t *hist_object(const struct hist *hist)
{
	json_t *out = json_object(), *counts = json_array();
	uint64_t used = hist_used(hist);

	set_count(out, "start_us", hist->start_us);
	set_count(out, "length_us", hist->length_us);
	set_count(out, "buckets", hist->buckets);
	for (uint64_t i = 0; i < used; i++)
		json_array_append_new(counts, json_integer((json_int_t)hist->counts[i]));
	json_object_set_new(out, "counts", counts); /* without the empty ones at the end */
	set_count(out, "below", hist->below);
	set_count(out, "above", hist->above);
	return out;
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
	set_cpu(load, "numa", plan->numa);
	set_count(load, "fifo", (uint64_t)plan->fifo);
	json_object_set_new(load, "mlock", json_boolean(plan->lock_memory));
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
	json_object_set_new(rtt, "binned", json_boolean(report->binned));
	json_object_set_new(rtt, "interval_95", intervals_object(report));
	set_count(rtt, "lost", s->lost);
	set_count(rtt, "lost_unmeasured", report->run->lost_unmeasured);
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
	/* Under another name: nobody shall take it for the whole. */
	json_object_set_new(out, report->half ? "half_rtt" : "rtt", rtt_object(report));
	if (report->service.count)
		json_object_set_new(out, report->half ? "half_service" : "service",
				    service_object(&report->service));
	set_real(out, "trips_per_s", "", report->trips_per_s);
	if (report->until_ci.percent > 0)
		json_object_set_new(out, "until_ci",
				    json_pack("{s:f, s:b}", "percent", report->until_ci.percent,
					      "reached", report->until_ci.reached));
	if (report->hist.buckets)
		json_object_set_new(out, "histogram", hist_object(&report->hist));
	json_object_set_new(out, "os", os_object(&report->os));
	if (report->noise)
		json_object_set_new(out, "noise", view_noise_json(report->noise));
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
