/* SPDX-License-Identifier: GPL-2.0-only */
/* Errors: negative errno travels upwards, one human sentence is printed at the top. */
#ifndef LAYOVER_ERROR_H
#define LAYOVER_ERROR_H

/* Exit codes of every command. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* it was tried and did not work, or measured nothing */
	EXIT_USAGE = 2,  /* the command line is wrong */
	EXIT_CANNOT = 3, /* this kernel or these privileges do not allow it */
	EXIT_LIMIT = 4,  /* a --fail-if limit was crossed */
};

/*
 * Keeps a sentence (what failed, why, what to do; no newline, no program name) for this thread
 * and returns rc, so that a function can end with `return err_set(-errno, "...")`.
 */
int err_set(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The last sentence kept by this thread, or strerror(-rc) when there is none. Never NULL. */
const char *err_text(int rc);

/* Forgets the sentence: called where an error was handled and must not surface later. */
void err_clear(void);

/* Prints "layover: SENTENCE" on stderr and returns code, for `return say_error(EXIT_FAILED, ...)`. */
int say_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints "layover: SENTENCE" on stderr: a remark that does not end the run. */
void say_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
