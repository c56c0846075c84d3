/* SPDX-License-Identifier: GPL-2.0-only */
/* The book that the kernel side keeps for `top` (abi/top.h), read while it is written. */
#ifndef LAYOVER_BOOK_H
#define LAYOVER_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/top.h"
#include "collect/collect.h"

struct book;

/*
 * Maps the book of a collect that was opened with as many heads, and gives all of them out. 0 or -errno with a sentence;
 * the caller owns *out, freed by book_close() before the collect is closed.
 */
int book_open(struct book **out, const struct collect *collect, uint32_t heads);
void book_close(struct book *book);

/* Heads from this index on were never used. */
uint32_t book_used(struct book *book);

/* The head as it is now; turns may be added meanwhile, but none is lost by reading. */
const struct top_head *book_head(const struct book *book, uint32_t index);

/* A copy of its histogram. 0 or -errno with a sentence. */
int book_hist(const struct book *book, uint32_t index, struct top_hist *out);

/* The next socket that is closed: nothing is added any more. False: no more of them. */
bool book_next_done(struct book *book, uint32_t *index);

/* The head may be given to another socket, its histogram empty. 0 or -errno with a sentence. */
int book_give_back(struct book *book, uint32_t index);

/* Which turns of a socket are told as records: all, or those from slow_ns on (0: none). */
void book_want(struct book *book, uint32_t index, bool all, uint64_t slow_ns);

/* All sockets together, over all CPUs. 0 or -errno with a sentence. */
int book_parts(const struct book *book, struct top_part_hist out[TOP_ROLES * TOP_ROWS]);

/* By CPU number, CPUS of them (abi/state.h); as long as the book is open. */
const struct top_cpu *book_cpus(const struct book *book);

#endif
