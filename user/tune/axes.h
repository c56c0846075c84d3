/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `irq tune` tries: axes with values, the first value of each is how it is now. A combination has one value per
 * axis; combination 0 is all as it is now.
 */
#ifndef LAYOVER_AXES_H
#define LAYOVER_AXES_H

#include <sched.h>
#include <stdbool.h>

#include "tune/policies.h"

enum { AXIS_LABEL = 40, AXIS_WORDS_MAX = 4, AXIS_VALUES_MAX = 16, AXES_MAX = 8 };
enum { COMBINATIONS_MAX = 512 };

enum axis_kind {
	AXIS_SETTING, /* of the machine: a policy */
	AXIS_READER,  /* the CPU of the driver's client */
	AXIS_POLL,    /* SO_BUSY_POLL of the driver's sockets */
};

struct axis_value {
	char label[AXIS_LABEL];   /* for people, short */
	char command[AXIS_LABEL]; /* the policy with its argument; "": none */
	int number;               /* AXIS_READER: CPU, -1: any; AXIS_POLL: us */
	struct plan plan;         /* AXIS_SETTING: what it changes; empty for the first value */
};

struct axis {
	const char *name;
	enum axis_kind kind;
	struct axis_value *values; /* AXIS_VALUES_MAX */
	int n;
};

struct axes {
	struct axis rows[AXES_MAX]; /* those with a choice */
	int n;
	int combinations;
	struct plan all; /* every setting that some value changes, once, with its old value */
};

/* What the user wants tried. */
struct axes_wish {
	const char *only; /* names of axes, comma-separated; NULL: all that there are */
	const char *cpus; /* a list; NULL: the first AXES_CPUS usable ones */
	const char *
		extra[AXES_MAX]; /* policies with argument to try as well: "coalesce rx-usecs=30" */
	int extra_count;
	int reader, poll_us; /* how it is now */
};

enum { AXES_CPUS = 4 };

/*
 * Finds out what the device offers: axes of one value are left out. Changes nothing. 0, or -errno with a sentence
 * (-EINVAL: the wish is wrong); axes_free() either way.
 */
int axes_make(const struct machine *machine, const struct device *device,
	      const struct axes_wish *wish, struct axes *out);

void axes_free(struct axes *axes);

/* Which of an axis' values a combination has. */
int axes_value(const struct axes *axes, int combination, int axis);

/* How many axes differ from now. */
int axes_changes(const struct axes *axes, int combination);

/* "irq 0, rx-usecs=0"; "as it is" for combination 0. without: an axis to leave out, -1: none. */
void axes_say(const struct axes *axes, int combination, int without, char *text, size_t size);

/* The value that a setting of axes->all has in a combination. */
const char *axes_wanted(const struct axes *axes, int combination, int setting);

/* The combination's changes alone, as policies_plan() would plan them. 0 or -ENOMEM with a sentence; plan_free(). */
int axes_plan(const struct axes *axes, int combination, struct plan *out);

#endif
