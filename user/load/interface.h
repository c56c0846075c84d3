/* SPDX-License-Identifier: GPL-2.0-only */
/* A network interface's own counters: what `sar -n DEV` shows. */
#ifndef LAYOVER_INTERFACE_H
#define LAYOVER_INTERFACE_H

#include <stdint.h>
#include <sys/socket.h>

struct interface_counts {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
};

enum { INTERFACE_NAME_MAX = 16 };

/* The interface of the caller's namespace that has the address; "" when none has. */
void interface_of(const struct sockaddr *addr, char *name);

/* Reads /proc/net/dev (of the process's namespace). 0, or -ENODEV without a sentence. */
int interface_count(const char *name, struct interface_counts *counts);

#endif
