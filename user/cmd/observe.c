// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/observe.h"

#include "base/error.h"
#include "load/clock.h"
#include "view/view.h"

/* An interval from a moment's trips is luck; so long a run at least. */
enum { UNTIL_CI_MIN_MS = 500 };

static void end_block(struct observer *o)
{
	struct os_counts now;

	if (!o->block_runs)
		return;
	os_read(o->calls, &now);
	now.trips = client_trips(o->run->client);
	os_add(&o->cost, &o->before, &now);
}

static void begin_block(struct observer *o)
{
	if (!o->begun_ns)
		o->begun_ns = o->line_ns = clock_ns();
	os_read(o->calls, &o->before);
	o->before.trips = client_trips(o->run->client);
	o->block_runs = true;
}

static void take(struct observer *o, const struct samples *s, size_t i)
{
	int64_t value = report_value(s->rtt_ns[i], o->outputs->half);

	batches_add(&o->batches, value);
	if (o->bins.counts)
		bins_add(&o->bins, value);
	if (o->service.counts)
		bins_add(&o->service, report_value(s->service_ns[i], o->outputs->half));
	if (o->recent.counts)
		bins_add(&o->recent, value);
}

static void take_samples(struct observer *o)
{
	for (; o->taken < o->run->samples.count; o->taken++)
		take(o, &o->run->samples, o->taken);
}

/* Their place is used again. */
static void forget_samples(struct observer *o)
{
	o->run->samples.count = 0;
	o->taken = 0;
}

static void print_line(struct observer *o)
{
	uint64_t now = clock_ns(), lost = o->run->samples.lost;
	struct interim line = {
		.since_begin_ns = now - o->begun_ns,
		.length_ns = now - o->line_ns,
		.lost = lost - o->line_lost,
		.half = o->outputs->half,
	};

	if (!o->recent.counts || line.length_ns < o->outputs->interval_ns)
		return;
	dist_of_bins(&o->recent, &line.rtt);
	view_interim(o->outputs->format->shows_interim ? stdout : stderr, &line);
	bins_clear(&o->recent);
	o->line_ns = now;
	o->line_lost = lost;
}

static void stop_if_known(struct observer *o)
{
	struct mean_interval mean = batches_interval(&o->batches);

	if (!o->outputs->until_ci || !mean.known ||
	    clock_ns() - o->begun_ns < UNTIL_CI_MIN_MS * (uint64_t)NS_PER_MS)
		return;
	if (mean.half_ns * 100 > o->outputs->until_ci * mean.mean_ns)
		return;
	o->ci_reached = true;
	client_stop(o->run->client);
}

static int between(void *arg)
{
	struct observer *o = arg;
	int rc;

	end_block(o);
	take_samples(o);
	rc = o->between ? o->between(o->arg) : 0;
	if (o->bins.counts)
		forget_samples(o);
	if (o->block_runs) {
		print_line(o);
		stop_if_known(o);
	}
	begin_block(o);
	return rc;
}

/* Called while messages overlap, by a thread of its own. */
static void look(void *arg, const struct samples *fresh)
{
	struct observer *o = arg;

	if (!o->batches.all_count && fresh->count)
		o->begun_ns = o->line_ns = fresh->start_ns[0]; /* the warm-up is over */
	for (size_t i = 0; i < fresh->count; i++)
		take(o, fresh, i);
	print_line(o);
	stop_if_known(o);
}

int observe_open(struct observer *o, const struct load_plan *plan)
{
	const struct outputs *outputs = o->outputs;
	int rc = 0;

	if (outputs->histogram_only)
		rc = bins_open(&o->bins);
	if (!rc && outputs->histogram_only && plan_open_loop(plan))
		rc = bins_open(&o->service);
	if (!rc && outputs->interval_ns)
		rc = bins_open(&o->recent);
	if (!rc && outputs->count_syscalls && calls_open(&o->calls)) {
		say_note("%s", err_text(0));
		err_clear();
	}
	return rc;
}

/*
 * A run whose messages overlap has no pauses in which to count: its costs are those of all of it, warm-up
 * included.
 */
void observe_finish(struct observer *o)
{
	if (!plan_overlaps(o->run->plan))
		return;
	end_block(o);
	if (!o->run->look.call)
		take_samples(o);
}

void observe_start(struct observer *o, struct run *run)
{
	o->run = run;
	o->between = run->between;
	o->arg = run->arg;
	run->between = between;
	run->arg = o;
	if (!plan_overlaps(run->plan))
		return;
	if (o->outputs->interval_ns || o->outputs->until_ci || o->outputs->histogram_only) {
		run->look.call = look;
		run->look.arg = o;
		run->look.forget = o->outputs->histogram_only;
	}
	begin_block(o);
}

void observe_close(struct observer *o)
{
	calls_close(o->calls);
	bins_free(&o->bins);
	bins_free(&o->service);
	bins_free(&o->recent);
}
