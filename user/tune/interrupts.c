// SPDX-License-Identifier: GPL-2.0-only
#include "tune/interrupts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/clock.h"
#include "tune/tree.h"

static int no_memory(void)
{
	return err_set(-ENOMEM, "no memory for the table of interrupts");
}

/* The heading: "CPU0 CPU1 CPU3". */
static int parse_heading(char *line, struct interrupts *out)
{
	char *save = NULL;

	for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		int *more = realloc(out->cpus, sizeof(*more) * (size_t)(out->columns + 1));

		if (!more)
			return no_memory();
		out->cpus = more;
		if (strncmp(word, "CPU", 3) || !isdigit((unsigned char)word[3]))
			return err_set(-EINVAL,
				       "the table of interrupts begins with '%s', not a CPU", word);
		out->cpus[out->columns++] = (int)strtol(word + 3, NULL, 10);
	}
	return out->columns ? 0 : err_set(-EINVAL, "the table of interrupts has no CPU");
}

/*
 * What follows the counts is "CHIP HWIRQ-TYPE NAME[, NAME]" in a form that depends on the kernel: names are the
 * last word, and those before it that end with a comma.
 */
static char *find_name(char *rest)
{
	char *name = rest + strlen(rest);

	while (name > rest) {
		char *before = name;

		while (before > rest && isspace((unsigned char)before[-1]))
			before--;
		if (*name && (before == rest || before[-1] != ','))
			break;
		while (before > rest && !isspace((unsigned char)before[-1]))
			before--;
		name = before;
	}
	return name;
}

static char *trimmed(const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	return strndup(from, (size_t)(to - from));
}

static int parse_row(char *line, struct interrupts *out)
{
	char *colon = strchr(line, ':'), *at, *end, *name;
	struct interrupt *row, *more;

	if (!colon)
		return 0;
	more = realloc(out->rows, sizeof(*more) * (size_t)(out->n + 1));
	if (!more)
		return no_memory();
	out->rows = more;
	row = &out->rows[out->n++];
	*row = (struct interrupt){.irq = -1, .label = trimmed(line, colon)};
	row->counts = calloc((size_t)out->columns, sizeof(*row->counts));
	if (!row->label || !row->counts)
		return no_memory();
	if (isdigit((unsigned char)row->label[0]))
		row->irq = (int)strtol(row->label, NULL, 10);
	at = colon + 1;
	for (int c = 0; c < out->columns; c++) { /* ERR and MIS have one count only */
		uint64_t value = strtoull(at, &end, 10);

		if (end == at || (*end && !isspace((unsigned char)*end)))
			break;
		row->counts[c] = value;
		at = end;
	}
	name = row->irq < 0 ? at + strlen(at) : find_name(at);
	row->chip = trimmed(at, name);
	row->name = trimmed(name, name + strlen(name));
	return row->chip && row->name ? 0 : no_memory();
}

int interrupts_parse(const char *text, struct interrupts *out)
{
	char *copy = strdup(text), *save = NULL, *line;
	int rc;

	*out = (struct interrupts){0};
	if (!copy)
		return no_memory();
	line = strtok_r(copy, "\n", &save);
	rc = line ? parse_heading(line, out) : err_set(-EINVAL, "the table of interrupts is empty");
	while (!rc && (line = strtok_r(NULL, "\n", &save)))
		rc = parse_row(line, out);
	free(copy);
	return rc;
}

int interrupts_read(const char *path, struct interrupts *out)
{
	char *text = tree_slurp(path);
	int rc;

	*out = (struct interrupts){0};
	if (!text)
		return err_set(-errno, "cannot read %s: %s", path, strerror(errno));
	rc = interrupts_parse(text, out);
	out->at_ns = clock_ns();
	free(text);
	return rc;
}

void interrupts_free(struct interrupts *all)
{
	for (int i = 0; i < all->n; i++) {
		free(all->rows[i].label);
		free(all->rows[i].chip);
		free(all->rows[i].name);
		free(all->rows[i].counts);
	}
	free(all->rows);
	free(all->cpus);
	*all = (struct interrupts){0};
}

const struct interrupt *interrupts_find(const struct interrupts *all, int irq)
{
	for (int i = 0; i < all->n; i++)
		if (irq >= 0 && all->rows[i].irq == irq)
			return &all->rows[i];
	return NULL;
}

const struct interrupt *interrupts_label(const struct interrupts *all, const char *label)
{
	for (int i = 0; i < all->n; i++)
		if (!strcmp(all->rows[i].label, label))
			return &all->rows[i];
	return NULL;
}

double interrupts_rate(const struct interrupts *from, const struct interrupt *a,
		       const struct interrupts *to, const struct interrupt *b, int column)
{
	uint64_t ns = to->at_ns - from->at_ns;

	if (!a || !b || column >= from->columns || column >= to->columns || !ns)
		return 0;
	/* An interrupt that was freed and requested again starts from nothing. */
	if (b->counts[column] < a->counts[column])
		return 0;
	return (double)(b->counts[column] - a->counts[column]) * 1e9 / (double)ns;
}
