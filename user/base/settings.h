/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options as tables: one row is an option's name, its line in --help, how its value is read and where it
 * goes. Commands that share options share the table.
 */
#ifndef LAYOVER_SETTINGS_H
#define LAYOVER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

enum setting_kind {
	SETTING_HEADING, /* only doc */
	SETTING_FLAG,    /* bool: set to true */
	SETTING_WORD,    /* int: set to min; the option takes no value */
	SETTING_COUNT,   /* uint64_t, a whole number min … max */
	SETTING_SIZE,    /* uint64_t, bytes, min … max */
	SETTING_TIME,    /* uint64_t, ns; a bare number counts in units of min */
	SETTING_CPU,     /* int, a CPU this process may run on */
	SETTING_INT,     /* int, a whole number min … max */
	SETTING_TEXT,    /* const char * */
	SETTING_OWN,     /* parse() does it */
};

struct setting {
	const char *name; /* the long option */
	int key;          /* its letter, 0: none */
	const char *arg;  /* the value's name; NULL: takes none */
	const char *doc;
	enum setting_kind kind;
	size_t offset; /* into the struct that the table belongs to */
	uint64_t min, max;
	/* 0 or -errno with a sentence; what is the option with its dashes, text NULL without a value. */
	int (*parse)(void *into, const char *what, const char *text);
};

/* One table and the struct that it fills. */
struct settings {
	const struct setting *rows; /* ends with a row whose doc is NULL */
	void *into;
};

enum { SETTINGS_PARTS_MAX = 8 };

/*
 * Parses a command line by the tables (at most SETTINGS_PARTS_MAX, the last one's rows are NULL) as
 * args_parse() does. At most one argument is taken, into *argument; argument may be NULL: none is.
 * Does not return when the line is wrong.
 */
void settings_parse(const struct settings *parts, const char *args_doc, const char *doc,
		    const char **argument, int argc, char **argv);

/* The same with up to max arguments, into words. Returns how many there were. */
int settings_parse_words(const struct settings *parts, const char *args_doc, const char *doc,
			 const char **words, int max, int argc, char **argv);

#endif
