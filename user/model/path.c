// SPDX-License-Identifier: GPL-2.0-only
#include "model/path.h"

#include <stdbool.h>
#include <string.h>

enum { STEPS_MAX = 2 * HOOKS };

/* The hooks whose time belongs to the very last byte: they overrule the others when they disagree. */
static const uint32_t STRONG = 1u << HOOK_dev_queue | 1u << HOOK_dev_xmit | 1u << HOOK_recv_exit;

/* Masks of hooks by role and kind, from abi/hooks.def. */
#define MASK_OF_ANCHOR(name)  | 1u << HOOK_##name
#define MASK_OF_CONTEXT(name)
#define MASK_OF_SIDE(name)
static const uint32_t ANCHORS = 0
#define HOOK(name, role, kind, layer, text) MASK_OF_##kind(name)
#include "abi/hooks.def"
#undef HOOK
	;

struct step {
	uint64_t t; /* 0: left out */
	int hook;
	enum side sender; /* of the leg it belongs to */
	bool before_gap;  /* what follows happens where no hook is: the other host, the application */
};

struct path {
	struct step steps[STEPS_MAX];
	int count;
	uint32_t used[SIDES]; /* hooks kept, per leg */
	bool disorder;
};

static void add_hooks(struct path *path, const struct turn_record *record, enum side sender, int from,
		      int to)
{
	for (int hook = from; hook <= to; hook++)
		path->steps[path->count++] = (struct step){record->t[hook], hook, sender, hook == to};
}

static void add_leg(struct path *path, enum side sender, const struct turn_record *from,
		    const struct turn_record *to)
{
	if (from)
		add_hooks(path, from, sender, HOOK_send_enter, HOOK_re_xmit);
	if (to)
		add_hooks(path, to, sender, HOOK_irq, HOOK_recv_exit);
}

/*
 * Leaves out what cannot be on the path: later than a later strong hook. For send_exit that is the
 * normal case (the packet left during the call), for a retransmission that the first copy had arrived.
 */
static void drop_late(struct path *path, uint64_t end)
{
	uint64_t limit = end;

	for (int i = path->count - 1; i >= 0; i--) {
		struct step *step = &path->steps[i];

		if (!step->t)
			continue;
		if (step->t > limit) {
			path->disorder |= step->hook != HOOK_send_exit && step->hook != HOOK_re_queue &&
					  step->hook != HOOK_re_xmit;
			step->t = 0;
		} else if (STRONG & 1u << step->hook) {
			limit = step->t;
		}
	}
}

/* Hooks of the receiver that are older than the transmission belong to an earlier packet or sleep. */
static void drop_early(struct path *path, uint64_t start)
{
	uint64_t now = start;

	for (int i = 0; i < path->count; i++) {
		struct step *step = &path->steps[i];

		if (!step->t)
			continue;
		if (step->t < now) {
			path->disorder = true;
			step->t = 0;
			continue;
		}
		now = step->t;
		path->used[step->sender] |= 1u << step->hook;
	}
}

/* A spurious retransmission, sent after the first copy had arrived, is not on the path. */
static void drop_spurious(struct path *path)
{
	for (int i = 0; i + 2 < path->count; i++) {
		struct step *queue = &path->steps[i], *xmit = &path->steps[i + 1];

		if (queue->hook != HOOK_re_queue || !xmit->t)
			continue;
		for (int k = i + 2; k < path->count && path->steps[k].hook > HOOK_re_xmit; k++)
			if (path->steps[k].hook == HOOK_stack_in && path->steps[k].t &&
			    path->steps[k].t < xmit->t)
				queue->t = xmit->t = 0;
	}
}

static int stage_of(const struct step *step, bool held)
{
	if (step->hook == HOOK_send_exit)
		return stage_ended_by(step->sender, HOOK_dev_queue);
	if (step->hook == HOOK_re_xmit)
		return stage_ended_by(step->sender, HOOK_dev_xmit);
	if (step->hook == HOOK_dev_queue && held)
		return step->sender == SIDE_client ? STAGE_client_held : STAGE_server_held;
	return stage_ended_by(step->sender, step->hook);
}

/* The stage that fills the gap after a step, ended by whichever hook comes next. */
static int gap_after(const struct step *step, bool server_known)
{
	bool transmitted = step->hook <= HOOK_re_xmit;

	if (step->sender == SIDE_client && transmitted)
		return server_known ? STAGE_client_wire : STAGE_server_host;
	if (step->sender == SIDE_client)
		return STAGE_server_app;
	return transmitted ? STAGE_server_wire : STAGE_client_user;
}

static void spend(struct trip *trip, int stage, uint64_t ns)
{
	trip->stage_ns[stage] += ns;
	trip->seen |= 1ULL << stage;
}

static void walk(const struct path *path, bool server_known, uint64_t start, uint64_t end,
		 struct trip *out)
{
	uint64_t now = start;
	int gap = STAGE_client_user; /* until the first send hook */
	bool held = false;

	for (int i = 0; i < path->count; i++) {
		const struct step *step = &path->steps[i];

		if (step->t) {
			spend(out, gap >= 0 ? gap : stage_of(step, held), step->t - now);
			now = step->t;
			gap = -1;
			held = step->hook == HOOK_send_exit;
		}
		if (step->before_gap && gap < 0)
			gap = gap_after(step, server_known);
	}
	spend(out, STAGE_client_user, end - now);
}

static void keep_cpus(const struct turn_record *from, const struct turn_record *to, uint16_t *cpu)
{
	for (int i = 0; i < LEG_CPUS; i++)
		cpu[i] = CPU_UNKNOWN;
	if (from && from->t[HOOK_dev_queue])
		cpu[CPU_SEND] = from->cpu[HOOK_dev_queue];
	if (!to)
		return;
	if (to->t[HOOK_irq])
		cpu[CPU_IRQ] = to->cpu[HOOK_irq];
	if (to->t[HOOK_stack_in])
		cpu[CPU_SOFTIRQ] = to->cpu[HOOK_stack_in];
	if (to->t[HOOK_data_ready])
		cpu[CPU_WAKER] = to->cpu[HOOK_data_ready];
	if (to->t[HOOK_recv_exit])
		cpu[CPU_READER] = to->cpu[HOOK_recv_exit];
}

static uint8_t flags_of(const struct path *path, const struct turn_record *client,
			const struct turn_record *server, uint32_t hooks)
{
	uint32_t expected = ANCHORS & hooks;
	uint32_t tx = expected & ((1u << HOOK_irq) - 1);
	uint32_t rx = expected & ~tx;
	uint8_t flags = path->disorder ? TRIP_DISORDER : 0;
	bool whole;

	if (server)
		whole = (path->used[SIDE_client] & expected) == expected &&
			(path->used[SIDE_server] & expected) == expected;
	else
		whole = (path->used[SIDE_client] & tx) == tx && (path->used[SIDE_server] & rx) == rx;
	flags |= whole ? TRIP_MATCHED : TRIP_PARTIAL;
	if (!server)
		flags |= TRIP_ALONE;
	if ((client->flags | (server ? server->flags : 0)) & RECORD_RETRANSMITTED)
		flags |= TRIP_RETRANS;
	return flags;
}

void path_unmatched(uint64_t rtt_ns, struct trip *out)
{
	memset(out, 0, sizeof(*out));
	memset(out->cpu, 0xff, sizeof(out->cpu));
	out->stage_ns[STAGE_client_unattributed] = rtt_ns;
	out->seen = 1ULL << STAGE_client_unattributed;
	out->flags = TRIP_UNMATCHED;
}

void path_split(const struct turn_record *client, const struct turn_record *server, uint64_t start_ns,
		uint64_t rtt_ns, uint32_t hooks, struct trip *out)
{
	struct path path = {.count = 0};
	uint64_t end_ns = start_ns + rtt_ns;

	memset(out, 0, sizeof(*out));
	add_leg(&path, SIDE_client, client, server);
	add_leg(&path, SIDE_server, server, client);
	drop_spurious(&path);
	drop_late(&path, end_ns);
	drop_early(&path, start_ns);
	walk(&path, server != NULL, start_ns, end_ns, out);
	keep_cpus(client, server, out->cpu[SIDE_client]);
	keep_cpus(server, client, out->cpu[SIDE_server]);
	out->flags = flags_of(&path, client, server, hooks);
}
