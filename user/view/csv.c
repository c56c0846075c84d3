// SPDX-License-Identifier: GPL-2.0-only
/* One row for a whole run, every unit in its column's name. An empty field is not known. */
#include <math.h>
#include <stdio.h>

#include "load/clock.h"
#include "load/io.h"
#include "view/view.h"

static const char *separator;

static void title(const char *prefix, const char *name, const char *unit)
{
	printf("%s%s%s%s", separator, prefix, name, unit);
	separator = ",";
}

static void put_text(const char *text)
{
	printf("%s%s", separator, text);
	separator = ",";
}

static void put_number(double value, int decimals)
{
	printf("%s", separator);
	separator = ",";
	if (!isnan(value))
		printf("%.*f", decimals, value);
}

static void put_count(uint64_t count)
{
	put_number((double)count, 0);
}

static void put_us(int64_t ns)
{
	put_number(ns == DIST_NONE ? NAN : (double)ns / NS_PER_US, 3);
}

static const char *const load_titles[] = {
	"protocol",    "bytes",      "reply_bytes", "io",           "server_io",
	"client_cpu",  "server_cpu", "duration_s",  "warmup_trips", "trips",
	"trips_per_s", "lost",       "late",        "duplicated",   "out_of_order",
};

static void put_load(const struct report *report)
{
	const struct run *run = report->run;
	const struct load_plan *plan = run->plan;

	put_text(plan_proto_names[plan->proto]);
	put_count(plan->bytes);
	put_count(plan_reply_bytes(plan));
	put_text(io_method_names[plan->io]);
	put_text(io_method_names[plan->server_io]);
	put_number(plan->client_cpu < 0 ? NAN : plan->client_cpu, 0);
	put_number(plan->server_cpu < 0 ? NAN : plan->server_cpu, 0);
	put_number((double)run->duration_ns / NS_PER_S, 6);
	put_count(run->warmup_trips);
	put_count(report->rtt.count);
	put_number(report->trips_per_s, 2);
	put_count(run->samples.lost);
	put_count(run->samples.late);
	put_count(run->samples.duplicated);
	put_count(run->samples.out_of_order);
}

static void title_latency(const char *prefix)
{
	title(prefix, "min", "_us");
	title(prefix, "mean", "_us");
	title(prefix, "mean_low", "_us");
	title(prefix, "mean_high", "_us");
	title(prefix, "stddev", "_us");
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		title(prefix, percentile_infos[i].key, "_us");
		title(prefix, percentile_infos[i].key, "_low_us");
		title(prefix, percentile_infos[i].key, "_high_us");
	}
	title(prefix, "max", "_us");
}

static void put_latency(const struct report *report)
{
	const struct dist *d = &report->rtt;
	const struct mean_interval *mean = &report->mean;

	put_us(d->min);
	put_number(d->mean / NS_PER_US, 3);
	put_number(mean->known ? (mean->mean_ns - mean->half_ns) / NS_PER_US : NAN, 3);
	put_number(mean->known ? (mean->mean_ns + mean->half_ns) / NS_PER_US : NAN, 3);
	put_number(d->stddev / NS_PER_US, 3);
	for (int i = 0; i < DIST_PERCENTILES; i++) {
		put_us(d->p[i]);
		put_us(d->interval[i].low);
		put_us(d->interval[i].high);
	}
	put_us(d->max);
}

static const char *const scopes[OS_SCOPES] = {"process_", "machine_"};

static void title_os(void)
{
	for (int s = 0; s < OS_SCOPES; s++)
		for (int f = 0; f < OS_FIGURES; f++) {
			title(scopes[s], os_figure_infos[f].key, os_figure_infos[f].rate_unit);
			title(scopes[s], os_figure_infos[f].key, os_figure_infos[f].trip_unit);
		}
}

static void put_os(const struct os_cost *os)
{
	for (int s = 0; s < OS_SCOPES; s++)
		for (int f = 0; f < OS_FIGURES; f++) {
			put_number(os->rate[s][f], 2);
			put_number(os->per_trip[s][f], 3);
		}
}

static void put_titles(const struct report *report)
{
	separator = "";
	for (size_t i = 0; i < sizeof(load_titles) / sizeof(load_titles[0]); i++)
		title("", load_titles[i], "");
	title_latency(report->half ? "half_rtt_" : "rtt_");
	title_os();
	putchar('\n');
}

static void put_row(const struct report *report)
{
	separator = "";
	put_load(report);
	put_latency(report);
	put_os(&report->os);
	putchar('\n');
}

int view_csv(const struct report *report)
{
	put_titles(report);
	put_row(report);
	return 0;
}

int view_csv_sweep(const struct report *report)
{
	if (report->sweep == SWEEP_FIRST)
		put_titles(report);
	put_row(report);
	fflush(stdout);
	return 0;
}
