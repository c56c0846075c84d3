// SPDX-License-Identifier: GPL-2.0-only
#include "view/flood.h"

#include <stdio.h>

#include "base/version.h"
#include "load/clock.h"
#include "view/noise.h"
#include "view/view.h"

/* Rates between two counts, over `seconds`. */
struct rates {
	double seconds, sent, received, bits, rx_packets, rx_kilobytes;
	int64_t missing;
};

static struct rates rates_of(const struct flood_counts *a, const struct flood_counts *b,
			     double seconds)
{
	return (struct rates){
		.seconds = seconds,
		.sent = (double)(b->sent - a->sent) / seconds,
		.received = (double)(b->received - a->received) / seconds,
		.bits = (double)(b->received_bytes - a->received_bytes) * 8 / seconds,
		.rx_packets = (double)(b->rx_packets - a->rx_packets) / seconds,
		.rx_kilobytes = (double)(b->rx_bytes - a->rx_bytes) / 1024 / seconds,
	};
}

static uint64_t lost(const struct flood *f)
{
	const struct flood_counts *all =
		&f->last; /* since the start: nothing is under way at its two ends */

	return plan_datagrams(f->plan) && all->sent > all->received ? all->sent - all->received : 0;
}

void view_flood_head(const struct flood *f)
{
	printf("layover %s: load by %s, %llu bytes, %u flow%s in %u thread%s", LAYOVER_VERSION,
	       plan_proto_names[f->plan->proto], (unsigned long long)f->plan->bytes, f->flows,
	       f->flows == 1 ? "" : "s", f->threads, f->threads == 1 ? "" : "s");
	if (f->plan->rate)
		printf(", %llu/s", (unsigned long long)f->plan->rate);
	printf("\n\n%8s %11s %11s %11s %12s %12s\n", "s", "sent/s", "received/s", "Mbit/s",
	       "rxpck/s", "rxkB/s");
}

static void print_rates(const char *label, const struct rates *r)
{
	printf("%8s %11.0f %11.0f %11.2f %12.0f %12.1f\n", label, r->sent, r->received,
	       r->bits / 1e6, r->rx_packets, r->rx_kilobytes);
	fflush(stdout);
}

void view_flood_row(const struct flood_counts *since, const struct flood_counts *from,
		    const struct flood_counts *to)
{
	struct rates rates = rates_of(from, to, (double)(to->at_ns - from->at_ns) / NS_PER_S);
	char label[16];

	snprintf(label, sizeof(label), "%.1f", (double)(to->at_ns - since->at_ns) / NS_PER_S);
	print_rates(label, &rates);
}

int view_flood_text(const struct flood *f)
{
	struct rates rates = rates_of(&f->first, &f->last, (double)f->duration_ns / NS_PER_S);

	print_rates("all", &rates);
	printf("\n%llu messages sent, %llu received in %.3f s",
	       (unsigned long long)(f->last.sent - f->first.sent),
	       (unsigned long long)(f->last.received - f->first.received), rates.seconds);
	if (plan_datagrams(f->plan))
		printf("\nLost since the start: %llu of %llu", (unsigned long long)lost(f),
		       (unsigned long long)f->last.sent);
	putchar('\n');
	if (f->last.interface[0])
		printf("rxpck/s and rxkB/s: what the interface %s counted at the server.\n",
		       f->last.interface);
	view_noise_text(&f->noise, f->last.received);
	return 0;
}

static json_t *object_of(const struct flood *f)
{
	struct rates r = rates_of(&f->first, &f->last, (double)f->duration_ns / NS_PER_S);
	json_t *out = view_json_header("load");

	json_object_set_new(out, "load",
			    json_pack("{s:s, s:I, s:i, s:i, s:I, s:I}", "protocol",
				      plan_proto_names[f->plan->proto], "bytes",
				      (json_int_t)f->plan->bytes, "flows", f->flows, "threads",
				      f->threads, "rate", (json_int_t)f->plan->rate, "duration_ns",
				      (json_int_t)f->duration_ns));
	json_object_set_new(out, "sent",
			    json_pack("{s:I, s:f}", "messages",
				      (json_int_t)(f->last.sent - f->first.sent), "per_second",
				      r.sent));
	json_object_set_new(
		out, "received",
		json_pack("{s:I, s:I, s:f, s:f}", "messages",
			  (json_int_t)(f->last.received - f->first.received), "bytes",
			  (json_int_t)(f->last.received_bytes - f->first.received_bytes),
			  "per_second", r.received, "bits_per_second", r.bits));
	json_object_set_new(out, "lost",
			    plan_datagrams(f->plan) ? json_integer((json_int_t)lost(f))
						    : json_null());
	json_object_set_new(out, "noise", view_noise_json(&f->noise));
	if (!f->last.interface[0])
		return out;
	json_object_set_new(
		out, "interface",
		json_pack("{s:s, s:I, s:I, s:f, s:f}", "name", f->last.interface, "rx_packets",
			  (json_int_t)(f->last.rx_packets - f->first.rx_packets), "rx_bytes",
			  (json_int_t)(f->last.rx_bytes - f->first.rx_bytes), "rxpck_per_second",
			  r.rx_packets, "rxkB_per_second", r.rx_kilobytes));
	return out;
}

int view_flood_json(const struct flood *f)
{
	return view_json_print(object_of(f));
}
