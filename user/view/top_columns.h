/* SPDX-License-Identifier: GPL-2.0-only */
/* The columns of `top`: screen, batch, sort menu, help and man page are loops over this table. */
#ifndef LAYOVER_TOP_COLUMNS_H
#define LAYOVER_TOP_COLUMNS_H

#include "model/top.h"

enum top_unit { UNIT_US, UNIT_MS, UNIT_AUTO, TOP_UNITS };

extern const char *const top_unit_names[TOP_UNITS];

/* How values are to be written. */
struct top_format {
	enum top_unit unit;
	bool utf8;
};

enum { TOP_TEXT_MAX = 96 };

struct top_column {
	const char *key, *title;
	int width;
	int priority; /* the highest stay when there is too little room */
	int stretch;  /* how much wider it may become */
	bool left;    /* left-justified: text */
	bool bar;     /* where the time goes: a screen draws it, a text names the largest part */
	bool address; /* told apart by its end */
	const char *help;
	double (*value)(const struct top_row *row); /* to sort by; NULL: by text */
	int (*by_text)(const struct top_row *a, const struct top_row *b);
	void (*format)(const struct top_row *row, const struct top_format *format, char *text);
};

extern const struct top_column top_columns[];
extern const int top_column_count;

/* The column of that key or title, or -1. */
int top_column_by_key(const char *key);

/* Which columns fit into so many cells and how wide they are: width[column], 0: left out. hidden: bits of columns. */
void top_columns_fit(int cells, unsigned int hidden, int width[]);

/* The formats by themselves. text: TOP_TEXT_MAX bytes. */
void top_text_ns(double ns, const struct top_format *format, char *text);
void top_text_rate(double per_second, char *text);

/* "delayed_ack", "" for none. */
const char *top_cause_name(int cause);

#endif
