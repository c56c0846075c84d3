// SPDX-License-Identifier: GPL-2.0-only
/* layover irq: parsers, tables, and plans on made-up trees. */
#include <errno.h>
#include <linux/ethtool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpulist.h"
#include "tune/devices.h"
#include "tune/interrupts.h"
#include "tune/rss.h"

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
static const char table[] =
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
	assert_int_equal(interrupts_parse(table, &all), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),      cmocka_unit_test(test_masks),
		cmocka_unit_test(test_interrupts), cmocka_unit_test(test_no_interrupts),
		cmocka_unit_test(test_rates),      cmocka_unit_test(test_names),
		cmocka_unit_test(test_toeplitz),   cmocka_unit_test(test_flows),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
