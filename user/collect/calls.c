// SPDX-License-Identifier: GPL-2.0-only
#include "collect/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/error.h"
#include "calls.skel.h"
#include "collect/collect.h"

struct calls {
	struct calls_bpf *skel;
	struct calls_count *per_cpu;
	int cpus;
};

static int start(struct calls *c)
{
	struct stat ns;
	int rc;

	c->cpus = libbpf_num_possible_cpus();
	c->per_cpu = c->cpus > 0 ? calloc((size_t)c->cpus, sizeof(*c->per_cpu)) : NULL;
	c->skel = calls_bpf__open();
	if (!c->per_cpu || !c->skel || stat("/proc/self/ns/pid", &ns))
		return -errno;
	rc = calls_bpf__load(c->skel);
	if (rc)
		return rc;
	c->skel->bss->caller = (struct calls_caller){ns.st_dev, ns.st_ino, (__u32)getpid()};
	return calls_bpf__attach(c->skel);
}

int calls_open(struct calls **out)
{
	struct calls *c = calloc(1, sizeof(*c));
	int rc;

	*out = NULL;
	if (!c)
		return err_set(-ENOMEM, "no memory to count system calls");
	collect_quiet();
	rc = start(c);
	if (rc) {
		calls_close(c);
		return err_set(rc,
			       "system calls cannot be counted: %s; that takes root, or "
			       "'setcap cap_bpf,cap_perfmon+ep' on this program",
			       strerror(-rc));
	}
	*out = c;
	return 0;
}

void calls_close(struct calls *c)
{
	if (!c)
		return;
	calls_bpf__destroy(c->skel);
	free(c->per_cpu);
	free(c);
}

int calls_read(const struct calls *c, struct calls_count *out)
{
	__u32 first = 0;

	*out = (struct calls_count){0};
	if (bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.counts), &first, c->per_cpu))
		return -errno;
	for (int cpu = 0; cpu < c->cpus; cpu++) {
		out->machine += c->per_cpu[cpu].machine;
		out->process += c->per_cpu[cpu].process;
	}
	return 0;
}
