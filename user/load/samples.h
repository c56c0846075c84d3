/* SPDX-License-Identifier: GPL-2.0-only */
/* Raw measurements of every trip, in memory that is touched before it is needed. */
#ifndef LAYOVER_SAMPLES_H
#define LAYOVER_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as {0}. start_ns[i] and rtt_ns[i] belong to the i-th trip that came back in time. */
struct samples {
	uint64_t *start_ns; /* CLOCK_MONOTONIC, just before send() */
	uint64_t *rtt_ns;   /* from there to just after the recv() that completed the reply */
	/*
	 * Open loop: start_ns is when the message should have been sent, rtt_ns the response time from then,
	 * and this the service time from when it really was sent. NULL unless with_service is set before.
	 */
	uint64_t *service_ns;
	bool with_service;
	size_t count, capacity;
	uint64_t lost;         /* trips without a reply within the timeout; they have no sample */
	uint64_t late;         /* replies to trips already counted as lost */
	uint64_t duplicated;   /* further replies to a trip that was answered */
	uint64_t out_of_order; /* late replies overtaken by the reply to a later trip */
};

/*
 * Makes room for `more` further samples and touches it, so that storing them causes no page fault.
 * May move the arrays. 0 or -ENOMEM with a sentence; the samples stay valid either way.
 */
int samples_reserve(struct samples *samples, size_t more);

/* Exchanges the arrays, not the counters. */
void samples_swap(struct samples *a, struct samples *b);

/* Adds a copy of the other ones' samples, not their counters. 0 or -ENOMEM with a sentence. */
int samples_append(struct samples *samples, const struct samples *more);

/* Adds the other ones' counters. */
void samples_count(struct samples *samples, const struct samples *more);

/* Gives the memory back and starts again from nothing. */
void samples_free(struct samples *samples);

#endif
