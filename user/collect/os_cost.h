/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a run costs the operating system: processor time, context switches, system calls, interrupts, of this
 * process and of the whole machine. The machine's show what else was going on. Read outside measured trips.
 */
#ifndef LAYOVER_OS_COST_H
#define LAYOVER_OS_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/calls.h"

enum os_scope { OS_PROCESS, OS_MACHINE, OS_SCOPES };
enum os_figure { OS_CPU, OS_SWITCHES, OS_CALLS, OS_INTERRUPTS, OS_FIGURES };

struct os_figure_info {
	const char *title;     /* as latte prints it: "CtxSwitch/sec" */
	const char *key;       /* "context_switches": in names of JSON and CSV */
	const char *rate_unit; /* the end of those names: "_per_s", for CPU "_percent" */
	const char *trip_unit; /* "_per_trip", for CPU "_ns_per_trip" */
};

extern const struct os_figure_info os_figure_infos[OS_FIGURES];

/* Counts at one moment, or between two. */
struct os_counts {
	bool known[OS_SCOPES][OS_FIGURES];
	uint64_t count[OS_SCOPES][OS_FIGURES]; /* OS_CPU: the process's ns, the machine's ticks */
	int64_t idle_ticks;                    /* the machine's others; can seem to go backwards */
	uint64_t wall_ns;
	uint64_t trips; /* the caller's */
};

/* What is shown. NAN: not known, or there is no such number (a process has no interrupts). */
struct os_cost {
	double rate[OS_SCOPES][OS_FIGURES];     /* per second; OS_CPU: percent, see os_cost_of() */
	double per_trip[OS_SCOPES][OS_FIGURES]; /* OS_CPU: ns */
	int cpus;
	bool counts_calls; /* it was asked for and allowed */
};

/* The present counts. calls may be NULL: system calls are not known. trips is left to the caller. */
void os_read(const struct calls *calls, struct os_counts *out);

/* Adds what happened from `before` to `after` to sum, which starts as {0}. */
void os_add(struct os_counts *sum, const struct os_counts *before, const struct os_counts *after);

/*
 * Rates and shares of a sum. CPU is per cent of one CPU for the process, and of all CPUs for the machine,
 * as their names promise.
 */
void os_cost_of(const struct os_counts *sum, struct os_cost *out);

#endif
