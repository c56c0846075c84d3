/* SPDX-License-Identifier: GPL-2.0-only */
/* Which hooks this kernel and these privileges offer: found by trying, never by version. */
#ifndef LAYOVER_PROBES_H
#define LAYOVER_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"

enum probe_kind { PROBE_TP, PROBE_FENTRY, PROBE_FEXIT };
enum probe_proto { PROBE_ANY, PROBE_TCP, PROBE_UDP };
enum probe_use { PROBE_CORE, PROBE_LEAN, PROBE_VIRTUAL };

/* One row of abi/probes.def. */
struct probe {
	enum hook hook;
	enum probe_proto proto;
	const char *program; /* in the BPF object */
	enum probe_kind kind;
	const char *target; /* tracepoint or function */
	enum probe_use use;
};

enum { PROBES_MAX = 64 };

extern const struct probe probes[];
extern const int probe_count;

/* "TX anchor" facts of a hook, from abi/hooks.def. */
enum hook_kind { HOOK_ANCHOR, HOOK_CONTEXT, HOOK_SIDE };

struct hook_info {
	const char *name, *layer, *text;
	bool receives; /* true: on the receiving side of a leg */
	enum hook_kind kind;
};

extern const struct hook_info hook_infos[HOOKS];

/* The hook of that name, or -1. */
int hook_by_name(const char *name);

/*
 * Tries every row and sets errors[row] to 0 (usable) or -errno: -ENOENT the kernel does not have the
 * target, -EPERM it has but refuses. Returns 0, or -errno with a sentence when BPF cannot be used at all.
 */
int probes_test(int errors[PROBES_MAX]);

/*
 * Chooses for one protocol (IPPROTO_TCP, IPPROTO_UDP): chosen[row] is set for the rows to load. Hooks in
 * the bit mask `without` are left out, LEAN hooks in the mask `with` are taken although not needed.
 */
void probes_choose(const int errors[PROBES_MAX], int proto, uint32_t with, uint32_t without,
		   bool chosen[PROBES_MAX]);

/* The first hook without which there is no split for that protocol and that is not chosen, or -1. */
int probes_lacking(const bool chosen[PROBES_MAX], int proto);

#endif
