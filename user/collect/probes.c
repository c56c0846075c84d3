// SPDX-License-Identifier: GPL-2.0-only
#include "collect/probes.h"

#include <errno.h>
#include <glob.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "base/error.h"

const struct probe probes[] = {
#define PROBE(hook, proto, program, kind, target, use)                                             \
	{HOOK_##hook, PROBE_##proto, #program, PROBE_##kind, target, PROBE_##use},
#include "abi/probes.def"
#undef PROBE
};

const int probe_count = sizeof(probes) / sizeof(probes[0]);

#define ROLE_IS_TX false
#define ROLE_IS_RX true
const struct hook_info hook_infos[HOOKS] = {
#define HOOK(name, role, kind, layer, text) {#name, #layer, text, ROLE_IS_##role, HOOK_##kind},
#include "abi/hooks.def"
#undef HOOK
};

bool probe_on_path(const struct probe *probe)
{
	return probe->use != PROBE_STALL && probe->use != PROBE_TOP;
}

int hook_by_name(const char *name)
{
	for (int h = 0; h < HOOKS; h++)
		if (!strcmp(hook_infos[h].name, name))
			return h;
	return -1;
}

static int target_btf_id(const struct btf *btf, const struct probe *probe)
{
	char name[128];

	if (probe->kind != PROBE_TP)
		return btf__find_by_name_kind(btf, probe->target, BTF_KIND_FUNC);
	snprintf(name, sizeof(name), "btf_trace_%s", probe->target);
	return btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
}

static const enum bpf_attach_type attach_types[] = {
	[PROBE_TP] = BPF_TRACE_RAW_TP,
	[PROBE_FENTRY] = BPF_TRACE_FENTRY,
	[PROBE_FEXIT] = BPF_TRACE_FEXIT,
};

/* Loads and attaches `return 0`: the smallest program that needs all that a real one needs. */
static int try_target(const struct btf *btf, const struct probe *probe)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options);
	int id = target_btf_id(btf, probe);
	int prog, link;

	if (id < 0)
		return -ENOENT;
	options.attach_btf_id = (__u32)id;
	options.expected_attach_type = attach_types[probe->kind];
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "layover_try", "GPL", nothing, 2, &options);
	if (prog < 0)
		return prog;
	/* A typed tracepoint that loads also attaches; a function entry may still be refused. */
	if (probe->kind == PROBE_TP) {
		close(prog);
		return 0;
	}
	link = bpf_raw_tracepoint_open(NULL, prog);
	close(prog);
	if (link < 0)
		return link;
	close(link);
	return 0;
}

/* Kernels before 5.11 charge maps to RLIMIT_MEMLOCK. */
static void raise_memlock(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

int probes_begin(struct probing *probing)
{
	for (int i = 0; i < PROBES_MAX; i++)
		probing->errors[i] = PROBE_UNTRIED;
	raise_memlock();
	probing->btf = btf__load_vmlinux_btf();
	if (probing->btf)
		return 0;
	return err_set(-errno,
		       "this kernel gives no type information (BTF, /sys/kernel/btf/vmlinux): %s; "
		       "the split needs CONFIG_DEBUG_INFO_BTF",
		       strerror(errno));
}

void probes_end(struct probing *probing)
{
	btf__free(probing->btf);
	probing->btf = NULL;
}

/* Each look-up goes through all of the kernel's types and each program through its verifier: only once, and on demand. */
static bool usable(struct probing *probing, int row)
{
	int *error = &probing->errors[row];

	if (*error == PROBE_UNTRIED)
		*error = try_target(probing->btf, &probes[row]);
	return *error == 0;
}

void probes_try_all(struct probing *probing)
{
	for (int i = 0; i < probe_count; i++)
		usable(probing, i);
}

int probes_any(const struct probing *probing)
{
	int refused = -ENOENT;

	for (int i = 0; i < probe_count; i++) {
		int error = probing->errors[i];

		if (error == 0)
			return 0;
		if (error != PROBE_UNTRIED && error != -ENOENT)
			refused = error;
	}
	if (refused == -EPERM || refused == -EACCES)
		return err_set(refused, "BPF is not allowed here; run as root, or once "
					"'setcap cap_bpf,cap_perfmon+ep' on this program");
	return err_set(refused, "this kernel accepts no tracing program: %s", strerror(-refused));
}

static bool serves(const struct probe *probe, int proto)
{
	return probe->proto == PROBE_ANY ||
	       probe->proto == (proto == IPPROTO_UDP ? PROBE_UDP : PROBE_TCP);
}

/* May this row be taken, given the row of the same hook that was taken before it (-1: none)? */
static bool is_wanted(const struct probe *p, int before, bool send_known,
		      const struct probe_wish *wish)
{
	uint32_t bit = 1u << p->hook;

	if (!serves(p, wish->proto) || (wish->without & bit))
		return false;
	if (p->use == PROBE_HARDWARE)
		return wish->hardware;
	if (p->use == PROBE_TOP)
		return wish->heads;
	if (p->use == PROBE_STALL && !wish->stalls)
		return false;
	if (p->use == PROBE_LEAN && send_known && !(wish->with & bit))
		return false;
	if (p->use == PROBE_EXTRA && !(wish->with & bit))
		return false;
	/* Further functions of the same kind cover the other address family. */
	return before < 0 || (p->kind != PROBE_TP && probes[before].kind == p->kind);
}

void probes_choose(struct probing *probing, const struct probe_wish *wish, bool chosen[PROBES_MAX])
{
	int first[PROBE_TOP + 1]
		 [HOOKS]; /* of those beside the path by their use, of the path as CORE */

	memset(first, -1, sizeof(first));
	for (int i = 0; i < probe_count; i++) {
		enum probe_use use = probe_on_path(&probes[i]) ? PROBE_CORE : probes[i].use;
		int *before = &first[use][probes[i].hook];

		chosen[i] = is_wanted(&probes[i], *before, first[PROBE_CORE][HOOK_send_tcp] >= 0,
				      wish) &&
			    usable(probing, i);
		if (chosen[i] && *before < 0)
			*before = i;
	}
}

int probes_lacking(const bool chosen[PROBES_MAX], int proto)
{
	/* What recognises the message on its way out and in, and sees the end of a turn. */
	const int needed[] = {HOOK_dev_queue, proto == IPPROTO_UDP ? HOOK_data_ready : HOOK_sock_in,
			      HOOK_recv_exit};

	for (size_t n = 0; n < sizeof(needed) / sizeof(needed[0]); n++) {
		bool found = false;

		for (int i = 0; i < probe_count; i++)
			found |= chosen[i] && probe_on_path(&probes[i]) &&
				 (int)probes[i].hook == needed[n];
		if (!found)
			return needed[n];
	}
	return -1;
}

bool probes_hardware(void)
{
	glob_t found;
	bool any = glob("/sys/class/net/*/device", GLOB_NOSORT, NULL, &found) == 0;

	globfree(&found);
	return any;
}
