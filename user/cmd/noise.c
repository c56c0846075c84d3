// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/noise.h"

#include "base/error.h"
#include "load/clock.h"
#include "load/control.h"

#define FIRST_NS ((uint64_t)CONTROL_FRAME_S * NS_PER_S)
/* The server may be stuck, which may be why the run has ended. */
#define LAST_WORDS_NS (300ULL * NS_PER_MS)

/* The CPU that both ends are said to be on, -1: none. */
static int shared_cpu(const struct noise_observer *o)
{
	int cpu = o->report.client.cpu;

	if (!client_same_kernel(o->run->client) || !o->report.server.known)
		return -1;
	return cpu == o->report.server.cpu ? cpu : -1;
}

static int look_first(struct noise_observer *o)
{
	char interface[INTERFACE_NAME_MAX];
	int fd = client_control(o->run->client);
	int rc = fd < 0 ? 0 : noise_ask(fd, FIRST_NS, &o->report.server);

	client_interface(o->run->client, interface);
	noise_begin(&o->watch, noise_tid(), interface);
	o->report.client.cpu = o->watch.cpu;
	o->shared_first = shared_cpu(o);
	return rc;
}

static int between(void *arg)
{
	struct noise_observer *o = arg;
	int rc = o->between ? o->between(o->arg) : 0;

	return rc || o->watch.tid ? rc : look_first(o);
}

int noise_start(struct noise_observer *o, struct run *run)
{
	int rc;

	o->run = run;
	o->report = (struct noise_report){.shared_cpu = -1};
	if (plan_overlaps(run->plan)) {
		rc = client_adopt(run->client); /* getting there is no migration */
		return rc ? rc : look_first(o);
	}
	o->between = run->between;
	o->arg = run->arg;
	run->between = between;
	run->arg = o;
	return 0;
}

void noise_finish(struct noise_observer *o)
{
	int fd = client_control(o->run->client);

	if (!o->watch.tid)
		return;
	noise_end(&o->watch, &o->report.client);
	noise_add(&o->report.client, &o->run->receiver);
	o->report.server = (struct noise){0};
	if (fd >= 0 && noise_ask(fd, LAST_WORDS_NS, &o->report.server))
		err_clear(); /* a server that is gone by now has been measured all the same */
	o->report.shared_cpu = shared_cpu(o);
	if (o->report.shared_cpu < 0)
		o->report.shared_cpu = o->shared_first;
}

void noise_close(struct noise_observer *o)
{
	noise_drop(&o->watch);
}
