// SPDX-License-Identifier: GPL-2.0-only
#include "load/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/error.h"
#include "load/message.h"
#include "load/uring.h"

const char *const io_method_names[] = {
	"block", "spin", "select", "poll", "epoll", "uring", "uring-poll", "uring-fixed", NULL,
};

/* --- one call ------------------------------------------------------------------------------------ */

static ssize_t send_call(struct io *io, const void *from, size_t bytes, int flags)
{
	return message_send(io->fd, from, bytes, flags, io->to, io->to_len);
}

static ssize_t receive_call(struct io *io, void *to, size_t bytes, int flags)
{
	socklen_t len = sizeof(*io->from);
	ssize_t n = message_receive(io->fd, (char *)to - io->skip, bytes + io->skip, flags,
				    (struct sockaddr *)io->from, io->from ? &len : NULL);

	return n < (ssize_t)io->skip ? n : n - (ssize_t)io->skip;
}

static ssize_t block_send(struct io *io, const void *from, size_t bytes)
{
	return send_call(io, from, bytes, 0);
}

static ssize_t block_receive(struct io *io, void *to, size_t bytes)
{
	return receive_call(io, to, bytes, 0);
}

static bool interrupted(const struct io *io)
{
	return atomic_load_explicit(io->interrupt, memory_order_relaxed);
}

/* --- waiting ------------------------------------------------------------------------------------- */

/* Each waits until the socket is ready. Negative with errno when it was interrupted. */
static int wait_spin(struct io *io, short events)
{
	(void)io;
	(void)events;
	return 0;
}

static int wait_select(struct io *io, short events)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(io->fd, &set);
	return select(io->fd + 1, events == POLLIN ? &set : NULL, events == POLLOUT ? &set : NULL,
		      NULL, NULL);
}

static int wait_poll(struct io *io, short events)
{
	struct pollfd fds = {.fd = io->fd, .events = events};

	return poll(&fds, 1, -1);
}

/* Only reading is watched all the time: a socket that can be written to would always be ready. */
static int wait_epoll(struct io *io, short events)
{
	struct epoll_event event;

	return events == POLLIN ? epoll_wait(io->epoll_fd, &event, 1, -1) : wait_poll(io, events);
}

static int (*const waits[IO_METHODS])(struct io *io, short events) = {
	[IO_SPIN] = wait_spin,
	[IO_SELECT] = wait_select,
	[IO_POLL] = wait_poll,
	[IO_EPOLL] = wait_epoll,
};

/* 0: ready, as far as can be told; -1 with errno. */
static int wait_ready(struct io *io, short events)
{
	if (interrupted(io)) {
		errno = EINTR;
		return -1;
	}
	return waits[io->method](io, events) < 0 ? -1 : 0;
}

static ssize_t ready_send(struct io *io, const void *from, size_t bytes)
{
	ssize_t n;

	while ((n = send_call(io, from, bytes, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
		if (wait_ready(io, POLLOUT))
			return -1;
	return n;
}

static ssize_t ready_receive(struct io *io, void *to, size_t bytes)
{
	ssize_t n;

	do {
		if (wait_ready(io, POLLIN))
			return -1;
		n = receive_call(io, to, bytes, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	return n;
}

/* --- whole messages ------------------------------------------------------------------------------ */

/* After a call that returned n: 0 go on. */
static int after_call(struct io *io, ssize_t n)
{
	if (n == 0)
		return -ECONNRESET;
	if (n < 0 && errno != EINTR)
		return -errno;
	return io->after(io->arg, n > 0);
}

static void cork(const struct io *io, int on)
{
	setsockopt(io->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static int send_one(struct io *io, const char *from, size_t bytes, ssize_t n)
{
	size_t done = n > 0 ? (size_t)n : 0;
	int rc = n ? after_call(io, n) : 0;

	while (!rc && done < bytes) {
		n = io->send(io, from + done, bytes - done);
		done += n > 0 ? (size_t)n : 0;
		if (n <= 0 || done < bytes)
			rc = after_call(io, n);
	}
	return rc;
}

/* n is what the first call returned, 0: there was none. */
int io_send_rest(struct io *io, const char *from, size_t bytes, const struct plan_writes *writes,
		 ssize_t n)
{
	uint64_t count = writes->count;
	int rc = 0;

	if (io->cork)
		cork(io, 1);
	if (!count)
		rc = send_one(io, from, bytes, n);
	for (uint64_t i = 0; !rc && i < count; i++) {
		rc = send_one(io, from, writes->bytes[i], 0);
		from += writes->bytes[i];
	}
	if (io->cork == PLAN_CORK_FLUSH)
		cork(io, 0);
	return rc;
}

int io_receive_rest(struct io *io, char *to, size_t bytes, ssize_t n)
{
	static const int on = 1;
	size_t done = n > 0 ? (size_t)n : 0;
	int rc = done == bytes ? 0 : after_call(io, n);

	while (!rc && done < bytes) {
		n = io->receive(io, to + done, bytes - done);
		done += n > 0 ? (size_t)n : 0;
		if (n <= 0 || done < bytes)
			rc = after_call(io, n);
	}
	if (io->quickack)
		setsockopt(io->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	return rc;
}

/* --- opening and closing ------------------------------------------------------------------------- */

static int open_epoll(struct io *io)
{
	struct epoll_event event = {.events = EPOLLIN};

	io->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (io->epoll_fd >= 0 && !epoll_ctl(io->epoll_fd, EPOLL_CTL_ADD, io->fd, &event))
		return 0;
	return err_set(-errno, "cannot watch the socket with epoll: %s", strerror(errno));
}

int io_open(struct io *io, enum io_method method, uint64_t polls, void *const buffers[2],
	    size_t bytes)
{
	io->method = method;
	io->epoll_fd = -1;
	io->ring = NULL;
	if (method >= IO_URING)
		return uring_open(io, polls, buffers, bytes);
	io->send = method == IO_BLOCK ? block_send : ready_send;
	io->receive = method == IO_BLOCK ? block_receive : ready_receive;
	if (method == IO_SELECT && io->fd >= FD_SETSIZE)
		return err_set(-EMFILE, "select(2) takes no descriptor above %d", FD_SETSIZE - 1);
	return method == IO_EPOLL ? open_epoll(io) : 0;
}

void io_close(struct io *io)
{
	if (io->epoll_fd > 0)
		close(io->epoll_fd);
	uring_close(io);
	io->epoll_fd = -1;
}
