/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's other loop: takes what comes and counts it. */
#ifndef LAYOVER_SINK_H
#define LAYOVER_SINK_H

#include "load/echo.h"

/* As echo_run(); counts into echo->messages and echo->bytes. */
int sink_run(struct echo *echo);

#endif
