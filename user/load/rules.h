/* SPDX-License-Identifier: GPL-2.0-only */
/* What a server lets its clients do. */
#ifndef LAYOVER_RULES_H
#define LAYOVER_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/plan.h"
#include "load/token.h"
#include "load/tracer.h"

/* All zero: everything that a session needs, and nothing more. */
struct server_rules {
	struct tracer *tracer; /* records this end for clients that ask for it; NULL: it does not */
	const struct token *token; /* only for clients that have it; NULL: for all */
	bool once;                 /* ends when its first session has ended */
	bool allow_shutdown;       /* ends when a client asks for it */
	uint64_t max_bytes;        /* of a message; 0: no limit of its own */
	uint64_t max_sessions;     /* of one client's address at the same time; 0: no such limit */
	uint64_t max_time_ns;      /* of a session, warm-up included; 0: no limit */
};

/* 0, or -errno with a sentence that names the limit: what can be told from the plan alone. */
int rules_check_plan(const struct server_rules *rules, const struct load_plan *plan);

/* The same, of a client that says in its hello whether it wants the server to end. */
int rules_check_hello(const struct server_rules *rules, const json_t *hello);

/* The sentence for a session whose time is over, and -ETIME. */
int rules_time_over(const struct server_rules *rules);

/*
 * Challenges the client on fd, if there is a token, and checks what it answers. 0 or -errno with a sentence;
 * `proof` is then what to answer in turn, "" without a token.
 */
int rules_challenge(const struct server_rules *rules, int fd, char proof[TOKEN_PROOF_HEX]);

#endif
