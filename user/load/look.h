/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that looks at samples while others take them, several times a second. */
#ifndef LAYOVER_LOOK_H
#define LAYOVER_LOOK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "load/samples.h"

struct look {
	/* Set before look_start(). */
	void (*call)(void *arg,
		     const struct samples *fresh); /* what came since it was called last */
	void *arg;
	bool forget;         /* what was looked at is not kept in out */
	struct samples *out; /* nobody else's until look_end() */

	/* Where samples go meanwhile. Whoever changes their number or arrays holds the lock. */
	struct samples fresh;
	pthread_mutex_t lock;
	atomic_int failure; /* -ENOMEM: there was no room in out */

	/* Private. */
	struct samples seen;
	pthread_t thread;
	atomic_bool quit, runs;
};

/* 0 or -errno with a sentence. look_end() is due either way. */
int look_start(struct look *look);

/* Ends the thread, looks a last time, adds the counters of fresh to out's. 0 or -ENOMEM with a sentence. */
int look_end(struct look *look);

#endif
