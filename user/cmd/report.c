// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "load/clock.h"
#include "model/dist.h"
#include "model/hist.h"
#include "model/split.h"
#include "view/view.h"

/* What the split knows of the server's end, and both ends' counters. */
static void compute_server(const struct tracing *tracing, struct report *report)
{
	const struct records_counters *theirs = &tracing->remote.counters;
	struct server_report *server = &report->server;

	*server = (struct server_report){
		.traced = !report->split->alone,
		.same_kernel = tracing->same_kernel,
		.kernel = tracing->server_kernel,
		.counters = *theirs,
	};
	if (!server->traced)
		server->reason = tracing->same_kernel || tracing->remote.traced
					 ? "none of its records belongs to a trip"
					 : tracing->remote.reason;
	report->counters = tracing->counters;
	report->counters.dropped += theirs->dropped;
	report->counters.unfinished += theirs->unfinished;
	report->counters.recursion_misses += theirs->recursion_misses;
}

static int compute_split(const struct report_sources *from, struct split *split,
			 struct report *report)
{
	struct tracing *tracing = from->tracing;
	int rc = 0;

	if (tracing->collect) {
		rc = split_of(&tracing->join.trips, from->run->samples.rtt_ns, split);
		report->split = split;
		report->trips = &tracing->join.trips;
		compute_server(tracing, report);
		report->nic = tracing->nic;
	}
	if (tracing->overhead)
		overhead_of(tracing->pairs, tracing->pair_count, &report->overhead);
	return rc;
}

/* *sorted, which the caller frees, receives what the distribution is of. */
static int dist_of_times(const uint64_t *ns, size_t n, bool half, int64_t **sorted,
			 struct dist *dist)
{
	int64_t *values = malloc(2 * n * sizeof(*values));

	*sorted = values;
	if (!values)
		return err_set(-ENOMEM, "no memory to sort %zu samples", n);
	for (size_t i = 0; i < n; i++)
		values[i] = report_value(ns[i], half);
	dist_of(values, values + n, n, dist);
	return 0;
}

/* *values, which the caller frees, holds what report->values points to. */
static int compute_latency(const struct report_sources *from, struct report *report,
			   int64_t **values)
{
	const struct samples *samples = &from->run->samples;
	const struct bins *bins = &from->observer->bins;
	size_t n = samples->count;
	int64_t *service = NULL;
	int rc = 0;

	if (bins->counts) {
		report->binned = true;
		dist_of_bins(bins, &report->rtt);
		if (from->observer->service.counts)
			dist_of_bins(&from->observer->service, &report->service);
		report->values = (struct ordered){.bins = bins, .count = bins->exact.count};
		return 0;
	}
	if (samples->service_ns)
		rc = dist_of_times(samples->service_ns, n, report->half, &service,
				   &report->service);
	free(service);
	if (!rc)
		rc = dist_of_times(samples->rtt_ns, n, report->half, values, &report->rtt);
	report->values = (struct ordered){.sorted = *values, .count = n};
	return rc;
}

static void compute_run(const struct report_sources *from, struct report *report)
{
	const struct observer *observer = from->observer;
	const struct os_counts *cost = &observer->cost;
	uint64_t lost = from->run->samples.lost;

	report->mean = batches_interval(&observer->batches);
	report->until_ci.percent = from->outputs->until_ci;
	report->until_ci.reached = observer->ci_reached;
	os_cost_of(cost, &report->os);
	/* While trips ran; where they overlap, there is nothing in between to leave out. */
	if (plan_overlaps(from->run->plan) && from->run->duration_ns)
		report->trips_per_s =
			(double)report->rtt.count * NS_PER_S / (double)from->run->duration_ns;
	else if (cost->wall_ns && cost->trips > lost)
		report->trips_per_s =
			(double)(cost->trips - lost) * NS_PER_S / (double)cost->wall_ns;
}

static int show(const struct outputs *o, const struct report *report)
{
	int rc = 0;

	if (o->dump)
		rc = view_dump(report, o->dump);
	if (!rc && o->full_log)
		rc = view_full_log(report, o->full_log);
	if (rc)
		return rc;
	return report->sweep ? o->format->print_sweep(report) : o->format->print(report);
}

uint64_t report_trips(const struct run *run, const struct observer *observer)
{
	return observer->bins.counts ? observer->bins.exact.count : run->samples.count;
}

int report_print(const struct report_sources *from)
{
	const struct outputs *o = from->outputs;
	struct report report = {
		.run = from->run,
		.lab = from->lab,
		.noise = from->noise,
		.sweep = from->sweep,
		.half = o->half,
		.hist = {o->hist.start_us, o->hist.length_us, o->hist.buckets, NULL, 0, 0},
	};
	struct split *split = calloc(1, sizeof(*split));
	int64_t *values = NULL;
	int rc = split ? compute_latency(from, &report, &values) : -ENOMEM;

	if (!rc && report.hist.buckets)
		rc = hist_of(&report.values, &report.hist);
	if (!rc)
		rc = compute_split(from, split, &report);
	if (!rc) {
		compute_run(from, &report);
		rc = show(o, &report);
	}
	hist_free(&report.hist);
	free(values);
	free(split);
	return rc;
}
