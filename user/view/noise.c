// SPDX-License-Identifier: GPL-2.0-only
#include "view/noise.h"

#include <inttypes.h>
#include <stdio.h>

static void print_irqs(const struct noise *noise, const char *side, uint64_t trips)
{
	for (int i = 0; i < noise->irq_count; i++)
		if (noise_irq_counts(&noise->irqs[i], trips))
			printf("note: %" PRIu64 " interrupts of %s on the %s's CPU %d\n",
			       noise->irqs[i].count, noise->irqs[i].name, side, noise->irqs[i].cpu);
}

static void print_side(const struct noise *noise, const char *side, uint64_t trips)
{
	if (!noise->known)
		return;
	if (noise->migrations > 0)
		printf("note: the %s moved to another CPU %" PRId64
		       " times; --%s-cpu keeps it in place\n",
		       side, noise->migrations, side);
	if (noise_steal_counts(noise))
		printf("note: the hypervisor took %" PRIu64 " ms of the %s's CPUs\n",
		       noise->steal_ns / 1000000, side);
	print_irqs(noise, side, trips);
}

void view_noise_text(const struct noise_report *noise, uint64_t trips)
{
	if (noise->shared_cpu >= 0)
		printf("note: both ends ran on CPU %d\n", noise->shared_cpu);
	print_side(&noise->client, "client", trips);
	print_side(&noise->server, "server", trips);
}

static json_t *side_json(const struct noise *noise)
{
	return noise->known ? noise_to_json(noise) : json_null();
}

json_t *view_noise_json(const struct noise_report *noise)
{
	return json_pack("{s:o, s:o, s:o}", "shared_cpu",
			 noise->shared_cpu < 0 ? json_null() : json_integer(noise->shared_cpu),
			 "client", side_json(&noise->client), "server", side_json(&noise->server));
}
