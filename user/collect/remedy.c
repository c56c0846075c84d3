// SPDX-License-Identifier: GPL-2.0-only
#include "collect/remedy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/error.h"
#include "collect/collect.h"
#include "remedy.skel.h"

static int keep(struct remedy_rows *out, const struct remedy_row *row)
{
	struct remedy_row *grown;

	if (out->count == out->room) {
		out->room = out->room ? 2 * out->room : 64;
		grown = realloc(out->rows, out->room * sizeof(*grown));
		if (!grown)
			return err_set(-ENOMEM, "no memory for %zu sockets", out->room);
		out->rows = grown;
	}
	out->rows[out->count++] = *row;
	return 0;
}

/* The kernel hands out whole rows. */
static int read_rows(int fd, struct remedy_rows *out)
{
	struct remedy_row rows[32];
	ssize_t n;
	int rc = 0;

	while (!rc && (n = read(fd, rows, sizeof(rows))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || n % (ssize_t)sizeof(rows[0]))
			return err_set(n < 0 ? -errno : -EIO,
				       "cannot read the kernel's list of TCP sockets: %s",
				       strerror(n < 0 ? errno : EIO));
		for (size_t i = 0; !rc && i < (size_t)n / sizeof(rows[0]); i++)
			rc = keep(out, &rows[i]);
	}
	return rc;
}

static int iterate(struct remedy_bpf *skel, struct remedy_rows *out)
{
	struct bpf_link *link = bpf_program__attach_iter(skel->progs.remedy_tcp, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1, rc;

	rc = fd < 0 ? err_set(-errno, "this kernel cannot go through its TCP sockets: %s",
			      strerror(errno))
		    : read_rows(fd, out);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return rc;
}

int remedy_sockets(int level, int option, uint16_t port, const struct remedy_wish *wishes,
		   size_t count, struct remedy_rows *out)
{
	struct remedy_bpf *skel;
	int rc = 0;

	collect_quiet();
	skel = remedy_bpf__open_and_load();
	if (!skel)
		return err_set(
			-errno,
			"live sockets cannot be read or changed: %s; that takes root and a kernel since 5.16",
			strerror(errno));
	skel->bss->config = (struct remedy_config){
		.level = level, .option = option, .port = port, .apply = count > 0};
	for (size_t i = 0; !rc && i < count; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.wanted), &wishes[i].socket,
					&wishes[i].value, BPF_ANY))
			rc = err_set(-errno, "too many sockets at once: at most %d",
				     REMEDY_SOCKETS_MAX);
	if (!rc)
		rc = iterate(skel, out);
	remedy_bpf__destroy(skel);
	return rc;
}
