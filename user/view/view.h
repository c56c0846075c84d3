/* SPDX-License-Identifier: GPL-2.0-only */
/* What is shown. Each view is a loop over the same tables; none computes. */
#ifndef LAYOVER_VIEW_H
#define LAYOVER_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "collect/collect.h"
#include "collect/os_cost.h"
#include "load/records.h"
#include "load/run.h"
#include "model/batches.h"
#include "model/dist.h"
#include "model/hist.h"
#include "model/overhead.h"
#include "model/split.h"
#include "view/noise.h"

/* How much is known of the server's end of a split. */
struct server_report {
	bool traced; /* its stages are in the split */
	bool same_kernel;
	const char *reason;               /* why it is not traced, else NULL */
	const char *kernel;               /* its release, "" unknown */
	struct records_counters counters; /* of its own records, where it keeps them */
};

/* Which of a sweep's reports it is. */
enum report_sweep { SWEEP_NONE, SWEEP_FIRST, SWEEP_NEXT };

/* The result of `ping`. */
struct report {
	const struct run *run;
	bool lab;
	enum report_sweep sweep;
	bool half;                 /* rtt, values, mean and hist are of half round trips */
	bool binned;               /* no samples were kept: percentiles are of bins of 0.1 % */
	struct dist rtt;           /* open loop: the response time */
	struct dist service;       /* open loop only: count is 0 otherwise */
	struct ordered values;     /* what rtt is the distribution of */
	struct mean_interval mean; /* of rtt */
	struct hist hist;          /* buckets is 0 when it was not asked for */
	struct os_cost os;
	double trips_per_s; /* answered ones, while trips ran */
	struct {
		double percent; /* 0: it was not asked for */
		bool reached;
	} until_ci;
	const struct split *split;        /* NULL: latency only */
	const struct trips *trips;        /* with split */
	struct server_report server;      /* with split */
	struct nic_report nic;            /* interface is empty without --hw-timestamps */
	struct collect_counters counters; /* of both ends together */
	const struct noise_report *noise; /* NULL: nobody looked */
	struct overhead overhead;         /* pairs is 0 when it was not asked for */
};

/* How the terminal (or the file) behind stdout wants its text. */
struct style {
	bool utf8, colour;
	const char *micro, *arrow; /* "µs" or "us", "→" or "->" */
};

struct style view_style(void);

/* An interim line of a run that goes on. */
struct interim {
	uint64_t since_begin_ns, length_ns; /* when, and of how long a time */
	uint64_t lost;                      /* in that time */
	struct dist rtt;                    /* of that time, of half round trips if half is set */
	bool half;
};

/* What is shown for a round trip: itself, or half of it, rounded up. ns. */
static inline int64_t report_value(uint64_t rtt_ns, bool half)
{
	return (int64_t)(half ? (rtt_ns + 1) / 2 : rtt_ns);
}

/* One line, flushed. */
void view_interim(FILE *out, const struct interim *line);

/*
 * The formats of the table in formats.h, on stdout. 0 or -errno with a sentence. The text has under 80
 * columns, JSON is one object, CSV a header and a row; the others are laid out as the tools of that name do.
 */
int view_text(const struct report *report);
int view_json(const struct report *report);
int view_csv(const struct report *report);
int view_sockperf(const struct report *report);
int view_latte_csv(const struct report *report);
int view_netperf_kv(const struct report *report);
int view_netperf_csv(const struct report *report);
int view_hgrm(const struct report *report);

/* One row of a sweep's table; the first one with its heading. */
int view_text_sweep(const struct report *report);
int view_csv_sweep(const struct report *report);

/* schema, version, host, kernel, clock and command: how every JSON output begins. A new reference. */
json_t *view_json_header(const char *command);

/* Prints and releases a JSON value on stdout, with a newline. 0 or -errno with a sentence. */
int view_json_print(json_t *value);

/*
 * CSV, one row per measured trip, in which the stage columns sum to rtt_ns. Written beside the file and
 * renamed, so that there is never half a file. 0 or -errno with a sentence.
 */
int view_dump(const struct report *report, const char *path);

/* The same with sockperf's columns and its 20 lines before them. */
int view_full_log(const struct report *report, const char *path);

/* Writes a whole file or none: what `write` prints goes beside the file, which is then renamed. */
int view_file(const struct report *report, const char *path,
	      void (*write)(FILE *file, const struct report *report));

#endif
