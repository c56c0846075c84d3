/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's network devices, their queues and interrupts, as they are set now. */
#ifndef LAYOVER_DEVICES_H
#define LAYOVER_DEVICES_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tune/ethtool.h"
#include "tune/interrupts.h"
#include "tune/netdev.h"

/* What an interrupt is for, as bits. */
enum { IRQ_RX = 1, IRQ_TX = 2 };

struct device_irq {
	int irq;
	char *name, *chip;
	char mode[16]; /* msi, msix; "": not a message-signalled one */
	int serves;    /* IRQ_RX | IRQ_TX; 0: no queue (configuration, link), or not known */
	int queue;     /* by its name, -1: none */
	uint32_t napi; /* 0: not told */
	char *affinity, *effective; /* lists of CPUs; "": not readable */
	int node;                   /* NUMA, -1: none */
};

struct device_queue {
	bool tx;
	unsigned int index;
	int irq;       /* -1: not known */
	uint32_t napi; /* 0: not told */
	/* Files of queues/rx-N and tx-N; NULL: not there. Masks; rps_flow_cnt is a number. */
	char *rps_cpus, *rps_flow_cnt, *xps_cpus, *xps_rxqs;
};

struct device {
	char name[IFNAMSIZ];
	int ifindex, node; /* node -1: none */
	char driver[32], bus[32];
	bool control; /* carries the connection that this machine is controlled by, or the default route */
	struct device_irq *irqs;
	struct device_queue *queues;
	int irq_count, queue_count;
	struct netdev netdev;
	/* 0: read; else why not, as -errno. */
	int netdev_rc, channels_rc, coalesce_rc, rss_rc;
	struct ethtool_channels channels;
	struct ethtool_coalesce coalesce;
	struct rss rss;
	long long threaded, gro_flush_timeout_ns, defer_hard_irqs; /* -1: not there */
};

struct machine {
	cpu_set_t online, isolated, nohz_full;
	pid_t irqbalance;       /* 0: not running */
	char control[IFNAMSIZ]; /* the device that carries the control connection, "": none known */
	const char *control_why;      /* how that is known */
	struct interrupts interrupts; /* when the devices were read */
	struct device *devices;
	int device_count;
};

/*
 * Reads the machine and those of its devices that names has (count 0: all except lo). 0, -ENODEV with a sentence
 * for a device that is not there, another -errno with a sentence. machine_free() either way.
 */
int machine_read(struct machine *machine, const char *const *names, int count);

void machine_free(struct machine *machine);

/* NULL: none of that name was read. */
struct device *machine_device(const struct machine *machine, const char *name);

/* Fills what an interrupt's name tells: what it serves, and of which queue. */
void device_irq_by_name(const char *name, int *serves, int *queue);

/* Number of receive queues (tx false) or transmit queues. */
int device_queues(const struct device *device, bool tx);

/* NULL: not there. */
struct device_queue *device_queue(const struct device *device, bool tx, unsigned int index);

/* By interrupt's name; NULL: none. */
const struct device_irq *device_irq(const struct device *device, const char *name);

/*
 * The queues that an interrupt serves as a list ("0", "0,4"), from those of one direction; "" for none.
 */
void device_irq_queues(const struct device *device, const struct device_irq *irq, bool tx,
		       char *text, size_t size);

#endif
