// SPDX-License-Identifier: GPL-2.0-only
#include "base/settings.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/args.h"
#include "base/error.h"

enum { ROWS_MAX = 128, KEY_FIRST = 0x100 };

/* The rows of all parts in one line: what argp calls a key finds its row here. */
struct table {
	struct argp_option options[ROWS_MAX + 1];
	struct {
		const struct setting *setting;
		void *into;
	} rows[ROWS_MAX];
	int n;
	const char **words; /* of the arguments */
	int max, count;
};

static void fill(struct table *t, const struct settings *parts)
{
	int group = 0;

	for (const struct settings *p = parts; p->rows; p++) {
		for (const struct setting *s = p->rows; s->doc && t->n < ROWS_MAX; s++) {
			if (s->kind == SETTING_HEADING)
				group++;
			t->options[t->n] = (struct argp_option){
				.name = s->name,
				.key = !s->name ? 0
				       : s->key ? s->key
						: KEY_FIRST + t->n,
				.arg = s->arg,
				.doc = s->doc,
				.group = group,
			};
			t->rows[t->n].setting = s;
			t->rows[t->n++].into = p->into;
		}
	}
}

static int read_number(const struct setting *s, const char *what, const char *text, void *at)
{
	uint64_t value = 0;
	int rc;

	switch (s->kind) {
	case SETTING_COUNT:
		return parse_count(what, text, s->min, s->max, at);
	case SETTING_SIZE:
		return parse_size(what, text, s->min, s->max, at);
	case SETTING_TIME:
		return parse_time(what, text, s->min, at);
	case SETTING_CPU:
		return parse_cpu(what, text, at);
	default:
		rc = parse_count(what, text, s->min, s->max, &value);
		*(int *)at = (int)value;
		return rc;
	}
}

static int read_value(const struct setting *s, const char *text, void *into)
{
	void *at = (char *)into + s->offset;
	char what[64];

	snprintf(what, sizeof(what), "--%s", s->name);
	switch (s->kind) {
	case SETTING_FLAG:
		*(bool *)at = true;
		return 0;
	case SETTING_WORD:
		*(int *)at = (int)s->min;
		return 0;
	case SETTING_TEXT:
		*(const char **)at = text;
		return 0;
	case SETTING_OWN:
		return s->parse(into, what, text);
	default:
		return read_number(s, what, text, at);
	}
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct table *t = state->input;

	if (key == ARGP_KEY_ARG) {
		if (!t->max)
			return -err_set(-EINVAL, "%s takes no argument, got '%s'", state->name,
					text);
		if (t->count == t->max)
			return -err_set(-EINVAL, "%s only, not '%s'",
					t->max == 1 ? "one argument" : "so many arguments", text);
		t->words[t->count++] = text;
		return 0;
	}
	for (int i = 0; i < t->n; i++)
		if (t->options[i].name && t->options[i].key == key)
			return -read_value(t->rows[i].setting, text, t->rows[i].into);
	return ARGP_ERR_UNKNOWN;
}

int settings_parse_words(const struct settings *parts, const char *args_doc, const char *doc,
			 const char **words, int max, int argc, char **argv)
{
	struct table table = {.words = words, .max = max};
	struct argp argp = {
		.options = table.options, .parser = parse, .args_doc = args_doc, .doc = doc};

	fill(&table, parts);
	args_parse(&argp, argc, argv, &table);
	return table.count;
}

void settings_parse(const struct settings *parts, const char *args_doc, const char *doc,
		    const char **argument, int argc, char **argv)
{
	settings_parse_words(parts, args_doc, doc, argument, argument != NULL, argc, argv);
}
