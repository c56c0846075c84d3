/* SPDX-License-Identifier: GPL-2.0-only */
/* Is what was applied still so? */
#ifndef LAYOVER_VERIFY_H
#define LAYOVER_VERIFY_H

#include <stdint.h>

#include "tune/journal.h"

struct check {
	const struct change *change;
	char *now;      /* NULL: it cannot be read */
	int error;      /* why, -errno */
	uint64_t stray; /* interrupts that came on other CPUs in the interval, beyond one */
	bool drifted;
};

struct checks {
	struct journal *journals;
	int journal_count;
	struct check *rows;
	int n, drifted;
};

/*
 * Reads all journals and the settings that they made; the newest one counts where several set the same. With an
 * interval, interrupts are counted over it: the kernel moves one with its next occurrence, so one straggler is
 * none. 0 or -errno with a sentence; checks_free() either way.
 */
int checks_make(struct checks *checks, uint64_t interval_ns);

void checks_free(struct checks *checks);

#endif
