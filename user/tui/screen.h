/* SPDX-License-Identifier: GPL-2.0-only */
/* The terminal: ncurses in one place. Text is clipped to cells; colours are inks, which know what the terminal can. */
#ifndef LAYOVER_SCREEN_H
#define LAYOVER_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "model/top.h"

enum ink {
	INK_PLAIN,
	INK_TITLE,    /* the first line */
	INK_TAB,      /* a page that could be shown … */
	INK_TAB_ON,   /* … and the one that is */
	INK_HEAD,     /* heads of columns */
	INK_HEAD_ON,  /* of the one that is sorted by */
	INK_SELECTED, /* the line of the cursor */
	INK_KEY,      /* keys in the footer … */
	INK_KEY_TEXT, /* … and what they do */
	INK_DIM,
	INK_STRONG,
	INK_ALARM, /* a stall, FROZEN */
	INK_GROUP, /* one for each enum top_group */
	INK_HEAT = INK_GROUP + TOP_GROUPS,
	INK_HEATS = 6, /* from few to many */
	INKS = INK_HEAT + INK_HEATS,
};

struct screen {
	int lines, columns;
	bool utf8, colours;
	bool open;
	unsigned long attributes[INKS];
};

/* What the user wants of the terminal. */
struct screen_wish {
	bool ascii, mono;
};

/* Takes the terminal of stdin and stdout over. 0 or -errno with a sentence. */
int screen_open(struct screen *screen, const struct screen_wish *wish);

/* Gives the terminal back as it was. Idempotent. */
void screen_close(struct screen *screen);

/* The same for a while, and again. */
void screen_leave(struct screen *screen);
void screen_return(struct screen *screen);

/* The terminal has another size now. */
void screen_resized(struct screen *screen);

void screen_clear(struct screen *screen);

/* Draws what changed. all: draws everything again. */
void screen_show(struct screen *screen, bool all);

/* Puts text into width cells from column x on, filled up with blanks; too long a text ends with an ellipsis. */
void screen_put(const struct screen *screen, int y, int x, int width, enum ink ink,
		const char *text);

/* The same right-justified. */
void screen_put_right(const struct screen *screen, int y, int x, int width, enum ink ink,
		      const char *text);

/* Puts as much as there is of text; returns the column after it. */
int screen_add(const struct screen *screen, int y, int x, enum ink ink, const char *text);

/* The formatted text, from x to the end of the line. */
void screen_line(const struct screen *screen, int y, int x, enum ink ink, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* n times the same character; in ASCII another one. */
void screen_fill(const struct screen *screen, int y, int x, int n, enum ink ink, const char *utf8,
		 char ascii);

/* How many cells a text takes. */
int screen_width(const char *text);

/* A stacked bar of shares (TOP_GROUPS of them, 0 … 1) in width cells, letters where there are no colours. */
void screen_bar(const struct screen *screen, int y, int x, int width, const float *share);

/* A bar of one colour, in eighths of a cell where UTF-8 is there. share: 0 … 1. */
void screen_gauge(const struct screen *screen, int y, int x, int width, enum ink ink, double share);

/* A history as small columns, the newest at the right; the largest of it fills a cell. */
void screen_spark(const struct screen *screen, int y, int x, int width, enum ink ink,
		  const float *values, int count);

/* The next key (as curses has them), -1: none is waiting. */
int screen_key(void);

/* Where the mouse was clicked; false: nowhere. */
bool screen_mouse(int *y, int *x);

/* Writes what is on the screen as text, without blanks at the ends. */
void screen_print(const struct screen *screen, FILE *file);

#endif
