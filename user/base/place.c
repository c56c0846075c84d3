// SPDX-License-Identifier: GPL-2.0-only
#include "base/place.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"

#define NODES "/sys/devices/system/node/node%d/cpulist"

/* "0-3,8\n"; an empty list is a node without CPUs. */
static void read_list(FILE *file, cpu_set_t *set)
{
	int first, last;

	CPU_ZERO(set);
	while (fscanf(file, "%d", &first) == 1) {
		last = first;
		if (fscanf(file, "-%d", &last) != 1)
			last = first;
		for (int cpu = first; cpu >= 0 && cpu <= last && cpu < CPUS_MAX; cpu++)
			if (cpus_allowed(cpu))
				CPU_SET(cpu, set);
		if (fgetc(file) != ',')
			break;
	}
}

/* 1 when the machine has no NUMA at all. */
static int node_cpus(int node, cpu_set_t *set)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), NODES, node);
	file = fopen(path, "re");
	if (!file && node == 0)
		return 1;
	if (!file)
		return err_set(-ENODEV, "there is no NUMA node %d here", node);
	read_list(file, set);
	fclose(file);
	if (CPU_COUNT(set))
		return 0;
	return err_set(-ENODEV, "NUMA node %d has no CPU that this process may run on", node);
}

int place_on_node(int node)
{
	unsigned long nodes[PLACE_NODES_MAX / (8 * sizeof(long))] = {0};
	cpu_set_t set;
	int rc;

	if (node < 0)
		return 0;
	rc = node_cpus(node, &set);
	if (rc)
		return rc < 0 ? rc : 0;
	if (sched_setaffinity(0, sizeof(set), &set))
		return err_set(-errno, "cannot run on NUMA node %d: %s", node, strerror(errno));
	nodes[(size_t)node / (8 * sizeof(long))] = 1UL << ((size_t)node % (8 * sizeof(long)));
	/* ENOSYS: a kernel without NUMA. */
	if (syscall(SYS_set_mempolicy, MPOL_BIND, nodes, PLACE_NODES_MAX + 1) && errno != ENOSYS)
		return err_set(-errno, "cannot take memory of NUMA node %d: %s", node,
			       strerror(errno));
	return 0;
}

int place_fifo(int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	if (!priority || !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		return 0;
	return err_set(-errno,
		       "SCHED_FIFO is not allowed here (%s): run as root, give CAP_SYS_NICE or a "
		       "limit of real-time priority, or leave out --fifo",
		       strerror(errno));
}

void place_fifo_of(pthread_t thread, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	if (priority)
		pthread_setschedparam(thread, SCHED_FIFO, &param);
}

static int not_locked(int error)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	return err_set(
		-EPERM,
		"memory is not locked (%s, limit %llu KiB): run as root or raise RLIMIT_MEMLOCK",
		strerror(error), (unsigned long long)limit.rlim_cur >> 10);
}

/* A limit that suffices now would let later allocations fail, so that there must be none. */
int place_lock_all(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY && geteuid() != 0)
		return not_locked(EPERM);
	return mlockall(MCL_CURRENT | MCL_FUTURE) ? not_locked(errno) : 0;
}

int place_lock(const void *memory, size_t bytes)
{
	return mlock(memory, bytes) ? not_locked(errno) : 0;
}
