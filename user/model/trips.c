// SPDX-License-Identifier: GPL-2.0-only
#include "model/trips.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int no_memory(void)
{
	return err_set(-ENOMEM,
		       "out of memory for the split; measure fewer trips or use --no-split");
}

static int grow_array(void **array, size_t old_count, size_t new_count, size_t size)
{
	char *grown = realloc(*array, new_count * size);

	if (!grown)
		return no_memory();
	memset(grown + old_count * size, 0, (new_count - old_count) * size);
	*array = grown;
	return 0;
}

static int grow_capacity(struct trips *trips, size_t capacity)
{
	size_t old = trips->capacity;
	int rc = 0;

	for (int s = 0; s < STAGES && !rc; s++)
		if (trips->stage[s])
			rc = grow_array((void **)&trips->stage[s], old, capacity, sizeof(uint32_t));
	if (!rc)
		rc = grow_array((void **)&trips->cpu, old, capacity, sizeof(*trips->cpu));
	if (!rc)
		rc = grow_array((void **)&trips->flags, old, capacity, sizeof(*trips->flags));
	if (!rc)
		trips->capacity = capacity;
	return rc;
}

int trips_grow(struct trips *trips, size_t count)
{
	size_t capacity = trips->capacity ? trips->capacity : 4096;
	int rc = 0;

	while (capacity < count)
		capacity *= 2;
	if (capacity > trips->capacity)
		rc = grow_capacity(trips, capacity);
	if (rc)
		return rc;
	for (size_t i = trips->count; i < count; i++)
		trips->flags[i] = TRIP_UNMATCHED;
	trips->count = count;
	return 0;
}

static int store(struct trips *trips, size_t index, int stage, uint64_t ns)
{
	if (!trips->stage[stage]) {
		trips->stage[stage] = calloc(trips->capacity, sizeof(uint32_t));
		if (!trips->stage[stage])
			return no_memory();
	}
	trips->passed[stage]++;
	if (ns < UINT32_MAX) {
		trips->stage[stage][index] = (uint32_t)ns;
		return 0;
	}
	struct large_time *large =
		realloc(trips->large, (trips->large_count + 1) * sizeof(*trips->large));

	if (!large)
		return no_memory();
	trips->large = large;
	trips->large[trips->large_count++] = (struct large_time){index, stage, ns};
	trips->stage[stage][index] = UINT32_MAX;
	return 0;
}

int trips_set(struct trips *trips, size_t index, const struct trip *trip)
{
	for (int s = 0; s < STAGES; s++) {
		int rc = trip->seen & 1ULL << s ? store(trips, index, s, trip->stage_ns[s]) : 0;

		if (rc)
			return rc;
	}
	memcpy(trips->cpu[index], trip->cpu, sizeof(trip->cpu));
	trips->flags[index] = trip->flags;
	return 0;
}

uint64_t trips_stage(const struct trips *trips, size_t index, int stage)
{
	uint32_t ns = trips->stage[stage] ? trips->stage[stage][index] : 0;

	if (ns != UINT32_MAX)
		return ns;
	for (size_t i = 0; i < trips->large_count; i++)
		if (trips->large[i].trip == index && trips->large[i].stage == stage)
			return trips->large[i].ns;
	return ns;
}

void trips_free(struct trips *trips)
{
	for (int s = 0; s < STAGES; s++)
		free(trips->stage[s]);
	free(trips->cpu);
	free(trips->flags);
	free(trips->large);
	*trips = (struct trips){0};
}
