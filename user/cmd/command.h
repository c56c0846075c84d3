/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of commands: one row per subcommand, one file per row. */
#ifndef LAYOVER_COMMAND_H
#define LAYOVER_COMMAND_H

struct command {
	const char *name;
	const char *summary;               /* one line for `layover help` and the man page */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns an exit code */
};

extern const struct command commands[]; /* ends with a row whose name is NULL */

int cmd_serve(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_load(int argc, char **argv);
int cmd_remedy(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_irq(int argc, char **argv);
int cmd_stages(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
