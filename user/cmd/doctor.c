// SPDX-License-Identifier: GPL-2.0-only
/* layover doctor: what this kernel and these privileges offer, what is used instead, what that costs. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/args.h"
#include "base/error.h"
#include "cmd/command.h"
#include "collect/probes.h"
#include "model/stages.h"
#include "view/view.h"

static const char doc[] =
	"Tries every hook and says what this kernel and these privileges offer, which is used "
	"instead where one is missing, and what its absence costs.\v"
	"Exit status: 0 when the core split can run, 3 when it cannot.";

/* What the split loses with a hook; hooks not listed cost the split of their two stages only. */
static const struct {
	enum hook hook;
	const char *cost;
} costs[HOOKS] = {
	[HOOK_send_enter] = {HOOK_send_enter, "system call entry counts as user or app"},
	[HOOK_send_tcp] = {HOOK_send_tcp, "user and app end later, at the next send hook"},
	[HOOK_send_exit] = {HOOK_send_exit, "bytes held back after the write count as send"},
	[HOOK_dev_queue] = {HOOK_dev_queue, "no split: the message cannot be recognised"},
	[HOOK_dev_xmit] = {HOOK_dev_xmit, "qdisc and wire are one stage"},
	[HOOK_irq] = {HOOK_irq, "waiting for the softirq counts as wire"},
	[HOOK_softirq] = {HOOK_softirq, "softirq and driver are one stage"},
	[HOOK_stack_in] = {HOOK_stack_in, "driver and stack are one stage"},
	[HOOK_sock_in] = {HOOK_sock_in, "no split of TCP: the reply cannot be recognised"},
	[HOOK_data_ready] = {HOOK_data_ready, "no split of UDP; TCP: socket counts as notify"},
	[HOOK_wakeup] = {HOOK_wakeup, "notify counts as wakeup"},
	[HOOK_running] = {HOOK_running, "wakeup counts as reader or receive"},
	[HOOK_copy] = {HOOK_copy, "reader counts as receive"},
	[HOOK_recv_exit] = {HOOK_recv_exit, "no split: the end of a turn is not seen"},
};

static const char *const kind_names[] = {
	[PROBE_TP] = "tracepoint", [PROBE_FENTRY] = "entry", [PROBE_FEXIT] = "return"};
static const char *const proto_names[] = {
	[PROBE_ANY] = "any", [PROBE_TCP] = "tcp", [PROBE_UDP] = "udp"};

struct findings {
	struct probing probing;
	bool tcp[PROBES_MAX], udp[PROBES_MAX]; /* chosen for that protocol */
	bool taken[HOOKS];                     /* by either */
	bool core;                             /* the core split can run */
	int rc;                                /* 0, or why there is no split at all */
};

static void examine(struct findings *f)
{
	f->rc = probes_begin(&f->probing);
	if (!f->rc) {
		probes_try_all(&f->probing);
		f->rc = probes_any(&f->probing);
	}
	probes_end(&f->probing);
	if (f->rc)
		return;
	probes_choose(&f->probing,
		      &(struct probe_wish){
			      .proto = IPPROTO_TCP, .hardware = true, .stalls = true, .heads = 1},
		      f->tcp);
	probes_choose(&f->probing, &(struct probe_wish){.proto = IPPROTO_UDP, .hardware = true},
		      f->udp);
	for (int i = 0; i < probe_count; i++)
		if (f->tcp[i] || f->udp[i])
			f->taken[probes[i].hook] = true;
	f->core =
		probes_lacking(f->tcp, IPPROTO_TCP) < 0 && probes_lacking(f->udp, IPPROTO_UDP) < 0;
}

static const char *state_of(const struct findings *f, int row)
{
	if (probes[row].use == PROBE_STALL && f->tcp[row])
		return "used for stalls";
	if (probes[row].use == PROBE_TOP && f->tcp[row])
		return "used for top";
	if (f->tcp[row] && f->udp[row])
		return "used";
	if (f->tcp[row] || f->udp[row])
		return probes[row].proto == PROBE_ANY
			       ? (f->tcp[row] ? "used for TCP" : "used for UDP")
			       : "used";
	if (f->probing.errors[row] == 0)
		return "spare";
	if (f->probing.errors[row] == -ENOENT)
		return "not in this kernel";
	return "refused";
}

static bool has_probe(int hook)
{
	for (int i = 0; i < probe_count; i++)
		if ((int)probes[i].hook == hook)
			return true;
	return false;
}

/* It could be taken, and is not by default. */
static bool is_spare(const struct findings *f, int hook)
{
	for (int i = 0; i < probe_count; i++)
		if ((int)probes[i].hook == hook && !f->probing.errors[i])
			return true;
	return false;
}

static int print_json(const struct findings *f)
{
	json_t *out = view_json_header("doctor"), *rows = json_array(), *missing = json_array();

	for (int i = 0; !f->rc && i < probe_count; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "hook",
						      hook_infos[probes[i].hook].name, "protocol",
						      proto_names[probes[i].proto], "kind",
						      kind_names[probes[i].kind], "target",
						      probes[i].target, "state", state_of(f, i),
						      "errno", -f->probing.errors[i]));
	for (int h = 0; !f->rc && h < HOOKS; h++)
		if (has_probe(h) && !f->taken[h])
			json_array_append_new(missing,
					      json_pack("{s:s, s:s}", "hook", hook_infos[h].name,
							"cost", costs[h].cost));
	json_object_set_new(out, "split", json_boolean(f->core));
	if (f->rc)
		json_object_set_new(out, "reason", json_string(err_text(f->rc)));
	json_object_set_new(out, "hooks", rows);
	json_object_set_new(out, "missing", missing);
	return view_json_print(out);
}

static void print_rows(const struct findings *f)
{
	printf("%-11s %-5s %-10s %-24s %s\n", "hook", "proto", "kind", "target", "");
	for (int i = 0; i < probe_count; i++) {
		const struct probe *p = &probes[i];

		printf("%-11s %-5s %-10s %-24s %s", hook_infos[p->hook].name, proto_names[p->proto],
		       kind_names[p->kind], p->target, state_of(f, i));
		if (f->probing.errors[i] && f->probing.errors[i] != -ENOENT)
			printf(": %s", strerror(-f->probing.errors[i]));
		putchar('\n');
	}
	for (int h = 0; h < HOOKS; h++) {
		if (!has_probe(h) || f->taken[h])
			continue;
		if (is_spare(f, h))
			printf("Without %s, which '--hooks +%s' takes: %s.\n", hook_infos[h].name,
			       hook_infos[h].name, costs[h].cost);
		else
			printf("Without %s: %s.\n", hook_infos[h].name, costs[h].cost);
	}
}

static void print_text(const struct findings *f)
{
	struct utsname host;

	uname(&host);
	printf("Kernel %s, %s\n", host.release, host.machine);
	if (!f->rc)
		print_rows(f);
	if (f->core)
		puts("The split can run here.");
	else
		printf("The split cannot run here: %s.\n",
		       f->rc ? err_text(f->rc) : "a hook it needs is missing");
}

int cmd_doctor(int argc, char **argv)
{
	struct findings findings = {0};
	bool json = false;
	int rc = 0;

	args_parse_json_only(doc, argc, argv, &json);
	examine(&findings);
	if (json)
		rc = print_json(&findings);
	else
		print_text(&findings);
	if (rc)
		return say_error(EXIT_FAILED, "%s", err_text(rc));
	return findings.core ? EXIT_OK : EXIT_CANNOT;
}
