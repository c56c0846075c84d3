/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that say what is computed and how it is shown. */
#ifndef LAYOVER_OUTPUTS_H
#define LAYOVER_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"
#include "load/plan.h"
#include "view/formats.h"

struct outputs {
	const char *dump, *full_log;      /* files, or NULL */
	const struct view_format *format; /* NULL: text */
	bool json;
	bool half;           /* show half round trips */
	bool histogram_only; /* bounded memory: bins instead of samples */
	bool count_syscalls;
	uint64_t interval_ns; /* interim lines, 0: none */
	double until_ci;      /* per cent, 0: no such limit */
	struct {
		uint64_t start_us, length_us, buckets;
	} hist;
};

extern const struct setting output_settings[];

/* What only the whole command line can tell; may bound the plan's time. -EINVAL with a sentence. */
int outputs_check(struct outputs *o, struct load_plan *plan);

/*
 * Says how much memory a run of this many trips keeps if that is much. -ENOMEM with a sentence when it is
 * more than there is.
 */
int outputs_memory(const struct outputs *o, const struct load_plan *plan, bool split);

#endif
