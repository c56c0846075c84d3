// SPDX-License-Identifier: GPL-2.0-only
#include "model/top.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const struct top_group_info top_group_infos[TOP_GROUPS] = {
	[GROUP_SOCKET] = {"socket", "system calls, TCP on its way out and in", 's'},
	[GROUP_HELD] = {"held", "bytes kept back in the socket, or sent again", 'h'},
	[GROUP_QDISC] = {"qdisc", "waiting in the queueing discipline", 'q'},
	[GROUP_NET] = {"net", "driver, wire and NIC; a remote end is in here", 'n'},
	[GROUP_SOFTIRQ] = {"softirq", "from the interrupt up to the socket", 'i'},
	[GROUP_WAKEUP] = {"wakeup", "the reader is woken and waits for its CPU", 'w'},
	[GROUP_APP] = {"app", "the server's program", 'a'},
};

#define PARTS_OF(side, gap)                                                                        \
	{                                                                                          \
		[TOP_SYSCALL] = STAGE_##side##_syscall, [TOP_SEND] = STAGE_##side##_send,          \
		[TOP_HELD] = STAGE_##side##_held, [TOP_RETRANS] = STAGE_##side##_retrans,          \
		[TOP_QDISC] = STAGE_##side##_qdisc, [TOP_GAP] = (gap),                             \
		[TOP_SOFTIRQ] = STAGE_##side##_softirq, [TOP_DRIVER] = STAGE_##side##_driver,      \
		[TOP_STACK] = STAGE_##side##_stack, [TOP_SOCKET] = STAGE_##side##_socket,          \
		[TOP_NOTIFY] = STAGE_##side##_notify, [TOP_WAKEUP] = STAGE_##side##_wakeup,        \
		[TOP_READER] = STAGE_##side##_reader, [TOP_RECEIVE] = STAGE_##side##_receive,      \
	}

/* What a part of a socket's own turn is in the round trip. */
static const int part_stages[TOP_ROLES][TOP_PARTS] = {
	PARTS_OF(client, STAGE_server_host),
	PARTS_OF(server, STAGE_server_app),
};

static int role_index(const struct flow_record *who)
{
	return who->role == ROLE_SERVER;
}

/* The group of a layer; what is held back is told apart. */
#define GROUP_OF_driver  GROUP_SOCKET
#define GROUP_OF_syscall GROUP_SOCKET
#define GROUP_OF_socket  GROUP_SOCKET
#define GROUP_OF_qdisc   GROUP_QDISC
#define GROUP_OF_nic     GROUP_NET
#define GROUP_OF_softirq GROUP_SOFTIRQ
#define GROUP_OF_sched   GROUP_WAKEUP
#define GROUP_OF_app     GROUP_APP

enum top_group top_group_of(int stage)
{
	static const enum top_group groups[STAGES] = {
#define STAGE(side, name, layer, hook, text) GROUP_OF_##layer,
#include "abi/stages.def"
#undef STAGE
	};

	switch (stage) {
	case STAGE_client_held:
	case STAGE_server_held:
	case STAGE_client_retrans:
	case STAGE_server_retrans:
		return GROUP_HELD;
	default:
		return groups[stage];
	}
}

/* --- opening and closing ------------------------------------------------------------------------- */

enum { PAIRS_PER_PLACE = 4 };

static uint32_t pair_slots(const struct top *top)
{
	uint32_t slots = 1;

	while (slots < PAIRS_PER_PLACE * top->places)
		slots *= 2;
	return slots;
}

int top_open(struct top *top, uint32_t places, uint64_t at_ns)
{
	const size_t rows = (size_t)TOP_ROLES * TOP_ROWS;

	*top = (struct top){.places = places, .at_ns = at_ns};
	top->ends = calloc((size_t)places + TOP_CLOSED_MAX, sizeof(*top->ends));
	top->pairs = calloc(pair_slots(top), sizeof(*top->pairs));
	top->parts = calloc(rows, sizeof(*top->parts));
	top->parts_before = calloc(rows, sizeof(*top->parts));
	top->parts_base = calloc(rows, sizeof(*top->parts));
	if (top->ends && top->pairs && top->parts && top->parts_before && top->parts_base)
		return 0;
	return err_set(-ENOMEM, "no memory for a table of %u sockets", places);
}

void top_free(struct top *top)
{
	for (uint32_t i = 0; top->ends && i < top->places; i++) {
		free(top->ends[i].bins);
		free(top->ends[i].base_bins);
	}
	free(top->ends);
	free(top->bases);
	free(top->pairs);
	free(top->rows);
	free(top->parts);
	free(top->parts_before);
	free(top->parts_base);
	*top = (struct top){0};
}

/* --- histograms ---------------------------------------------------------------------------------- */

static double bin_middle(uint32_t bin)
{
	uint32_t octave = bin >> TOP_BITS;
	uint64_t width;

	if (!octave)
		return bin + 0.5;
	width = 1ULL << (octave - 1);
	return (double)((((1u << TOP_BITS) + (bin & ((1u << TOP_BITS) - 1))) * width)) +
	       (double)width / 2;
}

int64_t top_bin_ns(uint32_t bin)
{
	return (int64_t)(bin_middle(bin) * (1 << TOP_SHIFT));
}

/* The bin in which the value of that rank (from 1) lies. */
static uint32_t bin_of_rank(const uint32_t *bins, uint32_t count, uint64_t rank)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += bins[i];
		if (sum >= rank)
			return i;
	}
	return count - 1;
}

/* Nearest rank; 0 where too few lie beyond it. */
static uint64_t rank_of(uint64_t count, unsigned int permille)
{
	uint64_t rank = (count * permille + 999) / 1000;

	return count && count - rank >= TOP_TAIL_MIN ? rank : 0;
}

void top_figures_of(const uint32_t bins[TOP_BINS], struct top_figures *out)
{
	uint64_t count = 0;
	uint64_t tail;

	*out = (struct top_figures){TOP_NONE, TOP_NONE, TOP_NONE};
	for (uint32_t i = 0; i < TOP_BINS; i++)
		count += bins[i];
	if (!count)
		return;
	out->p50 = top_bin_ns(bin_of_rank(bins, TOP_BINS, (count + 1) / 2));
	out->max = top_bin_ns(bin_of_rank(bins, TOP_BINS, count));
	tail = rank_of(count, 990);
	if (tail)
		out->p99 = top_bin_ns(bin_of_rank(bins, TOP_BINS, tail));
}

/* An outlier is far from both the middle and the usual tail, and not just noise of a fast flow. */
static uint64_t slow_from(const struct top_figures *figures)
{
	enum { LEAST_NS = 100000 };
	int64_t slow = 10 * figures->p50;

	if (slow < 3 * figures->p99)
		slow = 3 * figures->p99;
	return (uint64_t)(slow > LEAST_NS ? slow : LEAST_NS);
}

/* From an interval with turns enough, else from all turns, as often as they have doubled. */
static void set_slow(struct top_end *end, uint64_t turns)
{
	enum { ENOUGH_TURNS = 100 };
	uint64_t all = end->head.turns - end->birth_turns, slow;
	struct top_figures figures = end->figures;

	if (turns < ENOUGH_TURNS) {
		if (all < ENOUGH_TURNS || all < 2 * end->slow_turns)
			return;
		top_figures_of(end->bins, &figures);
	}
	end->slow_turns = all;
	slow = slow_from(&figures);
	/* Up at once, down slowly: one calm interval does not make outliers of the next one's usual turns. */
	if (slow < end->slow_ns - end->slow_ns / 8)
		slow = end->slow_ns - end->slow_ns / 8;
	end->slow_ns = slow;
}

/* What is new in the histogram since the last reading, or since the baseline. */
static int take_bins(const struct top *top, struct top_end *end, const struct top_hist *hist)
{
	static const uint32_t nothing[TOP_BINS];
	const uint32_t *base = end->base_bins ? end->base_bins : nothing, *from;
	uint32_t change[TOP_BINS], n;

	if (!end->bins)
		end->bins = calloc(TOP_BINS, sizeof(*end->bins));
	if (!end->bins)
		return err_set(-ENOMEM, "no memory for a flow's histogram");
	from = top->baseline ? base : end->bins;
	/* A turn that was not in the histogram at the last reading may have gone on, and be in another bin. */
	for (int i = 0; i < TOP_BINS; i++) {
		n = hist->bins[i] - from[i];
		change[i] = n <= INT32_MAX ? n : 0;
	}
	memcpy(end->bins, hist->bins, sizeof(hist->bins));
	if (end->head.complete > end->head.turns) { /* not in yet */
		uint32_t bin = top_bin(end->head.open_ns >> TOP_SHIFT, TOP_BINS);

		change[bin]++;
		end->bins[bin]++;
	}
	end->figures = (struct top_figures){TOP_NONE, TOP_NONE, TOP_NONE};
	if (!end->bins_old || top->baseline)
		top_figures_of(change, &end->figures);
	set_slow(end, end->head.complete - end->bins_turns);
	end->bins_old = false;
	end->bins_turns = end->head.turns;
	return 0;
}

/* --- taking -------------------------------------------------------------------------------------- */

static void take_sums(struct top_end *end, const struct top_head *head)
{
	struct top_sums *now = &end->now;

	end->head = *head;
	if (head->complete > now->turns) /* read while it was written: never backwards */
		now->turns = head->complete;
	now->sum_ns = head->sum_ns;
	now->one_way = head->one_way;
	memcpy(now->part_ns, head->part_ns, sizeof(now->part_ns));
}

/* The place has a new socket: what the former one left in the counters is where this one starts. */
static int begin(struct top *top, struct top_end *end, uint64_t socket)
{
	memset(end->now.causes, 0, sizeof(end->now.causes));
	end->now.stalls = 0;
	end->head.who.socket = socket;
	end->before = end->now;
	end->birth_turns = end->now.turns;
	if (top->bases)
		top->bases[end - top->ends] = end->now;
	end->peer = 0;
	end->had_peer = end->bins_old = end->closed = false;
	end->slow_ns = end->slow_turns = 0;
	end->delack = (struct stall_record){0};
	end->figures = (struct top_figures){TOP_NONE, TOP_NONE, TOP_NONE};
	top->flows++;
	top->open++;
	if ((uint32_t)(end - top->ends) >= top->used)
		top->used = (uint32_t)(end - top->ends) + 1;
	if (!top->baseline || !end->bins)
		return 0;
	if (!end->base_bins)
		end->base_bins = malloc(TOP_BINS * sizeof(*end->base_bins));
	if (!end->base_bins)
		return err_set(-ENOMEM, "no memory for a flow's baseline");
	memcpy(end->base_bins, end->bins, TOP_BINS * sizeof(*end->bins));
	return 0;
}

bool top_wants_hist(const struct top *top, uint32_t index, const struct top_head *head)
{
	const struct top_end *end = &top->ends[index];

	if (head->who.role == ROLE_SERVER && end->peer && end->head.who.socket == head->who.socket)
		return false;
	return head->turns != end->bins_turns || head->complete != head->turns || top->baseline;
}

int top_take(struct top *top, uint32_t index, const struct top_head *head,
	     const struct top_hist *hist)
{
	struct top_end *end = &top->ends[index];
	int rc = 0;

	if (!head->who.socket)
		return 0;
	if (end->head.who.socket != head->who.socket)
		rc = begin(top, end, head->who.socket);
	if (rc)
		return rc;
	take_sums(end, head);
	if (hist)
		return take_bins(top, end, hist);
	end->figures = (struct top_figures){TOP_NONE, TOP_NONE, TOP_NONE};
	if (head->turns != end->bins_turns)
		end->bins_old = true;
	return 0;
}

/* Its other end keeps pointing at it, as long as it is kept. */
static void move_peer(struct top *top, struct top_end *end, uint32_t number)
{
	if (end->peer)
		top->ends[end->peer - 1].peer = number;
}

static bool has_changed(const struct top_end *end)
{
	return end->now.turns != end->before.turns || end->now.one_way != end->before.one_way ||
	       end->now.stalls != end->before.stalls;
}

static void count_turns(struct top *top, const struct top_end *end)
{
	top->turns[role_index(&end->head.who)] += end->now.turns - end->before.turns;
}

int top_leave(struct top *top, uint32_t index, const struct top_head *head,
	      const struct top_hist *hist)
{
	struct top_end *end = &top->ends[index], *kept;
	int rc = top_take(top, index, head, hist);

	if (rc || !end->head.who.socket)
		return rc;
	if (top->closed_count < TOP_CLOSED_MAX) {
		kept = &top->ends[top->places + top->closed_count++];
		*kept = *end;
		if (top->bases)
			top->bases[kept - top->ends] = top->bases[index];
		kept->bins = kept->base_bins = NULL;
		kept->closed = true;
		move_peer(top, end, top->places + top->closed_count);
	} else {
		count_turns(top, end);
		top->not_listed++;
		move_peer(top, end, 0);
	}
	end->head.who.socket = 0;
	end->peer = 0;
	/* What the next socket of this place starts from: these counters, and an empty histogram. */
	free(end->bins);
	free(end->base_bins);
	end->bins = end->base_bins = NULL;
	end->before = end->now;
	top->closed_flows++;
	top->open--;
	return 0;
}

/* The end that a record speaks of, NULL: it has no place. It may be told before the socket is first taken. */
static struct top_end *end_of_record(struct top *top, const struct stall_record *record)
{
	uint32_t index = record->entry - 1;
	struct top_end *end;

	if (!record->entry || index >= top->places)
		return NULL;
	end = &top->ends[index];
	if (end->head.who.socket == record->socket)
		return end;
	return end->head.who.socket || begin(top, end, record->socket) ? NULL : end;
}

/* What was held left when the other end's delayed-ACK timer had acknowledged. */
static bool waited_for(const struct stall_record *held, const struct top_end *other)
{
	return other && other->delack.cause >= held->begin && other->delack.end <= held->end &&
	       other->delack.cause;
}

bool top_stall(struct top *top, const struct stall_record *record, int *cause)
{
	struct top_end *end = end_of_record(top, record);

	*cause = cause_of_stall(record);
	if (record->kind == STALL_DELACK) {
		if (end)
			end->delack = *record;
		return false;
	}
	top->stalls++;
	if (!end)
		return true;
	end->now.stalls++;
	if (*cause >= 0)
		end->now.causes[*cause]++;
	if (waited_for(record, top_peer_of(top, end)))
		end->now.causes[CAUSE_delayed_ack]++;
	return true;
}

const struct top_end *top_end_of(const struct top *top, uint32_t index, uint64_t socket)
{
	return index < top->places && socket && top->ends[index].head.who.socket == socket
		       ? &top->ends[index]
		       : NULL;
}

const struct top_end *top_peer_of(const struct top *top, const struct top_end *end)
{
	return end->peer ? &top->ends[end->peer - 1] : NULL;
}

uint32_t top_idlest(const struct top *top, uint64_t now_ns, uint64_t idle_ns)
{
	uint64_t oldest = now_ns - idle_ns;
	uint32_t found = TOP_END_NONE;

	for (uint32_t i = 0; i < top->used; i++) {
		const struct top_end *end = &top->ends[i];

		if (end->head.who.socket && end->head.last_ns < oldest) {
			oldest = end->head.last_ns;
			found = i;
		}
	}
	return found;
}

/* --- the two ends of a connection ---------------------------------------------------------------- */

/* The same for both ends: what the client calls local, the server calls remote. */
static uint64_t pair_key(const struct flow_record *who)
{
	bool server = who->role == ROLE_SERVER;
	uint64_t words[4], key = who->family;

	memcpy(words, server ? who->remote : who->local, 16);
	memcpy(words + 2, server ? who->local : who->remote, 16);
	for (int i = 0; i < 4; i++)
		key = (key ^ words[i]) * 0x9e3779b97f4a7c15ULL, key ^= key >> 29;
	key ^= server ? (uint64_t)who->remote_port << 16 | who->local_port
		      : (uint64_t)who->local_port << 16 | who->remote_port;
	key *= 0xbf58476d1ce4e5b9ULL;
	return key ^ key >> 32;
}

static bool are_two_ends(const struct flow_record *a, const struct flow_record *b)
{
	return a->role != b->role && a->family == b->family && a->local_port == b->remote_port &&
	       a->remote_port == b->local_port && !memcmp(a->local, b->remote, 16) &&
	       !memcmp(a->remote, b->local, 16);
}

/* Puts it among those that look for their other end, or finds that. */
static void look_for_peer(struct top *top, uint32_t number, uint32_t slots)
{
	struct top_end *end = &top->ends[number - 1];
	uint64_t at = pair_key(&end->head.who);

	for (;; at++) {
		uint32_t *slot = &top->pairs[at & (slots - 1)];
		struct top_end *other = *slot ? &top->ends[*slot - 1] : NULL;

		if (!other) {
			*slot = number;
			return;
		}
		if (other->peer || !are_two_ends(&end->head.who, &other->head.who))
			continue;
		end->peer = *slot;
		other->peer = number;
		end->had_peer = other->had_peer = true;
		return;
	}
}

/* Every end that has none is put into a hash and met by its other one: as many steps as there are ends. */
static void find_pairs(struct top *top)
{
	uint32_t slots = pair_slots(top);
	bool cleared = false;

	for (uint32_t i = 0; i < top->places + top->closed_count; i++) {
		const struct top_end *end;

		if (i == top->used && i < top->places)
			i = top->places; /* none in between; on to those that closed */
		end = &top->ends[i];
		if (i >= top->places + top->closed_count)
			break;
		if (!end->head.who.socket || !end->head.who.family || end->peer)
			continue;
		if (!cleared)
			memset(top->pairs, 0, slots * sizeof(*top->pairs));
		cleared = true;
		look_for_peer(top, i + 1, slots);
	}
}

/* --- rows ---------------------------------------------------------------------------------------- */

static const struct top_sums *since(const struct top *top, const struct top_end *end)
{
	return top->baseline ? &top->bases[end - top->ends] : &end->before;
}

double top_row_stages(const struct top_row *row, double stage_ns[STAGES])
{
	int role = role_index(&row->who);
	double turns = (double)(row->turns ? row->turns : 1), sum = 0, inside = 0;

	memset(stage_ns, 0, STAGES * sizeof(*stage_ns));
	for (int p = 0; p < TOP_PARTS; p++)
		stage_ns[part_stages[role][p]] += (double)row->part_ns[0][p] / turns;
	if (row->both_ends && row->peer_turns) {
		for (int p = 0; p < TOP_PARTS; p++) {
			double ns = (double)row->part_ns[1][p] / (double)row->peer_turns;

			stage_ns[part_stages[!role][p]] += ns;
			inside += ns;
		}
		/* Of what the client does not see, the server has seen its own: the rest lies between them. */
		stage_ns[STAGE_client_network] =
			fmax(0, (double)row->part_ns[0][TOP_GAP] / turns - inside);
		stage_ns[STAGE_server_host] = 0;
	}
	for (int s = 0; s < STAGES; s++)
		sum += stage_ns[s];
	return sum;
}

static void set_shares(struct top_row *row)
{
	double stage_ns[STAGES], sum;

	memset(row->share, 0, sizeof(row->share));
	if (!row->turns)
		return;
	sum = top_row_stages(row, stage_ns);
	for (int s = 0; sum > 0 && s < STAGES; s++)
		row->share[top_group_of(s)] += (float)(stage_ns[s] / sum);
}

static int main_cause(const struct top *top, const struct top_end *a, const struct top_end *b)
{
	uint32_t most = 0;
	int cause = -1;

	for (int c = 0; c < CAUSES; c++) {
		uint32_t n = a->now.causes[c] - since(top, a)->causes[c];

		n += b ? b->now.causes[c] - since(top, b)->causes[c] : 0;
		if (n > most) {
			most = n;
			cause = c;
		}
	}
	return cause;
}

static void add_parts(const struct top *top, const struct top_end *end, uint64_t *part_ns)
{
	for (int p = 0; p < TOP_PARTS; p++)
		part_ns[p] = end->now.part_ns[p] - since(top, end)->part_ns[p];
}

static void fill_row(const struct top *top, const struct top_end *end, struct top_row *row)
{
	const struct top_end *peer = top_peer_of(top, end);
	const struct top_sums *from = since(top, end);

	*row = (struct top_row){
		.index = (uint32_t)(end - top->ends),
		.closed = end->closed,
		.both_ends = peer != NULL,
		.who = end->head.who,
		.cpu_softirq = end->head.cpu_softirq,
		.cpu_waker = end->head.cpu_waker,
		.cpu_reader = end->head.cpu_reader,
		.turns = end->now.turns - from->turns,
		.sum_ns = end->now.sum_ns - from->sum_ns,
		.one_way = end->now.one_way - from->one_way,
		.stalls = end->now.stalls - from->stalls,
		.total = end->now.turns - end->birth_turns,
		.idle_ns = top->at_ns > end->head.last_ns ? top->at_ns - end->head.last_ns : 0,
		.figures = end->figures,
		.cause = main_cause(top, end, peer),
	};
	add_parts(top, end, row->part_ns[0]);
	if (peer) {
		row->peer = peer->head.who;
		row->peer_turns = peer->now.turns - since(top, peer)->turns;
		row->stalls += peer->now.stalls - since(top, peer)->stalls;
		add_parts(top, peer, row->part_ns[1]);
	}
	row->rate = top->seconds > 0 ? (double)row->turns / top->seconds : 0;
	row->stall_rate = top->seconds > 0 ? (double)row->stalls / top->seconds : 0;
	row->mean_ns = row->turns ? (double)row->sum_ns / (double)row->turns : 0;
	set_shares(row);
}

static int add_row(struct top *top, const struct top_end *end)
{
	struct top_row *grown;
	size_t room;

	if (top->row_count == top->row_room) {
		room = top->row_room ? 2 * top->row_room : 64;
		grown = realloc(top->rows, room * sizeof(*grown));
		if (!grown)
			return err_set(-ENOMEM, "no memory for %zu flows", room);
		top->rows = grown;
		top->row_room = room;
	}
	fill_row(top, end, &top->rows[top->row_count++]);
	return 0;
}

/* A server is a line of its own only where its client is not here, and was not until just now. */
static bool is_listed(const struct top_end *end)
{
	if (!end->head.who.socket || !end->head.who.family)
		return false;
	if (end->head.who.role == ROLE_CLIENT)
		return true;
	return !end->peer && (!end->had_peer || end->now.turns != end->before.turns);
}

static void add_gaps(struct top *top, const struct top_row *row)
{
	if (row->who.role != ROLE_CLIENT)
		return;
	if (!row->both_ends) {
		top->gap_alone_ns += (double)row->part_ns[0][TOP_GAP];
		return;
	}
	top->gap_paired_ns += (double)row->part_ns[0][TOP_GAP];
	for (int p = 0; p < TOP_PARTS; p++)
		top->residence_ns += (double)row->part_ns[1][p];
}

/* The next interval starts where this one ends; those that closed are forgotten. */
static void turn_over(struct top *top)
{
	for (uint32_t i = 0; i < top->used; i++) {
		struct top_end *end = &top->ends[i];

		if (end->head.who.socket && has_changed(end)) {
			count_turns(top, end);
			end->before = end->now;
		}
		if (end->peer > top->places)
			end->peer = 0;
	}
	for (uint32_t i = 0; i < top->closed_count; i++)
		count_turns(top, &top->ends[top->places + i]);
	top->closed_count = 0;
}

static void make_stages(struct top *top);

int top_finish(struct top *top, uint64_t at_ns)
{
	uint64_t from = top->baseline ? top->base_ns : top->at_ns;
	int rc = 0;

	top->seconds = (double)(at_ns - from) / 1e9;
	top->at_ns = at_ns;
	top->row_count = 0;
	top->gap_paired_ns = top->gap_alone_ns = top->residence_ns = 0;
	find_pairs(top);
	for (uint32_t i = 0; !rc && i < top->used; i++)
		rc = is_listed(&top->ends[i]) ? add_row(top, &top->ends[i]) : 0;
	for (uint32_t i = 0; !rc && i < top->closed_count; i++)
		if (is_listed(&top->ends[top->places + i]))
			rc = add_row(top, &top->ends[top->places + i]);
	for (size_t i = 0; i < top->row_count; i++)
		add_gaps(top, &top->rows[i]);
	make_stages(top);
	turn_over(top);
	return rc;
}

int top_set_baseline(struct top *top, bool on)
{
	const size_t bytes = TOP_BINS * sizeof(uint32_t);

	if (!top->bases)
		top->bases = calloc((size_t)top->places + TOP_CLOSED_MAX, sizeof(*top->bases));
	if (!top->bases)
		return err_set(-ENOMEM, "no memory for a baseline");
	top->baseline = on;
	top->base_ns = top->at_ns;
	memcpy(top->parts_base, top->parts, (size_t)TOP_ROLES * TOP_ROWS * sizeof(*top->parts));
	for (uint32_t i = 0; i < top->used; i++) {
		struct top_end *end = &top->ends[i];

		top->bases[i] = end->before;
		if (!on || !end->bins) {
			free(end->base_bins);
			end->base_bins = NULL;
			continue;
		}
		if (!end->base_bins)
			end->base_bins = malloc(bytes);
		if (!end->base_bins)
			return err_set(-ENOMEM, "no memory for a flow's baseline");
		memcpy(end->base_bins, end->bins, bytes);
	}
	return 0;
}

/* --- all flows together -------------------------------------------------------------------------- */

void top_take_parts(struct top *top, const struct top_part_hist *parts)
{
	const size_t bytes = (size_t)TOP_ROLES * TOP_ROWS * sizeof(*parts);

	memcpy(top->parts_before, top->parts, bytes);
	memcpy(top->parts, parts, bytes);
}

/* The value of a rank among those that passed a part and those that did not, which took 0 ns of it. */
static int64_t part_rank(const uint32_t *bins, uint64_t zeros, uint64_t rank)
{
	if (!rank)
		return TOP_NONE;
	if (rank <= zeros)
		return 0;
	return (int64_t)bin_middle(bin_of_rank(bins, TOP_PART_BINS, rank - zeros));
}

static void describe(const struct top_part_hist *now, const struct top_part_hist *from,
		     uint64_t whole, struct top_stage *stage)
{
	uint32_t bins[TOP_PART_BINS];
	uint64_t passed = 0, zeros;

	for (int i = 0; i < TOP_PART_BINS; i++) {
		bins[i] = now->bins[i] - from->bins[i];
		passed += bins[i];
	}
	zeros = whole > passed ? whole - passed : 0;
	whole = zeros + passed;
	stage->passed = passed;
	stage->p50 = part_rank(bins, zeros, (whole + 1) / 2);
	stage->p90 = part_rank(bins, zeros, rank_of(whole, 900));
	stage->p99 = part_rank(bins, zeros, rank_of(whole, 990));
	stage->max = part_rank(bins, zeros, whole);
	stage->mean_ns = whole ? (double)(now->sum_ns - from->sum_ns) / (double)whole : 0;
}

/* The sum of all that a role's sockets spent in a part; TOP_WHOLE: in their turns. */
static double spent(const struct top_part_hist *now, const struct top_part_hist *from, int row)
{
	return (double)(now[row].sum_ns - from[row].sum_ns);
}

static void add_stage(struct top *top, const struct top_stage *stage)
{
	if (stage->mean_ns > 0)
		top->stages[top->stage_count++] = *stage;
}

static void part_stage(struct top *top, const struct top_part_hist *from, int role, int part,
		       double total)
{
	const int row = role * TOP_ROWS + part, whole = role * TOP_ROWS + TOP_WHOLE;
	struct top_stage stage = {.stage = part_stages[role][part]};

	describe(&top->parts[row], &from[row], top->parts[whole].count - from[whole].count, &stage);
	stage.share = total > 0 ? spent(top->parts, from, row) / total : 0;
	add_stage(top, &stage);
}

/* Only the sums of these are known: how long each trip took there is only known where both ends' records are. */
static void rest_stage(struct top *top, int id, double ns, uint64_t turns, double total)
{
	struct top_stage stage = {.stage = id,
				  .p50 = TOP_NONE,
				  .p90 = TOP_NONE,
				  .p99 = TOP_NONE,
				  .max = TOP_NONE,
				  .passed = turns};

	stage.mean_ns = turns ? fmax(0, ns) / (double)turns : 0;
	stage.share = total > 0 ? fmax(0, ns) / total : 0;
	add_stage(top, &stage);
}

static int by_stage(const void *a, const void *b)
{
	return ((const struct top_stage *)a)->stage - ((const struct top_stage *)b)->stage;
}

static void keep_history(struct top *top)
{
	for (int s = 0; s < STAGES; s++) {
		memmove(top->history[s], top->history[s] + 1, (TOP_HISTORY - 1) * sizeof(float));
		top->history[s][TOP_HISTORY - 1] = 0;
	}
	for (int i = 0; i < top->stage_count; i++)
		top->history[top->stages[i].stage][TOP_HISTORY - 1] = (float)top->stages[i].mean_ns;
}

static void make_stages(struct top *top)
{
	const struct top_part_hist *from = top->baseline ? top->parts_base : top->parts_before;
	const struct top_part_hist *now = top->parts;
	const int server = TOP_ROWS;
	double alone = fmax(0, spent(now, from, server + TOP_WHOLE) - top->residence_ns);
	double total = spent(now, from, TOP_WHOLE) + alone;
	uint64_t clients = now[TOP_WHOLE].count - from[TOP_WHOLE].count;

	top->stage_count = 0;
	top->stage_turns = clients;
	for (int role = 0; role < TOP_ROLES; role++)
		for (int part = 0; part < TOP_PARTS; part++)
			if (role || part != TOP_GAP)
				part_stage(top, from, role, part, total);
	rest_stage(top, STAGE_client_network, top->gap_paired_ns - top->residence_ns, clients,
		   total);
	rest_stage(top, STAGE_server_host, top->gap_alone_ns, clients, total);
	qsort(top->stages, (size_t)top->stage_count, sizeof(top->stages[0]), by_stage);
	keep_history(top);
}

/* --- sorting ------------------------------------------------------------------------------------- */

struct order {
	int (*by_text)(const struct top_row *a, const struct top_row *b);
	bool reverse;
};

static int compare(const void *a, const void *b, void *arg)
{
	const struct top_row *x = a, *y = b;
	const struct order *order = arg;
	int result = order->by_text ? order->by_text(x, y) : (x->key < y->key) - (x->key > y->key);

	if (order->reverse)
		result = -result;
	/* The same order in every interval. */
	return result ? result : (x->who.socket > y->who.socket) - (x->who.socket < y->who.socket);
}

void top_sort(struct top_row *rows, size_t count, double (*value)(const struct top_row *row),
	      int (*by_text)(const struct top_row *a, const struct top_row *b), bool reverse)
{
	struct order order = {value ? NULL : by_text, reverse};

	for (size_t i = 0; value && i < count; i++)
		rows[i].key = value(&rows[i]);
	qsort_r(rows, count, sizeof(*rows), compare, &order);
}
