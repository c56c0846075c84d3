/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ways to move a message through a socket: one interface, so that every method runs under the same loop
 * and the same statistics.
 */
#ifndef LAYOVER_IO_H
#define LAYOVER_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "load/plan.h"

enum io_method {
	IO_BLOCK,       /* the call sleeps until it can be done */
	IO_SPIN,        /* nonblocking calls, again and again */
	IO_SELECT,      /* select(2), then a nonblocking call */
	IO_POLL,        /* poll(2) */
	IO_EPOLL,       /* epoll_wait(2), level-triggered */
	IO_URING,       /* io_uring, sleeping until a completion comes */
	IO_URING_POLL,  /* io_uring, looking for completions `polls` times before sleeping */
	IO_URING_FIXED, /* io_uring with registered file and buffers */
	IO_METHODS,
};

/* As on the command line and in JSON; ends with NULL. */
extern const char *const io_method_names[];

/* A raw IPv4 socket receives the header as well; without options it has 20 bytes (RFC 791, 3.1). */
enum { IO_RAW_SKIP = 20 };

struct ring; /* io_uring's, in uring.c */

struct io {
	/* Set before io_open(). */
	int fd; /* blocking, whatever the method */
	const struct sockaddr
		*to; /* datagrams of an unconnected socket go here; NULL: it is connected */
	socklen_t to_len;
	struct sockaddr_storage *from; /* where a received datagram came from; NULL: not wanted */
	uint32_t skip; /* bytes before the message in what is received (a raw IP header) */
	int cork;      /* enum plan_cork */
	bool at_once;  /* io_uring: send() does not wait to leave together with a receive() */
	bool quickack; /* TCP_QUICKACK again after each message */
	const atomic_bool *interrupt; /* ends methods that never sleep, with EINTR */
	/*
	 * Called by io_send_message() and io_receive_message() when a part was moved, or a call was
	 * interrupted (moved is false): 0 to go on, -errno to give up.
	 */
	int (*after)(void *arg, bool moved);
	void *arg;

	/* As sendto(2) and recvfrom(2) return, with errno. io_uring's send() only prepares: it leaves, and
	 * fails, in the receive() that follows. */
	ssize_t (*send)(struct io *io, const void *from, size_t bytes);
	ssize_t (*receive)(struct io *io, void *to, size_t bytes);

	/* Private. */
	int method, epoll_fd;
	struct ring *ring;
};

/*
 * Readies a method for the calling thread, which alone may use it. polls is for IO_URING_POLL; the buffers are
 * those of all later calls (IO_URING_FIXED registers them). 0 or -errno with a sentence; io_close() ends it.
 */
int io_open(struct io *io, enum io_method method, uint64_t polls, void *const buffers[2],
	    size_t bytes);
void io_close(struct io *io);

/* What io_send_message() and io_receive_message() do when one call does not do. */
int io_send_rest(struct io *io, const char *from, size_t bytes, const struct plan_writes *writes,
		 ssize_t n);
int io_receive_rest(struct io *io, char *to, size_t bytes, ssize_t n);

/* A whole message into a stream, in these writes. 0, -errno, or what after() returned. */
static inline int io_send_message(struct io *io, const void *from, size_t bytes,
				  const struct plan_writes *writes)
{
	ssize_t n;

	if (writes->count || io->cork)
		return io_send_rest(io, from, bytes, writes, 0);
	n = io->send(io, from, bytes);
	return n == (ssize_t)bytes ? 0 : io_send_rest(io, from, bytes, writes, n);
}

/* A whole message from a stream. 0, -errno (-ECONNRESET at its end), or what after() returned. */
static inline int io_receive_message(struct io *io, void *to, size_t bytes)
{
	ssize_t n = io->receive(io, to, bytes);

	return n == (ssize_t)bytes && !io->quickack ? 0 : io_receive_rest(io, to, bytes, n);
}

#endif
