// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/version.h"
#include "load/clock.h"
#include "load/io.h"
#include "view/text.h"

enum { NUMBER = TEXT_NUMBER, NUMBERS = 7, SHARE = 7, BAR_MAX = 9 };

static const char *colour(const struct style *style, const char *code)
{
	return style->colour ? code : "";
}

static void print_numbers(const struct dist *d)
{
	text_us(d->min, NUMBER);
	text_us(d->p[DIST_P50], NUMBER);
	text_us(d->p[DIST_P90], NUMBER);
	text_us(d->p[DIST_P99], NUMBER);
	text_us(d->p[DIST_P99_9], NUMBER);
	text_us(d->max, NUMBER);
	text_us((int64_t)llround(d->mean), NUMBER);
}

static int key_width(const struct split *split)
{
	int width = TEXT_KEY;

	for (int r = 0; split && r < split->count; r++) {
		int length = (int)strlen(stage_infos[split->rows[r].stage].key);

		width = length > width ? length : width;
	}
	return width;
}

/* Eighths of a character cell, so that a bar of nine columns shows 72 steps. */
static void print_bar(const struct style *style, double share, int columns)
{
	static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	int eighths = (int)(share * columns * 8 + 0.5);

	if (!eighths || (!style->utf8 && eighths < 8))
		return;
	putchar(' ');
	fputs(colour(style, "\033[36m"), stdout);
	for (int i = 0; i < eighths / 8; i++)
		fputs(style->utf8 ? "█" : "#", stdout);
	if (style->utf8)
		fputs(parts[eighths % 8], stdout);
	fputs(colour(style, "\033[0m"), stdout);
}

static void print_header(const struct style *style, int width)
{
	static const char *const names[] = {"min", "p50", "p90", "p99", "p99.9", "max", "mean"};

	fputs(colour(style, "\033[1m"), stdout);
	printf("%s%*s", style->micro, width - 2, "");
	for (int i = 0; i < NUMBERS; i++)
		printf("%*s", NUMBER, names[i]);
	printf("%*s%s\n", SHARE, "share", colour(style, "\033[0m"));
}

static void print_table(const struct style *style, const struct report *report)
{
	const struct split *split = report->split;
	int width = key_width(split);
	int bar = TEXT_COLUMNS - width - NUMBERS * NUMBER - SHARE - 1;

	print_header(style, width);
	printf("%-*s", width, text_what(report));
	print_numbers(&report->rtt);
	putchar('\n');
	if (report->service.count) {
		printf("%-*s", width, report->half ? "half service" : "service");
		print_numbers(&report->service);
		putchar('\n');
	}
	for (int r = 0; split && r < split->count; r++) {
		const struct stage_row *row = &split->rows[r];

		printf("%-*s", width, stage_infos[row->stage].key);
		print_numbers(&row->dist);
		printf("%*.1f%%", SHARE - 1, row->share * 100);
		print_bar(style, row->share, bar < BAR_MAX ? bar : BAR_MAX);
		putchar('\n');
	}
}

static void print_cpu(const char *side, int cpu)
{
	if (cpu < 0)
		printf(", %s not pinned", side);
	else
		printf(", %s on CPU %d", side, cpu);
}

static void print_load(const struct report *report)
{
	const struct run *run = report->run;
	const struct load_plan *plan = run->plan;
	const struct samples *s = &run->samples;

	static const char *const titles[PLAN_PROTOS] = {"TCP", "UDP", "UDP multicast", "raw IP",
							"unix stream"};

	printf("layover %s: %s%s, %llu", LAYOVER_VERSION, titles[plan->proto],
	       plan->crr ? " connect/request/close" : "", (unsigned long long)plan->bytes);
	if (plan->reply_bytes && plan->reply_bytes != plan->bytes)
		printf(" and %llu", (unsigned long long)plan->reply_bytes);
	printf(" bytes");
	if (plan->io || plan->server_io)
		printf(", io %s and %s", io_method_names[plan->io],
		       io_method_names[plan->server_io]);
	print_cpu("client", plan->client_cpu);
	print_cpu("server", plan->server_cpu);
	printf("\n%llu trips in %.3f s, after %llu trips of warm-up",
	       (unsigned long long)report->rtt.count, (double)run->duration_ns / NS_PER_S,
	       (unsigned long long)run->warmup_trips);
	if (s->lost + s->late + s->duplicated + s->out_of_order)
		printf("\nlost %llu, late %llu, duplicated %llu, out of order %llu",
		       (unsigned long long)s->lost, (unsigned long long)s->late,
		       (unsigned long long)s->duplicated, (unsigned long long)s->out_of_order);
	if (run->lost_unmeasured)
		printf("\nlost in warm-up and between blocks, not measured: %llu",
		       (unsigned long long)run->lost_unmeasured);
	printf("\n\n");
}

/* "38 % is server.wakeup (CPU 0→1)" */
static void describe_top(const struct style *style, const struct band_top *top, char *text,
			 size_t size)
{
	const char *key = stage_infos[top->stage].key;
	double percent = top->share * 100;

	if (top->cpu_from >= 0 && top->cpu_from != top->cpu_to)
		snprintf(text, size, "%.0f %% is %s (CPU %d%s%d)", percent, key, top->cpu_from,
			 style->arrow, top->cpu_to);
	else if (top->cpu_to >= 0)
		snprintf(text, size, "%.0f %% is %s (CPU %d)", percent, key, top->cpu_to);
	else
		snprintf(text, size, "%.0f %% is %s", percent, key);
}

/* Names the stage that dominates the trips of a band, and the next one if it is about as large. */
static void print_sentence(const struct style *style, const char *where,
			   const struct band_top *tops)
{
	const struct stage_info *first = &stage_infos[tops[0].stage];
	bool two = tops[1].stage >= 0 && tops[1].share >= tops[0].share / 2;
	const struct stage_info *second = two ? &stage_infos[tops[1].stage] : first;
	char one[96], other[96] = "", line[512];

	describe_top(style, &tops[0], one, sizeof(one));
	if (two)
		describe_top(style, &tops[1], other, sizeof(other));
	snprintf(line, sizeof(line), "%s, %s%s%s: %s%s%s.", where, one, two ? ", " : "", other,
		 first->text, strcmp(first->text, second->text) ? "; " : "",
		 strcmp(first->text, second->text) ? second->text : "");
	text_wrapped(line, 0, 2);
}

static void print_verdict(const struct style *style, const struct split *split)
{
	putchar('\n');
	if (split->band_known[BAND_P50])
		print_sentence(style, "Of the median trip", split->top[BAND_P50]);
	if (split->band_known[BAND_P99])
		print_sentence(style, "Of the p99 trips", split->top[BAND_P99]);
}

/* Only where the server's end is not simply seen from here. */
static void print_server(const struct server_report *server)
{
	char line[512];

	if (!server->traced)
		snprintf(
			line, sizeof(line),
			"The server's host is not traced (%s): server.host holds the wire both ways "
			"and the whole server.",
			server->reason);
	else if (!server->same_kernel)
		snprintf(line, sizeof(line),
			 "The server's end was recorded by its own kernel, %s, and clock: "
			 "client.network holds the wire both ways.",
			 server->kernel);
	else
		return;
	text_wrapped(line, 0, 2);
}

static void print_nic(const struct nic_report *nic)
{
	char line[256];

	if (!nic->interface[0])
		return;
	snprintf(line, sizeof(line),
		 "%s stamped %llu trips; its clock is known to +-%llu ns, and so are client.nic "
		 "and what follows it.",
		 nic->interface, (unsigned long long)nic->stamped,
		 (unsigned long long)nic->uncertainty_ns);
	text_wrapped(line, 0, 2);
}

static void print_counters(const struct report *report)
{
	const struct split *split = report->split;

	printf("trips %llu, matched %llu, partial %llu, unmatched %llu, dropped %llu, skipped %llu\n",
	       (unsigned long long)split->trips, (unsigned long long)split->matched,
	       (unsigned long long)split->partial, (unsigned long long)split->unmatched,
	       (unsigned long long)report->counters.dropped,
	       (unsigned long long)report->counters.recursion_misses);
}

static void print_effect(const char *name, const struct overhead_figure *f)
{
	printf("  %s  %.0f ns without, %.0f ns with: %+.0f ns (95 %%: %+.0f to %+.0f)\n", name,
	       f->off_ns, f->on_ns, f->difference_ns, f->low_ns, f->high_ns);
}

static void print_overhead(const struct overhead *overhead)
{
	if (overhead->pairs < 2) {
		text_wrapped("The run was too short to tell what the hooks cost: measure longer.",
			     0, 2);
		return;
	}
	printf("\nThe hooks themselves, over %zu pairs of blocks without and with them:\n",
	       overhead->pairs);
	print_effect("p50", &overhead->p50);
	print_effect("p99", &overhead->p99);
}

int view_text(const struct report *report)
{
	struct style style = view_style();

	print_load(report);
	print_table(&style, report);
	text_statistics(&style, report);
	text_os_cost(&style, &report->os);
	text_hist(&report->hist);
	text_remarks(report);
	if (report->split) {
		print_verdict(&style, report->split);
		print_server(&report->server);
		print_nic(&report->nic);
		print_counters(report);
	}
	if (report->overhead.pairs)
		print_overhead(&report->overhead);
	if (report->noise)
		view_noise_text(report->noise, report->rtt.count);
	return 0;
}
