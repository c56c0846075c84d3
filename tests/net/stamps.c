// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds two hooks against a clock that is not ours: the kernel's own SO_TIMESTAMPING software stamps of the
 * same packets. A UDP ping-pong in a lab; for every trip the transmit stamp is compared with dev_xmit, the
 * receive stamp of the reply with stack_in. Prints the distributions of the distances, in ns.
 *
 * Usage: stamps TRIPS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "collect/collect.h"
#include "lab/lab.h"
#include "model/dist.h"

enum { SERVER_UDP_PORT = 7200, CLIENT_UDP_PORT = 7201, BYTES = 64, TRIPS_MAX = 1000000 };

struct stamps {
	int64_t tx, rx; /* CLOCK_MONOTONIC ns, 0: none came */
};

static struct stamps *stamps;
static int64_t *tx_distance, *rx_distance;
static size_t trips, tx_count, rx_count;

static int64_t ns_of(struct timespec t)
{
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return ns_of(t);
}

/* CLOCK_REALTIME - CLOCK_MONOTONIC, from the closest of some pairs of readings. */
static int64_t clock_offset(void)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < 8; i++) {
		int64_t before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME);
		int64_t after = read_clock(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			offset = real - before - best / 2;
		}
	}
	return offset;
}

static void die(const char *what)
{
	exit(say_error(EXIT_FAILED, "%s: %s", what, strerror(errno)));
}

static int udp_socket(const struct lab *lab, enum lab_side side, const char *local, int local_port,
		      const char *remote, int remote_port)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons((uint16_t)local_port)};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)remote_port)};
	int fd = lab_socket(lab, side, AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, local, &from.sin_addr);
	inet_pton(AF_INET, remote, &to.sin_addr);
	if (fd < 0 || bind(fd, (void *)&from, sizeof(from)) || connect(fd, (void *)&to, sizeof(to)))
		die("cannot make a socket in the lab");
	return fd;
}

static pid_t start_echo(int fd)
{
	pid_t pid = fork();
	char message[BYTES];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpus_pin(cpus_nth(0));
	while (recv(fd, message, sizeof(message), 0) == BYTES)
		if (send(fd, message, sizeof(message), 0) != BYTES)
			break;
	_exit(0);
}

/* Receives a message with its stamp; flags may be MSG_ERRQUEUE for the transmit stamp. 0: none. */
static int64_t receive_stamp(int fd, int flags)
{
	char message[BYTES], control[512];
	struct iovec iov = {message, sizeof(message)};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};

	if (recvmsg(fd, &header, flags) < 0)
		return 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		struct scm_timestamping stamp;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING)
			continue;
		memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		return ns_of((struct timespec){stamp.ts[0].tv_sec, stamp.ts[0].tv_nsec});
	}
	return 0;
}

static void ping(int fd)
{
	uint64_t message[BYTES / 8] = {0};

	for (size_t i = 0; i < trips; i++) {
		int64_t offset = clock_offset(), rx, tx;

		message[0] = i + 1;
		if (send(fd, message, BYTES, 0) != BYTES)
			die("cannot send");
		rx = receive_stamp(fd, 0);
		tx = receive_stamp(fd, MSG_ERRQUEUE | MSG_DONTWAIT);
		stamps[i].rx = rx ? rx - offset : 0;
		stamps[i].tx = tx ? tx - offset : 0;
	}
}

static void compare(void *arg, const struct turn_record *record)
{
	size_t trip = record->send_id - 1;

	(void)arg;
	if (record->role != ROLE_CLIENT || trip >= trips)
		return;
	if (stamps[trip].tx && record->t[HOOK_dev_xmit])
		tx_distance[tx_count++] =
			llabs(stamps[trip].tx - (int64_t)record->t[HOOK_dev_xmit]);
	if (stamps[trip].rx && record->t[HOOK_stack_in])
		rx_distance[rx_count++] =
			llabs(stamps[trip].rx - (int64_t)record->t[HOOK_stack_in]);
}

static void print(const char *name, int64_t *distances, size_t count)
{
	int64_t *scratch = malloc((count + 1) * sizeof(*scratch));
	struct dist d;

	if (!scratch)
		die("out of memory");
	dist_of(distances, scratch, count, &d);
	free(scratch);
	printf("%s count %zu p50 %lld p99 %lld max %lld\n", name, count, (long long)d.p[DIST_P50],
	       (long long)d.p[DIST_P99], (long long)d.max);
}

static int measure(struct lab *lab)
{
	const int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
			  SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY |
			  SOF_TIMESTAMPING_OPT_ID;
	struct probe_wish wish = {.proto = IPPROTO_UDP};
	struct collect *collect = NULL;
	pid_t echo = start_echo(udp_socket(lab, LAB_SERVER, LAB_SERVER_IPV4, SERVER_UDP_PORT,
					   LAB_CLIENT_IPV4, CLIENT_UDP_PORT));
	int fd = udp_socket(lab, LAB_CLIENT, LAB_CLIENT_IPV4, CLIENT_UDP_PORT, LAB_SERVER_IPV4,
			    SERVER_UDP_PORT);
	int rc = collect_open(&collect, &wish);

	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)))
		die("SO_TIMESTAMPING");
	if (!rc) {
		collect_set_flow(collect, CLIENT_UDP_PORT, SERVER_UDP_PORT, BYTES);
		rc = collect_attach(collect);
	}
	if (!rc) {
		cpus_pin(cpus_nth(0));
		ping(fd);
		rc = collect_drain(collect, compare, NULL);
	}
	collect_close(collect);
	kill(echo, SIGKILL);
	return rc < 0 ? rc : 0;
}

int main(int argc, char **argv)
{
	struct lab lab = LAB_NONE;
	int rc;

	trips = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (trips < 1 || trips > TRIPS_MAX)
		return say_error(EXIT_USAGE, "usage: stamps TRIPS");
	stamps = calloc(trips, sizeof(*stamps));
	tx_distance = calloc(trips, sizeof(*tx_distance));
	rx_distance = calloc(trips, sizeof(*rx_distance));
	if (!stamps || !tx_distance || !rx_distance)
		die("out of memory");
	rc = lab_create(&lab);
	if (!rc)
		rc = measure(&lab);
	lab_destroy(&lab);
	if (rc)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	print("tx", tx_distance, tx_count);
	print("rx", rx_distance, rx_count);
	return EXIT_OK;
}
