/* SPDX-License-Identifier: GPL-2.0-only */
/* Why the slow turns of a flow were slow: evidence becomes verdicts. Pure C. */
#ifndef LAYOVER_CAUSES_H
#define LAYOVER_CAUSES_H

#include "model/live.h"
#include "model/placement.h"

enum cause {
#define CAUSE(key, end, text, remedy) CAUSE_##key,
#include "abi/causes.def"
#undef CAUSE
	CAUSES
};

enum cause_end { END_SENDER, END_RECEIVER };

struct cause_info {
	const char *key, *text, *remedy;
	enum cause_end end;
};

extern const struct cause_info cause_infos[CAUSES];

enum grade { GRADE_LIKELY, GRADE_PROVEN };

/* "likely", "proven" */
extern const char *const grade_names[];

/* Turns of like length. */
struct cluster {
	size_t count;
	uint64_t low_ns, median_ns, high_ns;
	uint32_t sent, received; /* bytes, the median */
	uint16_t writes;         /* the median */
};

enum { CLUSTERS_MAX = 2, SLOW_NS = 1000000 /* a turn from this long on is slow */ };

struct verdict {
	enum cause cause;
	enum grade grade;
	bool client_end;      /* the end that must change is the client's, else the server's */
	size_t turns;         /* that it held up */
	uint64_t wait_ns;     /* the median of its waits */
	double saving;        /* how much of the slow turns' time it is, 0 … 1 */
	const char *evidence; /* in plain words; static */
	/* run_queue: the task that had the CPU most often, as it calls itself; pid 0: it was not seen. */
	uint32_t hog_pid;
	char hog_comm[FLOW_COMM];
	size_t hog_turns;
};

/* What happened in one typical stalled turn. */
struct moment {
	uint64_t at_ns; /* after its start */
	bool client_end;
	const char *what; /* static */
};

enum { MOMENTS_MAX = 12 };

struct diagnosis {
	struct cluster clusters[CLUSTERS_MAX]; /* fast first; a single one is [0] */
	int cluster_count;
	size_t slow;                         /* turns that are slow */
	struct verdict verdicts[2 * CAUSES]; /* what took most time first */
	int verdict_count;                   /* 0: healthy, as far as can be told */
	struct moment moments[MOMENTS_MAX];
	int moment_count;
	struct placement placements[PLACEMENTS_MAX];
	int placement_count; /* no cause of waiting: a healthy flow may have them */
};

/* What the record by itself points to, before it is weighed against any turn; -1: nothing. */
int cause_of_stall(const struct stall_record *record);

/* Judges one flow: a client's, or a server's whose client is not seen here. 0 or -ENOMEM with a sentence. */
int diagnose_flow(const struct live_flow *flow, struct diagnosis *out);

#endif
