/* SPDX-License-Identifier: GPL-2.0-only */
/* Which kernel an end runs on: told at the handshake, because one kernel's hooks see both ends. */
#ifndef LAYOVER_HOST_H
#define LAYOVER_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { HOST_KERNEL_MAX = 65 };

/* Adds boot_id, clock_ns and kernel of this host to a frame. */
void host_describe(json_t *frame);

/*
 * True when a frame that was asked for at asked_ns and has just come was described by this very kernel: the
 * boot ids are the same, and its clock was read in between. (Copies of a virtual machine that was saved
 * while it ran share their boot id.)
 */
bool host_is_this(const json_t *frame, uint64_t asked_ns);

#endif
