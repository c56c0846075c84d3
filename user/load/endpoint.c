// SPDX-License-Identifier: GPL-2.0-only
#include "load/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "load/address.h"
#include "load/control.h"

/* Closes fd; the sentence names what was tried. */
static int failed(int fd, const char *what)
{
	int rc = err_set(-errno, "cannot %s: %s", what, strerror(errno));

	if (fd >= 0)
		close(fd);
	return rc;
}

/* --- multicast ----------------------------------------------------------------------------------- */

/* A group of the administratively scoped block (RFC 2365), one per session: IPv4 only. */
static int group_of(uint64_t session, int family, uint16_t port, struct sockaddr_storage *group)
{
	struct sockaddr_in *in = (void *)group;

	if (family != AF_INET)
		return err_set(-EAFNOSUPPORT, "multicast runs over IPv4 only; add -4");
	*in = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(0xefff0000U | (uint32_t)(session & 0xffff)),
	};
	return 0;
}

/* The interface is the one that has the address `local`. */
static int join_group(int fd, const struct sockaddr_storage *group, const struct sockaddr *local)
{
	struct ip_mreqn request = {
		.imr_multiaddr = ((const struct sockaddr_in *)(const void *)group)->sin_addr,
		.imr_address = ((const struct sockaddr_in *)(const void *)local)->sin_addr,
	};

	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request));
}

static int send_from(int fd, const struct sockaddr *local)
{
	struct ip_mreqn request = {
		.imr_address = ((const struct sockaddr_in *)(const void *)local)->sin_addr,
	};

	return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request));
}

/* --- the server's end ---------------------------------------------------------------------------- */

static int open_datagrams(const struct load_plan *plan, const struct sockaddr *local,
			  uint64_t session, struct endpoint_offer *offer)
{
	bool raw = plan->proto == PLAN_RAW;
	int family = local->sa_family, rc = 0;
	struct sockaddr_storage own = {0};
	socklen_t len = address_size(local);
	int fd = socket(family, (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC,
			raw ? PLAN_RAW_PROTO : 0);

	memcpy(&own, local, len);
	address_set_port((struct sockaddr *)&own, 0);
	if (plan->proto == PLAN_MULTICAST)
		rc = group_of(session, family, 0, &own);
	if (rc) {
		close(fd);
		return rc;
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, len))
		return failed(fd, raw ? "make a raw socket" : "make a UDP socket");
	if (plan->proto == PLAN_MULTICAST && join_group(fd, &own, local))
		return failed(fd, "join a multicast group");
	getsockname(fd, (struct sockaddr *)&own, &len);
	offer->port = raw ? 0 : address_port((struct sockaddr *)&own);
	return fd;
}

/* crr: what comes is accepted by the echo loop. */
static int open_listener(const struct sockaddr *local, struct endpoint_offer *offer)
{
	struct sockaddr_storage own = {0};
	socklen_t len = address_size(local);
	int fd = socket(local->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&own, local, len);
	address_set_port((struct sockaddr *)&own, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, len) || listen(fd, SOMAXCONN))
		return failed(fd, "listen for connections");
	getsockname(fd, (struct sockaddr *)&own, &len);
	offer->port = address_port((struct sockaddr *)&own);
	return fd;
}

static void unix_address(const char *path, struct sockaddr_un *un)
{
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
}

/* A path, not an abstract name: those belong to one network namespace. */
static int open_unix(uint64_t session, struct endpoint_offer *offer)
{
	const char *dir = getenv("TMPDIR");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;

	snprintf(offer->path, sizeof(offer->path), "%s/layover-%016llx.sock", dir ? dir : "/tmp",
		 (unsigned long long)session);
	unix_address(offer->path, &un);
	if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof(un)) || chmod(offer->path, 0666) ||
	    listen(fd, 1))
		return failed(fd, "listen on a unix socket");
	return fd;
}

int endpoint_open(const struct load_plan *plan, const struct sockaddr *local, uint64_t session,
		  struct endpoint_offer *offer, int *fd)
{
	int made;

	*offer = (struct endpoint_offer){0};
	*fd = -1;
	if (plan->proto == PLAN_TCP && !plan->crr)
		return 0;
	if (plan->proto == PLAN_TCP)
		made = open_listener(local, offer);
	else if (plan->proto == PLAN_UNIX)
		made = open_unix(session, offer);
	else
		made = open_datagrams(plan, local, session, offer);
	if (made < 0)
		return made;
	*fd = made;
	return endpoint_options(plan, made);
}

static int accept_unix(int fd, const char *path)
{
	struct pollfd fds = {.fd = fd, .events = POLLIN};
	int data = -1;

	if (poll(&fds, 1, CONTROL_FRAME_S * 1000) == 1)
		data = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	close(fd);
	unlink(path);
	return data >= 0
		       ? data
		       : err_set(-ETIMEDOUT, "the client did not come to the unix socket in time");
}

int endpoint_meet(const struct load_plan *plan, int fd, const struct sockaddr *peer,
		  const char *path)
{
	if (plan->proto == PLAN_UNIX)
		return accept_unix(fd, path);
	if (plan->crr || plan->unconnected || plan->proto == PLAN_MULTICAST)
		return 0;
	if (!connect(fd, peer, address_size(peer)))
		return 0;
	return err_set(-errno, "cannot connect the data socket: %s", strerror(errno));
}

/* --- the client's end ---------------------------------------------------------------------------- */

int endpoint_bind(const struct load_plan *plan, int fd, const struct sockaddr *local)
{
	struct sockaddr_storage own = {0};
	char host[ADDRESS_HOST_MAX];
	struct addrinfo *list;
	uint16_t port = 0;
	int rc;

	memcpy(&own, local, address_size(local));
	address_set_port((struct sockaddr *)&own, 0);
	if (plan->bind) {
		rc = address_split(plan->bind, host, &port);
		if (!rc)
			rc = address_resolve(host, port, local->sa_family, &list);
		if (rc)
			return rc;
		memcpy(&own, list->ai_addr, list->ai_addrlen);
		freeaddrinfo(list);
	}
	if (!bind(fd, (struct sockaddr *)&own, address_size(local)))
		return 0;
	return err_set(-errno, "cannot bind the data socket%s%s: %s", plan->bind ? " to " : "",
		       plan->bind ? plan->bind : "", strerror(errno));
}

static int join_unix(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;

	unix_address(path, &un);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&un, sizeof(un)))
		return fd;
	return failed(fd, "reach the server's unix socket (both ends must be on one host)");
}

/* Where datagrams go, and from where the replies come. */
static int aim(const struct load_plan *plan, const struct endpoint_offer *offer, uint64_t session,
	       const struct sockaddr *server, struct sockaddr_storage *to,
	       struct sockaddr_storage *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, server, address_size(server));
	address_set_port((struct sockaddr *)to, offer->port);
	*from = *to;
	return plan->proto == PLAN_MULTICAST ? group_of(session, server->sa_family, offer->port, to)
					     : 0;
}

static int join_datagrams(const struct load_plan *plan, int fd, const struct sockaddr *local,
			  const struct sockaddr *to)
{
	int rc = endpoint_options(plan, fd);

	if (!rc)
		rc = endpoint_bind(plan, fd, local);
	if (rc)
		return rc;
	if (plan->proto == PLAN_MULTICAST && send_from(fd, local))
		return err_set(-errno, "cannot send multicast from here: %s", strerror(errno));
	if (plan->unconnected || plan->proto == PLAN_MULTICAST ||
	    !connect(fd, to, address_size(to)))
		return 0;
	return err_set(-errno, "cannot set up a UDP socket: %s", strerror(errno));
}

int endpoint_join(const struct load_plan *plan, const struct endpoint_offer *offer,
		  uint64_t session, const struct sockaddr *local, const struct sockaddr *server,
		  make_socket_fn *make_socket, void *arg, struct endpoint *end)
{
	bool raw = plan->proto == PLAN_RAW;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int made, rc = aim(plan, offer, session, server, &end->to, &end->from);

	end->fd = -1;
	end->port = 0;
	if (rc || plan->crr)
		return rc;
	if (plan->proto == PLAN_UNIX)
		made = join_unix(offer->path);
	else
		made = make_socket(arg, server->sa_family,
				   (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC,
				   raw ? PLAN_RAW_PROTO : 0);
	if (made < 0)
		return made;
	end->fd = made;
	if (plan->proto == PLAN_UNIX)
		return endpoint_options(plan, made);
	rc = join_datagrams(plan, made, local, (struct sockaddr *)&end->to);
	if (!rc && !raw) {
		getsockname(made, (struct sockaddr *)&own, &len);
		end->port = address_port((struct sockaddr *)&own);
	}
	return rc;
}
