// SPDX-License-Identifier: GPL-2.0-only
#include "tune/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { PASSES = 5 };

/* 0: it reads as wanted; 1: it does not; -errno. */
static int differs(const struct setting_ref *ref, const char *wanted)
{
	char *now = malloc(KNOB_TEXT);
	int rc = now ? knob_read(ref, now) : -ENOMEM;

	if (!rc)
		rc = !ref->knob->same(now, wanted);
	free(now);
	return rc;
}

int apply_value(const struct setting_ref *ref, const char *value)
{
	int left = differs(ref, value), written;

	if (!left)
		return 0;
	written = knob_write(ref, value);
	err_clear();
	journal_step();
	/* Drivers take what they do not do, and some say no to what they have done. */
	left = differs(ref, value);
	return left && written ? written : left;
}

/* Sets state and error. 0, or -errno with a sentence about the journal. */
static int make_one(struct plan *plan, int i, struct journal *journal)
{
	struct change *c = &plan->rows[i];
	int rc = journal_note(journal, i, CHANGE_BEGUN, 0), refused;

	if (rc)
		return rc;
	c->state = CHANGE_BEGUN;
	journal_step();
	refused = apply_value(&c->ref, c->new);
	c->state = refused ? CHANGE_FAILED : CHANGE_DONE;
	c->error = refused < 0 ? refused : 0;
	rc = journal_note(journal, i, c->state, c->error);
	journal_step();
	return rc;
}

int apply_make(struct plan *plan, struct journal *journal, bool keep_going)
{
	int failed = 0, rc = 0;

	journal_step();
	for (int i = 0; i < plan->n && !rc && (keep_going || !failed); i++) {
		if (!plan->rows[i].new)
			continue;
		rc = make_one(plan, i, journal);
		failed += plan->rows[i].state == CHANGE_FAILED;
	}
	return rc ? rc : failed;
}

static bool any_begun(const struct plan *plan)
{
	for (int i = 0; i < plan->n; i++)
		if (plan->rows[i].state != CHANGE_PLANNED)
			return true;
	return false;
}

/* One setting once more. True: something was written. */
static bool restore_one(const struct change *c, enum restored *what, int *error)
{
	int now = differs(&c->ref, c->old);

	*error = now < 0 ? now : 0;
	if (!now) {
		if (*what != RESTORED_NOW)
			*what = RESTORED_ALREADY;
		return false;
	}
	if (now == -ENODEV) {
		*what = RESTORED_GONE;
		return false;
	}
	if (now < 0) {
		*what = RESTORED_FAILED;
		return false;
	}
	now = apply_value(&c->ref, c->old);
	*what = now ? RESTORED_FAILED : RESTORED_NOW;
	*error = now < 0 ? now : 0;
	return true;
}

int apply_restore(const struct plan *plan, struct restoration *out)
{
	bool begun = any_begun(plan), wrote = begun;

	*out = (struct restoration){
		.what = calloc((size_t)plan->n + 1, sizeof(*out->what)),
		.errors = calloc((size_t)plan->n + 1, sizeof(*out->errors)),
	};
	if (!out->what || !out->errors) {
		restoration_free(out);
		return err_set(-ENOMEM, "no memory to restore");
	}
	/* The last written goes first; what that disturbs, and what it waits for, the next pass finds. */
	for (int pass = 0; pass < PASSES && wrote; pass++) {
		wrote = false;
		for (int i = plan->n - 1; i >= 0; i--)
			if (plan->rows[i].state != CHANGE_PLANNED || !plan->rows[i].new)
				wrote |=
					restore_one(&plan->rows[i], &out->what[i], &out->errors[i]);
	}
	for (int i = 0; i < plan->n; i++)
		out->failed += out->what[i] == RESTORED_FAILED;
	return 0;
}

void restoration_free(struct restoration *out)
{
	free(out->what);
	free(out->errors);
	out->what = NULL;
	out->errors = NULL;
}
