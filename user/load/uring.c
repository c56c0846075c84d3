// SPDX-License-Identifier: GPL-2.0-only
#include "load/uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { ENTRIES = 2 * PLAN_WRITES_MAX, DONE_SEND = 1, DONE_RECEIVE = 2, FILE_INDEX = 0 };

struct ring {
	struct io_uring uring;
	struct io_uring_sqe *last; /* the send prepared last, still to be submitted */
	const char *from;          /* of the send prepared last */
	bool receiving; /* a receive is under way, perhaps since a call that was interrupted */
	uint64_t polls;
	const char *buffers[2]; /* registered; both are `bytes` long */
	size_t bytes;
	struct msghdr out, in; /* of an unconnected socket */
	struct iovec out_part, in_part;
};

/*
 * The kernel does the socket's work when we ask for it (since 6.1), or interrupts us for it: on another CPU that is
 * an inter-processor interrupt, which costs more than all else.
 */
static int init_ring(struct ring *r)
{
	unsigned int flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0};
	int rc = -EINVAL;

	for (size_t i = 0; rc == -EINVAL && i < 2; i++)
		rc = io_uring_queue_init(ENTRIES, &r->uring, flags[i]);
	/* No look-up of the ring's file at each call; only the thread that made it makes any. Since 5.18, and only cheaper. */
	if (!rc && r->uring.flags & IORING_SETUP_SINGLE_ISSUER)
		io_uring_register_ring_fd(&r->uring);
	return rc;
}

/* Which of the registered buffers holds `at`. */
static int buffer_of(const struct ring *r, const char *at)
{
	return at >= r->buffers[1] && at < r->buffers[1] + r->bytes;
}

static struct io_uring_sqe *next_sqe(struct ring *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);

	if (sqe)
		return sqe;
	io_uring_submit(&r->uring); /* the queue is full: what is in it may leave */
	r->last = NULL;
	return io_uring_get_sqe(&r->uring);
}

static ssize_t submit_sends(struct ring *r, ssize_t bytes)
{
	int rc = io_uring_submit(&r->uring);

	r->last = NULL;
	if (rc >= 0)
		return bytes;
	errno = -rc;
	return -1;
}

/* Prepares only: the receive that follows submits both with one system call. */
static ssize_t ring_send(struct io *io, const void *from, size_t bytes)
{
	struct ring *r = io->ring;
	struct io_uring_sqe *sqe = next_sqe(r);

	if (!sqe) {
		errno = EBUSY;
		return -1;
	}
	if (io->to) {
		r->out_part = (struct iovec){(void *)from, bytes};
		r->out = (struct msghdr){.msg_name = (void *)io->to,
					 .msg_namelen = io->to_len,
					 .msg_iov = &r->out_part,
					 .msg_iovlen = 1};
		io_uring_prep_sendmsg(sqe, io->fd, &r->out, MSG_NOSIGNAL);
	} else if (io->method == IO_URING_FIXED) {
		io_uring_prep_write_fixed(sqe, FILE_INDEX, from, (unsigned int)bytes, 0,
					  buffer_of(r, from));
		sqe->flags |= IOSQE_FIXED_FILE;
	} else {
		/* A stream's short send goes on by itself with this flag (5.18). */
		io_uring_prep_send(sqe, io->fd, from, bytes, MSG_NOSIGNAL | MSG_WAITALL);
	}
	io_uring_sqe_set_data64(sqe, (uint64_t)bytes << 2 | DONE_SEND);
	r->from = from;
	if (r->last)
		r->last->flags |= IOSQE_IO_LINK; /* several writes of one message stay in order */
	r->last = sqe;
	return io->at_once ? submit_sends(r, (ssize_t)bytes) : (ssize_t)bytes;
}

static int prepare_receive(struct io *io, char *to, size_t bytes)
{
	struct ring *r = io->ring;
	struct io_uring_sqe *sqe = next_sqe(r);

	if (!sqe)
		return -EBUSY;
	to -= io->skip;
	bytes += io->skip;
	if (io->from) {
		r->in_part = (struct iovec){to, bytes};
		r->in = (struct msghdr){.msg_name = io->from,
					.msg_namelen = sizeof(*io->from),
					.msg_iov = &r->in_part,
					.msg_iovlen = 1};
		io_uring_prep_recvmsg(sqe, io->fd, &r->in, 0);
	} else if (io->method == IO_URING_FIXED) {
		io_uring_prep_read_fixed(sqe, FILE_INDEX, to, (unsigned int)bytes, 0,
					 buffer_of(r, to));
		sqe->flags |= IOSQE_FIXED_FILE;
	} else {
		io_uring_prep_recv(sqe, io->fd, to, bytes, 0);
	}
	io_uring_sqe_set_data64(sqe, DONE_RECEIVE);
	r->receiving = true;
	r->last = NULL;
	return 0;
}

/* Looks for a completion `polls` times. True when there is one. */
static bool look(const struct io *io)
{
	struct ring *r = io->ring;

	for (uint64_t i = 0;
	     i < r->polls && !atomic_load_explicit(io->interrupt, memory_order_relaxed); i++) {
		if (r->uring.flags & IORING_SETUP_DEFER_TASKRUN)
			io_uring_get_events(&r->uring);
		if (io_uring_cq_ready(&r->uring))
			return true;
	}
	return false;
}

/* Submits what is prepared and waits for a completion. 0 or -errno. */
static int submit_and_wait(struct io *io)
{
	struct ring *r = io->ring;
	int rc;

	if (io->method == IO_URING_POLL) {
		rc = io_uring_submit(&r->uring);
		r->last = NULL;
		if (rc < 0 || look(io))
			return rc < 0 ? rc : 0;
	}
	rc = io_uring_submit_and_wait(&r->uring, 1);
	r->last = NULL;
	return rc < 0 ? rc : 0;
}

/* Takes one completion. 1: it was the receive, *n is its result. 0: a send. -errno: a send failed. */
static int take(struct io *io, struct io_uring_cqe *cqe, ssize_t *n)
{
	uint64_t data = io_uring_cqe_get_data64(cqe);
	int res = cqe->res;

	io_uring_cqe_seen(&io->ring->uring, cqe);
	if (data == DONE_RECEIVE) {
		io->ring->receiving = false;
		*n = res < (int)io->skip ? res : res - (int)io->skip;
		return 1;
	}
	if (res < 0)
		return res;
	if ((uint64_t)res == data >> 2)
		return 0;
	/* Registered buffers go by write(2), which may be short: only a large message, in one write. */
	return res && ring_send(io, io->ring->from + res, (data >> 2) - (uint64_t)res) > 0 ? 0
											   : -EPIPE;
}

static ssize_t ring_receive(struct io *io, void *to, size_t bytes)
{
	struct ring *r = io->ring;
	struct io_uring_cqe *cqe;
	int rc = r->receiving ? 0 : prepare_receive(io, to, bytes);
	ssize_t n = 0;

	while (!rc) {
		if (r->last || !io_uring_cq_ready(&r->uring))
			rc = submit_and_wait(io);
		while (!rc && !io_uring_peek_cqe(&r->uring, &cqe))
			rc = take(io, cqe, &n);
	}
	if (rc > 0)
		rc = n < 0 ? (int)n : 0;
	if (rc == 0)
		return n;
	errno = -rc;
	return -1;
}

static int register_all(struct io *io, void *const buffers[2])
{
	struct ring *r = io->ring;
	struct iovec parts[2] = {{buffers[0], r->bytes}, {buffers[1], r->bytes}};
	int rc = io_uring_register_files(&r->uring, &io->fd, 1);

	/* One buffer may serve both ways. */
	return rc ? rc
		  : io_uring_register_buffers(&r->uring, parts, buffers[0] == buffers[1] ? 1 : 2);
}

int uring_open(struct io *io, uint64_t polls, void *const buffers[2], size_t bytes)
{
	struct ring *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(-ENOMEM, "no memory for an io_uring");
	rc = init_ring(r);
	if (rc) {
		free(r);
		return err_set(rc, "io_uring cannot be used here: %s%s", strerror(-rc),
			       rc == -EPERM ? "; see sysctl kernel.io_uring_disabled" : "");
	}
	io->ring = r;
	r->polls = polls;
	r->bytes = bytes;
	r->buffers[0] = buffers[0];
	r->buffers[1] = buffers[0] == buffers[1] ? NULL : buffers[1];
	io->send = ring_send;
	io->receive = ring_receive;
	if (io->method == IO_URING_FIXED && (rc = register_all(io, buffers)))
		return err_set(rc, "io_uring cannot register the message buffers: %s",
			       strerror(-rc));
	return 0;
}

void uring_close(struct io *io)
{
	if (!io->ring)
		return;
	io_uring_queue_exit(&io->ring->uring);
	free(io->ring);
	io->ring = NULL;
}
