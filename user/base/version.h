/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LAYOVER_VERSION_H
#define LAYOVER_VERSION_H

#define LAYOVER_VERSION "0.1.0"

/* The wire protocol between `ping` and `serve`; both ends must speak the same. */
enum { LAYOVER_PROTOCOL = 4 };

#endif
