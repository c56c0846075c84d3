// SPDX-License-Identifier: GPL-2.0-only
/* layover stages: the table of stages, for people and (-j) for programs. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/error.h"
#include "cmd/command.h"
#include "collect/probes.h"
#include "model/stages.h"
#include "view/view.h"

static const char doc[] =
	"Prints the stages a round trip is split into, in the order a message passes them.";

static const char *ended_by(const struct stage_info *info)
{
	return info->hook == STAGE_NO_HOOK ? NULL : hook_infos[info->hook].name;
}

static int print_json(void)
{
	json_t *out = view_json_header("stages"), *stages = json_array();

	for (int s = 0; s < STAGES; s++) {
		const struct stage_info *info = &stage_infos[s];
		json_t *stage =
			json_pack("{s:s, s:s, s:s, s:s?, s:s}", "key", info->key, "side",
				  info->side == SIDE_client ? "client" : "server", "layer",
				  info->layer, "ends_at", ended_by(info), "text", info->text);

		json_array_append_new(stages, stage);
	}
	json_object_set_new(out, "stages", stages);
	return view_json_print(out);
}

static void print_text(void)
{
	printf("%-20s %-8s %-10s\n", "stage", "layer", "ends at");
	for (int s = 0; s < STAGES; s++) {
		const struct stage_info *info = &stage_infos[s];
		const char *hook = ended_by(info);

		printf("%-20s %-8s %-10s\n    %s\n", info->key, info->layer, hook ? hook : "-",
		       info->text);
	}
}

int cmd_stages(int argc, char **argv)
{
	bool json = false;
	int rc = 0;

	args_parse_json_only(doc, argc, argv, &json);
	if (json)
		rc = print_json();
	else
		print_text();
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}
