// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/watching.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/error.h"
#include "load/address.h"
#include "load/clock.h"
#include "view/names.h"

/* The record buffer holds more than what several CPUs' fastest flows fill in this time. */
#define DRAIN_NS (50ULL * NS_PER_MS)

#define AT(field) offsetof(struct watch_filter, field)

const struct setting watch_filter_settings[] = {
	{.doc = "Which flows:"},
	{"port", 'p', "PORT", "from or to this port", SETTING_COUNT, AT(port), 1, 65535, NULL},
	{"pid", 0, "PID", "of this process", SETTING_COUNT, AT(pid), 1, INT32_MAX, NULL},
	{"comm", 0, "NAME", "of programs of this name", SETTING_TEXT, AT(comm), 0, 0, NULL},
	{"cgroup", 0, "PATH", "of programs in this cgroup (v2) or below it", SETTING_TEXT,
	 AT(cgroup), 0, 0, NULL},
	{"addr", 0, "ADDR", "from or to this address", SETTING_TEXT, AT(addr), 0, 0, NULL},
	{"netns", 0, "INODE", "in this network namespace ('lsns -t net' shows its number)",
	 SETTING_COUNT, AT(netns), 1, UINT32_MAX, NULL},
	{0},
};

static int find_cgroups(struct watch_filter *f)
{
	char path[PATH_MAX];
	int rc = cgroup_find(f->cgroup, path, sizeof(path));

	return rc ? rc : cgroup_ids(path, &f->cgroups, &f->cgroup_count);
}

int watch_filter_finish(struct watch_filter *f)
{
	int rc = f->cgroup ? find_cgroups(f) : 0;

	if (rc || !f->addr)
		return rc;
	if (inet_pton(AF_INET, f->addr, f->addr_bytes) == 1)
		f->addr_family = AF_INET;
	else if (inet_pton(AF_INET6, f->addr, f->addr_bytes) == 1)
		f->addr_family = AF_INET6;
	else
		return err_set(-EINVAL, "--addr: '%s' is not an IPv4 or IPv6 address", f->addr);
	return 0;
}

static bool address_fits(const struct watch_filter *f, const struct flow_record *who)
{
	return who->family == f->addr_family &&
	       (!memcmp(who->local, f->addr_bytes, 16) || !memcmp(who->remote, f->addr_bytes, 16));
}

static bool cgroup_fits(const struct watch_filter *f, const struct flow_record *who)
{
	for (size_t i = 0; i < f->cgroup_count; i++)
		if (f->cgroups[i] == who->cgroup)
			return true;
	return !f->cgroup;
}

bool watch_filter_fits_end(const struct watch_filter *f, const struct flow_record *who, bool known)
{
	if (!known)
		return !f->pid && !f->comm && !f->addr_family && !f->netns && !f->cgroup;
	return (!f->pid || who->pid == f->pid) && (!f->netns || who->netns == f->netns) &&
	       (!f->comm || !strncmp(who->comm, f->comm, FLOW_COMM - 1)) &&
	       (!f->addr_family || address_fits(f, who)) && cgroup_fits(f, who);
}

bool watch_filter_fits(const struct watch_filter *f, const struct live_flow *flow)
{
	return watch_filter_fits_end(f, &flow->who, flow->known) ||
	       (flow->peer && watch_filter_fits_end(f, &flow->peer->who, flow->peer->known));
}

static void take_turn(void *arg, const struct turn_record *record)
{
	struct watching *w = arg;

	if (!w->rc && record->socket)
		w->rc = live_add_turn(&w->live, record);
}

static void take_flow(void *arg, const struct flow_record *record)
{
	struct watching *w = arg;

	if (!w->rc)
		w->rc = live_add_flow(&w->live, record);
}

static void take_stall(void *arg, const struct stall_record *record)
{
	struct watching *w = arg;

	if (!w->rc)
		w->rc = live_add_stall(&w->live, record);
}

static void take_hog(void *arg, const struct hog_record *record)
{
	struct watching *w = arg;

	if (!w->rc)
		w->rc = live_add_hog(&w->live, record);
}

int watching_open(struct watching *w, const struct watch_filter *filter)
{
	const struct probe_wish wish = {
		.proto = IPPROTO_TCP, .hardware = probes_hardware(), .stalls = true};
	const struct watch_sinks sinks = {take_flow, take_stall, take_hog, w};
	int rc = collect_open(&w->collect, &wish);

	if (rc)
		return rc;
	w->live.flows_max = WATCHING_FLOWS_MAX;
	w->live.hooks = collect_hooks(w->collect);
	w->delack_seen = collect_watch(w->collect, (uint16_t)filter->port, &sinks);
	return collect_attach(w->collect);
}

void watching_close(struct watching *w)
{
	collect_close(w->collect);
	w->collect = NULL;
	live_free(&w->live);
}

static int drain(struct watching *w)
{
	int rc = collect_drain(w->collect, take_turn, w);

	if (rc < 0)
		return err_set(rc, "cannot read the record buffer: %s", strerror(-rc));
	return w->rc;
}

int watching_gather(struct watching *w, uint64_t ns, const volatile bool *stop, bool final)
{
	uint64_t end = clock_ns() + ns;
	int rc = 0;

	while (!rc && clock_ns() < end && !*stop) {
		uint64_t left = end - clock_ns();
		struct timespec nap = clock_timespec(left < DRAIN_NS ? left : DRAIN_NS);

		nanosleep(&nap, NULL);
		rc = drain(w);
	}
	if (!rc && final) {
		collect_detach(w->collect);
		rc = drain(w);
	}
	return rc ? rc : live_join(&w->live, final);
}

const char *watching_address(const struct live_flow *flow, bool remote, char *text)
{
	const struct flow_record *who = &flow->who;
	uint16_t client = (uint16_t)(flow->ports >> 16), server = (uint16_t)flow->ports;

	return address_format_bytes(flow->known ? who->family : AF_UNSPEC,
				    remote ? who->remote : who->local, who->bound_ifindex,
				    remote == (flow->role == ROLE_CLIENT) ? server : client, text);
}

const char *watching_comm(const struct live_flow *flow, char *text)
{
	return names_comm(flow->known ? &flow->who : &(struct flow_record){0}, text);
}
