// SPDX-License-Identifier: GPL-2.0-only
#include "load/client_own.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "base/place.h"
#include "load/clock.h"
#include "load/message.h"
#include "load/peer.h"

enum { RESERVE_TRIPS = 4096 };

/* Trips that are slower than this need no warm caches. */
#define SETTLE_NS (5ULL * NS_PER_MS)

/* --- failures ---------------------------------------------------------------------------- */

static int server_gone(struct load_client *c, const char *why)
{
	char said[256];

	if (connection_last_words(&c->link, said, sizeof(said)))
		return err_set(-ECONNRESET, "the server %s ended the session: %s",
			       c->link.server_text, said);
	return err_set(-ECONNRESET, "the server %s is gone: %s", c->link.server_text, why);
}

int client_failed(struct load_client *c, int rc)
{
	switch (-rc) {
	case ECANCELED:
		return rc;
	case ETIMEDOUT:
		return err_set(rc, "the server %s stopped answering: nothing came back for %.0f s",
			       c->link.server_text,
			       (double)(c->silent_ns ? c->silent_ns : c->dog.limit_ns) / NS_PER_S);
	case EBADMSG:
		return rc; /* has its sentence */
	case 0:
	case ECONNRESET:
	case EPIPE:
		return server_gone(c, "it closed the connection");
	case ECONNREFUSED:
		return server_gone(c, "its UDP socket is closed");
	default:
		return err_set(rc, "a message to the server %s failed: %s", c->link.server_text,
			       strerror(-rc));
	}
}

/* --- one trip ---------------------------------------------------------------------------- */

/* See struct io. */
static int after_part(void *arg, bool moved)
{
	struct load_client *c = arg;

	if (!moved)
		return watchdog_verdict(&c->dog);
	watchdog_mark(&c->dog, clock_ns());
	return 0;
}

static int out_of_step(struct load_client *c, uint64_t seq)
{
	return err_set(-EBADMSG, "the server %s answered trip %llu with another message",
		       c->link.server_text, (unsigned long long)peer_seq(c->plan.peer, seq));
}

static int trip_stream(struct load_client *c, uint64_t seq, uint64_t *start, uint64_t *end)
{
	int rc;

	*start = clock_ns();
	watchdog_mark(&c->dog, *start);
	rc = io_send_message(&c->io, c->request, c->bytes, &c->plan.writes);
	if (!rc)
		rc = io_receive_message(&c->io, c->reply, c->reply_bytes);
	if (rc)
		return rc;
	*end = clock_ns();
	if (message_get_seq(c->reply, c->mask) != (seq & c->mask))
		return out_of_step(c, seq);
	return 0;
}

static int connect_now(struct load_client *c)
{
	const struct sockaddr *to = (const struct sockaddr *)&c->link.end.to;
	int rc = 0;

	while (!rc && connect(c->io.fd, to, address_size(to)) && errno != EISCONN)
		rc = errno == EINTR || errno == EALREADY ? watchdog_verdict(&c->dog) : -errno;
	return rc;
}

/* The server closes first, so that no port is used up here. */
static int await_close(struct load_client *c)
{
	char byte;
	int rc = 0;

	while (!rc && c->io.receive(&c->io, &byte, 1) < 0)
		rc = errno == EINTR ? watchdog_verdict(&c->dog) : -errno;
	close(c->io.fd);
	c->link.end.fd = -1;
	return rc;
}

/* A connection of its own for each trip; its socket is made before, because the lab's way to do so takes longer. */
static int trip_connect(struct load_client *c, uint64_t seq, uint64_t *start, uint64_t *end)
{
	int rc = connection_socket(&c->link, &c->plan);

	if (rc) {
		*start = *end = clock_ns();
		return rc;
	}
	c->io.fd = c->link.end.fd;
	*start = clock_ns();
	watchdog_mark(&c->dog, *start);
	rc = connect_now(c);
	if (!rc)
		rc = io_send_message(&c->io, c->request, c->bytes, &c->plan.writes);
	if (!rc)
		rc = io_receive_message(&c->io, c->reply, c->reply_bytes);
	if (!rc)
		rc = await_close(c);
	*end = clock_ns();
	if (!rc && message_get_seq(c->reply, c->mask) != (seq & c->mask))
		return out_of_step(c, seq);
	return rc;
}

/* The counters of the block that sent seq. */
static struct samples *counters_of(struct load_client *c, uint64_t seq)
{
	if (seq >= c->block_first)
		return c->block;
	if (c->last_block && seq >= c->last_first && seq < c->last_end)
		return c->last_block;
	return &c->discarded;
}

/* A datagram that is not the awaited reply: finds the trip it belongs to and counts it there. */
static void count_stray(struct load_client *c, uint64_t seq)
{
	uint64_t theirs = peer_seq(c->plan.peer, message_get_seq(c->reply, c->mask));
	uint64_t back = (seq - theirs) & c->mask;
	uint64_t oldest = c->lost_count > LOST_KEPT ? c->lost_count - LOST_KEPT : 0;

	if (back == 0 || back >= seq)
		return; /* a size or a number we never sent: not ours */
	seq -= back;
	for (uint64_t i = c->lost_count; i-- > oldest;) {
		struct samples *counters = c->lost[i % LOST_KEPT].counters;

		if (c->lost[i % LOST_KEPT].seq != seq)
			continue;
		c->lost[i % LOST_KEPT].seq = 0;
		counters->late++;
		counters->out_of_order += seq < c->answered;
		return;
	}
	counters_of(c, seq)->duplicated++;
}

bool client_of_session(const struct load_client *c, const void *reply, ssize_t n,
		       const struct sockaddr_storage *from)
{
	if (c->plan.proto == PLAN_RAW)
		return n >= (ssize_t)sizeof(struct message_header) &&
		       message_session(reply) == (uint32_t)c->link.flow.session &&
		       message_is_answer(reply);
	return !c->io.from || address_equal((const struct sockaddr *)from,
					    (const struct sockaddr *)&c->link.end.from);
}

/* The same, and of a reply's size. */
static bool of_session(const struct load_client *c, ssize_t n)
{
	return n == (ssize_t)c->reply_bytes && client_of_session(c, c->reply, n, &c->from);
}

/* Something else than the awaited reply. 0: wait on. */
static int stray(struct load_client *c, ssize_t n, uint64_t seq)
{
	if (n < 0)
		return errno == EINTR ? watchdog_verdict(&c->dog) : -errno;
	if (of_session(c, n))
		count_stray(c, peer_seq(c->plan.peer, seq));
	return watchdog_verdict(&c->dog);
}

static int send_again(struct load_client *c)
{
	int rc;

	do {
		rc = errno == EINTR ? watchdog_verdict(&c->dog) : -errno;
		if (rc)
			return rc;
	} while (c->io.send(&c->io, c->request, c->bytes) < 0);
	return 0;
}

static int trip_datagram(struct load_client *c, uint64_t seq, uint64_t *start, uint64_t *end)
{
	ssize_t n;
	int rc;

	*start = clock_ns();
	watchdog_mark(&c->dog, *start);
	if (c->io.send(&c->io, c->request, c->bytes) < 0 && (rc = send_again(c)))
		return rc;
	for (;;) {
		n = c->io.receive(&c->io, c->reply, c->reply_bytes);
		if (n == (ssize_t)c->reply_bytes &&
		    message_get_seq(c->reply, c->mask) == (seq & c->mask) && of_session(c, n))
			break;
		rc = stray(c, n, seq);
		if (rc)
			return rc;
	}
	*end = clock_ns();
	return 0;
}

/* --- blocks ------------------------------------------------------------------------------ */

/* A UDP trip without a reply. 0: go on with the next one. */
static int lose(struct load_client *c, uint64_t start, uint64_t *end)
{
	*end = clock_ns();
	c->lost[c->lost_count % LOST_KEPT].seq = c->seq;
	c->lost[c->lost_count++ % LOST_KEPT].counters = c->block;
	c->block->lost++;
	c->silent_ns += *end - start;
	if (c->silent_ns < CLIENT_SILENCE_NS)
		return 0;
	return client_failed(c, -ETIMEDOUT);
}

/* A reply is the request, cut short or filled up with zeros. */
static int check_payload(struct load_client *c)
{
	uint64_t both = c->reply_bytes < c->bytes ? c->reply_bytes : c->bytes, at;
	const char *rest = (const char *)c->reply + both;

	if (c->plan.proto == PLAN_RAW)
		message_answer(c->reply);
	peer_unanswer(c->plan.peer, c->reply);
	if (message_equal(c->request, c->reply, both, &at)) {
		for (at = both; at < c->reply_bytes && !*rest; at++)
			rest++;
		if (at == c->reply_bytes)
			return 0;
	}
	return err_set(-EBADMSG, "the reply to trip %llu differs from the request at byte %llu",
		       (unsigned long long)c->seq, (unsigned long long)at);
}

static int one_trip(struct load_client *c, struct samples *out, uint64_t *end)
{
	uint64_t start, number;
	int rc;

	c->seq++;
	number = peer_seq(c->plan.peer, c->seq);
	message_put_seq(c->request, number);
	if (c->plan.verify)
		message_fill(c->request, c->bytes, c->seq);
	rc = c->trip(c, number, &start, end);
	/* -EPERM: a filter of this host's dropped it (netfilter, cgroup_skb). */
	if ((rc == -ETIMEDOUT || rc == -EPERM) && plan_datagrams(&c->plan))
		return lose(c, start, end);
	if (rc)
		return client_failed(c, rc);
	c->answered = c->seq;
	c->silent_ns = 0;
	if (c->plan.verify && (rc = check_payload(c)))
		return rc;
	if (out) {
		out->start_ns[out->count] = start;
		out->rtt_ns[out->count++] = *end - start;
	}
	if (c->nic)
		nic_take(c->nic, out ? out->count - 1 : NIC_NO_TRIP);
	return 0;
}

int client_place(const struct load_plan *plan, unsigned int n)
{
	int rc = place_on_node(plan->numa);

	if (!rc)
		rc = cpus_pin(plan_client_cpu(plan, n));
	return rc ? rc : place_fifo(plan->fifo);
}

int client_adopt(struct load_client *c)
{
	int rc = c->pinned ? 0 : client_place(&c->plan, 0);

	if (rc || c->pinned)
		return rc;
	watchdog_outrank(&c->dog, c->plan.fifo);
	watchdog_adopt(&c->dog);
	c->pinned = true;
	return 0;
}

static int begin_block(struct load_client *c, uint64_t trips, struct samples *out)
{
	int rc;

	if (c->broken)
		return -ECANCELED;
	if (atomic_load(&c->dog.gone))
		return server_gone(c, "it closed the connection");
	rc = client_adopt(c);
	if (rc)
		return rc;
	c->block = out ? out : &c->discarded;
	c->block_first = c->seq + 1;
	return out ? samples_reserve(out, trips && trips < RESERVE_TRIPS ? trips : RESERVE_TRIPS)
		   : 0;
}

static void end_block(struct load_client *c, int rc, struct samples *out)
{
	watchdog_mark(&c->dog, 0);
	c->broken |= rc != 0;
	if (!out)
		return;
	c->last_block = out;
	c->last_first = c->block_first;
	c->last_end = c->seq + 1;
}

static int run_block(struct load_client *c, uint64_t max_trips, uint64_t max_ns,
		     struct samples *out, bool settling)
{
	uint64_t begun = clock_ns(), end = begun;
	int rc = begin_block(c, max_trips, out);

	if (rc)
		return rc;
	for (uint64_t n = 0; !max_trips || n < max_trips; n++) {
		if ((!settling && client_stopped(c)) || (max_ns && end - begun >= max_ns))
			break;
		if (out && out->count == out->capacity)
			rc = samples_reserve(out, RESERVE_TRIPS);
		if (!rc)
			rc = one_trip(c, out, &end);
		if (rc || (settling && !client_answered(c)))
			break;
	}
	end_block(c, rc, out);
	return rc;
}

int client_block(struct load_client *c, uint64_t max_trips, uint64_t max_ns, struct samples *out)
{
	return run_block(c, max_trips, max_ns, out, false);
}

int client_settle(struct load_client *c, uint64_t trips)
{
	return run_block(c, trips, SETTLE_NS, NULL, true);
}

/* --- opening and closing ----------------------------------------------------------------- */

int client_io_open(struct load_client *c, struct io *io)
{
	const struct load_plan *plan = &c->plan;
	const struct endpoint *end = &c->link.end;

	*io = (struct io){
		.fd = end->fd,
		.cork = plan->cork,
		.at_once = plan_overlaps(plan),
		.quickack = plan->quickack,
		.interrupt = &watchdog_interrupt,
		.after = after_part,
		.arg = c,
	};
	if (plan->unconnected || plan->proto == PLAN_MULTICAST) {
		io->to = (const struct sockaddr *)&end->to;
		io->to_len = address_size(io->to);
		io->from = &c->from;
	}
	if (plan->proto == PLAN_RAW && end->to.ss_family == AF_INET)
		io->skip = IO_RAW_SKIP;
	return io_open(io, plan->io, plan->polls, (void *[]){c->request, c->reply},
		       plan_bytes_max(plan));
}

/* The server begins: its first message is none of ours. */
static int receive_first(struct load_client *c)
{
	int rc;

	watchdog_mark(&c->dog, clock_ns());
	rc = io_receive_message(&c->io, c->reply, c->reply_bytes);
	watchdog_mark(&c->dog, 0);
	return rc ? client_failed(c, rc) : 0;
}

static int prepare(struct load_client *c)
{
	uint64_t bytes = plan_bytes_max(&c->plan);
	uint64_t limit = c->plan.timeout_ns;
	int rc;

	c->bytes = c->plan.bytes;
	c->reply_bytes = plan_reply_bytes(&c->plan);
	c->mask = message_seq_mask(c->bytes < c->reply_bytes ? c->bytes : c->reply_bytes);
	c->trip = plan_datagrams(&c->plan) ? trip_datagram
		  : c->plan.crr            ? trip_connect
					   : trip_stream;
	c->request = message_alloc(bytes);
	c->reply = message_alloc(bytes);
	if (!c->request || !c->reply)
		return err_set(-ENOMEM, "no memory for messages of %llu bytes",
			       (unsigned long long)bytes);
	message_label(c->request, c->bytes, c->link.flow.session);
	peer_label(c->plan.peer, c->request, c->bytes);
	/* A stream cannot lose a trip, only its server. */
	if (!plan_datagrams(&c->plan) && limit < CLIENT_SILENCE_NS)
		limit = CLIENT_SILENCE_NS;
	rc = client_io_open(c, &c->io);
	if (rc)
		return rc;
	rc = watchdog_open(&c->dog, c->link.control_fd, limit);
	c->watched = !rc;
	return !rc && c->plan.receive_first ? receive_first(c) : rc;
}

void client_lock(const struct load_plan *plan)
{
	if (!plan->lock_memory || !place_lock_all())
		return;
	say_note("%s", err_text(0));
	err_clear();
}

int client_open(struct load_client **client, const struct load_plan *plan, const char *target,
		make_socket_fn *make_socket, void *arg)
{
	struct load_client *c = aligned_alloc(_Alignof(struct load_client), sizeof(*c));
	int rc;

	*client = NULL;
	if (!c)
		return err_set(-ENOMEM, "no memory for a client");
	memset(c, 0, sizeof(*c));
	c->plan = *plan;
	rc = connection_open(&c->link, plan, target, make_socket, arg);
	if (!rc)
		rc = prepare(c);
	if (!rc)
		client_lock(plan);
	if (rc) {
		client_close(c);
		return rc;
	}
	*client = c;
	return 0;
}

int client_hw_timestamps(struct load_client *c)
{
	return nic_open(&c->nic, c->io.fd);
}

struct nic_clock *client_nic(struct load_client *c)
{
	return c->nic;
}

void client_close(struct load_client *c)
{
	if (!c)
		return;
	nic_close(c->nic);
	if (c->watched)
		watchdog_close(&c->dog);
	io_close(&c->io);
	connection_close(&c->link);
	message_free(c->request, plan_bytes_max(&c->plan));
	message_free(c->reply, plan_bytes_max(&c->plan));
	free(c);
}

const struct load_flow *client_flow(const struct load_client *c)
{
	return &c->link.flow;
}

bool client_same_kernel(const struct load_client *c)
{
	return c->link.same_kernel;
}

const char *client_server_kernel(const struct load_client *c)
{
	return c->link.server_kernel;
}

void client_interface(const struct load_client *c, char name[INTERFACE_NAME_MAX])
{
	connection_interface(&c->link, name);
}

int client_control(const struct load_client *c)
{
	return c->link.control_fd;
}

uint64_t client_lost_unmeasured(const struct load_client *c)
{
	return c->discarded.lost;
}

bool client_answered(const struct load_client *c)
{
	return c->answered == c->seq;
}

uint64_t client_trips(const struct load_client *c)
{
	return c->seq;
}

void client_stop(struct load_client *c)
{
	watchdog_stop(&c->dog);
}

bool client_stopped(const struct load_client *c)
{
	return atomic_load_explicit(&c->dog.stop, memory_order_relaxed);
}
