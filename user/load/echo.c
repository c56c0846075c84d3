// SPDX-License-Identifier: GPL-2.0-only
#include "load/echo.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "load/address.h"
#include "load/clock.h"
#include "load/endpoint.h"
#include "load/io.h"
#include "load/message.h"
#include "load/sink.h"

static bool ended(const struct echo *echo)
{
	return atomic_load_explicit(&echo->end, memory_order_relaxed);
}

/* Burns the time instead of sleeping: a sleep would add a wake-up that nobody asked for. */
static void spin(const struct echo *echo, uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	while (clock_ns() < until && !ended(echo))
		;
}

static void progress(struct echo *echo)
{
	uint64_t count = atomic_load_explicit(&echo->progress, memory_order_relaxed);

	atomic_store_explicit(&echo->progress, count + 1, memory_order_relaxed);
}

/* See struct io. */
static int after_part(void *arg, bool moved)
{
	struct echo *echo = arg;

	if (moved)
		progress(echo);
	return ended(echo) ? -ECANCELED : 0;
}

/* One request and its reply. 0 or why the stream is over. */
static int echo_message(struct echo *echo, struct io *io)
{
	const struct load_plan *plan = echo->plan;
	int rc = io_receive_message(io, echo->message, plan->bytes);

	if (rc)
		return rc;
	if (plan->server_delay_ns)
		spin(echo, plan->server_delay_ns);
	rc = io_send_message(io, echo->message, plan_reply_bytes(plan), &plan->reply_writes);
	progress(echo);
	return rc;
}

static void echo_stream(struct echo *echo, struct io *io)
{
	const struct load_plan *plan = echo->plan;

	if (plan->receive_first &&
	    io_send_message(io, echo->message, plan_reply_bytes(plan), &plan->reply_writes))
		return;
	while (!echo_message(echo, io))
		;
}

/* crr: one message per connection, and the server closes first. */
static void echo_connections(struct echo *echo, struct io *io)
{
	while (!ended(echo)) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);

		io->fd = accept4(echo->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
		if (io->fd < 0)
			continue;
		if (address_same_host((struct sockaddr *)&from, echo->peer) &&
		    !endpoint_options(echo->plan, io->fd))
			echo_message(echo, io);
		close(io->fd);
	}
}

/* Nobody but the session's peer gets a reply, and none is longer than its request: no reflector. */
static bool is_request(const struct echo *echo, const struct io *io, ssize_t n)
{
	if (n <= 0)
		return false;
	if (echo->plan->proto == PLAN_RAW)
		return n == (ssize_t)echo->plan->bytes &&
		       message_session(echo->message) == echo->session &&
		       !message_is_answer(echo->message);
	return !io->from || address_equal((const struct sockaddr *)io->from, echo->peer);
}

static void echo_datagrams(struct echo *echo, struct io *io)
{
	const struct load_plan *plan = echo->plan;
	uint64_t reply = plan_reply_bytes(plan);

	while (!ended(echo)) {
		ssize_t n = io->receive(io, echo->message, plan->bytes);

		/* Errors are ICMP's word about earlier replies; the control connection says when to end. */
		if (!is_request(echo, io, n))
			continue;
		if (plan->server_delay_ns)
			spin(echo, plan->server_delay_ns);
		if (plan->proto == PLAN_RAW)
			message_answer(echo->message);
		io->send(io, echo->message, (uint64_t)n < reply ? (size_t)n : reply);
		progress(echo);
	}
}

int echo_run(struct echo *echo)
{
	const struct load_plan *plan = echo->plan;
	struct sockaddr_storage from;
	struct io io = {
		.fd = echo->fd,
		.cork = plan->cork,
		.quickack = plan->quickack,
		.interrupt = &echo->end,
		.after = after_part,
		.arg = echo,
	};
	int rc;

	if (plan->unconnected || plan->proto == PLAN_MULTICAST) {
		io.to = echo->peer;
		io.to_len = address_size(echo->peer);
		io.from = &from;
	}
	if (plan->proto == PLAN_RAW && echo->peer->sa_family == AF_INET)
		io.skip = IO_RAW_SKIP;
	if (plan->mode == PLAN_SINK)
		return sink_run(echo);
	rc = io_open(&io, plan->server_io, plan->polls, (void *[]){echo->message, echo->message},
		     plan_bytes_max(plan));
	if (!rc && plan->crr)
		echo_connections(echo, &io);
	else if (!rc && plan_datagrams(plan))
		echo_datagrams(echo, &io);
	else if (!rc)
		echo_stream(echo, &io);
	io_close(&io);
	return rc;
}
