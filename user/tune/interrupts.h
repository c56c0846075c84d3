/* SPDX-License-Identifier: GPL-2.0-only */
/* /proc/interrupts and /proc/softirqs: counts per CPU. */
#ifndef LAYOVER_INTERRUPTS_H
#define LAYOVER_INTERRUPTS_H

#include <stdint.h>

struct interrupt {
	int irq;          /* its number, -1: a row with a word instead (LOC, NET_RX) */
	char *label;      /* that word, or the number's digits */
	char *chip;       /* "PCI-MSIX-0000:00:01.0 1-edge"; its form depends on the kernel */
	char *name;       /* as its driver named it, several when shared; "" none */
	uint64_t *counts; /* by column */
};

struct interrupts {
	int columns;
	int *cpus; /* by column: CPUs that are offline have none */
	struct interrupt *rows;
	int n;
	uint64_t at_ns; /* CLOCK_MONOTONIC when it was read, 0: by interrupts_parse() */
};

/* From the file's text. 0 or -EINVAL/-ENOMEM with a sentence; interrupts_free() either way. */
int interrupts_parse(const char *text, struct interrupts *out);

/* Reads /proc/interrupts or /proc/softirqs (path). As interrupts_parse(). */
int interrupts_read(const char *path, struct interrupts *out);

void interrupts_free(struct interrupts *all);

/* By number; NULL: none. */
const struct interrupt *interrupts_find(const struct interrupts *all, int irq);

/* By label (NET_RX); NULL: none. */
const struct interrupt *interrupts_label(const struct interrupts *all, const char *label);

/*
 * Events per second in a column between two readings of a row, 0 where a reading lacks it. The two must be
 * of the same CPUs: a column is a number, not a CPU.
 */
double interrupts_rate(const struct interrupts *from, const struct interrupt *a,
		       const struct interrupts *to, const struct interrupt *b, int column);

#endif
