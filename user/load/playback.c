// SPDX-License-Identifier: GPL-2.0-only
#include "load/playback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "load/clock.h"

#define SECONDS_MAX (24 * 3600.0)

static int append(struct playback *p, double seconds, uint64_t bytes)
{
	struct playback_line line = {(uint64_t)(seconds * 1e9 + 0.5), (uint32_t)bytes};

	if (!(p->count & (p->count - 1))) { /* a power of two: full */
		size_t room = p->count ? 2 * p->count : 1;
		void *more = realloc(p->lines, room * sizeof(*p->lines));

		if (!more)
			return err_set(-ENOMEM, "no memory for %zu lines", room);
		p->lines = more;
	}
	p->lines[p->count++] = line;
	return 0;
}

static int read_line(struct playback *p, const char *text, uint64_t max_bytes)
{
	unsigned long long bytes = 0;
	double seconds = 0;
	char rest;

	text += strspn(text, " \t\r\n");
	if (!*text || *text == '#')
		return 0;
	if (sscanf(text, "%lf , %llu %c", &seconds, &bytes, &rest) != 2)
		return err_set(-EINVAL, "it is not 'SECONDS,BYTES'");
	if (!(seconds >= 0 && seconds <= SECONDS_MAX) || bytes < 1 || bytes > max_bytes)
		return err_set(-ERANGE, "times are 0 to %.0f s, sizes 1 to %llu bytes (-m)",
			       SECONDS_MAX, (unsigned long long)max_bytes);
	if (p->count && (uint64_t)(seconds * 1e9 + 0.5) < p->lines[p->count - 1].at_ns)
		return err_set(-EINVAL, "its time lies before the line above");
	return append(p, seconds, bytes);
}

int playback_read(const char *path, uint64_t max_bytes, struct playback *p)
{
	FILE *file = fopen(path, "re");
	unsigned long number = 0;
	char line[256], why[200];
	int rc = 0;

	*p = (struct playback){0};
	if (!file)
		return err_set(-errno, "cannot read '%s': %s", path, strerror(errno));
	while (!rc && fgets(line, sizeof(line), file)) {
		number++;
		rc = read_line(p, line, max_bytes);
	}
	fclose(file);
	if (rc) {
		snprintf(why, sizeof(why), "%s", err_text(rc));
		rc = err_set(rc, "line %lu of '%s': %s", number, path, why);
	} else if (!p->count) {
		rc = err_set(-EINVAL, "'%s' has no line 'SECONDS,BYTES'", path);
	}
	if (rc)
		playback_free(p);
	return rc;
}

void playback_free(struct playback *p)
{
	free(p->lines);
	*p = (struct playback){0};
}
