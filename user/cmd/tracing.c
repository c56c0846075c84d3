// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* UDP: the number in a message of four bytes repeats after more trips than a run has. */
enum { UNIQUE_ID_BYTES = 4 };

struct sink {
	struct tracing *tracing;
	int rc;
};

static void take_record(void *arg, const struct turn_record *record)
{
	struct sink *sink = arg;
	struct tracing *t = sink->tracing;

	/* A server elsewhere cannot be seen from here: that is somebody else with the same ports. */
	if (!sink->rc && (record->role == ROLE_CLIENT || t->same_kernel))
		sink->rc = join_add(&t->join, record);
}

static int take_far_record(void *arg, const struct turn_record *record)
{
	struct tracing *t = arg;
	const struct load_flow *flow = client_flow(t->run->client);
	struct turn_record ours = *record;

	/* The server's ports may be others, translated on the way. */
	ours.flow = (uint32_t)flow->client_port << 16 | flow->server_port;
	return join_add(&t->join, &ours);
}

/* Gets the far end's records; its hooks stay attached if they are to. */
static int drain_far(struct tracing *t, bool attach)
{
	int rc = remote_fetch(&t->remote, attach, take_far_record, t);
	char why[300];

	t->join.far.ahead_min = t->remote.ahead_min;
	t->join.far.ahead_max = t->remote.ahead_max;
	if (!rc)
		return 0;
	snprintf(why, sizeof(why), "%s", err_text(rc));
	return err_set(rc, "no records from the server: %s", why);
}

static int drain(struct tracing *t, bool final)
{
	const struct samples *samples = &t->run->samples;
	struct sink sink = {t, 0};
	int rc = collect_drain(t->collect, take_record, &sink);

	if (rc < 0)
		return err_set(rc, "cannot read the record buffer: %s", strerror(-rc));
	if (sink.rc)
		return sink.rc;
	return join_run(&t->join, samples->start_ns, samples->rtt_ns, samples->count, final);
}

/* off on on off off on on … : a drift of the machine's speed falls on both alike. */
static bool attached_in(size_t block)
{
	return ((block + 1) / 2) % 2;
}

static int keep_pair(struct tracing *t)
{
	struct overhead_pair *grown = realloc(t->pairs, (t->pair_count + 1) * sizeof(*t->pairs));

	if (!grown)
		return err_set(-ENOMEM, "out of memory for the probe effect");
	t->pairs = grown;
	memcpy(grown[t->pair_count].off, t->off_figures, sizeof(t->off_figures));
	memcpy(grown[t->pair_count].on, t->on_figures, sizeof(t->on_figures));
	t->pair_count++;
	return 0;
}

/* The block that just ended, as p50 and p99. */
static int measure_block(struct tracing *t)
{
	bool on = attached_in(t->blocks);
	const struct samples *from = on ? &t->run->samples : &t->off;
	size_t first = on ? t->on_before : 0, n = from->count - first;
	uint64_t *copy;

	if (!n)
		return 0;
	copy = malloc(n * sizeof(*copy));
	if (!copy)
		return err_set(-ENOMEM, "out of memory for the probe effect");
	memcpy(copy, from->rtt_ns + first, n * sizeof(*copy));
	overhead_block(copy, n, on ? t->on_figures : t->off_figures);
	free(copy);
	t->off.count = 0;
	t->blocks++;
	return t->blocks % 2 == 0 ? keep_pair(t) : 0;
}

/* The block that ended is accounted for; *on: whether hooks are attached in the next one. */
static int alternate(struct tracing *t, bool *on)
{
	int rc = t->run->into ? measure_block(t) : 0;

	*on = attached_in(t->blocks);
	t->run->into = *on ? &t->run->samples : &t->off;
	t->on_before = t->run->samples.count;
	return rc;
}

static int between(void *arg)
{
	struct tracing *t = arg;
	bool on = true;
	int rc = t->overhead ? alternate(t, &on) : 0;

	if (!rc && client_nic(t->run->client))
		rc = nic_settle(client_nic(t->run->client));
	if (!rc && t->remote.traced)
		rc = drain_far(t, on);
	if (!rc)
		rc = drain(t, false);
	if (rc)
		return rc;
	if (on)
		return collect_attach(t->collect);
	collect_detach(t->collect);
	return 0;
}

int tracing_open(struct tracing *t, const struct probe_wish *wish, bool overhead)
{
	int rc;

	t->overhead = overhead;
	t->with = wish->with;
	t->without = wish->without;
	rc = collect_open(&t->collect, wish);
	if (!rc)
		t->join.hooks = collect_hooks(t->collect);
	return rc;
}

/* A server elsewhere records its own end, if it can. */
static int ask_server(struct tracing *t)
{
	const struct load_plan *plan = t->run->plan;
	int rc = remote_start(&t->remote, client_control(t->run->client), t->with, t->without);
	char why[300];

	if (rc) {
		snprintf(why, sizeof(why), "%s", err_text(rc));
		return err_set(rc, "cannot ask the server for its part of the split: %s", why);
	}
	if (!t->remote.traced)
		return 0;
	t->join.far.used = true;
	t->join.far.hooks = records_hooks(&t->remote.layout);
	t->join.far.ids_repeat = plan->proto == PLAN_UDP && plan->bytes < UNIQUE_ID_BYTES;
	return 0;
}

static uint64_t nic_time_of(const void *nic, size_t trip)
{
	return nic_time(nic, trip);
}

int tracing_start(struct tracing *t, struct run *run)
{
	const struct load_flow *flow = client_flow(run->client);
	int rc = 0;

	t->run = run;
	run->between = between;
	run->arg = t;
	t->same_kernel = client_same_kernel(run->client);
	snprintf(t->server_kernel, sizeof(t->server_kernel), "%s",
		 client_server_kernel(run->client));
	if (client_control(run->client) < 0)
		snprintf(t->remote.reason, sizeof(t->remote.reason),
			 "the server is not layover's own");
	else if (!t->same_kernel)
		rc = ask_server(t);
	if (rc)
		return rc;
	t->join.nic = client_nic(run->client);
	t->join.nic_time = t->join.nic ? nic_time_of : NULL;
	collect_set_flow(t->collect, flow->client_port, flow->server_port, run->plan->bytes);
	return collect_attach(t->collect);
}

int tracing_finish(struct tracing *t)
{
	collect_counters(t->collect, &t->counters);
	if (client_nic(t->run->client))
		nic_report(client_nic(t->run->client), &t->nic);
	collect_detach(t->collect);
	if (t->remote.traced && drain_far(t, false)) {
		/* A server that hangs at the end costs its part of the last trips, not the measurement. */
		say_note("%s", err_text(0));
		err_clear();
	}
	return drain(t, true);
}

void tracing_close(struct tracing *t)
{
	collect_close(t->collect);
	t->collect = NULL;
	join_free(&t->join);
	samples_free(&t->off);
	free(t->pairs);
	t->pairs = NULL;
}
