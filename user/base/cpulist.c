// SPDX-License-Identifier: GPL-2.0-only
#include "base/cpulist.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int parse_number(const char **text, unsigned long *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	*value = strtoul(*text, &end, 10);
	*text = end;
	return errno || *value >= CPU_SETSIZE ? -ERANGE : 0;
}

static int parse_range(const char **text, cpu_set_t *set)
{
	unsigned long first = 0, last;
	int rc = parse_number(text, &first);

	last = first;
	if (!rc && **text == '-') {
		(*text)++;
		rc = parse_number(text, &last);
	}
	if (rc)
		return rc;
	if (last < first)
		return -EINVAL;
	for (; first <= last; first++)
		CPU_SET(first, set);
	return 0;
}

int cpulist_parse(const char *what, const char *text, cpu_set_t *set)
{
	const char *at = text;
	int rc = 0;

	CPU_ZERO(set);
	while (!rc && *at) {
		rc = parse_range(&at, set);
		if (!rc && *at == ',' && at[1])
			at++;
		else if (!rc && *at)
			rc = -EINVAL;
	}
	if (rc == -ERANGE)
		return err_set(rc, "%s: '%s' has a CPU above %d", what, text, CPU_SETSIZE - 1);
	return rc ? err_set(rc, "%s: '%s' is not a list of CPUs such as 0-3,8", what, text) : 0;
}

void cpulist_format(const cpu_set_t *set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 16 < size; cpu++) {
		int last = cpu;

		if (!CPU_ISSET(cpu, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		used += (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", cpu);
		if (last > cpu)
			used += (size_t)snprintf(text + used, size - used, "-%d", last);
		cpu = last;
	}
}

/* The groups from the last, which holds the lowest CPUs, to the first. */
int cpumask_parse(const char *text, cpu_set_t *set)
{
	const char *end = text + strlen(text);

	CPU_ZERO(set);
	if (end == text)
		return -EINVAL;
	for (int base = 0; end > text; base += 32) {
		const char *start = end;
		unsigned long bits;

		while (start > text && start[-1] != ',')
			start--;
		if (end == start || end - start > 8 ||
		    strspn(start, "0123456789abcdefABCDEF") < (size_t)(end - start))
			return -EINVAL;
		bits = strtoul(start, NULL, 16);
		for (int bit = 0; bit < 32; bit++)
			if (bits >> bit & 1) {
				if (base + bit >= CPU_SETSIZE)
					return -EINVAL;
				CPU_SET(base + bit, set);
			}
		if (start == text)
			break;
		end = start - 1;
		if (end == text)
			return -EINVAL;
	}
	return 0;
}

void cpumask_format(const cpu_set_t *set, char *text, size_t size)
{
	size_t used = 0;

	for (int group = CPU_SETSIZE / 32 - 1; group >= 0 && used + 10 < size; group--) {
		uint32_t bits = 0;

		for (int bit = 0; bit < 32; bit++)
			if (CPU_ISSET(32 * group + bit, set))
				bits |= 1U << bit;
		if (used)
			used += (size_t)snprintf(text + used, size - used, ",%08x", bits);
		else if (bits || !group)
			used += (size_t)snprintf(text + used, size - used, "%x", bits);
	}
}

int cpulist_nth(const cpu_set_t *set, int n)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && n-- == 0)
			return cpu;
	return -1;
}

void cpulist_subtract(cpu_set_t *set, const cpu_set_t *less)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, less))
			CPU_CLR(cpu, set);
}
