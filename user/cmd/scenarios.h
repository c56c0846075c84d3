/* SPDX-License-Identifier: GPL-2.0-only */
/* Flows made in the lab on purpose, each with one known cause of waiting or none. */
#ifndef LAYOVER_SCENARIOS_H
#define LAYOVER_SCENARIOS_H

#include <sys/types.h>

#include "lab/lab.h"
#include "load/plan.h"

struct scenario {
	const char *name, *text;
	void (*shape)(struct load_plan *plan);
	const char *qdisc; /* on the client's device, as tc takes it; NULL: none */
	unsigned int lose; /* one of so many of the client's packets; 0: none */
	bool hog;          /* another task wants the server's CPU */
};

/* Ends with a row whose name is NULL. */
extern const struct scenario scenarios[];

/* NULL: there is none of that name. */
const struct scenario *scenario_by_name(const char *name);

/* The processes of a running scenario. Starts as {0}. */
struct scene {
	struct lab lab;
	pid_t client, hog;
};

/* Makes the lab and starts everything; it dies with this process. 0 or -errno with a sentence. */
int scene_start(struct scene *scene, const struct scenario *scenario);

/* The inode number of the client's network namespace. */
uint64_t scene_namespace(const struct scene *scene);

/* Ends and removes everything. */
void scene_end(struct scene *scene);

#endif
