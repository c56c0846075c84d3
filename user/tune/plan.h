/* SPDX-License-Identifier: GPL-2.0-only */
/* What shall be changed: a list of settings with their old and new values. */
#ifndef LAYOVER_TUNE_PLAN_H
#define LAYOVER_TUNE_PLAN_H

#include <jansson.h>
#include <stdbool.h>

#include "tune/knobs.h"

enum change_state {
	CHANGE_PLANNED,
	CHANGE_BEGUN, /* it may have been written */
	CHANGE_DONE,  /* written, and read back as it was wanted */
	CHANGE_FAILED,
};

struct change {
	struct setting_ref ref; /* device and key belong to the plan */
	char *old;              /* the value when planned */
	char *new; /* NULL: not wanted, but others of the plan disturb it; undo restores it */
	char *why;
	enum change_state state;
	int error; /* of CHANGE_FAILED: -errno, 0: it was taken, but reads as another value */
};

struct plan {
	struct change *rows; /* in the order they are made */
	int n;
};

/*
 * Adds a setting with its value of now as the old one. Nothing is added when it is so already, or when new is NULL
 * and it cannot be read. 0; -errno with a sentence when it cannot be read.
 */
int plan_add(struct plan *plan, const char *knob, const char *device, const char *key,
	     const char *new, const char *why);

/* Adds copies of the changes whose setting is not in the plan yet. 0 or -ENOMEM with a sentence. */
int plan_merge(struct plan *plan, const struct plan *from);

void plan_free(struct plan *plan);

/* One change as an object; with its number, in journals. A new reference. */
json_t *change_to_json(const struct change *change);

/* Adds what change_to_json() made. 0, or -EINVAL/-ENOMEM with a sentence: not a change, or not an allowed one. */
int plan_add_json(struct plan *plan, json_t *object);

/* Reads a plan that `plan -j` wrote. 0 or -errno with a sentence; plan_free() either way. */
int plan_load(const char *path, struct plan *plan);

/*
 * Are the old values those of now? 0, or -ESTALE with a sentence that names the first that is not, or -errno with
 * a sentence.
 */
int plan_is_current(const struct plan *plan);

#endif
