/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of a scenario. */
#ifndef LAYOVER_ACTORS_H
#define LAYOVER_ACTORS_H

#include <stdint.h>
#include <sys/types.h>

#include "lab/lab.h"
#include "load/plan.h"

/* A child that does not outlive this process and ignores Ctrl-C. As fork(2). */
pid_t actor_spawn(void);

/* Keeps a CPU busy, 20 ms of 25, before everything that is not real-time. Does not return. */
void actor_hog(int cpu);

/* An endless client; with a pause_ns it sleeps so long between trips. Does not return. */
void actor_client(struct lab *lab, const struct load_plan *plan, const char *target,
		  uint64_t pause_ns);

/* An echo server without a control connection that takes its time before it reads each message. */
struct actor_reader {
	uint64_t pause_ns; /* 0: it reads at once */
	size_t bytes;      /* of a message */
	int cpu;
};

/* Runs it, see struct lab_server; arg is a struct actor_reader. */
int actor_read(int listen_fd, const void *arg);

/* "tc -n NAMESPACE qdisc add dev … root WORDS" for the client's device. 0 or -EIO with a sentence. */
int actor_qdisc(const struct lab *lab, const char *words);

/* Packets that arrive at that side are handed on to a CPU (RPS). 0 or -errno with a sentence. */
int actor_rps(const struct lab *lab, enum lab_side side, int cpu);

#endif
