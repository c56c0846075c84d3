/* SPDX-License-Identifier: GPL-2.0-only */
/* The stages as a table: one row of abi/stages.def each, in path order. */
#ifndef LAYOVER_STAGES_H
#define LAYOVER_STAGES_H

enum side { SIDE_client, SIDE_server, SIDES };

/* STAGE_client_send … : `side` may be a macro (leg.def), so it is expanded before it is pasted. */
#define STAGE_ID_(side, name) STAGE_##side##_##name
#define STAGE_ID(side, name)  STAGE_ID_(side, name)

enum stage {
#define STAGE(side, name, layer, hook, text) STAGE_ID(side, name),
#include "abi/stages.def"
#undef STAGE
	STAGES
};

enum { STAGE_NO_HOOK = -1 };

struct stage_info {
	const char *key;   /* "server.wakeup": the one spelling everywhere */
	const char *layer; /* syscall, socket, qdisc, nic, softirq, sched, app, driver */
	const char *text;  /* what happens in it */
	enum side side;
	int hook; /* enum hook that ends it, or STAGE_NO_HOOK */
};

extern const struct stage_info stage_infos[STAGES];

/*
 * The stage that a hook ends on a leg from `sender`: the sender's stages before the wire, the receiver's
 * after it. -1 when the hook ends none by itself.
 */
int stage_ended_by(enum side sender, int hook);

#endif
