/* SPDX-License-Identifier: GPL-2.0-only */
/* The verbs of `layover irq`; each as a command's run(). */
#ifndef LAYOVER_CMD_IRQ_H
#define LAYOVER_CMD_IRQ_H

int irq_plan(int argc, char **argv);
int irq_apply(int argc, char **argv);
int irq_verify(int argc, char **argv);
int irq_undo(int argc, char **argv);

#endif
