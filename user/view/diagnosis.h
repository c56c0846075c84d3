/* SPDX-License-Identifier: GPL-2.0-only */
/* What `diagnose` shows of one flow. */
#ifndef LAYOVER_VIEW_DIAGNOSIS_H
#define LAYOVER_VIEW_DIAGNOSIS_H

#include <jansson.h>

#include "model/causes.h"

/* How a flow is called, on either end: "python3[1234]", "client", addresses. */
struct flow_names {
	const char *client, *server;           /* programs */
	const char *client_addr, *server_addr; /* addresses with ports */
};

void view_diagnosis_text(const struct live_flow *flow, const struct diagnosis *d,
			 const struct flow_names *names);

/* A new reference. */
json_t *view_diagnosis_json(const struct live_flow *flow, const struct diagnosis *d,
			    const struct flow_names *names);

#endif
