// SPDX-License-Identifier: GPL-2.0-only
#include "load/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/place.h"
#include "load/clock.h"
#include "load/descriptors.h"

enum {
	SIGNAL = SIGUSR1,
	STOP_GRACE_NS = 100 * NS_PER_MS, /* a trip gets this long to end by itself after a stop */
	REPEAT_MIN_NS =
		20 * NS_PER_US, /* a signal that came between two system calls changed nothing */
	REPEAT_MAX_NS = 10 * NS_PER_MS,
};

atomic_bool watchdog_interrupt;

/* A system call ends with EINTR by itself. */
static void interrupted(int signal)
{
	(void)signal;
	atomic_store(&watchdog_interrupt, true);
}

static void sleep_for(struct watchdog *dog, uint64_t ns)
{
	struct pollfd fds[] = {
		{.fd = dog->wake_fd, .events = POLLIN},
		/* Only its end: between blocks, the server's words on it are for others. */
		{.fd = atomic_load(&dog->gone) ? -1 : dog->control_fd, .events = POLLRDHUP},
	};
	struct timespec limit = clock_timespec(ns);
	uint64_t count;

	if (ppoll(fds, 2, &limit, NULL) <= 0)
		return;
	if (fds[0].revents && read(dog->wake_fd, &count, sizeof(count)) < 0)
		return;
	if (fds[1].revents)
		atomic_store(&dog->gone, true);
}

/* How long the current trip may still run, 0 when it is over; limit_ns while there is none. */
static uint64_t time_left(const struct watchdog *dog)
{
	uint64_t since = atomic_load(&dog->since), limit = dog->limit_ns, now;

	if (!since)
		return limit;
	if (atomic_load(&dog->gone))
		return 0;
	if (atomic_load(&dog->stop) && limit > STOP_GRACE_NS)
		limit = STOP_GRACE_NS;
	now = clock_ns();
	return now < since + limit ? since + limit - now : 0;
}

int watchdog_verdict(struct watchdog *dog)
{
	atomic_store(&watchdog_interrupt, false);
	if (time_left(dog))
		return 0;
	if (atomic_load(&dog->gone))
		return -ECONNRESET;
	return atomic_load(&dog->stop) ? -ECANCELED : -ETIMEDOUT;
}

static void *watch(void *arg)
{
	struct watchdog *dog = arg;
	uint64_t repeat = REPEAT_MIN_NS;

	/* So that the measured thread has its table to itself, if it was the only one before. */
	descriptors_part(dog->control_fd, dog->wake_fd);
	while (!atomic_load(&dog->quit)) {
		uint64_t left = time_left(dog);

		if (left) {
			/* A trip that starts while this sleeps ends later than this wakes. */
			sleep_for(dog, left);
			repeat = REPEAT_MIN_NS;
			continue;
		}
		pthread_kill(dog->measured, SIGNAL);
		sleep_for(dog, repeat);
		repeat = repeat * 2 < REPEAT_MAX_NS ? repeat * 2 : REPEAT_MAX_NS;
	}
	return NULL;
}

int watchdog_open(struct watchdog *dog, int control_fd, uint64_t limit_ns)
{
	struct sigaction action = {.sa_handler = interrupted}; /* no SA_RESTART */
	sigset_t all, before;
	int rc;

	memset(dog, 0, sizeof(*dog));
	dog->control_fd = control_fd;
	dog->limit_ns = limit_ns;
	dog->measured = pthread_self();
	dog->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dog->wake_fd < 0)
		return err_set(-errno, "cannot make an eventfd: %s", strerror(errno));
	sigaction(SIGNAL, &action, NULL);
	/* Ctrl-C must reach the thread that can be blocked in a trip. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&dog->thread, NULL, watch, dog);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		return 0;
	close(dog->wake_fd);
	return err_set(-rc, "cannot start the watchdog thread: %s", strerror(rc));
}

static void wake(const struct watchdog *dog)
{
	static const uint64_t one = 1;
	ssize_t n = write(dog->wake_fd, &one, sizeof(one));

	(void)n; /* it can only fail when it is awake already */
}

void watchdog_close(struct watchdog *dog)
{
	atomic_store(&dog->quit, true);
	wake(dog);
	pthread_join(dog->thread, NULL);
	close(dog->wake_fd);
}

void watchdog_outrank(struct watchdog *dog, int fifo)
{
	place_fifo_of(dog->thread, fifo ? fifo + 1 : 0);
}

void watchdog_adopt(struct watchdog *dog)
{
	dog->measured = pthread_self();
}

void watchdog_stop(struct watchdog *dog)
{
	int saved = errno;

	atomic_store(&dog->stop, true);
	wake(dog);
	errno = saved;
}
