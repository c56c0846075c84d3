/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's side of the control connection while messages run: the client may ask for records. */
#ifndef LAYOVER_TALK_H
#define LAYOVER_TALK_H

#include <jansson.h>

#include "load/echo.h"
#include "load/noise.h"
#include "load/tracer.h"

struct talk {
	int fd;                  /* the control connection */
	struct tracer *tracer;   /* NULL: this server has none */
	struct tracer_wish wish; /* the session's; the client adds the hooks */
	const struct echo *echo; /* whose messages a "count" frame asks for */
	const char *interface;   /* where they come in, "" unknown: a loop-back of the own host's */
	uint64_t until_ns;       /* CLOCK_MONOTONIC; 0: no end */

	/* Private. */
	bool tracing;
	struct records_layout layout;
	struct noise_watch watch;
};

/*
 * Answers until the connection ends, which is no error: 0, or -errno with a sentence for the client; -ETIME
 * without one when the time is over. Ends what the session traced.
 */
int talk_run(struct talk *talk);

/* type, protocol and version: how every frame of this side begins. A new reference. */
json_t *talk_frame(const char *type);

#endif
