// SPDX-License-Identifier: GPL-2.0-only
#include "load/run.h"

#include <errno.h>

#include "load/clock.h"
#include "load/overlap.h"

static int pause_between(struct run *run)
{
	return run->between ? run->between(run->arg) : 0;
}

static int warm_up(struct run *run)
{
	const struct load_plan *plan = run->plan;
	uint64_t before = client_trips(run->client), begun = clock_ns();
	int rc = 0;

	if (plan->warmup_trips || plan->warmup_ns)
		rc = client_block(run->client, plan->warmup_trips, plan->warmup_ns, NULL);
	run->warmup_trips = client_trips(run->client) - before;
	run->warmup_ns = clock_ns() - begun;
	return rc;
}

/* The limits of the next block; false when there is nothing left to measure. */
static bool next_block(const struct run *run, uint64_t begun, uint64_t *trips, uint64_t *ns)
{
	const struct load_plan *plan = run->plan;
	uint64_t passed = begun ? clock_ns() - begun : 0;

	*trips = RUN_BLOCK_TRIPS;
	*ns = (uint64_t)RUN_BLOCK_MS * NS_PER_MS;
	if (plan->iterations && plan->iterations - run->tried < *trips)
		*trips = plan->iterations - run->tried;
	if (plan->duration_ns && passed < plan->duration_ns && plan->duration_ns - passed < *ns)
		*ns = plan->duration_ns - passed;
	return *trips && (!plan->duration_ns || passed < plan->duration_ns) &&
	       !client_stopped(run->client);
}

static int measure(struct run *run)
{
	uint64_t trips, ns, begun = 0;
	int rc = 0;

	while (!rc && next_block(run, begun, &trips, &ns)) {
		uint64_t before;

		/*
		 * After a pause the CPU's caches and clock are not what they were, so the first
		 * trips would not be typical. But while trips get lost there is no pause: it would
		 * hide losses.
		 */
		if (!begun || client_answered(run->client))
			rc = client_settle(run->client, RUN_SETTLE_TRIPS);
		if (rc)
			break;
		if (!begun)
			begun = clock_ns();
		before = client_trips(run->client);
		rc = client_block(run->client, trips, ns, run->into ? run->into : &run->samples);
		run->tried += client_trips(run->client) - before;
		run->duration_ns = clock_ns() - begun;
		if (!rc && client_answered(run->client))
			rc = pause_between(run);
	}
	return rc;
}

static int measure_overlap(struct run *run)
{
	struct overlap_result result;
	int rc = overlap_run(run->client, &run->samples, run->look.call ? &run->look : NULL,
			     &result);

	run->tried = result.tried;
	run->warmup_trips = result.warmup_trips;
	run->warmup_ns = result.warmup_ns;
	run->duration_ns = result.duration_ns;
	run->lost_unmeasured = result.lost_unmeasured;
	run->stopped = result.stopped;
	run->receiver = result.receiver;
	return rc;
}

static int measure_trips(struct run *run)
{
	int rc = warm_up(run);

	if (!rc)
		rc = pause_between(run);
	if (!rc)
		rc = measure(run);
	/* A server's turn ends when the next request arrives. */
	if (!rc)
		rc = client_settle(run->client, 1);
	if (!rc)
		rc = pause_between(run);
	run->stopped = client_stopped(run->client);
	run->lost_unmeasured = client_lost_unmeasured(run->client);
	return rc == -ECANCELED ? 0 : rc;
}

int run_measure(struct run *run)
{
	return plan_overlaps(run->plan) ? measure_overlap(run) : measure_trips(run);
}
