// SPDX-License-Identifier: GPL-2.0-only
#include "base/cgroup.h"

#include <errno.h>
#include <fts.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/error.h"

static bool is_cgroup(const char *path)
{
	struct statfs fs;
	struct stat status;

	return !statfs(path, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC && !stat(path, &status) &&
	       S_ISDIR(status.st_mode);
}

int cgroup_find(const char *name, char *path, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *mount;
	bool found;

	snprintf(path, size, "%s", name);
	found = is_cgroup(path);
	while (!found && mounts && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2") != 0)
			continue;
		snprintf(path, size, "%s/%s", mount->mnt_dir, name);
		found = is_cgroup(path);
	}
	if (mounts)
		endmntent(mounts);
	return found ? 0
		     : err_set(-ENOENT, "'%s' is no cgroup of version 2; 'systemd-cgls' shows them",
			       name);
}

static int keep(uint64_t **ids, size_t *count, uint64_t id)
{
	uint64_t *grown = *count & (*count - 1)
				  ? *ids
				  : realloc(*ids, (*count ? 2 * *count : 1) * sizeof(id));

	if (!grown)
		return err_set(-ENOMEM, "no memory for the cgroup's numbers");
	*ids = grown;
	grown[(*count)++] = id;
	return 0;
}

int cgroup_ids(const char *path, uint64_t **ids, size_t *count)
{
	char copy[4096], *const roots[] = {copy, NULL};
	FTS *tree;
	FTSENT *entry;
	int rc = 0;

	*ids = NULL;
	*count = 0;
	snprintf(copy, sizeof(copy), "%s", path);
	tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
	if (!tree)
		return err_set(-errno, "cannot read %s: %s", path, strerror(errno));
	while (!rc && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_D)
			rc = keep(ids, count, entry->fts_statp->st_ino);
	fts_close(tree);
	return rc;
}
