// SPDX-License-Identifier: GPL-2.0-only
#include "model/stages.h"

#include <stdbool.h>

#include "abi/record.h"

#define TEXT_(x)      #x
#define TEXT(x)       TEXT_(x)
#define HOOK_NONE     STAGE_NO_HOOK
#define SIDE_(side)   SIDE_##side
#define SIDE_OF(side) SIDE_(side)

const struct stage_info stage_infos[STAGES] = {
#define STAGE(side, name, layer, hook, text)                                                       \
	{TEXT(side) "." #name, #layer, text, SIDE_OF(side), HOOK_##hook},
#include "abi/stages.def"
#undef STAGE
};

int stage_ended_by(enum side sender, int hook)
{
	/* The wire is the sender's stage, though the receiver ends it. */
	bool sends = hook <= HOOK_irq;
	enum side side = sends ? sender : (sender == SIDE_client ? SIDE_server : SIDE_client);

	for (int s = 0; s < STAGES; s++)
		if (stage_infos[s].hook == hook && stage_infos[s].side == side)
			return s;
	return -1;
}
