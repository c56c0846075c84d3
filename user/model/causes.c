// SPDX-License-Identifier: GPL-2.0-only
#include "model/causes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define END_OF_SENDER   END_SENDER
#define END_OF_RECEIVER END_RECEIVER
const struct cause_info cause_infos[CAUSES] = {
#define CAUSE(key, end, text, remedy) {#key, text, remedy, END_OF_##end},
#include "abi/causes.def"
#undef CAUSE
};

const char *const grade_names[] = {"likely", "proven"};

enum {
	GAP_RATIO = 4, /* neighbours that are so far apart belong to different clusters */
	STAGE_TURNS_MIN =
		10, /* the same for causes that are told by where the time went: any machine hiccups */
	TURNS_MIN = 3,        /* fewer are chance */
	EVIDENT_PERMILLE = 5, /* of all turns, for a cause that was seen at work */
	STAGE_PERMILLE = 50,  /* the same for one that is told by where the time went … */
	STAGE_PERCENT = 50,   /* … unless it has so much of the time of all turns */
	SLOW_PERCENT = 5,     /* of the slow turns' time: less is not worth a word */
};

#define ACK_WAIT_MIN_NS                                                                            \
	20000000ULL /* an acknowledgement that took so long was held back (delack_min: 40 ms) */
#define AFTER_ACK_MAX_NS 5000000ULL /* what an ACK sets free is there within this time */

/* One cause in one flow, as it is counted. */
struct tally {
	size_t turns, proven;
	uint64_t *waits;
	uint64_t sum_ns;
	const char *evidence;
};

struct work {
	const struct live_flow *flow;
	struct diagnosis *out;
	uint64_t slow_from; /* turns from this long on are the slow ones */
	uint64_t slow_sum;
	uint64_t all_sum;
	size_t waits_max;                   /* room in each tally */
	struct tally tallies[CAUSES][2];    /* by the end that must change: server, client */
	bool *explained;                    /* by turn */
	const struct stall_record *typical; /* the hold of a slow turn */
	const struct live_turn *typical_turn;
};

/* --- clusters ------------------------------------------------------------------------------------ */

static int by_length(const void *a, const void *b)
{
	const struct live_turn *x = *(const struct live_turn *const *)a,
			       *y = *(const struct live_turn *const *)b;

	return (x->took_ns > y->took_ns) - (x->took_ns < y->took_ns);
}

static void describe(const struct live_turn **sorted, size_t from, size_t to, struct cluster *c)
{
	const struct live_turn *median = sorted[(from + to - 1) / 2];

	*c = (struct cluster){
		.count = to - from,
		.low_ns = sorted[from]->took_ns,
		.median_ns = median->took_ns,
		.high_ns = sorted[to - 1]->took_ns,
		.sent = median->sent,
		.received = median->received,
		.writes = median->writes,
	};
}

/* Where the widest gap between neighbours is, if it is wide enough and has turns enough on both sides; else n. */
static size_t widest_gap(const struct live_turn **sorted, size_t n)
{
	size_t least = n / 200 > TURNS_MIN ? n / 200 : TURNS_MIN, at = n;
	double widest = GAP_RATIO;

	for (size_t i = least; i + least <= n; i++) {
		double ratio = (double)sorted[i]->took_ns / (double)(sorted[i - 1]->took_ns + 1);

		if (ratio > widest) {
			widest = ratio;
			at = i;
		}
	}
	return at;
}

static int find_clusters(struct work *w)
{
	size_t n = w->flow->turn_count, gap;
	const struct live_turn **sorted = malloc((n + 1) * sizeof(const struct live_turn *));
	struct diagnosis *out = w->out;

	if (!sorted)
		return err_set(-ENOMEM, "no memory to sort %zu turns", n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &w->flow->turns[i];
	qsort(sorted, n, sizeof(const struct live_turn *), by_length);
	gap = widest_gap(sorted, n);
	if (n)
		describe(sorted, 0, gap, &out->clusters[out->cluster_count++]);
	if (gap < n)
		describe(sorted, gap, n, &out->clusters[out->cluster_count++]);
	w->slow_from = gap < n && sorted[gap]->took_ns > SLOW_NS ? sorted[gap]->took_ns : SLOW_NS;
	for (size_t i = 0; i < n; i++) {
		out->slow += sorted[i]->took_ns >= w->slow_from;
		w->slow_sum += sorted[i]->took_ns >= w->slow_from ? sorted[i]->took_ns : 0;
		w->all_sum += sorted[i]->took_ns;
	}
	free(sorted);
	return 0;
}

/* --- counting ------------------------------------------------------------------------------------ */

static void count(struct work *w, enum cause cause, bool sender_is_client, bool proven,
		  uint64_t wait_ns, const char *evidence)
{
	bool client_end = (cause_infos[cause].end == END_SENDER) == sender_is_client;
	struct tally *t = &w->tallies[cause][client_end];

	if (t->turns == w->waits_max)
		return;
	t->waits[t->turns++] = wait_ns;
	t->sum_ns += wait_ns;
	t->proven += proven;
	t->evidence = evidence;
}

/* The slow turn in which that moment lies, or -1. Turns are in the order of their starts. */
static long slow_turn_at(const struct work *w, uint64_t ns)
{
	const struct live_turn *turns = w->flow->turns;
	size_t low = 0, high = w->flow->turn_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (turns[middle].start_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || ns > turns[low - 1].start_ns + turns[low - 1].took_ns ||
	    turns[low - 1].took_ns < w->slow_from)
		return -1;
	return (long)low - 1;
}

static const struct {
	enum cause cause;
	int share; /* the wait is at least one of so many parts of the turn */
	bool always; /* the reason itself is the proof; else what ended the hold must have been seen as well */
	const char *proven, *likely;
} holds[HOLD_REASONS] = {
	[HOLD_WINDOW] = {CAUSE_receive_window, 20, true,
			 "when the write returned, unsent bytes lay beyond the receiver's window",
			 NULL},
	[HOLD_ZERO_WINDOW] = {CAUSE_zero_window, 20, true,
			      "the receiver's window was 0 while bytes waited", NULL},
	[HOLD_CWND] =
		{CAUSE_congestion_window, 20, true,
		 "when the write returned, as many packets were under way as the congestion window allows",
		 NULL},
	[HOLD_CORK] = {CAUSE_cork, 4, true,
		       "when the write returned, the socket was corked and had unsent bytes", NULL},
	[HOLD_NAGLE] =
		{CAUSE_nagle, 4, false,
		 "a small write returned with its bytes unsent and earlier ones not acknowledged, without TCP_NODELAY; "
		 "they left when the acknowledgement arrived",
		 "a small write returned with its bytes unsent and earlier ones not acknowledged, without TCP_NODELAY"},
	[HOLD_TSQ] = {CAUSE_small_queue, 4, true,
		      "when the write returned, the socket was throttled (TSQ)", NULL},
};

static const enum cause resend_causes[RESEND_REASONS] = {CAUSE_rto, CAUSE_tail_loss,
							 CAUSE_fast_retransmit};

int cause_of_stall(const struct stall_record *record)
{
	if (record->kind == STALL_DELACK)
		return CAUSE_delayed_ack;
	if (record->kind == STALL_RESENT && record->reason < RESEND_REASONS)
		return (int)resend_causes[record->reason];
	if (record->kind == STALL_HELD && record->reason < HOLD_REASONS &&
	    holds[record->reason].proven)
		return (int)holds[record->reason].cause;
	return -1;
}

/* The other end's delayed-ACK timer fired while these bytes were held, or NULL. */
static const struct stall_record *timer_during(const struct live_flow *other,
					       const struct stall_record *held)
{
	for (size_t i = 0; other && i < other->stall_count; i++) {
		const struct stall_record *s = &other->stalls[i];

		if (s->kind == STALL_DELACK && s->cause >= held->begin && s->end <= held->end)
			return s;
	}
	return NULL;
}

/* What Nagle waits for is an acknowledgement: was it held back? */
static void judge_ack(struct work *w, const struct live_flow *other,
		      const struct stall_record *held, bool sender_is_client)
{
	uint64_t wait = held->end - held->begin;
	const struct stall_record *timer = timer_during(other, held);

	if (timer)
		count(w, CAUSE_delayed_ack, sender_is_client, true, timer->end - timer->begin,
		      "data arrived and was not acknowledged until the delayed-ACK timer fired, with the sender waiting");
	else if (held->cause && wait >= ACK_WAIT_MIN_NS)
		count(w, CAUSE_delayed_ack, sender_is_client, false, wait,
		      "the acknowledgement that set the bytes free came after tens of milliseconds; its own end's timer was not seen");
}

static void judge_hold(struct work *w, const struct live_flow *other,
		       const struct stall_record *held, bool sender_is_client)
{
	uint64_t wait = held->end - held->begin;
	long turn = slow_turn_at(w, held->begin);
	bool proven = holds[held->reason].always || held->cause;

	if (turn < 0 || !holds[held->reason].proven ||
	    (uint64_t)holds[held->reason].share * wait < w->flow->turns[turn].took_ns)
		return;
	count(w, holds[held->reason].cause, sender_is_client, proven, wait,
	      proven ? holds[held->reason].proven : holds[held->reason].likely);
	if (held->reason == HOLD_NAGLE)
		judge_ack(w, other, held, sender_is_client);
	w->explained[turn] = true;
	if (!w->typical || timer_during(other, held)) {
		w->typical = held;
		w->typical_turn = &w->flow->turns[turn];
	}
}

/* A first copy that was dropped before the device layer was never seen: then the time until the second counts as held. */
static uint64_t lost_time(const struct trip *trip, bool client)
{
	const uint64_t *ns = trip->stage_ns;

	return client ? ns[STAGE_client_retrans] + ns[STAGE_client_held]
		      : ns[STAGE_server_retrans] + ns[STAGE_server_held];
}

static void judge_resend(struct work *w, const struct stall_record *resent, bool sender_is_client)
{
	static const char *const evidence[RESEND_REASONS] = {
		"known bytes were sent again, in the state of loss after a timeout",
		"the last bytes were sent again before any timeout, in the normal state",
		"known bytes were sent again during recovery",
	};
	long turn = slow_turn_at(w, resent->end);
	uint64_t lost;

	if (turn < 0 || w->explained[turn])
		return;
	/* The other end may send again as well, because its acknowledgement was lost along: that is no cause. */
	lost = lost_time(&w->flow->turns[turn].trip, sender_is_client);
	if (4 * lost < w->flow->turns[turn].took_ns)
		return;
	w->explained[turn] = true;
	count(w, resend_causes[resent->reason], sender_is_client, true, lost,
	      evidence[resent->reason]);
}

/*
 * The stalls of that kind of one end; other is the far end, NULL: not seen. The last one first: of several
 * transmissions it is the one that arrived.
 */
static void judge_end(struct work *w, const struct live_flow *end, const struct live_flow *other,
		      bool client, enum stall_kind kind)
{
	for (size_t i = end ? end->stall_count : 0; i-- > 0;) {
		const struct stall_record *s = &end->stalls[i];

		if (s->kind != kind)
			continue;
		if (kind == STALL_HELD)
			judge_hold(w, other, s, client);
		else
			judge_resend(w, s, client);
	}
}

/* Holds first: a window that is closed is probed, which is no loss. */
static void judge_stalls(struct work *w, bool lone_server)
{
	static const enum stall_kind kinds[] = {STALL_HELD, STALL_RESENT};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		judge_end(w, w->flow, w->flow->peer, !lone_server, kinds[i]);
		judge_end(w, w->flow->peer, w->flow, lone_server, kinds[i]);
	}
}

/*
 * A server whose client is elsewhere: its own timer had to acknowledge, and right after that the rest of the request
 * arrived. The client waited for that, but its reason is not seen from here.
 */
static void judge_lone_server(struct work *w)
{
	const struct live_flow *flow = w->flow;
	size_t next = 0;

	for (size_t i = 0; i < flow->stall_count; i++) {
		const struct stall_record *s = &flow->stalls[i];

		if (s->kind != STALL_DELACK)
			continue;
		while (next < flow->turn_count && flow->turns[next].start_ns < s->end)
			next++;
		if (next == flow->turn_count ||
		    flow->turns[next].start_ns - s->end > AFTER_ACK_MAX_NS)
			continue;
		count(w, CAUSE_delayed_ack, true, false, s->end - s->begin,
		      "the delayed-ACK timer had to acknowledge the first part of a request, and the rest came right after that");
		w->slow_sum += s->end - s->begin;
	}
}

/* --- where the time went ------------------------------------------------------------------------- */

static const struct {
	int stage;
	enum cause cause;
	bool proven; /* the two hooks around it leave no other reading */
	bool sender_is_client;
	const char *evidence;
	int unless; /* the turn passed this stage as well; -1: whatever it passed */
} stage_causes[] = {
	{STAGE_server_app, CAUSE_slow_server, true, true,
	 "from the return of its receive call to its next send", -1},
	{STAGE_server_wakeup, CAUSE_run_queue, true, true, "from its wake-up to the moment it ran",
	 -1},
	{STAGE_client_wakeup, CAUSE_run_queue, true, false, "from its wake-up to the moment it ran",
	 -1},
	{STAGE_server_receive, CAUSE_slow_reader, true, true,
	 "from the announcement of the data to the return of the receive call, without a wake-up",
	 STAGE_server_wakeup},
	{STAGE_client_receive, CAUSE_slow_reader, true, false,
	 "from the announcement of the data to the return of the receive call, without a wake-up",
	 STAGE_client_wakeup},
	{STAGE_client_qdisc, CAUSE_qdisc, true, true,
	 "from the entry into the device layer to the driver", -1},
	{STAGE_server_qdisc, CAUSE_qdisc, true, false,
	 "from the entry into the device layer to the driver", -1},
	{STAGE_server_softirq, CAUSE_softirq, false, true,
	 "from the device's announcement to the softirq's start", -1},
	{STAGE_client_softirq, CAUSE_softirq, false, false,
	 "from the device's announcement to the softirq's start", -1},
};

static void judge_stages(struct work *w)
{

	for (size_t i = 0; i < w->flow->turn_count; i++) {
		const struct live_turn *turn = &w->flow->turns[i];

		if (turn->took_ns < w->slow_from || w->explained[i])
			continue;
		for (size_t s = 0; s < sizeof(stage_causes) / sizeof(stage_causes[0]); s++) {
			uint64_t ns = turn->trip.stage_ns[stage_causes[s].stage];

			if (2 * ns < turn->took_ns ||
			    (stage_causes[s].unless >= 0 &&
			     turn->trip.seen >> stage_causes[s].unless & 1))
				continue;
			count(w, stage_causes[s].cause, stage_causes[s].sender_is_client,
			      stage_causes[s].proven, ns, stage_causes[s].evidence);
		}
	}
}

/* --- who had the CPU ----------------------------------------------------------------------------- */

enum { HOGS_MAX = 32 }; /* tasks that are told apart */

struct hog {
	const struct hog_record *who;
	size_t turns;
};

/* What an end's program waited for during that turn, the longest wait; NULL: nothing was told. */
static const struct hog_record *hog_during(const struct live_flow *end,
					   const struct live_turn *turn)
{
	const struct live *live = end->live;
	const struct hog_record *longest = NULL;

	for (size_t i = 0; i < live->hog_count; i++) {
		const struct hog_record *h = &live->hogs[i];

		if (h->reader != end->who.pid || h->begin < turn->start_ns ||
		    h->end > turn->start_ns + turn->took_ns)
			continue;
		if (!longest || h->end - h->begin > longest->end - longest->begin)
			longest = h;
	}
	return longest;
}

static void count_hog(struct hog *hogs, size_t *n, const struct hog_record *record)
{
	size_t i = 0;

	while (i < *n && hogs[i].who->pid != record->pid)
		i++;
	if (i == HOGS_MAX)
		return;
	if (i == *n)
		hogs[(*n)++] = (struct hog){record, 0};
	hogs[i].turns++;
}

/* Names the task behind which one end's program waited in most of the slow turns. */
static void name_hog(const struct work *w, struct verdict *v)
{
	bool own = v->client_end == (w->flow->role == ROLE_CLIENT);
	const struct live_flow *end = own ? w->flow : w->flow->peer;
	struct hog hogs[HOGS_MAX];
	size_t n = 0, most = 0;

	for (size_t i = 0; end && end->known && i < w->flow->turn_count; i++) {
		const struct live_turn *turn = &w->flow->turns[i];
		const struct hog_record *record =
			turn->took_ns >= w->slow_from ? hog_during(end, turn) : NULL;

		if (record)
			count_hog(hogs, &n, record);
	}
	if (!n)
		return;
	for (size_t i = 1; i < n; i++)
		if (hogs[i].turns > hogs[most].turns)
			most = i;
	v->hog_pid = hogs[most].who->pid;
	v->hog_turns = hogs[most].turns;
	memcpy(v->hog_comm, hogs[most].who->comm, sizeof(v->hog_comm));
}

/* --- verdicts ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool told_by_stage(enum cause cause)
{
	for (size_t s = 0; s < sizeof(stage_causes) / sizeof(stage_causes[0]); s++)
		if (stage_causes[s].cause == cause)
			return true;
	return false;
}

static int by_time_lost(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;

	return (x->saving < y->saving) - (x->saving > y->saving);
}

static bool worth_a_word(const struct work *w, enum cause cause, const struct tally *t)
{
	size_t all = w->flow->turn_count;

	if (t->turns < TURNS_MIN || 100 * t->sum_ns < SLOW_PERCENT * w->slow_sum)
		return false;
	if (told_by_stage(cause) && t->turns < STAGE_TURNS_MIN)
		return false;
	if (!told_by_stage(cause))
		return 1000 * t->turns >= EVIDENT_PERMILLE * all;
	return 1000 * t->turns >= STAGE_PERMILLE * all ||
	       100 * t->sum_ns >= STAGE_PERCENT * w->all_sum;
}

static void conclude(struct work *w)
{
	struct diagnosis *out = w->out;

	for (int i = 0; i < 2 * CAUSES; i++) {
		enum cause cause = (enum cause)(i / 2);
		struct tally *t = &w->tallies[cause][i % 2];

		if (!worth_a_word(w, cause, t))
			continue;
		qsort(t->waits, t->turns, sizeof(*t->waits), by_value);
		out->verdicts[out->verdict_count++] = (struct verdict){
			.cause = cause,
			.grade = 2 * t->proven > t->turns ? GRADE_PROVEN : GRADE_LIKELY,
			.client_end = i % 2,
			.turns = t->turns,
			.wait_ns = t->waits[t->turns / 2],
			.saving = w->slow_sum ? (double)t->sum_ns / (double)w->slow_sum : 0,
			.evidence = t->evidence,
		};
		if (cause == CAUSE_run_queue)
			name_hog(w, &out->verdicts[out->verdict_count - 1]);
	}
	qsort(out->verdicts, (size_t)out->verdict_count, sizeof(out->verdicts[0]), by_time_lost);
}

static void add_moment(struct work *w, uint64_t at, bool client_end, const char *what)
{
	struct diagnosis *out = w->out;
	int i = out->moment_count;

	if (!at || at < w->typical_turn->start_ns || i == MOMENTS_MAX)
		return;
	at -= w->typical_turn->start_ns;
	for (; i > 0 && out->moments[i - 1].at_ns > at; i--)
		out->moments[i] = out->moments[i - 1];
	out->moments[i] = (struct moment){at, client_end, what};
	out->moment_count++;
}

/* The timeline of one stalled turn, from both ends as far as they are seen. */
static void tell_moments(struct work *w)
{
	const struct live_flow *flow = w->flow;
	const struct stall_record *held = w->typical, *timer;
	bool client = held && held->socket == flow->socket;
	const struct live_flow *other = client ? flow->peer : flow;

	if (!held)
		return;
	timer = timer_during(other, held);
	add_moment(w, w->typical_turn->start_ns, true, "the request's first write enters TCP");
	add_moment(w, held->begin, client, "a write returns, its bytes are held back");
	if (timer) {
		add_moment(w, timer->begin, !client,
			   "data arrives, its acknowledgement is put off");
		add_moment(w, timer->cause, !client, "the delayed-ACK timer fires");
		add_moment(w, timer->end, !client, "the acknowledgement leaves");
	}
	add_moment(w, held->cause, client, "an acknowledgement arrives");
	add_moment(w, held->end, client, "the held bytes leave");
	add_moment(w, w->typical_turn->start_ns + w->typical_turn->took_ns, true,
		   "the reply is received");
}

int diagnose_flow(const struct live_flow *flow, struct diagnosis *out)
{
	struct work w = {.flow = flow, .out = out};
	bool lone_server = flow->role == ROLE_SERVER;
	uint64_t *waits;
	int rc;

	*out = (struct diagnosis){0};
	w.waits_max = 2 * flow->turn_count + 1;
	w.explained = calloc(flow->turn_count + 1, sizeof(*w.explained));
	waits = calloc(2 * CAUSES * w.waits_max,
		       sizeof(*waits)); /* memory only where it is touched */
	if (!w.explained || !waits) {
		free(w.explained);
		free(waits);
		return err_set(-ENOMEM, "no memory to judge a flow");
	}
	for (int i = 0; i < 2 * CAUSES; i++)
		w.tallies[i / 2][i % 2].waits = waits + (size_t)i * w.waits_max;
	rc = find_clusters(&w);
	if (!rc) {
		if (lone_server)
			judge_lone_server(&w);
		judge_stalls(&w, lone_server);
		judge_stages(&w);
		conclude(&w);
		tell_moments(&w);
		out->placement_count = placement_of(flow, out->placements);
	}
	free(waits);
	free(w.explained);
	return rc;
}
