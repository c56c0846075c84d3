// SPDX-License-Identifier: GPL-2.0-only
#include "lab/lose.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/error.h"
#include "lose.skel.h"

/* libbpf asks its own namespace's devices. The kernel keeps the program as long as the device has it. */
static int attach(void *arg)
{
	LIBBPF_OPTS(bpf_tc_hook, hook);
	LIBBPF_OPTS(bpf_tc_opts, options);
	const struct lose_bpf *skel = arg;
	int rc;

	hook.ifindex = (int)if_nametoindex(LAB_INTERFACE);
	hook.attach_point = BPF_TC_INGRESS;
	options.prog_fd = bpf_program__fd(skel->progs.lose_some);
	rc = bpf_tc_hook_create(&hook);
	return rc && rc != -EEXIST ? rc : bpf_tc_attach(&hook, &options);
}

int lose_attach(const struct lab *lab, enum lab_side side, unsigned int every, unsigned int lost)
{
	struct lose_bpf *skel = lose_bpf__open_and_load();
	int rc = skel ? 0 : -errno;

	if (!rc) {
		skel->bss->every = every;
		skel->bss->lost = lost;
		rc = lab_inside(lab, side, attach, skel);
	}
	lose_bpf__destroy(skel);
	return rc ? err_set(rc, "the lab cannot be made to lose packets: %s", strerror(-rc)) : 0;
}
