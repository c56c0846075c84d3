/* SPDX-License-Identifier: GPL-2.0-only */
/* The verbs of `layover irq`; each as a command's run(). */
#ifndef LAYOVER_CMD_IRQ_H
#define LAYOVER_CMD_IRQ_H

#include "tune/apply.h"
#include "view/irq.h"

int irq_plan(int argc, char **argv);
int irq_apply(int argc, char **argv);
int irq_verify(int argc, char **argv);
int irq_undo(int argc, char **argv);

int irq_tune(int argc, char **argv);

/* --- changing things, with journal_lock() held --------------------------------------------------- */

/* What forbids a plan before anything is changed. 0 or -errno with a sentence. */
int irq_guard(const struct machine *machine, const struct plan *plan, bool yes,
	      bool despite_irqbalance);

/*
 * Restores what is begun and removes the journal when all is as it was. 0 or -errno with a sentence;
 * restoration_free() either way.
 */
int irq_restore(const struct plan *plan, struct journal *journal, struct restoration *out);

/* Says the sentence of rc; the exit code for it. */
int irq_give_up(int rc);

/* --- the flows behind the queues ----------------------------------------------------------------- */

struct irq_flows_watch {
	struct watching *watching; /* NULL: not open */
};

/* Hooks on all TCP flows. 0 or -errno with a sentence; nothing is left open then. */
int irq_flows_open(struct irq_flows_watch *w);

/*
 * Looks on for that long, or until Ctrl-C; fills the flows that come by the machine's devices. 0 or -errno with a
 * sentence; irq_receivers_free() either way.
 */
int irq_flows_gather(struct irq_flows_watch *w, uint64_t ns, const struct machine *machine,
		     struct irq_receivers *out);

void irq_flows_close(struct irq_flows_watch *w);
void irq_receivers_free(struct irq_receivers *all);

#endif
