/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages that are on their way at the same time: which were sent when, and what became of them. */
#ifndef LAYOVER_FLIGHT_H
#define LAYOVER_FLIGHT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/samples.h"

enum { FLIGHT_SLOTS = 1 << 16 }; /* messages that can be told apart; older ones count as lost */

struct flight_slot {
	_Atomic uint64_t seq; /* 0: none yet */
	uint64_t intended;    /* when it should have been sent, CLOCK_MONOTONIC ns */
	uint64_t actual;      /* when it was */
	uint32_t bytes;       /* of its reply */
	atomic_bool answered;
	bool late; /* the receiver's: the answer came after the timeout */
};

/* One thread sends, the same or another one receives. */
struct flight {
	struct flight_slot *slots;
	uint64_t mask;         /* of the bits of a sequence number that messages carry */
	uint64_t timeout_ns;   /* replies later than this are late; 0: none is */
	uint64_t warm;         /* the last sequence number that is not measured */
	_Atomic uint64_t sent; /* the last sequence number that was sent */
	/* The receiver's. */
	uint64_t newest;   /* the highest number that was answered */
	uint64_t answered; /* measured messages with a reply in time */
	struct samples *out;
	pthread_mutex_t *lock;
	_Atomic uint64_t done; /* replies in time, measured or not; the sender looks at it, too */
};

/* 0 or -ENOMEM with a sentence. lock is held while samples are added to out, NULL: nobody else looks. out gets response times (from intended), and service times if it has room for them. */
int flight_open(struct flight *f, uint64_t mask, uint64_t timeout_ns, uint64_t warm,
		struct samples *out, pthread_mutex_t *lock);
void flight_close(struct flight *f);

/* Before message seq leaves. intended may be 0: it is when it leaves. */
void flight_send(struct flight *f, uint64_t seq, uint64_t intended, uint64_t actual,
		 uint32_t bytes);

/*
 * A reply with the number `carried` (the bits under mask) and that many bytes came at `now`. True when it is the
 * first one to its message, and in time. Stray ones are counted. 0 in *rc, or -ENOMEM with a sentence.
 */
bool flight_reply(struct flight *f, uint64_t carried, uint32_t bytes, uint64_t now, int *rc);

/* Counts what did not come back. Once, at the end. Returns how many of them were not to be measured. */
uint64_t flight_settle(struct flight *f);

#endif
