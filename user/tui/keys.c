// SPDX-License-Identifier: GPL-2.0-only
#include "tui/keys.h"

#include <curses.h>

const struct key_info key_infos[ACTIONS] = {
	{"", "", "", {0}},
#define KEY(action, names, footer, text, ...) {names, footer, text, {__VA_ARGS__}},
#include "tui/keys.def"
#undef KEY
};

enum action key_action(int key)
{
	if (key >= '1' && key <= '6')
		return ACTION_PAGE;
	for (int a = 1; key > 0 && a < ACTIONS; a++)
		for (int i = 0; i < 3; i++)
			if (key_infos[a].keys[i] == key)
				return (enum action)a;
	return ACTION_NONE;
}
