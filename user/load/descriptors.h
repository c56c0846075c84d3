/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads with a table of descriptors of their own. */
#ifndef LAYOVER_DESCRIPTORS_H
#define LAYOVER_DESCRIPTORS_H

/*
 * Parts the calling thread's descriptor table from that of its process and closes there all but
 * standard input, output, error, and the two given (-1: none). In a table that is shared, every
 * system call on a descriptor takes and drops a reference to the file, an atomic operation each:
 * four trips to a cache line per round trip and side, which is measurable. Where the kernel
 * refuses, nothing changes. The thread must not be asked to close what other threads still use, nor
 * the other way round.
 */
void descriptors_part(int keep_a, int keep_b);

#endif
