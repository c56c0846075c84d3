// SPDX-License-Identifier: GPL-2.0-only
#include "load/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/version.h"
#include "load/clock.h"
#include "load/control.h"
#include "load/peer.h"
#include "load/server.h"
#include "load/token.h"

#define OPEN_NS    (9500ULL * NS_PER_MS) /* everything, so that it stays under 10 s */
#define CONNECT_NS (4ULL * NS_PER_S)     /* one connection */
#define FRAME_NS   ((uint64_t)CONTROL_FRAME_S * NS_PER_S)

/* What is needed while a session is opened. */
struct opening {
	struct connection *link;
	const struct load_plan *plan;
	uint64_t deadline;
};

/* How long the next step may take. */
static uint64_t time_left(const struct opening *open, uint64_t limit)
{
	uint64_t now = clock_ns(), left = open->deadline > now ? open->deadline - now : 0;

	return left < limit ? left : limit;
}

int client_plain_socket(void *arg, int family, int type, int proto)
{
	int fd = socket(family, type, proto);

	(void)arg;
	return fd >= 0 ? fd : err_set(-errno, "cannot make a socket: %s", strerror(errno));
}

/* connect() that ends at the deadline. The socket is blocking before and afterwards. */
static int connect_until(int fd, const struct sockaddr *addr, uint64_t deadline)
{
	int flags = fcntl(fd, F_GETFL), error = 0, n;
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(error);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (connect(fd, addr, address_size(addr)) && errno != EINPROGRESS && errno != EINTR)
		return -errno;
	do {
		uint64_t now = clock_ns();
		struct timespec left = clock_timespec(deadline > now ? deadline - now : 0);

		n = ppoll(&pfd, 1, &left, NULL);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	fcntl(fd, F_SETFL, flags);
	return -error;
}

/* A TCP socket as the plan wants it; plan NULL: for the control connection. Or -errno with a sentence. */
static int tcp_socket(const struct connection *link, const struct sockaddr *addr,
		      const struct load_plan *plan)
{
	int fd = link->make_socket(link->arg, addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1, rc = 0;

	if (fd < 0)
		return fd;
	if (!plan)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	else
		rc = endpoint_options(plan, fd);
	if (!rc && plan && plan->bind)
		rc = endpoint_bind(plan, fd, addr);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* The same, connected. */
static int connect_tcp(struct opening *open, const struct sockaddr *addr,
		       const struct load_plan *plan, uint64_t deadline)
{
	int fd = tcp_socket(open->link, addr, plan), rc;
	char text[ADDRESS_TEXT_MAX];

	if (fd < 0)
		return fd;
	rc = connect_until(fd, addr, deadline);
	if (!rc)
		return fd;
	close(fd);
	return err_set(
		rc, "cannot reach a server at %s: %s%s", address_format(addr, text), strerror(-rc),
		rc == -ECONNREFUSED && !open->plan->peer ? "; is 'layover serve' running there?"
							 : "");
}

int connection_socket(struct connection *link, const struct load_plan *plan)
{
	int fd = tcp_socket(link, (struct sockaddr *)&link->end.to, plan);

	if (fd < 0)
		return fd;
	link->end.fd = fd;
	return 0;
}

/* A stranger's UDP socket: only its address is known. */
static int aim_at(struct opening *open, const struct sockaddr *addr)
{
	const struct load_plan *plan = open->plan;
	struct connection *link = open->link;
	int fd = link->make_socket(link->arg, addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = fd < 0 ? fd : endpoint_options(plan, fd);

	if (!rc && plan->bind)
		rc = endpoint_bind(plan, fd, addr);
	if (!rc && !plan->unconnected && connect(fd, addr, address_size(addr)))
		rc = err_set(-errno, "cannot set up a UDP socket: %s", strerror(errno));
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Messages to a program that is not layover: no control connection, no session. */
static int open_stranger(struct opening *open, const char *target)
{
	static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
	uint16_t port = peer_infos[open->plan->peer].port;
	struct connection *link = open->link;
	char host[ADDRESS_HOST_MAX];
	struct addrinfo *list;
	int rc = address_split(target, host, &port);

	if (!rc)
		rc = address_resolve(host, port, families[open->plan->family], &list);
	if (rc)
		return rc;
	rc = -EHOSTUNREACH;
	for (const struct addrinfo *a = list; a && rc < 0; a = a->ai_next) {
		rc = open->plan->proto == PLAN_UDP
			     ? aim_at(open, a->ai_addr)
			     : connect_tcp(open, a->ai_addr, open->plan,
					   clock_ns() + time_left(open, CONNECT_NS));
		if (rc < 0)
			continue;
		link->end.fd = rc;
		memcpy(&link->server, a->ai_addr, a->ai_addrlen);
		link->server_len = a->ai_addrlen;
		link->end.to = link->end.from = link->server;
		address_format(a->ai_addr, link->server_text);
	}
	freeaddrinfo(list);
	return rc < 0 ? rc : 0;
}

static int connect_control(struct opening *open, const char *target)
{
	static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
	uint16_t port = SERVER_PORT;
	char host[ADDRESS_HOST_MAX];
	struct addrinfo *list;
	uint64_t deadline;
	int rc = address_split(target, host, &port);

	if (!rc)
		rc = address_resolve(host, port, families[open->plan->family], &list);
	if (rc)
		return rc;
	deadline = clock_ns() + time_left(open, CONNECT_NS);
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		rc = connect_tcp(open, a->ai_addr, NULL, deadline);
		if (rc < 0)
			continue;
		open->link->control_fd = rc;
		memcpy(&open->link->server, a->ai_addr, a->ai_addrlen);
		open->link->server_len = a->ai_addrlen;
		address_format(a->ai_addr, open->link->server_text);
		rc = 0;
		break;
	}
	freeaddrinfo(list);
	return rc;
}

/* Puts who said it before the sentence already kept. */
static int about_server(const struct connection *link, int rc)
{
	char why[400];

	snprintf(why, sizeof(why), "%s", err_text(rc));
	return err_set(rc, "no session with the server %s: %s", link->server_text, why);
}

/*
 * The server's next frame, which must be of this protocol and of that type; NULL: any but an error. *answer is
 * NULL unless it is.
 */
static int expect(struct opening *open, const char *type, json_t **answer)
{
	int rc = control_receive(open->link->control_fd, time_left(open, FRAME_NS), answer);
	char said[256];

	if (rc) {
		*answer = NULL;
		return rc;
	}
	rc = control_check_version(*answer, "server");
	if (!rc && !strcmp(control_type(*answer), "error"))
		rc = err_set(-EPROTO, "%s", control_text(*answer, "text", said, sizeof(said)));
	else if (!rc && type && strcmp(control_type(*answer), type) != 0)
		rc = err_set(-EPROTO, "it sent a frame that was not expected");
	if (!rc)
		return 0;
	json_decref(*answer);
	*answer = NULL;
	return rc;
}

/* The transports whose server tells its port. */
static bool needs_port(const struct load_plan *plan)
{
	return plan->crr || plan->proto == PLAN_UDP || plan->proto == PLAN_MULTICAST;
}

/* Answers the server's challenge, if this side has a token, too. */
static int answer_challenge(struct opening *open, const json_t *challenge,
			    struct token_nonces *nonces)
{
	const struct token *token = open->plan->token;
	char proof[TOKEN_PROOF_HEX];
	int rc;

	if (!token)
		return err_set(-EACCES, "it wants a token; --token-file FILE names it");
	if (!token_get_nonce(challenge, nonces->server))
		return err_set(-EPROTO, "its challenge has no number");
	rc = token_draw(nonces->client);
	if (rc)
		return rc;
	token_prove(token, "client", nonces, proof);
	return control_send(open->link->control_fd, time_left(open, FRAME_NS),
			    json_pack("{s:s, s:s, s:s}", "type", "proof", "nonce", nonces->client,
				      "proof", proof));
}

/* The frame that opens the session; with a token after both sides have proved that they have it. */
static int expect_ready(struct opening *open, json_t **ready)
{
	struct token_nonces nonces;
	int rc = expect(open, NULL, ready);

	if (!rc && !strcmp(control_type(*ready), "challenge")) {
		rc = answer_challenge(open, *ready, &nonces);
		json_decref(*ready);
		*ready = NULL;
		if (!rc)
			rc = expect(open, "ready", ready);
		if (!rc && !token_check(open->plan->token, "server", &nonces, *ready))
			rc = err_set(-EACCES, "it does not have the token itself");
	} else if (!rc && strcmp(control_type(*ready), "ready") != 0) {
		rc = err_set(-EPROTO, "it sent a frame that was not expected");
	} else if (!rc && open->plan->token) {
		rc = err_set(-EACCES, "it has no token; start it with --token-file as well");
	}
	return rc;
}

static json_t *hello_frame(const struct load_plan *plan)
{
	return json_pack("{s:s, s:i, s:s, s:o, s:b, s:b}", "type", "hello", "protocol",
			 LAYOVER_PROTOCOL, "version", LAYOVER_VERSION, "plan", plan_to_json(plan),
			 "shutdown", plan->shutdown_server, "more", plan->more);
}

static int say_hello(struct opening *open, struct endpoint_offer *offer)
{
	struct connection *link = open->link;
	json_t *answer = NULL;
	uint64_t asked = clock_ns();
	int rc = control_send(link->control_fd, time_left(open, FRAME_NS), hello_frame(open->plan));
	json_int_t port;
	char note[256];

	if (!rc)
		rc = expect_ready(open, &answer);
	if (rc) {
		json_decref(answer);
		return rc;
	}
	port = json_integer_value(json_object_get(answer, "port"));
	rc = control_get_session(answer, &link->flow.session);
	if (!rc && (port < 0 || port > 65535 || !port == needs_port(open->plan)))
		rc = err_set(-EPROTO, "it named no usable port");
	offer->port = (uint16_t)port;
	control_text(answer, "path", offer->path, sizeof(offer->path));
	link->same_kernel = host_is_this(answer, asked);
	if (control_text(answer, "note", note, sizeof(note))[0])
		say_note("the server: %s", note);
	control_text(answer, "kernel", link->server_kernel, sizeof(link->server_kernel));
	json_decref(answer);
	return rc;
}

static int open_tcp_data(struct opening *open)
{
	struct connection *link = open->link;
	json_t *data = json_pack("{s:s, s:o}", "type", "data", "session",
				 control_session(link->flow.session));
	int fd = connect_tcp(open, (struct sockaddr *)&link->server, open->plan,
			     clock_ns() + time_left(open, CONNECT_NS));

	if (fd < 0) {
		json_decref(data);
		return fd;
	}
	link->end.fd = fd;
	link->end.to = link->end.from = link->server;
	return control_send(fd, time_left(open, FRAME_NS), data);
}

/* Bound to the address the control connection uses: the server answers to no other. */
static int open_other_data(struct opening *open, const struct endpoint_offer *offer)
{
	struct connection *link = open->link;
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	int rc;

	getsockname(link->control_fd, (struct sockaddr *)&local, &len);
	rc = endpoint_join(open->plan, offer, link->flow.session, (struct sockaddr *)&local,
			   (struct sockaddr *)&link->server, link->make_socket, link->arg,
			   &link->end);
	if (rc)
		return rc;
	return control_send(link->control_fd, time_left(open, FRAME_NS),
			    json_pack("{s:s, s:i}", "type", "peer", "port", link->end.port));
}

static void note_flow(struct opening *open)
{
	struct connection *link = open->link;
	struct sockaddr_storage local = {0};
	socklen_t len = sizeof(local);

	getsockname(link->end.fd, (struct sockaddr *)&local, &len);
	link->flow.proto = plan_traced_proto(open->plan);
	link->flow.family = local.ss_family;
	link->flow.client_port = address_port((struct sockaddr *)&local);
	link->flow.server_port = address_port((struct sockaddr *)&link->end.to);
}

int connection_open(struct connection *link, const struct load_plan *plan, const char *target,
		    make_socket_fn *make_socket, void *arg)
{
	struct opening open = {link, plan, clock_ns() + OPEN_NS};
	struct endpoint_offer offer = {0};
	json_t *answer;
	int rc;

	*link = (struct connection){
		.control_fd = -1, .end.fd = -1, .make_socket = make_socket, .arg = arg};
	if (plan->peer) {
		rc = open_stranger(&open, target);
		if (!rc)
			note_flow(&open);
		return rc;
	}
	rc = connect_control(&open, target);
	if (rc)
		return rc;
	rc = say_hello(&open, &offer);
	if (!rc)
		rc = plan->proto == PLAN_TCP && !plan->crr ? open_tcp_data(&open)
							   : open_other_data(&open, &offer);
	if (!rc)
		rc = expect(&open, "go", &answer);
	if (rc)
		return about_server(link, rc);
	json_decref(answer);
	note_flow(&open);
	return 0;
}

bool connection_last_words(const struct connection *link, char *said, size_t size)
{
	json_t *frame;

	if (link->control_fd < 0 || control_receive(link->control_fd, 100ULL * NS_PER_MS, &frame))
		return false;
	control_text(frame, "text", said, size);
	json_decref(frame);
	return said[0];
}

void connection_interface(const struct connection *link, char name[INTERFACE_NAME_MAX])
{
	struct sockaddr_storage local = {0};
	socklen_t len = sizeof(local);

	getsockname(link->control_fd >= 0 ? link->control_fd : link->end.fd,
		    (struct sockaddr *)&local, &len);
	interface_of((struct sockaddr *)&local, name);
}

void connection_close(struct connection *link)
{
	if (link->end.fd >= 0)
		close(link->end.fd);
	if (link->control_fd >= 0)
		close(link->control_fd);
	link->control_fd = link->end.fd = -1;
}
