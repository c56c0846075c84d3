/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys as a table (keys.def). */
#ifndef LAYOVER_KEYS_H
#define LAYOVER_KEYS_H

enum action {
	ACTION_NONE,
#define KEY(action, names, footer, text, ...) ACTION_##action,
#include "tui/keys.def"
#undef KEY
	ACTIONS
};

struct key_info {
	const char *names, *footer, *text;
	int keys[3]; /* 0: unused */
};

/* By action; the first one is empty. */
extern const struct key_info key_infos[ACTIONS];

/* What a key is for. Digits are ACTION_PAGE. */
enum action key_action(int key);

#endif
