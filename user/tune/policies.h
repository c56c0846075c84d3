/* SPDX-License-Identifier: GPL-2.0-only */
/* From what is wanted to what must be set. */
#ifndef LAYOVER_POLICIES_H
#define LAYOVER_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

#include "tune/devices.h"
#include "tune/plan.h"

struct policy_options {
	const char *cpus; /* the CPUs to spread over, NULL: all that are online and not set aside */
	const char *queues; /* only these, NULL: all */
	uint64_t step;      /* from one queue's CPU to the next one's, at least 1 */
	bool local;         /* CPUs of the device's NUMA node only */
	bool sibling;       /* near-reader: the reader's hyperthread sibling */
};

struct policy {
	const char *name;     /* one or two words */
	const char *argument; /* its value's name; NULL: none */
	const char *doc;
};

extern const struct policy policies[]; /* ends with a row whose name is NULL */

/*
 * Plans what the words say ("spread", "rss weights 1,1,0,0", ... one after the other) for a device of the machine
 * that was just read. Adds to *plan in the order in which it must be applied. Changes nothing. 0, or -errno with
 * a sentence; -EINVAL: the words are wrong.
 */
int policies_plan(const struct machine *machine, const struct device *device,
		  const char *const *words, int count, const struct policy_options *options,
		  struct plan *plan);

#endif
