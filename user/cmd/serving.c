// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/serving.h"

#include <string.h>

#include "base/error.h"

static void stop(void *arg)
{
	struct serving *s = arg;

	collect_close(s->collect);
	s->collect = NULL;
}

static int start(void *arg, const struct tracer_wish *wish, uint32_t *hooks)
{
	struct probe_wish choice = {
		.proto = wish->proto,
		.hardware = probes_hardware(),
		.with = wish->with,
		.without = wish->without,
	};
	struct serving *s = arg;
	int rc = collect_open(&s->collect, &choice);

	if (rc)
		return rc;
	*hooks = collect_hooks(s->collect);
	collect_set_flow(s->collect, wish->client_port, wish->server_port, wish->bytes);
	rc = collect_attach(s->collect);
	if (rc)
		stop(s);
	return rc;
}

static int attach(void *arg, bool on)
{
	struct serving *s = arg;

	if (on)
		return collect_attach(s->collect);
	collect_detach(s->collect);
	return 0;
}

struct passage {
	records_sink *sink;
	void *to;
	int rc;
};

static void pass_record(void *arg, const struct turn_record *record)
{
	struct passage *passage = arg;

	if (!passage->rc)
		passage->rc = passage->sink(passage->to, record);
}

static int drain(void *arg, records_sink *sink, void *to, struct records_counters *counters)
{
	struct serving *s = arg;
	struct passage passage = {sink, to, 0};
	struct collect_counters counted;
	int rc = collect_drain(s->collect, pass_record, &passage);

	if (rc < 0)
		return err_set(rc, "cannot read the record buffer: %s", strerror(-rc));
	collect_counters(s->collect, &counted);
	*counters = (struct records_counters){counted.dropped, counted.unfinished,
					      counted.recursion_misses};
	return passage.rc;
}

void serving_prepare(struct serving *serving)
{
	*serving = (struct serving){
		.tracer = {.arg = serving,
			   .start = start,
			   .attach = attach,
			   .drain = drain,
			   .stop = stop},
	};
}
