/* SPDX-License-Identifier: GPL-2.0-only */
/* The probe effect: what the hooks themselves add to a round trip, from interleaved blocks. Pure C. */
#ifndef LAYOVER_OVERHEAD_H
#define LAYOVER_OVERHEAD_H

#include <stddef.h>
#include <stdint.h>

/* One pair of neighbouring blocks, hooks detached and attached; ns. */
struct overhead_pair {
	double off[2], on[2]; /* p50, p99 of the block's round trips */
};

struct overhead_figure {
	double off_ns, on_ns;   /* medians over the blocks */
	double difference_ns;   /* median of the pairs' differences */
	double low_ns, high_ns; /* its 95 % confidence interval, whatever their distribution */
};

struct overhead {
	size_t pairs;
	struct overhead_figure p50, p99;
};

/* p50 and p99 of one block's round trips, sorted in place; n must be positive. */
void overhead_block(uint64_t *rtt_ns, size_t n, double out[2]);

/*
 * At least two pairs are needed; with fewer, *out has pairs and zeros. Medians, because a block in which
 * the machine did something else says nothing about the hooks. The interval is that of the sign test: order
 * statistics of the differences; with fewer than six pairs it is all of them.
 */
void overhead_of(const struct overhead_pair *pairs, size_t n, struct overhead *out);

#endif
