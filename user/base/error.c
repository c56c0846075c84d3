// SPDX-License-Identifier: GPL-2.0-only
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[512];

int err_set(int rc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	return rc;
}

const char *err_text(int rc)
{
	return sentence[0] ? sentence : strerror(rc < 0 ? -rc : rc);
}

void err_clear(void)
{
	sentence[0] = '\0';
}

static void say(const char *fmt, va_list args)
{
	fflush(stdout);
	fputs("layover: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

int say_error(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	return code;
}

void say_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}
