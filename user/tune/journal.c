// SPDX-License-Identifier: GPL-2.0-only
#include "tune/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/state.h"
#include "tune/tree.h"

static const char schema[] = "layover/irq-journal/1";

void journal_step(void)
{
	static long steps;
	const char *stop = getenv("LAYOVER_IRQ_STOP");

	if (stop && ++steps == strtol(stop, NULL, 10))
		kill(getpid(), SIGKILL);
}

/* --- which machine ------------------------------------------------------------------------------- */

static void boot_id(char *text)
{
	tree_read(text, "/proc/sys/kernel/random/boot_id");
}

/* A number that no other network namespace has while this one lives. */
static json_int_t netns(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : (json_int_t)st.st_ino;
}

/* --- files --------------------------------------------------------------------------------------- */

static int cannot(const char *what, const char *path)
{
	int rc = -errno;

	return err_set(rc, "cannot %s %s: %s%s", what, path, strerror(-rc),
		       rc == -EACCES || rc == -EPERM ? "; root may, or set LAYOVER_STATE" : "");
}

int journal_lock(void)
{
	char path[JOURNAL_PATH];
	int fd;

	if (state_make())
		return cannot("make the folder", state_folder());
	snprintf(path, sizeof(path), "%s/lock", state_folder());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return cannot("open", path);
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return err_set(-EAGAIN,
		       "another layover is changing bindings right now; try again when it is done");
}

static int sync_folder(void)
{
	int fd = open(state_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0 || fsync(fd))
		rc = cannot("sync", state_folder());
	if (fd >= 0)
		close(fd);
	return rc;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int journal_list(int *numbers)
{
	DIR *dir = opendir(state_folder());
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return errno == ENOENT ? 0 : cannot("read", state_folder());
	while (n < JOURNALS_MAX && (entry = readdir(dir))) {
		int number, end = 0;

		if (sscanf(entry->d_name, "irq-%d.journal%n", &number, &end) == 1 && end &&
		    !entry->d_name[end] && number > 0)
			numbers[n++] = number;
	}
	closedir(dir);
	qsort(numbers, (size_t)n, sizeof(*numbers), ascending);
	return n;
}

/* One line, in one write. */
static int put_line(int fd, json_t *line, const char *path)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL, *whole = NULL;
	ssize_t size = -1, n = -1;

	json_decref(line);
	errno = ENOMEM;
	if (text)
		size = asprintf(&whole, "%s\n", text);
	if (size > 0)
		n = write(fd, whole, (size_t)size);
	if (size > 0)
		free(whole);
	free(text);
	if (n >= 0 && n < size)
		errno = ENOSPC;
	return n == size && size > 0 ? 0 : cannot("write", path);
}

static int put_synced(struct journal *j, json_t *line)
{
	int rc = put_line(j->fd, line, j->path);

	if (!rc && fdatasync(j->fd))
		rc = cannot("sync", j->path);
	return rc;
}

static int put_plan(struct journal *j, const struct plan *plan)
{
	char boot[TREE_TEXT];
	int rc;

	boot_id(boot);
	rc = put_line(j->fd,
		      json_pack("{s:s, s:s, s:I, s:i}", "schema", schema, "boot", boot, "netns",
				netns(), "changes", plan->n),
		      j->path);
	for (int i = 0; i < plan->n && !rc; i++)
		rc = put_line(j->fd, change_to_json(&plan->rows[i]), j->path);
	journal_step();
	if (!rc && fsync(j->fd))
		rc = cannot("sync", j->path);
	return rc;
}

int journal_create(const struct plan *plan, struct journal *j)
{
	int numbers[JOURNALS_MAX], n = journal_list(numbers), rc;
	char beside[JOURNAL_PATH];

	*j = (struct journal){.fd = -1};
	if (n < 0)
		return n;
	if (n && numbers[n - 1] >= JOURNALS_MAX)
		return err_set(-ENOSPC,
			       "%d plans are applied on top of each other; undo them first",
			       JOURNALS_MAX);
	snprintf(beside, sizeof(beside), "%s/new", state_folder());
	j->number = n ? numbers[n - 1] + 1 : 1;
	snprintf(j->path, sizeof(j->path), "%s/irq-%d.journal", state_folder(), j->number);
	j->fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		     0644);
	if (j->fd < 0)
		return cannot("make", beside);
	journal_step();
	rc = put_plan(j, plan);
	journal_step();
	if (!rc && rename(beside, j->path))
		rc = cannot("rename to", j->path);
	journal_step();
	return rc ? rc : sync_folder();
}

static const char *const state_words[] = {
	[CHANGE_BEGUN] = "begun", [CHANGE_DONE] = "done", [CHANGE_FAILED] = "failed"};

int journal_note(struct journal *j, int change, enum change_state state, int error)
{
	return put_synced(j, json_pack("{s:s, s:i, s:i}", "now", state_words[state], "change",
				       change, "errno", -error));
}

int journal_complete(struct journal *j)
{
	return put_synced(j, json_pack("{s:s}", "now", "complete"));
}

bool journal_is_there(const struct journal *j)
{
	struct stat own, named;

	return !fstat(j->fd, &own) && !stat(j->path, &named) && own.st_ino == named.st_ino &&
	       own.st_dev == named.st_dev;
}

int journal_remove(struct journal *j)
{
	if (unlink(j->path) && errno != ENOENT)
		return cannot("remove", j->path);
	return sync_folder();
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	plan_free(&j->plan);
}

/* --- reading ------------------------------------------------------------------------------------- */

static void take_note(struct journal *j, json_t *line)
{
	const char *word = json_string_value(json_object_get(line, "now"));
	json_int_t change = json_integer_value(json_object_get(line, "change"));

	if (!word)
		return;
	j->complete |= !strcmp(word, "complete");
	for (int state = CHANGE_BEGUN; state <= CHANGE_FAILED; state++)
		if (!strcmp(word, state_words[state]) && change >= 0 && change < j->plan.n) {
			j->plan.rows[change].state = (enum change_state)state;
			j->plan.rows[change].error =
				-(int)json_integer_value(json_object_get(line, "errno"));
		}
}

static int take_header(struct journal *j, json_t *line, int *changes)
{
	const char *is, *boot;
	char now[TREE_TEXT];
	json_int_t ns;

	boot_id(now);
	if (json_unpack(line, "{s:s, s:s, s:I, s:i}", "schema", &is, "boot", &boot, "netns", &ns,
			"changes", changes) ||
	    strcmp(is, schema) != 0)
		return err_set(-EBADMSG, "%s is not a journal of this version", j->path);
	j->old_boot = strcmp(boot, now) != 0;
	j->other_netns = ns != netns();
	return 0;
}

/* Header, then so many changes, then notes; a note cut short by a crash announced nothing yet. */
static int take_lines(struct journal *j, FILE *file)
{
	char *text = NULL;
	size_t size = 0;
	int changes = -1, rc = 0;

	while (!rc && getline(&text, &size, file) > 0) {
		json_t *line = json_loads(text, 0, NULL);

		if (line && changes < 0)
			rc = take_header(j, line, &changes);
		else if (line && j->plan.n < changes)
			rc = plan_add_json(&j->plan, line) ? -EBADMSG : 0;
		else if (line)
			take_note(j, line);
		json_decref(line);
	}
	free(text);
	if (!rc && (changes < 0 || j->plan.n < changes))
		rc = err_set(-EBADMSG, "%s is damaged: it is not whole", j->path);
	return rc;
}

int journal_elsewhere(void)
{
	return err_set(-EXDEV,
		       "it was applied in another network namespace: go there, or 'layover irq "
		       "undo --forget' if that is gone");
}

int journal_read(int number, struct journal *j)
{
	FILE *file;
	int rc;

	*j = (struct journal){.fd = -1, .number = number};
	snprintf(j->path, sizeof(j->path), "%s/irq-%d.journal", state_folder(), number);
	file = fopen(j->path, "re");
	if (!file)
		return cannot("read", j->path);
	rc = take_lines(j, file);
	fclose(file);
	return rc;
}
