/* SPDX-License-Identifier: GPL-2.0-only */
/* What `remedy` can set, what it was asked for, and its journal. */
#ifndef LAYOVER_CURES_H
#define LAYOVER_CURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "collect/remedy.h"

struct cure {
	const char *name, *unit; /* unit NULL: takes no value */
	int level, option;
	int32_t min, max, scale; /* the value in `unit` times scale is what the kernel takes */
	int32_t told; /* the kernel tells so many times what it takes (SO_RCVBUF: twice) */
};

enum { CURES = 3 };

/* The first one is nodelay. */
extern const struct cure cures[CURES];

struct remedy_options {
	const char *what; /* "nodelay", "rcvbuf=100000", "undo" */
	uint64_t port, pid;
	uint64_t netns;                 /* inode number; 0: the process's, else our own */
	uint32_t ports;                 /* of one flow, client port << 16 | server port; 0: all */
	bool apply, json, quiet, fresh; /* fresh: --new */
	const char *cgroup;             /* --new: of whose connections; NULL: of all */
	uint64_t time_ns;               /* --new: for so long, 0: until it is stopped */
	const struct cure *cure;
	int32_t value;
};

/* A list of {cure, socket, namespace, before}; a new reference, empty when there is none. */
json_t *cures_journal_read(void);

/* Whole or not at all, and on the disk before it returns; an empty list removes it. 0 or -errno with a sentence. */
int cures_journal_write(const json_t *list);

/* Adds what sockets had before; what is in the journal already is the older truth. 0 or -errno with a sentence. */
int cures_journal_add(const struct cure *cure, const struct remedy_row *rows, size_t count);

/* True when the process, named by its number, has the socket open. */
bool cures_has_socket(const char *pid, uint64_t inode);

/* One socket: whose it is, and its value before and after; to list, or as a line of text if that is NULL. */
void cures_show(const struct remedy_options *o, const struct remedy_row *row, json_t *list);

/* Every new connection of the cgroup gets the value, until it is stopped. An exit code. */
int remedy_new_connections(const struct remedy_options *o);

#endif
