/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's loop: receive a whole message, spin if asked to, answer it. */
#ifndef LAYOVER_ECHO_H
#define LAYOVER_ECHO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "load/plan.h"

struct echo {
	const struct load_plan *plan;
	int fd;                           /* crr: a listening socket */
	void *message;                    /* from message_alloc(plan_bytes_max(plan)) */
	const struct sockaddr *peer;      /* the only address that is answered */
	uint32_t session;                 /* as in the message header; for raw sockets */
	atomic_int tid;                   /* of the thread that runs it; 0: not yet */
	_Atomic uint64_t progress;        /* counts up while data arrives, for the idle limit */
	_Atomic uint64_t messages, bytes; /* PLAN_SINK: what came; of a stream, whole messages */
	atomic_bool end;                  /* set, then shutdown(fd), to end the loop from outside */
};

/* Returns when the stream ends, fails, or `end` is set: 0, or -errno with a sentence if it could not start. */
int echo_run(struct echo *echo);

#endif
