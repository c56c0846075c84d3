// SPDX-License-Identifier: GPL-2.0-only
/* netperf's -k (KEY=value) and -o (titles, then a row): one table for both. What is not known is -1. */
#include <math.h>
#include <stdio.h>

#include "load/clock.h"
#include "view/view.h"

enum kind { UNITS, RATE, MICRO, MICRO_2, MICRO_3, PERCENT, DEMAND };

struct selector {
	const char *key, *title;
	enum kind kind;
	double (*value)(
		const struct report *report); /* ns where the kind is a time; NAN: not known */
};

static double ns_or_nan(int64_t ns)
{
	return ns == DIST_NONE ? NAN : (double)ns;
}

static double rate(const struct report *r)
{
	return r->trips_per_s;
}

/* Its time per transaction is that between two of them. */
static double rt_latency(const struct report *r)
{
	return r->trips_per_s > 0 ? NS_PER_S / r->trips_per_s : NAN;
}

static double minimum(const struct report *r)
{
	return ns_or_nan(r->rtt.min);
}

static double mean(const struct report *r)
{
	return r->rtt.mean;
}

static double p50(const struct report *r)
{
	return ns_or_nan(r->rtt.p[DIST_P50]);
}

static double p90(const struct report *r)
{
	return ns_or_nan(r->rtt.p[DIST_P90]);
}

static double p99(const struct report *r)
{
	return ns_or_nan(r->rtt.p[DIST_P99]);
}

static double maximum(const struct report *r)
{
	return ns_or_nan(r->rtt.max);
}

static double stddev(const struct report *r)
{
	return r->rtt.stddev;
}

static double local_cpu(const struct report *r)
{
	return r->os.rate[OS_MACHINE][OS_CPU];
}

/* Only a server on this machine is seen from here. */
static double remote_cpu(const struct report *r)
{
	return r->lab ? local_cpu(r) : NAN;
}

static double local_demand(const struct report *r)
{
	return r->os.per_trip[OS_MACHINE][OS_CPU];
}

static double remote_demand(const struct report *r)
{
	return r->lab ? local_demand(r) : NAN;
}

static const struct selector selectors[] = {
	{"THROUGHPUT", "Throughput", RATE, rate},
	{"THROUGHPUT_UNITS", "Throughput Units", UNITS, NULL},
	{"RT_LATENCY", "Round Trip Latency usec/tran", MICRO_3, rt_latency},
	{"MIN_LATENCY", "Minimum Latency Microseconds", MICRO, minimum},
	{"MEAN_LATENCY", "Mean Latency Microseconds", MICRO_2, mean},
	{"P50_LATENCY", "50th Percentile Latency Microseconds", MICRO, p50},
	{"P90_LATENCY", "90th Percentile Latency Microseconds", MICRO, p90},
	{"P99_LATENCY", "99th Percentile Latency Microseconds", MICRO, p99},
	{"MAX_LATENCY", "Maximum Latency Microseconds", MICRO, maximum},
	{"STDDEV_LATENCY", "Stddev Latency Microseconds", MICRO_2, stddev},
	{"LOCAL_CPU_UTIL", "Local CPU Util %", PERCENT, local_cpu},
	{"REMOTE_CPU_UTIL", "Remote CPU Util %", PERCENT, remote_cpu},
	{"LOCAL_SD", "Local Service Demand", DEMAND, local_demand},
	{"REMOTE_SD", "Remote Service Demand", DEMAND, remote_demand},
};

enum { SELECTORS = sizeof(selectors) / sizeof(selectors[0]) };

static void print_value(const struct selector *s, const struct report *report)
{
	static const int decimals[] = {
		[RATE] = 2, [MICRO] = 0, [MICRO_2] = 2, [MICRO_3] = 3, [PERCENT] = 2, [DEMAND] = 3};
	bool time = s->kind != RATE && s->kind != PERCENT;
	double value;

	if (s->kind == UNITS) {
		fputs("Trans/s", stdout);
		return;
	}
	value = s->value(report);
	if (isnan(value))
		value = -1;
	else if (time)
		value /= NS_PER_US;
	printf("%.*f", decimals[s->kind], value);
}

int view_netperf_kv(const struct report *report)
{
	for (int i = 0; i < SELECTORS; i++) {
		printf("%s=", selectors[i].key);
		print_value(&selectors[i], report);
		putchar('\n');
	}
	return 0;
}

int view_netperf_csv(const struct report *report)
{
	for (int i = 0; i < SELECTORS; i++)
		printf("%s%s", i ? "," : "", selectors[i].title);
	putchar('\n');
	for (int i = 0; i < SELECTORS; i++) {
		if (i)
			putchar(',');
		print_value(&selectors[i], report);
	}
	putchar('\n');
	return 0;
}
