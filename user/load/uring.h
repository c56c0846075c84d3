/* SPDX-License-Identifier: GPL-2.0-only */
/* The io_uring methods of io.h. */
#ifndef LAYOVER_URING_H
#define LAYOVER_URING_H

#include "load/io.h"

/* As io_open() and io_close(). */
int uring_open(struct io *io, uint64_t polls, void *const buffers[2], size_t bytes);
void uring_close(struct io *io);

#endif
