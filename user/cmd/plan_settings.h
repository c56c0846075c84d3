/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of a load_plan, shared by the commands that make load. */
#ifndef LAYOVER_PLAN_SETTINGS_H
#define LAYOVER_PLAN_SETTINGS_H

#include "base/settings.h"

extern const struct setting plan_settings[]; /* into a struct load_plan */

#endif
