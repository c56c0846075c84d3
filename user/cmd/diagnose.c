// SPDX-License-Identifier: GPL-2.0-only
/* layover diagnose: why small messages over TCP are slow, with evidence. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/remedy.h"
#include "cmd/scenarios.h"
#include "cmd/watching.h"
#include "load/address.h"
#include "load/clock.h"
#include "load/server.h"
#include "view/diagnosis.h"
#include "view/view.h"

enum { FAIL_NEVER, FAIL_IF_STALL };

struct diagnose_options {
	struct watch_filter filter;
	const char *fail_if, *lab;
	const struct scenario *scenario; /* of the lab, NULL: other programs */
	uint64_t time_ns;
	bool json, all, trial;
};

#define AT(field) offsetof(struct diagnose_options, field)

static const struct setting diagnose_settings[] = {
	{"lab", 0, "SCENARIO",
	 "watch a flow made on purpose in two network namespaces instead; 'list' lists them (needs root)",
	 SETTING_TEXT, AT(lab), 0, 0, NULL},
	{"time", 't', "TIME", "watch for TIME; default 5s", SETTING_TIME, AT(time_ns), NS_PER_S, 0,
	 NULL},
	{"try", 0, NULL,
	 "where Nagle's algorithm is proven: set TCP_NODELAY on the sender's live socket, watch again for as long, restore "
	 "it, and show both",
	 SETTING_FLAG, AT(trial), 0, 0, NULL},
	{.doc = "Output:"},
	{"all", 'a', NULL, "show healthy flows, too, when there are many", SETTING_FLAG, AT(all), 0,
	 0, NULL},
	{"fail-if", 0, "WHAT", "stall: exit 4 when a stall was proven", SETTING_TEXT, AT(fail_if),
	 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

enum { HEALTHY_SHOWN = 8 }; /* more of them are only counted, unless --all */

static const char doc[] =
	"Watches the TCP flows of other programs, tells their fast turns from their slow ones, and names what the slow "
	"ones waited for: proven when all of its evidence was seen, likely when a part was. Changes nothing without --try.\v"
	"Examples:\n"
	"  layover diagnose --port 5000            the programs on both sides of that port\n"
	"  layover diagnose --pid 1234 -t 20 -j    all flows of a process, as JSON\n";

static volatile bool stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = true;
}

/* An exit code. */
static int list_scenarios(const char *name)
{
	if (strcmp(name, "list") != 0)
		return say_error(EXIT_USAGE,
				 "--lab: there is no scenario '%s'; '--lab list' lists them", name);
	for (const struct scenario *s = scenarios; s->name; s++)
		printf("%-26s %s\n", s->name, s->text);
	return EXIT_OK;
}

static void parse_options(struct diagnose_options *o, int argc, char **argv)
{
	const struct settings parts[] = {
		{watch_filter_settings, &o->filter}, {diagnose_settings, o}, {NULL, NULL}};

	o->time_ns = 5ULL * NS_PER_S;
	settings_parse(parts, "", doc, NULL, argc, argv);
	if (watch_filter_finish(&o->filter))
		exit(say_error(EXIT_USAGE, "%s", err_text(-EINVAL)));
	if (o->fail_if && strcmp(o->fail_if, "stall") != 0)
		exit(say_error(EXIT_USAGE, "--fail-if: '%s' is not 'stall'", o->fail_if));
	if (o->lab && !(o->scenario = scenario_by_name(o->lab)))
		exit(list_scenarios(o->lab));
	if (o->scenario)
		o->filter.port = SERVER_PORT;
	if (!o->time_ns)
		exit(say_error(EXIT_USAGE, "--time: there is nothing to watch in no time"));
}

/* Names of both ends; those of an end that is not seen are taken from the other one. */
struct names_memory {
	char client[40], server[40], client_addr[ADDRESS_TEXT_MAX], server_addr[ADDRESS_TEXT_MAX];
};

static void name_program(const struct live_flow *flow, char *text, size_t size)
{
	char comm[FLOW_COMM + 1];

	if (flow && flow->known)
		snprintf(text, size, "%s[%u]", watching_comm(flow, comm), flow->who.pid);
	else
		snprintf(text, size, "?");
}

static struct flow_names names_of(const struct live_flow *flow, struct names_memory *m)
{
	const struct live_flow *client = flow->role == ROLE_CLIENT ? flow : NULL;
	const struct live_flow *server = client ? flow->peer : flow;

	name_program(client, m->client, sizeof(m->client));
	name_program(server, m->server, sizeof(m->server));
	watching_address(flow, flow->role == ROLE_SERVER, m->client_addr);
	watching_address(flow, flow->role == ROLE_CLIENT, m->server_addr);
	return (struct flow_names){m->client, m->server, m->client_addr, m->server_addr};
}

/* --try: what one flow was before and with the remedy. */
struct trial {
	bool tried;
	uint64_t before_ns, with_ns;
	size_t before_turns, with_turns;
};

/* What was found in all flows together. */
struct findings {
	size_t flows, healthy, sick;
	bool stall_proven;
	json_t *list;
	struct trial trial;
	const struct live_flow *sick_flow,
		*sender; /* the first for which --try has a remedy, and whose */
};

static bool proven(const struct diagnosis *d)
{
	for (int i = 0; i < d->verdict_count; i++)
		if (d->verdicts[i].grade == GRADE_PROVEN)
			return true;
	return false;
}

/* The median turn of the larger cluster; 0: none. */
static uint64_t typical(const struct diagnosis *d, size_t *turns)
{
	const struct cluster *most =
		&d->clusters[d->cluster_count > 1 && d->clusters[1].count > d->clusters[0].count];

	*turns = d->clusters[0].count + d->clusters[1].count;
	return most->median_ns;
}

/* Whose program sent what Nagle held in this flow; NULL: that is not proven, or not seen. */
static const struct live_flow *proven_sender(const struct live_flow *flow,
					     const struct diagnosis *d)
{
	const struct live_flow *sender;

	for (int v = 0; v < d->verdict_count; v++) {
		if (d->verdicts[v].cause != CAUSE_nagle || d->verdicts[v].grade != GRADE_PROVEN)
			continue;
		sender = d->verdicts[v].client_end == (flow->role == ROLE_CLIENT) ? flow
										  : flow->peer;
		if (sender && sender->known)
			return sender;
	}
	return NULL;
}

/* Keeps the first flow for which there is something to try. */
static void note_trial(const struct live_flow *flow, const struct diagnosis *d,
		       struct findings *found)
{
	if (found->sender)
		return;
	found->sender = proven_sender(flow, d);
	if (!found->sender)
		return;
	found->sick_flow = flow;
	found->trial.before_ns = typical(d, &found->trial.before_turns);
}

static int judge(const struct diagnose_options *o, const struct live_flow *flow,
		 struct findings *found)
{
	struct names_memory memory;
	struct flow_names names;
	struct diagnosis d;
	int rc = diagnose_flow(flow, &d);

	if (rc)
		return rc;
	names = names_of(flow, &memory);
	found->flows++;
	found->stall_proven |= proven(&d);
	found->sick += d.verdict_count > 0;
	found->healthy += d.verdict_count == 0;
	note_trial(flow, &d, found);
	if (found->list)
		json_array_append_new(found->list, view_diagnosis_json(flow, &d, &names));
	else if (d.verdict_count || o->all || found->healthy <= HEALTHY_SHOWN)
		view_diagnosis_text(flow, &d, &names);
	return 0;
}

/* Measures one flow again with TCP_NODELAY, and takes it back. 0 or -errno with a sentence. */
static int try_remedy(const struct diagnose_options *o, struct watching *w, struct findings *found)
{
	const struct live_flow *sender = found->sender, *flow = found->sick_flow;
	struct diagnosis d;
	int rc, restored;

	if (!sender)
		return 0;
	rc = remedy_try_nodelay(sender->who.pid, sender->who.netns, flow->ports);
	if (rc)
		return rc;
	found->trial.tried = true;
	live_clear(&w->live);
	rc = watching_gather(w, o->time_ns, &stopped, true);
	restored = remedy_try_end();
	if (!rc)
		rc = restored;
	if (!rc)
		rc = diagnose_flow(flow, &d);
	if (!rc)
		found->trial.with_ns = typical(&d, &found->trial.with_turns);
	return rc;
}

static int judge_all(const struct diagnose_options *o, const struct watching *w,
		     struct findings *found)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < w->live.count; i++) {
		const struct live_flow *flow = w->live.flows[i];

		if (flow->role == ROLE_SERVER && flow->peer)
			continue; /* judged with its client */
		if ((flow->turn_count || flow->one_way) && watch_filter_fits(&o->filter, flow))
			rc = judge(o, flow, found);
	}
	return rc;
}

static int print_json(const struct watching *w, const struct findings *found)
{
	json_t *out = view_json_header("diagnose");
	struct collect_counters counters;

	collect_counters(w->collect, &counters);
	json_object_set_new(out, "flows", found->list);
	json_object_set_new(out, "healthy", json_boolean(found->sick == 0));
	if (found->trial.tried)
		json_object_set_new(out, "try",
				    json_pack("{s:s, s:I, s:I, s:I, s:I}", "remedy", "nodelay",
					      "before_p50_ns", (json_int_t)found->trial.before_ns,
					      "before_turns", (json_int_t)found->trial.before_turns,
					      "with_p50_ns", (json_int_t)found->trial.with_ns,
					      "with_turns", (json_int_t)found->trial.with_turns));
	json_object_set_new(out, "counters",
			    json_pack("{s:I, s:I, s:I}", "dropped", (json_int_t)counters.dropped,
				      "left_out", (json_int_t)w->live.left_out, "recursion_misses",
				      (json_int_t)counters.recursion_misses));
	return view_json_print(out);
}

static int print_text(const struct watching *w, const struct findings *found)
{
	struct collect_counters counters;

	collect_counters(w->collect, &counters);
	if (found->trial.tried)
		printf("Tried TCP_NODELAY on the first one's sender and took it back: a typical\n"
		       "turn was %.3f ms before (of %zu), %.3f ms with it (of %zu).\n\n",
		       (double)found->trial.before_ns / 1e6, found->trial.before_turns,
		       (double)found->trial.with_ns / 1e6, found->trial.with_turns);
	printf("%zu flow%s: %zu with a cause of waiting, %zu healthy; dropped %llu, left out %llu\n",
	       found->flows, found->flows == 1 ? "" : "s", found->sick, found->healthy,
	       (unsigned long long)counters.dropped, (unsigned long long)w->live.left_out);
	if (!w->delack_seen)
		printf("The kernel does not tell where its delayed-ACK timer is (/proc/kallsyms): delayed_ack is "
		       "never proven.\n");
	return 0;
}

static int diagnose(const struct diagnose_options *o, struct watching *w)
{
	struct findings found = {.list = o->json ? json_array() : NULL};
	int rc = watching_gather(w, o->time_ns, &stopped, !o->trial);

	if (!rc)
		rc = judge_all(o, w, &found);
	if (!rc && o->trial)
		rc = try_remedy(o, w, &found);
	if (rc)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	if (!found.flows)
		return say_error(EXIT_FAILED,
				 "nothing was seen: no TCP flow that fits had a turn in that time");
	rc = o->json ? print_json(w, &found) : print_text(w, &found);
	if (rc)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	return o->fail_if && found.stall_proven ? EXIT_LIMIT : EXIT_OK;
}

int cmd_diagnose(int argc, char **argv)
{
	struct diagnose_options o = {0};
	struct watching w = {0};
	struct scene scene = {.lab = LAB_NONE};
	int rc, code;

	parse_options(&o, argc, argv);
	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	rc = o.scenario ? scene_start(&scene, o.scenario) : 0;
	if (rc)
		return say_error(rc == -EPERM ? EXIT_CANNOT : EXIT_FAILED, "%s", err_text(rc));
	if (o.scenario)
		o.filter.netns = scene_namespace(&scene);
	rc = watching_open(&w, &o.filter);
	code = rc ? say_error(EXIT_CANNOT, "flows cannot be watched: %s", err_text(rc))
		  : diagnose(&o, &w);
	watching_close(&w);
	scene_end(&scene);
	return code;
}
