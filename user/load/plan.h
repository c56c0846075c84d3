/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run of the driver does: one struct, checked in one place, sent to the server as JSON. */
#ifndef LAYOVER_PLAN_H
#define LAYOVER_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum plan_proto { PLAN_TCP, PLAN_UDP };
enum plan_family { PLAN_ANY, PLAN_IPV4, PLAN_IPV6 };

#define PLAN_TRIPS_MAX     1000000000ULL
#define PLAN_UDP_BYTES_MAX 65507ULL
#define PLAN_TCP_BYTES_MAX (1ULL << 30)

/* Every field but the last has one row in the table of plan.c, which says its JSON name and its limits. */
struct load_plan {
	int proto;  /* enum plan_proto */
	int family; /* enum plan_family: which addresses of the target may be used */
	uint64_t bytes;
	uint64_t iterations;  /* trips to measure; 0: as many as duration_ns allows */
	uint64_t duration_ns; /* how long to measure; 0: until iterations are done */
	/* The warm-up ends at whichever comes first; 0: no such limit. */
	uint64_t warmup_trips, warmup_ns;
	uint64_t timeout_ns;      /* after this a UDP trip counts as lost */
	uint64_t server_delay_ns; /* the server spins this long between receiving and replying */
	bool unconnected;         /* UDP sockets without connect(), on both ends */
	bool verify; /* fill and check the payload of every trip, outside the measured time */
	int client_cpu, server_cpu; /* -1: not pinned */

	bool time_given; /* duration_ns is not the default; stays on this side */
};

/* The defaults of the command line: TCP, 64 bytes, 2 s, warm-up of 1000 trips or 400 ms, nothing
 * pinned. */
void plan_default(struct load_plan *plan);

/* 0, or -EINVAL/-ERANGE with a sentence that names the field. */
int plan_check(const struct load_plan *plan);

/* A new JSON object with every field; the caller owns it. NULL when memory is short. */
json_t *plan_to_json(const struct load_plan *plan);

/*
 * Reads an object written by plan_to_json() and checks it as plan_check() does. A missing, unknown
 * or mistyped field is refused: -EINVAL/-ERANGE with a sentence.
 */
int plan_from_json(const json_t *object, struct load_plan *plan);

#endif
