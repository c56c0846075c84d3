/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of a load_plan, shared by the commands that make load. */
#ifndef LAYOVER_PLAN_SETTINGS_H
#define LAYOVER_PLAN_SETTINGS_H

#include "base/settings.h"
#include "load/plan.h"

/* Both into a struct load_plan: what every load has, and what only round trips have. */
extern const struct setting plan_common_settings[];
extern const struct setting plan_trip_settings[];

/* In the lab both ends are pinned, where no CPU was chosen: the client to the first, the server to another. */
void plan_pin_lab(struct load_plan *plan);

#endif
