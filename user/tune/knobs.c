// SPDX-License-Identifier: GPL-2.0-only
#include "tune/knobs.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/error.h"
#include "tune/ethtool.h"
#include "tune/interrupts.h"
#include "tune/rss.h"
#include "tune/tree.h"

/* --- when two values are the same ---------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static bool same_mask(const char *a, const char *b)
{
	cpu_set_t x, y;

	return !cpumask_parse(a, &x) && !cpumask_parse(b, &y) && CPU_EQUAL(&x, &y);
}

static bool same_list(const char *a, const char *b)
{
	cpu_set_t x, y;
	bool same = !cpulist_parse("", a, &x) && !cpulist_parse("", b, &y) && CPU_EQUAL(&x, &y);

	err_clear();
	return same;
}

/* --- interrupts ---------------------------------------------------------------------------------- */

static bool is_of_device(const char *device, int irq)
{
	return tree_exists("/sys/class/net/%s/device/msi_irqs/%d", device, irq) ||
	       tree_exists("/sys/class/net/%s/device/../msi_irqs/%d", device, irq);
}

static bool has_msi(const char *device)
{
	return tree_exists("/sys/class/net/%s/device/msi_irqs", device) ||
	       tree_exists("/sys/class/net/%s/device/../msi_irqs", device);
}

/* The number of a device's interrupt now; its name stays when drivers ask for new ones. -ENOENT: none. */
static int irq_number(const struct setting_ref *s)
{
	bool msi = has_msi(s->device);
	struct interrupts all;
	int irq = interrupts_read("/proc/interrupts", &all) ? -EIO : -ENOENT;

	for (int i = 0; i < all.n && irq < 0; i++)
		if (all.rows[i].irq >= 0 && !strcmp(all.rows[i].name, s->key) &&
		    (!msi || is_of_device(s->device, all.rows[i].irq)))
			irq = all.rows[i].irq;
	interrupts_free(&all);
	err_clear();
	return irq;
}

static int read_irq(const struct setting_ref *s, char *text)
{
	int irq = irq_number(s);

	return irq < 0 ? irq : tree_read(text, "/proc/irq/%d/smp_affinity_list", irq);
}

static int write_irq(const struct setting_ref *s, const char *text)
{
	int irq = irq_number(s);
	char path[64];

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	return irq < 0 ? irq : tree_write(path, text);
}

static void command_irq(const struct setting_ref *s, const char *text, char *out)
{
	snprintf(out, KNOB_NAME, "echo %s >/proc/irq/%d/smp_affinity_list", text, irq_number(s));
}

/* --- ethtool ------------------------------------------------------------------------------------- */

static int read_group(const struct ethtool_group *group, const struct setting_ref *s, char *text)
{
	union ethtool_numbers numbers;
	int rc = ethtool_get(group, s->device, &numbers);

	if (!rc)
		ethtool_fields_format(group->fields, s->key, &numbers, text, KNOB_TEXT);
	return rc;
}

static int write_group(const struct ethtool_group *group, const struct setting_ref *s,
		       const char *text)
{
	union ethtool_numbers numbers;
	int rc = ethtool_get(group, s->device, &numbers);

	if (!rc)
		rc = ethtool_fields_parse(group->fields, s->device, text, &numbers);
	return rc ? rc : ethtool_set(group, s->device, &numbers);
}

/* "rx-usecs=3,tx-usecs=0" as ethtool's words. */
static void command_group(const struct ethtool_group *group, const struct setting_ref *s,
			  const char *text, char *out)
{
	int n = snprintf(out, KNOB_NAME, "ethtool %s %s %s", group->option, s->device, text);

	for (int i = 0; i < n && i < KNOB_NAME - 1; i++)
		if (out[i] == '=' || out[i] == ',')
			out[i] = ' ';
}

static int read_table(const char *device, struct rss **out)
{
	int rc;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	rc = ethtool_rss(device, *out);
	return !rc && !(*out)->size ? -EOPNOTSUPP : rc;
}

static int read_rss(const struct setting_ref *s, char *text)
{
	struct rss *rss;
	int rc = read_table(s->device, &rss);

	if (!rc)
		rss_table_format(rss->table, rss->size, text, KNOB_TEXT);
	free(rss);
	return rc;
}

static bool is_default(const struct rss *rss, const uint32_t *table)
{
	for (uint32_t i = 0; i < rss->size; i++)
		if (!rss->rings || table[i] != i % rss->rings)
			return false;
	return true;
}

/*
 * A table that equals the driver's own is set by asking for that: the kernel then also forgets that the table was
 * ever set by hand, which would forbid to have fewer channels.
 */
static int write_rss(const struct setting_ref *s, const char *text)
{
	static const uint32_t none;
	uint32_t *table = calloc(ETHTOOL_RSS_MAX, sizeof(*table));
	struct rss *rss;
	int rc = read_table(s->device, &rss);

	if (!rc && !table)
		rc = -ENOMEM;
	if (!rc && rss_table_parse(text, table, ETHTOOL_RSS_MAX) != (int)rss->size)
		rc = -EINVAL;
	if (!rc && is_default(rss, table) && !ethtool_set_rss(s->device, &none, 0) &&
	    !ethtool_rss(s->device, rss) && is_default(rss, rss->table))
		goto out;
	if (!rc)
		rc = ethtool_set_rss(s->device, table, rss->size);
out:
	free(rss);
	free(table);
	return rc;
}

/* Queues from 0 on that all have the same share: how many, else 0. */
static uint32_t equal_queues(const uint32_t *table, int size)
{
	uint32_t most = 0;

	for (int i = 0; i < size; i++)
		if (table[i] > most)
			most = table[i];
	for (int i = 0; i < size; i++)
		if (table[i] != (uint32_t)i % (most + 1))
			return 0;
	return most + 1;
}

/* Entries of each queue are weights that make a table in runs; other orders cannot be typed. */
static void command_rss(const struct setting_ref *s, const char *text, char *out)
{
	uint32_t *table = calloc(ETHTOOL_RSS_MAX, sizeof(*table));
	int size = table ? rss_table_parse(text, table, ETHTOOL_RSS_MAX) : 0;
	uint32_t equal = size > 0 ? equal_queues(table, size) : 0, queue = 0;
	int used =
		snprintf(out, KNOB_NAME, "ethtool -X %s %s", s->device, equal ? "equal" : "weight");

	if (equal)
		snprintf(out + used, (size_t)(KNOB_NAME - used), " %u", equal);
	for (int i = 0; !equal && i < size && used < KNOB_NAME - 12; queue++) {
		int from = i;

		while (i < size && table[i] <= queue)
			i++;
		used += snprintf(out + used, (size_t)(KNOB_NAME - used), " %d", i - from);
	}
	free(table);
}

/* --- the table ----------------------------------------------------------------------------------- */

#define NET "/sys/class/net/DEV/"

const struct knob knobs[] = {
	{"channels", NULL, &channel_group, same_text, NULL, NULL, NULL, false},
	{"rss", NULL, NULL, same_text, read_rss, write_rss, command_rss, false},
	{"irq", NULL, NULL, same_list, read_irq, write_irq, command_irq, false},
	{"rps_cpus", NET "queues/rx-KEY/rps_cpus", NULL, same_mask, NULL, NULL, NULL, true},
	{"rps_flow_cnt", NET "queues/rx-KEY/rps_flow_cnt", NULL, same_text, NULL, NULL, NULL, true},
	{"xps_cpus", NET "queues/tx-KEY/xps_cpus", NULL, same_mask, NULL, NULL, NULL, true},
	{"coalesce", NULL, &coalesce_group, same_text, NULL, NULL, NULL, false},
	{"threaded", NET "threaded", NULL, same_text, NULL, NULL, NULL, false},
	{"gro_flush_timeout", NET "gro_flush_timeout", NULL, same_text, NULL, NULL, NULL, false},
	{"napi_defer_hard_irqs", NET "napi_defer_hard_irqs", NULL, same_text, NULL, NULL, NULL,
	 false},
	{"busy_read", "/proc/sys/net/core/busy_read", NULL, same_text, NULL, NULL, NULL, false},
	{"busy_poll", "/proc/sys/net/core/busy_poll", NULL, same_text, NULL, NULL, NULL, false},
	{0},
};

const struct knob *knob_find(const char *name)
{
	for (const struct knob *k = knobs; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

bool setting_same(const struct setting_ref *a, const struct setting_ref *b)
{
	return a->knob == b->knob && !strcmp(a->device, b->device) && !strcmp(a->key, b->key);
}

static bool needs_device(const struct knob *k)
{
	return !k->path || strstr(k->path, "DEV");
}

int knob_check(const struct setting_ref *s)
{
	bool number = s->key[0] && strspn(s->key, "0123456789") == strlen(s->key);

	if (needs_device(s->knob) && (!*s->device || strlen(s->device) >= IFNAMSIZ ||
				      strchr(s->device, '/') || s->device[0] == '.'))
		return err_set(-EINVAL, "'%s' is not a network device's name", s->device);
	if (s->knob->by_number && !number)
		return err_set(-EINVAL, "%s: '%s' is not a queue's number", s->knob->name, s->key);
	return 0;
}

static void fill_path(const struct setting_ref *s, char *out, size_t size)
{
	size_t used = 0;

	for (const char *at = s->knob->path; *at && used + 1 < size;) {
		const char *with = !strncmp(at, "DEV", 3)   ? s->device
				   : !strncmp(at, "KEY", 3) ? s->key
							    : NULL;

		if (!with) {
			out[used++] = *at++;
			continue;
		}
		used += (size_t)snprintf(out + used, size - used, "%s", with);
		at += 3;
	}
	out[used < size ? used : size - 1] = '\0';
}

/* A missing file of a missing device is about the device. */
static int about_device(const struct setting_ref *s, int rc)
{
	bool gone = needs_device(s->knob) && !tree_exists("/sys/class/net/%s", s->device);

	return rc && gone ? -ENODEV : rc;
}

int knob_read(const struct setting_ref *s, char *text)
{
	char path[256];
	int rc;

	text[0] = '\0';
	if (s->knob->group)
		return about_device(s, read_group(s->knob->group, s, text));
	if (s->knob->read)
		return about_device(s, s->knob->read(s, text));
	fill_path(s, path, sizeof(path));
	rc = tree_read(text, "%s", path);
	return about_device(s, rc);
}

int knob_write(const struct setting_ref *s, const char *text)
{
	char path[256];

	if (s->knob->group)
		return about_device(s, write_group(s->knob->group, s, text));
	if (s->knob->write)
		return about_device(s, s->knob->write(s, text));
	fill_path(s, path, sizeof(path));
	return about_device(s, tree_write(path, text));
}

/* --- for people ---------------------------------------------------------------------------------- */

void knob_say(const struct setting_ref *s, char *out)
{
	if (!strcmp(s->knob->name, "irq"))
		snprintf(out, KNOB_NAME, "%s: CPUs of %s", s->device, s->key);
	else if (!needs_device(s->knob))
		snprintf(out, KNOB_NAME, "net.core.%s", s->knob->name);
	else if (s->knob->by_number)
		snprintf(out, KNOB_NAME, "%s: %s of queue %s", s->device, s->knob->name, s->key);
	else
		snprintf(out, KNOB_NAME, "%s: %s", s->device, s->knob->name);
}

void knob_command(const struct setting_ref *s, const char *text, char *out)
{
	char path[256];

	if (s->knob->group) {
		command_group(s->knob->group, s, text, out);
		return;
	}
	if (s->knob->command) {
		s->knob->command(s, text, out);
		return;
	}
	fill_path(s, path, sizeof(path));
	snprintf(out, KNOB_NAME, "echo %.200s >%s", text, path);
}

void knob_say_value(const struct setting_ref *s, const char *text, char *out)
{
	uint32_t *table;
	cpu_set_t set;
	int size;

	if (s->knob->same == same_mask && !cpumask_parse(text, &set)) {
		cpulist_format(&set, out, KNOB_NAME);
		if (!*out)
			snprintf(out, KNOB_NAME, "off");
		return;
	}
	snprintf(out, KNOB_NAME, "%.500s", text);
	if (strcmp(s->knob->name, "rss") != 0)
		return;
	table = calloc(ETHTOOL_RSS_MAX, sizeof(*table));
	size = table ? rss_table_parse(text, table, ETHTOOL_RSS_MAX) : 0;
	if (size > 0)
		rss_table_say(table, (uint32_t)size, out, KNOB_NAME);
	free(table);
}

const char *knob_refusal(const struct setting_ref *s, int rc)
{
	bool irq = !strcmp(s->knob->name, "irq");

	switch (-rc) {
	case EIO:
	case EPERM:
		/* EIO until 6.1, EPERM since. An ordinary user is told EACCES on opening. */
		return irq ? "the kernel places this interrupt itself (a managed one)"
			   : strerror(-rc);
	case ENOSPC:
		return irq ? "no free interrupt vector on these CPUs" : strerror(-rc);
	case EINVAL:
	case ERANGE:
	case EOVERFLOW:
		return irq ? "no such CPU, or none of these is online"
			   : "the driver refuses the value";
	case EOPNOTSUPP:
		return "the driver cannot do this";
	case ENODEV:
		return "the device is not there";
	case ENOENT:
		return irq ? "the device has no interrupt of this name"
			   : "there is no such setting";
	default:
		return strerror(-rc);
	}
}
