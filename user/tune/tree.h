/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc and /sys, or a made-up copy of them: with $LAYOVER_ROOT set, all paths are below it, and what comes
 * from ioctl and netlink instead of files is not there. For tests.
 */
#ifndef LAYOVER_TREE_H
#define LAYOVER_TREE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

enum { TREE_TEXT = 4096 };

/* The tree is a made-up one. */
bool tree_is_made_up(void);

/*
 * The first TREE_TEXT - 1 bytes of a file without the newline at the end; text has TREE_TEXT bytes and is ""
 * on failure. 0 or -errno, no sentence.
 */
int tree_read(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A file that holds one number. 0 or -errno, no sentence; *value stays as it is on failure. */
int tree_number(long long *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A whole file, to be freed; NULL with errno. */
char *tree_slurp(const char *path);

/* Text in one write, as these files want it. 0 or -errno as the file said it, no sentence. */
int tree_write(const char *path, const char *text);

/* The last part of where a symbolic link points; text has TREE_TEXT bytes. 0 or -errno, no sentence. */
int tree_link(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool tree_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* NULL with errno. */
DIR *tree_folder(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
