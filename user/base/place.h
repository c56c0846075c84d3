/* SPDX-License-Identifier: GPL-2.0-only */
/* Where and how a measuring thread runs: CPU, NUMA node, scheduling policy, memory that stays. */
#ifndef LAYOVER_PLACE_H
#define LAYOVER_PLACE_H

#include <pthread.h>
#include <stddef.h>

enum { PLACE_FIFO_MAX = 98, PLACE_NODES_MAX = 1024 };

/*
 * Restricts the calling thread, and threads it makes from now on, to the CPUs and the memory of a NUMA node;
 * -1 leaves both as they are. On a machine without NUMA node 0 is all of it. 0 or -errno with a sentence.
 */
int place_on_node(int node);

/*
 * Gives the calling thread SCHED_FIFO with this priority, 1 to PLACE_FIFO_MAX + 1; 0 leaves it as it is. Threads
 * and processes it makes do not inherit it. 0, or -errno with a sentence: -EPERM when it is not allowed.
 */
int place_fifo(int priority);

/* The same for another thread of this process, without a sentence: one that must run beside a measuring one. */
void place_fifo_of(pthread_t thread, int priority);

/* Locks all memory of this process, also what it will get. 0, or -EPERM with a sentence that says why not. */
int place_lock_all(void);

/* The same for one range, until it is unmapped. */
int place_lock(const void *memory, size_t bytes);

#endif
