// SPDX-License-Identifier: GPL-2.0-only
#include "base/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Read once: a thread that has pinned itself must not hide the other CPUs. */
static const cpu_set_t *allowed(void)
{
	static cpu_set_t set;
	static bool known;

	if (!known) {
		CPU_ZERO(&set);
		if (sched_getaffinity(0, sizeof(set), &set))
			CPU_SET(0, &set);
		known = true;
	}
	return &set;
}

bool cpus_allowed(int cpu)
{
	return cpu >= 0 && cpu < CPUS_MAX && CPU_ISSET(cpu, allowed());
}

int cpus_count(void)
{
	return CPU_COUNT(allowed());
}

int cpus_nth(int n)
{
	n %= cpus_count();
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpus_allowed(cpu) && n-- == 0)
			return cpu;
	return 0;
}

int cpus_other_than(int a, int b)
{
	for (int cpu = CPUS_MAX - 1; cpu >= 0; cpu--)
		if (cpu != a && cpu != b && cpus_allowed(cpu))
			return cpu;
	return -1;
}

void cpus_format_allowed(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPUS_MAX && used + 16 < size; cpu++) {
		int last = cpu;

		if (!cpus_allowed(cpu))
			continue;
		while (cpus_allowed(last + 1))
			last++;
		used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", cpu);
		if (last > cpu)
			used += (size_t)snprintf(text + used, size - used, "-%d", last);
		cpu = last;
	}
}

int cpus_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return err_set(-errno, "cannot run on CPU %d: %s", cpu, strerror(errno));
	return 0;
}
