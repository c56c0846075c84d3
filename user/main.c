// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/version.h"
#include "cmd/command.h"

const struct command commands[] = {
	{"ping", "ping-pong against a server: latency, and in which layer each trip waited",
	 cmd_ping},
	{"diagnose", "why small messages over TCP are slow, with evidence", cmd_diagnose},
	{"remedy", "sets socket options of live flows of other programs, and back", cmd_remedy},
	{"load", "messages in one direction: how many per second leave and arrive", cmd_load},
	{"serve", "the echo side of the driver", cmd_serve},
	{"top", "all TCP flows of this host, live: where their round trips wait", cmd_top},
	{"watch", "the split of live flows of other programs, interval by interval", cmd_watch},
	{"irq", "which CPU handles which queue's interrupts; bindings, with undo", cmd_irq},
	{"stages", "the table of stages a round trip is split into", cmd_stages},
	{"doctor", "what this kernel and these privileges allow, and what is missing", cmd_doctor},
	{NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
	fputs("Usage: layover COMMAND [options]\n"
	      "Shows, for every small TCP or UDP message, in which layer it waited and why.\n\n"
	      "Commands:\n",
	      to);
	for (const struct command *c = commands; c->name; c++)
		fprintf(to, "  %-9s %s\n", c->name, c->summary);
	fputs("\nExamples:\n"
	      "  layover ping --lab             a round trip between two namespaces, split by stage\n"
	      "  layover serve 0.0.0.0          wait for clients on every interface\n"
	      "  layover ping 192.0.2.7 --udp   measure against that server\n"
	      "\n'layover COMMAND --help' tells more about one command.\n",
	      to);
}

static int unknown_command(const char *word)
{
	const char *names[32];
	const char *near;
	int n = 0;

	for (const struct command *c = commands; c->name; c++)
		names[n++] = c->name;
	names[n] = NULL;
	near = args_nearest(word, names);
	return say_error(EXIT_USAGE, "there is no command '%s'%s%s; 'layover help' lists them",
			 word, near ? "; the nearest is " : "", near ? near : "");
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	cpus_count(); /* remembers the CPUs allowed before anything pins itself */
	if (!word) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(stdout);
		return EXIT_OK;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("layover %s\n", LAYOVER_VERSION);
		return EXIT_OK;
	}
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(word, c->name))
			return c->run(argc - 1, argv + 1);
	return unknown_command(word);
}
