// SPDX-License-Identifier: GPL-2.0-only
#include "load/overlap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/error.h"
#include "load/client_own.h"
#include "load/clock.h"
#include "load/flight.h"
#include "load/message.h"
#include "load/peer.h"
#include "load/playback.h"

#define SPIN_NS  (50ULL * NS_PER_US)  /* a timer's wake-up is no more exact than this */
#define LOOK_NS  (1ULL * NS_PER_MS)   /* how often the end is looked for */
#define GRACE_NS (100ULL * NS_PER_MS) /* after a stop, for replies under way */

struct overlap {
	struct load_client *c;
	struct flight flight;
	struct playback playback;
	struct look *look; /* NULL: nobody does */
	struct overlap_result *result;
	uint64_t begun;     /* of all; then of the measured part */
	atomic_bool quit;   /* ends the receiver */
	atomic_int failure; /* the receiver's -errno */
};

/* --- when to send, and until when ---------------------------------------------------------------- */

/* The next message's size, and when it is due; false when the file is at its end. */
static bool next_message(const struct overlap *o, uint64_t seq, uint64_t *due, uint32_t *bytes)
{
	const struct load_plan *plan = &o->c->plan;

	*bytes = (uint32_t)plan->bytes;
	*due = 0;
	if (plan->playback) {
		if (seq > o->playback.count)
			return false;
		*due = o->begun + o->playback.lines[seq - 1].at_ns;
		*bytes = o->playback.lines[seq - 1].bytes;
	} else if (plan->rate) {
		*due = o->begun + (uint64_t)((double)(seq - 1) * NS_PER_S / (double)plan->rate);
	}
	return true;
}

static bool warm_up_is_over(const struct overlap *o, uint64_t sent, uint64_t now)
{
	const struct load_plan *plan = &o->c->plan;

	if (plan->playback || (!plan->warmup_trips && !plan->warmup_ns))
		return true;
	return (plan->warmup_trips && sent >= plan->warmup_trips) ||
	       (plan->warmup_ns && now - o->begun >= plan->warmup_ns);
}

static bool measured_enough(const struct overlap *o, uint64_t sent, uint64_t now)
{
	const struct load_plan *plan = &o->c->plan;
	uint64_t count = sent - o->result->warmup_trips;

	if (plan->playback)
		return false;
	return (plan->iterations && count >= plan->iterations) ||
	       (plan->duration_ns && now - o->result->duration_ns >= plan->duration_ns);
}

/* Whether another message is to be sent. Until the end, result->duration_ns is when the measured part began. */
static bool go_on(struct overlap *o, uint64_t sent)
{
	struct load_client *c = o->c;
	uint64_t now = clock_ns();

	if (o->flight.warm == UINT64_MAX && warm_up_is_over(o, sent, now)) {
		o->result->warmup_trips = sent;
		o->result->warmup_ns = now - o->begun;
		o->result->duration_ns = now;
		o->flight.warm = sent;
	}
	if (client_stopped(c) || atomic_load(&c->dog.gone) || atomic_load(&o->failure) ||
	    (o->look && atomic_load(&o->look->failure)))
		return false;
	return o->flight.warm == UINT64_MAX || !measured_enough(o, sent, now);
}

/* --- sending and receiving ----------------------------------------------------------------------- */

/* The reply's size to a request of that many bytes. */
static uint32_t reply_bytes(const struct load_client *c, uint32_t bytes)
{
	return !plan_datagrams(&c->plan) || bytes > c->reply_bytes ? (uint32_t)c->reply_bytes
								   : bytes;
}

static int send_message(struct overlap *o, uint64_t seq, uint64_t due, uint32_t bytes)
{
	struct load_client *c = o->c;
	int rc = 0;

	message_put_seq(c->request, peer_seq(c->plan.peer, seq));
	flight_send(&o->flight, seq, due, clock_ns(), reply_bytes(c, bytes));
	c->seq = seq;
	if (!plan_datagrams(&c->plan))
		return io_send_message(&c->io, c->request, bytes, &c->plan.writes);
	while (!rc && c->io.send(&c->io, c->request, bytes) < 0)
		rc = errno == EINTR ? watchdog_verdict(&c->dog) : -errno;
	return rc == -EPERM ? 0 : rc; /* a filter of this host's dropped it: lost like any other */
}

/* A stream keeps the order, and a short message's number is only the end of one. */
static uint64_t number_of_reply(const struct overlap *o)
{
	const struct load_client *c = o->c;

	return plan_datagrams(&c->plan) ? peer_seq(c->plan.peer, message_get_seq(c->reply, c->mask))
					: o->flight.done + 1;
}

/* One reply, or something stray. 0 go on, or why not: -EINTR when it was interrupted. */
static int take_reply(struct overlap *o, struct io *io, const struct sockaddr_storage *from)
{
	struct load_client *c = o->c;
	ssize_t n = (ssize_t)c->reply_bytes;
	int rc = 0;

	if (plan_datagrams(&c->plan))
		n = io->receive(io, c->reply, c->reply_bytes);
	else
		rc = io_receive_message(io, c->reply, c->reply_bytes);
	if (rc || n < 0)
		return rc ? rc : -errno;
	if (plan_datagrams(&c->plan) && !client_of_session(c, c->reply, n, from))
		return 0;
	flight_reply(&o->flight, number_of_reply(o), (uint32_t)n, clock_ns(), &rc);
	return rc;
}

/* --- the open loop ------------------------------------------------------------------------------- */

/* Whether sender and receiver may be on different CPUs. */
static bool has_own_cpu(const struct load_plan *plan)
{
	return plan_client_cpu(plan, 0) < 0 || plan_client_cpu(plan, 0) != plan_client_cpu(plan, 1);
}

/* Sleeps, then spins if the receiver does not need the CPU. Sooner when the client is stopped. */
static void wait_until(const struct overlap *o, uint64_t due)
{
	uint64_t spin = has_own_cpu(&o->c->plan) ? SPIN_NS : 0, now = clock_ns();

	while (now < due && !client_stopped(o->c)) {
		/* In parts, so that a stop is noticed. */
		uint64_t until = due - now > 100 * LOOK_NS ? now + 100 * LOOK_NS : due - spin;
		struct timespec time = clock_timespec(until);

		if (now + spin < due)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
		now = clock_ns();
	}
}

/* See struct io; for the receiver's. */
static int receiver_after(void *arg, bool moved)
{
	struct overlap *o = arg;

	(void)moved;
	return atomic_load(&o->quit) ? -ECANCELED : 0;
}

static void *receive_all(void *arg)
{
	struct overlap *o = arg;
	char interface[INTERFACE_NAME_MAX];
	struct noise_watch watch;
	struct io io;
	int rc = client_place(&o->c->plan, 1);

	if (!rc)
		rc = client_io_open(o->c, &io);
	client_interface(o->c, interface);
	noise_begin(&watch, noise_tid(), interface);
	io.interrupt = &o->quit;
	io.after = receiver_after;
	io.arg = o;
	while (!rc && !atomic_load(&o->quit)) {
		rc = take_reply(o, &io, &o->c->from);
		if (rc == -EINTR || (rc == -ECONNREFUSED && plan_datagrams(&o->c->plan)))
			rc = 0; /* ICMP's word on an earlier message: the watchdog sees whether the server is gone */
	}
	noise_end(&watch, &o->result->receiver);
	io_close(&io);
	if (!atomic_load(&o->quit))
		atomic_store(&o->failure, rc);
	return NULL;
}

/* Until all replies are there, or none can come any more. 0 or -errno with a sentence. */
static int await_replies(struct overlap *o)
{
	struct load_client *c = o->c;
	uint64_t limit = plan_datagrams(&c->plan) ? c->plan.timeout_ns : CLIENT_SILENCE_NS;
	uint64_t done = 0, since = clock_ns();
	struct timespec nap = clock_timespec(LOOK_NS);

	while (atomic_load(&o->flight.done) < atomic_load(&o->flight.sent)) {
		uint64_t now = clock_ns();

		if (atomic_load(&o->failure))
			return client_failed(c, atomic_load(&o->failure));
		if (atomic_load(&c->dog.gone))
			return client_failed(c, -ECONNRESET);
		if (!plan_datagrams(&c->plan) && done != atomic_load(&o->flight.done)) {
			done = atomic_load(&o->flight.done);
			since = now;
		}
		if (now - since > (client_stopped(c) && limit > GRACE_NS ? GRACE_NS : limit))
			return plan_datagrams(&c->plan) || client_stopped(c)
				       ? 0
				       : client_failed(c, -ETIMEDOUT);
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int send_all(struct overlap *o)
{
	uint64_t seq = 1, due;
	uint32_t bytes;
	int rc = 0;

	while (!rc && go_on(o, seq - 1) && next_message(o, seq, &due, &bytes)) {
		wait_until(o, due);
		if (client_stopped(o->c))
			break;
		rc = send_message(o, seq, due, bytes);
		if (rc == -ECONNREFUSED && plan_datagrams(&o->c->plan))
			rc = 0;
		seq += !rc;
	}
	o->result->tried = seq - 1 - o->result->warmup_trips;
	if (rc == -ECANCELED)
		return 0;
	return rc ? client_failed(o->c, rc) : 0;
}

static int start_receiver(struct overlap *o, pthread_t *thread)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(thread, NULL, receive_all, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? err_set(-rc, "cannot start the receiver's thread: %s", strerror(rc)) : 0;
}

static int open_loop(struct overlap *o)
{
	pthread_t receiver;
	int rc = start_receiver(o, &receiver);

	if (rc)
		return rc;
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	o->begun = clock_ns();
	rc = send_all(o);
	if (!rc)
		rc = await_replies(o);
	atomic_store(&o->quit, true);
	shutdown(o->c->io.fd, SHUT_RD); /* ends the receiver's wait, by whatever method */
	pthread_join(receiver, NULL);
	return rc;
}

/* --- the window ---------------------------------------------------------------------------------- */

/*
 * Datagrams that were not answered in time, each once: the oldest first, up to the first one that still may be. When it
 * was this process that stood still, the late answer is there before anybody looked at the time.
 */
static uint64_t expire(const struct overlap *o, uint64_t *oldest, uint64_t now)
{
	uint64_t expired = 0;

	for (; *oldest <= o->c->seq; (*oldest)++) {
		const struct flight_slot *slot = &o->flight.slots[*oldest % FLIGHT_SLOTS];

		if (atomic_load(&slot->answered)) {
			expired += slot->late;
			continue;
		}
		if (!o->flight.timeout_ns || now - slot->actual <= o->flight.timeout_ns)
			break;
		expired++;
	}
	return expired;
}

/* 0 go on. */
static int after_silence(struct overlap *o, int rc)
{
	struct load_client *c = o->c;

	if (rc == -EINTR)
		rc = watchdog_verdict(&c->dog);
	if (!plan_datagrams(&c->plan) || (rc != -ETIMEDOUT && rc != -ECONNREFUSED))
		return rc;
	c->silent_ns += rc == -ETIMEDOUT ? c->plan.timeout_ns : 0;
	watchdog_mark(&c->dog, clock_ns());
	return c->silent_ns < CLIENT_SILENCE_NS ? 0 : -ETIMEDOUT;
}

static int window(struct overlap *o)
{
	struct load_client *c = o->c;
	uint64_t in_flight = 0, oldest = 1, done;
	bool more = true;
	int rc = 0;

	o->begun = clock_ns();
	for (;;) {
		while (!rc && in_flight < c->plan.depth && (more = more && go_on(o, c->seq))) {
			rc = send_message(o, c->seq + 1, 0, (uint32_t)c->plan.bytes);
			in_flight += !rc;
		}
		if (rc || !in_flight)
			break;
		watchdog_mark(&c->dog, clock_ns());
		done = o->flight.done;
		rc = take_reply(o, &c->io, &c->from);
		if (rc)
			rc = after_silence(o, rc);
		else
			c->silent_ns = 0;
		in_flight -= o->flight.done - done;
		in_flight -= expire(o, &oldest, clock_ns());
	}
	watchdog_mark(&c->dog, 0);
	if (!rc && atomic_load(&c->dog.gone))
		rc = -ECONNRESET; /* seen before any message failed */
	o->result->tried = c->seq - o->result->warmup_trips;
	return rc && rc != -ECANCELED ? client_failed(c, rc) : 0;
}

/* Whoever looks on takes the samples first. */
static int open_flight(struct overlap *o, struct samples *out)
{
	struct load_client *c = o->c;
	uint64_t timeout = plan_datagrams(&c->plan) ? c->plan.timeout_ns : 0;

	return flight_open(&o->flight, plan_datagrams(&c->plan) ? c->mask : UINT64_MAX, timeout,
			   UINT64_MAX, o->look ? &o->look->fresh : out,
			   o->look ? &o->look->lock : NULL);
}

int overlap_run(struct load_client *c, struct samples *out, struct look *look,
		struct overlap_result *result)
{
	struct overlap o = {.c = c, .result = result, .look = look};
	int rc = client_adopt(c), seen = 0;

	*result = (struct overlap_result){0};
	if (!rc && c->plan.playback)
		rc = playback_read(c->plan.playback, c->plan.bytes, &o.playback);
	out->with_service = plan_open_loop(&c->plan);
	if (!rc && look) {
		look->out = out;
		rc = look_start(look);
	}
	if (!rc)
		rc = open_flight(&o, out);
	if (!rc)
		rc = plan_open_loop(&c->plan) ? open_loop(&o) : window(&o);
	if (!rc)
		result->lost_unmeasured = flight_settle(&o.flight);
	result->duration_ns = result->duration_ns ? clock_ns() - result->duration_ns : 0;
	result->stopped = client_stopped(c);
	if (look)
		seen = look_end(look);
	flight_close(&o.flight);
	playback_free(&o.playback);
	return rc ? rc : seen;
}
