// SPDX-License-Identifier: GPL-2.0-only
#include "load/sink.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "load/address.h"

enum { BATCH = 64, STREAM_BYTES = 256 << 10, BUFFER_BYTES = 4 << 20 };

/* Only this thread writes them. */
static void count(struct echo *echo, uint64_t messages, uint64_t bytes)
{
	uint64_t sum = atomic_load_explicit(&echo->bytes, memory_order_relaxed) + bytes;

	atomic_store_explicit(&echo->bytes, sum, memory_order_relaxed);
	messages += atomic_load_explicit(&echo->messages, memory_order_relaxed);
	atomic_store_explicit(&echo->messages, messages, memory_order_relaxed);
	atomic_fetch_add_explicit(&echo->progress, 1, memory_order_relaxed);
}

static void sink_stream(struct echo *echo)
{
	uint64_t each = echo->plan->bytes, total = 0;
	char *buffer = malloc(STREAM_BYTES);
	ssize_t n;

	while (buffer && !atomic_load(&echo->end)) {
		n = recv(echo->fd, buffer, STREAM_BYTES, 0);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		if (n < 0)
			continue;
		count(echo, (total + (uint64_t)n) / each - total / each, (uint64_t)n);
		total += (uint64_t)n;
	}
	free(buffer);
}

/* Many datagrams by one system call: the receiver must not be what limits the rate. */
struct batch {
	struct mmsghdr headers[BATCH];
	struct iovec parts[BATCH];
	struct sockaddr_storage from[BATCH];
	char *memory;
};

static struct batch *batch_new(const struct echo *echo)
{
	size_t bytes = echo->plan->bytes;
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->memory = malloc(BATCH * bytes);
	for (size_t i = 0; b->memory && i < BATCH; i++) {
		b->parts[i] = (struct iovec){b->memory + i * bytes, bytes};
		b->headers[i].msg_hdr = (struct msghdr){.msg_iov = &b->parts[i], .msg_iovlen = 1};
	}
	return b;
}

static void take_batch(struct echo *echo, struct batch *b, bool connected)
{
	uint64_t bytes = 0, messages = 0;
	int n;

	for (size_t i = 0; !connected && i < BATCH; i++) {
		b->headers[i].msg_hdr.msg_name = &b->from[i];
		b->headers[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
	}
	n = recvmmsg(echo->fd, b->headers, BATCH, MSG_WAITFORONE, NULL);
	for (int i = 0; i < n; i++) {
		if (!b->headers[i].msg_len ||
		    (!connected && !address_equal((struct sockaddr *)&b->from[i], echo->peer)))
			continue;
		messages++;
		bytes += b->headers[i].msg_len;
	}
	if (messages)
		count(echo, messages, bytes);
}

/* So that a moment without the CPU loses nothing; more than net.core.rmem_max where privileges allow. */
static void enlarge_buffer(int fd)
{
	static const int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static void sink_datagrams(struct echo *echo)
{
	bool connected = !echo->plan->unconnected && echo->plan->proto == PLAN_UDP;
	struct batch *b = batch_new(echo);

	if (!echo->plan->rcvbuf)
		enlarge_buffer(echo->fd);
	while (b && b->memory && !atomic_load(&echo->end))
		take_batch(echo, b, connected);
	if (b)
		free(b->memory);
	free(b);
}

int sink_run(struct echo *echo)
{
	if (plan_datagrams(echo->plan))
		sink_datagrams(echo);
	else
		sink_stream(echo);
	return 0;
}
