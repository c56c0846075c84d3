// SPDX-License-Identifier: GPL-2.0-only
/* attach OBJECT: its BPF programs are attached, where they say, until the standard input ends. */
#include <stdio.h>
#include <unistd.h>

#include <bpf/libbpf.h>

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *program;
	char byte;

	if (!object || bpf_object__load(object)) {
		fprintf(stderr, "attach: cannot load an object\n");
		return 1;
	}
	bpf_object__for_each_program (program, object)
		if (!bpf_program__attach(program))
			return 1; /* libbpf has said why */
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
