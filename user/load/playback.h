/* SPDX-License-Identifier: GPL-2.0-only */
/* When to send how much, as a file says: lines "SECONDS,BYTES", times not falling; # begins a comment. */
#ifndef LAYOVER_PLAYBACK_H
#define LAYOVER_PLAYBACK_H

#include <stddef.h>
#include <stdint.h>

struct playback {
	struct playback_line {
		uint64_t at_ns; /* after the start */
		uint32_t bytes;
	} * lines;
	size_t count;
};

/* Reads the file whole. 0 or -errno with a sentence that names the line. max_bytes is the largest size allowed. */
int playback_read(const char *path, uint64_t max_bytes, struct playback *playback);

void playback_free(struct playback *playback);

#endif
