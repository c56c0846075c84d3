// SPDX-License-Identifier: GPL-2.0-only
#include "tune/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *root(void)
{
	const char *set = getenv("LAYOVER_ROOT");

	return set ? set : "";
}

bool tree_is_made_up(void)
{
	return *root() != '\0';
}

static void full_path(char *path, const char *fmt, va_list args)
{
	int n = snprintf(path, PATH_MAX, "%s", root());

	if (n >= 0 && n < PATH_MAX)
		vsnprintf(path + n, (size_t)(PATH_MAX - n), fmt, args);
}

#define FULL_PATH(path, fmt)                                                                       \
	do {                                                                                       \
		va_list args;                                                                      \
		va_start(args, fmt);                                                               \
		full_path(path, fmt, args);                                                        \
		va_end(args);                                                                      \
	} while (0)

static int read_file(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, text, TREE_TEXT - 1);
	if (n < 0)
		rc = -errno;
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return rc;
}

int tree_read(char *text, const char *fmt, ...)
{
	char path[PATH_MAX];

	FULL_PATH(path, fmt);
	return read_file(path, text);
}

int tree_number(long long *value, const char *fmt, ...)
{
	char path[PATH_MAX], text[TREE_TEXT], *end;
	long long number;
	int rc;

	FULL_PATH(path, fmt);
	rc = read_file(path, text);
	if (rc)
		return rc;
	number = strtoll(text, &end, 0);
	if (end == text || *end)
		return -EINVAL;
	*value = number;
	return 0;
}

/* Files of /proc have no size: read until there is no more. */
char *tree_slurp(const char *path)
{
	char whole[PATH_MAX], *text = NULL;
	size_t used = 0, size = 0;
	ssize_t n = 1;
	int fd;

	snprintf(whole, sizeof(whole), "%s%s", root(), path);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while (n > 0) {
		if (used + 1 >= size) {
			char *more = realloc(text, size ? 2 * size : 16384);

			if (!more)
				break;
			text = more;
			size = size ? 2 * size : 16384;
		}
		n = read(fd, text + used, size - used - 1);
		if (n > 0)
			used += (size_t)n;
	}
	close(fd);
	if (!n) {
		text[used] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

int tree_write(const char *path, const char *text)
{
	char whole[PATH_MAX];
	size_t size = strlen(text);
	int fd, rc = 0;
	ssize_t n;

	snprintf(whole, sizeof(whole), "%s%s", root(), path);
	fd = open(whole, O_WRONLY | O_CLOEXEC | (tree_is_made_up() ? O_TRUNC : 0));
	if (fd < 0)
		return -errno;
	n = write(fd, text, size);
	if (n < 0)
		rc = -errno;
	else if ((size_t)n != size)
		rc = -EIO;
	close(fd);
	return rc;
}

int tree_link(char *text, const char *fmt, ...)
{
	char path[PATH_MAX], *last;
	ssize_t n;

	FULL_PATH(path, fmt);
	n = readlink(path, text, TREE_TEXT - 1);
	if (n < 0) {
		text[0] = '\0';
		return -errno;
	}
	text[n] = '\0';
	last = strrchr(text, '/');
	if (last)
		memmove(text, last + 1, strlen(last));
	return 0;
}

bool tree_exists(const char *fmt, ...)
{
	char path[PATH_MAX];

	FULL_PATH(path, fmt);
	return !access(path, F_OK);
}

DIR *tree_folder(const char *fmt, ...)
{
	char path[PATH_MAX];

	FULL_PATH(path, fmt);
	return opendir(path);
}
