/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts that cost the measured loop one store per trip: a thread beside it sleeps until the
 * current trip's deadline and only then interrupts the blocked system call with a signal. It also
 * notices when the server's control connection ends.
 */
#ifndef LAYOVER_WATCHDOG_H
#define LAYOVER_WATCHDOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct watchdog {
	_Alignas(64) _Atomic uint64_t
		since; /* when the trip under way last made progress; 0: none is */
	_Alignas(64) uint64_t limit_ns;
	atomic_bool stop; /* give up a trip that does not end by itself soon */
	atomic_bool gone; /* the control connection has ended */
	atomic_bool quit;
	pthread_t thread, measured;
	int control_fd, wake_fd;
};

/*
 * Watches the trips of the calling thread and control_fd. 0 or -errno with a sentence;
 * watchdog_close() ends it.
 */
int watchdog_open(struct watchdog *dog, int control_fd, uint64_t limit_ns);
void watchdog_close(struct watchdog *dog);

/* The watchdog must run beside a measuring thread of this SCHED_FIFO priority, which may never sleep; 0: none. */
void watchdog_outrank(struct watchdog *dog, int fifo);

/* Trips now belong to the calling thread. */
void watchdog_adopt(struct watchdog *dog);

/* Set by the signal, for loops that no signal ends; cleared by watchdog_verdict(). */
extern atomic_bool watchdog_interrupt;

/* Sets stop. Async-signal-safe. */
void watchdog_stop(struct watchdog *dog);

/* Called when a system call of the trip was interrupted: 0 go on, else why the trip is over. */
int watchdog_verdict(struct watchdog *dog);

static inline void watchdog_mark(struct watchdog *dog, uint64_t now)
{
	atomic_store_explicit(&dog->since, now, memory_order_relaxed);
}

#endif
