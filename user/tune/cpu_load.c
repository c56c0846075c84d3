// SPDX-License-Identifier: GPL-2.0-only
#include "tune/cpu_load.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tune/devices.h"
#include "tune/tree.h"

static int no_memory(void)
{
	return err_set(-ENOMEM, "no memory for the load of CPUs");
}

/* The threads that do softirqs when there are too many of them: children of kthreadd. */
static void find_ksoftirqd(struct cpu_load *l)
{
	DIR *folder = tree_folder("/proc");
	struct dirent *entry;
	char text[TREE_TEXT];
	int cpu;

	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    tree_read(text, "/proc/%s/comm", entry->d_name) ||
		    sscanf(text, "ksoftirqd/%d", &cpu) != 1)
			continue;
		for (int i = 0; i < l->cpu_count; i++)
			if (l->cpus[i].cpu == cpu)
				l->ksoftirqd[i] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (folder)
		closedir(folder);
}

static int column_of(const struct cpu_load *l, int cpu)
{
	for (int i = 0; i < l->cpu_count; i++)
		if (l->cpus[i].cpu == cpu)
			return i;
	return -1;
}

/* user nice system idle iowait irq softirq steal, in ticks: only their ratios are used. */
static void read_busy(struct cpu_load *l)
{
	char *text = tree_slurp("/proc/stat"), *save = NULL, *line;
	uint64_t v[8];
	int cpu, i;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		uint64_t all = 0, busy;

		if (sscanf(line,
			   "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &cpu, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 9 ||
		    (i = column_of(l, cpu)) < 0)
			continue;
		for (int k = 0; k < 8; k++)
			all += v[k];
		busy = all - v[3] - v[4];
		l->cpus[i].busy = all > l->all_ticks[i] ? (double)(busy - l->busy_ticks[i]) /
								  (double)(all - l->all_ticks[i])
							: 0;
		l->busy_ticks[i] = busy;
		l->all_ticks[i] = all;
	}
	free(text);
}

static void read_ksoftirqd(struct cpu_load *l, double ns)
{
	char text[TREE_TEXT];

	for (int i = 0; i < l->cpu_count; i++) {
		uint64_t run = 0;

		l->cpus[i].ksoftirqd = -1;
		if (!l->ksoftirqd[i] || tree_read(text, "/proc/%d/schedstat", l->ksoftirqd[i]) ||
		    sscanf(text, "%" SCNu64, &run) != 1)
			continue;
		if (ns > 0)
			l->cpus[i].ksoftirqd = (double)(run - l->ksoftirqd_ns[i]) / ns;
		l->ksoftirqd_ns[i] = run;
	}
}

static double rate_in(const struct interrupts *from, const struct interrupts *to,
		      const struct interrupt *row, int column)
{
	const struct interrupt *before = row->irq >= 0 ? interrupts_find(from, row->irq)
						       : interrupts_label(from, row->label);

	return interrupts_rate(from, before, to, row, column);
}

static void take_cpus(struct cpu_load *l, const struct interrupts *irqs,
		      const struct interrupts *softirqs)
{
	const struct interrupt *net_rx = interrupts_label(softirqs, "NET_RX");

	for (int i = 0; i < l->cpu_count; i++) {
		l->cpus[i].irq_rate = 0;
		for (int r = 0; r < irqs->n; r++)
			if (irqs->rows[r].irq >= 0)
				l->cpus[i].irq_rate +=
					rate_in(&l->interrupts, irqs, &irqs->rows[r], i);
		l->cpus[i].net_rx_rate = net_rx ? rate_in(&l->softirqs, softirqs, net_rx, i) : -1;
	}
}

static bool has_fired(const struct interrupts *irqs, const struct interrupt *row)
{
	for (int i = 0; i < irqs->columns; i++)
		if (row->counts[i])
			return true;
	return false;
}

static void take_irq(struct cpu_load *l, const struct interrupts *irqs, const struct interrupt *row,
		     double *rates)
{
	struct cpu_load_irq *out = &l->irqs[l->irq_count++];
	static const char *const serves[] = {"", "rx", "tx", "rx tx"};
	char text[TREE_TEXT];
	int what, queue;

	*out = (struct cpu_load_irq){.irq = row->irq, .rates = rates};
	snprintf(out->name, sizeof(out->name), "%s", row->name);
	for (char *c = out->name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	device_irq_by_name(row->name, &what, &queue);
	if (what && queue >= 0)
		snprintf(out->queue, sizeof(out->queue), "%s %d", serves[what & 3], queue);
	else if (what)
		snprintf(out->queue, sizeof(out->queue), "%s", serves[what & 3]);
	tree_read(text, "/proc/irq/%d/effective_affinity_list", row->irq);
	if (!text[0])
		tree_read(text, "/proc/irq/%d/smp_affinity_list", row->irq);
	snprintf(out->affinity, sizeof(out->affinity), "%.31s", text);
	for (int i = 0; i < l->cpu_count; i++) {
		rates[i] = rate_in(&l->interrupts, irqs, row, i);
		out->rate += rates[i];
	}
}

static int by_rate(const void *a, const void *b)
{
	const struct cpu_load_irq *x = a, *y = b;

	if (x->rate != y->rate)
		return (x->rate < y->rate) - (x->rate > y->rate);
	return x->irq - y->irq;
}

static int take_irqs(struct cpu_load *l, const struct interrupts *irqs)
{
	size_t n = (size_t)irqs->n + 1;

	free(l->irqs);
	free(l->rates);
	l->irq_count = 0;
	l->irqs = calloc(n, sizeof(*l->irqs));
	l->rates = calloc(n * (size_t)l->cpu_count, sizeof(*l->rates));
	if (!l->irqs || !l->rates)
		return no_memory();
	for (int r = 0; r < irqs->n; r++)
		if (irqs->rows[r].irq >= 0 && has_fired(irqs, &irqs->rows[r]))
			take_irq(l, irqs, &irqs->rows[r],
				 l->rates + (size_t)l->irq_count * (size_t)l->cpu_count);
	qsort(l->irqs, (size_t)l->irq_count, sizeof(*l->irqs), by_rate);
	return 0;
}

int cpu_load_update(struct cpu_load *l)
{
	struct interrupts irqs = {0}, softirqs = {0};
	int rc = interrupts_read("/proc/interrupts", &irqs);

	if (!rc)
		rc = interrupts_read("/proc/softirqs", &softirqs);
	/* A CPU came or went: its column is another one's now. */
	if (!rc && irqs.columns != l->cpu_count) {
		interrupts_free(&irqs);
		interrupts_free(&softirqs);
		cpu_load_free(l);
		return cpu_load_open(l);
	}
	if (!rc) {
		take_cpus(l, &irqs, &softirqs);
		rc = take_irqs(l, &irqs);
		read_busy(l);
		read_ksoftirqd(l, (double)(irqs.at_ns - l->interrupts.at_ns));
	}
	interrupts_free(&l->interrupts);
	interrupts_free(&l->softirqs);
	l->interrupts = irqs;
	l->softirqs = softirqs;
	return rc;
}

int cpu_load_open(struct cpu_load *l)
{
	int rc = interrupts_read("/proc/interrupts", &l->interrupts);
	size_t n;

	if (!rc)
		rc = interrupts_read("/proc/softirqs", &l->softirqs);
	if (rc)
		return rc;
	l->cpu_count = l->interrupts.columns;
	n = (size_t)l->cpu_count;
	l->cpus = calloc(n, sizeof(*l->cpus));
	l->busy_ticks = calloc(n, sizeof(*l->busy_ticks));
	l->all_ticks = calloc(n, sizeof(*l->all_ticks));
	l->ksoftirqd_ns = calloc(n, sizeof(*l->ksoftirqd_ns));
	l->ksoftirqd = calloc(n, sizeof(*l->ksoftirqd));
	if (!l->cpus || !l->busy_ticks || !l->all_ticks || !l->ksoftirqd_ns || !l->ksoftirqd)
		return no_memory();
	for (int i = 0; i < l->cpu_count; i++)
		l->cpus[i].cpu = l->interrupts.cpus[i];
	find_ksoftirqd(l);
	read_busy(l);
	read_ksoftirqd(l, 0);
	return 0;
}

void cpu_load_free(struct cpu_load *l)
{
	interrupts_free(&l->interrupts);
	interrupts_free(&l->softirqs);
	free(l->cpus);
	free(l->irqs);
	free(l->busy_ticks);
	free(l->all_ticks);
	free(l->ksoftirqd_ns);
	free(l->ksoftirqd);
	free(l->rates);
	*l = (struct cpu_load){0};
}
