// SPDX-License-Identifier: GPL-2.0-only
#include "collect/book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/state.h"
#include "base/error.h"

struct book {
	uint32_t entries, used;
	struct top_head *heads;
	struct top_cpu *cpus;
	int hists, parts, unused, done;
	int possible_cpus;
	struct top_part_hist *scratch; /* one per possible CPU */
};

static void *map_whole(int fd, size_t size, int protection)
{
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* The last one in is the first one out: the low ones are used first and again and again. */
static int give_all_out(struct book *b)
{
	for (uint32_t i = b->entries; i-- > 0;)
		if (bpf_map_update_elem(b->unused, NULL, &i, BPF_ANY))
			return err_set(-errno, "cannot give out the heads of the book: %s",
				       strerror(errno));
	return 0;
}

int book_open(struct book **out, const struct collect *collect, uint32_t heads)
{
	struct book *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return err_set(-ENOMEM, "no memory for the book of flows");
	b->entries = heads;
	b->hists = collect_map(collect, "top_hists");
	b->parts = collect_map(collect, "top_parts");
	b->unused = collect_map(collect, "top_free");
	b->done = collect_map(collect, "top_done");
	b->possible_cpus = libbpf_num_possible_cpus();
	b->scratch =
		calloc((size_t)(b->possible_cpus > 0 ? b->possible_cpus : 1), sizeof(*b->scratch));
	b->heads = map_whole(collect_map(collect, "top_heads"), heads * sizeof(*b->heads),
			     PROT_READ | PROT_WRITE);
	b->cpus = map_whole(collect_map(collect, "top_cpus"), CPUS * sizeof(*b->cpus), PROT_READ);
	if (!b->scratch || !b->heads || !b->cpus)
		rc = err_set(-errno, "cannot map the book of flows: %s", strerror(errno));
	else
		rc = give_all_out(b);
	*out = b;
	if (rc) {
		book_close(b);
		*out = NULL;
	}
	return rc;
}

void book_close(struct book *b)
{
	if (!b)
		return;
	if (b->heads)
		munmap(b->heads, b->entries * sizeof(*b->heads));
	if (b->cpus)
		munmap(b->cpus, CPUS * sizeof(*b->cpus));
	free(b->scratch);
	free(b);
}

uint32_t book_used(struct book *b)
{
	while (b->used < b->entries && b->heads[b->used].state != TOP_FREE)
		b->used++;
	return b->used;
}

const struct top_head *book_head(const struct book *b, uint32_t index)
{
	return &b->heads[index];
}

int book_hist(const struct book *b, uint32_t index, struct top_hist *out)
{
	if (!bpf_map_lookup_elem(b->hists, &index, out))
		return 0;
	return err_set(-errno, "cannot read a histogram of the book: %s", strerror(errno));
}

bool book_next_done(struct book *b, uint32_t *index)
{
	return !bpf_map_lookup_and_delete_elem(b->done, NULL, index) && *index < b->entries;
}

int book_give_back(struct book *b, uint32_t index)
{
	static const struct top_hist nothing;
	struct top_head *head = &b->heads[index];

	book_used(b); /* before its state tells nothing any more */
	__atomic_store_n(&head->who.socket, 0, __ATOMIC_RELEASE);
	head->state = TOP_FREE;
	head->slow_ns = 0;
	head->wanted = 0;
	if (!bpf_map_update_elem(b->hists, &index, &nothing, BPF_ANY) &&
	    !bpf_map_update_elem(b->unused, NULL, &index, BPF_ANY))
		return 0;
	return err_set(-errno, "cannot give a head of the book back: %s", strerror(errno));
}

void book_want(struct book *b, uint32_t index, bool all, uint64_t slow_ns)
{
	struct top_head *head = &b->heads[index];

	if (head->wanted != all)
		head->wanted = all;
	if (head->slow_ns != slow_ns)
		head->slow_ns = slow_ns;
}

int book_parts(const struct book *b, struct top_part_hist out[TOP_ROLES * TOP_ROWS])
{
	memset(out, 0, TOP_ROLES * TOP_ROWS * sizeof(*out));
	for (uint32_t row = 0; row < TOP_ROLES * TOP_ROWS; row++) {
		if (bpf_map_lookup_elem(b->parts, &row, b->scratch))
			return err_set(-errno, "cannot read the stages of the book: %s",
				       strerror(errno));
		for (int cpu = 0; cpu < b->possible_cpus; cpu++) {
			out[row].count += b->scratch[cpu].count;
			out[row].sum_ns += b->scratch[cpu].sum_ns;
			for (int i = 0; i < TOP_PART_BINS; i++)
				out[row].bins[i] += b->scratch[cpu].bins[i];
		}
	}
	return 0;
}

const struct top_cpu *book_cpus(const struct book *b)
{
	return b->cpus;
}
