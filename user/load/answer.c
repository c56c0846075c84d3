// SPDX-License-Identifier: GPL-2.0-only
#include "load/answer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "load/clock.h"
#include "load/message.h"
#include "load/peer.h"

/* No message is larger; a header that says so ends its connection. */
enum { ANSWER_BYTES_MAX = 1 << 20, PAUSE_NS = 50 * NS_PER_MS };

struct answerer;

struct answered {
	struct answerer *server;
	int fd; /* -1: free */
};

struct answerer {
	int peer, udp_fd;
	atomic_bool end;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	unsigned int used;
	struct answered connections[ANSWER_CONNECTIONS_MAX];
};

/* --- TCP ----------------------------------------------------------------------------------------- */

static bool read_whole(int fd, char *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = message_receive(fd, to + done, bytes - done, 0, NULL, NULL);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool write_whole(int fd, const char *from, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = message_send(fd, from + done, bytes - done, 0, NULL, 0);

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* One message and its answer; what has no header is answered as it comes. */
static bool answer_one(int peer, int fd, char *message)
{
	size_t header = peer_infos[peer].minimum, bytes = header;
	ssize_t n;

	if (peer == PEER_ECHO) {
		n = message_receive(fd, message, ANSWER_BYTES_MAX, 0, NULL, NULL);
		return n > 0 && write_whole(fd, message, (size_t)n);
	}
	/* A message mostly comes in one piece: one call, unless it does not. */
	n = message_receive(fd, message, ANSWER_BYTES_MAX, MSG_PEEK, NULL, NULL);
	if (n < (ssize_t)header) {
		if (n <= 0 || !read_whole(fd, message, header))
			return false;
		n = 0;
	}
	peer_length(peer, message, &bytes);
	if (bytes < header || bytes > ANSWER_BYTES_MAX)
		return false;
	if (!read_whole(fd, n ? message : message + header, n ? bytes : bytes - header))
		return false;
	return !peer_answer(peer, message) || write_whole(fd, message, bytes);
}

static void *answer_stream(void *arg)
{
	struct answered *own = arg;
	struct answerer *server = own->server;
	char *message = malloc(ANSWER_BYTES_MAX);
	int on = 1;

	setsockopt(own->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (message && answer_one(server->peer, own->fd, message))
		;
	free(message);
	pthread_mutex_lock(&server->lock);
	close(own->fd);
	own->fd = -1;
	server->used--;
	pthread_cond_broadcast(&server->freed);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

static int start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	int rc = pthread_create(thread, NULL, run, arg);

	return rc ? err_set(-rc, "cannot start a thread: %s", strerror(rc)) : 0;
}

static void accept_one(struct answerer *server, int tcp_fd)
{
	int fd = accept4(tcp_fd, NULL, NULL, SOCK_CLOEXEC);
	struct answered *own = NULL;
	pthread_t thread;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
		return;
	}
	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < ANSWER_CONNECTIONS_MAX && !own; i++)
		if (server->connections[i].fd < 0)
			own = &server->connections[i];
	if (own) {
		own->fd = fd; /* before its thread looks */
		server->used++;
	}
	if (own && !start(&thread, answer_stream, own)) {
		pthread_detach(thread);
	} else {
		close(fd);
		err_clear();
		if (own) {
			own->fd = -1;
			server->used--;
		}
	}
	pthread_mutex_unlock(&server->lock);
}

/* --- UDP ----------------------------------------------------------------------------------------- */

static void *answer_datagrams(void *arg)
{
	struct answerer *server = arg;
	char *message = malloc(ANSWER_BYTES_MAX);

	while (message && !atomic_load_explicit(&server->end, memory_order_relaxed)) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		ssize_t n = message_receive(server->udp_fd, message, ANSWER_BYTES_MAX, 0,
					    (struct sockaddr *)&from, &len);

		if (n >= (ssize_t)peer_infos[server->peer].minimum &&
		    peer_answer(server->peer, message))
			message_send(server->udp_fd, message, (size_t)n, 0,
				     (struct sockaddr *)&from, len);
	}
	free(message);
	return NULL;
}

/* --- the main loop ------------------------------------------------------------------------------- */

static void end_all(struct answerer *server, pthread_t udp)
{
	atomic_store(&server->end, true);
	shutdown(server->udp_fd, SHUT_RDWR); /* wakes its thread, though it says ENOTCONN */
	pthread_join(udp, NULL);
	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < ANSWER_CONNECTIONS_MAX; i++)
		if (server->connections[i].fd >= 0)
			shutdown(server->connections[i].fd, SHUT_RDWR);
	while (server->used)
		pthread_cond_wait(&server->freed, &server->lock);
	pthread_mutex_unlock(&server->lock);
}

int answer_run(int tcp_fd, int udp_fd, int stop_fd, int peer)
{
	struct answerer *server = calloc(1, sizeof(*server));
	struct pollfd fds[] = {{.fd = tcp_fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	pthread_t udp;
	int rc;

	if (!server)
		return err_set(-ENOMEM, "no memory for the server");
	server->peer = peer;
	server->udp_fd = udp_fd;
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->freed, NULL);
	for (int i = 0; i < ANSWER_CONNECTIONS_MAX; i++)
		server->connections[i] = (struct answered){server, -1};
	rc = start(&udp, answer_datagrams, server);
	if (!rc) {
		while (!fds[1].revents)
			if (poll(fds, 2, -1) > 0 && fds[0].revents)
				accept_one(server, tcp_fd);
		end_all(server, udp);
	}
	free(server);
	return rc;
}
