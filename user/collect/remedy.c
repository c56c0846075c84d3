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

/* One of the two programs. NULL with errno. */
static struct remedy_bpf *load(bool iterator)
{
	struct remedy_bpf *skel;
	int rc;

	collect_quiet();
	skel = remedy_bpf__open();
	if (!skel)
		return NULL;
	bpf_program__set_autoload(iterator ? skel->progs.remedy_new : skel->progs.remedy_tcp,
				  false);
	rc = remedy_bpf__load(skel);
	if (!rc)
		return skel;
	remedy_bpf__destroy(skel);
	errno = -rc;
	return NULL;
}

int remedy_sockets(int level, int option, uint16_t port, const struct remedy_wish *wishes,
		   size_t count, struct remedy_rows *out)
{
	struct remedy_bpf *skel;
	int rc = 0;

	skel = load(true);
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

/* --- new connections ----------------------------------------------------------------------------- */

struct remedy_new {
	struct remedy_bpf *skel;
	struct bpf_link *link;
	struct ring_buffer *ring;
	int (*take)(void *arg, const struct remedy_row *row);
	void *arg;
};

static int take_row(void *arg, void *data, size_t size)
{
	struct remedy_new *fresh = arg;

	return size == sizeof(struct remedy_row) ? fresh->take(fresh->arg, data) : 0;
}

int remedy_new_open(struct remedy_new **out, int level, int option, int32_t value, uint16_t port,
		    int cgroup)
{
	struct remedy_new *fresh = calloc(1, sizeof(*fresh));
	int rc;

	if (!fresh)
		return err_set(-ENOMEM, "no memory to watch for new connections");
	fresh->skel = load(false);
	if (fresh->skel) {
		fresh->skel->bss->config = (struct remedy_config){
			.level = level, .option = option, .port = port, .value = value};
		fresh->ring = ring_buffer__new(bpf_map__fd(fresh->skel->maps.changed), take_row,
					       fresh, NULL);
	}
	if (fresh->ring)
		fresh->link = bpf_program__attach_cgroup(fresh->skel->progs.remedy_new, cgroup);
	*out = fresh;
	if (fresh->link)
		return 0;
	rc = -errno;
	remedy_new_close(fresh);
	*out = NULL;
	return err_set(
		rc,
		"new connections cannot be changed: %s; that takes root and cgroups of version 2",
		strerror(-rc));
}

int remedy_new_poll(struct remedy_new *fresh, int wait_ms,
		    int (*take)(void *arg, const struct remedy_row *row), void *arg)
{
	int rc;

	fresh->take = take;
	fresh->arg = arg;
	rc = ring_buffer__poll(fresh->ring, wait_ms);
	return rc >= 0 || rc == -EINTR ? 0 : rc;
}

uint64_t remedy_new_untold(const struct remedy_new *fresh)
{
	return fresh->skel->bss->untold;
}

void remedy_new_close(struct remedy_new *fresh)
{
	if (!fresh)
		return;
	bpf_link__destroy(fresh->link);
	ring_buffer__free(fresh->ring);
	remedy_bpf__destroy(fresh->skel);
	free(fresh);
}
