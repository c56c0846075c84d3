// SPDX-License-Identifier: GPL-2.0-only
#include "view/irq_tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load/plan.h"
#include "view/text.h"
#include "view/view.h"

enum { SHADES = 5, LABEL = 40, COLUMNS = 2, CELL = 8, STAGES_SHOWN = 4, LINE = 79 };
enum { STAGE_WORTH_PERCENT = 5 };

/* --- progress ------------------------------------------------------------------------------------ */

void view_tune_progress(const char *what, int left, int all, double seconds_left)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s: %d of %d combinations, %.0f s left", what, left, all,
		seconds_left);
	fflush(stderr);
}

void view_tune_progress_done(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* --- the matrix ---------------------------------------------------------------------------------- */

static bool was_measured(const struct tune_report *r, int c)
{
	return r->trials[c].round_count > 0;
}

/* The percentile, also where its tail is too thin for an interval: the median of the rounds' then. */
static double figure_of(const struct tune_report *r, int c, enum trial_by by)
{
	int64_t p = r->dists[c].p[by == TRIAL_P99 ? DIST_P99 : DIST_P50];

	return p != DIST_NONE ? (double)p : trial_score(&r->trials[c], by);
}

struct range {
	double low, high; /* ns */
};

static struct range range_of(const struct tune_report *r, enum trial_by by)
{
	struct range range = {INFINITY, 0};

	for (int c = 0; c < r->axes->combinations; c++) {
		double ns = was_measured(r, c) ? figure_of(r, c, by) : NAN;

		range.low = ns < range.low ? ns : range.low;
		range.high = ns > range.high ? ns : range.high;
	}
	return range;
}

/* 0 the quickest … SHADES - 1, by ratio. */
static int shade_of(double ns, const struct range *range)
{
	double width = log(range->high / range->low);
	int shade = width > 0 ? (int)(log(ns / range->low) / width * SHADES) : 0;

	return shade < SHADES ? shade : SHADES - 1;
}

static void print_cell(const struct tune_report *r, int c, enum trial_by by,
		       const struct range *range, const struct style *style)
{
	static const char *const blocks[] = {" ", "░", "▒", "▓", "█"};
	static const char *const signs[] = {" ", ".", ":", "+", "#"};
	static const int colours[] = {34, 112, 220, 208, 196};
	int shade;

	if (!was_measured(r, c)) {
		printf("%*s", CELL + 1, "-");
		return;
	}
	shade = shade_of(figure_of(r, c, by), range);
	if (style->colour)
		printf("\033[38;5;%dm", colours[shade]);
	printf("%s", style->utf8 ? blocks[shade] : signs[shade]);
	text_us((int64_t)figure_of(r, c, by), CELL);
	if (style->colour)
		printf("\033[0m");
}

/* The axis that is laid out in columns: the reader's CPU, which is not the device's, else the last. */
static int column_axis(const struct axes *axes)
{
	for (int a = 0; a < axes->n; a++)
		if (axes->rows[a].kind == AXIS_READER)
			return a;
	return axes->n - 1;
}

static void print_row(const struct tune_report *r, int c, int axis, int from, int step,
		      const struct range *ranges, const struct style *style)
{
	const struct axes *axes = r->axes;
	char label[AXES_MAX * AXIS_LABEL];

	axes_say(axes, c, axis, label, sizeof(label));
	printf("%-*.*s", LABEL, LABEL, label);
	for (int v = from; v < from + COLUMNS && v < axes->rows[axis].n; v++) {
		int at = c + v * step;

		print_cell(r, at, TRIAL_P50, &ranges[TRIAL_P50], style);
		print_cell(r, at, TRIAL_P99, &ranges[TRIAL_P99], style);
		putchar(at == r->best && at ? '*' : at == 0 ? '=' : r->trials[at].out ? '-' : ' ');
	}
	putchar('\n');
}

static void print_matrix(const struct tune_report *r, const struct style *style)
{
	const struct range ranges[TRIAL_FIGURES] = {range_of(r, TRIAL_P50), range_of(r, TRIAL_P99)};
	const struct axes *axes = r->axes;
	int axis = column_axis(axes), step = 1;
	char head[32];

	for (int a = axis + 1; a < axes->n; a++)
		step *= axes->rows[a].n;
	for (int from = 0; from < axes->rows[axis].n; from += COLUMNS) {
		snprintf(head, sizeof(head), "\np50 and p99, %s",
			 style->utf8 ? style->micro : "us");
		printf("%s%*s", head, LABEL + 1 - (int)strlen(head) + (style->utf8 ? 1 : 0), "");
		for (int v = from; v < from + COLUMNS && v < axes->rows[axis].n; v++)
			printf("%*.18s ", 2 * (CELL + 1), axes->rows[axis].values[v].label);
		putchar('\n');
		for (int c = 0; c < axes->combinations; c++)
			if (!axes_value(axes, c, axis))
				print_row(r, c, axis, from, step, ranges, style);
	}
	printf("= as it is now  * the best  - given up early, or refused\n");
}

/* --- the rest of the text ------------------------------------------------------------------------ */

static int count_out(const struct tune_report *r, bool refused)
{
	int n = 0;

	for (int c = 0; c < r->axes->combinations; c++)
		n += r->trials[c].out && (r->refused[c] != NULL) == refused;
	return n;
}

static void print_refusals(const struct tune_report *r)
{
	const char *last = NULL;

	for (int c = 0; c < r->axes->combinations; c++) {
		char text[600], name[AXES_MAX * AXIS_LABEL];

		if (!r->refused[c] || (last && !strcmp(last, r->refused[c])))
			continue;
		last = r->refused[c];
		axes_say(r->axes, c, -1, name, sizeof(name));
		snprintf(text, sizeof(text), "not measured: %.200s: %.300s", name, last);
		text_wrapped(text, 0, 2);
	}
}

static void print_gain(const char *name, const struct overhead_figure *f, size_t pairs,
		       const struct style *style)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%s: %.1f %s %.1f %s: %.1f %s less (%.0f %%), 95 %% interval %.1f to %.1f, of %zu "
		 "pairs measured afresh",
		 name, f->on_ns / 1000, style->arrow, f->off_ns / 1000, style->micro,
		 f->difference_ns / 1000, style->micro, 100 * f->difference_ns / f->on_ns,
		 f->low_ns / 1000, f->high_ns / 1000, pairs);
	text_wrapped(text, 0, 2);
}

static void print_stages(const struct tune_report *r, const struct style *style)
{
	double all = 0;
	char text[256];

	for (int i = 0; i < r->stage_count; i++)
		all += r->stages[i].now_ns - r->stages[i].best_ns;
	for (int i = 0; i < r->stage_count && i < STAGES_SHOWN; i++) {
		const struct tune_stage *s = &r->stages[i];
		double gain = s->now_ns - s->best_ns;

		if (gain * 100 < all * STAGE_WORTH_PERCENT)
			break;
		snprintf(text, sizeof(text), "  gained in %s: %.1f %s %.1f %s",
			 stage_infos[s->stage].key, s->now_ns / 1000, style->arrow,
			 s->best_ns / 1000, style->micro);
		puts(text);
	}
	if (r->no_stages[0]) {
		snprintf(text, sizeof(text), "no stages: %.200s", r->no_stages);
		text_wrapped(text, 2, 2);
	}
}

/* What a person would type for the best; what is the application's to do. */
static void print_commands(const struct tune_report *r)
{
	const struct axes *axes = r->axes;
	bool any = false;

	for (int a = 0; a < axes->n; a++) {
		int v = axes_value(axes, r->best, a);
		const struct axis_value *value = &axes->rows[a].values[v];

		if (!v)
			continue;
		any = true;
		if (axes->rows[a].kind == AXIS_SETTING)
			printf("    layover irq apply %s %s\n", r->device, value->command);
		else if (axes->rows[a].kind == AXIS_READER)
			printf("    taskset -c %d READER      (the application's)\n",
			       value->number);
		else
			printf("    SO_BUSY_POLL %d           (the application's, or busy-poll for "
			       "all)\n",
			       value->number);
	}
	if (any)
		puts(r->applied ? "The device's settings are applied; 'layover irq undo' restores "
				  "what was before."
				: "Everything is restored.");
}

static void print_verdict(const struct tune_report *r, const struct style *style)
{
	const char *by = r->by == TRIAL_P99 ? "p99" : "p50";
	char name[AXES_MAX * AXIS_LABEL], text[AXES_MAX * AXIS_LABEL + 200];

	if (!r->matters) {
		const struct overhead_figure *f = r->by == TRIAL_P99 ? &r->gain.p99 : &r->gain.p50;

		if (r->stopped)
			snprintf(text, sizeof(text),
				 "Stopped: nothing is proven. Everything is restored.");
		else if (!r->best)
			snprintf(text, sizeof(text),
				 "Nothing matters: no combination has a lower %s than it is now. "
				 "Everything is restored.",
				 by);
		else
			snprintf(text, sizeof(text),
				 "Nothing matters: what looked best has no lower %s when measured "
				 "afresh, beyond noise and 2 %% (difference %.1f %s, 95 %% "
				 "interval %.1f to %.1f, of %zu pairs). Everything is restored.",
				 by, f->difference_ns / 1000, style->micro, f->low_ns / 1000,
				 f->high_ns / 1000, r->gain.pairs);
		putchar('\n');
		text_wrapped(text, 0, 0);
		return;
	}
	axes_say(r->axes, r->best, -1, name, sizeof(name));
	snprintf(text, sizeof(text), "Best by %s: %s", by, name);
	putchar('\n');
	text_wrapped(text, 0, 2);
	print_gain("p50", &r->gain.p50, r->gain.pairs, style);
	print_gain("p99", &r->gain.p99, r->gain.pairs, style);
	print_stages(r, style);
	print_commands(r);
}

int view_tune_text(const struct tune_report *r)
{
	struct style style = view_style();
	const struct axes *axes = r->axes;

	printf("%s, %llu bytes, to %.30s by %s%s%s%s\n", r->plan->proto == PLAN_UDP ? "UDP" : "TCP",
	       (unsigned long long)r->plan->bytes, r->target, r->device, *r->driver ? " (" : "",
	       r->driver, *r->driver ? ")" : "");
	printf("%d combinations, %d rounds, %.0f s; %d given up early, %d refused\n",
	       axes->combinations, r->rounds, (double)r->took_ns / 1e9, count_out(r, false),
	       count_out(r, true));
	if (!r->rounds) {
		puts("Stopped before the first round was over. Everything is restored.");
		return 0;
	}
	print_matrix(r, &style);
	print_refusals(r);
	print_verdict(r, &style);
	return 0;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static json_t *ns_or_null(int64_t ns)
{
	return ns == DIST_NONE ? json_null() : json_integer(ns);
}

static json_t *axes_array(const struct axes *axes)
{
	json_t *out = json_array();

	for (int a = 0; a < axes->n; a++) {
		const struct axis *axis = &axes->rows[a];
		json_t *values = json_array();

		for (int v = 0; v < axis->n; v++)
			json_array_append_new(values, json_pack("{s:s, s:s?}", "label",
								axis->values[v].label, "policy",
								*axis->values[v].command
									? axis->values[v].command
									: NULL));
		json_array_append_new(
			out, json_pack("{s:s, s:o}", "axis", axis->name, "values", values));
	}
	return out;
}

static void set_percentile(json_t *out, const char *name, const struct dist *d, int p)
{
	char key[24];

	snprintf(key, sizeof(key), "%s_ns", name);
	json_object_set_new(out, key, ns_or_null(d->p[p]));
	snprintf(key, sizeof(key), "%s_low_ns", name);
	json_object_set_new(out, key, ns_or_null(d->interval[p].low));
	snprintf(key, sizeof(key), "%s_high_ns", name);
	json_object_set_new(out, key, ns_or_null(d->interval[p].high));
}

static json_t *combination_object(const struct tune_report *r, int c)
{
	const struct trial *t = &r->trials[c];
	json_t *values = json_object(), *rounds = json_array(), *out;

	for (int a = 0; a < r->axes->n; a++)
		json_object_set_new(
			values, r->axes->rows[a].name,
			json_string(r->axes->rows[a].values[axes_value(r->axes, c, a)].label));
	for (int i = 0; i < t->round_count; i++)
		json_array_append_new(
			rounds, json_pack("{s:I, s:I}", "p50_ns",
					  (json_int_t)t->rounds[i].figure[TRIAL_P50], "p99_ns",
					  (json_int_t)t->rounds[i].figure[TRIAL_P99]));
	out = json_pack("{s:o, s:b, s:s?, s:I, s:o}", "values", values, "given_up",
			t->out && !r->refused[c], "refused", r->refused[c], "trips",
			(json_int_t)t->count, "rounds", rounds);
	set_percentile(out, "p50", &r->dists[c], DIST_P50);
	set_percentile(out, "p99", &r->dists[c], DIST_P99);
	return out;
}

static json_t *figure_object(const struct overhead_figure *f)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "now_ns", (json_int_t)f->on_ns, "best_ns",
			 (json_int_t)f->off_ns, "gain_ns", (json_int_t)f->difference_ns, "low_ns",
			 (json_int_t)f->low_ns, "high_ns", (json_int_t)f->high_ns);
}

static json_t *stages_array(const struct tune_report *r)
{
	json_t *out = json_array();

	for (int i = 0; i < r->stage_count; i++) {
		const struct tune_stage *s = &r->stages[i];

		json_array_append_new(out, json_pack("{s:s, s:I, s:I, s:I}", "key",
						     stage_infos[s->stage].key, "now_ns",
						     (json_int_t)s->now_ns, "best_ns",
						     (json_int_t)s->best_ns, "gain_ns",
						     (json_int_t)(s->now_ns - s->best_ns)));
	}
	return out;
}

int view_tune_json(const struct tune_report *r)
{
	json_t *out = view_json_header("irq tune"), *all = json_array(), *gain = json_null();

	for (int c = 0; c < r->axes->combinations; c++)
		json_array_append_new(all, combination_object(r, c));
	if (r->gain.pairs)
		gain = json_pack("{s:I, s:o, s:o}", "pairs", (json_int_t)r->gain.pairs, "p50",
				 figure_object(&r->gain.p50), "p99", figure_object(&r->gain.p99));
	json_object_set_new(out, "target", json_string(r->target));
	json_object_set_new(out, "device", json_string(r->device));
	json_object_set_new(out, "by", json_string(r->by == TRIAL_P99 ? "p99" : "p50"));
	json_object_set_new(out, "took_ns", json_integer((json_int_t)r->took_ns));
	json_object_set_new(out, "rounds", json_integer(r->rounds));
	json_object_set_new(out, "stopped", json_boolean(r->stopped));
	json_object_set_new(out, "axes", axes_array(r->axes));
	json_object_set_new(out, "combinations", all);
	json_object_set_new(out, "best", r->rounds ? json_integer(r->best) : json_null());
	json_object_set_new(out, "matters", json_boolean(r->matters));
	json_object_set_new(out, "gain", gain);
	json_object_set_new(out, "stages", stages_array(r));
	json_object_set_new(out, "no_stages",
			    r->no_stages[0] ? json_string(r->no_stages) : json_null());
	json_object_set_new(out, "applied", json_boolean(r->applied));
	return view_json_print(out);
}
