/* SPDX-License-Identifier: GPL-2.0-only */
/* What `ping` can print, as a table: one row per --format. */
#ifndef LAYOVER_FORMATS_H
#define LAYOVER_FORMATS_H

#include <stdbool.h>

struct report;

struct view_format {
	const char *name;
	int (*print)(const struct report *report); /* on stdout; 0 or -errno with a sentence */
	int (*print_sweep)(const struct report *report); /* one of several; NULL: it cannot */
	bool whole_only;                                 /* has no words for half a round trip */
	bool shows_hist;
	bool shows_interim; /* on stdout, among the rest: it is for people */
};

enum { VIEW_FORMATS_MAX = 16 };

/* Ends with a row whose name is NULL. The first one is the default. */
extern const struct view_format view_formats[];

/* NULL: there is none. */
const struct view_format *view_format_by_name(const char *name);

#endif
