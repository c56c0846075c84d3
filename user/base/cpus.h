/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPUs there are, which this process may use, and pinning. */
#ifndef LAYOVER_CPUS_H
#define LAYOVER_CPUS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPUS_MAX = 1024 };

/* True when this process was allowed to run on cpu when it started. */
bool cpus_allowed(int cpu);

/* The n-th (from 0) allowed CPU; wraps around when there are fewer. */
int cpus_nth(int n);

/* An allowed CPU that is neither a nor b, or -1. Either may be -1 (unknown). */
int cpus_other_than(int a, int b);

/* Number of allowed CPUs, at least 1. */
int cpus_count(void);

/* "0-3,8" into text. */
void cpus_format_allowed(char *text, size_t size);

/* Pins the calling thread to cpu; -1 leaves it as it is. 0 or -errno with a sentence. */
int cpus_pin(int cpu);

#endif
