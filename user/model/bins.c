// SPDX-License-Identifier: GPL-2.0-only
#include "model/bins.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Welford's: a sum of squares would lose what matters of a narrow distribution far from zero. */
void moments_add(struct moments *m, int64_t value)
{
	double from_mean = (double)value - m->mean;

	if (!m->count || value < m->min)
		m->min = value;
	if (!m->count || value > m->max)
		m->max = value;
	m->count++;
	m->mean += from_mean / (double)m->count;
	m->squares += from_mean * ((double)value - m->mean);
}

void moments_merge(struct moments *into, const struct moments *from)
{
	double a = (double)into->count, b = (double)from->count;
	double apart = from->mean - into->mean;

	if (!from->count)
		return;
	if (!into->count) {
		*into = *from;
		return;
	}
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->squares += from->squares + apart * apart * a * b / (a + b);
	into->mean += apart * b / (a + b);
	into->count += from->count;
}

double moments_stddev(const struct moments *m)
{
	return m->count > 1 ? sqrt(m->squares / (double)(m->count - 1)) : 0;
}

int bins_open(struct bins *bins)
{
	*bins = (struct bins){.counts = calloc(BINS, sizeof(*bins->counts))};
	return bins->counts ? 0 : err_set(-ENOMEM, "no memory for a histogram");
}

void bins_free(struct bins *bins)
{
	free(bins->counts);
	*bins = (struct bins){0};
}

void bins_clear(struct bins *bins)
{
	memset(bins->counts, 0, BINS * sizeof(*bins->counts));
	bins->exact = (struct moments){0};
}

/* Octave 0 holds 0 … BINS_PER_OCTAVE - 1, each value its own bin; from there on bins double in width. */
static size_t bin_of(uint64_t value)
{
	int octave;

	if (value < BINS_PER_OCTAVE)
		return value;
	octave = 63 - __builtin_clzll(value) - BINS_BITS;
	return (size_t)(octave + 1) * BINS_PER_OCTAVE + ((value >> octave) & (BINS_PER_OCTAVE - 1));
}

void bins_add(struct bins *bins, int64_t value)
{
	if (value < 0)
		value = 0;
	moments_add(&bins->exact, value);
	bins->counts[bin_of((uint64_t)value)]++;
}

void bins_merge(struct bins *into, const struct bins *from)
{
	moments_merge(&into->exact, &from->exact);
	for (size_t i = 0; i < BINS; i++)
		into->counts[i] += from->counts[i];
}

int64_t bins_value(const struct bins *bins, size_t bin)
{
	size_t octave = bin / BINS_PER_OCTAVE;
	int64_t value = (int64_t)bin;

	if (octave > 0) {
		uint64_t width = 1ULL << (octave - 1);

		value = (int64_t)((BINS_PER_OCTAVE + bin % BINS_PER_OCTAVE) * width + width / 2);
	}
	if (value < bins->exact.min)
		return bins->exact.min;
	return value > bins->exact.max ? bins->exact.max : value;
}
