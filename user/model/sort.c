// SPDX-License-Identifier: GPL-2.0-only
#include "model/sort.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 64 / DIGIT_BITS, DIGIT_VALUES = 1 << DIGIT_BITS };

/* Both kinds of elements begin with the key. Its sign bit flipped, it sorts as unsigned. */
static inline unsigned int digit_of(const char *element, int digit)
{
	uint64_t key;

	memcpy(&key, element, sizeof(key));
	return ((key ^ (1ULL << 63)) >> (digit * DIGIT_BITS)) & (DIGIT_VALUES - 1);
}

static inline void count_digits(const char *elements, size_t n, size_t size,
				size_t counts[DIGITS][DIGIT_VALUES])
{
	for (size_t i = 0; i < n; i++)
		for (int d = 0; d < DIGITS; d++)
			counts[d][digit_of(elements + i * size, d)]++;
}

/* Distributes by one digit, stably. */
static inline void pass(const char *from, char *to, size_t n, size_t size, int digit,
			const size_t counts[DIGIT_VALUES])
{
	size_t place[DIGIT_VALUES], sum = 0;

	for (int v = 0; v < DIGIT_VALUES; v++) {
		place[v] = sum;
		sum += counts[v];
	}
	for (size_t i = 0; i < n; i++) {
		const char *element = from + i * size;

		memcpy(to + place[digit_of(element, digit)]++ * size, element, size);
	}
}

/* Least significant digit first. A digit that is the same everywhere, as most are, costs nothing. */
static inline void sort(char *elements, char *scratch, size_t n, size_t size)
{
	size_t counts[DIGITS][DIGIT_VALUES] = {0};
	char *from = elements, *to = scratch;

	if (n < 2)
		return;
	count_digits(elements, n, size, counts);
	for (int d = 0; d < DIGITS; d++) {
		char *swap = from;

		if (counts[d][digit_of(elements, d)] == n)
			continue;
		pass(from, to, n, size, d, counts[d]);
		from = to;
		to = swap;
	}
	if (from != elements)
		memcpy(elements, from, n * size);
}

void sort_values(int64_t *values, int64_t *scratch, size_t n)
{
	sort((char *)values, (char *)scratch, n, sizeof(*values));
}

void sort_items(struct sort_item *items, struct sort_item *scratch, size_t n)
{
	sort((char *)items, (char *)scratch, n, sizeof(*items));
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sort_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_double);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}
