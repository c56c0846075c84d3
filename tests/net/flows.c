// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many flows at once, or one after the other, for tests of `top`: both ends in this process, on 127.0.0.1 and port 5999.
 *
 *   flows hold FLOWS TRIPS [SECONDS]   FLOWS connections; TRIPS round trips over them in turn; then idle for SECONDS
 *   flows churn FLOWS                  FLOWS connections one after the other, one round trip each
 *   flows run FLOWS SECONDS            as many round trips as it can in that time
 *
 * Prints "ready" when the connections are there, then waits for a line on stdin; at the end "trips N".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 5999, BYTES = 40, EVENTS = 256, BACKLOG = 4096 };

static void die(const char *what)
{
	fprintf(stderr, "flows: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void nodelay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Answers whatever comes, on whichever connection. */
static void *serve(void *arg)
{
	int listener = *(int *)arg, epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
	char data[BYTES];

	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			ssize_t bytes;

			if (fd == listener) {
				fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				if (fd < 0)
					continue;
				nodelay(fd);
				event.data.fd = fd;
				epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
				continue;
			}
			bytes = recv(fd, data, sizeof(data), 0);
			if (bytes > 0)
				send(fd, data, (size_t)bytes, MSG_NOSIGNAL);
			else if (bytes == 0 || errno != EAGAIN)
				close(fd);
		}
	}
	return NULL;
}

static struct sockaddr_in start_server(int *listener)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(PORT),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const socklen_t size = sizeof(address);
	pthread_t thread;

	*listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(*listener, (void *)&address, size) || listen(*listener, BACKLOG))
		die("cannot listen");
	if (pthread_create(&thread, NULL, serve, listener))
		die("cannot start a thread");
	return address;
}

/* 64k ports of one address are not enough for many flows and those that wait for their end: 127.0.0.2 … are used, too. */
static int connect_one(const struct sockaddr_in *address, uint32_t number)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number % 64)};
	struct linger reset = {1, 0};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (fd < 0 || bind(fd, (void *)&from, sizeof(from)) ||
	    connect(fd, (const void *)address, sizeof(*address)))
		die("cannot connect");
	nodelay(fd);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd;
}

static void trip(int fd)
{
	char data[BYTES] = {0};
	ssize_t got = 0, n;

	if (send(fd, data, sizeof(data), MSG_NOSIGNAL) != sizeof(data))
		die("cannot send");
	for (; got < BYTES; got += n) {
		n = recv(fd, data, sizeof(data), 0);
		if (n <= 0)
			die("no answer");
	}
}

static void ready(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static int *open_all(const struct sockaddr_in *address, uint32_t flows)
{
	int *fds = malloc(flows * sizeof(*fds));

	for (uint32_t i = 0; i < flows; i++)
		fds[i] = connect_one(address, i);
	ready();
	return fds;
}

static uint64_t churn(const struct sockaddr_in *address, uint32_t flows)
{
	ready();
	for (uint32_t i = 0; i < flows; i++) {
		int fd = connect_one(address, i);

		trip(fd);
		close(fd);
	}
	return flows;
}

static uint64_t hold(const int *fds, uint32_t flows, uint64_t trips, double until)
{
	uint64_t n = 0;

	for (; trips ? n < trips : seconds() < until; n++)
		trip(fds[n % flows]);
	return n;
}

int main(int argc, char **argv)
{
	uint32_t flows = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	uint64_t number = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, trips;
	struct rlimit files;
	struct sockaddr_in address;
	int listener, *fds = NULL;

	if (!flows)
		return 2;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	address = start_server(&listener);
	if (!strcmp(argv[1], "churn")) {
		trips = churn(&address, flows);
	} else {
		fds = open_all(&address, flows);
		trips = !strcmp(argv[1], "run") ? hold(fds, flows, 0, seconds() + (double)number)
						: hold(fds, flows, number, 0);
	}
	printf("trips %llu\n", (unsigned long long)trips);
	fflush(stdout);
	if (argc > 4)
		sleep((unsigned int)strtoul(argv[4], NULL, 10));
	free(fds);
	return 0;
}
