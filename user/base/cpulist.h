/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of CPUs as the kernel and people write them: lists (0-3,8) and hexadecimal masks (1,0000000f). */
#ifndef LAYOVER_CPULIST_H
#define LAYOVER_CPULIST_H

#include <sched.h>
#include <stddef.h>

enum { CPULIST_TEXT = 4096 }; /* bytes that hold any list or mask of CPU_SETSIZE CPUs */

/* A list, "" is the empty set. 0, or -EINVAL/-ERANGE with a sentence that names `what`. */
int cpulist_parse(const char *what, const char *text, cpu_set_t *set);

/* The shortest list, as the kernel prints it; "" for the empty set. */
void cpulist_format(const cpu_set_t *set, char *text, size_t size);

/* A mask as in rps_cpus: groups of up to eight digits, the first is the highest. 0 or -EINVAL, no sentence. */
int cpumask_parse(const char *text, cpu_set_t *set);

/* The shortest mask that the kernel reads as that set; "0" for the empty set. */
void cpumask_format(const cpu_set_t *set, char *text, size_t size);

/* The n-th (from 0) CPU of a set, -1: it has fewer. */
int cpulist_nth(const cpu_set_t *set, int n);

/* *set without those of less. */
void cpulist_subtract(cpu_set_t *set, const cpu_set_t *less);

#endif
