/* SPDX-License-Identifier: GPL-2.0-only */
/* What disturbed a run, as sentences and as JSON. */
#ifndef LAYOVER_VIEW_NOISE_H
#define LAYOVER_VIEW_NOISE_H

#include <jansson.h>
#include <stdint.h>

#include "load/noise.h"

/* One line "note: …" for each thing that is worth one; trips: how many were measured. */
void view_noise_text(const struct noise_report *noise, uint64_t trips);

/* "client", "server" (null: not known) and "shared_cpu". A new reference. */
json_t *view_noise_json(const struct noise_report *noise);

#endif
