// SPDX-License-Identifier: GPL-2.0-only
#include "model/hist.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

enum { NS_IN_US = 1000 };

int hist_of(const struct ordered *values, struct hist *hist)
{
	int64_t start = (int64_t)hist->start_us * NS_IN_US, value;
	size_t cursor = 0;
	uint64_t n;

	hist->counts = calloc(hist->buckets + 1, sizeof(*hist->counts));
	if (!hist->counts)
		return err_set(-ENOMEM, "no memory for a histogram of %llu buckets",
			       (unsigned long long)hist->buckets);
	while (ordered_next(values, &cursor, &value, &n)) {
		uint64_t bucket;

		if (value < start) {
			hist->below += n;
			continue;
		}
		bucket = (uint64_t)(value - start) / (hist->length_us * NS_IN_US);
		if (bucket < hist->buckets)
			hist->counts[bucket] += n;
		else
			hist->above += n;
	}
	return 0;
}

void hist_free(struct hist *hist)
{
	free(hist->counts);
	hist->counts = NULL;
}

uint64_t hist_used(const struct hist *hist)
{
	uint64_t used = hist->counts ? hist->buckets : 0;

	while (used && !hist->counts[used - 1])
		used--;
	return used;
}
