// SPDX-License-Identifier: GPL-2.0-only
/* One row per socket option that a plan can ask for. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/error.h"
#include "load/endpoint.h"

struct sockopt {
	const char *name;
	int level, option, value;
	bool wanted;
};

/* Beyond net.core.wmem_max and rmem_max, where privileges allow. */
static bool forced(int fd, const struct sockopt *o)
{
	int option = o->option == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;

	return o->wanted && o->level == SOL_SOCKET && o->option != SO_BUSY_POLL &&
	       !setsockopt(fd, SOL_SOCKET, option, &o->value, sizeof(o->value));
}

static int set_option(int fd, const struct sockopt *o)
{
	if (forced(fd, o))
		return 0;
	if (!o->wanted || !setsockopt(fd, o->level, o->option, &o->value, sizeof(o->value)))
		return 0;
	return err_set(-errno, "the socket does not take %s %d: %s%s", o->name, o->value,
		       strerror(errno), errno == EPERM ? "; this one needs CAP_NET_ADMIN" : "");
}

static int set_congestion(int fd, const char *name)
{
	if (!name[0] || !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
		return 0;
	return err_set(-errno,
		       "the kernel does not take the congestion control '%s': %s; "
		       "see sysctl net.ipv4.tcp_allowed_congestion_control",
		       name, strerror(errno));
}

int endpoint_options(const struct load_plan *plan, int fd)
{
	bool tcp = plan->proto == PLAN_TCP;
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	bool v6 = !getsockname(fd, (struct sockaddr *)&own, &len) && own.ss_family == AF_INET6;
	const struct sockopt options[] = {
		{"sndbuf", SOL_SOCKET, SO_SNDBUF, (int)plan->sndbuf, plan->sndbuf},
		{"rcvbuf", SOL_SOCKET, SO_RCVBUF, (int)plan->rcvbuf, plan->rcvbuf},
		{"busy-poll", SOL_SOCKET, SO_BUSY_POLL, (int)plan->busy_poll_us,
		 plan->busy_poll_us},
		{"tos", v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, plan->tos,
		 plan->tos >= 0 && own.ss_family != AF_UNIX},
		{"nodelay", IPPROTO_TCP, TCP_NODELAY, 1, tcp && plan->nodelay},
		{"quickack", IPPROTO_TCP, TCP_QUICKACK, 1, tcp && plan->quickack},
		{"mss", IPPROTO_TCP, TCP_MAXSEG, (int)plan->mss, tcp && plan->mss},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(options) / sizeof(options[0]); i++)
		rc = set_option(fd, &options[i]);
	return rc ? rc : set_congestion(fd, plan->congestion);
}
