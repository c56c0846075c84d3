// SPDX-License-Identifier: GPL-2.0-only
/* layover irq show --flows: the flows and readers behind each queue. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "cmd/irq.h"
#include "cmd/watching.h"
#include "load/clock.h"
#include "load/interface.h"

static volatile bool stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = true;
}

static uint64_t own_netns(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : st.st_ino;
}

static void to_sockaddr(const struct flow_record *who, bool remote, struct sockaddr_storage *out)
{
	const uint8_t *bytes = remote ? who->remote : who->local;
	uint16_t port = htons(remote ? who->remote_port : who->local_port);

	memset(out, 0, sizeof(*out));
	out->ss_family = who->family;
	if (who->family == AF_INET) {
		((struct sockaddr_in *)out)->sin_port = port;
		memcpy(&((struct sockaddr_in *)out)->sin_addr, bytes, 4);
	} else {
		((struct sockaddr_in6 *)out)->sin6_port = port;
		memcpy(&((struct sockaddr_in6 *)out)->sin6_addr, bytes, 16);
	}
}

/* A dual-stack socket's peer speaks IPv4: that is what the device hashes. */
static void unmap(struct flow_record *who)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	if (who->family != AF_INET6 || memcmp(who->local, mapped, sizeof(mapped)) != 0)
		return;
	who->family = AF_INET;
	memmove(who->local, who->local + 12, 4);
	memmove(who->remote, who->remote + 12, 4);
}

/* The device by which its packets come: as the kernel keeps it with the socket, else the one with its address. */
static struct device *device_of(const struct machine *machine, const struct flow_record *who,
				const struct sockaddr_storage *local)
{
	char name[INTERFACE_NAME_MAX];

	for (int i = 0; i < machine->device_count; i++)
		if (who->rx_ifindex == (uint32_t)machine->devices[i].ifindex)
			return &machine->devices[i];
	if (who->rx_ifindex)
		return NULL;
	interface_of((const struct sockaddr *)local, name);
	return machine_device(machine, name);
}

/* The queue that the kernel saw, and the one that the device's table says. */
static void find_queues(const struct device *device, const struct flow_record *who,
			const struct rss_flow *flow, struct irq_receiver *out)
{
	struct device with_key = *device;
	struct steering to;
	bool of_kernel;

	/* On veth it is the sender's transmit queue that stands there: nobody has noted the receiver's. */
	out->queue = who->rx_queue == FLOW_NO_QUEUE || !device->irq_count ? -1 : who->rx_queue;
	out->predicted = -1;
	if (out->queue < 0 && device_queues(device, false) == 1)
		out->queue = 0;
	if (!steering_key(&with_key, &of_kernel) && !steering_of(&with_key, flow, false, &to))
		out->predicted = (int)to.queue;
	err_clear();
}

/* 1: the row has it; 0: it comes by another device; -errno with a sentence. */
static int add_row(struct irq_receivers *all, const struct machine *machine,
		   const struct live_flow *flow, const struct receiver *what)
{
	struct flow_record who = flow->who;
	struct rss_flow addresses;
	struct irq_receiver row = {
		.role = flow->role, .pid = who.pid, .port = who.local_port, .what = *what};
	struct irq_receiver *more;

	unmap(&who);
	to_sockaddr(&who, true, &addresses.from);
	to_sockaddr(&who, false, &addresses.to);
	row.device = device_of(machine, &who, &addresses.to);
	if (!row.device) {
		all->elsewhere++;
		return 0;
	}
	find_queues(row.device, &who, &addresses, &row);
	watching_comm(flow, row.comm);
	watching_address(flow, false, row.local);
	watching_address(flow, true, row.remote);
	more = realloc(all->rows, sizeof(*more) * (size_t)(all->n + 1));
	if (!more)
		return err_set(-ENOMEM, "no memory for the flows");
	all->rows = more;
	all->rows[all->n++] = row;
	return 1;
}

static int by_queue(const void *a, const void *b)
{
	const struct irq_receiver *x = a, *y = b;

	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return (x->what.turns < y->what.turns) - (x->what.turns > y->what.turns);
}

static int take_rows(struct irq_receivers *all, const struct machine *machine,
		     const struct live *live, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t here = own_netns();
	int rc = 0;

	for (size_t i = 0; i < live->count && rc >= 0; i++) {
		const struct live_flow *flow = live->flows[i];
		struct receiver what = {0};

		if (!flow->known || flow->who.netns != here)
			continue;
		rc = receiver_of(flow, from_ns, until_ns, &what);
		if (!rc && what.turns)
			rc = add_row(all, machine, flow, &what);
		else if (!rc)
			all->one_way += flow->one_way > 0;
		if (rc <= 0)
			receiver_free(&what);
	}
	if (all->n)
		qsort(all->rows, (size_t)all->n, sizeof(*all->rows), by_queue);
	return rc < 0 ? rc : 0;
}

int irq_flows_open(struct irq_flows_watch *w)
{
	const struct watch_filter every = {0};
	int rc;

	w->watching = calloc(1, sizeof(*w->watching));
	if (!w->watching)
		return err_set(-ENOMEM, "no memory for the flows");
	rc = watching_open(w->watching, &every);
	if (!rc)
		return 0;
	irq_flows_close(w);
	return rc;
}

int irq_flows_gather(struct irq_flows_watch *w, uint64_t ns, const struct machine *machine,
		     struct irq_receivers *out)
{
	uint64_t begun = clock_ns(), end;
	int rc;

	signal(SIGINT, on_stop);
	signal(SIGTERM, on_stop);
	rc = watching_gather(w->watching, ns, &stopped, false);
	end = clock_ns();
	if (!rc) /* taking the hooks off takes time as well: turns go on */
		rc = watching_gather(w->watching, 0, &stopped, true);
	out->seconds = (double)(end - begun) / NS_PER_S;
	return rc ? rc : take_rows(out, machine, &w->watching->live, begun, end);
}

void irq_flows_close(struct irq_flows_watch *w)
{
	if (w->watching)
		watching_close(w->watching);
	free(w->watching);
	w->watching = NULL;
}

void irq_receivers_free(struct irq_receivers *all)
{
	for (int i = 0; i < all->n; i++)
		receiver_free(&all->rows[i].what);
	free(all->rows);
	*all = (struct irq_receivers){0};
}
