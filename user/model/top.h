/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All flows of the machine, interval by interval: snapshots of the kernel's book (abi/top.h) are subtracted, the two
 * ends of a connection on this host are joined, and rows come of it. Pure C: it knows neither BPF nor a terminal.
 */
#ifndef LAYOVER_TOP_H
#define LAYOVER_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "abi/stall.h"
#include "abi/top.h"
#include "model/causes.h"
#include "model/stages.h"

/* Where the time of a turn goes, in as many parts as a bar can show, in path order. */
enum top_group {
	GROUP_SOCKET,
	GROUP_HELD,
	GROUP_QDISC,
	GROUP_NET,
	GROUP_SOFTIRQ,
	GROUP_WAKEUP,
	GROUP_APP,
	TOP_GROUPS
};

struct top_group_info {
	const char *key, *text;
	char letter;
};

extern const struct top_group_info top_group_infos[TOP_GROUPS];

/* The group of a stage (enum stage). */
enum top_group top_group_of(int stage);

/* Counters of a socket that only grow. */
struct top_sums {
	uint64_t turns, sum_ns, one_way;
	uint64_t part_ns[TOP_PARTS];
	uint32_t causes[CAUSES];
	uint32_t stalls; /* all of them, also those without a cause */
};

/* A figure that too few turns carry. */
#define TOP_NONE INT64_MIN

/* A percentile needs as many turns beyond it as this. */
enum { TOP_TAIL_MIN = 1 };

struct top_figures {
	int64_t p50, p99, max; /* ns, to 3.2 % */
};

/* One socket: a place of the book. */
struct top_end {
	struct top_head head;        /* as last taken; who.socket 0: the place is free */
	struct top_sums now, before; /* as last taken, and at the end of the interval before */
	uint64_t birth_turns;        /* what the place had counted when the socket got it */
	uint32_t *bins, *base_bins;  /* TOP_BINS, as last read; NULL: all 0 */
	uint64_t bins_turns;         /* that are in bins */
	uint64_t slow_ns;            /* turns from this long on are outliers; 0: not known yet */
	uint64_t slow_turns;         /* that it was found from */
	struct stall_record delack;  /* the last time its delayed-ACK timer had to acknowledge */
	uint32_t peer;               /* the other end on this host: its number + 1; 0: none */
	bool had_peer;
	bool bins_old; /* bins were not read for a while: their next difference is not of one interval */
	bool closed;
	struct top_figures figures;
};

/* One line: a client with its server where that is on this host, else one end alone. It needs nothing else to be shown. */
struct top_row {
	uint32_t index; /* of its place */
	bool closed;    /* shown for the last time */
	bool both_ends;
	struct flow_record who, peer;                /* peer only with both_ends */
	uint16_t cpu_softirq, cpu_waker, cpu_reader; /* of the last turn */
	uint64_t turns, sum_ns, one_way, stalls;     /* that the figures cover */
	uint64_t total;                              /* turns of its whole life */
	uint64_t peer_turns;
	uint64_t part_ns[2][TOP_PARTS];   /* its own, its peer's */
	uint64_t idle_ns;                 /* since its last turn */
	double rate, stall_rate, mean_ns; /* mean 0: no turn */
	struct top_figures figures;
	float share[TOP_GROUPS]; /* of the turns' time, 0 … 1 */
	int cause;               /* enum cause of most stalls, -1: none */
	double key;              /* scratch of top_sort() */
};

/* One line of the split of all flows. */
struct top_stage {
	int stage;
	uint64_t passed;
	int64_t p50, p90, p99, max; /* TOP_NONE where not known */
	double mean_ns, share;
};

enum { TOP_HISTORY = 32, TOP_CLOSED_MAX = 1024 };

struct top {
	uint32_t places;
	struct top_end *ends;   /* places, then TOP_CLOSED_MAX that closed in this interval */
	struct top_sums *bases; /* of the baseline, by end; NULL: there never was one */
	uint32_t used;          /* places from here on were never used */
	uint32_t closed_count;  /* in this interval, kept */
	uint32_t *pairs;        /* scratch: a hash of ends that look for their other one */
	bool baseline;          /* figures are since top_set_baseline(), not of the last interval */
	uint64_t base_ns, at_ns; /* CLOCK_MONOTONIC, of the baseline and of the last snapshot */
	double seconds;          /* that the figures cover */

	struct top_row *rows;
	size_t row_count, row_room;
	size_t open;                          /* sockets that have a place */
	uint64_t turns[TOP_ROLES];            /* since the start: of clients, of servers */
	uint64_t flows, closed_flows, stalls; /* the same: sockets seen, of them closed; stalls */
	uint64_t
		not_listed; /* closed between two snapshots beyond TOP_CLOSED_MAX: counted, not shown */

	struct top_part_hist *parts, *parts_before, *parts_base; /* TOP_ROLES * TOP_ROWS each */
	struct top_stage stages[STAGES];
	int stage_count;
	uint64_t stage_turns; /* of clients, and of lone servers */
	double gap_paired_ns, gap_alone_ns,
		residence_ns;               /* of clients' gaps; of the servers in them */
	float history[STAGES][TOP_HISTORY]; /* mean ns per turn, the newest last */
};

/* 0 or -ENOMEM with a sentence; top_free() either way. The first interval begins at that time. */
int top_open(struct top *top, uint32_t places, uint64_t at_ns);
void top_free(struct top *top);

/* Whether the histogram is worth reading: there is something new in it, and a row shows it. */
bool top_wants_hist(const struct top *top, uint32_t index, const struct top_head *head);

/* Takes what the book holds of one socket; hist NULL: it was not read. 0 or -ENOMEM with a sentence. */
int top_take(struct top *top, uint32_t index, const struct top_head *head,
	     const struct top_hist *hist);

/*
 * The same for the last time, with its histogram: the socket is closed, or loses its place. Then the place is free; the
 * next socket's counters go on from there, its histogram is empty.
 */
int top_leave(struct top *top, uint32_t index, const struct top_head *head,
	      const struct top_hist *hist);

/*
 * Takes a stall's record. True: it was one, and is counted; *cause receives its enum cause or -1. An acknowledgement
 * that was held back is none by itself: only if the other end held bytes until it came.
 */
bool top_stall(struct top *top, const struct stall_record *record, int *cause);

/* Takes all sockets together (TOP_ROLES * TOP_ROWS). */
void top_take_parts(struct top *top, const struct top_part_hist *parts);

/*
 * Ends the interval at that time: joins ends, makes rows and stages of what was taken. 0 or -ENOMEM with a sentence.
 */
int top_finish(struct top *top, uint64_t at_ns);

/* From now on figures are since now, or (on false) of one interval again. 0 or -ENOMEM with a sentence. */
int top_set_baseline(struct top *top, bool on);

/* The end at that index if it is still that socket; NULL otherwise. Valid until the next call that changes top. */
const struct top_end *top_end_of(const struct top *top, uint32_t index, uint64_t socket);

/* The other end of an end, or NULL. */
const struct top_end *top_peer_of(const struct top *top, const struct top_end *end);

/* Mean ns per turn of each stage of a row; returns their sum. */
double top_row_stages(const struct top_row *row, double stage_ns[STAGES]);

/* The open end that has been idle for longest, at least idle_ns; TOP_END_NONE: none. */
enum { TOP_END_NONE = UINT32_MAX };
uint32_t top_idlest(const struct top *top, uint64_t now_ns, uint64_t idle_ns);

/* The middle of a bin of a flow's histogram, ns. */
int64_t top_bin_ns(uint32_t bin);

/* What counts of a flow's bins tell. */
void top_figures_of(const uint32_t bins[TOP_BINS], struct top_figures *out);

/* Sorts rows: by value (largest first) or, where that is NULL, by text; reverse turns it round. Stable. */
void top_sort(struct top_row *rows, size_t count, double (*value)(const struct top_row *row),
	      int (*by_text)(const struct top_row *a, const struct top_row *b), bool reverse);

#endif
