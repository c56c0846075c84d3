// SPDX-License-Identifier: GPL-2.0-only
#include "collect/collect.h"

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/config.h"
#include "abi/message.h"
#include "abi/stall.h"
#include "abi/state.h"
#include "abi/turn.h"
#include "base/error.h"
#include "collect/probes.h"
#include "layover.skel.h"

/* A TCP message up to this size leaves in one segment: the smallest MSS that IPv6 links allow. */
enum { ONE_SEGMENT = 1220 };

struct collect {
	struct layover_bpf *skel;
	struct ring_buffer *ring;
	bool chosen[PROBES_MAX];
	struct bpf_link *links[PROBES_MAX];
	collect_sink *sink;
	void *arg;
	struct watch_sinks watch;
};

/* libbpf's own warnings are for developers: LAYOVER_DEBUG shows them. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || !getenv("LAYOVER_DEBUG"))
		return 0;
	return vfprintf(stderr, format, args);
}

void collect_quiet(void)
{
	libbpf_set_print(print_libbpf);
}

static struct bpf_program *program_of(const struct collect *c, int row)
{
	return bpf_object__find_program_by_name(c->skel->obj, probes[row].program);
}

static void unfold(const struct turn_lines *lines, struct turn_record *r)
{
	*r = (struct turn_record){
		.send_id = lines->send_id,
		.recv_id = lines->recv_id,
		.flow = lines->flow,
		.send_bytes = lines->send_bytes,
		.recv_bytes = lines->recv_bytes,
		.writes = lines->writes,
		.reads = lines->reads,
		.role = lines->role,
		.proto = lines->proto,
		.flags = lines->flags,
		.socket = lines->socket,
		.entry = lines->entry,
	};
	memcpy(&r->t[HOOK_send_enter], lines->send_t, sizeof(lines->send_t));
	memcpy(&r->t[HOOK_irq], lines->softirq_t, sizeof(lines->softirq_t));
	memcpy(&r->t[HOOK_wakeup], lines->reader_t, sizeof(lines->reader_t));
	memcpy(&r->cpu[HOOK_send_enter], lines->send_cpu, sizeof(lines->send_cpu));
	memcpy(&r->cpu[HOOK_wakeup], lines->reader_cpu, sizeof(lines->reader_cpu));
	for (int hook = HOOK_softirq; hook <= HOOK_data_ready; hook++)
		r->cpu[hook] = lines->softirq_cpu[CPU_OF_SOFTIRQ];
	r->cpu[HOOK_irq] = lines->softirq_cpu[CPU_OF_IRQ];
}

static int take_record(void *arg, void *data, size_t size)
{
	struct collect *c = arg;
	struct turn_record record;

	if (size == sizeof(struct turn_lines)) {
		unfold(data, &record);
		c->sink(c->arg, &record);
	} else if (size == sizeof(struct flow_record) && c->watch.flow) {
		c->watch.flow(c->watch.arg, data);
	} else if (size == sizeof(struct stall_record) && c->watch.stall) {
		c->watch.stall(c->watch.arg, data);
	} else if (size == sizeof(struct hog_record) && c->watch.hog) {
		c->watch.hog(c->watch.arg, data);
	}
	return 0;
}

_Static_assert(sizeof(struct hog_record) < sizeof(struct stall_record) &&
		       sizeof(struct stall_record) < sizeof(struct flow_record) &&
		       sizeof(struct flow_record) < sizeof(struct turn_lines),
	       "records are told apart by their size");

/* The book has that many heads; without, its maps are there in name only. */
static int set_up_book(struct collect *c, uint32_t heads)
{
	struct bpf_map *maps[] = {c->skel->maps.top_heads, c->skel->maps.top_hists,
				  c->skel->maps.top_free, c->skel->maps.top_done};

	if (!heads)
		return 0;
	c->skel->rodata->keeps_book = 1;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (bpf_map__set_max_entries(maps[i], heads))
			return err_set(-EINVAL, "the book cannot have %u heads", heads);
	return 0;
}

/*
 * For others' flows, as many and as fast as the CPUs let them be: one of 64000 trips a second fills 4 MiB in 0.13 s, and
 * on a busy machine who reads the records may have to wait longer than that for a CPU.
 */
#define WATCH_BYTES_PER_CPU (8U << 20)
#define WATCH_BYTES_MAX     (64U << 20)

static uint32_t watch_bytes(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t bytes = WATCH_BYTES_PER_CPU; /* a power of two, as the kernel wants it */

	while (bytes < WATCH_BYTES_MAX && bytes < WATCH_BYTES_PER_CPU * cpus)
		bytes *= 2;
	return bytes;
}

static int load(struct collect *c, const struct probe_wish *wish)
{
	int rc;

	c->skel = layover_bpf__open();
	if (!c->skel)
		return err_set(-errno, "cannot open the BPF object: %s", strerror(errno));
	for (int i = 0; i < probe_count; i++)
		bpf_program__set_autoload(program_of(c, i), c->chosen[i]);
	bpf_map__set_autocreate(c->skel->maps.stalls, wish->stalls);
	bpf_map__set_autocreate(c->skel->maps.fired, wish->stalls);
	bpf_map__set_autocreate(c->skel->maps.runners, wish->stalls);
	if (wish->stalls && !wish->heads)
		bpf_map__set_max_entries(c->skel->maps.records, watch_bytes());
	rc = set_up_book(c, wish->heads);
	if (rc)
		return rc;
	rc = layover_bpf__load(c->skel);
	if (rc)
		return err_set(
			rc,
			"the kernel did not take the BPF programs: %s; LAYOVER_DEBUG=1 shows why",
			strerror(-rc));
	c->ring = ring_buffer__new(bpf_map__fd(c->skel->maps.records), take_record, c, NULL);
	if (!c->ring)
		return err_set(-errno, "cannot map the record buffer: %s", strerror(errno));
	return 0;
}

static void configure(struct collect *c, int proto)
{
	static const long calls[SEND_CALLS] = {SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_write,
					       SYS_writev};

	c->skel->bss->config.proto = (uint8_t)proto;
	c->skel->bss->config.emit_late = (collect_hooks(c) >> HOOK_send_exit) & 1;
	c->skel->bss->config.wakeups = (collect_hooks(c) >> HOOK_wakeup) & 1;
	for (int i = 0; i < SEND_CALLS; i++)
		c->skel->bss->config.send_calls[i] = (uint32_t)calls[i];
}

static int choose(struct collect *c, const struct probe_wish *wish)
{
	struct probing probing;
	int lacking, rc = probes_begin(&probing);

	if (!rc)
		probes_choose(&probing, wish, c->chosen);
	probes_end(&probing);
	if (!rc)
		rc = probes_any(&probing);
	if (rc)
		return rc;
	lacking = probes_lacking(c->chosen, wish->proto);
	if (lacking < 0)
		return 0;
	return err_set(-ENOENT,
		       "there is no split without the hook %s; 'layover doctor' tells more",
		       hook_infos[lacking].name);
}

int collect_open(struct collect **out, const struct probe_wish *wish)
{
	struct collect *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	collect_quiet();
	rc = choose(c, wish);
	if (!rc)
		rc = load(c, wish);
	if (rc) {
		collect_close(c);
		return rc;
	}
	configure(c, wish->proto);
	/* The kernel's types were read: 10 MB and more, which a server would keep. */
	malloc_trim(0);
	*out = c;
	return 0;
}

void collect_close(struct collect *c)
{
	if (!c)
		return;
	collect_detach(c);
	ring_buffer__free(c->ring);
	layover_bpf__destroy(c->skel);
	free(c);
	malloc_trim(0);
}

int collect_attach(struct collect *c)
{
	for (int i = 0; i < probe_count; i++) {
		if (!c->chosen[i] || c->links[i])
			continue;
		c->links[i] = bpf_program__attach(program_of(c, i));
		if (!c->links[i]) {
			int rc = -errno;

			collect_detach(c);
			return err_set(rc, "cannot attach to %s: %s", probes[i].target,
				       strerror(-rc));
		}
	}
	return 0;
}

void collect_detach(struct collect *c)
{
	for (int i = 0; i < probe_count; i++) {
		bpf_link__destroy(c->links[i]);
		c->links[i] = NULL;
	}
}

uint32_t collect_hooks(const struct collect *c)
{
	uint32_t mask = 0;

	for (int i = 0; i < probe_count; i++)
		if (c->chosen[i] && probe_on_path(&probes[i]))
			mask |= 1u << probes[i].hook;
	return mask;
}

void collect_set_flow(struct collect *c, uint16_t client_port, uint16_t server_port, uint64_t bytes)
{
	struct config *config = &c->skel->bss->config;

	config->client_port = client_port;
	config->driver_seq_mask =
		bytes < MESSAGE_SEQ_BYTES ? (1ULL << (8 * bytes)) - 1 : UINT64_MAX;
	/* Looking into every packet costs: done only where a message may span several. */
	config->by_bytes = bytes > ONE_SEGMENT;
	config->server_port = server_port;
}

int collect_map(const struct collect *c, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(c->skel->obj, name);

	return fd < 0 ? err_set(fd, "the BPF object has no map %s", name) : fd;
}

void collect_set_slow(struct collect *c, uint64_t ns)
{
	c->skel->bss->config.slow_ns = ns;
}

/* The address of a kernel function, 0 when it is not told. */
static uint64_t kernel_symbol(const char *wanted)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address = 0;
	char line[256], name[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %127s", &address, name) == 2 && !strcmp(name, wanted))
			break;
		address = 0;
	}
	if (file)
		fclose(file);
	return address;
}

bool collect_watch(struct collect *c, uint16_t port, const struct watch_sinks *sinks)
{
	struct config *config = &c->skel->bss->config;

	c->watch = *sinks;
	config->watch_port = port;
	config->delack_timer = kernel_symbol("tcp_delack_timer");
	config->watch = 1;
	return config->delack_timer;
}

int collect_drain(struct collect *c, collect_sink *sink, void *arg)
{
	c->sink = sink;
	c->arg = arg;
	return ring_buffer__consume(c->ring);
}

void collect_counters(const struct collect *c, struct collect_counters *out)
{
	const struct counters *counters = &c->skel->bss->counters;

	*out = (struct collect_counters){.dropped = counters->dropped,
					 .unfinished = counters->unfinished,
					 .no_place = counters->no_place,
					 .unplaced = counters->unplaced};
	for (int i = 0; i < probe_count; i++) {
		struct bpf_prog_info info = {0};
		__u32 size = sizeof(info);

		if (c->chosen[i] &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program_of(c, i)), &info, &size))
			out->recursion_misses += info.recursion_misses;
	}
}
