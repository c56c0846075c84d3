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
#include "load/clock.h"
#include "tune/devices.h"
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

/* --- which of them ------------------------------------------------------------------------------- */

static const struct command verbs[] = {
	{"show", "devices, queues, interrupts, rates", show},
	{NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
	fputs("Usage: layover irq VERB [options]\n"
	      "Which CPU handles which queue's interrupts.\n\nVerbs:\n",
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
