/* SPDX-License-Identifier: GPL-2.0-only */
/* What each CPU and each device's interrupt did between two readings of /proc. */
#ifndef LAYOVER_CPU_LOAD_H
#define LAYOVER_CPU_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tune/interrupts.h"

/* Rates are per second, shares 0 … 1 of a CPU's time; below 0: not known. */
struct cpu_load_cpu {
	int cpu;
	double busy, irq_rate, net_rx_rate, ksoftirqd;
};

struct cpu_load_irq {
	int irq;
	char name[40], queue[16], affinity[32];
	double rate;
	const double *rates; /* by column, that is by index of cpus */
};

struct cpu_load {
	struct cpu_load_cpu *cpus;
	int cpu_count;
	struct cpu_load_irq *irqs; /* the busiest first; those that never fired are left out */
	int irq_count;

	/* The former reading. */
	struct interrupts interrupts, softirqs;
	uint64_t *busy_ticks, *all_ticks, *ksoftirqd_ns;
	pid_t *ksoftirqd; /* by column, 0: not found */
	double *rates;
};

/* Takes the first reading. 0 or -errno with a sentence; cpu_load_free() either way. Starts as {0}. */
int cpu_load_open(struct cpu_load *load);

/* Reads again: all figures are of the time since the last reading. 0 or -errno with a sentence. */
int cpu_load_update(struct cpu_load *load);

void cpu_load_free(struct cpu_load *load);

#endif
