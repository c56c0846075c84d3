// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>

#include "view/view.h"

static const char *const cpu_names[LEG_CPUS] = {
	[CPU_SEND] = "send",   [CPU_IRQ] = "irq",       [CPU_SOFTIRQ] = "softirq",
	[CPU_WAKER] = "waker", [CPU_READER] = "reader",
};

static const char *const leg_names[SIDES] = {[SIDE_client] = "request", [SIDE_server] = "reply"};

static const struct {
	enum trip_flags flag;
	const char *name;
} flag_names[] = {
	{TRIP_MATCHED, "matched"},       {TRIP_PARTIAL, "partial"},   {TRIP_ALONE, "alone"},
	{TRIP_RETRANS, "retransmitted"}, {TRIP_DISORDER, "disorder"}, {TRIP_UNMATCHED, "unmatched"},
};

static void write_head(FILE *file, const struct report *report)
{
	const struct split *split = report->split;

	fputs(report->half ? "seq,start_ns,half_rtt_ns" : "seq,start_ns,rtt_ns", file);
	if (report->run->samples.service_ns)
		fputs(report->half ? ",half_service_ns" : ",service_ns", file);
	for (int r = 0; split && r < split->count; r++)
		fprintf(file, ",%s_ns", stage_infos[split->rows[r].stage].key);
	for (int leg = 0; split && leg < SIDES; leg++)
		for (int c = 0; c < LEG_CPUS; c++)
			fprintf(file, ",%s_%s_cpu", leg_names[leg], cpu_names[c]);
	fputs(split ? ",flags\n" : "\n", file);
}

static void write_flags(FILE *file, uint8_t flags)
{
	const char *separator = "";

	fputc(',', file);
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
		if (!(flags & flag_names[i].flag))
			continue;
		fprintf(file, "%s%s", separator, flag_names[i].name);
		separator = "+";
	}
}

static void write_row(FILE *file, const struct report *report, size_t trip)
{
	const struct samples *s = &report->run->samples;
	const struct split *split = report->split;

	fprintf(file, "%zu,%" PRIu64 ",%" PRId64, trip + 1, s->start_ns[trip],
		report_value(s->rtt_ns[trip], report->half));
	if (s->service_ns)
		fprintf(file, ",%" PRId64, report_value(s->service_ns[trip], report->half));
	for (int r = 0; split && r < split->count; r++)
		fprintf(file, ",%" PRIu64, trips_stage(report->trips, trip, split->rows[r].stage));
	for (int leg = 0; split && leg < SIDES; leg++)
		for (int c = 0; c < LEG_CPUS; c++) {
			uint16_t cpu = report->trips->cpu[trip][leg][c];

			if (cpu == CPU_UNKNOWN)
				fputc(',', file);
			else
				fprintf(file, ",%u", cpu);
		}
	if (split)
		write_flags(file, report->trips->flags[trip]);
	fputc('\n', file);
}

static void write_dump(FILE *file, const struct report *report)
{
	write_head(file, report);
	for (size_t i = 0; i < report->run->samples.count; i++)
		write_row(file, report, i);
}

int view_dump(const struct report *report, const char *path)
{
	return view_file(report, path, write_dump);
}
