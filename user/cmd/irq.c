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
#include "tune/rss.h"
#include "tune/tree.h"
#include "view/irq.h"

enum { WORDS_MAX = 64, INTERVAL_MAX_S = 3600 };

/* --- show ---------------------------------------------------------------------------------------- */

struct show_options {
	uint64_t interval_ns;
	bool json;
};

#define AT(field) offsetof(struct show_options, field)

static const struct setting show_settings[] = {
	{"interval", 'i', "TIME", "rates over this time (default 1s; 0: counts since boot)",
	 SETTING_TIME, AT(interval_ns), NS_PER_S, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char show_doc[] =
	"Shows each network device's queues and interrupts: where they go, how often they come, and what "
	"spreads packets over them.\v"
	"Changes nothing and needs no privilege.\n\n"
	"Examples:\n"
	"  layover irq show\n"
	"  layover irq show eth0 -i 5 -j\n";

static int read_rates(struct irq_rates *rates, uint64_t interval_ns)
{
	struct timespec interval = clock_timespec(interval_ns);
	int rc = interrupts_read("/proc/softirqs", &rates->softirqs);

	if (rc || !interval_ns)
		return rc;
	nanosleep(&interval, NULL);
	rc = interrupts_read("/proc/interrupts", &rates->interrupts_after);
	return rc ? rc : interrupts_read("/proc/softirqs", &rates->softirqs_after);
}

static int show(int argc, char **argv)
{
	struct show_options o = {.interval_ns = NS_PER_S};
	const struct settings parts[] = {{show_settings, &o}, {NULL, NULL}};
	const char *names[WORDS_MAX];
	struct irq_rates rates = {0};
	struct machine machine;
	int rc, count = settings_parse_words(parts, "[DEVICE...]", show_doc, names, WORDS_MAX, argc,
					     argv);

	if (o.interval_ns > (uint64_t)INTERVAL_MAX_S * NS_PER_S)
		return say_error(EXIT_USAGE, "--interval: at most %d s", INTERVAL_MAX_S);
	rc = machine_read(&machine, names, count);
	if (!rc)
		rc = read_rates(&rates, o.interval_ns);
	if (!rc)
		rc = o.json ? view_irq_json(&machine, &rates) : view_irq_text(&machine, &rates);
	machine_free(&machine);
	interrupts_free(&rates.softirqs);
	interrupts_free(&rates.softirqs_after);
	interrupts_free(&rates.interrupts_after);
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

/* RXH_* bits. A driver that does not tell them hashes what most do: ports of TCP only. */
static uint64_t hashed_fields(const struct device *d, int family, bool udp)
{
	uint32_t type = family == AF_INET ? (udp ? UDP_V4_FLOW : TCP_V4_FLOW)
					  : (udp ? UDP_V6_FLOW : TCP_V6_FLOW);
	uint64_t fields;

	if (!ethtool_hashed_fields(d->name, type, &fields) && fields)
		return fields;
	return RXH_IP_SRC | RXH_IP_DST | (udp ? 0 : RXH_L4_B_0_1 | RXH_L4_B_2_3);
}

/*
 * The device's key; for a driver that does not tell it (igb, ixgbe) the one that the kernel offers to all. The latter
 * is a guess: a driver may have its own.
 */
static int find_key(struct device *d, bool *of_kernel)
{
	char text[TREE_TEXT], *at = text;

	*of_kernel = !d->rss_rc && !d->rss.key_size;
	if (*of_kernel && !tree_read(text, "/proc/sys/net/core/netdev_rss_key"))
		for (char *end; d->rss.key_size < ETHTOOL_KEY_MAX; at = end + 1) {
			d->rss.key[d->rss.key_size] = (uint8_t)strtoul(at, &end, 16);
			if (end == at)
				break;
			d->rss.key_size++;
			if (*end != ':')
				break;
		}
	if (!d->rss_rc && d->rss.key_size && (!d->rss.hfunc || d->rss.hfunc == RSS_TOEPLITZ))
		return 0;
	return err_set(-EOPNOTSUPP, "%s tells no table, or no Toeplitz key to compute with",
		       d->name);
}

static int place_flow(const struct device *d, const char *text, bool udp, struct irq_flow *out)
{
	const struct device_queue *queue;
	struct rss_flow flow;
	int rc = rss_flow_parse(text, &flow);

	if (rc)
		return rc;
	rc = rss_hash(d->rss.key, d->rss.key_size, &flow,
		      hashed_fields(d, flow.from.ss_family, udp), &out->hash);
	out->text = text;
	out->entry = out->hash % d->rss.size;
	out->queue = d->rss.table[out->entry];
	queue = device_queue(d, false, out->queue);
	for (int i = 0; i < d->irq_count; i++)
		if (queue && queue->irq == d->irqs[i].irq)
			out->irq = &d->irqs[i];
	return rc;
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
		rc = find_key(&machine.devices[0], &of_kernel);
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
