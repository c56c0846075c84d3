// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least a ping-pong can be: one send() and one recv() per side and trip, two clock reads, one
 * thread. `make bench` holds the driver against it. Sockets are set up as the driver does it:
 * TCP_NODELAY, UDP connected on both ends.
 *
 *   bareloop server PORT tcp|udp [spin]                     one client after the other, until killed
 *   bareloop client ADDR PORT tcp|udp BYTES SECONDS [spin]  prints p50 and mean in ns, and the
 * number of trips
 *
 * With `spin` nobody sleeps for a message: recv() is asked again until it has come, which is the
 * floor of every method that polls.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BYTES_MAX = 65507, TRIPS_MAX = 4 << 20, WARMUP = 1000 };

static char message[BYTES_MAX];
static int how; /* recv()'s flags: MSG_DONTWAIT when it spins */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int make_socket(int type, int (*use)(int, const struct sockaddr *, socklen_t),
		       const char *addr, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, type, 0), on = 1;

	inet_pton(AF_INET, addr, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (use(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "%s port %s", addr, port);
	return fd;
}

static ssize_t receive_some(int fd, char *to, size_t room)
{
	ssize_t n;

	do
		n = recv(fd, to, room, how);
	while (n < 0 && errno == EAGAIN);
	return n;
}

/* Until the message is whole. False when the stream is over. */
static int receive(int fd, size_t bytes)
{
	for (size_t have = 0; have < bytes;) {
		ssize_t n = receive_some(fd, message + have, bytes - have);

		if (n <= 0)
			return 0;
		have += (size_t)n;
	}
	return 1;
}

/* The client says in 4 bytes how long its messages are. */
static void serve_tcp(int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		uint32_t bytes = 0;

		if (fd < 0)
			err(1, "accept");
		if (recv(fd, &bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes) &&
		    bytes <= BYTES_MAX)
			while (receive(fd, bytes) &&
			       send(fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes)
				;
		close(fd);
	}
}

/* An empty datagram starts and ends a client's run; in between the socket is connected to it. */
static void serve_udp(int fd)
{
	for (;;) {
		struct sockaddr nobody = {.sa_family = AF_UNSPEC};
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		ssize_t n =
			recvfrom(fd, message, sizeof(message), 0, (struct sockaddr *)&peer, &len);

		if (n != 0 || connect(fd, (struct sockaddr *)&peer, len))
			continue;
		for (send(fd, "", 0, 0); (n = receive_some(fd, message, sizeof(message))) > 0;)
			send(fd, message, (size_t)n, 0);
		(void)connect(fd, &nobody, sizeof(nobody));
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(uint64_t *rtt, size_t n)
{
	double sum = 0;

	qsort(rtt, n, sizeof(*rtt), compare);
	for (size_t i = 0; i < n; i++)
		sum += (double)rtt[i];
	printf("%llu %.0f %zu\n", (unsigned long long)rtt[n / 2], sum / (double)n, n);
}

static void run_client(int fd, int udp, uint32_t bytes, double seconds)
{
	uint64_t *rtt = mmap(NULL, TRIPS_MAX * sizeof(*rtt), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t begun = now_ns(), until = begun + (uint64_t)(seconds * 1e9), start, end = begun;
	size_t n = 0;

	if (rtt == MAP_FAILED)
		err(1, "memory");
	if (udp ? send(fd, "", 0, 0) || recv(fd, message, 1, 0) : send(fd, &bytes, 4, 0) != 4)
		err(1, "start");
	for (size_t i = 0; end < until && n < TRIPS_MAX; i++) {
		start = now_ns();
		if (send(fd, message, bytes, 0) != (ssize_t)bytes || !receive(fd, bytes))
			err(1, "trip %zu", i);
		end = now_ns();
		if (i >= WARMUP)
			rtt[n++] = end - start;
	}
	if (udp && send(fd, "", 0, 0))
		err(1, "end");
	if (!n)
		errx(1, "nothing was measured");
	report(rtt, n);
}

int main(int argc, char **argv)
{
	if ((argc == 5 || argc == 8) && !strcmp(argv[argc - 1], "spin")) {
		how = MSG_DONTWAIT;
		argc--;
	}
	if (argc == 4 && !strcmp(argv[1], "server")) {
		int udp = !strcmp(argv[3], "udp");
		int fd = make_socket(udp ? SOCK_DGRAM : SOCK_STREAM, bind, "0.0.0.0", argv[2]);

		if (udp)
			serve_udp(fd);
		else if (listen(fd, 16))
			err(1, "listen");
		else
			serve_tcp(fd);
	} else if (argc == 7 && !strcmp(argv[1], "client")) {
		int udp = !strcmp(argv[4], "udp"), bytes = atoi(argv[5]);

		if (bytes < 1 || bytes > BYTES_MAX)
			errx(2, "1 to %d bytes", BYTES_MAX);
		run_client(make_socket(udp ? SOCK_DGRAM : SOCK_STREAM, connect, argv[2], argv[3]),
			   udp, (uint32_t)bytes, atof(argv[6]));
	} else {
		errx(2, "usage: bareloop server PORT tcp|udp [spin] | client ADDR PORT tcp|udp "
			"BYTES SECONDS [spin]");
	}
	return 0;
}
