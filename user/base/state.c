// SPDX-License-Identifier: GPL-2.0-only
#include "base/state.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

const char *state_folder(void)
{
	const char *set = getenv("LAYOVER_STATE");

	return set && *set ? set : "/run/layover";
}

int state_make(void)
{
	return mkdir(state_folder(), 0755) && errno != EEXIST ? -errno : 0;
}
