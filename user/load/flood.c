// SPDX-License-Identifier: GPL-2.0-only
#include "load/flood.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "load/clock.h"
#include "load/client_own.h"
#include "load/control.h"
#include "load/message.h"

enum { BATCH = 32, SETTLE_LOOKS = 50 };

#define FRAME_NS ((uint64_t)CONTROL_FRAME_S * NS_PER_S)
#define TICK_NS  (10ULL * NS_PER_MS)

/* One flow: a session of its own on the server. */
struct flow {
	struct connection link;
	bool open;
	size_t rest; /* of a message that the stream took only a part of */
};

/* One sending thread and its share of the flows. */
struct sender {
	struct load *load;
	pthread_t thread;
	bool started;
	struct flow *flows;
	unsigned int count;
	double rate; /* messages per second, 0: the most */
	void *message;
	struct noise noise; /* of its whole time */
	_Alignas(64) _Atomic uint64_t sent;
	_Atomic uint64_t bytes;
	atomic_int failure;
};

struct load {
	struct flood *flood;
	struct flow *flows;
	struct sender *senders;
	atomic_bool end;
};

atomic_bool flood_stop;

/* --- sending ------------------------------------------------------------------------------------- */

/* Sends up to `most` datagrams. Returns how many left, or -errno. */
static int send_datagrams(const struct sender *s, struct flow *flow, unsigned int most)
{
	struct mmsghdr headers[BATCH];
	struct iovec part = {s->message, s->load->flood->plan->bytes};
	const struct sockaddr *to = (const struct sockaddr *)&flow->link.end.to;
	bool connected = !s->load->flood->plan->unconnected;
	int n;

	for (unsigned int i = 0; i < most; i++)
		headers[i].msg_hdr = (struct msghdr){
			.msg_name = connected ? NULL : (void *)to,
			.msg_namelen = connected ? 0 : address_size(to),
			.msg_iov = &part,
			.msg_iovlen = 1,
		};
	n = sendmmsg(flow->link.end.fd, headers, most, MSG_DONTWAIT);
	if (n >= 0)
		return n;
	/* ENOBUFS: the device's queue is full. ECONNREFUSED: ICMP's word on an earlier one. EPERM: a filter of this host's. */
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR || errno == ECONNREFUSED ||
			       errno == EPERM
		       ? 0
		       : -errno;
}

/* One write is one message, so that each may become a segment (netperf's -m 1 -D). */
static int send_stream(const struct sender *s, struct flow *flow, unsigned int most)
{
	size_t bytes = s->load->flood->plan->bytes;
	unsigned int done = 0;

	while (done < most) {
		size_t left = flow->rest ? flow->rest : bytes;
		ssize_t n = message_send(flow->link.end.fd, (char *)s->message + bytes - left, left,
					 MSG_DONTWAIT, NULL, 0);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n <= 0)
			break;
		flow->rest = left - (size_t)n;
		done += !flow->rest;
	}
	return (int)done;
}

/* How many messages may leave now; sleeps while none may. */
static unsigned int allowance(const struct sender *s, uint64_t begun)
{
	uint64_t sent = atomic_load_explicit(&s->sent, memory_order_relaxed), now = clock_ns();
	double due = (double)(now - begun) / NS_PER_S * s->rate - (double)sent;
	struct timespec until;

	if (s->rate == 0)
		return BATCH;
	if (due >= 1)
		return due < BATCH ? (unsigned int)due : BATCH;
	until = clock_timespec(begun + (uint64_t)((double)(sent + 1) / s->rate * NS_PER_S));
	if (until.tv_sec > (time_t)((now + TICK_NS) / NS_PER_S))
		until = clock_timespec(now + TICK_NS); /* an end is noticed */
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return 0;
}

/* All flows are full: waits until one is not. */
static void wait_room(const struct sender *s)
{
	struct pollfd fds[FLOOD_FLOWS_MAX];

	for (unsigned int i = 0; i < s->count; i++)
		fds[i] = (struct pollfd){.fd = s->flows[i].link.end.fd, .events = POLLOUT};
	poll(fds, s->count, TICK_NS / NS_PER_MS);
}

static void add(_Atomic uint64_t *sum, uint64_t more)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

/* Until the flood ends. 0 or -errno. */
static int send_until_end(struct sender *s)
{
	const struct load_plan *plan = s->load->flood->plan;
	bool datagrams = plan_datagrams(plan);
	uint64_t begun = clock_ns();
	unsigned int next = 0, full = 0;
	int n = 0;

	while (n >= 0 && !atomic_load_explicit(&s->load->end, memory_order_relaxed)) {
		unsigned int most = allowance(s, begun);
		struct flow *flow = &s->flows[next];

		if (!most)
			continue;
		n = datagrams ? send_datagrams(s, flow, most) : send_stream(s, flow, most);
		if (n > 0) {
			add(&s->sent, (uint64_t)n);
			add(&s->bytes, (uint64_t)n * plan->bytes);
		}
		full = n ? 0 : full + 1;
		if (full == s->count) {
			wait_room(s);
			full = 0;
		}
		if (++next == s->count)
			next = 0;
	}
	return n < 0 ? n : 0;
}

static void *run_sender(void *arg)
{
	struct sender *s = arg;
	char interface[INTERFACE_NAME_MAX];
	struct noise_watch watch;
	int rc = client_place(s->load->flood->plan, (unsigned int)(s - s->load->senders));

	connection_interface(&s->flows[0].link, interface);
	noise_begin(&watch, noise_tid(), interface);
	if (!rc)
		rc = send_until_end(s);
	noise_end(&watch, &s->noise);
	if (rc)
		atomic_store(&s->failure, rc);
	return NULL;
}

/* --- counting ------------------------------------------------------------------------------------ */

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* What the server says of one flow. */
static int ask(const struct flow *flow, struct flood_counts *counts)
{
	json_t *answer, *question = json_pack("{s:s}", "type", "count");
	int rc = control_send(flow->link.control_fd, FRAME_NS, question);
	char said[256];

	if (!rc)
		rc = control_receive(flow->link.control_fd, FRAME_NS, &answer);
	if (rc)
		return rc;
	if (strcmp(control_type(answer), "count") != 0) {
		rc = err_set(-EPROTO, "the server %s ended the session: %s", flow->link.server_text,
			     control_text(answer, "text", said, sizeof(said)));
	} else {
		counts->received += number(answer, "messages");
		counts->received_bytes += number(answer, "bytes");
		counts->rx_packets = number(answer, "rx_packets");
		counts->rx_bytes = number(answer, "rx_bytes");
		control_text(answer, "interface", counts->interface, sizeof(counts->interface));
	}
	json_decref(answer);
	return rc;
}

static int count_all(const struct load *load, struct flood_counts *counts)
{
	const struct flood *flood = load->flood;
	int rc = 0;

	*counts = (struct flood_counts){.at_ns = clock_ns()};
	for (unsigned int i = 0; i < flood->threads; i++) {
		counts->sent += atomic_load(&load->senders[i].sent);
		counts->sent_bytes += atomic_load(&load->senders[i].bytes);
	}
	for (unsigned int i = 0; !rc && i < flood->flows; i++)
		rc = ask(&load->flows[i], counts);
	return rc;
}

/* A sender's -errno, as a sentence: the server's own, if it said why it ended a session. */
static int send_failed(const struct load *load, int rc)
{
	char said[256];

	if (rc != -EPIPE && rc != -ECONNRESET)
		return err_set(rc, "sending failed: %s", strerror(-rc));
	for (unsigned int i = 0; i < load->flood->flows; i++)
		if (connection_last_words(&load->flows[i].link, said, sizeof(said)))
			return err_set(-ECONNRESET, "the server %s ended the session: %s",
				       load->flows[i].link.server_text, said);
	return err_set(rc, "the server closed a connection");
}

/* Sleeps until then. 0 when it was slept out, 1 when the flood is to end, or a sender's -errno. */
static int sleep_until(const struct load *load, uint64_t until)
{
	struct timespec tick = clock_timespec(TICK_NS);

	while (clock_ns() < until) {
		for (unsigned int i = 0; i < load->flood->threads; i++) {
			int rc = atomic_load(&load->senders[i].failure);

			if (rc)
				return send_failed(load, rc);
		}
		if (atomic_load(&flood_stop))
			return 1;
		nanosleep(&tick, NULL);
	}
	return 0;
}

/* After the last message: until nothing more arrives. */
static int settle(const struct load *load, struct flood_counts *counts)
{
	struct timespec tick = clock_timespec(TICK_NS);
	int rc = count_all(load, counts);
	unsigned int still = 0;

	for (int i = 0; !rc && i < SETTLE_LOOKS && counts->received < counts->sent && still < 3;
	     i++) {
		uint64_t before = counts->received;

		nanosleep(&tick, NULL);
		rc = count_all(load, counts);
		still = counts->received == before ? still + 1 : 0;
	}
	return rc;
}

static int measure(struct load *load)
{
	struct flood *f = load->flood;
	uint64_t warm = f->plan->warmup_ns, end;
	struct flood_counts from, to;
	int rc = sleep_until(load, clock_ns() + warm);

	if (rc >= 0)
		rc = count_all(load, &f->first);
	end = f->first.at_ns + f->plan->duration_ns;
	from = f->first;
	while (!rc && clock_ns() < end) {
		uint64_t next = f->interval_ns ? from.at_ns + f->interval_ns : end;

		rc = sleep_until(load, next < end ? next : end);
		if (rc || !f->interval_ns)
			continue;
		rc = count_all(load, &to);
		if (!rc)
			f->interim(f->interim_arg, &from, &to);
		from = to;
	}
	atomic_store(&load->end, true);
	f->duration_ns = clock_ns() - f->first.at_ns;
	return rc < 0 ? rc : 0;
}

/* --- opening and closing ------------------------------------------------------------------------- */

static int open_flows(struct load *load)
{
	struct flood *f = load->flood;
	struct load_plan plan = *f->plan;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < f->flows; i++) {
		load->flows[i].open = true;
		plan.server_cpu = plan_server_cpu(f->plan, i);
		rc = connection_open(&load->flows[i].link, &plan, f->target, f->make_socket,
				     f->arg);
	}
	return rc;
}

static int start_sender(struct load *load, unsigned int i)
{
	struct flood *f = load->flood;
	struct sender *s = &load->senders[i];
	unsigned int first = f->flows * i / f->threads, after = f->flows * (i + 1) / f->threads;
	sigset_t all, before;
	int rc;

	s->load = load;
	s->flows = &load->flows[first];
	s->count = after - first;
	s->rate = (double)f->plan->rate * s->count / f->flows;
	s->message = message_alloc(f->plan->bytes);
	if (!s->message)
		return err_set(-ENOMEM, "no memory for messages of %llu bytes",
			       (unsigned long long)f->plan->bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&s->thread, NULL, run_sender, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->started = !rc;
	return rc ? err_set(-rc, "cannot start a thread: %s", strerror(rc)) : 0;
}

static void end_senders(struct load *load)
{
	atomic_store(&load->end, true);
	for (unsigned int i = 0; i < load->flood->threads; i++) {
		if (load->senders[i].started)
			pthread_join(load->senders[i].thread, NULL);
		message_free(load->senders[i].message, load->flood->plan->bytes);
		load->senders[i].message = NULL;
		load->senders[i].started = false;
	}
}

/*
 * The server tells what happened since it was asked last. Not knowing is no failure: a server that is gone by now has
 * counted all the same.
 */
static void ask_noise(const struct load *load, struct noise *each)
{
	for (unsigned int i = 0; i < load->flood->flows; i++)
		if (load->flows[i].link.control_fd < 0 ||
		    noise_ask(load->flows[i].link.control_fd, NOISE_LOOK_NS, &each[i]))
			each[i] = (struct noise){0};
	err_clear();
}

/* What happened to the senders, which have ended, and to the server's threads. */
static void sum_noise(const struct load *load, struct noise_report *report)
{
	struct noise each[FLOOD_FLOWS_MAX];

	ask_noise(load, each);
	*report = (struct noise_report){.shared_cpu = -1};
	for (unsigned int i = 0; i < load->flood->threads; i++) {
		const struct sender *s = &load->senders[i];

		noise_add(&report->client, &s->noise);
		for (unsigned int k = 0; k < s->count; k++) {
			const struct noise *server = &each[s->flows + k - load->flows];

			noise_add(&report->server, server);
			if (s->flows[k].link.same_kernel && server->known &&
			    server->cpu == s->noise.cpu)
				report->shared_cpu = server->cpu;
		}
	}
}

int flood_run(struct flood *f)
{
	struct load load = {.flood = f};
	int rc = 0;

	load.flows = calloc(f->flows, sizeof(*load.flows));
	load.senders = aligned_alloc(64, f->threads * sizeof(*load.senders));
	if (!load.flows || !load.senders) {
		free(load.flows);
		free(load.senders);
		return err_set(-ENOMEM, "no memory for %u flows", f->flows);
	}
	memset(load.senders, 0, f->threads * sizeof(*load.senders));
	client_lock(f->plan);
	rc = open_flows(&load);
	if (!rc)
		ask_noise(&load, (struct noise[FLOOD_FLOWS_MAX]){0}); /* from now on */
	for (unsigned int i = 0; !rc && i < f->threads; i++)
		rc = start_sender(&load, i);
	if (!rc)
		rc = measure(&load);
	end_senders(&load);
	if (!rc)
		rc = settle(&load, &f->last);
	if (!rc)
		sum_noise(&load, &f->noise);
	for (unsigned int i = 0; i < f->flows; i++)
		if (load.flows[i].open)
			connection_close(&load.flows[i].link);
	free(load.flows);
	free(load.senders);
	return rc;
}
