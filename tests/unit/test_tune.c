// SPDX-License-Identifier: GPL-2.0-only
/* layover irq: parsers, tables, and plans on made-up trees. */
#include <errno.h>
#include <linux/ethtool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpulist.h"
#include "tune/devices.h"
#include "tune/interrupts.h"
#include "base/error.h"
#include "tune/axes.h"
#include "tune/policies.h"
#include "tune/rss.h"
#include "view/irq.h"

/* --- CPUs ---------------------------------------------------------------------------------------- */

static void assert_list(const char *text, const char *list, const char *mask)
{
	char out[CPULIST_TEXT];
	cpu_set_t set, again;

	assert_int_equal(cpulist_parse("CPUs", text, &set), 0);
	cpulist_format(&set, out, sizeof(out));
	assert_string_equal(out, list);
	cpumask_format(&set, out, sizeof(out));
	assert_string_equal(out, mask);
	assert_int_equal(cpumask_parse(out, &again), 0);
	assert_true(CPU_EQUAL(&set, &again));
}

static void test_lists(void **state)
{
	static const char *const bad[] = {"a",  "1-", "3-1", "1,,2", ",1",
					  "1,", "-1", "1 2", "1024"};
	cpu_set_t set;

	(void)state;
	assert_list("", "", "0");
	assert_list("0", "0", "1");
	assert_list("0-3,8", "0-3,8", "10f");
	assert_list("3,2,1", "1-3", "e");
	assert_list("32", "32", "1,00000000");
	assert_list("0,63-64,1023", "0,63-64,1023",
		    "80000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000,"
		    "00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000,"
		    "00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000,"
		    "00000000,00000000,00000000,00000000,00000000,00000001,80000000,00000001");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(cpulist_parse("CPUs", bad[i], &set) < 0);
}

static void test_masks(void **state)
{
	static const char *const bad[] = {"", "g", "1,", ",1", "123456789", "1,,1", "0x1", "1 "};
	cpu_set_t set;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(cpumask_parse(bad[i], &set), -EINVAL);
	assert_int_equal(cpumask_parse("00000000,00000003", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 2);
	assert_int_equal(cpulist_nth(&set, 1), 1);
	assert_int_equal(cpulist_nth(&set, 2), -1);
}

/* --- /proc/interrupts ---------------------------------------------------------------------------- */

/* Rows of 6.1, 6.12 and 7.2, a shared one, one of an offline CPU's absence, words, and a single count. */
static const char interrupts_text[] =
	"           CPU0       CPU2       \n"
	"  1:          3          4   IO-APIC   1-edge      i8042\n"
	" 11:          5          6   IO-APIC  11-fasteoi   uhci_hcd:usb1, eth9\n"
	" 25:         70          8   PCI-MSI 16385-edge      virtio0-input.0\n"
	" 26:          9         10  PCI-MSIX-0000:00:02.0   1-edge      eth0-rx-0\n"
	" 27: 4294967296 18446744073709551615 PCI-MSIX-0000:3b:00.0 2-edge mlx5_comp1@pci:0000:3b:00.0\n"
	"NMI:          1          2   Non-maskable interrupts\n"
	"ERR:          7\n";

static void test_interrupts(void **state)
{
	struct interrupts all;
	const struct interrupt *row;

	(void)state;
	assert_int_equal(interrupts_parse(interrupts_text, &all), 0);
	assert_int_equal(all.columns, 2);
	assert_int_equal(all.cpus[1], 2);
	assert_int_equal(all.n, 7);
	row = interrupts_find(&all, 11);
	assert_string_equal(row->name, "uhci_hcd:usb1, eth9");
	assert_string_equal(row->chip, "IO-APIC  11-fasteoi");
	assert_string_equal(interrupts_find(&all, 25)->name, "virtio0-input.0");
	row = interrupts_find(&all, 27);
	assert_string_equal(row->name, "mlx5_comp1@pci:0000:3b:00.0");
	assert_true(row->counts[0] == 4294967296 && row->counts[1] == UINT64_MAX);
	assert_true(interrupts_label(&all, "NMI")->counts[1] == 2);
	assert_true(interrupts_label(&all, "ERR")->counts[0] == 7);
	assert_null(interrupts_find(&all, 2));
	assert_null(interrupts_find(&all, -1));
	interrupts_free(&all);
}

static void test_no_interrupts(void **state)
{
	static const char *const bad[] = {"", "   \n", "rubbish\n", "CPUx\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct interrupts all;

		assert_true(interrupts_parse(bad[i], &all) < 0);
		interrupts_free(&all);
	}
}

static void test_rates(void **state)
{
	struct interrupts a, b;

	(void)state;
	interrupts_parse("CPU0 CPU1\n 5: 100 9 chip 1-edge x\n", &a);
	interrupts_parse("CPU0 CPU1\n 5: 300 5 chip 1-edge x\n", &b);
	a.at_ns = 1000000000;
	b.at_ns = 1500000000;
	assert_true(interrupts_rate(&a, &a.rows[0], &b, &b.rows[0], 0) == 400);
	assert_true(interrupts_rate(&a, &a.rows[0], &b, &b.rows[0], 1) == 0); /* requested again */
	assert_true(interrupts_rate(&a, NULL, &b, &b.rows[0], 0) == 0);
	interrupts_free(&a);
	interrupts_free(&b);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		int serves, queue;
	} rows[] = {
		{"virtio0-input.3", IRQ_RX, 3},
		{"virtio12-output.0", IRQ_TX, 0},
		{"virtio0-config", 0, -1},
		{"eth0-TxRx-11", IRQ_RX | IRQ_TX, 11},
		{"i40e-enp1s0-TxRx-2", IRQ_RX | IRQ_TX, 2},
		{"eth0-Tx-Rx-7", IRQ_RX | IRQ_TX, 7},
		{"eth0-rx-1", IRQ_RX, 1},
		{"eth0-tx-1", IRQ_TX, 1},
		{"eth0-rxtx-4", IRQ_RX | IRQ_TX, 4},
		{"mlx5_comp5@pci:0000:3b:00.0", IRQ_RX | IRQ_TX, 5},
		{"mlx5_async0@pci:0000:3b:00.0", 0, -1},
		{"eth0", 0, -1},
		{"", 0, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int serves, queue;

		device_irq_by_name(rows[i].name, &serves, &queue);
		assert_int_equal(serves, rows[i].serves);
		assert_int_equal(queue, rows[i].queue);
	}
}

/* --- RSS ----------------------------------------------------------------------------------------- */

/* The vectors that Microsoft publishes to verify an RSS hash with. */
static const uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
				0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
				0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
				0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

static void test_toeplitz(void **state)
{
	static const struct {
		const char *flow;
		uint32_t addresses, ports;
	} rows[] = {
		{"66.9.149.187:2794,161.142.100.80:1766", 0x323e8fc2, 0x51ccc178},
		{"199.92.111.2:14230,65.69.140.83:4739", 0xd718262a, 0xc626b0ea},
		{"24.19.198.95:12898,12.22.207.184:38024", 0xd2d0a5de, 0x5c2b394a},
		{"38.27.205.30:48228,209.142.163.6:2217", 0x82989176, 0xafc7327f},
		{"153.39.163.191:44251,202.188.127.2:1303", 0x5d1809c5, 0x10e828a2},
		{"[3ffe:2501:200:1fff::7]:2794,[3ffe:2501:200:3::1]:1766", 0x2cc18cd5, 0x40207d3d},
		{"[3ffe:501:8::260:97ff:fe40:efab]:14230,[ff02::1]:4739", 0x0f0c461c, 0xdde51bbf},
		{"[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251,[fe80::200:f8ff:fe21:67cf]:38024",
		 0x4b61e985, 0x02d1feef},
	};
	const uint64_t addresses = RXH_IP_SRC | RXH_IP_DST;
	const uint64_t ports = addresses | RXH_L4_B_0_1 | RXH_L4_B_2_3;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rss_flow flow;
		uint32_t hash;

		assert_int_equal(rss_flow_parse(rows[i].flow, &flow), 0);
		assert_int_equal(rss_hash(key, sizeof(key), &flow, addresses, &hash), 0);
		assert_int_equal(hash, rows[i].addresses);
		assert_int_equal(rss_hash(key, sizeof(key), &flow, ports, &hash), 0);
		assert_int_equal(hash, rows[i].ports);
		assert_int_equal(rss_hash(key, 8, &flow, ports, &hash), -EINVAL);
	}
}

static void test_flows(void **state)
{
	static const char *const bad[] = {"",
					  "1.2.3.4:5",
					  "1.2.3.4,5.6.7.8",
					  "1.2.3.4:5,[::1]:5",
					  "1.2.3.4:5,5.6.7.8:70000",
					  "::1:5,::1:6",
					  ":5,:6"};
	struct rss_flow flow;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rss_flow_parse(bad[i], &flow), -EINVAL);
}

static void assert_weighted(const char *want, uint32_t size, const uint32_t *weights, uint32_t n)
{
	uint32_t entries[64];
	char text[256];

	rss_weighted(entries, size, weights, n);
	rss_table_format(entries, size, text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_tables(void **state)
{
	uint32_t entries[16];
	char text[128];

	(void)state;
	rss_equal(entries, 8, 3);
	rss_table_format(entries, 8, text, sizeof(text));
	assert_string_equal(text, "0,1,2,0,1,2,0,1");
	rss_table_say(entries, 8, text, sizeof(text));
	assert_string_equal(text, "queues 0-2 equally");
	assert_weighted("0,0,0,0,0,0,1,1", 8, (const uint32_t[]){3, 1}, 2);
	assert_weighted("1,1,1,1", 4, (const uint32_t[]){0, 1, 0, 0}, 4);
	assert_weighted("0,0,1,1,1,2,2,2", 8, (const uint32_t[]){1, 1, 1}, 3);
	assert_int_equal(rss_table_parse("0,0,0,1", entries, 16), 4);
	rss_table_say(entries, 4, text, sizeof(text));
	assert_string_equal(text, "queue 0 75 %, 1 25 %");
	assert_int_equal(rss_table_parse("", entries, 16), -EINVAL);
	assert_int_equal(rss_table_parse("1,", entries, 16), -EINVAL);
	assert_int_equal(rss_table_parse("1,-2", entries, 16), -EINVAL);
	assert_int_equal(rss_table_parse("1,2,3", entries, 2), -EINVAL);
}

/* --- plans on made-up trees ---------------------------------------------------------------------- */

static char root[64];

/* A file below the root, with the folders that it needs. */
static void put(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(whole, 0700);
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Eight CPUs on two nodes, CPU 7 isolated, siblings n and n+4; a NIC on node 1 with four pairs of queues. */
static int make_tree(void **state)
{
	char path[128], table[2048] = "CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\n", text[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/layover-tune-XXXXXX");
	assert_non_null(mkdtemp(root));
	setenv("LAYOVER_ROOT", root, 1);
	unsetenv("SSH_CONNECTION");
	put("/sys/devices/system/cpu/online", "0-7\n");
	put("/sys/devices/system/cpu/isolated", "7\n");
	put("/sys/devices/system/cpu/nohz_full", "(null)\n");
	put("/sys/devices/system/node/node1/cpulist", "4-7\n");
	put("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,6\n");
	put("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3\n");
	put("/sys/class/net/eth0/ifindex", "2\n");
	put("/sys/class/net/eth0/device/numa_node", "1\n");
	put("/proc/irq/30/smp_affinity_list", "0-7\n");
	put("/sys/class/net/eth0/device/msi_irqs/30", "msix\n");
	snprintf(table + strlen(table), 128, " 30: 0 0 0 0 0 0 0 0 PCI-MSIX 0-edge eth0\n");
	for (int q = 0; q < 4; q++) {
		snprintf(path, sizeof(path), "/sys/class/net/eth0/device/msi_irqs/%d", 31 + q);
		put(path, "msix\n");
		snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", 31 + q);
		put(path, q == 3 ? "6\n" : "0-7\n");
		snprintf(path, sizeof(path), "/sys/class/net/eth0/queues/rx-%d/rps_cpus", q);
		put(path, q == 2 ? "c0\n" : "00\n");
		snprintf(path, sizeof(path), "/sys/class/net/eth0/queues/tx-%d/xps_cpus", q);
		put(path, "00\n");
		snprintf(text, sizeof(text), " %d: 0 0 0 0 0 0 0 0 PCI-MSIX %d-edge eth0-TxRx-%d\n",
			 31 + q, q + 1, q);
		strncat(table, text, sizeof(table) - strlen(table) - 1);
	}
	put("/proc/interrupts", table);
	return 0;
}

static int remove_tree(void **state)
{
	char command[128];

	(void)state;
	unsetenv("LAYOVER_ROOT");
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command); /* NOLINT: the path is made here */
}

/* Plans; each change as "KEY:NEW", separated by spaces. */
static int plan(const char *words, const struct policy_options *options, char *text, size_t size)
{
	const char *eth0 = "eth0", *list[16];
	char copy[128], *save = NULL;
	struct policy_options o = options ? *options : (struct policy_options){0};
	struct machine machine;
	struct plan made = {0};
	int n = 0, rc;

	if (!o.step)
		o.step = 1;
	snprintf(copy, sizeof(copy), "%s", words);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		list[n++] = w;
	rc = machine_read(&machine, &eth0, 1);
	assert_int_equal(rc, 0);
	rc = policies_plan(&machine, &machine.devices[0], list, n, &o, &made);
	text[0] = '\0';
	for (int i = 0; i < made.n && !rc; i++)
		snprintf(text + strlen(text), size - strlen(text), "%s%s:%s", i ? " " : "",
			 made.rows[i].ref.key, made.rows[i].new);
	plan_free(&made);
	machine_free(&machine);
	return rc;
}

static void assert_plan(const char *words, const struct policy_options *options, const char *want)
{
	char text[1024];

	assert_int_equal(plan(words, options, text, sizeof(text)), 0);
	assert_string_equal(text, want);
}

static void test_machine(void **state)
{
	const char *eth0 = "eth0", *none = "eth1";
	struct machine m;
	char text[32];

	(void)state;
	assert_int_equal(machine_read(&m, &eth0, 1), 0);
	assert_int_equal(CPU_COUNT(&m.online), 8);
	assert_int_equal(CPU_COUNT(&m.nohz_full), 0);
	assert_int_equal(m.devices[0].node, 1);
	assert_int_equal(m.devices[0].irq_count, 5);
	assert_int_equal(device_queues(&m.devices[0], false), 4);
	assert_int_equal(device_queue(&m.devices[0], true, 2)->irq, 33);
	device_irq_queues(&m.devices[0], device_irq(&m.devices[0], "eth0-TxRx-1"), false, text,
			  sizeof(text));
	assert_string_equal(text, "1");
	assert_false(m.devices[0].control);
	machine_free(&m);
	assert_int_equal(machine_read(&m, &none, 1), -ENODEV);
	machine_free(&m);
	put("/proc/net/route",
	    "Iface Destination Gateway\neth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n");
	put("/proc/77/comm", "irqbalance\n");
	assert_int_equal(machine_read(&m, &eth0, 1), 0);
	assert_true(m.devices[0].control);
	assert_int_equal(m.irqbalance, 77);
	machine_free(&m);
}

/* Whatever the numbers, a line has under 80 columns. */
static void test_text_is_narrow(void **state)
{
	const char *eth0 = "eth0";
	struct irq_rates rates = {0};
	struct machine m;
	char path[128], line[512];
	int saved = dup(STDOUT_FILENO), n = 0;
	FILE *file;

	(void)state;
	assert_int_equal(machine_read(&m, &eth0, 1), 0);
	for (const struct ethtool_field *f = coalesce_fields; f->name; f++)
		*(uint32_t *)((char *)&m.devices[0].coalesce + f->offset) = UINT32_MAX;
	for (const struct ethtool_field *f = channel_fields; f->name; f++)
		*(uint32_t *)((char *)&m.devices[0].channels + f->offset) = UINT32_MAX;
	m.devices[0].coalesce_rc = m.devices[0].channels_rc = 0;
	m.devices[0].control = true;
	m.control_why = "this ssh session came by it";
	m.irqbalance = 4194303;
	snprintf(path, sizeof(path), "%s/text", root);
	fflush(stdout);
	assert_non_null(freopen(path, "w", stdout));
	view_irq_text(&m, &rates, &(const struct irq_receivers){0});
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	machine_free(&m);
	file = fopen(path, "r");
	assert_non_null(file);
	for (; fgets(line, sizeof(line), file); n++)
		assert_true(strlen(line) <= 80); /* with its newline */
	fclose(file);
	assert_true(n > 15);
}

static void test_spread(void **state)
{
	(void)state;
	assert_plan("spread", NULL, "eth0-TxRx-0:0 eth0-TxRx-1:1 eth0-TxRx-2:2 eth0-TxRx-3:3");
	assert_plan("spread", &(struct policy_options){.step = 2},
		    "eth0-TxRx-0:0 eth0-TxRx-1:2 eth0-TxRx-2:4"); /* 3 is on 6 already */
	assert_plan("spread", &(struct policy_options){.cpus = "2-3", .step = 2},
		    "eth0-TxRx-0:2 eth0-TxRx-1:3 eth0-TxRx-2:2 eth0-TxRx-3:3");
	/* of node 1, the isolated CPU 7 is left out unless it is named */
	assert_plan("spread", &(struct policy_options){.local = true},
		    "eth0-TxRx-0:4 eth0-TxRx-1:5 eth0-TxRx-2:6 eth0-TxRx-3:4");
	assert_plan("spread", &(struct policy_options){.cpus = "7"},
		    "eth0-TxRx-0:7 eth0-TxRx-1:7 eth0-TxRx-2:7 eth0-TxRx-3:7");
	assert_plan("spread", &(struct policy_options){.queues = "1"}, "eth0-TxRx-1:1");
}

static int find_change(const struct plan *plan, const char *knob, const char *name)
{
	for (int i = 0; i < plan->n; i++)
		if (!strcmp(plan->rows[i].ref.knob->name, knob) &&
		    !strcmp(plan->rows[i].ref.key, name))
			return i;
	return -1;
}

/* What can be tried on this tree: interrupts as they are, on CPU 0, on 1; RPS as it is, off, to 0, to 1. */
static void test_axes(void **state)
{
	const char *eth0 = "eth0";
	struct axes_wish wish = {.only = "irq,rps", .cpus = "0-1", .reader = 1};
	struct machine m;
	struct axes axes;
	struct plan made = {0};
	char text[128];
	int irq, rps;

	(void)state;
	assert_int_equal(machine_read(&m, &eth0, 1), 0);
	assert_int_equal(axes_make(&m, &m.devices[0], &wish, &axes), 0);
	assert_int_equal(axes.n, 2);
	assert_int_equal(axes.combinations, 12);
	assert_int_equal(axes.all.n, 8); /* four interrupts, four queues, each once */
	irq = find_change(&axes.all, "irq", "eth0-TxRx-3");
	rps = find_change(&axes.all, "rps_cpus", "2");
	/* all as it is now */
	assert_int_equal(axes_changes(&axes, 0), 0);
	assert_string_equal(axes_wanted(&axes, 0, irq), "6");
	assert_string_equal(axes_wanted(&axes, 0, rps), "c0");
	/* the last axis changes quickest: 1 * 4 + 3 */
	axes_say(&axes, 7, -1, text, sizeof(text));
	assert_string_equal(text, "irq 0, rps 1");
	assert_int_equal(axes_changes(&axes, 7), 2);
	assert_string_equal(axes_wanted(&axes, 7, irq), "0");
	assert_string_equal(axes_wanted(&axes, 7, rps), "2");
	/* "rps off" changes queue 2 alone */
	assert_int_equal(axes_plan(&axes, 1, &made), 0);
	assert_int_equal(made.n, 1);
	assert_string_equal(made.rows[0].old, "c0");
	assert_string_equal(made.rows[0].new, "0");
	plan_free(&made);
	axes_free(&axes);
	/* the reader and polling need nothing of the device; one more policy is a value more */
	wish = (struct axes_wish){
		.only = "reader,busy-poll", .cpus = "0-1", .extra = {"xps"}, .extra_count = 1};
	assert_int_equal(axes_make(&m, &m.devices[0], &wish, &axes), 0);
	assert_int_equal(axes.combinations, 2 * 2 * 2);
	axes_free(&axes);
	for (int i = 0; i < 3; i++) {
		static const struct axes_wish wrong[] = {{.only = "irqs"},
							 {.cpus = "0,"},
							 {.extra = {"queues 2"}, .extra_count = 1}};

		assert_int_equal(axes_make(&m, &m.devices[0], &wrong[i], &axes), -EINVAL);
		axes_free(&axes);
	}
	machine_free(&m);
}

static void test_near_reader(void **state)
{
	(void)state;
	assert_plan("near-reader 6", &(struct policy_options){.queues = "1-3"},
		    "eth0-TxRx-1:6 eth0-TxRx-2:6 2:0"); /* 3 is there, RPS of 2 hands on */
	assert_plan("near-reader 2", &(struct policy_options){.queues = "0", .sibling = true},
		    "eth0-TxRx-0:6");
}

static void test_isolate(void **state)
{
	(void)state;
	/* what is only there goes to all others; the link's interrupt too */
	assert_plan("isolate 4-6", NULL,
		    "eth0:0-3,7 eth0-TxRx-0:0-3,7 eth0-TxRx-1:0-3,7 eth0-TxRx-2:0-3,7 "
		    "eth0-TxRx-3:0-3,7 2:80");
}

static void test_packets(void **state)
{
	(void)state;
	assert_plan("rps 6-7", NULL, "0:c0 1:c0 3:c0");
	assert_plan("rps off", NULL, "2:0");
	assert_plan("xps", &(struct policy_options){.cpus = "0-5"}, "0:11 1:22 2:4 3:8");
	/* in the order of the table, not of the words */
	assert_plan("rps off near-reader 0", &(struct policy_options){.queues = "0"},
		    "eth0-TxRx-0:0");
}

static void test_refused(void **state)
{
	static const struct {
		const char *words;
		struct policy_options options;
		const char *said;
	} rows[] = {
		{"isolate 0-7", {0}, "no online CPU"},
		{"isolate 0-1023", {0}, "no online CPU"},
		{"near-reader 8", {0}, "not online"},
		{"near-reader 1-2", {0}, "not one CPU"},
		{"near-reader 3", {.sibling = true}, "no hyperthread sibling"},
		{"spread", {.cpus = "6-9"}, "CPU 8-9 is not online"},
		{"spread", {.cpus = "0-3", .local = true}, "no CPU is left"},
		{"spread", {.queues = "9"}, "no interrupts of these queues"},
		{"rss equal", {0}, "no RSS table"},
		{"queues 2", {0}, "cannot be set"},
		{"coalesce rx-usecs=1", {0}, "cannot be set"},
		{"spread spread", {0}, "twice"},
		{"", {0}, "a policy must follow"},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = plan(rows[i].words, &rows[i].options, text, sizeof(text));

		assert_true(rc < 0);
		assert_non_null(strstr(err_text(rc), rows[i].said));
	}
}

static void test_knobs(void **state)
{
	const struct setting_ref irq = {knob_find("irq"), "eth0", "eth0-TxRx-2"};
	const struct setting_ref gone = {knob_find("irq"), "eth0", "eth0-TxRx-9"};
	const struct setting_ref rps = {knob_find("rps_cpus"), "eth0", "2"};
	const struct setting_ref other = {knob_find("rps_cpus"), "eth9", "2"};
	char text[KNOB_TEXT];

	(void)state;
	assert_int_equal(knob_write(&irq, "3"), 0);
	assert_int_equal(knob_read(&irq, text), 0);
	assert_string_equal(text, "3");
	assert_int_equal(knob_read(&gone, text), -ENOENT);
	assert_int_equal(knob_read(&rps, text), 0);
	assert_string_equal(text, "c0");
	assert_true(rps.knob->same("c0", "00000000,000000C0"));
	assert_true(irq.knob->same("0-1", "0,1"));
	assert_false(irq.knob->same("0-1", "x"));
	assert_int_equal(knob_read(&other, text), -ENODEV);
	assert_int_equal(knob_write(&other, "1"), -ENODEV);
	knob_command(&irq, "1", text);
	assert_string_equal(text, "echo 1 >/proc/irq/33/smp_affinity_list");
	/* the interrupt was asked for anew and has another number */
	put("/proc/interrupts", "CPU0\n 32: 0 PCI-MSIX 3-edge eth0-TxRx-2\n");
	knob_command(&irq, "1", text);
	assert_string_equal(text, "echo 1 >/proc/irq/32/smp_affinity_list");
}

#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_no_interrupts),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_toeplitz),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_tables),
		ON_TREE(test_machine),
		ON_TREE(test_text_is_narrow),
		ON_TREE(test_spread),
		ON_TREE(test_axes),
		ON_TREE(test_near_reader),
		ON_TREE(test_isolate),
		ON_TREE(test_packets),
		ON_TREE(test_refused),
		ON_TREE(test_knobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
