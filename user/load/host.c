// SPDX-License-Identifier: GPL-2.0-only
#include "load/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "load/clock.h"

enum { BOOT_ID_MAX = 64 };

/* "" when it cannot be read: then this host is taken for another one by everybody. */
static void read_boot_id(char *id)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	id[0] = '\0';
	if (!file)
		return;
	if (!fgets(id, BOOT_ID_MAX, file))
		id[0] = '\0';
	id[strcspn(id, "\n")] = '\0';
	fclose(file);
}

void host_describe(json_t *frame)
{
	char id[BOOT_ID_MAX];
	struct utsname name;

	read_boot_id(id);
	uname(&name);
	json_object_set_new(frame, "boot_id", json_string(id));
	json_object_set_new(frame, "kernel", json_string(name.release));
	json_object_set_new(frame, "clock_ns", json_integer((json_int_t)clock_ns()));
}

bool host_is_this(const json_t *frame, uint64_t asked_ns)
{
	const char *theirs = json_string_value(json_object_get(frame, "boot_id"));
	json_int_t clock = json_integer_value(json_object_get(frame, "clock_ns"));
	char ours[BOOT_ID_MAX];

	read_boot_id(ours);
	return theirs && ours[0] && !strcmp(ours, theirs) && clock >= (json_int_t)asked_ns &&
	       clock <= (json_int_t)clock_ns();
}
