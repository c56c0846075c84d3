/* SPDX-License-Identifier: GPL-2.0-only */
/* Control groups, version 2, by the numbers that BPF knows them by. */
#ifndef LAYOVER_CGROUP_H
#define LAYOVER_CGROUP_H

#include <stddef.h>
#include <stdint.h>

/*
 * The directory of a cgroup into path (size bytes): name as it is, or below where the cgroup2 file system is mounted
 * ("system.slice/redis.service"). -ENOENT with a sentence.
 */
int cgroup_find(const char *name, char *path, size_t size);

/*
 * The ids (inode numbers of the directories, see cgroup_id() in the kernel) of the cgroup at path and all below it, in
 * *ids, which the caller frees. 0 or -errno with a sentence.
 */
int cgroup_ids(const char *path, uint64_t **ids, size_t *count);

#endif
