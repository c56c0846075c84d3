/* SPDX-License-Identifier: GPL-2.0-only */
/* The tracer that `layover serve` lends to its server: the kernel side, loaded for one session at a time. */
#ifndef LAYOVER_SERVING_H
#define LAYOVER_SERVING_H

#include "collect/collect.h"
#include "load/tracer.h"

struct serving {
	struct tracer tracer;
	struct collect *collect; /* NULL: no session is traced */
};

/* Nothing is loaded until a client asks for it. serving must live as long as the server. */
void serving_prepare(struct serving *serving);

#endif
