// SPDX-License-Identifier: GPL-2.0-only
#include "load/interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "load/address.h"

void interface_of(const struct sockaddr *addr, char *name)
{
	struct ifaddrs *list;

	name[0] = '\0';
	if ((addr->sa_family != AF_INET && addr->sa_family != AF_INET6) || getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i && !name[0]; i = i->ifa_next)
		if (i->ifa_addr && address_same_host(i->ifa_addr, addr))
			snprintf(name, INTERFACE_NAME_MAX, "%s", i->ifa_name);
	freeifaddrs(list);
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets …" */
static bool read_counts(char *line, const char *name, struct interface_counts *c)
{
	char *colon = strchr(line, ':');

	if (!colon)
		return false;
	*colon = '\0';
	if (strcmp(line + strspn(line, " "), name) != 0)
		return false;
	return sscanf(colon + 1,
		      "%" SCNu64 " %" SCNu64 " %*u %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
		      &c->rx_bytes, &c->rx_packets, &c->tx_bytes, &c->tx_packets) == 4;
}

int interface_count(const char *name, struct interface_counts *counts)
{
	FILE *file = name[0] ? fopen("/proc/self/net/dev", "re") : NULL;
	bool found = false;
	char line[512];

	if (!file)
		return -ENODEV;
	while (!found && fgets(line, sizeof(line), file))
		found = read_counts(line, name, counts);
	fclose(file);
	return found ? 0 : -ENODEV;
}
