/* SPDX-License-Identifier: GPL-2.0-only */
/* Hooks on the TCP flows of other programs, and what comes of them: for `watch` and `diagnose`. */
#ifndef LAYOVER_WATCHING_H
#define LAYOVER_WATCHING_H

#include "base/settings.h"
#include "collect/collect.h"
#include "model/live.h"

enum { WATCHING_FLOWS_MAX = 16384 };

/* Which flows are wanted. Every field that is set must fit one of the two ends. */
struct watch_filter {
	uint64_t port; /* 0: any */
	uint64_t pid;
	uint64_t netns; /* inode number, as `lsns -t net` shows it */
	const char *comm, *addr, *cgroup;
	uint8_t addr_bytes[16];
	uint16_t addr_family; /* 0: any */
	uint64_t *cgroups; /* the cgroup's id and those below it, for as long as the process runs */
	size_t cgroup_count;
};

/* The options for a struct watch_filter, and what only the whole of them can tell: -EINVAL with a sentence. */
extern const struct setting watch_filter_settings[];
int watch_filter_finish(struct watch_filter *filter);

struct watching {
	struct collect *collect;
	struct live live;
	bool delack_seen; /* the kernel tells where its delayed-ACK timer is */
	int rc;
};

/* Loads and attaches the hooks. 0 or -errno with a sentence; watching_close() is due either way. */
int watching_open(struct watching *w, const struct watch_filter *filter);
void watching_close(struct watching *w);

/*
 * Gathers for that long, or until *stop; then joins what was gathered. final: nothing more will be. 0 or -errno with
 * a sentence.
 */
int watching_gather(struct watching *w, uint64_t ns, const volatile bool *stop, bool final);

/* Whether one end is wanted by itself; known: `who` was told. */
bool watch_filter_fits_end(const struct watch_filter *filter, const struct flow_record *who,
			   bool known);

/* Whether the flow is wanted. One whose program has not been seen yet is, if nothing is asked of it. */
bool watch_filter_fits(const struct watch_filter *filter, const struct live_flow *flow);

/* "192.0.2.7:5000" of one of its ends, fit for a terminal. Returns text (ADDRESS_TEXT_MAX bytes). */
const char *watching_address(const struct live_flow *flow, bool remote, char *text);

/* The name of its program, fit for a terminal; "?" when it is not known. Returns text (FLOW_COMM + 1 bytes). */
const char *watching_comm(const struct live_flow *flow, char *text);

#endif
