// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every format, of samples that never change, against files of tests/unit/golden. After a change that is meant,
 * LAYOVER_GOLDEN=write build/unit/test_views writes them anew; then read what changed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/version.h"
#include "load/clock.h"
#include "load/io.h"
#include "view/formats.h"
#include "view/view.h"

enum { MANY = 20000, FEW = 40, TEXT_MAX = 1 << 20 };

struct fixture {
	struct load_plan plan;
	struct run run;
	struct report report;
	struct batches batches;
	struct bins bins;
	int64_t *values;
};

static void fill_os(struct os_cost *os)
{
	static const double rates[OS_SCOPES][OS_FIGURES] = {{48.125, 16583.4, NAN, NAN},
							    {52.25, 36000.6, NAN, 8123.2}};
	static const double per_trip[OS_SCOPES][OS_FIGURES] = {{29019.6, 1.0004, NAN, NAN},
							       {63014.2, 2.1711, NAN, 0.4899}};

	os->cpus = 2;
	memcpy(os->rate, rates, sizeof(rates));
	memcpy(os->per_trip, per_trip, sizeof(per_trip));
}

/* 20 to 60 us, and every 1000th trip a slow one. */
static void fill_samples(struct fixture *f, size_t n)
{
	struct samples *s = &f->run.samples;

	assert_int_equal(samples_reserve(s, n), 0);
	for (size_t i = 0; i < n; i++) {
		s->start_ns[i] = 5000000000 + i * 60000;
		s->rtt_ns[i] = 20000 + i * 7919 % 40009;
		if (i % 1000 == 999)
			s->rtt_ns[i] = 300000 + 1000 * i;
	}
	s->count = n;
	s->lost = 3;
	s->late = 2;
	s->duplicated = 1;
	s->out_of_order = 1;
}

static void open_fixture(struct fixture *f, size_t n, bool half)
{
	struct report *r = &f->report;

	*f = (struct fixture){0};
	plan_default(&f->plan);
	f->plan.client_cpu = 0;
	f->run.plan = &f->plan;
	f->run.duration_ns = n * 60000;
	f->run.warmup_trips = 1000;
	f->run.warmup_ns = 50 * NS_PER_MS;
	fill_samples(f, n);
	f->values = malloc(2 * n * sizeof(*f->values));
	assert_non_null(f->values);
	r->run = &f->run;
	r->half = half;
	r->trips_per_s = 16666.667;
	for (size_t i = 0; i < n; i++) {
		f->values[i] = report_value(f->run.samples.rtt_ns[i], half);
		batches_add(&f->batches, f->values[i]);
	}
	dist_of(f->values, f->values + n, n, &r->rtt);
	r->values = (struct ordered){.sorted = f->values, .count = n};
	r->mean = batches_interval(&f->batches);
	fill_os(&r->os);
}

static void close_fixture(struct fixture *f)
{
	hist_free(&f->report.hist);
	bins_free(&f->bins);
	samples_free(&f->run.samples);
	free(f->values);
}

/* --- comparing ------------------------------------------------------------------------------------ */

static void read_all(FILE *file, char *text)
{
	size_t n = fread(text, 1, TEXT_MAX - 1, file);

	assert_true(n < TEXT_MAX - 1);
	text[n] = '\0';
}

/* What differs from machine to machine, and from release to release. */
static void mask(char *text, const char *word, const char *with)
{
	char *copy = strdup(text), *from = copy, *at;

	assert_non_null(copy);
	*text = '\0';
	while ((at = strstr(from, word))) {
		strncat(text, from, (size_t)(at - from));
		strncat(text, with, TEXT_MAX - strlen(text) - 1);
		from = at + strlen(word);
	}
	strncat(text, from, TEXT_MAX - strlen(text) - 1);
	free(copy);
}

static void mask_machine(char *text)
{
	struct utsname host;
	char word[128];

	uname(&host);
	snprintf(word, sizeof(word), "\"host\": \"%s\"", host.nodename);
	mask(text, word, "\"host\": \"HOST\"");
	snprintf(word, sizeof(word), "\"kernel\": \"%s\"", host.release);
	mask(text, word, "\"kernel\": \"KERNEL\"");
	snprintf(word, sizeof(word), "\"version\": \"%s\"", LAYOVER_VERSION);
	mask(text, word, "\"version\": \"VERSION\"");
	mask(text, "layover " LAYOVER_VERSION ":", "layover VERSION:");
}

static void compare_with_golden(char *text, const char *name)
{
	const char *update = getenv("LAYOVER_GOLDEN");
	char *golden = malloc(TEXT_MAX), path[128];
	bool write = update && !strcmp(update, "write");
	FILE *file;

	assert_non_null(golden);
	mask_machine(text);
	snprintf(path, sizeof(path), "tests/unit/golden/%s", name);
	file = fopen(path, write ? "w" : "r");
	if (!file)
		fail_msg("%s: run from the top of the tree", path);
	if (write)
		fputs(text, file);
	else {
		read_all(file, golden);
		assert_string_equal(text, golden);
	}
	fclose(file);
	free(golden);
}

/* What a view prints on standard output. */
static void expect(int (*view)(const struct report *report), const struct report *report,
		   const char *name)
{
	FILE *file = tmpfile();
	char *text = malloc(TEXT_MAX);
	int saved = dup(STDOUT_FILENO);

	assert_true(file && text && saved >= 0);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	assert_int_equal(view(report), 0);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	read_all(file, text);
	fclose(file);
	compare_with_golden(text, name);
	free(text);
}

static void expect_file(int (*view)(const struct report *report, const char *path),
			const struct report *report, const char *name)
{
	char path[] = "/tmp/layover-golden-XXXXXX", *text = malloc(TEXT_MAX);
	int fd = mkstemp(path);
	FILE *file;

	assert_true(fd >= 0 && text);
	close(fd);
	assert_int_equal(view(report, path), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	read_all(file, text);
	fclose(file);
	unlink(path);
	compare_with_golden(text, name);
	free(text);
}

/* --- tests --------------------------------------------------------------------------------------- */

static void every_format(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, MANY, false);
	for (const struct view_format *v = view_formats; v->name; v++)
		expect(v->print, &f.report, v->name);
	close_fixture(&f);
}

static void every_format_of_few_samples(void **state)
{
	struct fixture f;
	char name[64];

	(void)state;
	open_fixture(&f, FEW, false);
	f.plan.proto = PLAN_UDP;
	f.plan.bytes = 20;
	f.plan.reply_bytes = 1448;
	f.plan.io = IO_URING_POLL;
	f.plan.sndbuf = 16384;
	f.report.lab = true;
	for (const struct view_format *v = view_formats; v->name; v++) {
		snprintf(name, sizeof(name), "%s-few", v->name);
		expect(v->print, &f.report, name);
	}
	expect_file(view_full_log, &f.report, "full-log");
	expect_file(view_dump, &f.report, "dump");
	close_fixture(&f);
}

static void half_round_trips_say_so(void **state)
{
	struct fixture f;
	char name[64];

	(void)state;
	open_fixture(&f, FEW, true);
	for (const struct view_format *v = view_formats; v->name; v++) {
		if (v->whole_only)
			continue;
		snprintf(name, sizeof(name), "%s-half", v->name);
		expect(v->print, &f.report, name);
	}
	expect_file(view_full_log, &f.report, "full-log-half");
	expect_file(view_dump, &f.report, "dump-half");
	close_fixture(&f);
}

/* Open loop: sent late, so that the response took longer than the service. */
static void response_and_service(void **state)
{
	struct fixture f;
	struct samples *s = &f.run.samples;
	int64_t service[2 * FEW];

	(void)state;
	open_fixture(&f, FEW, false);
	s->service_ns = calloc(s->capacity, sizeof(*s->service_ns));
	assert_non_null(s->service_ns);
	for (size_t i = 0; i < FEW; i++) {
		s->service_ns[i] = s->rtt_ns[i] - 5000;
		service[i] = (int64_t)s->service_ns[i];
	}
	dist_of(service, service + FEW, FEW, &f.report.service);
	expect(view_text, &f.report, "text-service");
	expect(view_json, &f.report, "json-service");
	expect_file(view_dump, &f.report, "dump-service");
	free(s->service_ns);
	s->service_ns = NULL;
	close_fixture(&f);
}

static void histogram_and_until_ci(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, MANY, false);
	f.report.hist = (struct hist){.start_us = 25, .length_us = 5, .buckets = 20};
	assert_int_equal(hist_of(&f.report.values, &f.report.hist), 0);
	f.report.until_ci.percent = 1;
	f.report.until_ci.reached = true;
	expect(view_text, &f.report, "text-hist");
	expect(view_json, &f.report, "json-hist");
	close_fixture(&f);
}

/* The same samples in bins: the same figures but for 0.1 %. */
static void bins_instead_of_samples(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, MANY, false);
	assert_int_equal(bins_open(&f.bins), 0);
	for (size_t i = 0; i < MANY; i++)
		bins_add(&f.bins, f.values[i]);
	f.report.binned = true;
	f.report.values = (struct ordered){.bins = &f.bins, .count = MANY};
	dist_of_bins(&f.bins, &f.report.rtt);
	expect(view_text, &f.report, "text-binned");
	expect(view_hgrm, &f.report, "hgrm-binned");
	close_fixture(&f);
}

/* Scripts skip 20 lines and read the fourth column. */
static void full_log_has_20_lines_first(void **state)
{
	FILE *file = fopen("tests/unit/golden/full-log", "r");
	char line[512];

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < 20; i++)
		assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, "------------------------------\n");
	assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, "packet, txTime(sec), rxTime(sec), rtt(usec)\n");
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format),
		cmocka_unit_test(every_format_of_few_samples),
		cmocka_unit_test(half_round_trips_say_so),
		cmocka_unit_test(response_and_service),
		cmocka_unit_test(histogram_and_until_ci),
		cmocka_unit_test(bins_instead_of_samples),
		cmocka_unit_test(full_log_has_20_lines_first),
	};

	setenv("LC_ALL", "C", 1);
	return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
