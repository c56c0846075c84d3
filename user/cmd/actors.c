// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/actors.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "cmd/command.h"
#include "load/client.h"
#include "load/clock.h"

enum { HOG_PRIORITY = 10 };

#define HOG_RUNS_NS   (20ULL * NS_PER_MS)
#define HOG_SLEEPS_NS (5ULL * NS_PER_MS)
#define RPS_FILE      "/sys/class/net/" LAB_INTERFACE "/queues/rx-0/rps_cpus"

pid_t actor_spawn(void)
{
	pid_t parent = getpid(), child;

	fflush(NULL);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	signal(SIGINT, SIG_IGN); /* it ends with the scene */
	return 0;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec nap = clock_timespec(ns);

	nanosleep(&nap, NULL);
}

/* Real-time, so that no fair share is left to the reader; it sleeps, so that the machine stays usable. */
void actor_hog(int cpu)
{
	struct sched_param param = {.sched_priority = HOG_PRIORITY};

	prctl(PR_SET_NAME, "hog");
	if (cpus_pin(cpu))
		_exit(EXIT_FAILED);
	sched_setscheduler(0, SCHED_FIFO, &param);
	for (;;) {
		uint64_t until = clock_ns() + HOG_RUNS_NS;

		while (clock_ns() < until)
			;
		sleep_ns(HOG_SLEEPS_NS);
	}
}

void actor_client(struct lab *lab, const struct load_plan *plan, const char *target,
		  uint64_t pause_ns)
{
	struct load_client *client;
	int rc = client_open(&client, plan, target, lab_client_socket, lab);

	do {
		if (!rc)
			rc = client_block(client, pause_ns ? 1 : 0, 0, NULL);
		sleep_ns(pause_ns);
	} while (!rc && pause_ns);
	_exit(rc ? say_error(EXIT_FAILED, "the scenario's client: %s", err_text(rc)) : EXIT_OK);
}

/* Reads whole messages and sends them back until the connection ends. */
static void echo_slowly(int fd, const struct actor_reader *reader, char *message)
{
	for (;;) {
		size_t have = 0, sent = 0;

		if (reader->pause_ns)
			sleep_ns(reader->pause_ns);
		while (have < reader->bytes) {
			ssize_t n = recv(fd, message + have, reader->bytes - have, 0);

			if (n <= 0)
				return;
			have += (size_t)n;
		}
		while (sent < have) {
			ssize_t n = send(fd, message + sent, have - sent, MSG_NOSIGNAL);

			if (n < 0)
				return;
			sent += (size_t)n;
		}
	}
}

int actor_read(int listen_fd, const void *arg)
{
	const struct actor_reader *reader = arg;
	char *message = malloc(reader->bytes);
	int fd = -1;

	prctl(PR_SET_NAME, "reader");
	if (!cpus_pin(reader->cpu))
		fd = accept(listen_fd, NULL, NULL);
	if (message && fd >= 0)
		echo_slowly(fd, reader, message);
	if (fd >= 0)
		close(fd);
	free(message);
	return fd < 0;
}

int actor_qdisc(const struct lab *lab, const char *words)
{
	const char *argv[24] = {"tc",  "-n",  lab->name[LAB_CLIENT], "qdisc",
				"add", "dev", LAB_INTERFACE,         "root"};
	char copy[128], *rest = copy, *word;
	int n = 8, status = -1;
	pid_t child;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&rest, " ")) && n < 23)
		argv[n++] = word;
	child = actor_spawn();
	if (child == 0) {
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	return status ? err_set(-EIO,
				"tc (Debian: iproute2) could not set the queueing discipline '%s'",
				words)
		      : 0;
}

/* The device's files are those of a /sys that was mounted inside its namespace. 0 or an errno. */
static int write_rps(const struct lab *lab, enum lab_side side, int cpu)
{
	char mask[CPUS_MAX / 4 + CPUS_MAX / 32 + 2];
	int fd, written;

	if (lab_enter(lab, side))
		return EPERM;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL))
		return errno;
	/* Words of 32 bits, the highest first. */
	written = snprintf(mask, sizeof(mask), "%x", 1u << cpu % 32);
	for (int word = cpu / 32; word > 0; word--)
		written += snprintf(mask + written, sizeof(mask) - (size_t)written, ",00000000");
	fd = open(RPS_FILE, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, mask, (size_t)written) != written ? errno : 0;
}

int actor_rps(const struct lab *lab, enum lab_side side, int cpu)
{
	pid_t child = actor_spawn();
	int status = 0;

	if (child == 0)
		_exit(write_rps(lab, side, cpu));
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return err_set(-errno, "cannot start a process: %s", strerror(errno));
	return WEXITSTATUS(status) ? err_set(-WEXITSTATUS(status), "cannot write %s in the lab: %s",
					     RPS_FILE, strerror(WEXITSTATUS(status)))
				   : 0;
}
