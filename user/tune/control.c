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

static bool by_route(char *name)
{
	char *text = tree_slurp("/proc/net/route"), *save = NULL;
	bool found = false;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !found;
	     line = strtok_r(NULL, "\n", &save)) {
		char device[IFNAMSIZ], mask[16];
		unsigned int destination;

		found = sscanf(line, "%15s %x %*s %*s %*s %*s %*s %15s", device, &destination,
			       mask) == 3 &&
			!destination && !strcmp(mask, "00000000");
		if (found)
			snprintf(name, IFNAMSIZ, "%s", device);
	}
	free(text);
	return found;
}

const char *control_device(char *name)
{
	name[0] = '\0';
	if (by_ssh(name))
		return "this ssh session came by it";
	if (by_route(name))
		return "it has the default route";
	return NULL;
}
