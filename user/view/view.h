/* SPDX-License-Identifier: GPL-2.0-only */
/* What is shown. Each view is a loop over the same tables; none computes. */
#ifndef LAYOVER_VIEW_H
#define LAYOVER_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "collect/collect.h"
#include "load/records.h"
#include "load/run.h"
#include "model/dist.h"
#include "model/overhead.h"
#include "model/split.h"

/* How much is known of the server's end of a split. */
struct server_report {
	bool traced; /* its stages are in the split */
	bool same_kernel;
	const char *reason;               /* why it is not traced, else NULL */
	const char *kernel;               /* its release, "" unknown */
	struct records_counters counters; /* of its own records, where it keeps them */
};

/* The result of `ping`. */
struct report {
	const struct run *run;
	bool lab;
	struct dist rtt;                  /* open loop: the response time */
	struct dist service;              /* open loop only: count is 0 otherwise */
	const struct split *split;        /* NULL: latency only */
	const struct trips *trips;        /* with split */
	struct server_report server;      /* with split */
	struct nic_report nic;            /* interface is empty without --hw-timestamps */
	struct collect_counters counters; /* of both ends together */
	struct overhead overhead;         /* pairs is 0 when it was not asked for */
};

/* How the terminal (or the file) behind stdout wants its text. */
struct style {
	bool utf8, colour;
	const char *micro, *arrow; /* "µs" or "us", "→" or "->" */
};

struct style view_style(void);

/* The text table on stdout, under 80 columns. */
void view_text(const struct report *report);

/* One JSON object on stdout. 0 or -errno with a sentence. */
int view_json(const struct report *report);

/* schema, version, host, kernel, clock and command: how every JSON output begins. A new reference. */
json_t *view_json_header(const char *command);

/* Prints and releases a JSON value on stdout, with a newline. 0 or -errno with a sentence. */
int view_json_print(json_t *value);

/*
 * CSV, one row per measured trip, in which the stage columns sum to rtt_ns. Written beside the file and
 * renamed, so that there is never half a file. 0 or -errno with a sentence.
 */
int view_dump(const struct report *report, const char *path);

#endif
