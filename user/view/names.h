/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of flows' ends, fit for a terminal whatever a program called itself. */
#ifndef LAYOVER_NAMES_H
#define LAYOVER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/stall.h"

enum { NAMES_COMM_MAX = FLOW_COMM + 1, NAMES_ADDRESS_MAX = 80 };

/* A task's name of at most FLOW_COMM bytes; "?" when it is empty. Returns text (NAMES_COMM_MAX bytes). */
const char *names_task(const char *comm, char *text);

/* The same of a flow's program. */
const char *names_comm(const struct flow_record *who, char *text);

/* "192.0.2.7:5000", "[2001:db8::7]:5000". Returns text (NAMES_ADDRESS_MAX bytes). */
const char *names_address(const struct flow_record *who, bool remote, char *text);

#endif
