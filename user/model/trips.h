/* SPDX-License-Identifier: GPL-2.0-only */
/* The stage vectors of all measured trips, stored by stage: only stages that occur take memory. */
#ifndef LAYOVER_TRIPS_H
#define LAYOVER_TRIPS_H

#include <stddef.h>
#include <stdint.h>

#include "model/path.h"

struct large_time {
	size_t trip;
	int stage;
	uint64_t ns;
};

struct trips {
	size_t count, capacity;
	uint32_t *stage[STAGES]; /* ns; NULL: no trip passed it; UINT32_MAX: look in `large` */
	uint64_t passed[STAGES]; /* how many trips did */
	uint16_t (*cpu)[SIDES][LEG_CPUS];
	uint8_t *flags;
	struct large_time *large; /* times of 4.29 s and more, which are few */
	size_t large_count;
};

/* Grows to count trips; new ones are unmatched and hold no time until they are set. 0 or -ENOMEM. */
int trips_grow(struct trips *trips, size_t count);

/* Stores one trip, once. 0 or -ENOMEM. */
int trips_set(struct trips *trips, size_t index, const struct trip *trip);

/* ns that the trip spent in the stage, 0 if it did not pass it. */
uint64_t trips_stage(const struct trips *trips, size_t index, int stage);

void trips_free(struct trips *trips);

#endif
