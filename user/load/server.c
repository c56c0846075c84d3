// SPDX-License-Identifier: GPL-2.0-only
#include "load/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "base/place.h"
#include "load/address.h"
#include "load/clock.h"
#include "load/control.h"
#include "load/descriptors.h"
#include "load/echo.h"
#include "load/endpoint.h"
#include "load/host.h"
#include "load/interface.h"
#include "load/message.h"
#include "load/noise.h"
#include "load/talk.h"

enum {
	/* Connections that have not said what they are; with all sessions they fit into 1024 descriptors. */
	STRANGERS = 320,
	SLOTS = SERVER_SESSIONS_MAX + STRANGERS,
	IDLE_S = 60,
	END_S = 3,
	ROOM_MS = 200,    /* how long a newcomer waits until the oldest stranger has left */
	NOTES_PER_S = 40, /* sentences about clients: a flood of them must not fill a log */
	KEY_LISTEN,       /* of epoll */
	KEY_STOP,
	KEY_OVER,
};

#define FRAME_NS   ((uint64_t)CONTROL_FRAME_S * NS_PER_S)
#define MEMORY_MAX (2ULL << 30)

struct server;

/* One accepted connection and its thread. Under server->lock where two threads touch it. */
struct slot {
	struct server *server;
	bool used;
	uint64_t session;    /* 0: not a session (yet) */
	uint64_t number;     /* counts what is accepted: lower ones are older */
	atomic_bool evicted; /* it was told to leave */
	bool ran;            /* messages could flow */
	bool last;           /* the client comes no more; only then its end can be the server's */
	bool shutdown;       /* it wants the server to end with it */
	int fd;              /* the accepted connection, or -1 when it was given to another slot */
	int data_fd;         /* -1: none yet */
	struct load_plan plan;
	struct endpoint_offer offer;
	struct echo echo;
	int echo_rc; /* why it could not start, 0: it did */
	char echo_text[256];
	struct sockaddr_storage peer;      /* of the accepted connection */
	struct sockaddr_storage data_peer; /* where the messages come from */
	char peer_text[ADDRESS_TEXT_MAX];
	uint64_t seen_progress, seen_ns; /* for the idle limit */
};

struct server {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a data connection arrived, or a slot became free */
	int listen_fd, stop_fd, epoll_fd, over_fd;
	const struct server_rules *rules;
	unsigned int used, sessions;
	uint64_t accepted;
	uint64_t memory; /* bytes of messages of all sessions */
	bool ending;     /* no new sessions; over with the last one */
	bool stopping;
	time_t noted_s; /* of the last second with a sentence about a client */
	unsigned int notes;
	struct slot slots[SLOTS];
};

/* --- what the operator reads ------------------------------------------------------------- */

/* One sentence about a client, unless there were too many in this second. */
static void note_client(struct slot *slot, const char *sentence)
{
	struct server *server = slot->server;
	time_t now = (time_t)(clock_ns() / NS_PER_S);
	unsigned int n;

	pthread_mutex_lock(&server->lock);
	if (now != server->noted_s)
		server->notes = 0;
	server->noted_s = now;
	n = server->notes++;
	pthread_mutex_unlock(&server->lock);
	if (n < NOTES_PER_S)
		say_note("client %s: %s", slot->peer_text, sentence);
	else if (n == NOTES_PER_S)
		say_note("more than %d sentences about clients in a second: the rest is left out",
			 NOTES_PER_S);
}

/* --- slots ------------------------------------------------------------------------------- */

static struct slot *slot_take(struct server *server, int fd)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < SLOTS && !slot; i++)
		if (!server->slots[i].used)
			slot = &server->slots[i];
	if (slot) {
		memset(slot, 0, sizeof(*slot));
		slot->server = server;
		slot->used = true;
		slot->fd = fd;
		slot->data_fd = -1;
		slot->number = server->accepted++;
		server->used++;
	}
	pthread_mutex_unlock(&server->lock);
	return slot;
}

/* The session is over: maybe the server as well. Under the lock. */
static void consider_end(struct slot *slot)
{
	struct server *server = slot->server;
	static const uint64_t one = 1;

	if (slot->ran && slot->last && (server->rules->once || slot->shutdown))
		server->ending = true;
	if (server->ending && !server->sessions && write(server->over_fd, &one, sizeof(one)) < 0)
		say_note("cannot end by myself: %s", strerror(errno));
}

static void slot_release(struct slot *slot)
{
	struct server *server = slot->server;

	message_free(slot->echo.message, plan_bytes_max(&slot->plan));
	pthread_mutex_lock(&server->lock);
	if (slot->session) {
		server->sessions--;
		server->memory -= plan_bytes_max(&slot->plan);
		consider_end(slot);
	}
	if (slot->fd >= 0)
		close(slot->fd); /* leaves the epoll set, too */
	if (slot->data_fd >= 0)
		close(slot->data_fd);
	slot->used = false;
	server->used--;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

static struct slot *find_session(struct server *server, uint64_t session)
{
	for (int i = 0; i < SLOTS; i++)
		if (server->slots[i].used && server->slots[i].session == session)
			return &server->slots[i];
	return NULL;
}

/* How many sessions the slot's client has. Under the lock. */
static uint64_t sessions_of(const struct slot *slot)
{
	const struct server *server = slot->server;
	uint64_t count = 0;

	for (const struct slot *s = server->slots; s < server->slots + SLOTS; s++)
		count += s->used && s->session &&
			 address_same_host((const struct sockaddr *)&s->peer,
					   (const struct sockaddr *)&slot->peer);
	return count;
}

/* Turns the slot into a session with an id of its own. */
static int session_start(struct slot *slot)
{
	const struct server_rules *rules = slot->server->rules;
	struct server *server = slot->server;
	int rc = 0;

	pthread_mutex_lock(&server->lock);
	if (server->stopping || server->ending)
		rc = err_set(-ESHUTDOWN, "this server is about to end");
	else if (server->sessions == SERVER_SESSIONS_MAX)
		rc = err_set(-EUSERS, "this server already has %d sessions", SERVER_SESSIONS_MAX);
	else if (rules->max_sessions && sessions_of(slot) >= rules->max_sessions)
		rc = err_set(-EUSERS,
			     "this server gives a client at most %llu sessions at the same time "
			     "(--max-sessions)",
			     (unsigned long long)rules->max_sessions);
	else if (server->memory + plan_bytes_max(&slot->plan) > MEMORY_MAX)
		rc = err_set(-ENOMEM, "this server's sessions already hold %llu MiB of messages",
			     (unsigned long long)(server->memory >> 20));
	while (!rc && !slot->session)
		if (getrandom(&slot->session, sizeof(slot->session), 0) < 0)
			slot->session = 0;
	if (!rc) {
		server->sessions++;
		server->memory += plan_bytes_max(&slot->plan);
	}
	pthread_mutex_unlock(&server->lock);
	return rc;
}

/* Makes the session's thread leave its loop. Under the lock. */
static void session_end(struct slot *slot)
{
	atomic_store(&slot->echo.end, true);
	if (slot->data_fd >= 0)
		shutdown(slot->data_fd, SHUT_RDWR);
}

/* --- the session's thread ---------------------------------------------------------------- */

/* Tells the client why, and the operator; the sentence is the one kept by err_set(). */
static void refuse(struct slot *slot, int rc)
{
	json_t *error = talk_frame("error");

	json_object_set_new(error, "text", json_string(err_text(rc)));
	note_client(slot, err_text(rc));
	control_send(slot->fd, NS_PER_S, error);
	err_clear();
}

/* Bound to the address at which the control connection arrived. */
static int open_data(struct slot *slot)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);

	getsockname(slot->fd, (struct sockaddr *)&local, &len);
	return endpoint_open(&slot->plan, (struct sockaddr *)&local, slot->session, &slot->offer,
			     &slot->data_fd);
}

/* Learns the client's port, if it has one; its address is the one the control connection comes from. */
static int meet_peer(struct slot *slot)
{
	struct sockaddr *peer = (struct sockaddr *)&slot->data_peer;
	json_t *answer;
	json_int_t port;
	int rc = control_receive(slot->fd, FRAME_NS, &answer);

	if (rc)
		return rc;
	port = json_integer_value(json_object_get(answer, "port"));
	if (strcmp(control_type(answer), "peer") != 0 || port < 0 || port > 65535)
		rc = err_set(-EPROTO, "the client did not name its port");
	json_decref(answer);
	if (rc)
		return rc;
	slot->data_peer = slot->peer;
	address_set_port(peer, (uint16_t)port);
	rc = endpoint_meet(&slot->plan, slot->data_fd, peer, slot->offer.path);
	if (rc > 0)
		slot->data_fd = rc;
	return rc < 0 ? rc : 0;
}

/* Waits for the data connection, which arrives in a slot of its own. */
static int meet_tcp(struct slot *slot)
{
	struct server *server = slot->server;
	struct timespec until = clock_timespec(clock_ns() + FRAME_NS);
	int rc = 0;

	pthread_mutex_lock(&server->lock);
	while (slot->data_fd < 0 && !server->stopping && !rc)
		rc = pthread_cond_clockwait(&server->changed, &server->lock, CLOCK_MONOTONIC,
					    &until);
	if (slot->data_fd < 0)
		rc = err_set(-ETIMEDOUT, "the data connection did not arrive in time");
	else
		rc = 0;
	pthread_mutex_unlock(&server->lock);
	return rc ? rc : endpoint_options(&slot->plan, slot->data_fd);
}

/* TCP's data connection comes to the server's own port. */
static bool comes_by_itself(const struct load_plan *plan)
{
	return plan->proto == PLAN_TCP && !plan->crr;
}

/* What the client wants, if it may want it. */
static int session_admit(struct slot *slot, const json_t *hello, char proof[TOKEN_PROOF_HEX])
{
	const struct server_rules *rules = slot->server->rules;
	int rc = rules_challenge(rules, slot->fd, proof);

	if (!rc)
		rc = rules_check_hello(rules, hello);
	if (!rc)
		rc = plan_from_json(json_object_get(hello, "plan"), &slot->plan);
	if (!rc)
		rc = rules_check_plan(rules, &slot->plan);
	slot->shutdown = json_is_true(json_object_get(hello, "shutdown"));
	slot->last = !json_is_true(json_object_get(hello, "more"));
	return rc;
}

/*
 * Places this thread, whose children inherit CPUs and memory. What it has to do meanwhile is little, but must be
 * done beside an echo loop that may never sleep.
 */
static int session_place(const struct load_plan *plan)
{
	int rc = place_on_node(plan->numa);

	if (!rc)
		rc = cpus_pin(plan->server_cpu);
	return rc ? rc : place_fifo(plan->fifo ? plan->fifo + 1 : 0);
}

/* Memory for messages. That it cannot be locked is no reason to end: the client is told. */
static int session_memory(struct slot *slot, json_t *ready)
{
	uint64_t bytes = plan_bytes_max(&slot->plan);

	slot->echo.message = message_alloc(bytes);
	if (!slot->echo.message)
		return err_set(-ENOMEM, "no memory for messages of %llu bytes",
			       (unsigned long long)bytes);
	if (slot->plan.lock_memory && place_lock(slot->echo.message, bytes)) {
		json_object_set_new(ready, "note", json_string(err_text(0)));
		err_clear();
	}
	return 0;
}

/* Everything up to the first message. */
static int session_open(struct slot *slot, const json_t *hello)
{
	char proof[TOKEN_PROOF_HEX];
	json_t *ready;
	int rc = session_admit(slot, hello, proof);

	if (!rc)
		rc = session_place(&slot->plan);
	if (!rc)
		rc = session_start(slot);
	if (!rc)
		rc = open_data(slot);
	if (rc)
		return rc;
	slot->echo.plan = &slot->plan;
	slot->echo.session = (uint32_t)slot->session;
	slot->echo.peer = (struct sockaddr *)&slot->data_peer;
	ready = talk_frame("ready");
	rc = session_memory(slot, ready);
	if (rc) {
		json_decref(ready);
		return rc;
	}
	json_object_set_new(ready, "session", control_session(slot->session));
	json_object_set_new(ready, "port", json_integer(slot->offer.port));
	json_object_set_new(ready, "path", json_string(slot->offer.path));
	json_object_set_new(ready, "proof", json_string(proof));
	host_describe(ready);
	rc = control_send(slot->fd, FRAME_NS, ready);
	if (!rc)
		rc = comes_by_itself(&slot->plan) ? meet_tcp(slot) : meet_peer(slot);
	return rc;
}

static void *session_echo(void *arg)
{
	struct slot *slot = arg;

	descriptors_part(slot->data_fd, slot->fd);
	atomic_store(&slot->echo.tid, noise_tid());
	slot->echo_rc = place_fifo(slot->plan.fifo);
	if (!slot->echo_rc)
		slot->echo_rc = echo_run(&slot->echo);
	if (slot->echo_rc) /* the sentence is this thread's */
		snprintf(slot->echo_text, sizeof(slot->echo_text), "%s", err_text(slot->echo_rc));
	shutdown(slot->fd, SHUT_RD); /* ends the wait in session_talk() */
	return NULL;
}

/* The flow as this end sees it: on the way, addresses and ports may be translated. */
static void note_flow(const struct slot *slot, struct tracer_wish *wish)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);

	getsockname(slot->data_fd, (struct sockaddr *)&local, &len);
	*wish = (struct tracer_wish){
		.proto = plan_traced_proto(&slot->plan),
		.client_port = address_port((const struct sockaddr *)&slot->data_peer),
		.server_port = address_port((struct sockaddr *)&local),
		.bytes = slot->plan.bytes,
	};
}

/* Until the client closes the control connection, or the echo loop has ended. */
static int session_talk(struct slot *slot)
{
	const struct server_rules *rules = slot->server->rules;
	struct talk talk = {.fd = slot->fd, .tracer = rules->tracer, .echo = &slot->echo};
	char interface[INTERFACE_NAME_MAX];
	struct sockaddr_storage local = {0};
	socklen_t len = sizeof(local);
	int on = 1, rc;

	getsockname(slot->fd, (struct sockaddr *)&local, &len);
	interface_of((struct sockaddr *)&local, interface);
	talk.interface = interface;
	note_flow(slot, &talk.wish);
	setsockopt(slot->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (rules->max_time_ns)
		talk.until_ns = clock_ns() + rules->max_time_ns;
	rc = talk_run(&talk);
	return rc == -ETIME ? rules_time_over(rules) : rc;
}

/*
 * The echo loop has a thread to itself, because that has its own descriptors and cannot clean up here. This
 * one sleeps while messages run.
 */
static int session_run(struct slot *slot)
{
	struct server *server = slot->server;
	pthread_t thread;
	int rc;

	slot->echo.fd = slot->data_fd;
	slot->ran = true;
	rc = pthread_create(&thread, NULL, session_echo, slot);
	if (rc)
		return err_set(-rc, "cannot start a thread: %s", strerror(rc));
	rc = control_send(slot->fd, FRAME_NS, talk_frame("go"));
	if (!rc)
		rc = session_talk(slot);
	pthread_mutex_lock(&server->lock);
	session_end(slot);
	pthread_mutex_unlock(&server->lock);
	pthread_join(thread, NULL);
	return slot->echo_rc ? err_set(slot->echo_rc, "%s", slot->echo_text) : rc;
}

/* Gives this connection to the session it names. */
static int deliver(struct slot *slot, const json_t *data)
{
	struct server *server = slot->server;
	struct slot *session;
	uint64_t id;
	int rc = control_get_session(data, &id);

	if (rc)
		return rc;
	pthread_mutex_lock(&server->lock);
	session = id ? find_session(server, id) : NULL;
	if (session && session->data_fd < 0 && comes_by_itself(&session->plan)) {
		session->data_fd = slot->fd;
		session->data_peer = slot->peer;
		slot->fd = -1;
		pthread_cond_broadcast(&server->changed);
	} else {
		rc = err_set(-ENOENT, "the data connection names no open session");
	}
	pthread_mutex_unlock(&server->lock);
	return rc;
}

static void *slot_run(void *arg)
{
	struct slot *slot = arg;
	json_t *first;
	int rc = control_receive(slot->fd, FRAME_NS, &first);

	if (rc) {
		note_client(slot,
			    slot->evicted ? "it said nothing, and others wait" : err_text(rc));
		slot_release(slot);
		return NULL;
	}
	if (!strcmp(control_type(first), "data")) {
		rc = deliver(slot, first);
	} else {
		rc = control_check_version(first, "client");
		if (!rc && strcmp(control_type(first), "hello") != 0)
			rc = err_set(-EPROTO, "the first frame is not a hello");
		if (!rc)
			rc = session_open(slot, first);
		if (!rc)
			rc = session_run(slot);
	}
	if (rc)
		refuse(slot, rc);
	json_decref(first);
	slot_release(slot);
	return NULL;
}

/* --- the main loop ----------------------------------------------------------------------- */

static void start_slot(struct slot *slot)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, slot_run, slot);
	pthread_attr_destroy(&attr);
	if (!rc)
		return;
	note_client(slot, "cannot start a thread for it");
	slot_release(slot);
}

/* Whoever has said hello, or brought a session's data, is none. Under the lock. */
static bool is_stranger(const struct slot *s)
{
	return s->used && !s->session && s->fd >= 0 && !s->evicted;
}

/* Strangers may not keep others out: the oldest one makes room. Under the lock. */
static void evict_oldest(struct server *server)
{
	struct slot *oldest = NULL;
	unsigned int strangers = 0;

	for (struct slot *s = server->slots; s < server->slots + SLOTS; s++) {
		if (!is_stranger(s))
			continue;
		strangers++;
		if (!oldest || s->number < oldest->number)
			oldest = s;
	}
	if (strangers < STRANGERS)
		return;
	oldest->evicted = true;
	shutdown(oldest->fd, SHUT_RDWR); /* its thread wakes and leaves */
}

/* A slot for a newcomer; waits a little while an evicted one leaves. NULL: there is none. */
static struct slot *make_room(struct server *server, int fd)
{
	struct timespec until = clock_timespec(clock_ns() + ROOM_MS * (uint64_t)NS_PER_MS);
	int rc = 0;

	pthread_mutex_lock(&server->lock);
	evict_oldest(server);
	while (server->used == SLOTS && !rc)
		rc = pthread_cond_clockwait(&server->changed, &server->lock, CLOCK_MONOTONIC,
					    &until);
	pthread_mutex_unlock(&server->lock);
	return slot_take(server, fd);
}

static void accept_one(struct server *server)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(server->listen_fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
	struct slot *slot;

	if (fd < 0) {
		/* Out of descriptors or memory: the connection stays queued, and looping would not
		 * help. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			nanosleep(&(struct timespec){0, 50L * NS_PER_MS}, NULL);
		return;
	}
	slot = make_room(server, fd);
	if (!slot) {
		close(fd);
		return;
	}
	slot->peer = peer;
	address_format((struct sockaddr *)&peer, slot->peer_text);
	start_slot(slot);
}

/* Ends sessions whose client says nothing: it may have vanished without closing anything. */
static void end_idle(struct server *server)
{
	uint64_t now = clock_ns();

	pthread_mutex_lock(&server->lock);
	for (struct slot *s = server->slots; s < server->slots + SLOTS; s++) {
		uint64_t progress = atomic_load(&s->echo.progress);

		if (!s->used || !s->session)
			continue;
		if (!s->seen_ns || progress != s->seen_progress) {
			s->seen_ns = now;
			s->seen_progress = progress;
		} else if (now - s->seen_ns > (uint64_t)IDLE_S * NS_PER_S &&
			   !atomic_load(&s->echo.end)) {
			say_note("client %s: no message for %d s, the session ends", s->peer_text,
				 IDLE_S);
			session_end(s);
		}
	}
	pthread_mutex_unlock(&server->lock);
}

static void end_all(struct server *server)
{
	struct timespec until = clock_timespec(clock_ns() + (uint64_t)END_S * NS_PER_S);

	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	for (struct slot *s = server->slots; s < server->slots + SLOTS; s++) {
		if (!s->used)
			continue;
		session_end(s);
		if (s->fd >= 0)
			shutdown(s->fd, SHUT_RDWR);
	}
	pthread_cond_broadcast(&server->changed);
	while (server->used)
		if (pthread_cond_clockwait(&server->changed, &server->lock, CLOCK_MONOTONIC,
					   &until))
			break;
	pthread_mutex_unlock(&server->lock);
}

static int watch(struct server *server, int fd, uint64_t key)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

	return fd < 0 ? 0 : epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool busy(struct server *server)
{
	bool used;

	pthread_mutex_lock(&server->lock);
	used = server->used > 0;
	pthread_mutex_unlock(&server->lock);
	return used;
}

static void serve(struct server *server)
{
	struct epoll_event events[16];

	for (;;) {
		/* Only sessions can become idle: without any connection nothing wakes this thread.
		 */
		int wait_ms = busy(server) ? IDLE_S * 1000 / 4 : -1;
		int n = epoll_wait(server->epoll_fd, events, 16, wait_ms);

		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 != KEY_LISTEN)
				return;
			accept_one(server);
		}
		end_idle(server);
	}
}

int server_listen(int fd, const struct sockaddr *addr, socklen_t len)
{
	char text[ADDRESS_TEXT_MAX];
	int on = 1, rc;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, addr, len) && !listen(fd, SOMAXCONN))
		return 0;
	rc = -errno;
	return err_set(rc, "cannot listen on %s: %s%s", address_format(addr, text), strerror(-rc),
		       rc == -EADDRINUSE ? "; end the other program or choose another port with -p"
					 : "");
}

static void server_free(struct server *server)
{
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	/* A thread that did not end in time may still use its slot: then the memory is left to
	 * exit(). */
	if (server->used)
		return;
	if (server->over_fd >= 0)
		close(server->over_fd);
	free(server);
}

int server_run(int listen_fd, int stop_fd, const struct server_rules *rules)
{
	struct server *server = calloc(1, sizeof(*server));
	sigset_t all, before;

	if (!server)
		return err_set(-ENOMEM, "no memory for the server");
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->changed, NULL);
	server->listen_fd = listen_fd;
	server->stop_fd = stop_fd;
	server->rules = rules;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->epoll_fd < 0 || server->over_fd < 0 || watch(server, listen_fd, KEY_LISTEN) ||
	    watch(server, stop_fd, KEY_STOP) || watch(server, server->over_fd, KEY_OVER)) {
		int rc = err_set(-errno, "cannot watch the server's sockets: %s", strerror(errno));

		server_free(server);
		return rc;
	}
	json_object_seed(0);
	/* Signals are the caller's business; the sessions' threads inherit this. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	serve(server);
	end_all(server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	server_free(server);
	return 0;
}
