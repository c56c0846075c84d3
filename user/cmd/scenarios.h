/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows made in the lab on purpose, each with one known cause of waiting or none. */
#ifndef LAYOVER_SCENARIOS_H
#define LAYOVER_SCENARIOS_H

#include <sys/types.h>

#include "lab/lab.h"
#include "load/plan.h"

struct scenario {
	const char *name, *text;
	void (*shape)(struct load_plan *plan); /* of the client; NULL: 64 bytes there and back */
	const char *qdisc; /* on the client's device, as tc takes it; NULL: none */
	unsigned int lose,
		lost; /* of so many of the client's packets so many in a row are lost; 0: none */
	bool reader;  /* the server is an echo server that … */
	int rcvbuf;   /* … has so much buffer, 0: as usual, and … */
	uint64_t read_pause_ns; /* … sleeps before it reads a message */
	bool hog;               /* another task wants the server's CPU */
	bool two_cpus;          /* the ends are on different ones */
	bool rps;               /* the server's packets are handed on to another CPU */
	unsigned int others;    /* healthy flows beside it */
};

/* Ends with a row whose name is NULL. */
extern const struct scenario scenarios[];

/* NULL: there is none of that name. */
const struct scenario *scenario_by_name(const char *name);

enum { SCENE_ACTORS_MAX = 32 };

/* The processes of a running scenario. Starts as {0}. */
struct scene {
	struct lab lab;
	pid_t actors[SCENE_ACTORS_MAX];
	int actor_count;
};

/* Makes the lab and starts everything; it dies with this process. 0 or -errno with a sentence. */
int scene_start(struct scene *scene, const struct scenario *scenario);

/* The same with three flows side by side to one server: a healthy one, write-write-read, one across CPUs. */
int scene_start_three(struct scene *scene);

/* The inode number of the client's network namespace. */
uint64_t scene_namespace(const struct scene *scene);

/* Ends and removes everything. */
void scene_end(struct scene *scene);

#endif
