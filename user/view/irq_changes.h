/* SPDX-License-Identifier: GPL-2.0-only */
/* What `layover irq` prints about changes. */
#ifndef LAYOVER_VIEW_IRQ_CHANGES_H
#define LAYOVER_VIEW_IRQ_CHANGES_H

#include "tune/apply.h"
#include "tune/plan.h"
#include "tune/verify.h"

/* Text, or one JSON object. All return 0 or -errno with a sentence. */

/* Old and new values, why, and what a person would type. The JSON is what `apply --plan` reads. */
int view_plan(const struct plan *plan, bool json);

/*
 * What became of each change; restored: those taken back because one was refused, or NULL.
 */
int view_applied(const struct plan *plan, const struct restoration *restored, bool json);

/* What is still so, and what is not. */
int view_checks(const struct checks *checks, bool json);

/* What became of each setting of one journal. As JSON: an array to be put together; text is printed. */
json_t *view_restored_json(const struct plan *plan, const struct restoration *restored);
void view_restored_text(const struct plan *plan, const struct restoration *restored);

#endif
