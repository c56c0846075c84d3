// SPDX-License-Identifier: GPL-2.0-only
/*
 * sockperf's report and full log. Its percentiles are its own: nearest rank whatever the tail, because it
 * has no way to say that one is not known.
 */
#include "load/clock.h"
#include "load/io.h"
#include "view/view.h"

static const double percents[] = {99.999, 99.99, 99.9, 99, 90, 75, 50, 25};

static const char dashes[] = "------------------------------\n";

static double us(int64_t ns)
{
	return (double)ns / NS_PER_US;
}

static int64_t percentile(const struct ordered *values, double percent)
{
	double rank = (double)(uint64_t)(0.5 + percent / 100 * (double)values->count);

	return ordered_at(values, rank < 1 ? 1 : (uint64_t)rank);
}

static void print_runs(FILE *out, const struct report *report)
{
	const struct run *run = report->run;
	unsigned long long count = report->rtt.count, lost = run->samples.lost;
	double valid = (double)run->duration_ns / NS_PER_S;

	fprintf(out,
		"sockperf: [Total Run] RunTime=%.3f sec; Warm up time=%llu msec; SentMessages=%llu; "
		"ReceivedMessages=%llu\n",
		valid + (double)run->warmup_ns / NS_PER_S,
		(unsigned long long)run->warmup_ns / NS_PER_MS,
		count + lost + (unsigned long long)run->warmup_trips,
		count + (unsigned long long)run->warmup_trips);
	fprintf(out, "sockperf: ========= Printing statistics for Server No: 0\n");
	fprintf(out,
		"sockperf: [Valid Duration] RunTime=%.3f sec; SentMessages=%llu; "
		"ReceivedMessages=%llu\n",
		valid, count + lost, count);
}

static void print_means(FILE *out, const struct report *report)
{
	const struct samples *s = &report->run->samples;

	fprintf(out, "sockperf: ====> avg-%s=%.3f (std-dev=%.3f)\n",
		report->half ? "latency" : "rtt", report->rtt.mean / NS_PER_US,
		report->rtt.stddev / NS_PER_US);
	fprintf(out,
		"sockperf: # dropped messages = %llu; # duplicated messages = %llu; "
		"# out-of-order messages = %llu\n",
		(unsigned long long)s->lost, (unsigned long long)s->duplicated,
		(unsigned long long)s->out_of_order);
}

static void print_percentiles(FILE *out, const struct report *report)
{
	unsigned long long count = report->rtt.count;

	fprintf(out,
		"sockperf: Total %llu observations; each percentile contains %.2f observations\n",
		count, (double)count / 100);
	fprintf(out, "sockperf: ---> <MAX> observation = %8.3f\n", us(report->rtt.max));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		fprintf(out, "sockperf: ---> percentile %6.3f = %8.3f\n", percents[i],
			us(percentile(&report->values, percents[i])));
	fprintf(out, "sockperf: ---> <MIN> observation = %8.3f\n", us(report->rtt.min));
}

int view_sockperf(const struct report *report)
{
	print_runs(stdout, report);
	print_means(stdout, report);
	printf("sockperf: Summary: %s is %.3f usec\n", report->half ? "Latency" : "Round trip",
	       report->rtt.mean / NS_PER_US);
	print_percentiles(stdout, report);
	return 0;
}

/* The options of sockperf that come nearest to what was run. */
static void write_parameters(FILE *file, const struct report *report)
{
	const struct load_plan *plan = report->run->plan;

	fprintf(file, "test was performed using the following parameters: ");
	if (plan->rate)
		fprintf(file, "--mps=%llu ", (unsigned long long)plan->rate);
	else
		fprintf(file, "--mps=max ");
	fprintf(file, "--burst=%llu --reply-every=1 --msg-size=%llu --time=%llu",
		(unsigned long long)plan->depth, (unsigned long long)plan->bytes,
		(unsigned long long)((report->run->duration_ns + NS_PER_S / 2) / NS_PER_S));
	fprintf(file, "%s%s%s\n", plan->proto == PLAN_TCP ? " --tcp" : "",
		plan->io == IO_SPIN ? " --nonblocked" : "", report->half ? "" : " --full-rtt");
}

/* Exactly 20 lines come before the header of the columns: scripts skip so many. */
static void write_full_log(FILE *file, const struct report *report)
{
	const struct samples *s = &report->run->samples;
	uint64_t zero = s->start_ns[0] - report->run->warmup_ns;

	fputs(dashes, file);
	write_parameters(file, report);
	fputs(dashes, file);
	print_runs(file, report);
	print_means(file, report);
	print_percentiles(file, report);
	fputs(dashes, file);
	fprintf(file, "packet, txTime(sec), rxTime(sec), %s(usec)\n",
		report->half ? "latency" : "rtt");
	for (size_t i = 0; i < s->count; i++) {
		uint64_t tx = s->start_ns[i] - zero;

		fprintf(file, "%zu, %.9f, %.9f, %.3f\n", i, (double)tx / NS_PER_S,
			(double)(tx + s->rtt_ns[i]) / NS_PER_S,
			(double)s->rtt_ns[i] / NS_PER_US / (report->half ? 2 : 1));
	}
	fputs(dashes, file);
}

int view_full_log(const struct report *report, const char *path)
{
	return view_file(report, path, write_full_log);
}
