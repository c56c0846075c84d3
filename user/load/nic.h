/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Transmit timestamps of the NIC itself (SO_TIMESTAMPING, hardware). They are on the NIC's own clock, whose
 * distance from CLOCK_MONOTONIC is measured between blocks of trips and interpolated within them.
 */
#ifndef LAYOVER_NIC_H
#define LAYOVER_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nic_clock;

#define NIC_NO_TRIP SIZE_MAX

/*
 * Turns transmit timestamps on for a connected socket and for the interface that it leaves by; the
 * interface's former setting comes back with nic_close(). 0 or -errno with a sentence: -EOPNOTSUPP where the
 * NIC has none, -EPERM without cap_net_admin.
 */
int nic_open(struct nic_clock **nic, int fd);
void nic_close(struct nic_clock *nic); /* NULL is allowed */

/* After a trip: takes the stamp of its message, which may come a little later than the reply. */
void nic_take(struct nic_clock *nic, size_t trip);

/*
 * Between blocks: measures the distance of the clocks and converts the stamps taken since the last call.
 * 0 or -errno with a sentence.
 */
int nic_settle(struct nic_clock *nic);

/* CLOCK_MONOTONIC ns at which the trip's last byte left the NIC; 0: no stamp, or not converted yet. */
uint64_t nic_time(const struct nic_clock *nic, size_t trip);

struct nic_report {
	char interface[16];
	uint64_t stamped;        /* trips with a stamp */
	uint64_t uncertainty_ns; /* of the distance between the clocks: the worst measured */
};

void nic_report(const struct nic_clock *nic, struct nic_report *out);

#endif
