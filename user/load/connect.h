/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's side of opening a session: control connection, handshake, data flow. */
#ifndef LAYOVER_CONNECT_H
#define LAYOVER_CONNECT_H

#include <sys/socket.h>

#include "load/address.h"
#include "load/client.h"
#include "load/endpoint.h"
#include "load/host.h"
#include "load/interface.h"

struct connection {
	int control_fd;
	struct endpoint end;
	struct load_flow flow;
	struct sockaddr_storage server; /* of the control connection */
	socklen_t server_len;
	char server_text[ADDRESS_TEXT_MAX];  /* the control connection's far end */
	bool same_kernel;                    /* both ends run on this very kernel */
	char server_kernel[HOST_KERNEL_MAX]; /* its release, "" when it did not say */

	/* Private. */
	make_socket_fn *make_socket;
	void *arg;
};

/*
 * See client_open(). connection_close() is due afterwards, whatever the result.
 */
int connection_open(struct connection *link, const struct load_plan *plan, const char *target,
		    make_socket_fn *make_socket, void *arg);

/* crr: makes the next trip's socket, link->end.fd, still to be connected to link->end.to. 0 or -errno with a sentence. */
int connection_socket(struct connection *link, const struct load_plan *plan);

/* Why the server ended the session, when it said so: true, and its words in said. */
bool connection_last_words(const struct connection *link, char *said, size_t size);

/* The interface that carries its messages, "" when that cannot be told. */
void connection_interface(const struct connection *link, char name[INTERFACE_NAME_MAX]);

void connection_close(struct connection *link);

#endif
