/* SPDX-License-Identifier: GPL-2.0-only */
/* A histogram of equal buckets between limits that the user sets, in whole microseconds. Pure C. */
#ifndef LAYOVER_HIST_H
#define LAYOVER_HIST_H

#include <stdint.h>

#include "model/dist.h"

enum { HIST_BUCKETS_MAX = 100000 };

/* Bucket i counts start + i * length <= value < start + (i + 1) * length. */
struct hist {
	uint64_t start_us, length_us, buckets; /* buckets 0: no histogram is wanted */
	uint64_t *counts;                      /* one per bucket, owned: hist_free() */
	uint64_t below, above;                 /* values outside of all buckets */
};

/* Counts values, after the limits were set. 0 or -ENOMEM with a sentence. */
int hist_of(const struct ordered *values, struct hist *hist);
void hist_free(struct hist *hist);

/* Buckets without the empty ones at the end. */
uint64_t hist_used(const struct hist *hist);

#endif
