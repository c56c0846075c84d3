// SPDX-License-Identifier: GPL-2.0-only
#include "tune/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpulist.h"
#include "base/error.h"
#include "load/clock.h"
#include "tune/interrupts.h"

static int add_check(struct checks *all, const struct change *change)
{
	struct check *more;

	for (int i = 0; i < all->n; i++)
		if (setting_same(&all->rows[i].change->ref, &change->ref)) {
			all->rows[i].change = change;
			return 0;
		}
	more = realloc(all->rows, sizeof(*more) * (size_t)(all->n + 1));
	if (!more)
		return err_set(-ENOMEM, "no memory to verify");
	all->rows = more;
	all->rows[all->n++] = (struct check){.change = change};
	return 0;
}

static int read_journals(struct checks *all)
{
	int numbers[JOURNALS_MAX], n = journal_list(numbers), rc = n < 0 ? n : 0;

	all->journals = n > 0 ? calloc((size_t)n, sizeof(*all->journals)) : NULL;
	if (n > 0 && !all->journals)
		return err_set(-ENOMEM, "no memory to verify");
	for (int i = 0; i < n && !rc; i++) {
		struct journal *j = &all->journals[all->journal_count++];

		rc = journal_read(numbers[i], j);
		if (!rc && j->other_netns && !j->old_boot)
			rc = journal_elsewhere();
		for (int c = 0; c < j->plan.n && !rc && !j->old_boot; c++)
			if (j->plan.rows[c].state == CHANGE_DONE)
				rc = add_check(all, &j->plan.rows[c]);
	}
	return rc;
}

static int check_value(struct check *c)
{
	char *text = malloc(KNOB_TEXT);

	if (!text)
		return err_set(-ENOMEM, "no memory to verify");
	c->error = knob_read(&c->change->ref, text);
	c->drifted = c->error || !c->change->ref.knob->same(text, c->change->new);
	if (!c->error)
		c->now = strdup(text);
	free(text);
	return 0;
}

static const struct interrupt *by_name(const struct interrupts *all, const char *name)
{
	for (int i = 0; i < all->n; i++)
		if (all->rows[i].irq >= 0 && !strcmp(all->rows[i].name, name))
			return &all->rows[i];
	return NULL;
}

static void check_stray(struct check *c, const struct interrupts *from, const struct interrupts *to)
{
	const struct interrupt *a = by_name(from, c->change->ref.key);
	const struct interrupt *b = by_name(to, c->change->ref.key);
	cpu_set_t wanted;

	if (strcmp(c->change->ref.knob->name, "irq") != 0 || !a || !b || c->drifted ||
	    from->columns != to->columns || cpulist_parse("", c->change->new, &wanted))
		return;
	for (int column = 0; column < to->columns; column++)
		if (to->cpus[column] < CPU_SETSIZE && !CPU_ISSET(to->cpus[column], &wanted) &&
		    b->counts[column] > a->counts[column])
			c->stray += b->counts[column] - a->counts[column];
	c->stray -= c->stray > 0;
	c->drifted = c->stray > 0;
}

static int count_strays(struct checks *all, uint64_t interval_ns)
{
	struct timespec interval = clock_timespec(interval_ns);
	struct interrupts from, to = {0};
	int rc = interrupts_read("/proc/interrupts", &from);

	if (!rc) {
		nanosleep(&interval, NULL);
		rc = interrupts_read("/proc/interrupts", &to);
	}
	for (int i = 0; i < all->n && !rc; i++)
		check_stray(&all->rows[i], &from, &to);
	interrupts_free(&from);
	interrupts_free(&to);
	return rc;
}

int checks_make(struct checks *all, uint64_t interval_ns)
{
	int rc;

	*all = (struct checks){0};
	rc = read_journals(all);
	for (int i = 0; i < all->n && !rc; i++)
		rc = check_value(&all->rows[i]);
	if (!rc && all->n && interval_ns)
		rc = count_strays(all, interval_ns);
	for (int i = 0; i < all->n; i++)
		all->drifted += all->rows[i].drifted;
	return rc;
}

void checks_free(struct checks *all)
{
	for (int i = 0; i < all->n; i++)
		free(all->rows[i].now);
	for (int i = 0; i < all->journal_count; i++)
		journal_close(&all->journals[i]);
	free(all->rows);
	free(all->journals);
	*all = (struct checks){0};
}
