// SPDX-License-Identifier: GPL-2.0-only
#include "load/noise.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "load/clock.h"
#include "load/control.h"

enum { FILE_STEP = 64 << 10, FILE_MAX = 16 << 20 };

/* --- files --------------------------------------------------------------------------------------- */

/* The whole file as a text that the caller frees, or NULL. */
static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL, *grown;
	size_t used = 0, n;

	while (file && used < FILE_MAX) {
		grown = realloc(text, used + FILE_STEP + 1);
		if (!grown)
			break;
		text = grown;
		n = fread(text + used, 1, FILE_STEP, file);
		used += n;
		text[used] = '\0';
		if (n < FILE_STEP)
			break;
	}
	if (file)
		fclose(file);
	return text;
}

static char *read_task(pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	return read_all(path);
}

/* The CPU it runs on, or ran on last: field 39, the 37th behind the name in parentheses. */
static int cpu_of(pid_t tid)
{
	char *text = read_task(tid, "stat"), *at = text ? strrchr(text, ')') : NULL;
	int cpu = -1;

	for (int field = 0; at && field < 37; field++)
		at = strchr(at + 1, ' ');
	if (at)
		cpu = atoi(at);
	free(text);
	return cpu;
}

static int64_t migrations_of(pid_t tid)
{
	static const char key[] = "se.nr_migrations";
	char *text = read_task(tid, "sched"), *at = text ? strstr(text, key) : NULL;
	int64_t count = -1;

	if (at && (at = strchr(at, ':')))
		count = strtoll(at + 1, NULL, 10);
	free(text);
	return count;
}

/* --- steal time ---------------------------------------------------------------------------------- */

/* "cpu0 user nice system idle iowait irq softirq steal …" in ticks. */
uint64_t noise_steal(const char *stat, int cpu)
{
	unsigned long long ticks = 0;
	char label[32];
	const char *at;

	snprintf(label, sizeof(label), "\ncpu%d ", cpu);
	at = stat ? strstr(stat, label) : NULL;
	if (!at || sscanf(at + strlen(label), "%*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		return 0;
	return ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* --- interrupts ---------------------------------------------------------------------------------- */

/* Which column of /proc/interrupts is the CPU's: those that are offline have none. */
static int column_of(const char *text, int cpu)
{
	const char *end = strchr(text, '\n');
	int column = 0, found;

	while (end && (text = strstr(text, "CPU")) && text < end) {
		found = atoi(text + 3);
		if (found == cpu)
			return column;
		column++;
		text += 3;
	}
	return -1;
}

static int columns_in(const char *text)
{
	const char *end = strchr(text, '\n');
	int columns = 0;

	for (; end && (text = strstr(text, "CPU")) && text < end; text += 3)
		columns++;
	return columns;
}

/* One row of a device: " 36:   12  0  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0". */
struct row {
	long irq;
	const char *counts, *end; /* of the line */
};

/* The next device's row at or after text; false when there is none. Rows of the architecture have letters. */
static bool next_row(const char **text, struct row *row)
{
	while (**text) {
		const char *line = *text, *end = strchr(line, '\n');
		char *colon;

		end = end ? end : line + strlen(line);
		*text = *end ? end + 1 : end;
		row->irq = strtol(line, &colon, 10);
		if (*colon != ':' || colon == line)
			continue;
		row->counts = colon + 1;
		row->end = end;
		return true;
	}
	return false;
}

/* The number in a column; *rest is behind all columns. */
static uint64_t count_in(const struct row *row, int column, int columns, const char **rest)
{
	const char *at = row->counts;
	uint64_t count = 0;

	for (int i = 0; i < columns && at < row->end; i++) {
		char *end;
		uint64_t value = strtoull(at, &end, 10);

		if (end == at || end > row->end)
			break;
		count = i == column ? value : count;
		at = end;
	}
	*rest = at;
	return count;
}

/* What is behind the last gap of two blanks or more: the devices. */
static void name_of(const struct row *row, const char *rest, char *name)
{
	const char *at = row->end;
	size_t n;

	while (at > rest && !(at[-1] == ' ' && at >= rest + 2 && at[-2] == ' '))
		at--;
	n = (size_t)(row->end - at);
	n = n < NOISE_NAME_MAX - 1 ? n : NOISE_NAME_MAX - 1;
	memcpy(name, at, n);
	name[n] = '\0';
	for (char *c = name; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
}

/* Whether it is one of the interface's own: named after it, or among its device's. virtio's belong to its parent. */
static bool is_own(const char *interface, long irq, const char *name)
{
	static const char *const places[] = {"device", "device/.."};
	char path[128];

	if (!interface[0])
		return false;
	if (strstr(name, interface))
		return true;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/%s/msi_irqs/%ld", interface,
			 places[i], irq);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

/* Keeps the most frequent ones, in order. */
static void keep_irq(struct noise *noise, const struct noise_irq *irq)
{
	int at = noise->irq_count < NOISE_IRQS_MAX ? noise->irq_count++ : NOISE_IRQS_MAX;

	while (at > 0 && noise->irqs[at - 1].count < irq->count) {
		if (at < NOISE_IRQS_MAX)
			noise->irqs[at] = noise->irqs[at - 1];
		at--;
	}
	if (at < NOISE_IRQS_MAX)
		noise->irqs[at] = *irq;
}

/* Both texts have the rows in the order of their numbers; one may be new, or gone. */
void noise_interrupts(const char *before, const char *after, int cpu, const char *interface,
		      struct noise *noise)
{
	int column_before = column_of(before, cpu), column = column_of(after, cpu);
	int columns_before = columns_in(before), columns = columns_in(after);
	struct row old = {.irq = -1}, row;
	const char *rest;

	while (column >= 0 && next_row(&after, &row)) {
		struct noise_irq irq = {.cpu = cpu};

		while (old.irq < row.irq && next_row(&before, &old))
			;
		irq.count = count_in(&row, column, columns, &rest);
		name_of(&row, rest, irq.name);
		if (old.irq == row.irq && column_before >= 0)
			irq.count -= count_in(&old, column_before, columns_before, &rest);
		/* A row that was given to another device in between starts anew. */
		if (irq.count && irq.count < INT64_MAX && !is_own(interface, row.irq, irq.name))
			keep_irq(noise, &irq);
	}
}

/* --- watching ------------------------------------------------------------------------------------ */

pid_t noise_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

void noise_begin(struct noise_watch *watch, pid_t tid, const char *interface)
{
	*watch = (struct noise_watch){.tid = tid};
	snprintf(watch->interface, sizeof(watch->interface), "%s", interface);
	watch->stat = read_all("/proc/stat");
	watch->interrupts = read_all("/proc/interrupts");
	watch->cpu = cpu_of(tid);
	watch->migrations = migrations_of(tid);
	watch->begun_ns = clock_ns();
}

/* Its place among the CPUs seen, -1: there is no room. *fresh: it was not there before. */
static int note_cpu(struct noise *noise, int cpu, bool *fresh)
{
	*fresh = false;
	for (int i = 0; i < noise->cpu_count; i++)
		if (noise->cpus[i] == cpu)
			return i;
	if (cpu < 0 || noise->cpu_count == NOISE_CPUS_MAX)
		return -1;
	noise->cpus[noise->cpu_count] = cpu;
	*fresh = true;
	return noise->cpu_count++;
}

/* What happened on one CPU, unless it has been counted. */
static void add_cpu(struct noise *noise, const struct noise_watch *watch, const char *stat,
		    const char *interrupts, int cpu)
{
	uint64_t before = noise_steal(watch->stat, cpu), after = noise_steal(stat, cpu);
	bool fresh;
	int at = note_cpu(noise, cpu, &fresh);

	if (!fresh)
		return;
	noise->cpu_steal_ns[at] = after > before ? after - before : 0;
	noise->steal_ns += noise->cpu_steal_ns[at];
	if (interrupts && watch->interrupts)
		noise_interrupts(watch->interrupts, interrupts, cpu, watch->interface, noise);
}

void noise_end(struct noise_watch *watch, struct noise *noise)
{
	char *stat = read_all("/proc/stat"), *interrupts = read_all("/proc/interrupts");
	int64_t migrations = migrations_of(watch->tid);

	*noise = (struct noise){.known = true, .migrations = -1, .cpu = cpu_of(watch->tid)};
	noise->wall_ns = clock_ns() - watch->begun_ns;
	if (migrations >= 0 && watch->migrations >= 0)
		noise->migrations = migrations - watch->migrations;
	add_cpu(noise, watch, stat, interrupts, watch->cpu);
	add_cpu(noise, watch, stat, interrupts, noise->cpu);
	free(stat);
	free(interrupts);
	noise_drop(watch);
}

void noise_drop(struct noise_watch *watch)
{
	free(watch->stat);
	free(watch->interrupts);
	*watch = (struct noise_watch){0};
}

void noise_add(struct noise *sum, const struct noise *more)
{
	if (!more->known)
		return;
	if (!sum->known) {
		*sum = *more;
		return;
	}
	if (sum->migrations >= 0 && more->migrations >= 0)
		sum->migrations += more->migrations;
	for (int c = 0; c < more->cpu_count; c++) {
		bool fresh;
		int at = note_cpu(sum, more->cpus[c], &fresh);

		if (!fresh)
			continue;
		sum->cpu_steal_ns[at] = more->cpu_steal_ns[c];
		sum->steal_ns += more->cpu_steal_ns[c];
		for (int i = 0; i < more->irq_count; i++)
			if (more->irqs[i].cpu == more->cpus[c])
				keep_irq(sum, &more->irqs[i]);
	}
}

bool noise_irq_counts(const struct noise_irq *irq, uint64_t trips)
{
	return irq->count >= NOISE_IRQS_MIN && irq->count >= trips / NOISE_IRQ_TRIPS;
}

bool noise_steal_counts(const struct noise *noise)
{
	return noise->steal_ns >= NOISE_STEAL_MIN_NS &&
	       (double)noise->steal_ns >= NOISE_STEAL_SHARE * (double)noise->wall_ns;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

json_t *noise_to_json(const struct noise *noise)
{
	json_t *cpus = json_array(), *irqs = json_array();

	for (int i = 0; i < noise->cpu_count; i++)
		json_array_append_new(cpus, json_integer(noise->cpus[i]));
	for (int i = 0; i < noise->irq_count; i++)
		json_array_append_new(irqs,
				      json_pack("{s:s, s:i, s:I}", "name", noise->irqs[i].name,
						"cpu", noise->irqs[i].cpu, "count",
						(json_int_t)noise->irqs[i].count));
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:o}", "migrations",
			 noise->migrations < 0 ? json_null() : json_integer(noise->migrations),
			 "cpu", noise->cpu < 0 ? json_null() : json_integer(noise->cpu), "cpus",
			 cpus, "steal_ns", (json_int_t)noise->steal_ns, "wall_ns",
			 (json_int_t)noise->wall_ns, "interrupts", irqs);
}

static int64_t number(const json_t *object, const char *key, int64_t max)
{
	const json_t *json = json_object_get(object, key);
	json_int_t value = json_is_integer(json) ? json_integer_value(json) : -1;

	return value >= 0 && value <= max ? value : -1;
}

/* Counts of a peer are believed up to a number that no run reaches. */
#define COUNT_MAX (1LL << 53)

int noise_from_json(const json_t *object, struct noise *noise)
{
	const json_t *cpus = json_object_get(object, "cpus");
	const json_t *irqs = json_object_get(object, "interrupts"), *at;
	bool fresh;
	size_t i;

	*noise = (struct noise){.migrations = number(object, "migrations", COUNT_MAX)};
	noise->cpu = (int)number(object, "cpu", CPUS_MAX - 1);
	if (!json_is_array(cpus) || !json_is_array(irqs) ||
	    number(object, "steal_ns", COUNT_MAX) < 0 || number(object, "wall_ns", COUNT_MAX) < 0)
		return err_set(-EPROTO, "the peer's answer about noise is none");
	noise->steal_ns = (uint64_t)number(object, "steal_ns", COUNT_MAX);
	noise->wall_ns = (uint64_t)number(object, "wall_ns", COUNT_MAX);
	json_array_foreach (cpus, i, at)
		if (json_is_integer(at) && json_integer_value(at) < CPUS_MAX)
			note_cpu(noise, (int)json_integer_value(at), &fresh);
	json_array_foreach (irqs, i, at) {
		struct noise_irq irq = {.cpu = (int)number(at, "cpu", CPUS_MAX - 1)};

		control_text(at, "name", irq.name, sizeof(irq.name));
		irq.count = (uint64_t)number(at, "count", COUNT_MAX);
		if (irq.cpu >= 0 && irq.count <= COUNT_MAX)
			keep_irq(noise, &irq);
	}
	noise->known = true;
	return 0;
}

int noise_ask(int control_fd, uint64_t limit_ns, struct noise *noise)
{
	json_t *answer;
	int rc = control_send(control_fd, limit_ns, json_pack("{s:s}", "type", "noise"));
	char said[256];

	*noise = (struct noise){.cpu = -1, .migrations = -1};
	if (!rc)
		rc = control_receive(control_fd, limit_ns, &answer);
	if (rc)
		return rc;
	if (!strcmp(control_type(answer), "noise")) {
		if (!json_is_null(json_object_get(answer, "noise")))
			rc = noise_from_json(json_object_get(answer, "noise"), noise);
	} else {
		rc = err_set(-EPROTO, "the server ended the session: %s",
			     control_text(answer, "text", said, sizeof(said)));
	}
	json_decref(answer);
	return rc;
}
