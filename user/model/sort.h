/* SPDX-License-Identifier: GPL-2.0-only */
/* Order. Many nanoseconds are sorted by their bytes, so that the time grows with their number only. Pure C. */
#ifndef LAYOVER_SORT_H
#define LAYOVER_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
	int64_t key;
	size_t index;
};

/* Ascending order. scratch has room for n elements as well; what it holds afterwards is undefined. */
void sort_values(int64_t *values, int64_t *scratch, size_t n);

/* By key; equal keys keep their order. */
void sort_items(struct sort_item *items, struct sort_item *scratch, size_t n);

/* The median of a few figures, which it leaves in ascending order; n must be positive. */
double sort_median(double *values, size_t n);

#endif
