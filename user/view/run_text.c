// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "view/text.h"

#include <math.h>

#include "load/clock.h"

void text_us(int64_t ns, int width)
{
	double us = (double)ns / NS_PER_US;

	if (ns == DIST_NONE)
		printf("%*s", width, "-");
	else if (us < 100)
		printf("%*.2f", width, us);
	else if (us < 1000)
		printf("%*.1f", width, us);
	else if (us < 1e6)
		printf("%*.0f", width, us);
	else
		printf("%*.2fs", width - 1, us / 1e6);
}

/* "p99.999" fills a usual column: it gets one more. */
static int width_of(int percentile)
{
	return percentile == DIST_P99_999 ? TEXT_NUMBER + 1 : TEXT_NUMBER;
}

/* A row of the mean and each percentile; `which` says which of its three numbers. */
static void print_row(const struct report *report, const char *name,
		      int64_t (*which)(const struct report *report, int percentile))
{
	printf("%-*s", TEXT_KEY, name);
	text_us(which(report, -1), TEXT_NUMBER);
	for (int i = 0; i < DIST_PERCENTILES; i++)
		text_us(which(report, i), width_of(i));
	putchar('\n');
}

/* percentile -1: the mean */
static int64_t value_of(const struct report *report, int percentile)
{
	return percentile < 0 ? llround(report->rtt.mean) : report->rtt.p[percentile];
}

static int64_t low_of(const struct report *report, int percentile)
{
	const struct mean_interval *mean = &report->mean;

	if (percentile >= 0)
		return report->rtt.interval[percentile].low;
	return mean->known ? llround(mean->mean_ns - mean->half_ns) : DIST_NONE;
}

static int64_t high_of(const struct report *report, int percentile)
{
	const struct mean_interval *mean = &report->mean;

	if (percentile >= 0)
		return report->rtt.interval[percentile].high;
	return mean->known ? llround(mean->mean_ns + mean->half_ns) : DIST_NONE;
}

const char *text_what(const struct report *report)
{
	if (report->service.count)
		return report->half ? "half response" : "response";
	return report->half ? "half trip" : "round trip";
}

void text_statistics(const struct style *style, const struct report *report)
{
	printf("\n%s%-*s%*s", style->colour ? "\033[1m" : "", TEXT_KEY, "", TEXT_NUMBER, "mean");
	for (int i = 0; i < DIST_PERCENTILES; i++)
		printf("%*s", width_of(i), percentile_infos[i].name);
	printf("%s\n", style->colour ? "\033[0m" : "");
	print_row(report, text_what(report), value_of);
	print_row(report, "95 % from", low_of);
	print_row(report, "95 % to", high_of);
	printf("stddev %.2f %s, %.0f trips/s\n", report->rtt.stddev / NS_PER_US, style->micro,
	       report->trips_per_s);
}

/* "16583 (1.00/iteration)" */
static void format_cost(const struct os_cost *os, enum os_scope scope, enum os_figure figure,
			const char *micro, char *text, size_t size)
{
	double rate = os->rate[scope][figure], per_trip = os->per_trip[scope][figure];

	if (isnan(rate))
		snprintf(text, size, "-");
	else if (figure == OS_CPU)
		snprintf(text, size, "%.1f (%.2f %s/iteration)", rate, per_trip / NS_PER_US, micro);
	else
		snprintf(text, size, "%.0f (%.2f/iteration)", rate, per_trip);
}

void text_os_cost(const struct style *style, const struct os_cost *os)
{
	enum { COLUMN = 30 };

	printf("\n%-*s%-*swhole machine (%d CPUs)\n", TEXT_KEY, "", COLUMN, "this process",
	       os->cpus);
	for (int f = 0; f < OS_FIGURES; f++) {
		char own[64], all[64];

		format_cost(os, OS_PROCESS, f, style->micro, own, sizeof(own));
		format_cost(os, OS_MACHINE, f, style->micro, all, sizeof(all));
		/* "µ" is two bytes in one column. */
		printf("%-*s%-*s%s%s\n", TEXT_KEY, os_figure_infos[f].title,
		       COLUMN + (f == OS_CPU && style->utf8), own, all,
		       f == OS_CALLS && !os->counts_calls ? " (--count-syscalls)" : "");
	}
}

void text_hist(const struct hist *hist)
{
	uint64_t used = hist_used(hist);

	if (!hist->buckets)
		return;
	printf("\nInterval(usec)\t Frequency\n");
	for (uint64_t i = 0; i < used; i++)
		printf("%7llu \t %llu\n",
		       (unsigned long long)(hist->start_us + i * hist->length_us),
		       (unsigned long long)hist->counts[i]);
	if (hist->below + hist->above)
		printf("outside: %llu below, %llu above\n", (unsigned long long)hist->below,
		       (unsigned long long)hist->above);
}

void text_remarks(const struct report *report)
{
	if (report->until_ci.percent > 0)
		printf("the mean is %sknown to +-%g %% with 95 %% confidence: %.2f +-%.2f us\n",
		       report->until_ci.reached ? "" : "not yet ", report->until_ci.percent,
		       report->mean.mean_ns / NS_PER_US, report->mean.half_ns / NS_PER_US);
	if (report->binned)
		printf("no samples were kept: percentiles are exact to 0.1 %%\n");
}

void view_interim(FILE *out, const struct interim *line)
{
	double seconds = (double)line->length_ns / NS_PER_S;
	const struct dist *d = &line->rtt;

	fprintf(out, "%8.1f s %9llu trips %8.0f/s", (double)line->since_begin_ns / NS_PER_S,
		(unsigned long long)d->count, (double)d->count / seconds);
	if (d->count)
		fprintf(out, "  %smean %.2f p50 %.2f max %.2f us", line->half ? "half " : "",
			d->mean / NS_PER_US, (double)d->p[DIST_P50] / NS_PER_US,
			(double)d->max / NS_PER_US);
	if (line->lost)
		fprintf(out, "  lost %llu", (unsigned long long)line->lost);
	fputc('\n', out);
	fflush(out);
}

void text_wrapped(const char *text, int column, int indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		int columns = 0;

		for (size_t i = 0; i < length; i++)
			columns += ((unsigned char)text[i] & 0xc0) != 0x80; /* UTF-8 heads only */
		if (!first && column + 1 + columns > TEXT_COLUMNS) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		fwrite(text, 1, length, stdout);
		first = false;
		column += columns;
		text += length + (text[length] == ' ');
	}
	putchar('\n');
}
