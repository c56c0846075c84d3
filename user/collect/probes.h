/* SPDX-License-Identifier: GPL-2.0-only */
/* Which hooks this kernel and these privileges offer: found by trying, never by version. */
#ifndef LAYOVER_PROBES_H
#define LAYOVER_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"

enum probe_kind { PROBE_TP, PROBE_FENTRY, PROBE_FEXIT };
enum probe_proto { PROBE_ANY, PROBE_TCP, PROBE_UDP };
enum probe_use {
	PROBE_CORE,
	PROBE_LEAN,
	PROBE_EXTRA,
	PROBE_VIRTUAL,
	PROBE_HARDWARE,
	PROBE_STALL,
	PROBE_TOP,
};

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
 * What has been found out by trying. errors[row]: 0 usable, PROBE_UNTRIED, or -errno: -ENOENT the kernel does not have
 * the target, -EPERM it has but refuses.
 */
struct probing {
	struct btf *btf;
	int errors[PROBES_MAX];
};

enum { PROBE_UNTRIED = 1 };

/* 0, or -errno with a sentence when this kernel has no type information. End with probes_end(), also then. */
int probes_begin(struct probing *probing);
void probes_end(struct probing *probing);

/* Tries every row, not only those that are wanted. */
void probes_try_all(struct probing *probing);

/* 0, or -errno with a sentence when nothing of what was tried can be used: BPF is not allowed. */
int probes_any(const struct probing *probing);

/* What decides which rows are chosen. */
struct probe_wish {
	int proto;      /* IPPROTO_TCP or IPPROTO_UDP */
	bool stalls;    /* evidence of stalls is wanted */
	uint32_t heads; /* `top`: of its book; 0: none is kept */
	bool hardware;  /* packets may come from a device with interrupts */
	uint32_t
		with; /* mask of enum hook: LEAN and EXTRA hooks to take although they are not needed */
	uint32_t without; /* mask of enum hook: hooks to leave out */
};

/* Tries the rows that may be wanted, each once, and sets chosen[row] for those to load. */
void probes_choose(struct probing *probing, const struct probe_wish *wish, bool chosen[PROBES_MAX]);

/* Whether the row is a hook of a message's path; the others are beside it. */
bool probe_on_path(const struct probe *probe);

/* True when this network namespace has a device with hardware behind it, and so with interrupts. */
bool probes_hardware(void);

/* The first hook without which there is no split for that protocol and that is not chosen, or -1. */
int probes_lacking(const bool chosen[PROBES_MAX], int proto);

#endif
