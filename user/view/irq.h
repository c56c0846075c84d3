/* SPDX-License-Identifier: GPL-2.0-only */
/* What `layover irq` prints. */
#ifndef LAYOVER_VIEW_IRQ_H
#define LAYOVER_VIEW_IRQ_H

#include <jansson.h>

#include "tune/devices.h"

/* Two readings of the counters an interval apart; the second ones are empty without an interval. */
struct irq_rates {
	struct interrupts softirqs, interrupts_after, softirqs_after;
};

/* Devices, their interrupts and queues. Text under 80 columns, or one JSON object. 0 or -errno, sentence. */
int view_irq_text(const struct machine *machine, const struct irq_rates *rates);
int view_irq_json(const struct machine *machine, const struct irq_rates *rates);

/* Where a device's table sends a flow. */
struct irq_flow {
	const char *text; /* as the user wrote it */
	uint32_t hash, entry, queue;
	const struct device_irq *irq; /* of the queue, NULL: not known */
};

int view_irq_flows(const struct device *device, const struct irq_flow *flows, int count, bool json);

#endif
