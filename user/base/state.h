/* SPDX-License-Identifier: GPL-2.0-only */
/* The folder in which journals of changes are kept: $LAYOVER_STATE or /run/layover, which a restart empties. */
#ifndef LAYOVER_STATE_H
#define LAYOVER_STATE_H

const char *state_folder(void);

/* Makes it if it is not there. 0 or -errno, no sentence. */
int state_make(void);

#endif
