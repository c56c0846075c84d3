// SPDX-License-Identifier: GPL-2.0-only
/* layover irq tune: tries combinations of settings, measures each with the driver, names the best and its gain. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "cmd/irq.h"
#include "cmd/plan_settings.h"
#include "cmd/tracing.h"
#include "collect/probes.h"
#include "lab/lab.h"
#include "load/clock.h"
#include "load/run.h"
#include "view/irq_tune.h"

/* --- the command line ---------------------------------------------------------------------------- */

struct tune_options {
	struct load_plan plan;
	struct axes_wish wish;
	const char *target, *device;
	int by; /* enum trial_by */
	bool lab, exhaustive, apply_best, json, yes, despite_irqbalance;
};

#define AT(field) offsetof(struct tune_options, field)

static int parse_try(void *into, const char *what, const char *text)
{
	struct axes_wish *wish = &((struct tune_options *)into)->wish;

	if (wish->extra_count >= AXES_MAX)
		return err_set(-EINVAL, "%s: at most %d times", what, AXES_MAX);
	wish->extra[wish->extra_count++] = text;
	return 0;
}

static const struct setting tune_settings[] = {
	{"lab", 0, NULL, "make both ends here, in two network namespaces (needs root)",
	 SETTING_FLAG, AT(lab), 0, 0, NULL},
	{.doc = "What is tried:"},
	{"axes", 0, "LIST", "only these of irq, reader, rps, coalesce, busy-poll; default: all",
	 SETTING_TEXT, AT(wish.only), 0, 0, NULL},
	{"cpus", 0, "LIST", "interrupts, RPS and reader on these CPUs; default: the first four",
	 SETTING_TEXT, AT(wish.cpus), 0, 0, NULL},
	{"try", 0, "POLICY",
	 "also this one ('coalesce rx-usecs=30', 'napi threaded=1'); may be given again",
	 SETTING_OWN, 0, 0, 0, parse_try},
	{"device", 0, "DEVICE", "whose settings; default: the one by which the messages leave",
	 SETTING_TEXT, AT(device), 0, 0, NULL},
	{.doc = "How it is judged:"},
	{"p50", 0, NULL, "by the median (default)", SETTING_WORD, AT(by), TRIAL_P50, 0, NULL},
	{"p99", 0, NULL, "by the 99th percentile", SETTING_WORD, AT(by), TRIAL_P99, 0, NULL},
	{"exhaustive", 0, NULL, "give up no combination early", SETTING_FLAG, AT(exhaustive), 0, 0,
	 NULL},
	{.doc = "Afterwards:"},
	{"apply-best", 0, NULL, "apply what was best; else all is restored. 'irq undo' undoes it",
	 SETTING_FLAG, AT(apply_best), 0, 0, NULL},
	{"yes", 0, NULL, "also the device that carries this connection", SETTING_FLAG, AT(yes), 0,
	 0, NULL},
	{"despite-irqbalance", 0, NULL, "although irqbalance may move the interrupts again",
	 SETTING_FLAG, AT(despite_irqbalance), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char doc[] =
	"Tries where interrupts, RPS and the reader go, interrupt moderation and busy polling, in all combinations "
	"that the device offers, each measured in turn against TARGET, where 'layover serve' runs. Prints p50 and "
	"p99 of every combination, the best, its gain over now measured afresh, and in which stage it is gained. "
	"Restores everything.\v"
	"-t says how long it may take in all; default 60s. Old values are in a journal: after a kill 'layover irq "
	"undo' restores them.\n\n"
	"Examples:\n"
	"  layover irq tune 192.0.2.7\n"
	"  layover irq tune 192.0.2.7 --udp --axes irq,coalesce --p99 --apply-best\n"
	"  layover irq tune --lab -t 20\n";

enum { DEFAULT_S = 60, LEAST_S = 2, BLOCK_TRIPS = 4096, WARMUP_TRIPS = 64, WARMUP_MS = 20 };

static int check_options(struct tune_options *o)
{
	struct load_plan *plan = &o->plan;

	if (!o->lab == !o->target)
		return err_set(-EINVAL, o->lab ? "--lab makes its own server; leave out the TARGET"
					       : "name a TARGET where 'layover serve' runs, or "
						 "use --lab");
	if (o->lab && (o->device || o->apply_best || plan->token || plan->peer))
		return err_set(-EINVAL, "--lab goes without --device, --apply-best, --token-file "
					"and --peer: it is gone afterwards");
	if (plan_overlaps(plan) || !plan_traced_proto(plan))
		return err_set(-EINVAL,
			       "tune measures one TCP or UDP message at a time: leave out what "
			       "makes them overlap");
	if (plan->client_cpus.count || plan->iterations)
		return err_set(-EINVAL, "tune takes --client-cpu and -t, not --client-cpus and -i");
	if (plan->time_given && plan->duration_ns < LEAST_S * (uint64_t)NS_PER_S)
		return err_set(-EINVAL, "--time: at least %d s", LEAST_S);
	if (!plan->time_given)
		plan->duration_ns = DEFAULT_S * (uint64_t)NS_PER_S;
	if (o->lab)
		plan_pin_lab(plan);
	o->wish.reader = plan->client_cpu;
	o->wish.poll_us = (int)plan->busy_poll_us;
	plan->more = true; /* sessions follow each other */
	return plan_check(plan);
}

static void parse_options(struct tune_options *o, int argc, char **argv)
{
	const struct settings parts[] = {{tune_settings, o},
					 {plan_common_settings, &o->plan},
					 {plan_trip_settings, &o->plan},
					 {NULL, NULL}};

	plan_default(&o->plan);
	settings_parse(parts, "TARGET\n--lab", doc, &o->target, argc, argv);
	if (check_options(o))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
}

/* --- stopping ------------------------------------------------------------------------------------ */

static struct load_client *_Atomic running; /* for the signal handler */
static volatile sig_atomic_t stopped;

/* However often it comes: what was changed is restored before the end. */
static void on_stop(int signal)
{
	struct load_client *client = atomic_load(&running);

	(void)signal;
	stopped = 1;
	if (client)
		client_stop(client);
}

static void catch_stops(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_stop};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* --- one measurement ----------------------------------------------------------------------------- */

struct tuner {
	const struct tune_options *o;
	char target[LAB_TARGET_MAX > 256 ? LAB_TARGET_MAX : 256];
	struct lab lab;
	struct machine machine;
	struct axes axes;
	struct trial *trials;
	char **refused; /* by combination: why it is not measured */
	int *changes;   /* by combination: how many axes differ from now */
	struct journal journal;
	struct collect *collect; /* NULL: no stages */
	cpu_set_t home;          /* where this thread may run when nothing pins it */
	uint64_t begun_ns;
	struct tune_report report;
};

static int refuse(struct tuner *t, int combination, const char *why)
{
	t->trials[combination].out = true;
	t->refused[combination] = strdup(why);
	return t->refused[combination] ? 0 : err_set(-ENOMEM, "no memory for a refusal");
}

/* Sets the machine to a combination. 0; 1: it refuses, which is kept. -ENOMEM with a sentence. */
static int settle(struct tuner *t, int combination)
{
	for (int i = 0; i < t->axes.all.n; i++) {
		const struct setting_ref *ref = &t->axes.all.rows[i].ref;
		int rc = apply_value(ref, axes_wanted(&t->axes, combination, i));
		char name[KNOB_NAME], why[2 * KNOB_NAME];

		if (!rc)
			continue;
		knob_say(ref, name);
		snprintf(why, sizeof(why), "%s: %s", name,
			 rc < 0 ? knob_refusal(ref, rc) : "it reads as another value");
		rc = refuse(t, combination, why);
		return rc ? rc : 1;
	}
	return 0;
}

/* The driver's plan of a combination. */
static struct load_plan plan_of(const struct tuner *t, int combination, uint64_t ns)
{
	struct load_plan plan = t->o->plan;

	for (int a = 0; a < t->axes.n; a++) {
		const struct axis *axis = &t->axes.rows[a];
		int number = axis->values[axes_value(&t->axes, combination, a)].number;

		if (axis->kind == AXIS_READER)
			plan.client_cpu = number;
		else if (axis->kind == AXIS_POLL)
			plan.busy_poll_us = (uint64_t)number;
	}
	plan.duration_ns = ns;
	plan.iterations = BLOCK_TRIPS;
	plan.warmup_trips = WARMUP_TRIPS;
	plan.warmup_ns = WARMUP_MS * (uint64_t)NS_PER_MS;
	return plan;
}

/* Adds the stages around the percentile to stages unless that is NULL. What was measured is in run->samples also when it was stopped. */
static int measure(struct tuner *t, struct run *run, double *stages)
{
	struct tracing tracing = {.collect = t->collect};
	int rc = client_open(&run->client, run->plan, t->target, client_plain_socket, NULL);

	if (rc)
		return rc;
	atomic_store(&running, run->client);
	if (stopped)
		client_stop(run->client);
	if (stages) {
		tracing.join.hooks = collect_hooks(t->collect);
		rc = tracing_start(&tracing, run);
	}
	if (!rc)
		rc = run_measure(run);
	if (!rc && stages)
		rc = tracing_finish(&tracing);
	atomic_store(&running, NULL);
	client_close(run->client);
	if (!rc && stages && !stopped)
		rc = trial_stages(&tracing.join.trips, run->samples.rtt_ns, t->report.by, stages);
	if (stages)
		collect_detach(t->collect); /* also where it failed halfway */
	tracing.collect = NULL;             /* the next session's as well */
	tracing_close(&tracing);
	return rc;
}

/*
 * Settles and measures one combination. 0, also when it is refused or stopped; then there are no samples. -errno with
 * a sentence: nothing can be measured any more.
 */
static int measure_one(struct tuner *t, int combination, uint64_t ns, struct samples *out,
		       double *stages)
{
	const struct load_plan plan = plan_of(t, combination, ns);
	struct run run = {.plan = &plan};
	int rc = settle(t, combination);

	*out = (struct samples){0};
	if (rc)
		return rc < 0 ? rc : 0;
	sched_setaffinity(0, sizeof(t->home), &t->home); /* the last one's reader was pinned */
	rc = measure(t, &run, stages);
	*out = run.samples;
	if (stopped) {
		samples_free(out);
		err_clear();
		return 0;
	}
	if (rc && combination && !stages) {
		samples_free(out);
		rc = refuse(t, combination, err_text(rc));
		err_clear();
	}
	return rc;
}

/* --- rounds over all combinations ---------------------------------------------------------------- */

/* Shares of the time: the rounds, then the best against now, then both with hooks. */
enum { ROUNDS_PERCENT = 60, PAIRS_PERCENT = 85, ROUNDS_WANTED = 4, ROUNDS_MAX = 30 };
enum { BLOCK_MIN_MS = 30, BLOCK_MAX_MS = 300, SESSION_MS = 40 };
enum { PAIRS_MIN = 6, PAIRS_MAX = 40, TRACED_PAIRS = 4 };

static uint64_t deadline(const struct tuner *t, int percent)
{
	return t->begun_ns + t->o->plan.duration_ns / 100 * (uint64_t)percent;
}

static void say_progress(const struct tuner *t, const char *what, int left)
{
	double seconds = ((double)deadline(t, 100) - (double)clock_ns()) / NS_PER_S;

	view_tune_progress(what, left, t->axes.combinations, seconds > 0 ? seconds : 0);
}

static uint64_t block_ns(const struct tuner *t)
{
	uint64_t now = clock_ns(), end = deadline(t, ROUNDS_PERCENT),
		 all = end > now ? end - now : 0;
	uint64_t each = all / (uint64_t)(t->axes.combinations * ROUNDS_WANTED) / NS_PER_MS;

	if (each > BLOCK_MAX_MS + SESSION_MS)
		each = BLOCK_MAX_MS + SESSION_MS;
	if (each < BLOCK_MIN_MS + SESSION_MS)
		each = BLOCK_MIN_MS + SESSION_MS;
	return (each - SESSION_MS) * NS_PER_MS;
}

/* Forth, then back. The first round is made whole whatever the time; *whole: this one was. */
static int one_round(struct tuner *t, int round, uint64_t ns, bool *whole)
{
	int n = t->axes.combinations, rc = 0, left = 0;
	char what[32];

	for (int i = 0; i < n; i++)
		left += !t->trials[i].out;
	snprintf(what, sizeof(what), "round %d", round + 1);
	*whole = false;
	for (int i = 0; i < n && !rc; i++) {
		int c = round % 2 ? n - 1 - i : i;
		struct samples samples;

		if (t->trials[c].out)
			continue;
		if (stopped || clock_ns() > deadline(t, round ? ROUNDS_PERCENT : 100))
			return 0;
		say_progress(t, what, left);
		rc = measure_one(t, c, ns, &samples, NULL);
		if (!rc && samples.count)
			rc = trial_add(&t->trials[c], samples.rtt_ns, samples.count);
		else if (!rc && !t->trials[c].out && !stopped)
			rc = refuse(t, c, "no message came back in time");
		samples_free(&samples);
	}
	if (!rc && t->trials[0].out)
		rc = err_set(-ETIMEDOUT, "nothing can be measured as it is now: %s", t->refused[0]);
	*whole = !rc && !stopped;
	return rc;
}

static int all_rounds(struct tuner *t)
{
	uint64_t ns = block_ns(t);
	int left = t->axes.combinations, rc = 0;
	bool whole = true;

	for (int round = 0; !rc && whole && round < ROUNDS_MAX; round++) {
		if (round >= ROUNDS_WANTED && left <= 2)
			break;
		rc = one_round(t, round, ns, &whole);
		if (!whole)
			break;
		t->report.rounds++;
		if (!t->o->exhaustive)
			left = trials_prune(t->trials, t->axes.combinations, t->report.by);
	}
	if (rc || t->report.rounds || stopped)
		return rc;
	return err_set(-ETIME,
		       "%d combinations cannot be measured in that time, all is restored: name "
		       "fewer --axes or --cpus, or give it more with -t",
		       t->axes.combinations);
}

/* --- the best against now ------------------------------------------------------------------------ */

static int figures_of(struct tuner *t, int combination, uint64_t ns, double out[TRIAL_FIGURES])
{
	struct samples samples;
	int rc = measure_one(t, combination, ns, &samples, NULL);

	out[0] = 0;
	if (!rc && samples.count)
		overhead_block(samples.rtt_ns, samples.count, out);
	samples_free(&samples);
	return rc;
}

/* Neighbouring blocks, which of them comes first changes. Those that chose the best are not used again: it was chosen
 * because it looked good in them. */
static int compare(struct tuner *t)
{
	struct overhead_pair pairs[PAIRS_MAX];
	uint64_t ns = BLOCK_MAX_MS / 2 * (uint64_t)NS_PER_MS;
	size_t n = 0;
	int rc = 0;

	while (!rc && !stopped && n < PAIRS_MAX &&
	       clock_ns() < deadline(t, n < PAIRS_MIN ? 100 : PAIRS_PERCENT)) {
		struct overhead_pair *p = &pairs[n];

		say_progress(t, "the best against now", 2);
		for (size_t k = 0; k < 2 && !rc; k++)
			rc = (k + n) % 2 ? figures_of(t, 0, ns, p->on)
					 : figures_of(t, t->report.best, ns, p->off);
		if (rc || !p->on[0] || !p->off[0])
			break;
		n++;
	}
	overhead_of(pairs, n, &t->report.gain);
	return rc;
}

/* Less than this part of what it is now is nothing to advise anybody to change something for. */
static const double worth_it = 0.02;

static bool is_better(const struct tune_report *r)
{
	const struct overhead_figure *f = r->by == TRIAL_P99 ? &r->gain.p99 : &r->gain.p50;

	return r->gain.pairs >= 2 && f->low_ns > 0 && f->difference_ns > worth_it * f->on_ns;
}

/* --- where it is gained -------------------------------------------------------------------------- */

static int by_gain(const void *a, const void *b)
{
	const struct tune_stage *x = a, *y = b;
	double p = x->now_ns - x->best_ns, q = y->now_ns - y->best_ns;

	return (p < q) - (p > q);
}

static void fill_stages(struct tune_report *r, double sum[2][STAGES], int pairs)
{
	for (int s = 0; s < STAGES; s++)
		if (sum[0][s] > 0 || sum[1][s] > 0)
			r->stages[r->stage_count++] =
				(struct tune_stage){s, sum[0][s] / pairs, sum[1][s] / pairs};
	qsort(r->stages, (size_t)r->stage_count, sizeof(r->stages[0]), by_gain);
}

static int trace(struct tuner *t)
{
	const int which[2] = {0, t->report.best};
	uint64_t now = clock_ns(), end = deadline(t, 100);
	uint64_t ns = (end > now ? end - now : 0) / (2 * TRACED_PAIRS);
	double sum[2][STAGES] = {{0}};
	int pairs = 0, rc = 0;

	if (ns < BLOCK_MAX_MS * (uint64_t)NS_PER_MS)
		ns = BLOCK_MAX_MS * (uint64_t)NS_PER_MS;
	while (!rc && !stopped && pairs < TRACED_PAIRS && (!pairs || clock_ns() < end)) {
		say_progress(t, "stages", 2);
		for (int k = 0; k < 2 && !rc; k++) {
			struct samples samples;

			rc = measure_one(t, which[k], ns, &samples, sum[k]);
			samples_free(&samples);
		}
		pairs += !rc && !stopped;
	}
	if (rc == -ENODATA) {
		snprintf(t->report.no_stages, sizeof(t->report.no_stages), "%s", err_text(rc));
		err_clear();
		return 0;
	}
	if (!rc && pairs && !stopped)
		fill_stages(&t->report, sum, pairs);
	return rc;
}

static int measure_all(struct tuner *t)
{
	int rc = all_rounds(t);

	if (rc || !t->report.rounds)
		return rc;
	t->report.best = trials_best(t->trials, t->axes.combinations, t->report.by, t->changes);
	if (t->report.best && !stopped)
		rc = compare(t);
	t->report.matters = is_better(&t->report);
	if (!rc && t->report.matters && !stopped && t->collect)
		rc = trace(t);
	return rc;
}

/* --- around it ----------------------------------------------------------------------------------- */

/* Old values are on disk, and all settings count as begun, before the first is touched. */
static int begin_journal(struct tuner *t)
{
	struct plan *all = &t->axes.all;
	int rc = irq_guard(&t->machine, all, t->o->yes, t->o->despite_irqbalance);

	if (!rc)
		rc = journal_create(all, &t->journal);
	for (int i = 0; i < all->n && !rc; i++) {
		rc = journal_note(&t->journal, i, CHANGE_BEGUN, 0);
		journal_step();
	}
	return rc;
}

static int restore_all(struct tuner *t)
{
	struct restoration restored = {0};
	int rc;

	for (int i = 0; i < t->axes.all.n; i++)
		t->axes.all.rows[i].state = CHANGE_BEGUN;
	rc = irq_restore(&t->axes.all, &t->journal, &restored);
	restoration_free(&restored);
	journal_close(&t->journal);
	return rc;
}

/* As `irq apply` does it, with a journal of its own. */
static int apply_best(struct tuner *t)
{
	struct plan plan = {0};
	struct restoration restored = {0};
	int rc = axes_plan(&t->axes, t->report.best, &plan), failed = 0;

	if (!rc && plan.n)
		rc = journal_create(&plan, &t->journal);
	if (!rc && plan.n)
		failed = apply_make(&plan, &t->journal, false);
	if (!rc && failed) {
		rc = irq_restore(&plan, &t->journal, &restored);
		restoration_free(&restored);
		if (!rc)
			rc = err_set(-EIO, "the best was refused when it was applied again; all is "
					   "restored");
	} else if (!rc && plan.n) {
		rc = journal_complete(&t->journal);
		t->report.applied = !rc;
	}
	journal_close(&t->journal);
	plan_free(&plan);
	return rc;
}

/* The journal's lock is held from before the first change to after the last. */
static int tune_journalled(struct tuner *t)
{
	int lock = journal_lock(), rc, back;

	if (lock < 0)
		return lock;
	rc = begin_journal(t);
	if (!rc) {
		rc = measure_all(t);
		back = restore_all(t);
		rc = rc ? rc : back;
	} else if (t->journal.fd >= 0) { /* nothing was written */
		journal_remove(&t->journal);
		journal_close(&t->journal);
	}
	if (!rc && t->o->apply_best && t->report.matters && !stopped)
		rc = apply_best(t);
	close(lock);
	return rc;
}

/* Where the messages leave by: asked of a connection. */
static int find_device(struct tuner *t, char *name)
{
	const struct load_plan plan = plan_of(t, 0, NS_PER_MS);
	struct load_client *client;
	int rc;

	if (t->o->device) {
		snprintf(name, INTERFACE_NAME_MAX, "%s", t->o->device);
		return 0;
	}
	rc = client_open(&client, &plan, t->target, client_plain_socket, NULL);
	if (rc)
		return rc;
	client_interface(client, name);
	client_close(client);
	if (name[0] && strcmp(name, "lo") != 0)
		return 0;
	return err_set(-ENODEV,
		       "messages to %s do not leave by a device with queues; --device names one",
		       t->target);
}

static int make_trials(struct tuner *t)
{
	size_t n = (size_t)t->axes.combinations;

	t->trials = calloc(n, sizeof(*t->trials));
	t->refused = calloc(n, sizeof(*t->refused));
	t->changes = calloc(n, sizeof(*t->changes));
	if (!t->trials || !t->refused || !t->changes)
		return err_set(-ENOMEM, "no memory for %zu combinations", n);
	for (size_t i = 0; i < n; i++)
		t->changes[i] = axes_changes(&t->axes, (int)i);
	t->report.trials = t->trials;
	t->report.refused = t->refused;
	return 0;
}

/* Both before the lab's network namespace is entered, which hides the rest of /sys. */
static void open_hooks(struct tuner *t)
{
	const struct probe_wish wish = {
		.proto = plan_traced_proto(&t->o->plan),
		.hardware = !t->o->lab && probes_hardware(),
	};
	int rc = collect_open(&t->collect, &wish);

	if (!rc)
		return;
	snprintf(t->report.no_stages, sizeof(t->report.no_stages), "%s", err_text(rc));
	err_clear();
	collect_close(t->collect);
	t->collect = NULL;
}

static int enter_lab(struct tuner *t)
{
	int family = t->o->plan.family == PLAN_IPV6 ? AF_INET6 : AF_INET;
	int rc = lab_create(&t->lab);

	if (!rc)
		rc = lab_serve(&t->lab, family,
			       t->target); /* first: it must not inherit the hooks */
	if (!rc)
		open_hooks(t);
	return rc ? rc : lab_move_in(&t->lab, LAB_CLIENT);
}

static int print(struct tuner *t)
{
	struct tune_report *r = &t->report;
	struct dist *dists = calloc((size_t)t->axes.combinations, sizeof(*dists));
	int rc = dists ? 0 : err_set(-ENOMEM, "no memory for the report");

	for (int i = 0; i < t->axes.combinations && !rc; i++)
		rc = trial_dist(&t->trials[i], &dists[i]);
	r->dists = dists;
	if (!rc)
		rc = t->o->json ? view_tune_json(r) : view_tune_text(r);
	free(dists);
	return rc;
}

static int tune(struct tuner *t, char *device)
{
	const char *names[] = {device};
	int rc;

	snprintf(device, INTERFACE_NAME_MAX, "%s", LAB_INTERFACE);
	if (t->o->lab)
		rc = enter_lab(t);
	else {
		rc = find_device(t, device);
		if (!rc)
			open_hooks(t);
	}
	if (!rc)
		rc = machine_read(&t->machine, names, 1);
	if (!rc)
		rc = axes_make(&t->machine, &t->machine.devices[0], &t->o->wish, &t->axes);
	if (!rc)
		rc = make_trials(t);
	if (rc)
		return rc;
	t->report.driver = t->machine.devices[0].driver;
	/* A lab needs no journal: its devices end with it. */
	rc = t->o->lab ? measure_all(t) : tune_journalled(t);
	view_tune_progress_done();
	t->report.took_ns = clock_ns() - t->begun_ns;
	t->report.stopped = stopped;
	return rc ? rc : print(t);
}

static void close_all(struct tuner *t)
{
	for (int i = 0; t->trials && i < t->axes.combinations; i++)
		trial_free(&t->trials[i]);
	for (int i = 0; t->refused && i < t->axes.combinations; i++)
		free(t->refused[i]);
	free(t->trials);
	free(t->refused);
	free(t->changes);
	collect_close(t->collect);
	axes_free(&t->axes);
	machine_free(&t->machine);
	lab_destroy(&t->lab);
}

int irq_tune(int argc, char **argv)
{
	struct tune_options o = {0};
	char device[INTERFACE_NAME_MAX];
	struct tuner t = {.o = &o, .lab = LAB_NONE, .journal.fd = -1, .begun_ns = clock_ns()};
	int rc;

	parse_options(&o, argc, argv);
	snprintf(t.target, sizeof(t.target), "%s", o.target ? o.target : "");
	t.report.by = (enum trial_by)o.by;
	t.report.axes = &t.axes;
	t.report.plan = &o.plan;
	t.report.device = device;
	t.report.target = o.lab ? "the lab" : o.target;
	sched_getaffinity(0, sizeof(t.home), &t.home);
	catch_stops();
	rc = tune(&t, device);
	close_all(&t);
	return rc ? irq_give_up(rc) : EXIT_OK;
}
