/* SPDX-License-Identifier: GPL-2.0-only */
/* What disturbed a run, as sentences and as JSON. */
#ifndef LAYOVER_VIEW_NOISE_H
#define LAYOVER_VIEW_NOISE_H

#include <jansson.h>
#include <stdint.h>

#include "load/noise.h"

struct noise_report {
	struct noise client, server; /* known: they have told */
	int shared_cpu;              /* both ends were on it; -1: on different ones, or not known */
};

/* One line "note: …" for each thing that is worth one; trips: how many were measured. */
void view_noise_text(const struct noise_report *noise, uint64_t trips);

/* "client", "server" (null: not known) and "shared_cpu". A new reference. */
json_t *view_noise_json(const struct noise_report *noise);

#endif
