// SPDX-License-Identifier: GPL-2.0-only
#include "model/trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/overhead.h"
#include "model/sort.h"

/* After one round only what is slower by this factor is given up: one round can be a busy moment of the machine. */
static const double hopeless = 3;
/* After so many, what was slower in all of them and is on the whole by this factor. */
enum { ROUNDS_TO_JUDGE = 3 };
static const double slower = 1.05;
/* So close, the simpler one is as good. */
static const double as_good = 1.03;

enum { BAND_HALF_MIN = 10 };

static int no_memory(void)
{
	return err_set(-ENOMEM, "no memory for the round trips of all combinations");
}

static int keep_times(struct trial *t, const uint64_t *rtt_ns, size_t n)
{
	size_t room = t->room ? t->room : 4096;
	uint64_t *grown;

	while (room < t->count + n)
		room *= 2;
	grown = room > t->room ? realloc(t->rtt_ns, room * sizeof(*grown)) : t->rtt_ns;
	if (!grown)
		return no_memory();
	t->rtt_ns = grown;
	t->room = room;
	memcpy(t->rtt_ns + t->count, rtt_ns, n * sizeof(*rtt_ns));
	t->count += n;
	return 0;
}

int trial_add(struct trial *t, const uint64_t *rtt_ns, size_t n)
{
	struct trial_round *more = realloc(t->rounds, sizeof(*more) * (size_t)(t->round_count + 1));
	uint64_t *copy = malloc(n * sizeof(*copy));
	int rc = -ENOMEM;

	if (more)
		t->rounds = more;
	if (!more || !copy)
		no_memory();
	else
		rc = keep_times(t, rtt_ns, n);
	if (!rc) {
		memcpy(copy, rtt_ns, n * sizeof(*copy));
		overhead_block(copy, n, t->rounds[t->round_count++].figure);
	}
	free(copy);
	return rc;
}

double trial_score(const struct trial *t, enum trial_by by)
{
	size_t n = (size_t)t->round_count;
	double *figures = calloc(n + 1, sizeof(*figures)), score = INFINITY;

	for (size_t i = 0; figures && i < n; i++)
		figures[i] = t->rounds[i].figure[by];
	if (figures && n)
		score = sort_median(figures, n);
	free(figures);
	return score;
}

double trial_ratio(const struct trial *a, const struct trial *to, enum trial_by by)
{
	size_t n = (size_t)(a->round_count < to->round_count ? a->round_count : to->round_count);
	double *ratios = calloc(n + 1, sizeof(*ratios)), ratio = INFINITY;

	for (size_t r = 0; ratios && r < n; r++)
		ratios[r] = a->rounds[r].figure[by] / to->rounds[r].figure[by];
	if (ratios && n)
		ratio = sort_median(ratios, n);
	free(ratios);
	return ratio;
}

int trial_dist(const struct trial *t, struct dist *out)
{
	int64_t *values = malloc((2 * t->count + 1) * sizeof(*values));

	if (!values)
		return no_memory();
	for (size_t i = 0; i < t->count; i++)
		values[i] = (int64_t)t->rtt_ns[i];
	dist_of(values, values + t->count, t->count, out);
	free(values);
	return 0;
}

static int quickest(const struct trial *all, int n, enum trial_by by)
{
	int best = 0;

	for (int i = 1; i < n; i++)
		if (!all[i].out && trial_ratio(&all[i], &all[best], by) < 1)
			best = i;
	return best;
}

static bool always_slower(const struct trial *a, const struct trial *than, enum trial_by by)
{
	for (int r = 0; r < a->round_count && r < than->round_count; r++)
		if (a->rounds[r].figure[by] <= than->rounds[r].figure[by] * slower)
			return false;
	return true;
}

int trials_prune(struct trial *all, int n, enum trial_by by)
{
	const struct trial *best = &all[quickest(all, n, by)];
	int left = 0;

	for (int i = 0; i < n; i++) {
		struct trial *t = &all[i];
		double factor = trial_ratio(t, best, by);

		if (i && t != best &&
		    ((t->round_count && factor > hopeless) ||
		     (t->round_count >= ROUNDS_TO_JUDGE && factor > slower &&
		      always_slower(t, best, by))))
			t->out = true;
		left += !t->out;
	}
	return left;
}

int trials_best(const struct trial *all, int n, enum trial_by by, const int *changes)
{
	int first = quickest(all, n, by), best = first;

	for (int i = 0; i < n; i++)
		if (!all[i].out && trial_ratio(&all[i], &all[first], by) <= as_good &&
		    (changes[i] < changes[best] ||
		     (changes[i] == changes[best] && trial_ratio(&all[i], &all[best], by) < 1)))
			best = i;
	return best;
}

static int by_rtt(const void *a, const void *b, void *rtt_ns)
{
	const uint64_t *rtt = rtt_ns;
	uint64_t x = rtt[*(const size_t *)a], y = rtt[*(const size_t *)b];

	return (x > y) - (x < y);
}

int trial_stages(const struct trips *trips, const uint64_t *rtt_ns, enum trial_by by,
		 double sum[STAGES])
{
	size_t n = trips->count, *order, at = by == TRIAL_P99 ? (n - 1) * 99 / 100 : (n - 1) / 2;
	size_t half = n / 200 > BAND_HALF_MIN ? n / 200 : BAND_HALF_MIN, from, to;

	if (n < 2 * BAND_HALF_MIN)
		return err_set(-ENODATA, "the hooks have seen too few trips");
	order = malloc(n * sizeof(*order));
	if (!order)
		return no_memory();
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_rtt, (void *)rtt_ns);
	from = at > half ? at - half : 0;
	to = at + half < n ? at + half : n - 1;
	for (size_t i = from; i <= to; i++)
		for (int s = 0; s < STAGES; s++)
			sum[s] += (double)trips_stage(trips, order[i], s) / (double)(to - from + 1);
	free(order);
	return 0;
}

void trial_free(struct trial *t)
{
	free(t->rtt_ns);
	free(t->rounds);
	*t = (struct trial){0};
}
