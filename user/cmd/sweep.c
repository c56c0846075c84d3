// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/error.h"
#include "load/plan.h"

static int add(struct sweep *sweep, const char *what, uint64_t bytes)
{
	if (sweep->count == SWEEP_MAX)
		return err_set(-ERANGE, "%s: at most %d sizes", what, SWEEP_MAX);
	sweep->bytes[sweep->count++] = bytes;
	return 0;
}

/* The last size belongs to the sweep, whether doubling meets it or not. */
static int parse_range(struct sweep *sweep, const char *what, const char *first, const char *last)
{
	uint64_t from = 0, to = 0;
	int rc = parse_size(what, first, 1, PLAN_TCP_BYTES_MAX, &from);

	if (!rc)
		rc = parse_size(what, last, from, PLAN_TCP_BYTES_MAX, &to);
	for (uint64_t bytes = from; !rc && bytes < to; bytes *= 2)
		rc = add(sweep, what, bytes);
	return rc ? rc : add(sweep, what, to);
}

static int parse_list(struct sweep *sweep, const char *what, char *list)
{
	uint64_t bytes;
	char *word;
	int rc = 0;

	while (!rc && (word = strsep(&list, ","))) {
		rc = parse_size(what, word, 1, PLAN_TCP_BYTES_MAX, &bytes);
		if (!rc)
			rc = add(sweep, what, bytes);
	}
	return rc;
}

int sweep_parse(void *into, const char *what, const char *text)
{
	struct sweep *sweep = into;
	char *copy = strdup(text), *dots = copy ? strstr(copy, "..") : NULL;
	int rc;

	sweep->count = 0;
	if (!copy)
		return err_set(-ENOMEM, "no memory for '%s'", text);
	if (dots) {
		*dots = '\0';
		rc = parse_range(sweep, what, copy, dots + 2);
	} else {
		rc = parse_list(sweep, what, copy);
	}
	free(copy);
	return rc;
}
