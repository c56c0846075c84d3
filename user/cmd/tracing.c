// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct sink {
	struct join *join;
	int rc;
};

static void take_record(void *arg, const struct turn_record *record)
{
	struct sink *sink = arg;

	if (!sink->rc)
		sink->rc = join_add(sink->join, record);
}

static int drain(struct tracing *t, bool final)
{
	const struct samples *samples = &t->run->samples;
	struct sink sink = {&t->join, 0};
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
	struct overhead_pair *grown =
		realloc(t->pairs, (t->pair_count + 1) * sizeof(*t->pairs));

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

static int alternate(struct tracing *t)
{
	int rc = t->run->into ? measure_block(t) : 0;
	bool on = attached_in(t->blocks);

	if (rc)
		return rc;
	t->run->into = on ? &t->run->samples : &t->off;
	t->on_before = t->run->samples.count;
	if (!on) {
		collect_detach(t->collect);
		return 0;
	}
	return collect_attach(t->collect);
}

static int between(void *arg)
{
	struct tracing *t = arg;
	int rc = drain(t, false);

	return rc || !t->overhead ? rc : alternate(t);
}

int tracing_open(struct tracing *t, const struct probe_wish *wish, bool overhead)
{
	int rc;

	t->overhead = overhead;
	rc = collect_open(&t->collect, wish);
	if (!rc)
		t->join.hooks = collect_hooks(t->collect);
	return rc;
}

int tracing_start(struct tracing *t, struct run *run)
{
	const struct load_flow *flow = client_flow(run->client);

	t->run = run;
	run->between = between;
	run->arg = t;
	collect_set_flow(t->collect, flow->client_port, flow->server_port, run->plan->bytes);
	return collect_attach(t->collect);
}

int tracing_finish(struct tracing *t)
{
	collect_counters(t->collect, &t->counters);
	collect_detach(t->collect);
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
