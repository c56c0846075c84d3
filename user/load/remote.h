/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's side of records that the server's end keeps: asked for between blocks of trips. */
#ifndef LAYOVER_REMOTE_H
#define LAYOVER_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "load/records.h"

struct remote {
	int fd; /* the session's control connection; the caller's */
	bool traced;
	char reason[256]; /* why not */
	struct records_layout layout;
	struct records_counters counters; /* so far */
	int64_t ahead_min, ahead_max;     /* the server's clock minus ours, by the last exchange */
};

/*
 * Asks the server to record its end; with/without are masks of enum hook. That it cannot is a result, not
 * an error. Loading its hooks takes the server a while: ends within 30 s. 0 or -errno with a sentence.
 */
int remote_start(struct remote *remote, int fd, uint32_t with, uint32_t without);

/*
 * Asks for the records since the last time; the server goes on with its hooks attached or not. 0 or -errno
 * with a sentence.
 */
int remote_fetch(struct remote *remote, bool attach, records_sink *sink, void *arg);

#endif
