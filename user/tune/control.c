// SPDX-License-Identifier: GPL-2.0-only
#include "tune/control.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tune/tree.h"

static bool has_address(const struct sockaddr *sa, const char *wanted)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!sa)
		return false;
	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, text, sizeof(text));
	else if (sa->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sa)->sin6_addr, text,
			  sizeof(text));
	return text[0] && !strcmp(text, wanted);
}

/* "CLIENT CPORT SERVER SPORT"; sshd writes link-local addresses with %device. */
static bool by_ssh(char *name)
{
	const char *connection = getenv("SSH_CONNECTION");
	struct ifaddrs *all, *at;
	char local[64];
	bool found = false;

	if (!connection || sscanf(connection, "%*s %*s %63s", local) != 1 || getifaddrs(&all))
		return false;
	local[strcspn(local, "%")] = '\0';
	for (at = all; at && !found; at = at->ifa_next) {
		found = has_address(at->ifa_addr, local);
		if (found)
			snprintf(name, IFNAMSIZ, "%s", at->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* A line of /proc/net/route or ipv6_route: true for a default route, with its device. */
static bool is_default4(const char *line, char *device)
{
	char destination[16], mask[16];

	return sscanf(line, "%15s %15s %*s %*s %*s %*s %*s %15s", device, destination, mask) == 3 &&
	       !strcmp(destination, "00000000") && !strcmp(mask, "00000000");
}

/* The kernel has a default route to lo of its own: it refuses what has no route. */
static bool is_default6(const char *line, char *device)
{
	char destination[40], length[8];

	return sscanf(line, "%39s %7s %*s %*s %*s %*s %*s %*s %*s %15s", destination, length,
		      device) == 3 &&
	       strspn(destination, "0") == 32 && !strcmp(length, "00") && strcmp(device, "lo") != 0;
}

static bool by_route(const char *path, bool (*is_default)(const char *line, char *device),
		     char *name)
{
	char *text = tree_slurp(path), *save = NULL, device[IFNAMSIZ];
	bool found = false;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !found;
	     line = strtok_r(NULL, "\n", &save))
		found = is_default(line, device);
	if (found)
		snprintf(name, IFNAMSIZ, "%s", device);
	free(text);
	return found;
}

const char *control_device(char *name)
{
	name[0] = '\0';
	if (by_ssh(name))
		return "this ssh session came by it";
	if (by_route("/proc/net/route", is_default4, name) ||
	    by_route("/proc/net/ipv6_route", is_default6, name))
		return "it has the default route";
	return NULL;
}
