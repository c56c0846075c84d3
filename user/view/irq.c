// SPDX-License-Identifier: GPL-2.0-only
#include "view/irq.h"

#include <stdio.h>
#include <string.h>

#include "base/cpulist.h"
#include "tune/rss.h"
#include "view/view.h"

enum { LIST = 9, RATES = 15, NAME = 18, INDENT = 14, LINE = 79, FLOWS_SHOWN = 40 };

/* --- text ---------------------------------------------------------------------------------------- */

/* Left-justified in width columns and one after; what is longer ends with "..". */
static void cell(const char *text, int width)
{
	if ((int)strlen(text) > width)
		printf("%.*s.. ", width - 2, text);
	else
		printf("%-*s ", width, text);
}

static void optional_number(long long value, int width)
{
	char text[24] = "-";

	if (value >= 0)
		snprintf(text, sizeof(text), "%lld", value);
	cell(text, width);
}

/* Of a counter's row: "CPU:number" for each CPU that has any, the largest first, as many as fit. */
static void by_cpu(const struct interrupts *from, const struct interrupt *a,
		   const struct interrupts *to, const struct interrupt *b, char *text, size_t size)
{
	double last = 1e300;
	int last_column = -1, left = from->columns;
	size_t used = 0;

	text[0] = '\0';
	while (a && left--) {
		double best = 0;
		int column = -1;
		char one[32];

		for (int c = 0; c < from->columns; c++) {
			double value =
				to->n ? interrupts_rate(from, a, to, b, c) : (double)a->counts[c];

			if (value > best &&
			    (value < last || (value == last && c > last_column))) { /* the next */
				best = value;
				column = c;
			}
		}
		if (column < 0)
			return;
		last = best;
		last_column = column;
		snprintf(one, sizeof(one), "%s%d:%.*f", used ? " " : "", from->cpus[column],
			 best < 10 && to->n ? 1 : 0, best);
		if (used + strlen(one) >= size)
			return;
		used += (size_t)snprintf(text + used, size - used, "%s", one);
	}
}

static void print_machine(const struct machine *m, const struct irq_rates *rates)
{
	static const char *const rows[] = {"NET_RX", "NET_TX"};
	char list[CPULIST_TEXT], text[LINE - 40];

	cpulist_format(&m->online, list, sizeof(list));
	printf("CPUs %.30s online", list);
	cpulist_format(&m->isolated, list, sizeof(list));
	if (*list)
		printf(", %.12s isolated", list);
	cpulist_format(&m->nohz_full, list, sizeof(list));
	if (*list)
		printf(", %.12s nohz_full", list);
	putchar('\n');
	if (m->irqbalance)
		printf("irqbalance runs (process %d) and moves interrupts\n", (int)m->irqbalance);
	else
		puts("irqbalance does not run");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		by_cpu(&rates->softirqs, interrupts_label(&rates->softirqs, rows[i]),
		       &rates->softirqs_after, interrupts_label(&rates->softirqs_after, rows[i]),
		       text, sizeof(text));
		printf("%s softirqs%s, CPU:number  %s\n", rows[i],
		       rates->softirqs_after.n ? "/s" : " since boot", *text ? text : "none");
	}
}

/* "NAME VALUE[ of MAX], ..." after a heading of INDENT columns, continued below it where the line is full. */
static void print_fields(const char *head, const struct ethtool_field *fields, const void *from,
			 bool with_max)
{
	int column = 0;

	for (; fields->name; fields++) {
		uint32_t value = *(const uint32_t *)((const char *)from + fields->offset);
		uint32_t max =
			with_max ? *(const uint32_t *)((const char *)from + fields->max) : value;
		char text[64];
		int n;

		if (!value && !max)
			continue;
		n = snprintf(text, sizeof(text), "%s %u", fields->name, value);
		if (with_max)
			n += snprintf(text + n, sizeof(text) - (size_t)n, " of %u", max);
		if (column && column + 2 + n < LINE) {
			column += printf(", %s", text);
			continue;
		}
		if (column)
			puts(",");
		column = printf("  %-*s%s", INDENT - 2, column ? "" : head, text);
	}
	if (column)
		putchar('\n');
}

static void print_coalesce(const struct device *d)
{
	static const char head[] = "coalescing  ";
	struct ethtool_coalesce none = {.cmd = d->coalesce.cmd};

	if (d->coalesce_rc)
		return;
	if (memcmp(&none, &d->coalesce, sizeof(none)) != 0)
		print_fields(head, coalesce_fields, &d->coalesce, false);
	else
		printf("  %snone\n", head);
}

static void print_napi(const struct device *d)
{
	printf("  NAPI        %s", d->threaded > 0 ? "threaded, " : "");
	if (d->gro_flush_timeout_ns >= 0 && d->defer_hard_irqs >= 0)
		printf("gro-flush-timeout %lld ns, defer-hard-irqs %lld", d->gro_flush_timeout_ns,
		       d->defer_hard_irqs);
	putchar('\n');
}

static void print_device(const struct machine *m, const struct device *d)
{
	char text[1024];

	printf("\n%s: %s", d->name, *d->driver ? d->driver : "no driver told");
	if (*d->bus)
		printf(" at %s", d->bus);
	if (d->node >= 0)
		printf(", NUMA node %d", d->node);
	putchar('\n');
	if (d->control)
		printf("  control     %s\n", m->control_why);
	if (!d->channels_rc)
		print_fields("channels    ", channel_fields, &d->channels, true);
	if (!d->rss_rc) {
		rss_table_say(d->rss.table, d->rss.size, text, sizeof(text));
		printf("  RSS         %s%u entries: %.40s\n",
		       d->rss.hfunc & RSS_TOEPLITZ ? "Toeplitz, "
		       : d->rss.hfunc & RSS_XOR    ? "xor, "
						   : "",
		       d->rss.size, text);
	}
	print_coalesce(d);
	print_napi(d);
}

static void print_irqs(const struct machine *m, const struct device *d,
		       const struct irq_rates *rates)
{
	char text[256];

	if (!d->irq_count) {
		printf("  no interrupts of its own\n");
		return;
	}
	printf("  %-5s %-4s %-4s %-6s %-*s %-*s %-*s name\n", "irq", "rx", "tx", "NAPI", LIST,
	       "affinity", LIST, "effective", RATES,
	       rates->interrupts_after.n ? "CPU:number/s" : "CPU:number");
	for (int i = 0; i < d->irq_count; i++) {
		const struct device_irq *irq = &d->irqs[i];

		printf("  %-5d ", irq->irq);
		device_irq_queues(d, irq, false, text, sizeof(text));
		cell(*text ? text : "-", 4);
		device_irq_queues(d, irq, true, text, sizeof(text));
		cell(*text ? text : "-", 4);
		optional_number(irq->napi ? (long long)irq->napi : -1, 6);
		cell(*irq->affinity ? irq->affinity : "?", LIST);
		cell(*irq->effective ? irq->effective : "-", LIST);
		by_cpu(&m->interrupts, interrupts_find(&m->interrupts, irq->irq),
		       &rates->interrupts_after,
		       interrupts_find(&rates->interrupts_after, irq->irq), text, RATES + 1);
		cell(*text ? text : "-", RATES);
		printf("%.*s\n", NAME, irq->name);
	}
}

/* A mask as people read it. False: there is none, or no CPU in it. */
static bool say_mask(const char *mask, char *text, size_t size)
{
	cpu_set_t set;

	text[0] = '\0';
	if (!mask || cpumask_parse(mask, &set))
		return false;
	cpulist_format(&set, text, size);
	return *text != '\0';
}

static void say_queue(const struct device_queue *q, char *text, size_t size)
{
	char one[CPULIST_TEXT];
	const char *mask = q->tx ? q->xps_cpus : q->rps_cpus, *what = q->tx ? "XPS" : "RPS";

	if (say_mask(mask, one, sizeof(one)))
		snprintf(text, size, "%s %s CPUs %.30s", what, q->tx ? "from" : "to", one);
	else
		snprintf(text, size, "%s %s", what, mask ? "off" : "cannot be set");
	if (!q->tx && q->rps_flow_cnt && strcmp(q->rps_flow_cnt, "0") != 0)
		snprintf(text + strlen(text), size - strlen(text), ", RFS %s flows",
			 q->rps_flow_cnt);
	if (q->tx && q->xps_rxqs && strspn(q->xps_rxqs, "0,") < strlen(q->xps_rxqs))
		snprintf(text + strlen(text), size - strlen(text), ", XPS by receive queues %.20s",
			 q->xps_rxqs);
}

/* Neighbours with the same settings share a line. */
static void print_queues(const struct device *d)
{
	for (int i = 0, last; i < d->queue_count; i = last + 1) {
		char text[256], next[256], range[32];

		say_queue(&d->queues[i], text, sizeof(text));
		for (last = i; last + 1 < d->queue_count; last++) {
			say_queue(&d->queues[last + 1], next, sizeof(next));
			if (d->queues[last + 1].tx != d->queues[i].tx || strcmp(next, text) != 0)
				break;
		}
		snprintf(range, sizeof(range), "%s %u", d->queues[i].tx ? "tx" : "rx",
			 d->queues[i].index);
		if (last > i)
			snprintf(range + strlen(range), sizeof(range) - strlen(range), "-%u",
				 d->queues[last].index);
		printf("  %-11s %s\n", range, text);
	}
}

/* "1>1>0+": interrupt, softirq, reader; a plus: not always. */
static void say_way(const struct receiver *r, char *text, size_t size)
{
	const struct receiver_way *way = &r->ways[0];
	const uint16_t cpus[] = {way->irq, way->softirq, way->reader};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		used += (size_t)snprintf(text + used, size - used,
					 cpus[i] == CPU_UNKNOWN ? "%s-" : "%s%u", i ? ">" : "",
					 cpus[i]);
	if (r->way_count > 1)
		snprintf(text + used, size - used, "+");
}

static void print_receiver(const struct irq_receiver *row, double seconds)
{
	const struct receiver *r = &row->what;
	char text[IRQ_ADDRESS_MAX + 8];

	printf("  ");
	optional_number(row->queue, 5);
	say_way(r, text, sizeof(text));
	cell(text, 9);
	printf("%8.1f %8.1f %5.1f%% ", (double)r->turns / seconds, (double)r->across / seconds,
	       100.0 * (double)r->wrong / (double)r->turns);
	snprintf(text, sizeof(text), ":%u %s", row->port, row->remote);
	cell(text, 27);
	printf("%.7s\n", row->comm);
}

static void print_receivers(const struct device *d, const struct irq_receivers *flows)
{
	int n = 0;

	if (flows->seconds <= 0)
		return;
	for (int i = 0; i < flows->n; i++) {
		if (flows->rows[i].device != d)
			continue;
		if (!n++)
			printf("  flows of %.1f s; CPUs: interrupt>softirq>reader (+: not "
			       "always)\n  %-5s %-9s %8s %8s %6s %-27s program\n",
			       flows->seconds, "rx", "CPUs", "turns/s", "across/s", "wrong",
			       "flow");
		if (n <= FLOWS_SHOWN)
			print_receiver(&flows->rows[i], flows->seconds);
	}
	if (!n)
		printf("  no TCP flow had turns in %.1f s\n", flows->seconds);
	else if (n > FLOWS_SHOWN)
		printf("  and %d more; -j has them all\n", n - FLOWS_SHOWN);
}

int view_irq_text(const struct machine *machine, const struct irq_rates *rates,
		  const struct irq_receivers *flows)
{
	print_machine(machine, rates);
	for (int i = 0; i < machine->device_count; i++) {
		print_device(machine, &machine->devices[i]);
		print_queues(&machine->devices[i]);
		print_irqs(machine, &machine->devices[i], rates);
		print_receivers(&machine->devices[i], flows);
	}
	return 0;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static json_t *set_list(const cpu_set_t *set)
{
	char list[CPULIST_TEXT];

	cpulist_format(set, list, sizeof(list));
	return json_string(list);
}

/* null for what is not there */
static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *number_or_null(long long value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *counts_object(const struct interrupts *all, const struct interrupt *row)
{
	json_t *out = json_object();
	char cpu[16];

	for (int c = 0; row && c < all->columns; c++) {
		snprintf(cpu, sizeof(cpu), "%d", all->cpus[c]);
		json_object_set_new(out, cpu, json_integer((json_int_t)row->counts[c]));
	}
	return out;
}

static json_t *rates_object(const struct interrupts *from, const struct interrupt *a,
			    const struct interrupts *to, const struct interrupt *b)
{
	json_t *out = to->n ? json_object() : json_null();
	char cpu[16];

	for (int c = 0; to->n && c < from->columns; c++) {
		snprintf(cpu, sizeof(cpu), "%d", from->cpus[c]);
		json_object_set_new(out, cpu, json_real(interrupts_rate(from, a, to, b, c)));
	}
	return out;
}

static json_t *irq_object(const struct machine *m, const struct device *d,
			  const struct device_irq *irq, const struct irq_rates *rates)
{
	const struct interrupt *row = interrupts_find(&m->interrupts, irq->irq);
	json_t *out = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "irq", irq->irq, "name",
				irq->name, "chip", irq->chip, "mode", text_or_null(irq->mode),
				"affinity", text_or_null(irq->affinity), "effective",
				text_or_null(irq->effective), "node", number_or_null(irq->node),
				"napi", number_or_null(irq->napi ? (long long)irq->napi : -1));

	for (int tx = 0; tx < 2; tx++) {
		json_t *queues = json_array();

		for (int q = 0; q < d->queue_count; q++)
			if (d->queues[q].tx == tx && d->queues[q].irq == irq->irq)
				json_array_append_new(queues, json_integer(d->queues[q].index));
		json_object_set_new(out, tx ? "tx_queues" : "rx_queues", queues);
	}
	json_object_set_new(out, "counts", counts_object(&m->interrupts, row));
	json_object_set_new(out, "per_s",
			    rates_object(&m->interrupts, row, &rates->interrupts_after,
					 interrupts_find(&rates->interrupts_after, irq->irq)));
	return out;
}

static json_t *queue_object(const struct device_queue *q)
{
	json_t *out = json_pack("{s:s, s:i, s:o, s:o}", "direction", q->tx ? "tx" : "rx", "index",
				(int)q->index, "irq", number_or_null(q->irq), "napi",
				number_or_null(q->napi ? (long long)q->napi : -1));

	if (q->tx) {
		json_object_set_new(out, "xps_cpus", text_or_null(q->xps_cpus));
		json_object_set_new(out, "xps_rxqs", text_or_null(q->xps_rxqs));
	} else {
		json_object_set_new(out, "rps_cpus", text_or_null(q->rps_cpus));
		json_object_set_new(out, "rps_flow_cnt", text_or_null(q->rps_flow_cnt));
	}
	return out;
}

static json_t *napi_object(const struct netdev_napi *napi)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)napi->id, "irq",
			 number_or_null(napi->irq), "pid",
			 number_or_null(napi->pid ? napi->pid : -1), "threaded",
			 number_or_null(napi->threaded), "defer_hard_irqs",
			 number_or_null(napi->defer_hard_irqs), "gro_flush_timeout_ns",
			 number_or_null(napi->gro_flush_timeout_ns), "irq_suspend_timeout_ns",
			 number_or_null(napi->irq_suspend_timeout_ns));
}

static json_t *fields_object(int rc, const struct ethtool_field *fields, const void *from, bool max)
{
	json_t *out = rc ? json_null() : json_object();

	for (; !rc && fields->name; fields++) {
		size_t offset = max ? fields->max : fields->offset;

		json_object_set_new(out, fields->name,
				    json_integer(*(const uint32_t *)((const char *)from + offset)));
	}
	return out;
}

static json_t *rss_object(const struct device *d)
{
	const struct rss *rss = &d->rss;
	json_t *table = json_array(), *feeds = json_object();
	char key[3 * ETHTOOL_KEY_MAX + 1] = "", queue[16];

	if (d->rss_rc) {
		json_decref(table);
		json_decref(feeds);
		return json_null();
	}
	for (uint32_t i = 0; i < rss->key_size; i++)
		snprintf(key + (i ? 3 * i - 1 : 0), 4, "%s%02x", i ? ":" : "", rss->key[i]);
	for (uint32_t i = 0; i < rss->size; i++) {
		json_int_t before;

		snprintf(queue, sizeof(queue), "%u", rss->table[i]);
		before = json_integer_value(json_object_get(feeds, queue));
		json_object_set_new(feeds, queue, json_integer(before + 1));
		json_array_append_new(table, json_integer(rss->table[i]));
	}
	return json_pack("{s:s?, s:s, s:I, s:o, s:o}", "function",
			 rss->hfunc & RSS_TOEPLITZ ? "toeplitz"
			 : rss->hfunc & RSS_XOR    ? "xor"
						   : NULL,
			 "key", key, "rings", (json_int_t)rss->rings, "table", table, "feeds",
			 feeds);
}

static json_t *cpu_or_null(uint16_t cpu)
{
	return number_or_null(cpu == CPU_UNKNOWN ? -1 : cpu);
}

static json_t *receiver_object(const struct irq_receiver *row, double seconds)
{
	const struct receiver *r = &row->what;
	json_t *ways = json_array();

	for (int i = 0; i < r->way_count; i++)
		json_array_append_new(ways, json_pack("{s:o, s:o, s:o, s:I}", "irq_cpu",
						      cpu_or_null(r->ways[i].irq), "softirq_cpu",
						      cpu_or_null(r->ways[i].softirq), "reader_cpu",
						      cpu_or_null(r->ways[i].reader), "turns",
						      (json_int_t)r->ways[i].turns));
	return json_pack("{s:o, s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:o}",
			 "rx_queue", number_or_null(row->queue), "rss_queue",
			 number_or_null(row->predicted), "local", row->local, "remote", row->remote,
			 "role", row->role == ROLE_CLIENT ? "client" : "server", "comm", row->comm,
			 "pid", (json_int_t)row->pid, "turns", (json_int_t)r->turns, "turns_per_s",
			 (double)r->turns / seconds, "wakeups", (json_int_t)r->wakeups,
			 "wakeups_across", (json_int_t)r->across, "wrong_cpu", (json_int_t)r->wrong,
			 "ways", ways);
}

static json_t *receivers_array(const struct device *d, const struct irq_receivers *flows)
{
	json_t *out = flows->seconds > 0 ? json_array() : json_null();

	for (int i = 0; i < flows->n; i++)
		if (flows->rows[i].device == d)
			json_array_append_new(out,
					      receiver_object(&flows->rows[i], flows->seconds));
	return out;
}

static json_t *device_object(const struct machine *m, const struct device *d,
			     const struct irq_rates *rates)
{
	json_t *irqs = json_array(), *queues = json_array(), *napis = json_array();

	for (int i = 0; i < d->irq_count; i++)
		json_array_append_new(irqs, irq_object(m, d, &d->irqs[i], rates));
	for (int i = 0; i < d->queue_count; i++)
		json_array_append_new(queues, queue_object(&d->queues[i]));
	for (int i = 0; i < d->netdev.napi_count; i++)
		json_array_append_new(napis, napi_object(&d->netdev.napis[i]));
	return json_pack(
		"{s:s, s:i, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}",
		"name", d->name, "ifindex", d->ifindex, "driver", text_or_null(d->driver), "bus",
		text_or_null(d->bus), "numa_node", number_or_null(d->node), "control", d->control,
		"channels", fields_object(d->channels_rc, channel_fields, &d->channels, false),
		"channels_max", fields_object(d->channels_rc, channel_fields, &d->channels, true),
		"coalesce", fields_object(d->coalesce_rc, coalesce_fields, &d->coalesce, false),
		"rss", rss_object(d), "threaded", number_or_null(d->threaded),
		"gro_flush_timeout_ns", number_or_null(d->gro_flush_timeout_ns), "defer_hard_irqs",
		number_or_null(d->defer_hard_irqs), "netdev_family", !d->netdev_rc, "napis", napis,
		"irqs", irqs, "queues", queues);
}

int view_irq_json(const struct machine *m, const struct irq_rates *rates,
		  const struct irq_receivers *flows)
{
	static const char *const rows[] = {"NET_RX", "NET_TX"};
	json_t *out = view_json_header("irq show"), *softirqs = json_object(),
	       *devices = json_array();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct interrupt *row = interrupts_label(&rates->softirqs, rows[i]);

		json_object_set_new(
			softirqs, rows[i],
			json_pack("{s:o, s:o}", "counts", counts_object(&rates->softirqs, row),
				  "per_s",
				  rates_object(&rates->softirqs, row, &rates->softirqs_after,
					       interrupts_label(&rates->softirqs_after, rows[i]))));
	}
	for (int i = 0; i < m->device_count; i++) {
		json_t *device = device_object(m, &m->devices[i], rates);

		json_object_set_new(device, "flows", receivers_array(&m->devices[i], flows));
		json_array_append_new(devices, device);
	}
	json_object_set_new(out, "cpus",
			    json_pack("{s:o, s:o, s:o}", "online", set_list(&m->online), "isolated",
				      set_list(&m->isolated), "nohz_full",
				      set_list(&m->nohz_full)));
	json_object_set_new(out, "irqbalance", number_or_null(m->irqbalance ? m->irqbalance : -1));
	json_object_set_new(out, "softirqs", softirqs);
	json_object_set_new(out, "watched",
			    flows->seconds > 0
				    ? json_pack("{s:f, s:i, s:I}", "seconds", flows->seconds,
						"elsewhere", flows->elsewhere, "one_way",
						(json_int_t)flows->one_way)
				    : json_null());
	json_object_set_new(out, "devices", devices);
	return view_json_print(out);
}

/* --- flows --------------------------------------------------------------------------------------- */

static json_t *flow_object(const struct irq_flow *f)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:s?, s:s?}", "flow", f->text, "hash",
			 (json_int_t)f->to.hash, "entry", (json_int_t)f->to.entry, "queue",
			 (json_int_t)f->to.queue, "irq",
			 number_or_null(f->to.irq ? f->to.irq->irq : -1), "name",
			 f->to.irq ? f->to.irq->name : NULL, "affinity",
			 f->to.irq ? f->to.irq->affinity : NULL);
}

int view_irq_flows(const struct device *device, const struct irq_flow *flows, int count, bool json)
{
	json_t *out, *rows;

	if (json) {
		out = view_json_header("irq flow");
		rows = json_array();
		for (int i = 0; i < count; i++)
			json_array_append_new(rows, flow_object(&flows[i]));
		json_object_set_new(out, "device", json_string(device->name));
		json_object_set_new(out, "flows", rows);
		return view_json_print(out);
	}
	printf("%-8s  %5s  %5s  %-6s %-9s flow\n", "hash", "entry", "queue", "irq", "CPUs");
	for (int i = 0; i < count; i++) {
		printf("%08x  %5u  %5u  ", flows[i].to.hash, flows[i].to.entry, flows[i].to.queue);
		optional_number(flows[i].to.irq ? flows[i].to.irq->irq : -1, 6);
		cell(flows[i].to.irq ? flows[i].to.irq->affinity : "?", 9);
		puts(flows[i].text);
	}
	return 0;
}
