/* SPDX-License-Identifier: GPL-2.0-only */
/* The sizes of a sweep: "1..64k" doubles from one to the other, "14,64,1448" is a list. */
#ifndef LAYOVER_SWEEP_H
#define LAYOVER_SWEEP_H

#include <stdint.h>

enum { SWEEP_MAX = 64 };

struct sweep {
	uint64_t count; /* 0: none was asked for */
	uint64_t bytes[SWEEP_MAX];
};

/* A settings parser (base/settings.h); into is a struct sweep. */
int sweep_parse(void *into, const char *what, const char *text);

#endif
