// SPDX-License-Identifier: GPL-2.0-only
#include "load/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "load/address.h"
#include "load/clock.h"

enum { STAMP_WAIT_MS = 5, OFFSET_SAMPLES = 10 };

/* One measurement of the clocks' distance. */
struct offset {
	int64_t at;      /* the NIC's time */
	int64_t ahead;   /* the NIC's time minus CLOCK_MONOTONIC */
	int64_t unknown; /* +- */
};

struct nic_clock {
	int fd, ptp;
	char interface[IFNAMSIZ];
	struct hwtstamp_config before; /* what the interface was set to */
	bool changed;
	uint64_t *times; /* by trip: the NIC's time, after nic_settle() CLOCK_MONOTONIC; 0: none */
	size_t count, capacity, settled;
	struct offset last;
	uint64_t stamped, uncertainty;
};

/* --- opening ------------------------------------------------------------------------------------- */

/* The interface that has the socket's local address. */
static int find_interface(struct nic_clock *nic)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	struct ifaddrs *all, *at;

	if (getsockname(nic->fd, (struct sockaddr *)&local, &len) || getifaddrs(&all))
		return err_set(-errno, "cannot tell which interface the messages leave by: %s",
			       strerror(errno));
	address_set_port((struct sockaddr *)&local, 0);
	for (at = all; at; at = at->ifa_next)
		if (at->ifa_addr && address_equal(at->ifa_addr, (struct sockaddr *)&local))
			break;
	if (at)
		snprintf(nic->interface, sizeof(nic->interface), "%s", at->ifa_name);
	freeifaddrs(all);
	return at ? 0 : err_set(-ENODEV, "cannot tell which interface the messages leave by");
}

static int interface_ioctl(const struct nic_clock *nic, unsigned long request, void *data)
{
	struct ifreq ifr = {.ifr_data = data};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", nic->interface);
	return ioctl(nic->fd, request, &ifr) ? -errno : 0;
}

static int open_ptp(struct nic_clock *nic)
{
	struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
	int rc = interface_ioctl(nic, SIOCETHTOOL, &info);
	char path[32];

	if (rc || !(info.so_timestamping & SOF_TIMESTAMPING_TX_HARDWARE) || info.phc_index < 0)
		return err_set(-EOPNOTSUPP, "%s has no hardware transmit timestamps",
			       nic->interface);
	snprintf(path, sizeof(path), "/dev/ptp%d", info.phc_index);
	nic->ptp = open(path, O_RDONLY | O_CLOEXEC);
	if (nic->ptp < 0)
		return err_set(-errno, "cannot read the clock of %s, %s: %s", nic->interface, path,
			       strerror(errno));
	return 0;
}

/* Only what is needed, and only if it is not so already. */
static int switch_on(struct nic_clock *nic)
{
	struct hwtstamp_config wanted;
	int rc = interface_ioctl(nic, SIOCGHWTSTAMP, &nic->before);

	if (rc)
		memset(&nic->before, 0, sizeof(nic->before)); /* a driver that cannot tell: off */
	if (nic->before.tx_type == HWTSTAMP_TX_ON)
		return 0;
	wanted = nic->before;
	wanted.tx_type = HWTSTAMP_TX_ON;
	rc = interface_ioctl(nic, SIOCSHWTSTAMP, &wanted);
	if (rc)
		return err_set(rc, "cannot turn on the timestamps of %s: %s", nic->interface,
			       strerror(-rc));
	nic->changed = true;
	return 0;
}

static int prepare_socket(struct nic_clock *nic)
{
	const int flags = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE |
			  SOF_TIMESTAMPING_OPT_TSONLY;

	if (!setsockopt(nic->fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)))
		return 0;
	return err_set(-errno, "SO_TIMESTAMPING: %s", strerror(errno));
}

/* --- the two clocks ------------------------------------------------------------------------------ */

static int64_t ptp_ns(const struct ptp_clock_time *t)
{
	return (int64_t)t->sec * (int64_t)NS_PER_S + t->nsec;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, and how far off that may be. */
static int64_t wall_ahead(int64_t *unknown)
{
	struct timespec wall;
	int64_t best = INT64_MAX, ahead = 0;

	for (int i = 0; i < OFFSET_SAMPLES; i++) {
		int64_t before = (int64_t)clock_ns(), after;

		clock_gettime(CLOCK_REALTIME, &wall);
		after = (int64_t)clock_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		ahead = wall.tv_sec * (int64_t)NS_PER_S + wall.tv_nsec - before - best / 2;
	}
	*unknown = best / 2;
	return ahead;
}

/* The closest of some readings of the NIC's clock between two of the system's. */
static int measure_offset(const struct nic_clock *nic, struct offset *out)
{
	struct ptp_sys_offset_extended data = {.n_samples = OFFSET_SAMPLES};
	int64_t best = INT64_MAX, wall_unknown, wall;

	if (ioctl(nic->ptp, PTP_SYS_OFFSET_EXTENDED, &data))
		return err_set(-errno, "cannot compare the clock of %s with the system's: %s",
			       nic->interface, strerror(errno));
	wall = wall_ahead(&wall_unknown);
	for (unsigned int i = 0; i < data.n_samples; i++) {
		int64_t before = ptp_ns(&data.ts[i][0]), after = ptp_ns(&data.ts[i][2]);

		if (after - before >= best)
			continue;
		best = after - before;
		out->at = ptp_ns(&data.ts[i][1]);
		out->ahead = out->at - (before + best / 2 - wall);
	}
	out->unknown = best / 2 + wall_unknown;
	return 0;
}

int nic_open(struct nic_clock **out, int fd)
{
	struct nic_clock *nic = calloc(1, sizeof(*nic));
	int rc;

	*out = NULL;
	if (!nic)
		return err_set(-ENOMEM, "no memory for timestamps");
	nic->fd = fd;
	nic->ptp = -1;
	rc = find_interface(nic);
	if (!rc)
		rc = open_ptp(nic);
	if (!rc)
		rc = switch_on(nic);
	if (!rc)
		rc = prepare_socket(nic);
	if (!rc)
		rc = measure_offset(nic, &nic->last);
	if (rc) {
		nic_close(nic);
		return rc;
	}
	*out = nic;
	return 0;
}

void nic_close(struct nic_clock *nic)
{
	if (!nic)
		return;
	if (nic->changed)
		interface_ioctl(nic, SIOCSHWTSTAMP, &nic->before);
	if (nic->ptp >= 0)
		close(nic->ptp);
	free(nic->times);
	free(nic);
}

/* --- stamps -------------------------------------------------------------------------------------- */

/* The newest stamp in the socket's error queue, 0: none. */
static uint64_t read_stamp(const struct nic_clock *nic)
{
	char control[512];
	uint64_t newest = 0;

	for (;;) {
		struct msghdr header = {.msg_control = control, .msg_controllen = sizeof(control)};

		if (recvmsg(nic->fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return newest;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
			struct scm_timestamping stamp;

			if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING)
				continue;
			memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
			newest = (uint64_t)stamp.ts[2].tv_sec * NS_PER_S +
				 (uint64_t)stamp.ts[2].tv_nsec;
		}
	}
}

static bool make_room(struct nic_clock *nic, size_t trip)
{
	size_t capacity = nic->capacity ? nic->capacity : 4096;
	uint64_t *grown;

	if (trip < nic->capacity)
		return true;
	while (capacity <= trip)
		capacity *= 2;
	grown = realloc(nic->times, capacity * sizeof(*grown));
	if (!grown)
		return false;
	nic->times = grown;
	nic->capacity = capacity;
	return true;
}

void nic_take(struct nic_clock *nic, size_t trip)
{
	struct pollfd error = {.fd = nic->fd}; /* POLLERR is always waited for */
	uint64_t stamp = read_stamp(nic);

	if (!stamp && poll(&error, 1, STAMP_WAIT_MS) > 0)
		stamp = read_stamp(nic);
	if (trip == NIC_NO_TRIP || !make_room(nic, trip))
		return;
	while (nic->count < trip)
		nic->times[nic->count++] = 0;
	nic->times[trip] = stamp;
	nic->count = trip + 1;
	nic->stamped += stamp != 0;
}

int nic_settle(struct nic_clock *nic)
{
	struct offset now = {0}, then = nic->last;
	int rc = measure_offset(nic, &now);

	if (rc)
		return rc;
	for (; nic->settled < nic->count; nic->settled++) {
		uint64_t *time = &nic->times[nic->settled];
		double part = now.at > then.at ? (double)((int64_t)*time - then.at) /
							 (double)(now.at - then.at)
					       : 0;

		if (*time)
			*time -= (uint64_t)(then.ahead +
					    (int64_t)(part * (double)(now.ahead - then.ahead)));
	}
	nic->last = now;
	if ((uint64_t)now.unknown > nic->uncertainty)
		nic->uncertainty = (uint64_t)now.unknown;
	return 0;
}

uint64_t nic_time(const struct nic_clock *nic, size_t trip)
{
	return trip < nic->settled ? nic->times[trip] : 0;
}

void nic_report(const struct nic_clock *nic, struct nic_report *out)
{
	snprintf(out->interface, sizeof(out->interface), "%s", nic->interface);
	out->stamped = nic->stamped;
	out->uncertainty_ns = nic->uncertainty;
}
