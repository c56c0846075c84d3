/* SPDX-License-Identifier: GPL-2.0-only */
/* The number of system calls, of this process and of the whole machine, counted by a BPF program. */
#ifndef LAYOVER_CALLS_H
#define LAYOVER_CALLS_H

#include "abi/calls.h"

struct calls;

/*
 * Counts from now on; every system call of the machine is slower meanwhile. 0 or -errno with a sentence
 * (-EPERM: not allowed). calls_close() ends it; it takes NULL.
 */
int calls_open(struct calls **out);
void calls_close(struct calls *calls);

/* The counts since calls_open(). 0 or -errno. */
int calls_read(const struct calls *calls, struct calls_count *out);

#endif
