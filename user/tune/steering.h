/* SPDX-License-Identifier: GPL-2.0-only */
/* To which receive queue a device sends a flow, computed as the device does it. */
#ifndef LAYOVER_STEERING_H
#define LAYOVER_STEERING_H

#include <stdbool.h>

#include "tune/devices.h"
#include "tune/rss.h"

struct steering {
	uint32_t hash, entry, queue;
	const struct device_irq *irq; /* of the queue, NULL: not known */
};

/*
 * Sees to it that the device has a key to compute with: its own, or for a driver that does not tell it (igb, ixgbe)
 * the one that the kernel offers to all. The latter is a guess: a driver may have its own. 0; -EOPNOTSUPP with a
 * sentence: no table, or no Toeplitz key.
 */
int steering_key(struct device *device, bool *of_kernel);

/* Where the flow goes, after steering_key(). 0 or -errno with a sentence. */
int steering_of(const struct device *device, const struct rss_flow *flow, bool udp,
		struct steering *out);

#endif
