/* SPDX-License-Identifier: GPL-2.0-only */
/* What happened lately: stalls as the kernel tells them, and turns that took far longer than their flow's others. */
#ifndef LAYOVER_EVENTS_H
#define LAYOVER_EVENTS_H

#include <stddef.h>

#include "abi/stall.h"
#include "model/path.h"

struct event {
	uint64_t number; /* 1, 2, … */
	uint64_t at_ns;  /* CLOCK_MONOTONIC, when it ended */
	uint64_t took_ns;
	bool is_stall;
	int cause;              /* of a stall: enum cause, or -1 */
	struct flow_record who; /* of the socket; family 0: not known */
	struct stall_record stall;
	uint64_t start_ns; /* of a trip */
	struct trip trip;  /* its stages sum to took_ns */
};

enum { EVENTS_KEPT = 512, EVENTS_PENDING = 64 };

/* A slow turn waits one call of events_settle() for the record of its other end. */
struct event_pending {
	struct turn_record record;
	struct flow_record who;
	bool paired, waited;
};

struct events {
	uint64_t count;                 /* that there ever were */
	struct event kept[EVENTS_KEPT]; /* number n is at (n - 1) % EVENTS_KEPT */
	struct event_pending pending[EVENTS_PENDING];
	size_t pending_count;
	struct turn_record
		servers[EVENTS_PENDING]; /* the latest ones of servers whose client is here */
	uint64_t server_count;
	uint64_t left_out; /* slow turns that came too many at a time */
	uint32_t hooks;    /* that are loaded */
};

/* who may be NULL: not known (yet). */
void events_add_stall(struct events *events, const struct stall_record *record, int cause,
		      const struct flow_record *who);

/* A slow turn of a socket; paired: the other end is on this host. */
void events_add_turn(struct events *events, const struct turn_record *record,
		     const struct flow_record *who, bool paired);

/* Called after each reading of records: makes events of the turns that have waited for their other end. */
void events_settle(struct events *events);

/* The n-th newest, from 0; NULL: there is none. */
const struct event *events_newest(const struct events *events, size_t n);

/* By number; NULL: it is not kept any more. */
const struct event *events_by_number(const struct events *events, uint64_t number);

#endif
