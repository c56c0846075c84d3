/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel tells of one TCP socket to anybody who asks: what `ss -tim` shows. */
#ifndef LAYOVER_SOCKET_FACTS_H
#define LAYOVER_SOCKET_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/stall.h"

enum { SOCKET_FACTS_MAX = 40, SOCKET_FACT_TEXT = 48 };

struct socket_fact {
	const char *name; /* as ss prints it */
	const char *help;
	char value[SOCKET_FACT_TEXT];
};

struct socket_facts {
	struct socket_fact rows[SOCKET_FACTS_MAX];
	int count; /* 0: why says why */
	char why[160];
};

/* Asks in the socket's network namespace, through its process. Nothing is changed. */
void socket_facts_read(const struct flow_record *who, struct socket_facts *out);

#endif
