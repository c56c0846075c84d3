// SPDX-License-Identifier: GPL-2.0-only
#include "collect/os_cost.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/clock.h"

const struct os_figure_info os_figure_infos[OS_FIGURES] = {
	[OS_CPU] = {"CPU(%)", "cpu", "_percent", "_ns_per_trip"},
	[OS_SWITCHES] = {"CtxSwitch/sec", "context_switches", "_per_s", "_per_trip"},
	[OS_CALLS] = {"SysCall/sec", "system_calls", "_per_s", "_per_trip"},
	[OS_INTERRUPTS] = {"Interrupt/sec", "interrupts", "_per_s", "_per_trip"},
};

static void set(struct os_counts *out, enum os_scope scope, enum os_figure figure, uint64_t count)
{
	out->known[scope][figure] = true;
	out->count[scope][figure] = count;
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in ticks; guests are in user. */
static void take_cpu_line(const char *line, struct os_counts *out)
{
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;

	if (sscanf(line,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
		return;
	set(out, OS_MACHINE, OS_CPU, user + nice + system + irq + softirq);
	out->idle_ticks = (int64_t)(idle + iowait + steal);
}

static void read_machine(struct os_counts *out)
{
	FILE *file = fopen("/proc/stat", "re");
	char *line = NULL;
	size_t size = 0;
	uint64_t count;

	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		if (!strncmp(line, "cpu ", 4))
			take_cpu_line(line, out);
		else if (sscanf(line, "ctxt %" SCNu64, &count) == 1)
			set(out, OS_MACHINE, OS_SWITCHES, count);
		else if (sscanf(line, "intr %" SCNu64, &count) == 1)
			set(out, OS_MACHINE, OS_INTERRUPTS, count);
	}
	free(line);
	fclose(file);
}

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * NS_PER_US;
}

static void read_process(struct os_counts *out)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return;
	set(out, OS_PROCESS, OS_CPU, ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime));
	set(out, OS_PROCESS, OS_SWITCHES, (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw));
}

void os_read(const struct calls *calls, struct os_counts *out)
{
	struct calls_count count;

	*out = (struct os_counts){.wall_ns = clock_ns()};
	read_machine(out);
	read_process(out);
	if (calls && !calls_read(calls, &count)) {
		set(out, OS_PROCESS, OS_CALLS, count.process);
		set(out, OS_MACHINE, OS_CALLS, count.machine);
	}
}

void os_add(struct os_counts *sum, const struct os_counts *before, const struct os_counts *after)
{
	sum->wall_ns += after->wall_ns - before->wall_ns;
	sum->trips += after->trips - before->trips;
	sum->idle_ticks += after->idle_ticks - before->idle_ticks;
	for (int s = 0; s < OS_SCOPES; s++)
		for (int f = 0; f < OS_FIGURES; f++) {
			sum->count[s][f] += after->count[s][f] - before->count[s][f];
			sum->known[s][f] = after->known[s][f] && before->known[s][f];
		}
}

/*
 * Busy ticks among all: in a short run there are so few that busy ones alone could be more than the time that
 * passed. Idle ones may even seem to go backwards.
 */
static double busy_share(const struct os_counts *sum)
{
	double busy = (double)sum->count[OS_MACHINE][OS_CPU];
	double idle = sum->idle_ticks > 0 ? (double)sum->idle_ticks : 0;

	return busy + idle > 0 ? busy / (busy + idle) : NAN;
}

void os_cost_of(const struct os_counts *sum, struct os_cost *out)
{
	double seconds = (double)sum->wall_ns / NS_PER_S, trips = (double)sum->trips;
	bool ran = sum->wall_ns && sum->trips;

	*out = (struct os_cost){.cpus = (int)sysconf(_SC_NPROCESSORS_ONLN)};
	out->counts_calls = sum->known[OS_MACHINE][OS_CALLS];
	for (int s = 0; s < OS_SCOPES; s++)
		for (int f = 0; f < OS_FIGURES; f++) {
			bool known = ran && sum->known[s][f];
			double count = known ? (double)sum->count[s][f] : NAN;

			out->rate[s][f] = count / seconds;
			out->per_trip[s][f] = count / trips;
		}
	out->rate[OS_PROCESS][OS_CPU] *= 100.0 / NS_PER_S;
	if (ran && sum->known[OS_MACHINE][OS_CPU]) {
		out->rate[OS_MACHINE][OS_CPU] = 100 * busy_share(sum);
		out->per_trip[OS_MACHINE][OS_CPU] =
			busy_share(sum) * (double)sum->wall_ns * out->cpus / trips;
	}
}
