/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was changed, on disk before it is changed: $LAYOVER_STATE or /run/layover holds one file per apply,
 * irq-N.journal, of JSON lines: a header, each change with its old value, then what became of them, in the order
 * it happened. The file appears whole (written beside, synced, renamed); every line after that is synced before
 * the step that it announces. So whatever may have been written has its old value there, at any moment.
 */
#ifndef LAYOVER_JOURNAL_H
#define LAYOVER_JOURNAL_H

#include <stdbool.h>

#include "tune/plan.h"

enum { JOURNALS_MAX = 99, JOURNAL_PATH = 512 };

struct journal {
	char path[JOURNAL_PATH];
	int number;
	int fd;           /* -1: not open for writing */
	struct plan plan; /* with states; empty for the ones that journal_create() made */
	bool complete;    /* apply came to its end */
	bool old_boot;    /* the machine was started anew since: nothing of it is left */
	bool other_netns; /* its devices are in another network namespace */
};

/*
 * One layover at a time works on bindings. Makes the folder if there is none. A descriptor to be closed, or -errno
 * with a sentence (-EAGAIN: another one is at work).
 */
int journal_lock(void);

/* The numbers of the journals there are, ascending, into numbers (JOURNALS_MAX). How many; -errno, sentence. */
int journal_list(int *numbers);

/*
 * Reads one. 0; -EBADMSG with a sentence: it is damaged; another -errno with a sentence. journal_close() either
 * way. A last line cut short is left out.
 */
int journal_read(int number, struct journal *journal);

/* -EXDEV with the sentence about other_netns. */
int journal_elsewhere(void);

/* Writes and syncs a new one with all changes of a plan. 0 or -errno with a sentence; journal_close(). */
int journal_create(const struct plan *plan, struct journal *journal);

/* Adds, synced: the change is going to be written, is as wanted, or was refused. 0 or -errno with a sentence. */
int journal_note(struct journal *journal, int change, enum change_state state, int error);

/* Adds: apply came to its end. */
int journal_complete(struct journal *journal);

/* Is the file that journal_create() made still there, and not another one of its name? */
bool journal_is_there(const struct journal *journal);

/* Removes the file for good. 0 or -errno with a sentence. */
int journal_remove(struct journal *journal);

/* Releases; the file stays. */
void journal_close(struct journal *journal);

/*
 * A step after which everything must be able to end. With $LAYOVER_IRQ_STOP=N in the environment the process kills
 * itself at its N-th step: tests see to it that undo works from there.
 */
void journal_step(void);

#endif
