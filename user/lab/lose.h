/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes a lab lose packets on their way to one side. */
#ifndef LAYOVER_LOSE_H
#define LAYOVER_LOSE_H

#include "lab/lab.h"

/*
 * Of `every` packets with a payload `lost` in a row are lost before that side, as long as the lab is there: at its device, because
 * what its sender's own device drops is no loss to TCP. The calling thread stays in its namespace. 0 or -errno with a sentence.
 */
int lose_attach(const struct lab *lab, enum lab_side side, unsigned int every, unsigned int lost);

#endif
