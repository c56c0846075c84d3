// SPDX-License-Identifier: GPL-2.0-only
/* The page of CPUs and interrupts. */
#include <stdio.h>
#include <string.h>

#include "tui/top.h"

enum { NUMBER = 9 };

static void put_rate(const struct screen *s, int y, int x, enum ink ink, double rate)
{
	char text[TOP_TEXT_MAX];

	if (rate < 0)
		snprintf(text, sizeof(text), "-");
	else
		top_text_rate(rate, text);
	screen_put_right(s, y, x, NUMBER, ink, text);
}

static void put_share(const struct screen *s, int y, int x, enum ink ink, double share)
{
	char text[16];

	if (share < 0)
		snprintf(text, sizeof(text), "-");
	else
		snprintf(text, sizeof(text), "%.1f%%", share * 100);
	screen_put_right(s, y, x, NUMBER, ink, text);
}

/* Flows whose last message's softirq ran there. */
static int flows_on(const struct tui_top *tui, int cpu)
{
	int n = 0;

	for (size_t i = 0; i < tui->shot.count; i++)
		n += tui->shot.rows[i].turns && tui->shot.rows[i].cpu_softirq == cpu;
	return n;
}

static void draw_cpu(const struct tui_top *tui, const struct cpu_load_cpu *c, int y, enum ink ink)
{
	const struct screen *s = tui->screen;
	const struct top_cpu *now = &tui->cpus[c->cpu], *then = &tui->cpus_before[c->cpu];
	double seconds = (double)tui->interval_ns / 1e9;
	char text[32];
	int x = 5;

	snprintf(text, sizeof(text), "%4d", c->cpu);
	screen_put(s, y, 0, 5, ink, text);
	put_share(s, y, x, ink, c->busy);
	put_rate(s, y, x += NUMBER, ink, c->irq_rate);
	put_rate(s, y, x += NUMBER, ink, c->net_rx_rate);
	put_share(s, y, x += NUMBER, ink, c->ksoftirqd);
	put_rate(s, y, x += NUMBER, ink, (double)(now->arrivals - then->arrivals) / seconds);
	put_rate(s, y, x += NUMBER, ink, (double)(now->woken - then->woken) / seconds);
	put_rate(s, y, x += NUMBER, ink,
		 (double)(now->woken_by_others - then->woken_by_others) / seconds);
	snprintf(text, sizeof(text), "%d", flows_on(tui, c->cpu));
	screen_put_right(s, y, x + NUMBER, NUMBER, ink, text);
}

static void draw_cpu_head(const struct screen *s, int y)
{
	static const char *const names[] = {"BUSY",     "IRQ/S",   "NET_RX/S", "KSOFTIRQ",
					    "ARRIVE/S", "WOKEN/S", "X-CPU/S",  "FLOWS"};
	int x = 5;

	screen_put(s, y, 0, s->columns, INK_HEAD, " CPU");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, x += NUMBER)
		screen_put_right(s, y, x, NUMBER, INK_HEAD, names[i]);
}

static void draw_irq_head(const struct screen *s, int y)
{
	screen_put(s, y, 0, s->columns, INK_HEAD, " IRQ DEVICE                QUEUE  CPUS");
	screen_put_right(s, y, 41, NUMBER, INK_HEAD, "RATE/S");
	screen_put(s, y, 52, s->columns, INK_HEAD, "BY CPU");
}

static void draw_irq(const struct tui_top *tui, const struct cpu_load_irq *irq, int y, enum ink ink)
{
	const struct screen *s = tui->screen;
	char text[160], rate[TOP_TEXT_MAX];
	size_t used = 0;

	snprintf(text, sizeof(text), "%4d %-21.21s %-6.6s %-8.8s", irq->irq, irq->name, irq->queue,
		 irq->affinity);
	screen_put(s, y, 0, 41, ink, text);
	put_rate(s, y, 41, ink, irq->rate);
	text[0] = '\0';
	for (int i = 0; i < tui->load->cpu_count && used + 32 < sizeof(text); i++) {
		if (irq->rates[i] <= 0)
			continue;
		top_text_rate(irq->rates[i], rate);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%d:%.12s ",
					 tui->load->cpus[i].cpu, rate);
	}
	screen_put(s, y, 52, s->columns - 52, ink, text);
}

/* CPUs, a blank, interrupts: one list with two heads, scrolled as one. */
void tui_draw_cpus(struct tui_top *tui)
{
	const struct screen *s = tui->screen;
	struct tui_cursor *cursor = &tui->cursors[PAGE_CPUS];
	int bottom = tui_bottom(tui), cpus = tui->load->cpu_count, y = TUI_TOP + 1;
	size_t count = tui_count(tui, PAGE_CPUS);

	tui_scroll(cursor, bottom - y - 2, count);
	if (cursor->first < (size_t)cpus)
		draw_cpu_head(s, TUI_TOP);
	else
		draw_irq_head(s, TUI_TOP);
	for (size_t i = cursor->first; i < count && y < bottom; i++, y++) {
		enum ink ink = i == cursor->at ? INK_SELECTED : INK_PLAIN;

		if (i == (size_t)cpus && cursor->first < (size_t)cpus) {
			draw_irq_head(s, ++y);
			if (++y >= bottom)
				break;
		}
		if (ink == INK_SELECTED)
			screen_put(s, y, 0, s->columns, ink, "");
		if (i < (size_t)cpus)
			draw_cpu(tui, &tui->load->cpus[i], y, ink);
		else
			draw_irq(tui, &tui->load->irqs[i - (size_t)cpus], y, ink);
	}
}
