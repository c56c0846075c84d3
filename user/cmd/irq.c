// SPDX-License-Identifier: GPL-2.0-only
/* layover irq: which CPU handles which queue's interrupts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/args.h"
#include "base/error.h"
#include "base/settings.h"
#include "cmd/command.h"
#include "cmd/irq.h"
#include "load/clock.h"
#include "tune/devices.h"
#include "tune/steering.h"
#include "view/irq.h"

enum { WORDS_MAX = 64, INTERVAL_MAX_S = 3600 };

/* --- show ---------------------------------------------------------------------------------------- */

struct show_options {
	uint64_t interval_ns;
	bool json, flows;
};

#define AT(field) offsetof(struct show_options, field)

static const struct setting show_settings[] = {
	{"interval", 'i', "TIME", "rates over this time (default 1s; 0: counts since boot)",
	 SETTING_TIME, AT(interval_ns), NS_PER_S, 0, NULL},
	{"flows", 0, NULL,
	 "also the TCP flows behind each queue and their readers' CPUs, for that time (root)",
	 SETTING_FLAG, AT(flows), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char show_doc[] =
	"Shows each network device's queues and interrupts: where they go, how often they come, and what "
	"spreads packets over them.\v"
	"Changes nothing. Only --flows needs privilege.\n\n"
	"Examples:\n"
	"  layover irq show\n"
	"  layover irq show eth0 -i 5 -j\n"
	"  layover irq show eth0 --flows -i 3\n";

/* While the flows are watched, if they shall be; else nothing is done in between. */
static int pass_time(const struct show_options *o, struct irq_flows_watch *watch,
		     const struct machine *machine, struct irq_receivers *flows)
{
	struct timespec interval = clock_timespec(o->interval_ns);

	if (watch->watching)
		return irq_flows_gather(watch, o->interval_ns, machine, flows);
	nanosleep(&interval, NULL);
	return 0;
}

static int read_rates(const struct show_options *o, struct irq_flows_watch *watch,
		      struct machine *machine, struct irq_rates *rates, struct irq_receivers *flows)
{
	int rc = interrupts_read("/proc/softirqs", &rates->softirqs);

	if (rc || !o->interval_ns)
		return rc;
	rc = pass_time(o, watch, machine, flows);
	if (!rc)
		rc = interrupts_read("/proc/interrupts", &rates->interrupts_after);
	return rc ? rc : interrupts_read("/proc/softirqs", &rates->softirqs_after);
}

static int show_all(const struct show_options *o, const char *const *names, int count)
{
	struct irq_flows_watch watch = {0};
	struct irq_receivers flows = {0};
	struct irq_rates rates = {0};
	struct machine machine;
	int rc;

	/* First: loading the hooks takes longer than what is counted here. */
	if (o->flows && irq_flows_open(&watch)) {
		say_note("no flows: %s", err_text(0));
		err_clear();
	}
	rc = machine_read(&machine, names, count);
	if (!rc)
		rc = read_rates(o, &watch, &machine, &rates, &flows);
	irq_flows_close(&watch);
	if (!rc)
		rc = o->json ? view_irq_json(&machine, &rates, &flows)
			     : view_irq_text(&machine, &rates, &flows);
	irq_receivers_free(&flows);
	machine_free(&machine);
	interrupts_free(&rates.softirqs);
	interrupts_free(&rates.softirqs_after);
	interrupts_free(&rates.interrupts_after);
	return rc;
}

static int show(int argc, char **argv)
{
	struct show_options o = {.interval_ns = NS_PER_S};
	const struct settings parts[] = {{show_settings, &o}, {NULL, NULL}};
	const char *names[WORDS_MAX];
	int rc, count = settings_parse_words(parts, "[DEVICE...]", show_doc, names, WORDS_MAX, argc,
					     argv);

	if (o.interval_ns > (uint64_t)INTERVAL_MAX_S * NS_PER_S)
		return say_error(EXIT_USAGE, "--interval: at most %d s", INTERVAL_MAX_S);
	if (o.flows && !o.interval_ns)
		return say_error(EXIT_USAGE, "--flows: needs an --interval to look on");
	rc = show_all(&o, names, count);
	return rc ? say_error(EXIT_FAILED, "%s", err_text(rc)) : EXIT_OK;
}

/* --- flow ---------------------------------------------------------------------------------------- */

struct flow_options {
	bool json, udp;
};

static const struct setting flow_settings[] = {
	{"udp", 'u', NULL, "UDP flows; default TCP", SETTING_FLAG,
	 offsetof(struct flow_options, udp), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, offsetof(struct flow_options, json), 0, 0,
	 NULL},
	{0},
};

static const char flow_doc[] =
	"Computes to which receive queue DEVICE's hash and table send a flow, and whose interrupt that is. FLOW is "
	"REMOTE:PORT,LOCAL:PORT; IPv6 addresses stand in brackets.\v"
	"Changes nothing and needs no privilege.\n\n"
	"Example:\n"
	"  layover irq flow eth0 192.0.2.7:7117,192.0.2.1:40000\n";

static int place_flow(const struct device *d, const char *text, bool udp, struct irq_flow *out)
{
	struct rss_flow parsed;
	int rc = rss_flow_parse(text, &parsed);

	out->text = text;
	return rc ? rc : steering_of(d, &parsed, udp, &out->to);
}

static int flow(int argc, char **argv)
{
	struct flow_options o = {0};
	const struct settings parts[] = {{flow_settings, &o}, {NULL, NULL}};
	struct irq_flow flows[WORDS_MAX] = {0};
	const char *words[WORDS_MAX];
	struct machine machine;
	bool of_kernel = false;
	int rc, count = settings_parse_words(parts, "DEVICE FLOW...", flow_doc, words, WORDS_MAX,
					     argc, argv);

	if (count < 2)
		return say_error(EXIT_USAGE, "name a DEVICE and a FLOW (REMOTE:PORT,LOCAL:PORT)");
	rc = machine_read(&machine, words, 1);
	if (!rc)
		rc = steering_key(&machine.devices[0], &of_kernel);
	if (!rc && of_kernel)
		say_note("%s does not tell its hash key: this is computed with the kernel's, which "
			 "its driver may have taken",
			 words[0]);
	for (int i = 1; i < count && !rc; i++)
		rc = place_flow(&machine.devices[0], words[i], o.udp, &flows[i - 1]);
	if (!rc)
		rc = view_irq_flows(&machine.devices[0], flows, count - 1, o.json);
	machine_free(&machine);
	if (rc)
		return say_error(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", err_text(rc));
	return EXIT_OK;
}

/* --- which of them ------------------------------------------------------------------------------- */

static const struct command verbs[] = {
	{"show", "devices, queues, interrupts, rates", show},
	{"flow", "to which queue a flow's packets go", flow},
	{"plan", "what a policy would change, and why; changes nothing", irq_plan},
	{"apply", "changes it, with a journal", irq_apply},
	{"verify", "is what was applied still so?", irq_verify},
	{"undo", "restores what was before", irq_undo},
	{"tune", "tries combinations, measures each, names the best", irq_tune},
	{NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
	fputs("Usage: layover irq VERB [options]\n"
	      "Which CPU handles which queue's interrupts: shows it, changes it, restores it.\n\n"
	      "Verbs:\n",
	      to);
	for (const struct command *v = verbs; v->name; v++)
		fprintf(to, "  %-7s %s\n", v->name, v->summary);
	fputs("\n'layover irq VERB --help' tells more about one verb.\n", to);
}

int cmd_irq(int argc, char **argv)
{
	const char *names[sizeof(verbs) / sizeof(verbs[0])] = {0}, *near;
	const char *word = argc > 1 ? argv[1] : NULL;
	char name[32];

	if (!word || !strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(word ? stdout : stderr);
		return word ? EXIT_OK : EXIT_USAGE;
	}
	for (int i = 0; verbs[i].name; i++) {
		names[i] = verbs[i].name;
		if (strcmp(word, verbs[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "irq %s", word); /* how usage texts call it */
		argv[1] = name;
		return verbs[i].run(argc - 1, argv + 1);
	}
	near = args_nearest(word, names);
	return say_error(EXIT_USAGE,
			 "irq: there is no '%s'%s%s; 'layover irq --help' lists the verbs", word,
			 near ? "; the nearest is " : "", near ? near : "");
}
