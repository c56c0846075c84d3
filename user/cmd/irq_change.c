// SPDX-License-Identifier: GPL-2.0-only
/* layover irq plan, apply, verify, undo: bindings are changed with a journal, so that all can be restored. */
#include "cmd/irq.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "load/clock.h"
#include "tune/apply.h"
#include "tune/policies.h"
#include "tune/verify.h"
#include "view/irq_changes.h"
#include "view/view.h"

enum { WORDS_MAX = 64, DAY_S = 86400 };

struct change_options {
	struct policy_options policy;
	const char *numa, *plan_file;
	uint64_t for_ns, interval_ns;
	bool json, keep_going, yes, despite_irqbalance, last, forget;
};

#define AT(field) offsetof(struct change_options, field)

static const struct setting policy_settings[] = {
	{"cpus", 0, "LIST", "spread, xps: over these CPUs; default: all online ones not set aside",
	 SETTING_TEXT, AT(policy.cpus), 0, 0, NULL},
	{"step", 0, "N", "spread: to every N-th CPU first; default 1", SETTING_COUNT,
	 AT(policy.step), 1, 1024, NULL},
	{"numa", 0, "local", "spread, xps: over CPUs of the device's NUMA node only", SETTING_TEXT,
	 AT(numa), 0, 0, NULL},
	{"queue", 0, "LIST", "only these queues", SETTING_TEXT, AT(policy.queues), 0, 0, NULL},
	{"sibling", 0, NULL, "near-reader: on the hyperthread sibling of its CPU", SETTING_FLAG,
	 AT(policy.sibling), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const struct setting apply_settings[] = {
	{"plan", 0, "FILE", "apply what 'layover irq plan -j' wrote", SETTING_TEXT, AT(plan_file),
	 0, 0, NULL},
	{"for", 0, "TIME", "restore all of it after this time, or on Ctrl-C", SETTING_TIME,
	 AT(for_ns), NS_PER_S, 0, NULL},
	{"keep-going", 0, NULL, "leave out what is refused; else all is restored then",
	 SETTING_FLAG, AT(keep_going), 0, 0, NULL},
	{"yes", 0, NULL, "also the device that carries this connection", SETTING_FLAG, AT(yes), 0,
	 0, NULL},
	{"despite-irqbalance", 0, NULL, "although irqbalance may move the interrupts again",
	 SETTING_FLAG, AT(despite_irqbalance), 0, 0, NULL},
	{0},
};

static const char plan_doc[] =
	"Prints what the policies would change for DEVICE ('all': those with interrupts): old and new value, "
	"why, and the command a person would type. Changes nothing.\v";
static const char plan_examples[] = "\nExamples:\n"
				    "  layover irq plan eth0 spread --step 2\n"
				    "  layover irq plan eth0 near-reader 3 coalesce rx-usecs=0\n"
				    "  layover irq plan eth0 rss weights 1,1,0,0 -j >plan.json\n";

static const char apply_doc[] =
	"Changes what the policies want for DEVICE ('all': those with interrupts), or what a saved plan says. Old "
	"values are on disk before the first change, each change is read back, and when one is refused all "
	"are restored.\v";
static const char apply_examples[] = "\nExamples:\n"
				     "  layover irq apply eth0 spread\n"
				     "  layover irq apply --plan plan.json --for 10m\n";

/* The policies' own table is their help. */
static const char *with_policies(const char *doc, const char *examples)
{
	static char text[4096];
	char words[64];
	int n = snprintf(text, sizeof(text), "%sPolicies (several may follow each other):\n", doc);

	for (const struct policy *p = policies; p->name && n < (int)sizeof(text); p++) {
		snprintf(words, sizeof(words), "%s %s", p->name, p->argument ? p->argument : "");
		n += snprintf(text + n, sizeof(text) - (size_t)n, "  %-22s %s\n", words, p->doc);
	}
	if (n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, "%s", examples);
	return text;
}

/* --- plan ---------------------------------------------------------------------------------------- */

/* words[0] is the device or "all". */
static int plan_words(struct machine *machine, const char *const *words, int count,
		      const struct change_options *o, struct plan *plan)
{
	bool all = !strcmp(words[0], "all");
	int planned = 0, rc = machine_read(machine, words, all ? 0 : 1);

	for (int i = 0; i < machine->device_count && !rc; i++) {
		if (all && !machine->devices[i].irq_count)
			continue;
		planned++;
		rc = policies_plan(machine, &machine->devices[i], words + 1, count - 1, &o->policy,
				   plan);
	}
	if (!rc && !planned)
		rc = err_set(-ENODEV, "there is no network device with interrupts of its own here");
	return rc;
}

static int options_check(const struct change_options *o, int words)
{
	if (o->numa && strcmp(o->numa, "local") != 0)
		return err_set(-EINVAL, "--numa: only 'local' can follow, not '%s'", o->numa);
	if (o->for_ns > (uint64_t)DAY_S * NS_PER_S)
		return err_set(-EINVAL, "--for: at most a day");
	if (o->interval_ns > (uint64_t)DAY_S * NS_PER_S)
		return err_set(-EINVAL, "--interval: at most a day");
	if (!words == !o->plan_file)
		return err_set(-EINVAL, o->plan_file
						? "--plan says it all: no DEVICE goes with it"
						: "name a DEVICE ('all': those with interrupts)");
	return 0;
}

static int exit_code(int rc)
{
	switch (-rc) {
	case 0:
		return EXIT_OK;
	case EINVAL:
		return EXIT_USAGE;
	case EACCES:
	case EPERM:
		return EXIT_CANNOT;
	default:
		return EXIT_FAILED;
	}
}

int irq_give_up(int rc)
{
	return say_error(exit_code(rc), "%s", err_text(rc));
}

/* How plan and apply are called. */
struct usage {
	const struct settings *parts;
	const char *words, *doc;
};

/* From the command line to the machine and what shall be changed on it. 0 or -errno with a sentence. */
static int read_wish(const struct usage *usage, int argc, char **argv, struct change_options *o,
		     struct machine *machine, struct plan *plan)
{
	const char *words[WORDS_MAX];
	int count = settings_parse_words(usage->parts, usage->words, usage->doc, words, WORDS_MAX,
					 argc, argv);
	int rc = options_check(o, count);

	o->policy.local = o->numa != NULL;
	if (rc)
		return rc;
	if (!o->plan_file)
		return plan_words(machine, words, count, o, plan);
	rc = plan_load(o->plan_file, plan);
	return rc ? rc : machine_read(machine, NULL, 0);
}

int irq_plan(int argc, char **argv)
{
	struct change_options o = {.policy.step = 1};
	const struct settings parts[] = {{policy_settings, &o}, {NULL, NULL}};
	const struct usage usage = {parts, "DEVICE POLICY...",
				    with_policies(plan_doc, plan_examples)};
	struct machine machine = {0};
	struct plan plan = {0};
	int rc = read_wish(&usage, argc, argv, &o, &machine, &plan);

	if (!rc)
		rc = view_plan(&plan, o.json);
	plan_free(&plan);
	machine_free(&machine);
	return rc ? irq_give_up(rc) : EXIT_OK;
}

/* --- what is refused before anything is changed -------------------------------------------------- */

static bool moves_irqs(const struct plan *plan)
{
	for (int i = 0; i < plan->n; i++)
		if (plan->rows[i].new && !strcmp(plan->rows[i].ref.knob->name, "irq"))
			return true;
	return false;
}

static int check_control(const struct machine *machine, const struct plan *plan)
{
	for (int i = 0; i < plan->n; i++) {
		const struct device *d = machine_device(machine, plan->rows[i].ref.device);

		if (d && d->control)
			return err_set(
				-EBUSY,
				"%s may carry your connection to this machine (%s): if the change "
				"goes wrong you lose it; --yes does it, best with --for",
				d->name, machine->control_why);
	}
	return 0;
}

static int check_irqbalance(const struct machine *machine)
{
	if (!machine->irqbalance)
		return 0;
	return err_set(
		-EBUSY,
		"irqbalance (process %d) would move the interrupts again within seconds: stop it or "
		"ban them there (irqbalance --banirq), then use --despite-irqbalance",
		(int)machine->irqbalance);
}

/* An apply that was killed must be undone first: its old values are the right ones. */
static int check_journals(void)
{
	int numbers[JOURNALS_MAX], n = journal_list(numbers), rc = n < 0 ? n : 0;

	for (int i = 0; i < n && !rc; i++) {
		struct journal j;

		rc = journal_read(numbers[i], &j);
		if (!rc && j.old_boot)
			rc = err_set(-EBUSY, "there is a journal of an earlier boot; 'layover irq "
					     "undo' clears it away");
		else if (!rc && !j.complete)
			rc = err_set(-EBUSY,
				     "an earlier apply did not come to its end; 'layover irq "
				     "undo' restores what it changed");
		journal_close(&j);
	}
	return rc;
}

int irq_guard(const struct machine *machine, const struct plan *plan, bool yes,
	      bool despite_irqbalance)
{
	int rc = check_journals();

	if (!rc && !yes)
		rc = check_control(machine, plan);
	if (!rc && !despite_irqbalance && moves_irqs(plan))
		rc = check_irqbalance(machine);
	return rc ? rc : plan_is_current(plan);
}

/* --- apply --------------------------------------------------------------------------------------- */

/* Ctrl-C and a lost terminal must not stop it halfway: they are looked at between steps. */
static void stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

int irq_restore(const struct plan *plan, struct journal *journal, struct restoration *out)
{
	int rc = apply_restore(plan, out);

	if (!rc && !out->failed)
		rc = journal_remove(journal);
	else if (!rc)
		rc = err_set(-EIO,
			     "%d settings did not take their old value; 'layover irq undo' tries "
			     "again",
			     out->failed);
	return rc;
}

/* Restores one journal; its rows go to all, or to the terminal. */
static int undo_one(int number, const struct change_options *o, json_t *all)
{
	struct restoration restored = {0};
	struct journal j;
	int rc = journal_read(number, &j);

	if (o->forget) { /* also what cannot be read */
		rc = journal_remove(&j);
	} else if (!rc && j.old_boot) {
		say_note("what was applied before this boot is gone by itself");
		rc = journal_remove(&j);
	} else if (!rc) {
		rc = j.other_netns ? journal_elsewhere() : irq_restore(&j.plan, &j, &restored);
	}
	if (restored.what && !o->json)
		view_restored_text(&j.plan, &restored);
	if (restored.what && o->json) {
		json_t *rows = view_restored_json(&j.plan, &restored);

		json_array_extend(all, rows);
		json_decref(rows);
	}
	restoration_free(&restored);
	journal_close(&j);
	return rc;
}

/* All from the newest to the one with this number: each one's old values are what the one before it made. */
static int undo_to(int number, const struct change_options *o, json_t *all)
{
	int numbers[JOURNALS_MAX], n = journal_list(numbers), rc = n < 0 ? n : 0;

	for (int i = n - 1; i >= 0 && !rc && numbers[i] >= number; i--)
		rc = undo_one(numbers[i], o, all);
	return rc;
}

/* Waits for the time, or a signal; then restores it and what was applied since, unless undo has done so. */
static int restore_later(const struct journal *journal, const struct change_options *o)
{
	const struct change_options quiet = {0};
	struct timespec left = clock_timespec(o->for_ns);
	sigset_t set;
	int lock, rc = 0;

	stop_signals(&set);
	say_note("restoring in %.0f s, or on Ctrl-C", (double)o->for_ns / NS_PER_S);
	sigtimedwait(&set, NULL, &left);
	/* Another layover is done soon: it works for as long as writing takes. */
	for (int tries = 0; (lock = journal_lock()) == -EAGAIN && tries < 100; tries++)
		usleep(100000);
	if (lock < 0)
		return lock;
	if (journal_is_there(journal))
		rc = undo_to(journal->number, &quiet, NULL);
	else
		say_note("it has been undone in the meantime");
	close(lock);
	return rc;
}

static bool was_signalled(void)
{
	sigset_t pending, set;

	stop_signals(&set);
	sigpending(&pending);
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&set, s) == 1 && sigismember(&pending, s) == 1)
			return true;
	return false;
}

/* The changes are begun; when some are refused and shall not be left out, back to what was. */
static int make(struct plan *plan, struct journal *journal, const struct change_options *o)
{
	int failed = apply_make(plan, journal, o->keep_going), rc = 0;
	struct restoration restored = {0};
	bool back = failed < 0 || (failed && !o->keep_going) || was_signalled();

	if (back) {
		rc = irq_restore(plan, journal, &restored);
		if (!rc && restored.what)
			rc = view_applied(plan, &restored, o->json);
		restoration_free(&restored);
		if (!rc)
			rc = err_set(-EIO, failed ? "it was refused, and all is restored"
						  : "it was stopped, and all is restored");
		return rc;
	}
	rc = journal_complete(journal);
	journal_step();
	if (!rc)
		rc = view_applied(plan, NULL, o->json);
	if (!rc && failed)
		rc = err_set(-EIO, "%d change%s refused; the others are made", failed,
			     failed == 1 ? " was" : "s were");
	return rc;
}

static int apply(const struct machine *machine, struct plan *plan, const struct change_options *o)
{
	struct journal journal = {.fd = -1};
	int lock = journal_lock(), rc;
	sigset_t set;

	if (lock < 0)
		return lock;
	rc = irq_guard(machine, plan, o->yes, o->despite_irqbalance);
	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!rc)
		rc = journal_create(plan, &journal);
	if (!rc)
		rc = make(plan, &journal, o);
	close(lock);
	if (!rc && o->for_ns)
		rc = restore_later(&journal, o);
	journal_close(&journal);
	return rc;
}

static int has_changes(const struct plan *plan)
{
	int n = 0;

	for (int i = 0; i < plan->n; i++)
		n += plan->rows[i].new != NULL;
	return n;
}

int irq_apply(int argc, char **argv)
{
	struct change_options o = {.policy.step = 1};
	const struct settings parts[] = {{apply_settings, &o}, {policy_settings, &o}, {NULL, NULL}};
	const struct usage usage = {parts, "DEVICE POLICY...\n--plan FILE",
				    with_policies(apply_doc, apply_examples)};
	struct machine machine = {0};
	struct plan plan = {0};
	int rc = read_wish(&usage, argc, argv, &o, &machine, &plan);

	if (!rc && !has_changes(&plan))
		rc = view_plan(&plan, o.json);
	else if (!rc)
		rc = apply(&machine, &plan, &o);
	plan_free(&plan);
	machine_free(&machine);
	return rc ? irq_give_up(rc) : EXIT_OK;
}

/* --- verify -------------------------------------------------------------------------------------- */

static const struct setting verify_settings[] = {
	{"interval", 'i', "TIME", "count interrupts on wrong CPUs over this time; default 1s",
	 SETTING_TIME, AT(interval_ns), NS_PER_S, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char verify_doc[] =
	"Says of everything that was applied whether it is still so: settings drift when irqbalance, drivers or "
	"people set them.\v"
	"Exit status: 0 when all holds or nothing was applied, 4 when something drifted.\n";

int irq_verify(int argc, char **argv)
{
	struct change_options o = {.interval_ns = NS_PER_S};
	const struct settings parts[] = {{verify_settings, &o}, {NULL, NULL}};
	struct checks checks = {0};
	int rc, drifted;

	settings_parse(parts, NULL, verify_doc, NULL, argc, argv);
	rc = checks_make(&checks, o.interval_ns);
	if (!rc && !checks.n && !o.json)
		puts("Nothing is applied.");
	else if (!rc)
		rc = view_checks(&checks, o.json);
	drifted = checks.drifted;
	checks_free(&checks);
	if (rc)
		return irq_give_up(rc);
	return drifted ? EXIT_LIMIT : EXIT_OK;
}

/* --- undo ---------------------------------------------------------------------------------------- */

static const struct setting undo_settings[] = {
	{"last", 0, NULL, "only the last apply", SETTING_FLAG, AT(last), 0, 0, NULL},
	{"forget", 0, NULL, "restore nothing, only forget what was applied", SETTING_FLAG,
	 AT(forget), 0, 0, NULL},
	{"json", 'j', NULL, "print JSON", SETTING_FLAG, AT(json), 0, 0, NULL},
	{0},
};

static const char undo_doc[] =
	"Restores everything that was applied, the last first; also after an apply that was killed at any moment.\v"
	"Exit status: 0 when all is as it was or its device is gone, 1 when something does not take its old "
	"value; undo can then be tried again.\n";

static int undo(const struct change_options *o)
{
	int numbers[JOURNALS_MAX], lock = journal_lock(), n, rc;
	json_t *all = json_array(), *out;

	if (lock < 0) {
		json_decref(all);
		return lock;
	}
	n = journal_list(numbers);
	rc = n > 0 ? undo_to(o->last ? numbers[n - 1] : 0, o, all) : n;
	if (!n && !o->json)
		puts("Nothing to undo.");
	close(lock);
	if (!o->json) {
		json_decref(all);
		return rc;
	}
	out = view_json_header("irq undo");
	json_object_set_new(out, "changes", all);
	n = view_json_print(out);
	return rc ? rc : n;
}

int irq_undo(int argc, char **argv)
{
	struct change_options o = {0};
	const struct settings parts[] = {{undo_settings, &o}, {NULL, NULL}};
	sigset_t set;
	int rc;

	settings_parse(parts, NULL, undo_doc, NULL, argc, argv);
	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	rc = undo(&o);
	return rc ? irq_give_up(rc) : EXIT_OK;
}
