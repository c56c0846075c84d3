/* SPDX-License-Identifier: GPL-2.0-only */
/* On which CPUs what one socket receives is handled: interrupt, softirq, reader. Pure C. */
#ifndef LAYOVER_RECEIVER_H
#define LAYOVER_RECEIVER_H

#include <stdint.h>

#include "model/live.h"

/* One way from the device to the reader, by CPUs; CPU_UNKNOWN where not known. */
struct receiver_way {
	uint16_t irq, softirq, reader;
	uint64_t turns;
};

struct receiver {
	struct receiver_way *ways; /* the most frequent first; receiver_free() */
	int way_count;
	uint64_t turns;
	uint64_t wakeups; /* the reader slept */
	uint64_t across;  /* of those: woken by another CPU than its own */
	uint64_t wrong;   /* the softirq ran on another CPU than the reader */
};

/*
 * From the joined turns of one socket that began in this time; a server whose client is here as well has them
 * there. 0 or -ENOMEM with a sentence; receiver_free() either way.
 */
int receiver_of(const struct live_flow *flow, uint64_t from_ns, uint64_t until_ns,
		struct receiver *out);

void receiver_free(struct receiver *receiver);

#endif
