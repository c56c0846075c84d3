// SPDX-License-Identifier: GPL-2.0-only
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/view.h"

struct style view_style(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct style style;

	setlocale(LC_CTYPE, "");
	style.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term &&
		       strcmp(term, "dumb") != 0;
	style.micro = style.utf8 ? "µs" : "us";
	style.arrow = style.utf8 ? "→" : "->";
	return style;
}
