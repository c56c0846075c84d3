// SPDX-License-Identifier: GPL-2.0-only
#include "view/formats.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "view/view.h"

const struct view_format view_formats[] = {
	{.name = "text",
	 .print = view_text,
	 .print_sweep = view_text_sweep,
	 .shows_hist = true,
	 .shows_interim = true},
	{.name = "json", .print = view_json, .print_sweep = view_json, .shows_hist = true},
	{.name = "csv", .print = view_csv, .print_sweep = view_csv_sweep},
	{.name = "sockperf", .print = view_sockperf},
	{.name = "latte-csv", .print = view_latte_csv},
	{.name = "netperf-kv", .print = view_netperf_kv, .whole_only = true},
	{.name = "netperf-csv", .print = view_netperf_csv, .whole_only = true},
	{.name = "hgrm", .print = view_hgrm},
	{.name = NULL},
};

_Static_assert(sizeof(view_formats) / sizeof(view_formats[0]) <= VIEW_FORMATS_MAX + 1,
	       "VIEW_FORMATS_MAX is too small");

const struct view_format *view_format_by_name(const char *name)
{
	for (const struct view_format *f = view_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

static int cannot_write(const char *path)
{
	return err_set(-errno, "cannot write %s: %s", path, strerror(errno));
}

int view_file(const struct report *report, const char *path,
	      void (*write)(FILE *file, const struct report *report))
{
	char part[PATH_MAX];
	FILE *file;
	bool failed;

	snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "w");
	if (!file)
		return cannot_write(path);
	write(file, report);
	failed = ferror(file) || fflush(file);
	if (fclose(file) || failed || rename(part, path)) {
		int rc = cannot_write(path);

		unlink(part);
		return rc;
	}
	return 0;
}
