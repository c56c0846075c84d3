/* SPDX-License-Identifier: GPL-2.0-only */
/* The data sockets of both ends, one way per transport. TCP's server end is the accepted connection. */
#ifndef LAYOVER_ENDPOINT_H
#define LAYOVER_ENDPOINT_H

#include <jansson.h>
#include <sys/socket.h>

#include "load/client.h"
#include "load/plan.h"

enum { ENDPOINT_PATH_MAX = 96 };

/* What the server tells the client of its data socket. */
struct endpoint_offer {
	uint16_t port;                /* UDP, multicast, crr; 0: none */
	char path[ENDPOINT_PATH_MAX]; /* unix; "": none */
};

/*
 * Makes the server's data socket (crr and unix: a listening one) at the address `local`; *fd is -1 for TCP,
 * whose socket comes by itself. 0 or -errno with a sentence; the caller closes *fd unless it is -1.
 */
int endpoint_open(const struct load_plan *plan, const struct sockaddr *local, uint64_t session,
		  struct endpoint_offer *offer, int *fd);

/*
 * Ties the server's socket to its client at `peer`. Unix: accepts it and returns its descriptor, fd is closed;
 * else 0. Or -errno with a sentence.
 */
int endpoint_meet(const struct load_plan *plan, int fd, const struct sockaddr *peer,
		  const char *path);

/* The client's end. */
struct endpoint {
	int fd;                           /* -1 with crr: each trip makes its own */
	uint16_t port;                    /* its own, 0: none */
	struct sockaddr_storage to, from; /* where messages go, where replies come from */
};

/*
 * Makes the client's data socket, for any transport but TCP without crr. local is the control connection's own
 * address, server its far end. 0 or -errno with a sentence; the caller closes end->fd unless it is -1.
 */
int endpoint_join(const struct load_plan *plan, const struct endpoint_offer *offer,
		  uint64_t session, const struct sockaddr *local, const struct sockaddr *server,
		  make_socket_fn *make_socket, void *arg, struct endpoint *end);

/*
 * Binds a client's data socket to the plan's `bind`, else to the address of local at any port. 0 or -errno with a
 * sentence.
 */
int endpoint_bind(const struct load_plan *plan, int fd, const struct sockaddr *local);

/* Sets the plan's socket options on a data socket before it is connected. 0 or -errno with a sentence. */
int endpoint_options(const struct load_plan *plan, int fd);

#endif
