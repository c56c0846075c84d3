// SPDX-License-Identifier: GPL-2.0-only
#include "tune/devices.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/error.h"
#include "tune/control.h"
#include "tune/tree.h"

enum { STACKED_MAX = 4 }; /* devices on top of each other */

static int no_memory(void)
{
	return err_set(-ENOMEM, "no memory for the list of devices");
}

/* --- names --------------------------------------------------------------------------------------- */

/*
 * How drivers name the interrupts of queues: the word before the queue's number. From the drivers' sources (7.2)
 * and /proc/interrupts of machines that have them. Longer words first where one ends like another.
 */
static const struct {
	const char *before;
	int serves;
} name_patterns[] = {
	{"-input.", IRQ_RX},                /* virtio_net */
	{"-output.", IRQ_TX},               /* virtio_net */
	{"-TxRx-", IRQ_RX | IRQ_TX},        /* igb, igc, ixgbe, i40e, ice, iavf, hns3, bnxt */
	{"-Tx-Rx-", IRQ_RX | IRQ_TX},       /* ena */
	{"-rxtx-", IRQ_RX | IRQ_TX},        /* vmxnet3, octeontx2, nfp */
	{"-rx-", IRQ_RX},                   /* igb, igc, ixgbe, bnxt */
	{"-tx-", IRQ_TX},                   /* the same */
	{"-fp-", IRQ_RX | IRQ_TX},          /* bnx2x, qede */
	{"mlx5_comp", IRQ_RX | IRQ_TX},     /* mlx5 */
	{"mlx4-", IRQ_RX | IRQ_TX},         /* mlx4 */
	{"mana_q", IRQ_RX | IRQ_TX},        /* mana */
	{"-vmbus-channel", IRQ_RX | IRQ_TX} /* netvsc */
};

void device_irq_by_name(const char *name, int *serves, int *queue)
{
	*serves = 0;
	*queue = -1;
	for (size_t i = 0; i < sizeof(name_patterns) / sizeof(name_patterns[0]); i++) {
		const char *at = strstr(name, name_patterns[i].before);

		if (!at)
			continue;
		at += strlen(name_patterns[i].before);
		if (!isdigit((unsigned char)*at))
			continue;
		*serves = name_patterns[i].serves;
		*queue = (int)strtol(at, NULL, 10);
		return;
	}
}

/* --- interrupts ---------------------------------------------------------------------------------- */

static char *read_copy(const char *folder, int irq, const char *file)
{
	char text[TREE_TEXT];

	tree_read(text, "%s/%d/%s", folder, irq, file);
	return strdup(text);
}

static int add_irq(struct device *d, const struct machine *machine, int irq, const char *mode)
{
	const struct interrupt *row = interrupts_find(&machine->interrupts, irq);
	struct device_irq *more, *new;
	long long node = -1;

	more = realloc(d->irqs, sizeof(*more) * (size_t)(d->irq_count + 1));
	if (!more)
		return no_memory();
	d->irqs = more;
	new = &d->irqs[d->irq_count++];
	*new = (struct device_irq){.irq = irq};
	snprintf(new->mode, sizeof(new->mode), "%s", mode);
	new->name = strdup(row ? row->name : "");
	new->chip = strdup(row ? row->chip : "");
	new->affinity = read_copy("/proc/irq", irq, "smp_affinity_list");
	new->effective = read_copy("/proc/irq", irq, "effective_affinity_list");
	tree_number(&node, "/proc/irq/%d/node", irq);
	new->node = (int)node;
	if (!new->name || !new->chip || !new->affinity || !new->effective)
		return no_memory();
	device_irq_by_name(new->name, &new->serves, &new->queue);
	return 0;
}

/* The folder of a device's interrupts; of a virtio device's it is its parent's. */
static DIR *open_msi(const char *device)
{
	DIR *dir = tree_folder("/sys/class/net/%s/device/msi_irqs", device);

	return dir ? dir : tree_folder("/sys/class/net/%s/device/../msi_irqs", device);
}

static int read_msi(struct device *d, const struct machine *machine)
{
	DIR *dir = open_msi(d->name);
	struct dirent *entry;
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir))) {
		char mode[TREE_TEXT] = "";

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (tree_read(mode, "/sys/class/net/%s/device/msi_irqs/%s", d->name, entry->d_name))
			tree_read(mode, "/sys/class/net/%s/device/../msi_irqs/%s", d->name,
				  entry->d_name);
		rc = add_irq(d, machine, (int)strtol(entry->d_name, NULL, 10), mode);
	}
	if (dir)
		closedir(dir);
	return rc;
}

static bool has_irq(const struct device *d, int irq)
{
	for (int i = 0; i < d->irq_count; i++)
		if (d->irqs[i].irq == irq)
			return true;
	return false;
}

/* "eth0", "eth0-rx", "virtio2", but not "eth01": name is one word of a row's names. */
static bool is_named_after(const char *names, const char *word)
{
	const char *at = word[0] ? strstr(names, word) : NULL;

	return at && (at == names || at[-1] == ' ') && !isalnum((unsigned char)at[strlen(word)]);
}

/* Without message-signalled interrupts: those whose name begins with the interface's or the device's. */
static int read_named(struct device *d, const struct machine *machine)
{
	char bus[TREE_TEXT] = "";
	int rc = 0;

	tree_link(bus, "/sys/class/net/%s/device", d->name);
	for (int i = 0; i < machine->interrupts.n && !rc; i++) {
		const struct interrupt *row = &machine->interrupts.rows[i];

		if (row->irq >= 0 && !has_irq(d, row->irq) &&
		    (is_named_after(row->name, d->name) || is_named_after(row->name, bus)))
			rc = add_irq(d, machine, row->irq, "");
	}
	return rc;
}

static int by_number(const void *a, const void *b)
{
	return ((const struct device_irq *)a)->irq - ((const struct device_irq *)b)->irq;
}

/* Messages without a row were set aside for the device, but nobody asked for them. */
static void drop_unused(struct device *d)
{
	int kept = 0;

	for (int i = 0; i < d->irq_count; i++) {
		struct device_irq *irq = &d->irqs[i];

		if (irq->name[0]) {
			d->irqs[kept++] = *irq;
			continue;
		}
		free(irq->name);
		free(irq->chip);
		free(irq->affinity);
		free(irq->effective);
	}
	d->irq_count = kept;
}

static int read_irqs(struct device *d, const struct machine *machine)
{
	int rc = read_msi(d, machine);

	drop_unused(d);
	if (!rc && !d->irq_count)
		rc = read_named(d, machine);
	if (d->irq_count)
		qsort(d->irqs, (size_t)d->irq_count, sizeof(*d->irqs), by_number);
	return rc;
}

/* --- queues -------------------------------------------------------------------------------------- */

static char *queue_file(const struct device *d, const char *folder, const char *file)
{
	char text[TREE_TEXT];

	/* A queue without the feature has the file, but reading it fails (xps_cpus of single queues). */
	return tree_read(text, "/sys/class/net/%s/queues/%s/%s", d->name, folder, file)
		       ? NULL
		       : strdup(text);
}

static int add_queue(struct device *d, const char *folder)
{
	struct device_queue *more, *new;

	more = realloc(d->queues, sizeof(*more) * (size_t)(d->queue_count + 1));
	if (!more)
		return no_memory();
	d->queues = more;
	new = &d->queues[d->queue_count++];
	*new = (struct device_queue){.tx = folder[0] == 't',
				     .index = (unsigned int)strtoul(folder + 3, NULL, 10),
				     .irq = -1};
	if (new->tx) {
		new->xps_cpus = queue_file(d, folder, "xps_cpus");
		new->xps_rxqs = queue_file(d, folder, "xps_rxqs");
	} else {
		new->rps_cpus = queue_file(d, folder, "rps_cpus");
		new->rps_flow_cnt = queue_file(d, folder, "rps_flow_cnt");
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct device_queue *x = a, *y = b;

	if (x->tx != y->tx)
		return x->tx - y->tx;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int read_queues(struct device *d)
{
	DIR *dir = tree_folder("/sys/class/net/%s/queues", d->name);
	struct dirent *entry;
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "rx-", 3) || !strncmp(entry->d_name, "tx-", 3))
			rc = add_queue(d, entry->d_name);
	if (dir)
		closedir(dir);
	if (d->queue_count)
		qsort(d->queues, (size_t)d->queue_count, sizeof(*d->queues), by_index);
	return rc;
}

/* --- which interrupt is whose -------------------------------------------------------------------- */

/* First what the kernel says: queue -> NAPI -> interrupt. */
static void join_by_netdev(struct device *d)
{
	for (int i = 0; i < d->netdev.queue_count; i++) {
		const struct netdev_queue *told = &d->netdev.queues[i];
		struct device_queue *queue = device_queue(d, told->tx, told->index);
		const struct netdev_napi *napi = netdev_find_napi(&d->netdev, told->napi);

		if (!queue)
			continue;
		queue->napi = told->napi;
		if (napi)
			queue->irq = napi->irq;
	}
	for (int i = 0; i < d->irq_count; i++)
		for (int n = 0; n < d->netdev.napi_count; n++)
			if (d->netdev.napis[n].irq == d->irqs[i].irq)
				d->irqs[i].napi = d->netdev.napis[n].id;
}

/* Then what the names say, for the queues left; an interrupt whose queue has a NAPI has that one. */
static void join_by_name(struct device *d)
{
	for (int i = 0; i < d->irq_count; i++) {
		struct device_irq *irq = &d->irqs[i];

		for (int tx = 0; tx < 2; tx++) {
			struct device_queue *queue =
				irq->queue >= 0 && (irq->serves & (tx ? IRQ_TX : IRQ_RX))
					? device_queue(d, tx, (unsigned int)irq->queue)
					: NULL;

			if (queue && queue->irq < 0)
				queue->irq = irq->irq;
			if (queue && queue->irq == irq->irq && !irq->napi)
				irq->napi = queue->napi;
		}
	}
	for (int q = 0; q < d->queue_count; q++)
		for (int i = 0; i < d->irq_count; i++)
			if (d->queues[q].irq == d->irqs[i].irq)
				d->irqs[i].serves |= d->queues[q].tx ? IRQ_TX : IRQ_RX;
}

/* --- devices ------------------------------------------------------------------------------------- */

static void read_driver(struct device *d)
{
	struct ethtool_drvinfo info;
	char text[TREE_TEXT];

	if (!tree_link(text, "/sys/class/net/%s/device/driver", d->name))
		snprintf(d->driver, sizeof(d->driver), "%.31s", text);
	if (!tree_link(text, "/sys/class/net/%s/device", d->name))
		snprintf(d->bus, sizeof(d->bus), "%.31s", text);
	if (ethtool_driver(d->name, &info))
		return;
	snprintf(d->driver, sizeof(d->driver), "%.31s", info.driver);
	if (info.bus_info[0])
		snprintf(d->bus, sizeof(d->bus), "%.31s", info.bus_info);
}

/* A bond, bridge or VLAN carries nothing without the devices below it. */
static bool is_below(const char *upper, const char *name, int depth)
{
	DIR *dir = depth ? tree_folder("/sys/class/net/%s", upper) : NULL;
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "lower_", 6))
			found = !strcmp(entry->d_name + 6, name) ||
				is_below(entry->d_name + 6, name, depth - 1);
	if (dir)
		closedir(dir);
	return found;
}

static int read_device(struct machine *machine, struct device *d)
{
	long long index = 0, node = -1;
	int rc;

	tree_number(&index, "/sys/class/net/%s/ifindex", d->name);
	tree_number(&node, "/sys/class/net/%s/device/numa_node", d->name);
	d->ifindex = (int)index;
	d->node = (int)node;
	d->control = machine->control[0] && (!strcmp(d->name, machine->control) ||
					     is_below(machine->control, d->name, STACKED_MAX));
	d->threaded = d->gro_flush_timeout_ns = d->defer_hard_irqs = -1;
	tree_number(&d->threaded, "/sys/class/net/%s/threaded", d->name);
	tree_number(&d->gro_flush_timeout_ns, "/sys/class/net/%s/gro_flush_timeout", d->name);
	tree_number(&d->defer_hard_irqs, "/sys/class/net/%s/napi_defer_hard_irqs", d->name);
	read_driver(d);
	d->channels_rc = ethtool_get(&channel_group, d->name, &d->channels);
	d->coalesce_rc = ethtool_get(&coalesce_group, d->name, &d->coalesce);
	d->rss_rc = ethtool_rss(d->name, &d->rss);
	if (!d->rss_rc && !d->rss.size)
		d->rss_rc = -EOPNOTSUPP;
	d->netdev_rc = tree_is_made_up() ? -ENOENT : netdev_read(d->ifindex, &d->netdev);
	rc = read_irqs(d, machine);
	if (!rc)
		rc = read_queues(d);
	join_by_netdev(d);
	join_by_name(d);
	return rc;
}

static int add_device(struct machine *machine, const char *name)
{
	struct device *more;

	/* A name becomes a part of paths. */
	if (!*name || strlen(name) >= IFNAMSIZ || strchr(name, '/') || name[0] == '.' ||
	    !tree_exists("/sys/class/net/%s", name))
		return err_set(-ENODEV, "there is no network device '%s' here", name);
	if (machine_device(machine, name))
		return 0;
	more = realloc(machine->devices, sizeof(*more) * (size_t)(machine->device_count + 1));
	if (!more)
		return no_memory();
	machine->devices = more;
	memset(&more[machine->device_count], 0, sizeof(*more));
	snprintf(more[machine->device_count].name, IFNAMSIZ, "%s", name);
	machine->device_count++;
	return read_device(machine, &more[machine->device_count - 1]);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->name, ((const struct device *)b)->name);
}

static int add_all_devices(struct machine *machine)
{
	DIR *dir = tree_folder("/sys/class/net");
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return err_set(-errno, "cannot read /sys/class/net: %s; is /sys mounted?",
			       strerror(errno));
	while (!rc && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lo") ||
		    !tree_exists("/sys/class/net/%s/queues", entry->d_name))
			continue;
		rc = add_device(machine, entry->d_name);
		if (rc == -ENODEV) /* it went away in between */
			rc = 0;
	}
	closedir(dir);
	if (machine->device_count)
		qsort(machine->devices, (size_t)machine->device_count, sizeof(*machine->devices),
		      by_name);
	return rc;
}

static void read_cpus(const char *file, cpu_set_t *set)
{
	char text[TREE_TEXT];

	CPU_ZERO(set);
	if (!tree_read(text, "/sys/devices/system/cpu/%s", file) &&
	    cpulist_parse(file, text, set)) { /* nohz_full is "(null)" without the option */
		CPU_ZERO(set);
		err_clear();
	}
}

static pid_t find_process(const char *comm)
{
	DIR *dir = tree_folder("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		char text[TREE_TEXT];

		if (isdigit((unsigned char)entry->d_name[0]) &&
		    !tree_read(text, "/proc/%s/comm", entry->d_name) && !strcmp(text, comm))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return found;
}

int machine_read(struct machine *machine, const char *const *names, int count)
{
	int rc;

	memset(machine, 0, sizeof(*machine));
	read_cpus("online", &machine->online);
	read_cpus("isolated", &machine->isolated);
	read_cpus("nohz_full", &machine->nohz_full);
	machine->irqbalance = find_process("irqbalance");
	machine->control_why = control_device(machine->control);
	rc = interrupts_read("/proc/interrupts", &machine->interrupts);
	for (int i = 0; i < count && !rc; i++)
		rc = add_device(machine, names[i]);
	if (!rc && !count)
		rc = add_all_devices(machine);
	return rc;
}

static void free_device(struct device *d)
{
	for (int i = 0; i < d->irq_count; i++) {
		free(d->irqs[i].name);
		free(d->irqs[i].chip);
		free(d->irqs[i].affinity);
		free(d->irqs[i].effective);
	}
	for (int i = 0; i < d->queue_count; i++) {
		free(d->queues[i].rps_cpus);
		free(d->queues[i].rps_flow_cnt);
		free(d->queues[i].xps_cpus);
		free(d->queues[i].xps_rxqs);
	}
	free(d->irqs);
	free(d->queues);
	netdev_free(&d->netdev);
}

void machine_free(struct machine *machine)
{
	for (int i = 0; i < machine->device_count; i++)
		free_device(&machine->devices[i]);
	free(machine->devices);
	interrupts_free(&machine->interrupts);
	memset(machine, 0, sizeof(*machine));
}

struct device *machine_device(const struct machine *machine, const char *name)
{
	for (int i = 0; i < machine->device_count; i++)
		if (!strcmp(machine->devices[i].name, name))
			return &machine->devices[i];
	return NULL;
}

int device_queues(const struct device *d, bool tx)
{
	int n = 0;

	for (int i = 0; i < d->queue_count; i++)
		n += d->queues[i].tx == tx;
	return n;
}

struct device_queue *device_queue(const struct device *d, bool tx, unsigned int index)
{
	for (int i = 0; i < d->queue_count; i++)
		if (d->queues[i].tx == tx && d->queues[i].index == index)
			return &d->queues[i];
	return NULL;
}

const struct device_irq *device_irq(const struct device *d, const char *name)
{
	for (int i = 0; i < d->irq_count; i++)
		if (!strcmp(d->irqs[i].name, name))
			return &d->irqs[i];
	return NULL;
}

void device_irq_queues(const struct device *d, const struct device_irq *irq, bool tx, char *text,
		       size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < d->queue_count && used + 12 < size; i++)
		if (d->queues[i].tx == tx && d->queues[i].irq == irq->irq)
			used += (size_t)snprintf(text + used, size - used, "%s%u", used ? "," : "",
						 d->queues[i].index);
}
