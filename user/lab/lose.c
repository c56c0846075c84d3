// SPDX-License-Identifier: GPL-2.0-only
#include "lab/lose.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/error.h"
#include "lose.skel.h"

/* libbpf asks its own namespace's devices. The kernel keeps the program as long as the device has it. */
static int attach_here(struct lose_bpf *skel)
{
	LIBBPF_OPTS(bpf_tc_hook, hook);
	LIBBPF_OPTS(bpf_tc_opts, options);
	int rc;

	hook.ifindex = (int)if_nametoindex(LAB_INTERFACE);
	hook.attach_point = BPF_TC_INGRESS;
	options.prog_fd = bpf_program__fd(skel->progs.lose_some);
	rc = bpf_tc_hook_create(&hook);
	return rc && rc != -EEXIST ? rc : bpf_tc_attach(&hook, &options);
}

static int attach_inside(const struct lab *lab, enum lab_side side, struct lose_bpf *skel)
{
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), rc;

	if (own < 0 || setns(lab->netns[side], CLONE_NEWNET)) {
		rc = -errno;
	} else {
		rc = attach_here(skel);
		if (setns(own, CLONE_NEWNET))
			rc = -errno;
	}
	if (own >= 0)
		close(own);
	return rc;
}

int lose_attach(const struct lab *lab, enum lab_side side, unsigned int every)
{
	struct lose_bpf *skel = lose_bpf__open_and_load();
	int rc = skel ? 0 : -errno;

	if (!rc) {
		skel->bss->every = every;
		rc = attach_inside(lab, side, skel);
	}
	lose_bpf__destroy(skel);
	return rc ? err_set(rc, "the lab cannot be made to lose packets: %s", strerror(-rc)) : 0;
}
