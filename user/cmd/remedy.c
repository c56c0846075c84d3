// SPDX-License-Identifier: GPL-2.0-only
/* layover remedy: sets socket options of live flows of other programs, with a journal to undo it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/args.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/cures.h"
#include "cmd/remedy.h"
#include "collect/remedy.h"
#include "load/clock.h"
#include "view/view.h"

#define AT(field) offsetof(struct remedy_options, field)

static const struct setting remedy_settings[] = {
	{"port", 'p', "PORT", "of flows from or to this port", SETTING_COUNT, AT(port), 1, 65535,
	 NULL},
	{"pid", 0, "PID", "of this process, in its network namespace", SETTING_COUNT, AT(pid), 1,
	 INT32_MAX, NULL},
	{"new", 0, NULL,
	 "with --apply: set it on every connection that is made while this runs, instead of those that live",
	 SETTING_FLAG, AT(fresh), 0, 0, NULL},
	{"cgroup", 0, "PATH", "with --new: only connections of this cgroup (v2) and those below it",
	 SETTING_TEXT, AT(cgroup), 0, 0, NULL},
	{"time", 't', "TIME", "with --new: end after TIME; by default with Ctrl-C", SETTING_TIME,
	 AT(time_ns), NS_PER_S, 0, NULL},
	{"apply", 0, NULL, "do it; without this, only what would be changed is shown", SETTING_FLAG,
	 AT(apply), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char doc[] =
	"Shows what a socket option is on live flows of other programs and what it would become, and with --apply "
	"changes it, without restarting anything. What was changed is kept in a journal; 'layover remedy undo' restores "
	"it.\v"
	"REMEDY is one of:\n"
	"  nodelay         TCP_NODELAY on: the cure for a sender of small writes\n"
	"  delack-max=MS   the longest delay of acknowledgements, 8 to 200 ms: for a receiver\n"
	"  rcvbuf=BYTES    SO_RCVBUF\n"
	"TCP_QUICKACK cannot be set from outside; 'ip route change ... quickack 1' has the same effect on new flows.\n\n"
	"Examples:\n"
	"  layover remedy --port 5000 nodelay            what would change\n"
	"  layover remedy --port 5000 nodelay --apply    change it\n"
	"  layover remedy --port 5000 nodelay --new --apply   connections to come, until Ctrl-C\n"
	"  layover remedy undo                           as before\n";

/* --- the command line ---------------------------------------------------------------------------- */

static int parse_cure(struct remedy_options *o)
{
	size_t length = strcspn(o->what, "=");
	uint64_t value = 1;

	for (size_t i = 0; i < CURES; i++)
		if (strlen(cures[i].name) == length && !strncmp(cures[i].name, o->what, length))
			o->cure = &cures[i];
	if (!o->cure)
		return err_set(-EINVAL,
			       "'%s' is none of nodelay, delack-max=MS, rcvbuf=BYTES, undo",
			       o->what);
	if (!o->cure->unit != !o->what[length])
		return err_set(-EINVAL, "%s takes %s", o->cure->name,
			       o->cure->unit ? "a value: NAME=VALUE" : "no value");
	if (o->cure->unit && parse_count(o->cure->name, o->what + length + 1,
					 (uint64_t)o->cure->min, (uint64_t)o->cure->max, &value))
		return -EINVAL;
	o->value = (int32_t)value * o->cure->scale;
	if (!o->port)
		return err_set(-EINVAL, "name the flows with --port");
	if (o->fresh ? !o->apply || o->pid : o->cgroup || o->time_ns)
		return err_set(
			-EINVAL,
			o->fresh
				? "--new changes what comes: it goes with --apply and without --pid"
				: "--cgroup and --time go with --new");
	return 0;
}

static bool is_undo(const struct remedy_options *o)
{
	return !strcmp(o->what, "undo");
}

static void parse_options(struct remedy_options *o, int argc, char **argv)
{
	const struct settings parts[] = {{remedy_settings, o}, {NULL, NULL}};
	int rc = 0;

	settings_parse(parts, "REMEDY\nundo", doc, &o->what, argc, argv);
	if (!o->what)
		rc = err_set(-EINVAL,
			     "name a remedy: nodelay, delack-max=MS, rcvbuf=BYTES, or undo");
	else if (!is_undo(o))
		rc = parse_cure(o);
	if (rc)
		exit(say_error(EXIT_USAGE, "%s", err_text(rc)));
}

/* --- whose sockets ------------------------------------------------------------------------------- */

static int enter_namespace_at(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 || setns(fd, CLONE_NEWNET) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int enter_namespace_of(uint64_t pid)
{
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%llu/ns/net", (unsigned long long)pid);
	rc = enter_namespace_at(path);
	return rc ? err_set(rc, "cannot enter the network namespace of process %llu: %s",
			    (unsigned long long)pid, strerror(-rc))
		  : 0;
}

static uint64_t own_namespace(void)
{
	struct stat status;

	return stat("/proc/thread-self/ns/net", &status) ? 0 : status.st_ino;
}

/* Looks for a namespace of that number among the entries of a directory, and moves into it. */
static int enter_one_of(const char *dir_path, const char *suffix, uint64_t inode)
{
	struct dirent *entry;
	int rc = -ENOENT;
	DIR *dir = opendir(dir_path);

	while (dir && rc && (entry = readdir(dir))) {
		struct stat status;
		char path[320];

		snprintf(path, sizeof(path), "%s/%s%s", dir_path, entry->d_name, suffix);
		if (!stat(path, &status) && status.st_ino == inode)
			rc = enter_namespace_at(path);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* Moves into the namespace that has this number: a named one, or that of some process. */
static int enter_namespace(uint64_t inode)
{
	if (own_namespace() == inode)
		return 0;
	if (!enter_one_of("/run/netns", "", inode) || !enter_one_of("/proc", "/ns/net", inode))
		return 0;
	return err_set(-ENOENT, "no process and no name leads to the network namespace %llu",
		       (unsigned long long)inode);
}

static bool is_flow(const struct remedy_row *row, uint32_t ports)
{
	uint32_t outward = (uint32_t)row->local_port << 16 | row->remote_port;
	uint32_t inward = (uint32_t)row->remote_port << 16 | row->local_port;

	return !ports || ports == outward || ports == inward;
}

/* Leaves only the sockets of the process and of the flow, if they were named. */
static void keep_wanted(const struct remedy_options *o, struct remedy_rows *found)
{
	char pid[24];
	size_t kept = 0;

	snprintf(pid, sizeof(pid), "%llu", (unsigned long long)o->pid);
	for (size_t i = 0; i < found->count; i++)
		if ((!o->pid || cures_has_socket(pid, found->rows[i].inode)) &&
		    is_flow(&found->rows[i], o->ports))
			found->rows[kept++] = found->rows[i];
	found->count = kept;
}

/* --- showing ------------------------------------------------------------------------------------- */

static int show(const struct remedy_options *o, const struct remedy_rows *rows)
{
	json_t *out = o->json ? view_json_header("remedy") : NULL,
	       *list = o->json ? json_array() : NULL;

	if (o->quiet)
		return 0;
	for (size_t i = 0; i < rows->count; i++)
		cures_show(o, &rows->rows[i], list);
	if (out) {
		json_object_set_new(out, "remedy", json_string(o->cure->name));
		json_object_set_new(out, "applied", json_boolean(o->apply));
		json_object_set_new(out, "sockets", list);
		return view_json_print(out);
	}
	if (!o->apply)
		printf("Nothing was changed; --apply does it, 'layover remedy undo' takes it back.\n");
	return 0;
}

/* --- doing --------------------------------------------------------------------------------------- */

/* 0 when every socket took its value. */
static int check(const struct remedy_options *o, const struct remedy_rows *asked,
		 const struct remedy_rows *done)
{
	for (size_t i = 0; i < done->count; i++) {
		if (done->rows[i].error)
			return err_set(done->rows[i].error, "the kernel refused %s on a socket: %s",
				       o->cure->name, strerror(-done->rows[i].error));
		if (done->rows[i].after != o->value * o->cure->told)
			return err_set(-EIO, "a socket has %s %d after it was set to %d",
				       o->cure->name, done->rows[i].after,
				       o->value * o->cure->told);
	}
	if (done->count < asked->count)
		say_note("%zu of the sockets were closed meanwhile", asked->count - done->count);
	return 0;
}

static int apply(const struct remedy_options *o, const struct remedy_rows *rows)
{
	struct remedy_wish *wishes = calloc(rows->count, sizeof(*wishes));
	struct remedy_rows done = {0};
	int rc = wishes ? cures_journal_add(o->cure, rows->rows, rows->count)
			: err_set(-ENOMEM, "no memory for %zu sockets", rows->count);

	for (size_t i = 0; wishes && i < rows->count; i++)
		wishes[i] = (struct remedy_wish){rows->rows[i].socket, o->value};
	if (!rc)
		rc = remedy_sockets(o->cure->level, o->cure->option, (uint16_t)o->port, wishes,
				    rows->count, &done);
	if (!rc)
		rc = show(o, &done);
	if (!rc)
		rc = check(o, rows, &done);
	free(done.rows);
	free(wishes);
	return rc;
}

static int plan_or_apply(const struct remedy_options *o)
{
	struct remedy_rows rows = {0};
	int rc = o->netns ? enter_namespace(o->netns) : o->pid ? enter_namespace_of(o->pid) : 0;

	if (!rc)
		rc = remedy_sockets(o->cure->level, o->cure->option, (uint16_t)o->port, NULL, 0,
				    &rows);
	if (rc)
		return say_error(rc == -EPERM || rc == -EACCES ? EXIT_CANNOT : EXIT_FAILED, "%s",
				 err_text(rc));
	keep_wanted(o, &rows);
	if (!rows.count)
		rc = err_set(
			-ENOENT,
			"no connected TCP socket from or to port %llu%s; another network namespace is reached "
			"with --pid",
			(unsigned long long)o->port,
			o->pid ? " belongs to that process" : " is here");
	else if (rows.rows[0].error)
		rc = err_set(rows.rows[0].error,
			     "this kernel does not tell %s, so that it could not be undone: %s",
			     o->cure->name, strerror(-rows.rows[0].error));
	else
		rc = o->apply ? apply(o, &rows) : show(o, &rows);
	free(rows.rows);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}

/* --- undoing ------------------------------------------------------------------------------------- */

/* 1: restored, 0: the socket is gone, -errno with a sentence. */
static int undo_one(const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "remedy"));
	struct remedy_wish wish = {(uint64_t)json_integer_value(json_object_get(entry, "socket")),
				   (int32_t)json_integer_value(json_object_get(entry, "before"))};
	uint16_t port = (uint16_t)json_integer_value(json_object_get(entry, "port"));
	struct remedy_rows done = {0};
	int rc;

	if (enter_namespace((uint64_t)json_integer_value(json_object_get(entry, "netns"))))
		return 0; /* no process is left in it */
	for (size_t i = 0; i < CURES; i++) {
		if (!name || strcmp(name, cures[i].name) != 0)
			continue;
		rc = remedy_sockets(cures[i].level, cures[i].option, port, &wish, 1, &done);
		if (!rc && done.count)
			rc = done.rows[0].error
				     ? err_set(done.rows[0].error,
					       "a socket does not take its old %s back: %s", name,
					       strerror(-done.rows[0].error))
				     : 1;
		free(done.rows);
		return rc;
	}
	return err_set(-EINVAL, "the journal names the remedy '%s', which is not known",
		       name ? name : "");
}

static int undo(bool quiet)
{
	json_t *list = cures_journal_read();
	size_t restored = 0, gone = 0;
	int rc = 0;

	if (!json_array_size(list)) {
		json_decref(list);
		if (!quiet)
			printf("There is nothing to undo.\n");
		return EXIT_OK;
	}
	while (rc >= 0 && json_array_size(list)) {
		rc = undo_one(json_array_get(list, 0));
		if (rc < 0)
			break;
		restored += rc == 1;
		gone += rc == 0;
		json_array_remove(list, 0);
		rc = cures_journal_write(list);
	}
	json_decref(list);
	if (rc < 0)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	if (!quiet)
		printf("%zu restored, %zu closed since.\n", restored, gone);
	return EXIT_OK;
}

/* --- for the time of a measurement --------------------------------------------------------------- */

/* Waits for the child of a fork(2). 0, or -errno with a sentence; its own was printed by itself. */
static int outcome(pid_t child)
{
	int status = 0;

	if (child < 0)
		return err_set(-errno, "cannot start a process: %s", strerror(errno));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status ? err_set(-EIO, "the remedy failed, see above") : 0;
}

int remedy_try_nodelay(uint64_t pid, uint64_t netns, uint32_t ports)
{
	const struct remedy_options o = {.pid = pid,
					 .netns = netns,
					 .ports = ports,
					 .port = ports & 0xffff,
					 .apply = true,
					 .quiet = true,
					 .cure = &cures[0],
					 .value = 1};
	json_t *journal = cures_journal_read();
	bool busy = json_array_size(journal) > 0;
	pid_t child;

	json_decref(journal);
	if (busy)
		return err_set(-EBUSY,
			       "an earlier remedy is still applied; 'layover remedy undo' first");
	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(plan_or_apply(&o));
	return outcome(child);
}

int remedy_try_end(void)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(undo(true));
	return outcome(child);
}

int cmd_remedy(int argc, char **argv)
{
	struct remedy_options o = {0};

	parse_options(&o, argc, argv);
	if (is_undo(&o))
		return undo(false);
	return o.fresh ? remedy_new_connections(&o) : plan_or_apply(&o);
}
