/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What else happened to a measuring thread and its CPUs: migrations, steal time, interrupts of devices that do not
 * carry its messages. Read from /proc before and after, never in between.
 */
#ifndef LAYOVER_NOISE_H
#define LAYOVER_NOISE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "load/clock.h"
#include "load/interface.h"

enum { NOISE_CPUS_MAX = 8, NOISE_IRQS_MAX = 16, NOISE_NAME_MAX = 40 };

/*
 * From when on something is worth a sentence. An interrupt delays one trip: fewer than one in so many trips
 * cannot be seen below p99.9. Steal time comes in ticks (10 ms), each of which hits whatever trip is under way.
 */
#define NOISE_IRQ_TRIPS    1000
#define NOISE_IRQS_MIN     10
#define NOISE_STEAL_MIN_NS 10000000ULL
#define NOISE_STEAL_SHARE  0.001

struct noise_irq {
	char name[NOISE_NAME_MAX]; /* as in /proc/interrupts, made fit for a terminal */
	int cpu;
	uint64_t count;
};

/* Of one end. */
struct noise {
	bool known;         /* this end has told */
	int64_t migrations; /* of its measuring thread; -1 unknown (a kernel without sched_debug) */
	int cpu;            /* where the thread was last; -1 unknown */
	int cpu_count;
	int cpus[NOISE_CPUS_MAX];              /* where it was seen */
	uint64_t cpu_steal_ns[NOISE_CPUS_MAX]; /* of each of them; does not travel */
	uint64_t steal_ns;                     /* their sum */
	uint64_t wall_ns;                      /* between begin and end */
	int irq_count;
	struct noise_irq irqs[NOISE_IRQS_MAX]; /* on these CPUs, the most frequent first */
};

/* Of both ends. */
struct noise_report {
	struct noise client, server; /* known: they have told */
	int shared_cpu;              /* both ends were on it; -1: on different ones, or not known */
};

/* The state at the begin. */
struct noise_watch {
	pid_t tid; /* 0: none is watched */
	char interface[INTERFACE_NAME_MAX];
	int cpu;
	int64_t migrations;
	uint64_t begun_ns;
	char *stat, *interrupts; /* whole files; NULL: could not be read */
};

/*
 * Begins to watch a thread of this process. interface carries its messages ("" unknown): its interrupts are not
 * foreign. noise_end() or noise_drop() is due.
 */
void noise_begin(struct noise_watch *watch, pid_t tid, const char *interface);
void noise_end(struct noise_watch *watch, struct noise *noise);
void noise_drop(struct noise_watch *watch);

/* What two readings of /proc/interrupts say of a CPU's foreign interrupts is added. */
void noise_interrupts(const char *before, const char *after, int cpu, const char *interface,
		      struct noise *noise);

/* A CPU's steal time in ns by the text of /proc/stat, NULL allowed; 0 when it is not there. */
uint64_t noise_steal(const char *stat, int cpu);

/* The calling thread's id. */
pid_t noise_tid(void);

/* Adds another thread of the same end; sum may be empty. */
void noise_add(struct noise *sum, const struct noise *more);

/* Whether it is worth a sentence. */
bool noise_irq_counts(const struct noise_irq *irq, uint64_t trips);
bool noise_steal_counts(const struct noise *noise);

/* As it travels, and as the output shows it. A new reference; -EPROTO with a sentence. */
json_t *noise_to_json(const struct noise *noise);
int noise_from_json(const json_t *object, struct noise *noise);

/*
 * Asks the server at the other end of the control connection what has happened since it was asked last; the first
 * answer tells only its CPU. Not known when it cannot tell. 0, or -errno with a sentence, also when limit_ns pass
 * without an answer; -EPROTO: the server has ended the session, and why, or speaks nonsense.
 */
#define NOISE_LOOK_NS (1ULL * NS_PER_S) /* it may be stuck, which may be why the run has ended */
int noise_ask(int control_fd, uint64_t limit_ns, struct noise *noise);

#endif
