// SPDX-License-Identifier: GPL-2.0-only
#include "load/echo.h"

#include <errno.h>

#include "load/address.h"
#include "load/clock.h"
#include "load/message.h"

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

/* The rest of a message of which recv() gave n bytes (or failed). False when the stream is over. */
static bool receive_rest(struct echo *echo, ssize_t n)
{
	uint64_t done = 0;

	for (;;) {
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		done += n > 0 ? (uint64_t)n : 0;
		if (done == echo->plan->bytes)
			return true;
		progress(echo);
		n = message_receive(echo->fd, (char *)echo->message + done,
				    echo->plan->bytes - done, NULL, NULL);
	}
}

static bool send_rest(struct echo *echo, ssize_t n)
{
	uint64_t done = 0;

	for (;;) {
		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (uint64_t)n : 0;
		if (done == echo->plan->bytes)
			return true;
		progress(echo);
		n = message_send(echo->fd, (char *)echo->message + done, echo->plan->bytes - done,
				 NULL, 0);
	}
}

static void echo_tcp(struct echo *echo)
{
	uint64_t bytes = echo->plan->bytes, delay = echo->plan->server_delay_ns;
	ssize_t want = (ssize_t)bytes, n;

	for (;;) {
		n = message_receive(echo->fd, echo->message, bytes, NULL, NULL);
		if (n != want && !receive_rest(echo, n))
			return;
		if (delay)
			spin(echo, delay);
		n = message_send(echo->fd, echo->message, bytes, NULL, 0);
		if (n != want && !send_rest(echo, n))
			return;
		progress(echo);
	}
}

/* A reply is as long as its request, and nobody but the session's peer gets one: no reflector. */
static void echo_udp(struct echo *echo)
{
	uint64_t bytes = echo->plan->bytes, delay = echo->plan->server_delay_ns;
	struct sockaddr_storage sender;
	struct sockaddr *from = echo->peer ? (struct sockaddr *)&sender : NULL;

	while (!ended(echo)) {
		socklen_t len = sizeof(sender);
		ssize_t n =
			message_receive(echo->fd, echo->message, bytes, from, from ? &len : NULL);

		/* Errors are ICMP's word about earlier replies; the control connection says when to
		 * end. */
		if (n <= 0 || (from && !address_equal(from, echo->peer)))
			continue;
		if (delay)
			spin(echo, delay);
		message_send(echo->fd, echo->message, (size_t)n, echo->peer, echo->peer_len);
		progress(echo);
	}
}

void echo_run(struct echo *echo)
{
	if (echo->plan->proto == PLAN_UDP)
		echo_udp(echo);
	else
		echo_tcp(echo);
}
