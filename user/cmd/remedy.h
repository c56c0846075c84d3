/* SPDX-License-Identifier: GPL-2.0-only */
/* A remedy for the time of a measurement, for `diagnose --try`. */
#ifndef LAYOVER_CMD_REMEDY_H
#define LAYOVER_CMD_REMEDY_H

#include <stdint.h>

/*
 * Sets TCP_NODELAY on the socket that the process has on one flow, as `layover remedy --apply` does: with a journal.
 * netns is the inode number of the socket's network namespace, ports: client port << 16 | server port. Works in a process of its own, because it may enter another network
 * namespace. 0, or -errno with a sentence; -EBUSY when the journal is not empty.
 */
int remedy_try_nodelay(uint64_t pid, uint64_t netns, uint32_t ports);

/* Restores what the journal holds. 0 or -errno with a sentence. */
int remedy_try_end(void);

#endif
