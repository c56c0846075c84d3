// SPDX-License-Identifier: GPL-2.0-only
#include "view/names.h"

#include <stdio.h>
#include <string.h>

#include "load/address.h"

const char *names_task(const char *comm, char *text)
{
	size_t n = strnlen(comm, FLOW_COMM);

	for (size_t i = 0; i < n; i++)
		text[i] = comm[i] >= ' ' && comm[i] < 0x7f ? comm[i] : '?';
	text[n] = '\0';
	if (!n)
		snprintf(text, NAMES_COMM_MAX, "?");
	return text;
}

const char *names_comm(const struct flow_record *who, char *text)
{
	return names_task(who->comm, text);
}

const char *names_address(const struct flow_record *who, bool remote, char *text)
{
	return address_format_bytes(who->family, remote ? who->remote : who->local,
				    who->bound_ifindex, remote ? who->remote_port : who->local_port,
				    text);
}
