/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a server needs to record its own end of one session: the driver knows no BPF, so whoever runs the
 * server lends it this.
 */
#ifndef LAYOVER_TRACER_H
#define LAYOVER_TRACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/records.h"

struct tracer_wish {
	int proto; /* IPPROTO_TCP, IPPROTO_UDP */
	uint16_t client_port, server_port;
	uint64_t bytes;         /* of a message */
	uint32_t with, without; /* masks of enum hook, as in probe_wish */
};

/* All but stop(): 0 or -errno with a sentence. */
struct tracer {
	atomic_bool busy; /* one session at a time */
	void *arg;        /* of all calls */

	/* Loads the hooks and attaches them; *hooks is the mask of those that were loaded. */
	int (*start)(void *arg, const struct tracer_wish *wish, uint32_t *hooks);
	/* Attaches them again, or detaches them. */
	int (*attach)(void *arg, bool on);
	/* Hands over what was recorded since. */
	int (*drain)(void *arg, records_sink *sink, void *to, struct records_counters *counters);
	/* Gives everything back. */
	void (*stop)(void *arg);
};

#endif
