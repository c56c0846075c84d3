/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel itself says about NAPI contexts, queues and their interrupts (generic netlink "netdev", 6.7+). */
#ifndef LAYOVER_NETDEV_H
#define LAYOVER_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

struct netdev_napi {
	uint32_t id;
	int irq;      /* -1: the driver does not tell */
	int pid;      /* of its thread, 0: none */
	int threaded; /* -1: the kernel does not tell (before 6.17) */
	/* -1: the kernel does not tell (before 6.13) */
	int64_t defer_hard_irqs, gro_flush_timeout_ns, irq_suspend_timeout_ns;
};

struct netdev_queue {
	bool tx;
	uint32_t index;
	uint32_t napi; /* 0: the driver does not tell */
};

struct netdev {
	struct netdev_napi *napis;
	struct netdev_queue *queues;
	int napi_count, queue_count;
};

/*
 * Of one device of the calling thread's network namespace; needs no privilege. 0; -ENOENT when the kernel has
 * no such family or lacks the request; another -errno; no sentence. netdev_free() either way.
 */
int netdev_read(int ifindex, struct netdev *out);

void netdev_free(struct netdev *out);

/* NULL: there is none with this id. */
const struct netdev_napi *netdev_find_napi(const struct netdev *all, uint32_t id);

#endif
