/* SPDX-License-Identifier: GPL-2.0-only */
/* One socket option of other programs' live TCP sockets: read, and set on request. */
#ifndef LAYOVER_REMEDY_H
#define LAYOVER_REMEDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/remedy.h"

/* The sockets found. Starts as {0}; free(rows) gives it back. */
struct remedy_rows {
	struct remedy_row *rows;
	size_t count, room;
};

/* A socket that is to get a value. */
struct remedy_wish {
	uint64_t socket; /* cookie */
	int32_t value;
};

/*
 * Tells the connected TCP sockets from or to `port` (host order) of the calling thread's network namespace, with the
 * option's value. With wishes, only those sockets are told, after they got their values; rows say what became of it.
 * 0 or -errno with a sentence (-EPERM: not allowed here).
 */
int remedy_sockets(int level, int option, uint16_t port, const struct remedy_wish *wishes,
		   size_t count, struct remedy_rows *out);

/* Connections as they are made. */
struct remedy_new;

/*
 * From now on every new connection from or to `port` of the cgroup, which a descriptor of its directory names, gets
 * the value, until remedy_new_close() or the end of this process, however it ends. 0 or -errno with a sentence.
 */
int remedy_new_open(struct remedy_new **out, int level, int option, int32_t value, uint16_t port,
		    int cgroup);

/* Hands those that were changed to take, after waiting at most that long. 0, or -errno with a sentence. */
int remedy_new_poll(struct remedy_new *fresh, int wait_ms,
		    int (*take)(void *arg, const struct remedy_row *row), void *arg);

/* Connections that were changed and could not be told. */
uint64_t remedy_new_untold(const struct remedy_new *fresh);

void remedy_new_close(struct remedy_new *fresh);

#endif
