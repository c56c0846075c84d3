/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the text that are about the run as a whole, not about stages. */
#ifndef LAYOVER_TEXT_H
#define LAYOVER_TEXT_H

#include "view/view.h"

enum { TEXT_KEY = 14, TEXT_NUMBER = 7, TEXT_COLUMNS = 79 };

/* Three to five significant digits, right-justified in `width` columns; a dash for what is not known. */
void text_us(int64_t ns, int width);

/* What the first row is of: "round trip", open loop "response", or half of it. */
const char *text_what(const struct report *report);

/* All percentiles and the mean with their confidence intervals. */
void text_statistics(const struct style *style, const struct report *report);

/*
 * Prints words and a newline, breaking lines before the 80th column. `column` columns are on the line already; the
 * lines that follow are indented.
 */
void text_wrapped(const char *text, int column, int indent);

/* latte's four lines, for this process and for the machine. */
void text_os_cost(const struct style *style, const struct os_cost *os);

/* latte's histogram. */
void text_hist(const struct hist *hist);

/* What --until-ci and --histogram-only have to say; nothing without them. */
void text_remarks(const struct report *report);

#endif
