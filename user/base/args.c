// SPDX-License-Identifier: GPL-2.0-only
#include "base/args.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpus.h"
#include "base/error.h"

enum { NAMES_MAX = 256, WORD_MAX = 64 };

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein distance; words longer than WORD_MAX are far from everything. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), row[WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[lb];
}

const char *args_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	size_t best_distance = strlen(word) / 3 + 2;

	for (; *names; names++) {
		size_t d = distance(word, *names);

		if (d < best_distance) {
			best_distance = d;
			best = *names;
		}
	}
	return best;
}

/* Collects the long options of argp and its children. */
static size_t option_rows(const struct argp *argp, const struct argp_option **rows, size_t n)
{
	for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++)
		if (o->name && n < NAMES_MAX)
			rows[n++] = o;
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		n = option_rows(c->argp, rows, n);
	return n;
}

/* The option that getopt would take for this word (exact, else unambiguous prefix), or NULL. */
static const struct argp_option *find_option(const struct argp_option **rows, size_t n,
					     const char *word, size_t len, bool *ambiguous)
{
	const struct argp_option *found = NULL;

	*ambiguous = false;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(rows[i]->name, word, len))
			continue;
		if (strlen(rows[i]->name) == len)
			return rows[i];
		*ambiguous |= found != NULL;
		found = rows[i];
	}
	return found;
}

static bool is_builtin(const char *word, size_t len)
{
	return (len == 4 && !strncmp(word, "help", 4)) || (len == 5 && !strncmp(word, "usage", 5));
}

/* Answers an unknown long option before getopt does, because it can name the nearest one. */
static void check_long_options(const struct argp *argp, int argc, char **argv)
{
	const struct argp_option *rows[NAMES_MAX];
	const char *names[NAMES_MAX + 2];
	size_t n = option_rows(argp, rows, 0);

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const char *word = argv[i] + 2;
		size_t len = strcspn(argv[i], "=");
		const struct argp_option *o;
		bool ambiguous;

		if (strncmp(argv[i], "--", 2))
			continue;
		len -= 2;
		o = find_option(rows, n, word, len, &ambiguous);
		if (o || ambiguous || is_builtin(word, len)) {
			/* an option's required argument may itself start with -- */
			if (o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL) && word[len] != '=')
				i++;
			continue;
		}
		for (size_t k = 0; k < n; k++)
			names[k] = rows[k]->name;
		names[n] = "help";
		names[n + 1] = NULL;
		char unknown[WORD_MAX];
		snprintf(unknown, sizeof(unknown), "%.*s", (int)len, word);
		const char *near = args_nearest(unknown, names);

		exit(say_error(EXIT_USAGE,
			       "%s: there is no option --%s%s%s; '%s --help' lists them", argv[0],
			       unknown, near ? "; the nearest is --" : "", near ? near : "",
			       argv[0]));
	}
}

int args_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static char name[WORD_MAX];
	char *command = argv[0];
	error_t rc;

	argp_err_exit_status = EXIT_USAGE;
	snprintf(name, sizeof(name), "layover %s", command);
	argv[0] = name; /* argp prints argv[0] in usage texts */
	check_long_options(argp, argc, argv);
	rc = argp_parse(argp, argc, argv, 0, NULL, input);
	argv[0] = command;
	if (rc)
		exit(say_error(EXIT_USAGE, "%s", err_text(-rc)));
	return 0;
}

static error_t parse_json_only(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	if (key == ARGP_KEY_ARG)
		return -err_set(-EINVAL, "%s takes no argument, got '%s'", state->name, arg);
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*json = true;
	return 0;
}

void args_parse_json_only(const char *doc, int argc, char **argv, bool *json)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "print JSON", 0},
		{0},
	};
	const struct argp argp = {.options = options, .parser = parse_json_only, .doc = doc};

	args_parse(&argp, argc, argv, json);
}

static int bad_number(const char *what, const char *text, const char *want)
{
	return err_set(-EINVAL, "%s: '%s' is not %s", what, text, want);
}

/* Digits with an optional scale; text must be used up. */
static int scaled(const char *text, const char **rest, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	*rest = end;
	return errno ? -ERANGE : 0;
}

static int check_range(const char *what, uint64_t min, uint64_t max, uint64_t value)
{
	if (value >= min && value <= max)
		return 0;
	return err_set(-ERANGE, "%s: must be between %llu and %llu, got %llu", what,
		       (unsigned long long)min, (unsigned long long)max, (unsigned long long)value);
}

int parse_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *rest;

	if (scaled(text, &rest, value) || *rest)
		return bad_number(what, text, "a whole number");
	return check_range(what, min, max, *value);
}

int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *bytes)
{
	static const char units[] = "kmg";
	const char *rest;
	uint64_t scale = 1;

	if (scaled(text, &rest, bytes))
		return bad_number(what, text, "a size such as 64, 16k or 1M");
	if (*rest) {
		const char *unit = strchr(units, tolower((unsigned char)*rest));

		if (!unit || rest[1])
			return bad_number(what, text, "a size such as 64, 16k or 1M");
		scale = 1ULL << (10 * (unit - units + 1));
	}
	if (__builtin_mul_overflow(*bytes, scale, bytes))
		*bytes = UINT64_MAX;
	return check_range(what, min, max, *bytes);
}

int parse_time(const char *what, const char *text, uint64_t unit_ns, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
	static const char want[] = "a time such as 200us, 10ms, 1.5s or 2m";
	double value, scale = (double)unit_ns;
	char *rest;

	if (!isdigit((unsigned char)text[0]))
		return bad_number(what, text, want);
	value = strtod(text, &rest);
	if (*rest) {
		scale = 0;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (!strcmp(rest, units[i].name))
				scale = units[i].ns;
		if (scale == 0)
			return bad_number(what, text, want);
	}
	if (!(value * scale < 1e18))
		return err_set(-ERANGE, "%s: '%s' is longer than 30 years", what, text);
	*ns = (uint64_t)(value * scale + 0.5);
	return 0;
}

int parse_cpu(const char *what, const char *text, int *cpu)
{
	uint64_t value = 0;
	char list[128];

	if (!parse_count(what, text, 0, CPUS_MAX - 1, &value) && cpus_allowed((int)value)) {
		*cpu = (int)value;
		return 0;
	}
	cpus_format_allowed(list, sizeof(list));
	return err_set(-EINVAL, "%s: '%s' is not a CPU this process may run on (allowed: %s)", what,
		       text, list);
}
