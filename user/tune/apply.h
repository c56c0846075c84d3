/* SPDX-License-Identifier: GPL-2.0-only */
/* Making the changes of a plan, and taking them back. */
#ifndef LAYOVER_APPLY_H
#define LAYOVER_APPLY_H

#include "tune/journal.h"
#include "tune/plan.h"

/*
 * Makes the changes in order, each noted in the journal before and after, and read back. A change that is refused is
 * CHANGE_FAILED; without keep_going no more are made then. Returns how many failed, or -errno with a sentence when
 * the journal cannot be written; what is begun is then to be restored.
 */
int apply_make(struct plan *plan, struct journal *journal, bool keep_going);

/*
 * Gives a setting, which the journal must have as begun, a value and reads it back. 0; 1: it was taken, but reads
 * differently; -errno as the kernel said it. No sentence.
 */
int apply_value(const struct setting_ref *ref, const char *value);

/* What became of one setting that was to be restored. */
enum restored {
	RESTORED_NOT,     /* it was never begun */
	RESTORED_ALREADY, /* it had its old value */
	RESTORED_NOW,
	RESTORED_GONE,  /* its device is gone, and the setting with it */
	RESTORED_FAILED /* it does not take its old value */
};

struct restoration {
	enum restored *what; /* per change; free() it */
	int *errors; /* of RESTORED_FAILED: -errno, 0: taken, but reads differently; free() it */
	int failed;  /* how many */
};

/*
 * Gives all settings that may have been written, and those disturbed by them, their old values. Settings depend on
 * each other (a table may only name queues that there are; channels reset affinities), so it goes over them until
 * nothing differs. 0 or -ENOMEM with a sentence.
 */
int apply_restore(const struct plan *plan, struct restoration *out);

void restoration_free(struct restoration *out);

#endif
