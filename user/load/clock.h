/* SPDX-License-Identifier: GPL-2.0-only */
/* The one clock: CLOCK_MONOTONIC in ns, the clock of bpf_ktime_get_ns(). */
#ifndef LAYOVER_CLOCK_H
#define LAYOVER_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

#endif
