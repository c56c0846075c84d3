/* SPDX-License-Identifier: GPL-2.0-only */
/* What `layover irq` prints. */
#ifndef LAYOVER_VIEW_IRQ_H
#define LAYOVER_VIEW_IRQ_H

#include <jansson.h>

#include "model/receiver.h"
#include "tune/steering.h"

enum { IRQ_ADDRESS_MAX = 80 };

/* Two readings of the counters an interval apart; the second ones are empty without an interval. */
struct irq_rates {
	struct interrupts softirqs, interrupts_after, softirqs_after;
};

/* One end of a flow on this host, and where what it receives is handled. */
struct irq_receiver {
	const struct device *device; /* by which its packets come */
	int queue;                   /* the kernel saw them come by this one, -1: not told */
	int predicted;               /* the device's hash and table say, -1: cannot be computed */
	enum role role;
	uint32_t pid;
	uint16_t port; /* its own */
	char comm[FLOW_COMM + 1];
	char local[IRQ_ADDRESS_MAX], remote[IRQ_ADDRESS_MAX];
	struct receiver what;
};

struct irq_receivers {
	struct irq_receiver *rows; /* by queue, the busiest first */
	int n;
	double seconds;   /* 0: nobody looked */
	int elsewhere;    /* flows with turns by devices that are not shown */
	uint64_t one_way; /* flows without turns */
};

/*
 * Devices, their interrupts and queues, and the flows behind them if somebody looked. Text under 80 columns, or one
 * JSON object. 0 or -errno, sentence.
 */
int view_irq_text(const struct machine *machine, const struct irq_rates *rates,
		  const struct irq_receivers *flows);
int view_irq_json(const struct machine *machine, const struct irq_rates *rates,
		  const struct irq_receivers *flows);

/* Where a device's table sends a flow. */
struct irq_flow {
	const char *text; /* as the user wrote it */
	struct steering to;
};

int view_irq_flows(const struct device *device, const struct irq_flow *flows, int count, bool json);

#endif
