/* SPDX-License-Identifier: GPL-2.0-only */
/* Command lines: argp, plus what argp does not do (nearest names, units, CPU lists). */
#ifndef LAYOVER_ARGS_H
#define LAYOVER_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parses argv with argp for one subcommand: --help on stdout with exit 0; an unknown long option is
 * answered with the nearest name; every usage error exits 2. Returns 0, or does not return.
 */
int args_parse(const struct argp *argp, int argc, char **argv, void *input);

/* The same for a command whose only option is -j, --json, and that takes no argument. */
void args_parse_json_only(const char *doc, int argc, char **argv, bool *json);

/* The name in names (NULL-terminated) nearest to word, or NULL when none is near. */
const char *args_nearest(const char *word, const char *const *names);

/*
 * Numbers. Each returns 0 or -EINVAL/-ERANGE with a sentence kept by err_set() that names `what`.
 * size: 64, 64k, 1M, 1G (powers of 1024). time: 1.5s, 200us, 10ms, 30 (a bare number: unit_ns each).
 */
int parse_count(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *bytes);
int parse_time(const char *what, const char *text, uint64_t unit_ns, uint64_t *ns);

/* One CPU number that this process may run on. -EINVAL with a sentence that lists the allowed ones. */
int parse_cpu(const char *what, const char *text, int *cpu);

#endif
