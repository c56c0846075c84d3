/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's loop: receive a whole message, spin if asked to, send it back. */
#ifndef LAYOVER_ECHO_H
#define LAYOVER_ECHO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "load/plan.h"

struct echo {
	const struct load_plan *plan;
	int fd;
	void *message; /* from message_alloc(plan->bytes) */
	const struct sockaddr
		*peer; /* UDP: the only address that is answered; NULL: connected to it */
	socklen_t peer_len;
	_Atomic uint64_t progress; /* counts up while data arrives, for the idle limit */
	atomic_bool end;           /* set, then shutdown(fd), to end the loop from outside */
};

/* Returns when the stream ends, fails, or `end` is set. */
void echo_run(struct echo *echo);

#endif
