// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/cures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/state.h"
#include "load/address.h"

enum { DELACK_MAX_OPTION = 1003 /* TCP_BPF_DELACK_MAX, include/uapi/linux/bpf.h; in us */ };

const struct cure cures[CURES] = {
	{"nodelay", NULL, IPPROTO_TCP, TCP_NODELAY, 1, 1, 1, 1},
	{"delack-max", "MS", IPPROTO_TCP, DELACK_MAX_OPTION, 8, 200, 1000, 1},
	{"rcvbuf", "BYTES", SOL_SOCKET, SO_RCVBUF, 1024, 1 << 29, 1, 2},
};

/* --- the journal --------------------------------------------------------------------------------- */

/* In a directory that a restart empties: sockets do not outlive one either. */
static void journal_path(char *path, size_t size, const char *suffix)
{
	state_make(); /* if it cannot be made, writing the file tells why */
	snprintf(path, size, "%s/remedy.json%s", state_folder(), suffix);
}

json_t *cures_journal_read(void)
{
	char path[PATH_MAX];
	json_t *list;

	journal_path(path, sizeof(path), "");
	list = json_load_file(path, 0, NULL);
	return list && json_is_array(list) ? list : json_array();
}

int cures_journal_write(const json_t *list)
{
	char path[PATH_MAX], part[PATH_MAX];
	int fd, rc;

	journal_path(path, sizeof(path), "");
	journal_path(part, sizeof(part), ".part");
	if (!json_array_size(list))
		return unlink(path) && errno != ENOENT
			       ? err_set(-errno, "cannot remove %s: %s", path, strerror(errno))
			       : 0;
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	rc = fd < 0 || json_dumpfd(list, fd, JSON_INDENT(1)) || fsync(fd) ? -1 : 0;
	if (fd >= 0)
		close(fd);
	if (!rc && !rename(part, path))
		return 0;
	return err_set(-EIO, "cannot write the journal %s: %s; nothing was changed", path,
		       strerror(errno));
}

static bool journal_has(const json_t *list, const struct cure *cure, uint64_t socket)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry)
		if (!strcmp(json_string_value(json_object_get(entry, "remedy")), cure->name) &&
		    (uint64_t)json_integer_value(json_object_get(entry, "socket")) == socket)
			return true;
	return false;
}

int cures_journal_add(const struct cure *cure, const struct remedy_row *rows, size_t count)
{
	json_t *list = cures_journal_read();
	int rc;

	for (size_t i = 0; i < count; i++)
		if (!journal_has(list, cure, rows[i].socket))
			json_array_append_new(list, json_pack("{s:s, s:I, s:i, s:I, s:i}", "remedy",
							      cure->name, "socket",
							      (json_int_t)rows[i].socket, "port",
							      rows[i].local_port, "netns",
							      (json_int_t)rows[i].netns, "before",
							      (int)(rows[i].before / cure->told)));
	rc = cures_journal_write(list);
	json_decref(list);
	return rc;
}

bool cures_has_socket(const char *pid, uint64_t inode)
{
	char path[64], target[64], wanted[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	snprintf(wanted, sizeof(wanted), "socket:[%llu]", (unsigned long long)inode);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		found = !strcmp(target, wanted);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The first process that has it open, 0: none. */
static uint64_t owner_of(uint64_t inode)
{
	struct dirent *entry;
	uint64_t pid = 0;
	DIR *dir = inode ? opendir("/proc") : NULL;

	while (dir && !pid && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    cures_has_socket(entry->d_name, inode))
			pid = strtoull(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return pid;
}

void cures_show(const struct remedy_options *o, const struct remedy_row *row, json_t *list)
{
	int32_t becomes = o->apply ? row->after : o->value * o->cure->told;
	uint64_t pid = owner_of(row->inode);
	char local[ADDRESS_TEXT_MAX], remote[ADDRESS_TEXT_MAX], owner[40] = "no process yet";

	if (pid)
		snprintf(owner, sizeof(owner), "process %llu", (unsigned long long)pid);
	address_format_bytes(row->family, row->local, row->bound_ifindex, row->local_port, local);
	address_format_bytes(row->family, row->remote, row->bound_ifindex, row->remote_port,
			     remote);
	if (list)
		json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:i, s:i, s:i}", "pid",
						      (json_int_t)pid, "local", local, "remote",
						      remote, "before", row->before, "after",
						      becomes, "error", row->error));
	else if (row->error)
		printf("%s  %s to %s  %s: %s\n", owner, local, remote, o->cure->name,
		       strerror(-row->error));
	else
		printf("%s  %s to %s  %s: %d -> %d\n", owner, local, remote, o->cure->name,
		       row->before, becomes);
}
