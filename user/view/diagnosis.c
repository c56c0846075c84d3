// SPDX-License-Identifier: GPL-2.0-only
#include "view/diagnosis.h"

#include <stdio.h>

#include "view/names.h"
#include "view/text.h"

enum { FACT = 14 };

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static const char *end_name(bool client_end, const struct flow_names *names)
{
	return client_end ? names->client : names->server;
}

static void print_clusters(const struct diagnosis *d, const struct style *style)
{
	printf("  %-6s %8s %10s %10s %10s  %s\n", "turns", "count", "shortest", "typical",
	       "longest", "typical message");
	for (int i = 0; i < d->cluster_count; i++) {
		const struct cluster *c = &d->clusters[i];

		printf("  %-6s %8zu %10.1f %10.1f %10.1f  %u B in %u write%s, %u B back\n",
		       c->median_ns >= SLOW_NS ? "slow" : "fast", c->count, us(c->low_ns),
		       us(c->median_ns), us(c->high_ns), c->sent, c->writes,
		       c->writes == 1 ? "" : "s", c->received);
	}
	printf("  times in %s\n", style->micro);
}

static void print_moments(const struct diagnosis *d, const struct flow_names *names,
			  const struct style *style)
{
	printf("\n  One slow turn, in %s from its start:\n", style->micro);
	for (int i = 0; i < d->moment_count; i++)
		printf("  %10.1f  %-20s %s\n", us(d->moments[i].at_ns),
		       end_name(d->moments[i].client_end, names), d->moments[i].what);
}

static void print_fact(const char *label, const char *text)
{
	text_wrapped(text, printf("    %-9s ", label), FACT);
}

static void print_hog(const struct verdict *v)
{
	char text[160], comm[NAMES_COMM_MAX];

	if (!v->hog_pid)
		return;
	snprintf(text, sizeof(text), "%s[%u], which had the CPU in %zu of these turns",
		 names_task(v->hog_comm, comm), v->hog_pid, v->hog_turns);
	print_fact("behind", text);
}

static void print_verdict(const struct verdict *v, const struct flow_names *names)
{
	const struct cause_info *info = &cause_infos[v->cause];
	char change[256];

	printf("\n  %s (%s): %zu turns, typically %.1f ms, %.0f %% of the slow time\n", info->key,
	       grade_names[v->grade], v->turns, (double)v->wait_ns / 1e6, v->saving * 100);
	print_fact("what", info->text);
	print_fact("evidence", v->evidence);
	print_hog(v);
	snprintf(change, sizeof(change), "%s: %s", end_name(v->client_end, names), info->remedy);
	print_fact("change", change);
}

static void print_placement(const struct placement *p, const struct flow_names *names)
{
	const struct placement_info *info = &placement_infos[p->kind];
	char where[128];

	printf("\n  %s (placement): %zu turns, %.0f %% of their time\n", info->key, p->turns,
	       p->time * 100);
	snprintf(where, sizeof(where), "%s, from CPU %u to CPU %u", end_name(p->client_end, names),
		 p->from, p->to);
	print_fact("where", where);
	print_fact("what", info->text);
	print_fact("change", info->advice);
}

void view_diagnosis_text(const struct live_flow *flow, const struct diagnosis *d,
			 const struct flow_names *names)
{
	struct style style = view_style();
	char title[320];

	snprintf(title, sizeof(title), "%s %s %s %s %s%s", names->client, names->client_addr,
		 style.arrow, names->server, names->server_addr,
		 flow->role == ROLE_SERVER ? " (the server's end only)" : "");
	text_wrapped(title, 0, 4);
	if (!flow->turn_count)
		printf("  no turns: %llu messages without an answer\n",
		       (unsigned long long)flow->one_way);
	else
		print_clusters(d, &style);
	if (d->moment_count)
		print_moments(d, names, &style);
	for (int i = 0; i < d->verdict_count; i++)
		print_verdict(&d->verdicts[i], names);
	if (flow->turn_count && !d->verdict_count)
		printf("  healthy: no cause of waiting was found%s\n",
		       d->slow ? "; single slow turns are chance" : "");
	for (int i = 0; i < d->placement_count; i++)
		print_placement(&d->placements[i], names);
	putchar('\n');
}

static json_t *placement_object(const struct placement *p, const struct flow_names *names)
{
	const struct placement_info *info = &placement_infos[p->kind];

	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:f, s:s, s:s}", "key", info->key, "end",
			 p->client_end ? "client" : "server", "program",
			 end_name(p->client_end, names), "cpu_from", p->from, "cpu_to", p->to,
			 "turns", (json_int_t)p->turns, "time", p->time, "text", info->text,
			 "advice", info->advice);
}

static json_t *cluster_object(const struct cluster *c)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:i}", "speed",
			 c->median_ns >= SLOW_NS ? "slow" : "fast", "count", (json_int_t)c->count,
			 "min_ns", (json_int_t)c->low_ns, "p50_ns", (json_int_t)c->median_ns,
			 "max_ns", (json_int_t)c->high_ns, "sent_bytes", (int)c->sent,
			 "received_bytes", (int)c->received, "writes", (int)c->writes);
}

static json_t *verdict_object(const struct verdict *v, const struct flow_names *names)
{
	const struct cause_info *info = &cause_infos[v->cause];
	char comm[NAMES_COMM_MAX];
	json_t *behind =
		v->hog_pid
			? json_pack("{s:s, s:I, s:I}", "comm", names_task(v->hog_comm, comm), "pid",
				    (json_int_t)v->hog_pid, "turns", (json_int_t)v->hog_turns)
			: json_null();

	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:s, s:s, s:s, s:s, s:s, s:o}", "cause",
			 info->key, "grade", grade_names[v->grade], "turns", (json_int_t)v->turns,
			 "wait_p50_ns", (json_int_t)v->wait_ns, "saving", v->saving, "end",
			 v->client_end ? "client" : "server", "program",
			 end_name(v->client_end, names), "text", info->text, "evidence",
			 v->evidence, "remedy", info->remedy, "behind", behind);
}

json_t *view_diagnosis_json(const struct live_flow *flow, const struct diagnosis *d,
			    const struct flow_names *names)
{
	json_t *clusters = json_array(), *causes = json_array(), *timeline = json_array(),
	       *placement = json_array();

	for (int i = 0; i < d->cluster_count; i++)
		json_array_append_new(clusters, cluster_object(&d->clusters[i]));
	for (int i = 0; i < d->verdict_count; i++)
		json_array_append_new(causes, verdict_object(&d->verdicts[i], names));
	for (int i = 0; i < d->moment_count; i++)
		json_array_append_new(timeline,
				      json_pack("{s:I, s:s, s:s}", "at_ns",
						(json_int_t)d->moments[i].at_ns, "end",
						d->moments[i].client_end ? "client" : "server",
						"what", d->moments[i].what));
	for (int i = 0; i < d->placement_count; i++)
		json_array_append_new(placement, placement_object(&d->placements[i], names));
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "client",
			 names->client, "server", names->server, "client_addr", names->client_addr,
			 "server_addr", names->server_addr, "both_ends", flow->peer != NULL,
			 "turns", (json_int_t)flow->turn_count, "one_way",
			 (json_int_t)flow->one_way, "healthy", d->verdict_count == 0, "clusters",
			 clusters, "causes", causes, "timeline", timeline, "placement", placement);
}
