// SPDX-License-Identifier: GPL-2.0-only
#include "load/rules.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "load/clock.h"
#include "load/control.h"
#include "load/talk.h"

#define FRAME_NS ((uint64_t)CONTROL_FRAME_S * NS_PER_S)

static double seconds(uint64_t ns)
{
	return (double)ns / NS_PER_S;
}

int rules_check_plan(const struct server_rules *rules, const struct load_plan *plan)
{
	uint64_t bytes = plan_bytes_max(plan), ns = plan->duration_ns + plan->warmup_ns;

	if (rules->max_bytes && bytes > rules->max_bytes)
		return err_set(
			-EMSGSIZE,
			"messages of %llu bytes, this server takes at most %llu (--max-bytes)",
			(unsigned long long)bytes, (unsigned long long)rules->max_bytes);
	if (rules->max_time_ns && ns > rules->max_time_ns)
		return err_set(-ETIME,
			       "a run of %g s with its warm-up, this server gives a client at most "
			       "%g s (--max-time)",
			       seconds(ns), seconds(rules->max_time_ns));
	return 0;
}

int rules_check_hello(const struct server_rules *rules, const json_t *hello)
{
	if (rules->allow_shutdown || !json_is_true(json_object_get(hello, "shutdown")))
		return 0;
	return err_set(-EPERM, "this server does not end at a client's word; "
			       "start it with --allow-shutdown for that");
}

int rules_time_over(const struct server_rules *rules)
{
	return err_set(-ETIME,
		       "its time is over, this server gives a client at most %g s (--max-time)",
		       seconds(rules->max_time_ns));
}

int rules_challenge(const struct server_rules *rules, int fd, char proof[TOKEN_PROOF_HEX])
{
	json_t *challenge, *answer;
	struct token_nonces nonces;
	int rc;

	proof[0] = '\0';
	if (!rules->token)
		return 0;
	rc = token_draw(nonces.server);
	if (rc)
		return rc;
	challenge = talk_frame("challenge");
	json_object_set_new(challenge, "nonce", json_string(nonces.server));
	rc = control_send(fd, FRAME_NS, challenge);
	if (!rc)
		rc = control_receive(fd, FRAME_NS, &answer);
	if (rc)
		return rc;
	if (strcmp(control_type(answer), "proof") != 0 || !token_get_nonce(answer, nonces.client))
		rc = err_set(-EPROTO, "the client did not answer the challenge");
	else if (!token_check(rules->token, "client", &nonces, answer))
		rc = err_set(-EACCES, "the token is not this server's");
	else
		token_prove(rules->token, "server", &nonces, proof);
	json_decref(answer);
	return rc;
}
