// SPDX-License-Identifier: GPL-2.0-only
#include "model/path.h"

#include <stdbool.h>
#include <string.h>

enum { STEPS_MAX = 2 * HOOKS };

/* The hooks whose time belongs to the very last byte: they overrule the others when they disagree. */
static const uint32_t STRONG = 1u << HOOK_dev_queue | 1u << HOOK_dev_xmit | 1u << HOOK_recv_exit;

/* Masks of hooks by role and kind, from abi/hooks.def. */
#define MASK_OF_ANCHOR(name) | 1u << HOOK_##name
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
	bool before_gap;  /* what follows has no hook: the other host, the application */
};

/* Where the server's times come from. */
enum server_clock { SERVER_UNKNOWN, SERVER_NEAR, SERVER_FAR };

struct path {
	struct step steps[STEPS_MAX];
	int count;
	enum server_clock server;
	uint32_t used[SIDES]; /* hooks kept, per leg */
	bool disorder;
};

static void add_hooks(struct path *path, const struct turn_record *record, enum side sender,
		      int from, int to)
{
	for (int hook = from; hook <= to; hook++)
		path->steps[path->count++] =
			(struct step){record->t[hook], hook, sender, hook == to};
}

static void add_leg(struct path *path, enum side sender, const struct turn_record *from,
		    const struct turn_record *to)
{
	if (from)
		add_hooks(path, from, sender, HOOK_send_enter, HOOK_nic_xmit);
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
			path->disorder |= step->hook != HOOK_send_exit &&
					  step->hook != HOOK_re_queue && step->hook != HOOK_re_xmit;
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
static int gap_after(const struct step *step, enum server_clock server)
{
	bool transmitted = step->hook <= HOOK_nic_xmit;

	if (transmitted && server == SERVER_FAR)
		return STAGE_client_network;
	if (step->sender == SIDE_client && transmitted)
		return server == SERVER_NEAR ? STAGE_client_wire : STAGE_server_host;
	if (step->sender == SIDE_client)
		return STAGE_server_app;
	return transmitted ? STAGE_server_wire : STAGE_client_user;
}

static void spend(struct trip *trip, int stage, uint64_t ns)
{
	trip->stage_ns[stage] += ns;
	trip->seen |= 1ULL << stage;
}

static void walk(const struct path *path, uint64_t start, uint64_t end, struct trip *out)
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
			gap = gap_after(step, path->server);
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
	if (to->t[HOOK_wakeup] || to->t[HOOK_data_ready])
		cpu[CPU_WAKER] = to->cpu[to->t[HOOK_wakeup] ? HOOK_wakeup : HOOK_data_ready];
	if (to->t[HOOK_recv_exit])
		cpu[CPU_READER] = to->cpu[HOOK_recv_exit];
}

static uint8_t flags_of(const struct path *path, const struct turn_record *client,
			const struct turn_record *server, const uint32_t hooks[SIDES])
{
	const uint32_t sends = (1u << HOOK_irq) - 1;
	uint8_t flags = path->disorder ? TRIP_DISORDER : 0;
	bool whole = true;

	for (int leg = 0; leg < SIDES; leg++) {
		uint32_t expected = 0;

		if (server || leg == SIDE_client)
			expected |= ANCHORS & hooks[leg] & sends;
		if (server || leg == SIDE_server)
			expected |= ANCHORS & hooks[!leg] & ~sends;
		whole &= (path->used[leg] & expected) == expected;
	}
	flags |= whole ? TRIP_MATCHED : TRIP_PARTIAL;
	if (!server)
		flags |= TRIP_ALONE;
	if ((client->flags | (server ? server->flags : 0)) & RECORD_RETRANSMITTED)
		flags |= TRIP_RETRANS;
	return flags;
}

uint64_t record_first_send(const struct turn_record *record)
{
	for (int hook = 0; hook <= HOOK_re_xmit; hook++)
		if (record->t[hook])
			return record->t[hook];
	return 0;
}

void path_unmatched(uint64_t rtt_ns, struct trip *out)
{
	memset(out, 0, sizeof(*out));
	memset(out->cpu, 0xff, sizeof(out->cpu));
	out->stage_ns[STAGE_client_unattributed] = rtt_ns;
	out->seen = 1ULL << STAGE_client_unattributed;
	out->flags = TRIP_UNMATCHED;
}

/* Both records on one clock; hooks[] by side. */
static void split(struct path *path, const struct turn_record *client,
		  const struct turn_record *server, uint64_t start_ns, uint64_t rtt_ns,
		  const uint32_t hooks[SIDES], struct trip *out)
{
	uint64_t end_ns = start_ns + rtt_ns;

	memset(out, 0, sizeof(*out));
	add_leg(path, SIDE_client, client, server);
	add_leg(path, SIDE_server, server, client);
	drop_spurious(path);
	drop_late(path, end_ns);
	drop_early(path, start_ns);
	walk(path, start_ns, end_ns, out);
	keep_cpus(client, server, out->cpu[SIDE_client]);
	keep_cpus(server, client, out->cpu[SIDE_server]);
	out->flags = flags_of(path, client, server, hooks);
}

void path_split(const struct turn_record *client, const struct turn_record *server,
		uint64_t start_ns, uint64_t rtt_ns, uint32_t hooks, struct trip *out)
{
	struct path path = {.server = server ? SERVER_NEAR : SERVER_UNKNOWN};

	split(&path, client, server, start_ns, rtt_ns, (const uint32_t[SIDES]){hooks, hooks}, out);
}

/* --- a server with another clock ----------------------------------------------------------------- */

/* When the message left, as far as the hooks tell; 0: they do not. */
static uint64_t departure(const struct turn_record *record)
{
	for (int hook = HOOK_irq - 1; hook >= 0; hook--)
		/* The call returns later than the packet leaves. */
		if (hook != HOOK_send_exit && record->t[hook])
			return record->t[hook];
	return 0;
}

static uint64_t arrival(const struct turn_record *record)
{
	for (int hook = HOOK_irq; hook < HOOKS; hook++)
		if (record->t[hook])
			return record->t[hook];
	return 0;
}

/* The client was without the message for as long as the server held it, or longer. */
static bool holds(const struct turn_record *client, const struct turn_record *server)
{
	uint64_t sent = departure(client), back = arrival(client);
	uint64_t came = arrival(server), left = departure(server);

	return sent && back >= sent && came && left >= came && left - came <= back - sent;
}

/*
 * Leaves out, one after the other and only until the two records agree, what may not be on the path: copies
 * sent after the first one had arrived, and hooks of a CPU that may be older than the packet. With one
 * clock, drop_spurious() and drop_early() tell these apart by their times.
 */
static bool reconcile(struct turn_record *client, struct turn_record *server, bool *disorder)
{
	const struct {
		struct turn_record *record;
		int hook;
	} doubtful[] = {
		{server, HOOK_re_queue}, {server, HOOK_re_xmit}, {client, HOOK_re_queue},
		{client, HOOK_re_xmit},  {server, HOOK_irq},     {server, HOOK_softirq},
		{client, HOOK_irq},      {client, HOOK_softirq},
	};

	for (size_t i = 0; i < sizeof(doubtful) / sizeof(doubtful[0]); i++) {
		__u64 *t = &doubtful[i].record->t[doubtful[i].hook];

		if (holds(client, server))
			return true;
		*disorder |= *t && doubtful[i].hook >= HOOK_irq;
		*t = 0;
	}
	return holds(client, server);
}

void path_split_far(const struct turn_record *client, const struct turn_record *server,
		    uint64_t start_ns, uint64_t rtt_ns, uint32_t client_hooks,
		    uint32_t server_hooks, struct trip *out)
{
	struct turn_record near = *client, far = *server;
	struct path path = {.server = SERVER_FAR};
	uint64_t shift;

	if (!reconcile(&near, &far, &path.disorder)) {
		path_split(client, NULL, start_ns, rtt_ns, client_hooks, out);
		out->flags = (uint8_t)((out->flags & ~TRIP_MATCHED) | TRIP_PARTIAL | TRIP_DISORDER);
		return;
	}
	/* As if the request had been there at once: then the wires are what is left before the reply. */
	shift = departure(&near) - arrival(&far);
	for (int hook = 0; hook < HOOKS; hook++)
		far.t[hook] += far.t[hook] ? shift : 0;
	split(&path, &near, &far, start_ns, rtt_ns,
	      (const uint32_t[SIDES]){client_hooks, server_hooks}, out);
}

/* --- a server alone ------------------------------------------------------------------------------ */

bool path_residence(const struct turn_record *server, uint32_t hooks, struct trip *out,
		    uint64_t *start_ns, uint64_t *took_ns)
{
	struct path path = {.server = SERVER_NEAR};
	uint64_t begin = arrival(server), end = departure(server);

	memset(out, 0, sizeof(*out));
	if (!begin || end <= begin)
		return false;
	add_hooks(&path, server, SIDE_client, HOOK_irq, HOOK_recv_exit);
	add_hooks(&path, server, SIDE_server, HOOK_send_enter, HOOK_nic_xmit);
	drop_late(&path, end);
	drop_early(&path, begin);
	walk(&path, begin, end, out);
	out->seen &= ~(1ULL << STAGE_client_user); /* it begins and ends with a hook */
	keep_cpus(NULL, server, out->cpu[SIDE_client]);
	keep_cpus(server, NULL, out->cpu[SIDE_server]);
	out->flags = (uint8_t)((path.used[SIDE_client] & hooks ? TRIP_MATCHED : TRIP_PARTIAL) |
			       TRIP_ALONE);
	*start_ns = begin;
	*took_ns = end - begin;
	return true;
}
