// SPDX-License-Identifier: GPL-2.0-only
#include "tune/policies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/cpulist.h"
#include "base/error.h"
#include "tune/rss.h"
#include "tune/tree.h"

enum { WHY = 256 };

struct planner {
	const struct machine *machine;
	const struct device *device;
	const struct policy_options *options;
	struct plan *plan;
	cpu_set_t queues; /* those of --queue; all when it is not given */
};

/* --- CPUs ---------------------------------------------------------------------------------------- */

/* A list that people gave: all of it must be online, because the kernel silently drops the rest. */
static int online_cpus(const struct planner *p, const char *what, const char *text, cpu_set_t *set)
{
	char list[CPULIST_TEXT];
	cpu_set_t offline;
	int rc = cpulist_parse(what, text, set);

	if (rc)
		return rc;
	offline = *set;
	cpulist_subtract(&offline, &p->machine->online);
	cpulist_format(&offline, list, sizeof(list));
	if (CPU_COUNT(&offline))
		return err_set(-EINVAL, "%s: CPU %.100s is not online", what, list);
	return CPU_COUNT(set) ? 0 : err_set(-EINVAL, "%s: no CPU is named", what);
}

static int keep_local(const struct planner *p, cpu_set_t *set)
{
	char text[TREE_TEXT];
	cpu_set_t node;
	int rc;

	if (p->device->node <
	    0) /* a machine of one node, or a device that is equally far from all */
		return 0;
	if (tree_read(text, "/sys/devices/system/node/node%d/cpulist", p->device->node))
		return err_set(-ENOENT, "cannot tell the CPUs of NUMA node %d", p->device->node);
	rc = cpulist_parse("NUMA node", text, &node);
	CPU_AND(set, set, &node);
	return rc;
}

/* Where interrupts may be spread to. */
static int spread_cpus(const struct planner *p, cpu_set_t *set)
{
	int rc = 0;

	*set = p->machine->online;
	if (p->options->cpus)
		rc = online_cpus(p, "--cpus", p->options->cpus, set);
	else {
		cpulist_subtract(set, &p->machine->isolated);
		cpulist_subtract(set, &p->machine->nohz_full);
	}
	if (!rc && p->options->local)
		rc = keep_local(p, set);
	if (!rc && !CPU_COUNT(set))
		rc = err_set(-EINVAL, "no CPU is left to spread the interrupts of %s over",
			     p->device->name);
	return rc;
}

/* The CPUs in steps, then those left out: with a step of 2 over 0-3: 0, 2, 1, 3. */
static int stepped(const cpu_set_t *set, int step, int n)
{
	int count = CPU_COUNT(set), at = 0;

	n %= count;
	for (int first = 0; first < step; first++)
		for (int i = first; i < count; i += step)
			if (at++ == n)
				return cpulist_nth(set, i);
	return cpulist_nth(set, 0);
}

/* --- interrupts ---------------------------------------------------------------------------------- */

/* The queue whose interrupt it is: the first one, if there are several. -1: none. */
static int queue_of(const struct device *d, const struct device_irq *irq)
{
	for (int i = 0; i < d->queue_count; i++)
		if (d->queues[i].irq == irq->irq)
			return (int)d->queues[i].index;
	return irq->serves ? irq->queue : -1;
}

static bool is_wanted(const struct planner *p, int queue)
{
	return queue >= 0 && queue < CPU_SETSIZE && CPU_ISSET(queue, &p->queues);
}

static int move_irq(struct planner *p, const struct device_irq *irq, const cpu_set_t *to,
		    const char *why)
{
	char list[CPULIST_TEXT];
	cpu_set_t online;

	CPU_AND(&online, to, &p->machine->online);
	if (!CPU_COUNT(&online))
		return err_set(-EINVAL, "%s would be left without an online CPU", irq->name);
	cpulist_format(to, list, sizeof(list));
	return plan_add(p->plan, "irq", p->device->name, irq->name, list, why);
}

static int no_queue_irqs(const struct planner *p)
{
	return err_set(-EINVAL, "%s has no interrupts of %s; its packets can be spread with 'rps'",
		       p->device->name, p->options->queues ? "these queues" : "its own queues");
}

static int plan_spread(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	cpu_set_t cpus, one;
	int moved = 0, rc = spread_cpus(p, &cpus);
	char why[WHY];

	(void)argument;
	for (int i = 0; i < d->irq_count && !rc; i++) {
		int queue = queue_of(d, &d->irqs[i]);

		if (!is_wanted(p, queue))
			continue;
		moved++;
		CPU_ZERO(&one);
		CPU_SET(stepped(&cpus, (int)p->options->step, queue), &one);
		snprintf(why, sizeof(why), "queue %d of %d, spread over %d CPUs", queue,
			 device_queues(d, d->irqs[i].serves == IRQ_TX), CPU_COUNT(&cpus));
		rc = move_irq(p, &d->irqs[i], &one, why);
	}
	return rc || moved ? rc : no_queue_irqs(p);
}

static int sibling_of(int cpu)
{
	char text[TREE_TEXT];
	cpu_set_t set;

	if (tree_read(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu) ||
	    cpulist_parse("siblings", text, &set))
		CPU_ZERO(&set);
	CPU_CLR(cpu, &set);
	return CPU_COUNT(&set)
		       ? cpulist_nth(&set, 0)
		       : err_set(-EINVAL, "--sibling: CPU %d has no hyperthread sibling", cpu);
}

/* RPS would hand the packets on. */
static int keep_rps_off(struct planner *p, int cpu)
{
	const struct device *d = p->device;
	char mask[CPULIST_TEXT];
	cpu_set_t one;
	int rc = 0;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cpumask_format(&one, mask, sizeof(mask));
	for (int i = 0; i < d->queue_count && !rc; i++) {
		const struct device_queue *q = &d->queues[i];
		char key[16];
		cpu_set_t now;

		if (q->tx || !q->rps_cpus || cpumask_parse(q->rps_cpus, &now) || !CPU_COUNT(&now) ||
		    CPU_EQUAL(&now, &one) || !is_wanted(p, (int)q->index))
			continue;
		snprintf(key, sizeof(key), "%u", q->index);
		rc = plan_add(p->plan, "rps_cpus", d->name, key, "0",
			      "RPS would hand the packets on to another CPU");
	}
	return rc;
}

static int plan_near_reader(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	int moved = 0, cpu, rc;
	char why[WHY];
	cpu_set_t one;

	rc = online_cpus(p, "near-reader", argument, &one);
	if (!rc && CPU_COUNT(&one) != 1)
		rc = err_set(-EINVAL, "near-reader: '%s' is not one CPU", argument);
	if (rc)
		return rc;
	snprintf(why, sizeof(why), "the reader runs on CPU %s%s", argument,
		 p->options->sibling ? ", its sibling shares the caches" : "");
	cpu = cpulist_nth(&one, 0);
	if (p->options->sibling)
		cpu = sibling_of(cpu);
	if (cpu < 0)
		return cpu;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	for (int i = 0; i < d->irq_count && !rc; i++) {
		if (!is_wanted(p, queue_of(d, &d->irqs[i])))
			continue;
		moved++;
		rc = move_irq(p, &d->irqs[i], &one, why);
	}
	if (!rc && !moved)
		return no_queue_irqs(p);
	return rc ? rc : keep_rps_off(p, cpu);
}

/* Packets that RPS hands to these CPUs wake them as interrupts do. */
static int isolate_from_rps(struct planner *p, const cpu_set_t *from)
{
	const struct device *d = p->device;
	int rc = 0;

	for (int i = 0; i < d->queue_count && !rc; i++) {
		const struct device_queue *q = &d->queues[i];
		char key[16], mask[CPULIST_TEXT];
		cpu_set_t set;

		if (q->tx || !q->rps_cpus || cpumask_parse(q->rps_cpus, &set))
			continue;
		cpulist_subtract(&set, from);
		cpumask_format(&set, mask, sizeof(mask));
		snprintf(key, sizeof(key), "%u", q->index);
		rc = plan_add(p->plan, "rps_cpus", d->name, key, mask,
			      "these CPUs shall get no packets");
	}
	return rc;
}

static int plan_isolate(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	cpu_set_t from, rest = p->machine->online, now;
	int rc = cpulist_parse("isolate", argument, &from);
	char why[WHY];

	if (rc)
		return rc;
	cpulist_subtract(&rest, &from);
	if (!CPU_COUNT(&rest))
		return err_set(-EINVAL, "isolate %s: no online CPU would be left for interrupts",
			       argument);
	snprintf(why, sizeof(why), "off CPUs %.200s", argument);
	for (int i = 0; i < d->irq_count && !rc; i++) {
		rc = cpulist_parse(d->irqs[i].name, d->irqs[i].affinity, &now);
		cpulist_subtract(&now, &from);
		CPU_AND(&now, &now, &p->machine->online);
		if (!rc && d->irqs[i].affinity[0])
			rc = move_irq(p, &d->irqs[i], CPU_COUNT(&now) ? &now : &rest, why);
	}
	return rc ? rc : isolate_from_rps(p, &from);
}

/* --- channels and RSS ---------------------------------------------------------------------------- */

static int set_table(struct planner *p, const uint32_t *table, const char *why)
{
	char *text = malloc(KNOB_TEXT);
	int rc;

	if (!text)
		return err_set(-ENOMEM, "no memory for an RSS table");
	rss_table_format(table, p->device->rss.size, text, KNOB_TEXT);
	rc = plan_add(p->plan, "rss", p->device->name, "", text, why);
	free(text);
	return rc;
}

static int check_rss(const struct planner *p)
{
	const struct device *d = p->device;

	if (d->rss_rc || !d->rss.rings)
		return err_set(-EOPNOTSUPP, "%s has no RSS table that can be set", d->name);
	return 0;
}

static int plan_equal(struct planner *p, uint32_t queues, const char *why)
{
	uint32_t *table = calloc(ETHTOOL_RSS_MAX, sizeof(*table));
	int rc;

	if (!table)
		return err_set(-ENOMEM, "no memory for an RSS table");
	rss_equal(table, p->device->rss.size, queues);
	rc = set_table(p, table, why);
	free(table);
	return rc;
}

static int plan_rss_equal(struct planner *p, const char *argument)
{
	int rc = check_rss(p);

	(void)argument;
	return rc ? rc : plan_equal(p, p->device->rss.rings, "all queues get the same share");
}

static int plan_rss_queues(struct planner *p, const char *argument)
{
	uint64_t queues;
	char why[WHY];
	int rc = check_rss(p);

	if (!rc)
		rc = parse_count("rss queues", argument, 1, p->device->rss.rings, &queues);
	if (rc)
		return rc;
	snprintf(why, sizeof(why), "only the first %s queues get flows", argument);
	return plan_equal(p, (uint32_t)queues, why);
}

static int parse_weights(const struct planner *p, const char *text, uint32_t *weights)
{
	int n = rss_table_parse(text, weights, p->device->rss.rings);
	uint64_t total = 0;

	for (int i = 0; i < n; i++)
		total += weights[i];
	if (n > 0 && total)
		return n;
	return err_set(-EINVAL,
		       "rss weights: '%s' is not a list of up to %u numbers, not all of them 0",
		       text, p->device->rss.rings);
}

static int plan_rss_weights(struct planner *p, const char *argument)
{
	uint32_t *table = calloc(2 * ETHTOOL_RSS_MAX, sizeof(*table)), *weights;
	char why[WHY];
	int n = check_rss(p);

	if (!table)
		return err_set(-ENOMEM, "no memory for an RSS table");
	weights = table + ETHTOOL_RSS_MAX;
	if (!n)
		n = parse_weights(p, argument, weights);
	if (n > 0) {
		rss_weighted(table, p->device->rss.size, weights, (uint32_t)n);
		snprintf(why, sizeof(why), "shares of the queues as %.200s", argument);
		n = set_table(p, table, why);
	}
	free(table);
	return n;
}

/* What drivers set anew when their channels change (virtio: affinity and XPS, igb: all of it). */
static int keep_disturbed(struct planner *p)
{
	static const char why[] = "the driver sets it anew with the channels";
	const struct device *d = p->device;
	char names[256] = "";
	int rc = plan_add(p->plan, "rss", d->name, "", NULL, why);

	for (int i = 0; i < d->irq_count && !rc; i++)
		rc = plan_add(p->plan, "irq", d->name, d->irqs[i].name, NULL, why);
	for (int i = 0; i < d->queue_count && !rc; i++) {
		const struct device_queue *q = &d->queues[i];
		char key[16];

		snprintf(key, sizeof(key), "%u", q->index);
		rc = plan_add(p->plan, q->tx ? "xps_cpus" : "rps_cpus", d->name, key, NULL, why);
		if (!rc && !q->tx)
			rc = plan_add(p->plan, "rps_flow_cnt", d->name, key, NULL, why);
	}
	for (const struct ethtool_field *f = coalesce_fields; f->name; f++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 *names ? "," : "", f->name);
	return rc ? rc : plan_add(p->plan, "coalesce", d->name, names, NULL, why);
}

/* A table may not name queues that go away. */
static int shrink_table(struct planner *p, uint32_t queues)
{
	const struct device *d = p->device;

	for (uint32_t i = 0; !d->rss_rc && i < d->rss.size; i++)
		if (d->rss.table[i] >= queues)
			return plan_equal(p, queues, "the table names queues that go away");
	return 0;
}

static int plan_queues(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	const struct ethtool_channels *c = &d->channels;
	uint64_t n, max = c->max_combined         ? c->max_combined
			  : c->max_rx < c->max_tx ? c->max_rx
						  : c->max_tx;
	char text[64], why[WHY];
	int rc;

	if (d->channels_rc || !max)
		return err_set(-EOPNOTSUPP, "the number of queues of %s cannot be set", d->name);
	rc = parse_count("queues", argument, 1, max, &n);
	if (!rc && n < (uint64_t)device_queues(d, false))
		rc = shrink_table(p, (uint32_t)n);
	if (rc)
		return rc;
	snprintf(why, sizeof(why), "%s of %llu queues", argument, (unsigned long long)max);
	if (c->max_combined)
		snprintf(text, sizeof(text), "combined=%llu", (unsigned long long)n);
	else
		snprintf(text, sizeof(text), "rx=%llu,tx=%llu", (unsigned long long)n,
			 (unsigned long long)n);
	rc = plan_add(p->plan, "channels", d->name, c->max_combined ? "combined" : "rx,tx", text,
		      why);
	return rc || !p->plan->n ? rc : keep_disturbed(p);
}

/* --- RPS, XPS ------------------------------------------------------------------------------------ */

static int plan_rps(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	char mask[CPULIST_TEXT];
	bool off = !strcmp(argument, "off");
	cpu_set_t set;
	int rc = off ? 0 : online_cpus(p, "rps", argument, &set);

	if (off)
		CPU_ZERO(&set);
	cpumask_format(&set, mask, sizeof(mask));
	for (int i = 0; i < d->queue_count && !rc; i++) {
		char key[16];

		if (d->queues[i].tx || !is_wanted(p, (int)d->queues[i].index))
			continue;
		snprintf(key, sizeof(key), "%u", d->queues[i].index);
		rc = plan_add(p->plan, "rps_cpus", d->name, key, mask,
			      off ? "packets stay on the CPU that received them"
				  : "packets are handed to these CPUs by flow");
	}
	return rc;
}

/* As the kernel's scaling.rst wants it: each CPU has one queue, neighbours different ones. */
static int plan_xps(struct planner *p, const char *argument)
{
	const struct device *d = p->device;
	int queues = device_queues(d, true), rc;
	cpu_set_t cpus;

	(void)argument;
	rc = spread_cpus(p, &cpus);
	if (!rc && queues < 2)
		return err_set(-EINVAL, "%s has one transmit queue: there is nothing to choose",
			       d->name);
	for (int i = 0; i < d->queue_count && !rc; i++) {
		const struct device_queue *q = &d->queues[i];
		char key[16], mask[CPULIST_TEXT], why[WHY];
		cpu_set_t mine;

		if (!q->tx || !is_wanted(p, (int)q->index))
			continue;
		CPU_ZERO(&mine);
		for (int n = 0; n < CPU_COUNT(&cpus); n++)
			if (n % queues == (int)q->index)
				CPU_SET(cpulist_nth(&cpus, n), &mine);
		cpumask_format(&mine, mask, sizeof(mask));
		snprintf(key, sizeof(key), "%u", q->index);
		snprintf(why, sizeof(why), "%d CPUs share %d queues", CPU_COUNT(&cpus), queues);
		rc = plan_add(p->plan, "xps_cpus", d->name, key, mask, why);
	}
	return rc;
}

/* --- waiting ------------------------------------------------------------------------------------- */

static int plan_coalesce(struct planner *p, const char *argument)
{
	struct ethtool_coalesce wanted = p->device->coalesce;
	char text[256], names[256];
	int rc;

	if (p->device->coalesce_rc)
		return err_set(-EOPNOTSUPP, "the interrupt moderation of %s cannot be set",
			       p->device->name);
	rc = ethtool_fields_parse(coalesce_fields, "coalesce", argument, &wanted);
	if (rc)
		return rc;
	ethtool_fields_format(coalesce_fields, argument, &wanted, text, sizeof(text));
	ethtool_fields_format(coalesce_fields, argument, &p->device->coalesce, names,
			      sizeof(names));
	for (char *at = names; *at; at++) /* "a=1,b=2" to "a,b" */
		if (*at == '=')
			memmove(at, at + strcspn(at, ","), strlen(at + strcspn(at, ",")) + 1);
	return plan_add(p->plan, "coalesce", p->device->name, names, text,
			"how long the device waits for more before it interrupts");
}

static const struct {
	const char *name, *knob, *why;
} napi_fields[] = {
	{"threaded", "threaded", "1: receive processing has a thread of its own"},
	{"gro-flush-timeout", "gro_flush_timeout", "ns that packets may wait for others"},
	{"defer-hard-irqs", "napi_defer_hard_irqs",
	 "empty polls before the interrupt is used again"},
};

static int plan_napi_word(struct planner *p, const char *word)
{
	uint64_t value;
	char text[24];
	size_t size = strcspn(word, "=");
	int rc;

	for (size_t i = 0; i < sizeof(napi_fields) / sizeof(napi_fields[0]); i++) {
		if (strlen(napi_fields[i].name) != size ||
		    strncmp(word, napi_fields[i].name, size) != 0 || !word[size])
			continue;
		rc = parse_count(napi_fields[i].name, word + size + 1, 0, INT64_MAX, &value);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
		return rc ? rc
			  : plan_add(p->plan, napi_fields[i].knob, p->device->name, "", text,
				     napi_fields[i].why);
	}
	return err_set(-EINVAL,
		       "napi: '%s' is not one of threaded=0|1, gro-flush-timeout=NS, "
		       "defer-hard-irqs=N",
		       word);
}

static int plan_napi(struct planner *p, const char *argument)
{
	char *copy = strdup(argument), *save = NULL;
	int rc = 0;

	if (!copy)
		return err_set(-ENOMEM, "no memory for the plan");
	for (char *word = strtok_r(copy, ",", &save); word && !rc;
	     word = strtok_r(NULL, ",", &save))
		rc = plan_napi_word(p, word);
	free(copy);
	return rc;
}

static int plan_busy_poll(struct planner *p, const char *argument)
{
	static const char why[] =
		"readers poll their queue this long (us); they need CPUs to spare";
	uint64_t us;
	char text[24];
	int rc = parse_count("busy-poll", argument, 0, 1000000, &us);

	snprintf(text, sizeof(text), "%llu", (unsigned long long)us);
	if (!rc)
		rc = plan_add(p->plan, "busy_read", "", "", text, why);
	return rc ? rc : plan_add(p->plan, "busy_poll", "", "", text, why);
}

/* --- the table ----------------------------------------------------------------------------------- */

/* In the order in which they must be applied: what disturbs others first. */
const struct policy policies[] = {
	{"queues", "N", "as many queues; goes alone: interrupts change with it"},
	{"rss equal", NULL, "all queues get the same share of the flows"},
	{"rss weights", "W,W..", "shares by weight"},
	{"rss queues", "N", "only the first N queues get flows"},
	{"spread", NULL, "each queue's interrupt to a CPU of its own"},
	{"near-reader", "CPU", "interrupts to the CPU where the reader runs"},
	{"isolate", "CPUS", "interrupts and RPS off these CPUs"},
	{"rps", "CPUS|off", "packets are handed to these CPUs"},
	{"xps", NULL, "each CPU sends through one queue"},
	{"coalesce", "LIST", "interrupt moderation: rx-usecs=N,tx-usecs=N,.."},
	{"napi", "LIST", "threaded=0|1,gro-flush-timeout=NS,defer-hard-irqs=N"},
	{"busy-poll", "US", "all readers poll that long; 0: off"},
	{0},
};

static int (*const planners[])(struct planner *p, const char *argument) = {
	plan_queues, plan_rss_equal,   plan_rss_weights, plan_rss_queues,
	plan_spread, plan_near_reader, plan_isolate,     plan_rps,
	plan_xps,    plan_coalesce,    plan_napi,        plan_busy_poll,
};

_Static_assert(sizeof(planners) / sizeof(planners[0]) == sizeof(policies) / sizeof(policies[0]) - 1,
	       "each policy has a planner");

/* How many of the words are this policy's name; 0: not this one. */
static int match(const struct policy *policy, const char *const *words, int count)
{
	const char *second = strchr(policy->name, ' ');
	size_t first = second ? (size_t)(second - policy->name) : strlen(policy->name);

	if (count < 1 || strlen(words[0]) != first || strncmp(words[0], policy->name, first) != 0)
		return 0;
	if (!second)
		return 1;
	return count > 1 && !strcmp(words[1], second + 1) ? 2 : 0;
}

static int unknown_policy(const char *word)
{
	const char *names[sizeof(policies) / sizeof(policies[0])] = {0}, *near;

	if (!strcmp(word, "rss"))
		return err_set(-EINVAL, "rss: one of equal, weights W,W.., queues N must follow");
	for (int i = 0; policies[i].name; i++)
		names[i] = policies[i].name;
	near = args_nearest(word, names);
	return err_set(-EINVAL, "there is no policy '%s'%s%s; --help lists them", word,
		       near ? "; the nearest is " : "", near ? near : "");
}

/* asked[i]: the argument of policies[i], "" for none, NULL: not asked for. */
static int read_words(const char *const *words, int count, const char **asked)
{
	int used, which;

	if (!count)
		return err_set(-EINVAL, "say what to do: a policy must follow; --help lists them");
	for (int at = 0; at < count; at += used) {
		for (which = 0, used = 0; policies[which].name && !used; which++)
			used = match(&policies[which], words + at, count - at);
		if (!used)
			return unknown_policy(words[at]);
		which--;
		if (asked[which])
			return err_set(-EINVAL, "'%s' is there twice", policies[which].name);
		if (policies[which].argument && at + used >= count)
			return err_set(-EINVAL, "%s: its %s must follow", policies[which].name,
				       policies[which].argument);
		asked[which] = policies[which].argument ? words[at + used++] : "";
	}
	return 0;
}

/* What excludes each other. */
static int check_words(const char *const *asked)
{
	int n = 0, placing = 0, tables = 0;

	for (int i = 0; policies[i].name; i++) {
		n += asked[i] != NULL;
		placing += asked[i] && (planners[i] == plan_spread || planners[i] == plan_isolate ||
					planners[i] == plan_near_reader);
		tables += asked[i] && !strncmp(policies[i].name, "rss", 3);
	}
	if (asked[0] && n > 1)
		return err_set(-EINVAL, "'queues' goes alone: apply it, then plan the rest for the "
					"queues and interrupts there are then");
	if (placing > 1)
		return err_set(-EINVAL, "only one of spread, near-reader and isolate can be had");
	if (tables > 1)
		return err_set(-EINVAL, "only one RSS table can be had");
	return 0;
}

int policies_plan(const struct machine *machine, const struct device *device,
		  const char *const *words, int count, const struct policy_options *options,
		  struct plan *plan)
{
	struct planner p = {machine, device, options, plan, {{0}}};
	const char *asked[sizeof(policies) / sizeof(policies[0])] = {0};
	int rc = read_words(words, count, asked);

	if (!rc)
		rc = check_words(asked);
	if (options->queues && !rc)
		rc = cpulist_parse("--queue", options->queues, &p.queues);
	else
		memset(&p.queues, 0xff, sizeof(p.queues));
	for (int i = 0; policies[i].name && !rc; i++)
		if (asked[i])
			rc = planners[i](&p, asked[i]);
	return rc;
}
