/* SPDX-License-Identifier: GPL-2.0-only */
/* Which network device must not be touched lightly: the one the user came by. */
#ifndef LAYOVER_CONTROL_H
#define LAYOVER_CONTROL_H

/*
 * Writes into name (IFNAMSIZ bytes) the device with the local address of $SSH_CONNECTION, else that of the default
 * route, else "". Returns how it was found, for people; NULL for none.
 */
const char *control_device(char *name);

#endif
