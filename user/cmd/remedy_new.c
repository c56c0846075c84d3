// SPDX-License-Identifier: GPL-2.0-only
/* layover remedy --new: connections that are made while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/error.h"
#include "cmd/command.h"
#include "cmd/cures.h"
#include "load/clock.h"
#include "view/view.h"

enum { WAIT_MS = 50 };

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

struct progress {
	const struct remedy_options *options;
	json_t *list; /* NULL: text */
	size_t changed;
};

/* Into the journal first: undo takes it back whatever becomes of the output. */
static int take(void *arg, const struct remedy_row *row)
{
	struct progress *p = arg;
	int rc = row->error ? 0 : cures_journal_add(p->options->cure, row, 1);

	if (rc)
		return rc;
	cures_show(p->options, row, p->list);
	p->changed += !row->error;
	if (p->list)
		return 0;
	return fflush(stdout) ? err_set(-errno, "cannot write: %s", strerror(errno)) : 0;
}

static int until_stopped(struct remedy_new *fresh, struct progress *p)
{
	const struct remedy_options *o = p->options;
	uint64_t end = o->time_ns ? clock_ns() + o->time_ns : UINT64_MAX;
	int rc = 0;

	while (!rc && !stopped && clock_ns() < end)
		rc = remedy_new_poll(fresh, WAIT_MS, take, p);
	return rc ? rc : remedy_new_poll(fresh, 0, take, p);
}

static int tell_end(const struct remedy_new *fresh, const struct progress *p)
{
	uint64_t untold = remedy_new_untold(fresh);
	json_t *out;

	if (untold)
		say_note("%llu connections more were changed and are in no journal",
			 (unsigned long long)untold);
	if (!p->list) {
		printf("%zu new connections were changed; 'layover remedy undo' restores those that live.\n",
		       p->changed);
		return 0;
	}
	out = view_json_header("remedy");
	json_object_set_new(out, "remedy", json_string(p->options->cure->name));
	json_object_set_new(out, "applied", json_true());
	json_object_set(out, "sockets", p->list);
	return view_json_print(out);
}

static int open_cgroup(const struct remedy_options *o)
{
	char path[PATH_MAX];
	int rc = cgroup_find(o->cgroup ? o->cgroup : "/", path, sizeof(path));
	int fd = rc ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (rc)
		return rc;
	return fd >= 0 ? fd : err_set(-errno, "cannot open %s: %s", path, strerror(errno));
}

int remedy_new_connections(const struct remedy_options *o)
{
	struct progress progress = {.options = o, .list = o->json ? json_array() : NULL};
	int cgroup = open_cgroup(o), rc = cgroup < 0 ? cgroup : 0;
	struct remedy_new *fresh = NULL;

	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	if (!rc)
		rc = remedy_new_open(&fresh, o->cure->level, o->cure->option, o->value,
				     (uint16_t)o->port, cgroup);
	if (!rc && !progress.list) {
		printf("Watching for new connections from or to port %llu; Ctrl-C ends it.\n",
		       (unsigned long long)o->port);
		fflush(stdout);
	}
	if (!rc)
		rc = until_stopped(fresh, &progress);
	if (!rc)
		rc = tell_end(fresh, &progress);
	remedy_new_close(fresh);
	json_decref(progress.list);
	if (cgroup >= 0)
		close(cgroup);
	return rc ? say_error(rc == -EPERM || rc == -EACCES ? EXIT_CANNOT : EXIT_FAILED, "%s",
			      err_text(rc))
		  : EXIT_OK;
}
