// SPDX-License-Identifier: GPL-2.0-only
#include "load/look.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "load/clock.h"

#define LOOK_NS (100ULL * NS_PER_MS)

static void look_once(struct look *l)
{
	pthread_mutex_lock(&l->lock);
	samples_swap(&l->fresh, &l->seen);
	pthread_mutex_unlock(&l->lock);
	l->call(l->arg, &l->seen);
	if (!l->forget && !atomic_load(&l->failure))
		atomic_store(&l->failure, samples_append(l->out, &l->seen));
	l->seen.count = 0;
}

static void *look_on(void *arg)
{
	struct timespec nap = clock_timespec(LOOK_NS);
	struct look *l = arg;

	while (!atomic_load(&l->quit)) {
		nanosleep(&nap, NULL);
		look_once(l);
	}
	return NULL;
}

int look_start(struct look *l)
{
	sigset_t all, before;
	int rc;

	l->fresh.with_service = l->seen.with_service = l->out->with_service;
	pthread_mutex_init(&l->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&l->thread, NULL, look_on, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	atomic_store(&l->runs, !rc);
	return rc ? err_set(-rc, "cannot start a thread: %s", strerror(rc)) : 0;
}

int look_end(struct look *l)
{
	int rc = 0;

	if (atomic_load(&l->runs)) {
		atomic_store(&l->quit, true);
		pthread_join(l->thread, NULL);
		look_once(l);
		rc = atomic_load(&l->failure);
	}
	samples_count(l->out, &l->fresh);
	samples_free(&l->fresh);
	samples_free(&l->seen);
	return rc ? err_set(rc, "no memory for more samples; --histogram-only keeps none") : 0;
}
