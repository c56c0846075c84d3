// SPDX-License-Identifier: GPL-2.0-only
#include "load/descriptors.h"

#include <limits.h>
#include <sched.h>
#include <unistd.h>

void descriptors_part(int keep_a, int keep_b)
{
	int low = keep_a < keep_b ? keep_a : keep_b;
	int high = keep_a < keep_b ? keep_b : keep_a;
	int next = STDERR_FILENO + 1;

	if (unshare(CLONE_FILES))
		return;
	for (int i = 0; i < 2; i++) {
		int keep = i ? high : low;

		if (keep < next)
			continue;
		if (keep > next)
			close_range((unsigned int)next, (unsigned int)keep - 1, 0);
		next = keep + 1;
	}
	close_range((unsigned int)next, UINT_MAX, 0);
}
