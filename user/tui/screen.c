// SPDX-License-Identifier: GPL-2.0-only
#include "tui/screen.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/error.h"

enum { CELLS_MAX = 1024, ESCAPE_MS = 25 };

/* What an ink is with 256 colours, with 8, and with attributes alone. */
struct ink_info {
	short fore256, back256, fore8, back8;
	attr_t mono;
	bool bold;
};

/* Where 256 colours are: 16 … 231 the cube, 232 … 255 greys. -1: the terminal's own. */
static const struct ink_info inks[INKS] = {
	[INK_PLAIN] = {-1, -1, -1, -1, A_NORMAL, false},
	[INK_TITLE] = {255, 24, COLOR_WHITE, COLOR_BLUE, A_REVERSE, true},
	[INK_TAB] = {250, 236, COLOR_WHITE, -1, A_NORMAL, false},
	[INK_TAB_ON] = {231, 31, COLOR_BLACK, COLOR_CYAN, A_REVERSE, true},
	[INK_HEAD] = {110, -1, COLOR_CYAN, -1, A_BOLD, true},
	[INK_HEAD_ON] = {221, -1, COLOR_YELLOW, -1, A_BOLD | A_UNDERLINE, true},
	[INK_SELECTED] = {231, 238, COLOR_BLACK, COLOR_WHITE, A_REVERSE, false},
	[INK_KEY] = {231, -1, COLOR_WHITE, -1, A_BOLD, true},
	[INK_KEY_TEXT] = {231, 31, COLOR_BLACK, COLOR_CYAN, A_REVERSE, false},
	[INK_DIM] = {244, -1, COLOR_WHITE, -1, A_DIM, false},
	[INK_STRONG] = {231, -1, COLOR_WHITE, -1, A_BOLD, true},
	[INK_ALARM] = {203, -1, COLOR_RED, -1, A_BOLD, true},
	[INK_GROUP + GROUP_SOCKET] = {75, -1, COLOR_BLUE, -1, A_NORMAL, false},
	[INK_GROUP + GROUP_HELD] = {203, -1, COLOR_RED, -1, A_REVERSE, false},
	[INK_GROUP + GROUP_QDISC] = {176, -1, COLOR_MAGENTA, -1, A_NORMAL, false},
	[INK_GROUP + GROUP_NET] = {44, -1, COLOR_CYAN, -1, A_NORMAL, false},
	[INK_GROUP + GROUP_SOFTIRQ] = {179, -1, COLOR_YELLOW, -1, A_NORMAL, false},
	[INK_GROUP + GROUP_WAKEUP] = {107, -1, COLOR_GREEN, -1, A_NORMAL, false},
	[INK_GROUP + GROUP_APP] = {252, -1, COLOR_WHITE, -1, A_NORMAL, false},
	[INK_HEAT + 0] = {24, -1, COLOR_BLUE, -1, A_NORMAL, false},
	[INK_HEAT + 1] = {31, -1, COLOR_CYAN, -1, A_NORMAL, false},
	[INK_HEAT + 2] = {71, -1, COLOR_GREEN, -1, A_NORMAL, false},
	[INK_HEAT + 3] = {178, -1, COLOR_YELLOW, -1, A_NORMAL, false},
	[INK_HEAT + 4] = {208, -1, COLOR_MAGENTA, -1, A_NORMAL, false},
	[INK_HEAT + 5] = {203, -1, COLOR_RED, -1, A_BOLD, true},
};

static void mix_inks(struct screen *s)
{
	for (int i = 0; i < INKS; i++) {
		const struct ink_info *ink = &inks[i];
		bool many = s->colours && COLORS >= 256;

		s->attributes[i] = ink->mono;
		if (!s->colours)
			continue;
		init_pair((short)(i + 1), many ? ink->fore256 : ink->fore8,
			  many ? ink->back256 : ink->back8);
		s->attributes[i] = (unsigned long)(COLOR_PAIR(i + 1)) | (ink->bold ? A_BOLD : 0);
	}
}

int screen_open(struct screen *s, const struct screen_wish *wish)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	setlocale(LC_CTYPE, "");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(-ENOTTY, "this is not a terminal; 'layover top -b' prints text");
	if (!newterm(NULL, stdout, stdin))
		return err_set(
			-ENOTTY,
			"the terminal '%s' is not known here; try TERM=vt100, or 'layover top -b'",
			term ? term : "");
	s->open = true;
	s->utf8 = !wish->ascii && !strcmp(nl_langinfo(CODESET), "UTF-8");
	s->colours = !wish->mono && !(no_colour && *no_colour) && has_colors();
	if (s->colours) {
		start_color();
		s->colours = use_default_colors() == OK && COLORS >= 8 && COLOR_PAIRS > INKS;
	}
	mix_inks(s);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED, NULL);
	mouseinterval(0);
	getmaxyx(stdscr, s->lines, s->columns);
	return 0;
}

void screen_close(struct screen *s)
{
	if (!s->open)
		return;
	s->open = false;
	mousemask(0, NULL);
	endwin();
}

void screen_leave(struct screen *s)
{
	if (s->open)
		endwin();
}

void screen_return(struct screen *s)
{
	refresh();
	screen_resized(s);
}

void screen_resized(struct screen *s)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	resizeterm(size.ws_row, size.ws_col);
	getmaxyx(stdscr, s->lines, s->columns);
	clearok(stdscr, TRUE);
}

void screen_clear(struct screen *s)
{
	(void)s;
	erase();
}

void screen_show(struct screen *s, bool all)
{
	(void)s;
	if (all)
		clearok(stdscr, TRUE);
	refresh();
}

/* --- text ---------------------------------------------------------------------------------------- */

/* What has no width (control characters, what is no character) becomes a question mark. */
static int to_cells(const char *text, wchar_t *cells, int *width)
{
	mbstate_t state = {0};
	int n = 0;

	*width = 0;
	while (*text && n < CELLS_MAX - 1) {
		size_t bytes = mbrtowc(&cells[n], text, MB_CUR_MAX, &state);
		int w;

		if (bytes == (size_t)-1 || bytes == (size_t)-2) {
			cells[n] = L'?';
			bytes = 1;
			state = (mbstate_t){0};
		}
		w = wcwidth(cells[n]);
		if (w < 1) {
			cells[n] = L'?';
			w = 1;
		}
		*width += w;
		text += bytes;
		n++;
	}
	cells[n] = L'\0';
	return n;
}

int screen_width(const char *text)
{
	wchar_t cells[CELLS_MAX];
	int width;

	to_cells(text, cells, &width);
	return width;
}

static void put(const struct screen *s, int y, int x, int width, enum ink ink, const char *text,
		bool right)
{
	wchar_t cells[CELLS_MAX];
	int have, n, before;

	if (y < 0 || y >= s->lines || x >= s->columns)
		return;
	if (width > s->columns - x)
		width = s->columns - x;
	if (width <= 0)
		return;
	n = to_cells(text, cells, &have);
	while (have > width && n > 0) {
		have -= wcwidth(cells[--n]);
		if (have < width) { /* room for what says that there was more */
			cells[n++] = s->utf8 ? L'…' : L'+';
			have++;
			break;
		}
	}
	before = right ? width - have : 0;
	attrset((attr_t)s->attributes[ink]);
	mvhline(y, x, ' ' | (chtype)s->attributes[ink], width);
	mvaddnwstr(y, x + before, cells, n);
	attrset(A_NORMAL);
}

void screen_put(const struct screen *s, int y, int x, int width, enum ink ink, const char *text)
{
	put(s, y, x, width, ink, text, false);
}

void screen_put_right(const struct screen *s, int y, int x, int width, enum ink ink,
		      const char *text)
{
	put(s, y, x, width, ink, text, true);
}

int screen_add(const struct screen *s, int y, int x, enum ink ink, const char *text)
{
	int width = screen_width(text);

	put(s, y, x, width, ink, text, false);
	return x + width;
}

void screen_line(const struct screen *s, int y, int x, enum ink ink, const char *format, ...)
{
	char text[CELLS_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(s, y, x, s->columns - x, ink, text, false);
}

void screen_fill(const struct screen *s, int y, int x, int n, enum ink ink, const char *utf8,
		 char ascii)
{
	char one[2] = {ascii, '\0'};

	for (int i = 0; i < n; i++)
		put(s, y, x + i, 1, ink, s->utf8 ? utf8 : one, false);
}

/* --- drawings ------------------------------------------------------------------------------------ */

void screen_bar(const struct screen *s, int y, int x, int width, const float *share)
{
	double sum = 0;
	int at = 0;

	for (int g = 0; g < TOP_GROUPS; g++) {
		int until;

		sum += (double)share[g];
		until = (int)(sum * width + 0.5);
		/* Letters where colours cannot tell. */
		screen_fill(s, y, x + at, (until < width ? until : width) - at,
			    (enum ink)(INK_GROUP + g),
			    s->colours ? "█" : (char[]){top_group_infos[g].letter, '\0'},
			    top_group_infos[g].letter);
		at = until;
	}
}

void screen_gauge(const struct screen *s, int y, int x, int width, enum ink ink, double share)
{
	static const char *const parts[] = {"▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	int eighths = (int)(share * width * 8 + 0.5);

	if (eighths > width * 8)
		eighths = width * 8;
	screen_fill(s, y, x, eighths / 8, ink, "█", '#');
	if (s->utf8 && eighths % 8 && eighths / 8 < width)
		screen_fill(s, y, x + eighths / 8, 1, ink, parts[eighths % 8 - 1], ' ');
}

void screen_spark(const struct screen *s, int y, int x, int width, enum ink ink,
		  const float *values, int count)
{
	static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = " .:-=+*#@";
	float most = 0;

	if (width > count)
		width = count;
	for (int i = count - width; i < count; i++)
		most = values[i] > most ? values[i] : most;
	for (int i = 0; i < width; i++) {
		float v = values[count - width + i];
		int level = v <= 0 || most <= 0 ? 0 : 1 + (int)(v / most * 7.0f + 0.5f);

		level = level > 8 ? 8 : level;
		screen_fill(s, y, x + i, 1, ink, levels[level], ascii[level]);
	}
}

/* --- input and output ---------------------------------------------------------------------------- */

int screen_key(void)
{
	int key = getch();

	return key == ERR ? -1 : key;
}

bool screen_mouse(int *y, int *x)
{
	MEVENT event;

	if (getmouse(&event) != OK)
		return false;
	*y = event.y;
	*x = event.x;
	return true;
}

void screen_print(const struct screen *s, FILE *file)
{
	wchar_t line[CELLS_MAX];
	char text[CELLS_MAX * 4];
	size_t bytes;

	for (int y = 0; y < s->lines; y++) {
		int n = mvinnwstr(y, 0, line, s->columns < CELLS_MAX ? s->columns : CELLS_MAX - 1);

		if (n < 0)
			continue;
		line[n] = L'\0';
		bytes = wcstombs(text, line, sizeof(text) - 1);
		if (bytes == (size_t)-1)
			continue;
		while (bytes && text[bytes - 1] == ' ')
			bytes--;
		text[bytes] = '\0';
		fprintf(file, "%s\n", text);
	}
}
