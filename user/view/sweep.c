// SPDX-License-Identifier: GPL-2.0-only
/* One line per size of a sweep. */
#include <math.h>

#include "base/version.h"
#include "load/io.h"
#include "view/text.h"

enum { SIZE = 10, NUMBER = TEXT_NUMBER };

static void print_head(const struct style *style, const struct report *report)
{
	static const char *const names[] = {"min", "p50", "p90", "p99", "max", "mean"};

	printf("layover %s: %s, a sweep of sizes", LAYOVER_VERSION,
	       plan_proto_names[report->run->plan->proto]);
	printf("\n\n%*s", SIZE, "bytes");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%*s", NUMBER, names[i]);
	printf("  %s%s%s\n", text_what(report), report->half ? " " : " in ", style->micro);
}

int view_text_sweep(const struct report *report)
{
	const struct dist *d = &report->rtt;
	struct style style = view_style();

	if (report->sweep == SWEEP_FIRST)
		print_head(&style, report);
	printf("%*llu", SIZE, (unsigned long long)report->run->plan->bytes);
	text_us(d->min, NUMBER);
	text_us(d->p[DIST_P50], NUMBER);
	text_us(d->p[DIST_P90], NUMBER);
	text_us(d->p[DIST_P99], NUMBER);
	text_us(d->max, NUMBER);
	text_us((int64_t)llround(d->mean), NUMBER);
	if (report->split && report->split->band_known[BAND_P50])
		printf("  %.0f %% %s", report->split->top[BAND_P50][0].share * 100,
		       stage_infos[report->split->top[BAND_P50][0].stage].key);
	putchar('\n');
	fflush(stdout);
	return 0;
}
