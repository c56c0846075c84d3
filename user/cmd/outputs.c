// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/error.h"
#include "load/clock.h"
#include "model/bins.h"
#include "model/hist.h"

#define AT(field) offsetof(struct outputs, field)

/* Until an interval is reached the default time would mostly be too short. */
#define UNTIL_CI_TIME_NS (60ULL * NS_PER_S)

static int parse_format(void *into, const char *what, const char *text)
{
	struct outputs *o = into;
	const char *names[VIEW_FORMATS_MAX + 1] = {0};
	const char *nearest;

	o->format = view_format_by_name(text);
	if (o->format)
		return 0;
	for (int i = 0; view_formats[i].name; i++)
		names[i] = view_formats[i].name;
	nearest = args_nearest(text, names);
	return err_set(-EINVAL, "%s: there is no format '%s'%s%s%s", what, text,
		       nearest ? "; did you mean '" : "; --help lists them", nearest ? nearest : "",
		       nearest ? "'?" : "");
}

/* "1%" or "1" */
static int parse_until_ci(void *into, const char *what, const char *text)
{
	struct outputs *o = into;
	char *end;

	o->until_ci = strtod(text, &end);
	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(o->until_ci >= 0.01 && o->until_ci <= 100))
		return err_set(-EINVAL, "%s: '%s' is not a percentage from 0.01%% to 100%%", what,
			       text);
	return 0;
}

/* "START,LENGTH,COUNT" in microseconds */
static int parse_hist(void *into, const char *what, const char *text)
{
	struct outputs *o = into;
	static const char *const parts[] = {"START", "LENGTH", "COUNT"};
	static const uint64_t min[] = {0, 1, 1};
	static const uint64_t max[] = {1000000000, 1000000000, HIST_BUCKETS_MAX};
	uint64_t *const values[] = {&o->hist.start_us, &o->hist.length_us, &o->hist.buckets};
	char *list = strdup(text), *rest = list;
	int rc = list ? 0 : -ENOMEM;

	for (int i = 0; i < 3 && !rc; i++) {
		const char *word = strsep(&rest, ",");
		char name[64];

		snprintf(name, sizeof(name), "%s, %s", what, parts[i]);
		if (!word || (i == 2 && rest))
			rc = err_set(-EINVAL, "%s: '%s' is not START,LENGTH,COUNT", what, text);
		else
			rc = parse_count(name, word, min[i], max[i], values[i]);
	}
	free(list);
	return rc;
}

const struct setting output_settings[] = {
	{.doc = "Output:"},
	{"json", 'j', NULL, "print JSON, the same as --format json", SETTING_FLAG, AT(json), 0, 0,
	 NULL},
	{"format", 0, "NAME",
	 "text, json, csv, hgrm (HdrHistogram), or as others print: sockperf, latte-csv, "
	 "netperf-kv, netperf-csv",
	 SETTING_OWN, 0, 0, 0, parse_format},
	{"dump", 0, "FILE", "write one CSV row per measured trip to FILE", SETTING_TEXT, AT(dump),
	 0, 0, NULL},
	{"full-log", 0, "FILE", "the same in the layout of sockperf's --full-log", SETTING_TEXT,
	 AT(full_log), 0, 0, NULL},
	{"half", 0, NULL, "half round trips instead of whole ones; without the split", SETTING_FLAG,
	 AT(half), 0, 0, NULL},
	{"hist", 0, "START,LENGTH,COUNT",
	 "a histogram of COUNT buckets of LENGTH us from START us; in text and JSON", SETTING_OWN,
	 0, 0, 0, parse_hist},
	{"interval", 0, "TIME", "a line about every TIME while measuring", SETTING_TIME,
	 AT(interval_ns), NS_PER_S, 0, NULL},
	{"until-ci", 0, "PERCENT",
	 "measure until the mean is known to +-PERCENT with 95 % confidence, at most for --time, "
	 "by default 60s",
	 SETTING_OWN, 0, 0, 0, parse_until_ci},
	{"histogram-only", 0, NULL,
	 "keep no samples but bins of 0.1 %, in bounded memory; without the split", SETTING_FLAG,
	 AT(histogram_only), 0, 0, NULL},
	{"count-syscalls", 0, NULL,
	 "count system calls by BPF, which slows each of them; needs privileges", SETTING_FLAG,
	 AT(count_syscalls), 0, 0, NULL},
	{0},
};

int outputs_check(struct outputs *o, struct load_plan *plan)
{
	const struct view_format *format = o->json ? view_format_by_name("json") : o->format;

	if (o->json && o->format && o->format != format)
		return err_set(-EINVAL, "-j is --format json: leave out one of them");
	o->format = format ? format : &view_formats[0];
	if (o->half && o->format->whole_only)
		return err_set(-EINVAL, "--half cannot be told in the format %s", o->format->name);
	if (o->hist.buckets && !o->format->shows_hist)
		return err_set(-EINVAL, "--hist has no place in the format %s; use text or json",
			       o->format->name);
	if (o->histogram_only && (o->dump || o->full_log))
		return err_set(-EINVAL, "--histogram-only keeps no samples that %s could write",
			       o->dump ? "--dump" : "--full-log");
	if (o->until_ci && !plan->time_given)
		plan->duration_ns = UNTIL_CI_TIME_NS;
	return 0;
}

/* Start and round trip; for the report the values in order and what sorting them takes. */
enum { TRIP_BYTES = 4 * sizeof(uint64_t), SERVICE_BYTES = sizeof(uint64_t) };
/* With the split: the stages of a trip, its CPUs, and its place among the others. */
enum { SPLIT_TRIP_BYTES = 180 };

static uint64_t available_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (uint64_t)kib << 10;
}

int outputs_memory(const struct outputs *o, const struct load_plan *plan, bool split)
{
	uint64_t need = plan->iterations * (TRIP_BYTES + (split ? SPLIT_TRIP_BYTES : 0) +
					    (plan_overlaps(plan) ? SERVICE_BYTES : 0));
	uint64_t available = available_bytes();
	const double gib = 1 << 30;

	if (o->histogram_only || need <= 1 << 30)
		return 0;
	if (available && need > available)
		return err_set(-ENOMEM,
			       "%llu trips take %.1f GiB of memory, %.1f GiB are available; "
			       "--histogram-only takes less than 2 MiB",
			       (unsigned long long)plan->iterations, (double)need / gib,
			       (double)available / gib);
	say_note("%llu trips will take up to %.1f GiB of memory; --histogram-only takes less than "
		 "2 MiB",
		 (unsigned long long)plan->iterations, (double)need / gib);
	return 0;
}
