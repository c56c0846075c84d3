// SPDX-License-Identifier: GPL-2.0-only
#include "tune/axes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/cpulist.h"
#include "base/cpus.h"
#include "base/error.h"

enum { POLL_US = 50, MODERATE_US = 20 };

struct maker {
	const struct machine *machine;
	const struct device *device;
	const struct axes_wish *wish;
	cpu_set_t cpus;
	struct axes *out;
};

/* --- axes and values ----------------------------------------------------------------------------- */

static struct axis *find_axis(struct axes *axes, const char *name)
{
	for (int i = 0; i < axes->n; i++)
		if (!strcmp(axes->rows[i].name, name))
			return &axes->rows[i];
	return NULL;
}

static bool is_wished(const struct axes_wish *wish, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = wish->only; at && *at; at += strcspn(at, ",")) {
		at += *at == ',';
		if (strcspn(at, ",") == size && !strncmp(at, name, size))
			return true;
	}
	return !wish->only;
}

static struct axis_value *add_value(struct axis *axis, const char *label, int number)
{
	struct axis_value *value = &axis->values[axis->n];

	if (axis->n >= AXIS_VALUES_MAX) {
		err_set(-E2BIG, "%s: more than %d values", axis->name, AXIS_VALUES_MAX);
		return NULL;
	}
	*value = (struct axis_value){.number = number};
	snprintf(value->label, sizeof(value->label), "%s", label);
	axis->n++;
	return value;
}

/* With its first value: as it is now. NULL with a sentence. Each kind is one axis at the most, so there is room. */
static struct axis *add_axis(struct maker *m, const char *name, enum axis_kind kind,
			     const char *now, int number)
{
	struct axis *axis = &m->out->rows[m->out->n];

	*axis = (struct axis){name, kind, calloc(AXIS_VALUES_MAX, sizeof(*axis->values)), 0};
	if (!axis->values) {
		err_set(-ENOMEM, "no memory for what to try");
		return NULL;
	}
	m->out->n++;
	add_value(axis, now, number);
	return axis;
}

/*
 * A policy's words as a value, unless it changes nothing. cpus: for `spread`, to these CPUs. A policy that the device
 * refuses to plan is not offered: that is no error where nobody asked for it.
 */
static int add_policy(struct maker *m, struct axis *axis, const char *label, const char *command,
		      const char *cpus)
{
	struct policy_options options = {.step = 1, .cpus = cpus};
	const char *words[AXIS_WORDS_MAX];
	char copy[AXIS_LABEL], *save = NULL;
	struct plan plan = {0};
	struct axis_value *value;
	int count = 0, rc;

	snprintf(copy, sizeof(copy), "%s", command);
	for (char *word = strtok_r(copy, " ", &save); word && count < AXIS_WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	rc = policies_plan(m->machine, m->device, words, count, &options, &plan);
	if (rc || !plan.n) {
		plan_free(&plan);
		return rc;
	}
	value = add_value(axis, label, 0);
	if (!value) {
		plan_free(&plan);
		return -E2BIG;
	}
	value->plan = plan;
	snprintf(value->command, sizeof(value->command), cpus ? "%s --cpus %s" : "%s", command,
		 cpus);
	return 0;
}

/* --- what there is to choose --------------------------------------------------------------------- */

static void say_irqs_now(const struct device *d, char *text, size_t size)
{
	const char *first = NULL;

	for (int i = 0; i < d->irq_count; i++) {
		const struct device_irq *irq = &d->irqs[i];

		if (!irq->serves)
			continue;
		if (first && strcmp(first, irq->affinity) != 0) {
			snprintf(text, size, "irq as is");
			return;
		}
		first = irq->affinity;
	}
	snprintf(text, size, "irq %.20s", first ? first : "as is");
}

static int offer_irq(struct maker *m, const char *name)
{
	char label[AXIS_LABEL], cpu[16];
	struct axis *axis;
	int at;

	say_irqs_now(m->device, label, sizeof(label));
	axis = add_axis(m, name, AXIS_SETTING, label, 0);
	for (int i = 0; axis && (at = cpulist_nth(&m->cpus, i)) >= 0; i++) {
		snprintf(cpu, sizeof(cpu), "%d", at);
		snprintf(label, sizeof(label), "irq %s", cpu);
		if (add_policy(m, axis, label, "spread", cpu))
			break; /* no interrupts of its own */
	}
	if (axis)
		err_clear();
	return axis ? 0 : -ENOMEM;
}

static void say_reader(int cpu, char *text, size_t size)
{
	snprintf(text, size, cpu < 0 ? "reader any" : "reader %d", cpu);
}

static int offer_reader(struct maker *m, const char *name)
{
	char label[AXIS_LABEL];
	struct axis *axis;
	int rc, at;

	say_reader(m->wish->reader, label, sizeof(label));
	axis = add_axis(m, name, AXIS_READER, label, m->wish->reader);
	rc = axis ? 0 : -ENOMEM;
	for (int i = 0; !rc && (at = cpulist_nth(&m->cpus, i)) >= 0; i++) {
		say_reader(at, label, sizeof(label));
		if (at != m->wish->reader && !add_value(axis, label, at))
			rc = -E2BIG;
	}
	return rc;
}

static void say_rps_now(const struct device *d, char *text, size_t size)
{
	const char *first = NULL;
	char list[CPULIST_TEXT];
	cpu_set_t set;

	for (int i = 0; i < d->queue_count; i++) {
		const char *mask = d->queues[i].tx ? NULL : d->queues[i].rps_cpus;

		if (!mask || cpumask_parse(mask, &set))
			continue;
		if (first && strcmp(first, mask) != 0) {
			snprintf(text, size, "rps as is");
			return;
		}
		first = mask;
	}
	if (!first || cpumask_parse(first, &set))
		CPU_ZERO(&set);
	cpulist_format(&set, list, sizeof(list));
	snprintf(text, size, "rps %.20s", *list ? list : "off");
}

static int offer_rps(struct maker *m, const char *name)
{
	char label[AXIS_LABEL];
	struct axis *axis;
	int at;

	say_rps_now(m->device, label, sizeof(label));
	axis = add_axis(m, name, AXIS_SETTING, label, 0);
	if (!axis)
		return -ENOMEM;
	if (add_policy(m, axis, "rps off", "rps off", NULL))
		return 0;
	for (int i = 0; (at = cpulist_nth(&m->cpus, i)) >= 0; i++) {
		snprintf(label, sizeof(label), "rps %d", at);
		if (add_policy(m, axis, label, label, NULL))
			break;
	}
	return 0;
}

/* Moderation can only be in the way of one message at a time; so what is tried is less of it. */
static int offer_coalesce(struct maker *m, const char *name)
{
	const struct ethtool_coalesce *now = &m->device->coalesce;
	char label[AXIS_LABEL];
	struct axis *axis;
	int rc;

	if (m->device->coalesce_rc)
		return 0;
	snprintf(label, sizeof(label), "rx-usecs=%u%s", now->rx_coalesce_usecs,
		 now->use_adaptive_rx_coalesce ? ",adaptive" : "");
	axis = add_axis(m, name, AXIS_SETTING, label, 0);
	rc = axis ? 0 : -ENOMEM;
	if (!rc && now->use_adaptive_rx_coalesce)
		rc = add_policy(m, axis, "rx-usecs=0", "coalesce adaptive-rx=0,rx-usecs=0", NULL);
	else if (!rc && now->rx_coalesce_usecs)
		rc = add_policy(m, axis, "rx-usecs=0", "coalesce rx-usecs=0", NULL);
	if (!rc && !now->use_adaptive_rx_coalesce && now->rx_coalesce_usecs > MODERATE_US)
		rc = add_policy(m, axis, "rx-usecs=20", "coalesce rx-usecs=20", NULL);
	return rc;
}

static int offer_poll(struct maker *m, const char *name)
{
	struct axis *axis;
	char label[AXIS_LABEL];

	snprintf(label, sizeof(label), "poll %d", m->wish->poll_us);
	axis = add_axis(m, name, AXIS_POLL, label, m->wish->poll_us);
	if (!axis)
		return -ENOMEM;
	if (m->wish->poll_us)
		add_value(axis, "poll 0", 0);
	else
		add_value(axis, "poll 50", POLL_US);
	return 0;
}

static const struct {
	const char *name;
	int (*offer)(struct maker *m, const char *name);
	const char *policies; /* those whose --try goes here, each with a comma after it */
} kinds[] = {
	{"irq", offer_irq, "spread,near-reader,isolate,"},
	{"reader", offer_reader, ""},
	{"rps", offer_rps, "rps,"},
	{"coalesce", offer_coalesce, "coalesce,"},
	{"busy-poll", offer_poll, ""},
	{"napi", NULL, "napi,"},
	{"xps", NULL, "xps,"},
	{"rss", NULL, "rss,"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) <= AXES_MAX, "each kind has its place");

/* --- the user's own ------------------------------------------------------------------------------ */

static int check_only(const char *only)
{
	const char *names[KINDS + 1] = {0}, *near;
	char *copy = only ? strdup(only) : NULL, *save = NULL;
	int rc = 0;

	for (int i = 0; i < KINDS; i++)
		names[i] = kinds[i].name;
	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word && !rc;
	     word = strtok_r(NULL, ",", &save)) {
		bool known = false;

		for (int i = 0; i < KINDS; i++)
			known |= !strcmp(word, kinds[i].name);
		near = known ? NULL : args_nearest(word, names);
		if (!known)
			rc = err_set(-EINVAL,
				     "--axes: there is no '%s'%s%s; irq, reader, rps, coalesce, "
				     "busy-poll are tried, napi, xps, rss with --try",
				     word, near ? "; the nearest is " : "", near ? near : "");
	}
	free(copy);
	return rc;
}

static const char *kind_of(const char *policy)
{
	size_t size = strcspn(policy, " ");

	for (int i = 0; i < KINDS; i++)
		for (const char *at = kinds[i].policies; *at; at += strcspn(at, ",") + 1)
			if (strcspn(at, ",") == size && !strncmp(at, policy, size))
				return kinds[i].name;
	return NULL;
}

static int add_extra(struct maker *m, const char *policy)
{
	const char *name = kind_of(policy);
	struct axis *axis = name ? find_axis(m->out, name) : NULL;
	char label[AXIS_LABEL];

	if (!name)
		return err_set(-EINVAL,
			       "--try: '%s' is none of the policies that can be tried: spread, "
			       "near-reader, isolate, rps, coalesce, napi, xps, rss",
			       policy);
	if (strlen(policy) >= AXIS_LABEL)
		return err_set(-EINVAL, "--try: '%s' is too long", policy);
	if (!axis) {
		snprintf(label, sizeof(label), "%s as is", name);
		axis = add_axis(m, name, AXIS_SETTING, label, 0);
	}
	return axis ? add_policy(m, axis, policy, policy, NULL) : -ENOMEM;
}

/* --- all together -------------------------------------------------------------------------------- */

static int choose_cpus(struct maker *m)
{
	cpu_set_t usable = m->machine->online;
	int rc = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (!cpus_allowed(cpu))
			CPU_CLR(cpu, &usable);
	CPU_ZERO(&m->cpus);
	if (m->wish->cpus) {
		rc = cpulist_parse("--cpus", m->wish->cpus, &m->cpus);
		if (!rc && !CPU_COUNT(&m->cpus))
			rc = err_set(-EINVAL, "--cpus: no CPU is named");
		for (int cpu = 0; cpu < CPU_SETSIZE && !rc; cpu++)
			if (CPU_ISSET(cpu, &m->cpus) && !CPU_ISSET(cpu, &usable))
				rc = err_set(-EINVAL, "--cpus: CPU %d cannot be used here", cpu);
		return rc;
	}
	cpulist_subtract(&usable, &m->machine->isolated);
	for (int i = 0; i < AXES_CPUS && cpulist_nth(&usable, i) >= 0; i++)
		CPU_SET(cpulist_nth(&usable, i), &m->cpus);
	return 0;
}

/* Axes without a choice go. */
static void drop_single(struct axes *axes)
{
	int kept = 0;

	for (int i = 0; i < axes->n; i++) {
		if (axes->rows[i].n < 2)
			free(axes->rows[i].values);
		else
			axes->rows[kept++] = axes->rows[i];
	}
	axes->n = kept;
}

static int count_all(struct axes *axes)
{
	int rc = 0;

	axes->combinations = 1;
	for (int a = 0; a < axes->n && !rc; a++) {
		axes->combinations *= axes->rows[a].n;
		if (axes->combinations > COMBINATIONS_MAX)
			return err_set(-EINVAL,
				       "more than %d combinations: name fewer --cpus or --axes",
				       COMBINATIONS_MAX);
		for (int v = 0; v < axes->rows[a].n && !rc; v++)
			rc = plan_merge(&axes->all, &axes->rows[a].values[v].plan);
	}
	return rc;
}

int axes_make(const struct machine *machine, const struct device *device,
	      const struct axes_wish *wish, struct axes *out)
{
	struct maker m = {.machine = machine, .device = device, .wish = wish, .out = out};
	int rc;

	*out = (struct axes){0};
	rc = check_only(wish->only);
	if (!rc)
		rc = choose_cpus(&m);
	for (int i = 0; i < KINDS && !rc; i++)
		if (kinds[i].offer && is_wished(wish, kinds[i].name))
			rc = kinds[i].offer(&m, kinds[i].name);
	for (int i = 0; i < wish->extra_count && !rc; i++)
		rc = add_extra(&m, wish->extra[i]);
	drop_single(out);
	if (!rc)
		rc = count_all(out);
	if (!rc && out->combinations < 2)
		rc = err_set(-EOPNOTSUPP, "%s: there is nothing to choose here", device->name);
	return rc;
}

void axes_free(struct axes *axes)
{
	for (int a = 0; a < axes->n; a++) {
		for (int v = 0; v < axes->rows[a].n; v++)
			plan_free(&axes->rows[a].values[v].plan);
		free(axes->rows[a].values);
	}
	plan_free(&axes->all);
	*axes = (struct axes){0};
}

/* --- combinations -------------------------------------------------------------------------------- */

/* The last axis changes quickest. */
int axes_value(const struct axes *axes, int combination, int axis)
{
	for (int a = axes->n - 1; a > axis; a--)
		combination /= axes->rows[a].n;
	return combination % axes->rows[axis].n;
}

int axes_changes(const struct axes *axes, int combination)
{
	int changes = 0;

	for (int a = 0; a < axes->n; a++)
		changes += axes_value(axes, combination, a) != 0;
	return changes;
}

void axes_say(const struct axes *axes, int combination, int without, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int a = 0; a < axes->n && used < size; a++)
		if (a != without)
			used += (size_t)snprintf(
				text + used, size - used, "%s%s", used ? ", " : "",
				axes->rows[a].values[axes_value(axes, combination, a)].label);
}

const char *axes_wanted(const struct axes *axes, int combination, int setting)
{
	const struct change *c = &axes->all.rows[setting];
	const char *wanted = c->old;

	for (int a = 0; a < axes->n; a++) {
		const struct plan *plan =
			&axes->rows[a].values[axes_value(axes, combination, a)].plan;

		for (int i = 0; i < plan->n; i++)
			if (plan->rows[i].new &&setting_same(&plan->rows[i].ref, &c->ref))
				wanted = plan->rows[i].new;
	}
	return wanted;
}

int axes_plan(const struct axes *axes, int combination, struct plan *out)
{
	int rc = 0;

	for (int a = axes->n - 1; a >= 0 && !rc; a--)
		rc = plan_merge(out, &axes->rows[a].values[axes_value(axes, combination, a)].plan);
	return rc;
}
