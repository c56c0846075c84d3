// SPDX-License-Identifier: GPL-2.0-only
#include "view/irq_changes.h"

#include <stdio.h>
#include <string.h>

#include "view/view.h"

enum { LINE = 79 };

/* --- text ---------------------------------------------------------------------------------------- */

/* Cut to the terminal's width; values can be long, the JSON has them whole. */
static void print_line(const char *text)
{
	if (strlen(text) > LINE)
		printf("%.*s..\n", LINE - 2, text);
	else
		puts(text);
}

static void print_change(const char *head, const struct change *c, const struct style *style)
{
	char name[KNOB_NAME], old[KNOB_NAME], new[KNOB_NAME], line[4 * KNOB_NAME];

	knob_say(&c->ref, name);
	knob_say_value(&c->ref, c->old, old);
	knob_say_value(&c->ref, c->new, new);
	snprintf(line, sizeof(line), "%s%s: %s %s %s", head, name, old,
		 style->utf8 ? style->arrow : "->", new);
	/* The arrow's three bytes are one column. */
	printf("%.*s\n", LINE + (style->utf8 ? 2 : 0), line);
}

static int wanted(const struct plan *plan)
{
	int n = 0;

	for (int i = 0; i < plan->n; i++)
		n += plan->rows[i].new != NULL;
	return n;
}

static void plan_text(const struct plan *plan)
{
	struct style style = view_style();
	int changes = wanted(plan);

	for (int i = 0; i < plan->n; i++) {
		const struct change *c = &plan->rows[i];
		char command[KNOB_NAME], line[2 * KNOB_NAME];

		if (!c->new)
			continue;
		print_change("", c, &style);
		snprintf(line, sizeof(line), "    why: %s", c->why);
		print_line(line);
		knob_command(&c->ref, c->new, command);
		snprintf(line, sizeof(line), "    %s", command);
		puts(line); /* whole: it is there to be copied */
	}
	if (!changes) {
		puts("Nothing to change: it is so already.");
		return;
	}
	if (plan->n > changes)
		printf("The driver sets %d others anew with that; undo restores them as well.\n",
		       plan->n - changes);
	printf("%d change%s. Nothing has been changed: 'layover irq apply' with the same\n"
	       "words does it.\n",
	       changes, changes == 1 ? "" : "s");
}

static const char *refusal(const struct change *c)
{
	return c->error ? knob_refusal(&c->ref, c->error)
			: "it was taken, but reads as another value";
}

static void applied_text(const struct plan *plan, const struct restoration *restored)
{
	static const char *const heads[] = {[CHANGE_PLANNED] = "not begun ",
					    [CHANGE_BEGUN] = "begun     ",
					    [CHANGE_DONE] = "done      ",
					    [CHANGE_FAILED] = "refused   "};
	struct style style = view_style();

	for (int i = 0; i < plan->n; i++) {
		const struct change *c = &plan->rows[i];
		char line[2 * KNOB_NAME];

		if (!c->new)
			continue;
		print_change(restored && c->state == CHANGE_DONE ? "restored  " : heads[c->state],
			     c, &style);
		if (c->state != CHANGE_FAILED)
			continue;
		snprintf(line, sizeof(line), "          %s", refusal(c));
		print_line(line);
	}
}

static void checks_text(const struct checks *checks)
{
	for (int i = 0; i < checks->n; i++) {
		const struct check *c = &checks->rows[i];
		const struct setting_ref *ref = &c->change->ref;
		char name[KNOB_NAME], new[KNOB_NAME], now[KNOB_NAME], line[4 * KNOB_NAME];

		knob_say(ref, name);
		knob_say_value(ref, c->change->new, new);
		if (c->now)
			knob_say_value(ref, c->now, now);
		if (!c->drifted)
			snprintf(line, sizeof(line), "holds    %s: %s", name, new);
		else if (c->stray)
			snprintf(line, sizeof(line), "drifted  %s: %s, but %llu came elsewhere",
				 name, new, (unsigned long long)c->stray);
		else
			snprintf(line, sizeof(line), "drifted  %s: was set to %s, %s%s", name, new,
				 c->now ? "is " : "", c->now ? now : knob_refusal(ref, c->error));
		print_line(line);
	}
}

void view_restored_text(const struct plan *plan, const struct restoration *restored)
{
	for (int i = 0; i < plan->n; i++) {
		const struct setting_ref *ref = &plan->rows[i].ref;
		char name[KNOB_NAME], old[KNOB_NAME], line[3 * KNOB_NAME];

		knob_say(ref, name);
		knob_say_value(ref, plan->rows[i].old, old);
		if (restored->what[i] == RESTORED_NOW)
			snprintf(line, sizeof(line), "restored  %s: %s", name, old);
		else if (restored->what[i] == RESTORED_GONE)
			snprintf(line, sizeof(line), "gone      %s: the device is not there", name);
		else if (restored->what[i] == RESTORED_FAILED)
			snprintf(line, sizeof(line), "FAILED    %s: %s: %s", name, old,
				 restored->errors[i] ? knob_refusal(ref, restored->errors[i])
						     : "it was taken, but reads differently");
		else
			continue;
		print_line(line);
	}
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static int plan_json(const struct plan *plan)
{
	json_t *out = view_json_header("irq plan"), *rows = json_array();

	for (int i = 0; i < plan->n; i++) {
		json_t *row = change_to_json(&plan->rows[i]);
		char command[KNOB_NAME];

		if (plan->rows[i].new) {
			knob_command(&plan->rows[i].ref, plan->rows[i].new, command);
			json_object_set_new(row, "command", json_string(command));
		}
		json_array_append_new(rows, row);
	}
	json_object_set_new(out, "changes", rows);
	return view_json_print(out);
}

static const char *const restored_words[] = {[RESTORED_NOT] = "not begun",
					     [RESTORED_ALREADY] = "already",
					     [RESTORED_NOW] = "restored",
					     [RESTORED_GONE] = "gone",
					     [RESTORED_FAILED] = "failed"};

static int applied_json(const struct plan *plan, const struct restoration *restored)
{
	static const char *const words[] = {[CHANGE_PLANNED] = "not begun",
					    [CHANGE_BEGUN] = "begun",
					    [CHANGE_DONE] = "done",
					    [CHANGE_FAILED] = "refused"};
	json_t *out = view_json_header("irq apply"), *rows = json_array();

	for (int i = 0; i < plan->n; i++) {
		const struct change *c = &plan->rows[i];
		json_t *row = change_to_json(c);

		json_object_set_new(row, "state", json_string(c->new ? words[c->state] : "kept"));
		if (c->state == CHANGE_FAILED)
			json_object_set_new(row, "reason", json_string(refusal(c)));
		if (restored)
			json_object_set_new(row, "restored",
					    json_string(restored_words[restored->what[i]]));
		json_array_append_new(rows, row);
	}
	json_object_set_new(out, "rolled_back", json_boolean(restored != NULL));
	json_object_set_new(out, "changes", rows);
	return view_json_print(out);
}

static int checks_json(const struct checks *checks)
{
	json_t *out = view_json_header("irq verify"), *rows = json_array();

	for (int i = 0; i < checks->n; i++) {
		const struct check *c = &checks->rows[i];
		json_t *row = change_to_json(c->change);

		json_object_set_new(row, "now", c->now ? json_string(c->now) : json_null());
		json_object_set_new(row, "drifted", json_boolean(c->drifted));
		json_object_set_new(row, "stray_interrupts", json_integer((json_int_t)c->stray));
		json_array_append_new(rows, row);
	}
	json_object_set_new(out, "drifted", json_integer(checks->drifted));
	json_object_set_new(out, "changes", rows);
	return view_json_print(out);
}

json_t *view_restored_json(const struct plan *plan, const struct restoration *restored)
{
	json_t *rows = json_array();

	for (int i = 0; i < plan->n; i++) {
		json_t *row = change_to_json(&plan->rows[i]);

		json_object_set_new(row, "restored",
				    json_string(restored_words[restored->what[i]]));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* --- either -------------------------------------------------------------------------------------- */

int view_plan(const struct plan *plan, bool json)
{
	if (json)
		return plan_json(plan);
	plan_text(plan);
	return 0;
}

int view_applied(const struct plan *plan, const struct restoration *restored, bool json)
{
	if (json)
		return applied_json(plan, restored);
	applied_text(plan, restored);
	return 0;
}

int view_checks(const struct checks *checks, bool json)
{
	if (json)
		return checks_json(checks);
	checks_text(checks);
	return 0;
}
