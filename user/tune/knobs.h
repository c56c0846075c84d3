/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be set: one row per kind of setting, all values are text. A setting is a kind, a device and a key
 * (which interrupt, queue or field), so that it can be found again when its number has changed.
 */
#ifndef LAYOVER_KNOBS_H
#define LAYOVER_KNOBS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	KNOB_TEXT = 32768, /* bytes for any value: an RSS table is the longest */
	KNOB_NAME = 512,   /* for what people are told that it is, and what they would type */
};

struct ethtool_group;

struct setting_ref {
	const struct knob *knob;
	const char *device; /* "": the machine */
	const char *key; /* the interrupt's name, the queue's number, names of fields; "": none */
};

struct knob {
	const char *name; /* in plans, journals and JSON */
	/*
	 * A file's path, in which DEV and KEY are replaced; NULL: not a file. Never taken from a plan, so that
	 * no plan can write to another file.
	 */
	const char *path;
	const struct ethtool_group
		*group; /* its key names fields of this; NULL: not one of these */
	/* Two values mean the same (the kernel writes masks and lists its own way). */
	bool (*same)(const char *a, const char *b);
	/* All others; 0 or -errno. */
	int (*read)(const struct setting_ref *s, char *text);
	int (*write)(const struct setting_ref *s, const char *text);
	/* What a person would type; NULL for files: echo. */
	void (*command)(const struct setting_ref *s, const char *text, char *out);
	bool by_number; /* key must be a number */
};

extern const struct knob knobs[]; /* ends with a row whose name is NULL */

/* By name; NULL: there is none. */
const struct knob *knob_find(const char *name);

bool setting_same(const struct setting_ref *a, const struct setting_ref *b);

/* 0, or -EINVAL with a sentence: a device or key that could lead elsewhere. */
int knob_check(const struct setting_ref *s);

/*
 * The value now, without newline; text has KNOB_TEXT bytes. 0; -ENODEV when the device is not there (any more),
 * -ENOENT when the device has no such setting, another -errno; no sentence.
 */
int knob_read(const struct setting_ref *s, char *text);

/* Writes a value. 0 or -errno as the kernel said it; as above. No sentence. Does not read it back. */
int knob_write(const struct setting_ref *s, const char *text);

/* "eth0, IRQ 27 (virtio0-input.0)"; out has KNOB_NAME bytes. */
void knob_say(const struct setting_ref *s, char *out);

/* "echo 0 >/proc/irq/27/smp_affinity_list"; out has KNOB_NAME bytes. */
void knob_command(const struct setting_ref *s, const char *text, char *out);

/* A value for people, short; out has KNOB_NAME bytes. */
void knob_say_value(const struct setting_ref *s, const char *text, char *out);

/* Why a write was refused, for people. */
const char *knob_refusal(const struct setting_ref *s, int rc);

#endif
