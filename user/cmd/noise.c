// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/noise.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* The CPU that both ends are said to be on, -1: none. */
static int shared_cpu(const struct noise_observer *o)
{
	int cpu = o->report.client.cpu;

	if (!client_same_kernel(o->run->client) || !o->report.server.known)
		return -1;
	return cpu == o->report.server.cpu ? cpu : -1;
}

static void look_first(struct noise_observer *o)
{
	char interface[INTERFACE_NAME_MAX];
	int fd = client_control(o->run->client);

	if (fd >= 0)
		o->rc = noise_ask(fd, NOISE_LOOK_NS, &o->report.server);
	if (o->rc != -EPROTO)
		o->rc = 0; /* what else is wrong, the trips will show */
	client_interface(o->run->client, interface);
	noise_begin(&o->watch, o->tid, interface);
	o->report.client.cpu = o->watch.cpu;
	o->shared_first = shared_cpu(o);
}

static void look_last(struct noise_observer *o)
{
	int fd = client_control(o->run->client);

	noise_end(&o->watch, &o->report.client);
	noise_add(&o->report.client, &o->run->receiver);
	o->report.server = (struct noise){0};
	if (fd >= 0 && noise_ask(fd, NOISE_LOOK_NS, &o->report.server))
		err_clear(); /* a server that is gone by now has been measured all the same */
	o->report.shared_cpu = shared_cpu(o);
	if (o->report.shared_cpu < 0)
		o->report.shared_cpu = o->shared_first;
}

static void *look(void *arg)
{
	struct noise_observer *o = arg;

	o->look(o);
	if (o->rc)
		snprintf(o->why, sizeof(o->why), "%s", err_text(o->rc));
	return NULL;
}

/*
 * In a thread of its own: the system calls that looking takes must not be found among those of the measuring
 * thread by hooks that know a thread only.
 */
static int look_aside(struct noise_observer *o, void (*what)(struct noise_observer *o))
{
	pthread_t thread;
	int rc;

	o->look = what;
	o->rc = 0;
	rc = pthread_create(&thread, NULL, look, o);
	if (rc)
		return err_set(-rc, "cannot start a thread: %s", strerror(rc));
	pthread_join(thread, NULL);
	return o->rc ? err_set(o->rc, "%s", o->why) : 0;
}

int noise_start(struct noise_observer *o, struct run *run)
{
	int rc = client_adopt(run->client); /* getting to its CPU is no migration */

	o->run = run;
	o->tid = noise_tid();
	o->report = (struct noise_report){.shared_cpu = -1};
	return rc ? rc : look_aside(o, look_first);
}

void noise_finish(struct noise_observer *o)
{
	if (look_aside(o, look_last))
		err_clear();
}

void noise_close(struct noise_observer *o)
{
	noise_drop(&o->watch);
}
