# SPDX-License-Identifier: GPL-2.0-only
# make help lists the targets.

PREFIX  ?= /usr/local
DESTDIR ?=
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
PYTHON  ?= /usr/bin/python3
SUDO    := $(if $(filter-out 0,$(shell id -u)),sudo,)
PACKAGES := libbpf libelf ncursesw jansson libcap libmnl liburing nettle

# make SAN=1: the same tree with AddressSanitizer and UndefinedBehaviorSanitizer, built beside it.
SAN     ?=
BUILD   := $(if $(SAN),build/san,build)
SAN_FLAGS := $(if $(SAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined \
                         -fno-omit-frame-pointer)
# Reports of all processes of a test run, also of those whose exit status or stderr nobody reads.
REPORTS := $(if $(SAN),$(CURDIR)/$(BUILD)/reports)
SAN_ENV := $(if $(SAN),ASAN_OPTIONS=exitcode=99:log_path=$(REPORTS)/report \
                       UBSAN_OPTIONS=exitcode=99:print_stacktrace=1:log_path=$(REPORTS)/report)

Q       := $(if $(V),,@)
SUB     := --no-print-directory $(if $(V),,-s)
say     = $(if $(V),,@printf '  %-8s%s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)')

WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wwrite-strings -Wformat=2 -Wvla
CFLAGS  ?= -O2 -g
ALL_CFLAGS = $(CFLAGS) -std=c17 -D_GNU_SOURCE -pthread $(WARN) $(SAN_FLAGS) \
           -Iuser -Ibpf -I$(BUILD)/gen $(shell pkg-config --cflags $(PACKAGES))
ALL_LDLIBS = $(shell pkg-config --libs $(PACKAGES)) -lm -pthread $(SAN_FLAGS)

BPF_ARCH := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')
MULTIARCH = $(shell gcc -print-multiarch 2>/dev/null)
BPF_CFLAGS = -O2 -g -target bpf -mcpu=v3 -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter \
           -D__TARGET_ARCH_$(BPF_ARCH) -Ibpf $(if $(MULTIARCH),-I/usr/include/$(MULTIARCH)) \
           $(shell pkg-config --cflags libbpf)

BPF_SRC  := $(wildcard bpf/*.bpf.c)
BPF_OBJ  := $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.o)
# These are loaded by themselves, all other programs are one object.
ALONE    := calls lose remedy
ALONE_OBJ := $(ALONE:%=$(BUILD)/bpf/%.o)
SKEL     := $(BUILD)/gen/layover.skel.h $(ALONE:%=$(BUILD)/gen/%.skel.h)
USER_SRC := $(wildcard user/*.c user/*/*.c)
USER_OBJ := $(USER_SRC:user/%.c=$(BUILD)/obj/%.o)
LIB_OBJ  := $(filter-out $(BUILD)/obj/main.o,$(USER_OBJ))
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
TOOL_SRC := $(wildcard tools/*.c)
TOOL_BIN := $(TOOL_SRC:tools/%.c=$(BUILD)/tools/%)
TEST_BPF_SRC := $(wildcard tests/net/bpf/*.bpf.c)
TEST_BPF_OBJ := $(TEST_BPF_SRC:tests/net/bpf/%.bpf.c=$(BUILD)/test-bpf/%.o)
TEST_BIN_SRC := $(wildcard tests/net/*.c)
TEST_BIN := $(TEST_BIN_SRC:tests/net/%.c=$(BUILD)/test-bin/%)
MAN_SRC  := $(wildcard docs/man/*.rst)
MAN      := $(MAN_SRC:docs/man/%.rst=$(BUILD)/man/%) $(BUILD)/man/layover-causes.7

.PHONY: all build help deps demo test test-unit test-needs test-net test-tui test-vm vm-deps vm-shell \
        bench screenshots lint lint-sources format install clean man
.DELETE_ON_ERROR:
.SECONDARY:

all: deps
	$(Q)$(MAKE) $(SUB) build

build: $(BUILD)/layover

help:
	@echo 'make demo      install what is missing, build, run a ping-pong in a lab, print its split'
	@echo 'make test      install what is missing, build, run unit and kernel tests (root or sudo)'
	@echo 'make test-vm   fetch kernels and QEMU, test on other kernels and NICs in VMs'
	@echo 'make vm-shell  a shell in such a VM; KERNEL=6.1|6.12|7.2 NIC=virtio|igb'
	@echo 'make vm-deps   only fetch kernels and QEMU for them'
	@echo 'make           install what is missing and build build/layover'
	@echo 'make bench     probe effect on/off, and the driver side by side with its peers'
	@echo 'make screenshots  draw the pictures of docs/top.md anew'
	@echo 'make lint      formatting, static analysis, shell scripts, function length'
	@echo 'make format    put the C files into the form that lint wants'
	@echo 'make install   into PREFIX=$(PREFIX), under DESTDIR'
	@echo 'make deps      only install what is missing'
	@echo 'make clean     remove build/'
	@echo 'SAN=1 builds and tests with ASan and UBSan (make test SAN=1); V=1 shows the commands.'

deps:
	$(Q)tools/deps.sh build

demo: all
	$(Q)$(SUDO) $(BUILD)/layover ping --lab -t 3

# --- kernel side ---------------------------------------------------------------------------------

$(BUILD)/bpf/%.o: bpf/%.bpf.c
	$(call say,BPF)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/bpf/layover.linked: $(filter-out $(ALONE_OBJ),$(BPF_OBJ))
	$(call say,LINK)
	$(Q)$(BPFTOOL) gen object $@ $^

$(ALONE:%=$(BUILD)/bpf/%.linked): $(BUILD)/bpf/%.linked: $(BUILD)/bpf/%.o
	$(call say,LINK)
	$(Q)$(BPFTOOL) gen object $@ $^

$(BUILD)/gen/%.skel.h: $(BUILD)/bpf/%.linked
	$(call say,SKEL)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# --- user side -----------------------------------------------------------------------------------

$(BUILD)/obj/%.o: user/%.c | $(SKEL)
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/layover: $(USER_OBJ)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

$(BUILD)/unit/%: tests/unit/%.c $(LIB_OBJ)
	$(call say,UNIT)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB_OBJ) $(ALL_LDLIBS) -lcmocka

$(BUILD)/tools/%: tools/%.c
	$(call say,TOOL)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< -lm -pthread

$(BUILD)/test-bin/%: tests/net/%.c $(LIB_OBJ)
	$(call say,TEST)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(LIB_OBJ) $(ALL_LDLIBS)

$(BUILD)/test-bpf/%.o: tests/net/bpf/%.bpf.c
	$(call say,BPF)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/man/%: docs/man/%.rst
	$(call say,MAN)
	$(Q)mkdir -p $(@D)
	$(Q)rst2man $< $@

# Keys, columns and colours come from the program's own tables.
TOP_TABLES := user/tui/keys.def user/view/top_columns.c user/model/top.c
$(BUILD)/man/layover-top.1: docs/man/layover-top.1.rst tools/top_man.py $(TOP_TABLES)
	$(call say,MAN)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) tools/top_man.py $< $(TOP_TABLES) >$@.rst && rst2man $@.rst $@

$(BUILD)/man/layover-causes.7: bpf/abi/causes.def tools/causes.py
	$(call say,MAN)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) tools/causes.py $< >$@.rst && rst2man $@.rst $@

man: $(MAN)

-include $(BPF_OBJ:.o=.d) $(USER_OBJ:.o=.d) $(UNIT_BIN:=.d) $(TOOL_BIN:=.d) $(TEST_BPF_OBJ:.o=.d) $(TEST_BIN:=.d)

# --- tests ---------------------------------------------------------------------------------------

PYTEST = $(PYTHON) -m pytest -q

test:
	$(Q)tools/deps.sh build test
	$(Q)$(MAKE) $(SUB) test-unit
	$(Q)$(MAKE) $(SUB) test-net
	$(Q)$(MAKE) $(SUB) test-tui

# With SAN=1, any report fails the run, whatever the tests made of it. Some tests are not root.
NO_OLD_REPORTS = $(if $(SAN),$(Q)rm -rf $(REPORTS) && mkdir -m 1777 $(REPORTS))
NO_NEW_REPORTS = $(if $(SAN),; rc=$$?; ! cat $(REPORTS)/* 2>/dev/null && exit $$rc)

test-unit: $(UNIT_BIN)
	$(NO_OLD_REPORTS)
	$(Q)(for t in $(UNIT_BIN); do env $(SAN_ENV) $$t || exit 1; done) $(NO_NEW_REPORTS)

TEST_NEEDS = $(BUILD)/layover $(TEST_BPF_OBJ) $(TEST_BIN) $(TOOL_BIN)

test-needs: $(TEST_NEEDS)

# What a person sees: through a pseudo-terminal.
test-tui: $(TEST_NEEDS)
	$(NO_OLD_REPORTS)
	$(Q)$(SUDO) env $(SAN_ENV) LAYOVER_BUILD=$(BUILD) \
	    tests/rooted.sh tools/retest.sh $(PYTEST) tests/tui \
	    $(NO_NEW_REPORTS)

test-net: $(TEST_NEEDS)
	$(NO_OLD_REPORTS)
	$(Q)$(SUDO) env $(SAN_ENV) LAYOVER_BUILD=$(BUILD) LAYOVER_NO_SKIP=$(LAYOVER_NO_SKIP) \
	    tests/rooted.sh tools/retest.sh $(PYTEST) tests/net \
	    $(NO_NEW_REPORTS)

# The kernels and QEMU stay in the caller's cache, also when root fetches them.
VM_CACHE = XDG_CACHE_HOME="$${XDG_CACHE_HOME:-$$HOME/.cache}"

vm-deps:
	$(Q)tools/deps.sh vm
	$(Q)$(SUDO) env $(VM_CACHE) $(PYTHON) tools/vm/lab.py deps

# All of them, or what is named: make test-vm VM_TESTS="tests/vm/test_matrix.py -k doctor"
VM_TESTS ?= tests/vm
# An emulated machine takes one CPU; a document is written by one process.
VM_WORKERS = $(if $(LAYOVER_DOCS),1,2)

test-vm:
	$(Q)tools/deps.sh build test
	$(Q)$(MAKE) $(SUB) vm-deps
	$(Q)$(MAKE) $(SUB) $(TEST_NEEDS)
	$(Q)$(SUDO) env $(VM_CACHE) LAYOVER_BUILD=$(BUILD) LAYOVER_NO_SKIP=$(LAYOVER_NO_SKIP) \
	    LAYOVER_DOCS=$(LAYOVER_DOCS) PYTEST='$(PYTEST)' tools/vm/test.sh $(VM_WORKERS) $(VM_TESTS)

vm-shell:
	$(Q)tools/deps.sh build
	$(Q)$(MAKE) $(SUB) vm-deps
	$(Q)$(MAKE) $(SUB) $(BUILD)/layover
	$(Q)$(SUDO) env $(VM_CACHE) $(PYTHON) tools/vm/lab.py shell --kernel $(or $(KERNEL),6.12) \
	    --nic $(or $(NIC),virtio) --files $(BUILD)/layover

# The pictures in docs/, from a terminal that is drawn.
screenshots: $(BUILD)/layover
	$(Q)tools/deps.sh build test docs
	$(Q)$(SUDO) env LAYOVER_BUILD=$(BUILD) $(PYTHON) tools/screenshots.py docs/top

bench:
	$(Q)tools/deps.sh build bench
	$(Q)$(MAKE) $(SUB) $(BUILD)/layover $(TOOL_BIN)
	$(Q)$(SUDO) env LAYOVER_BUILD=$(BUILD) $(PYTHON) tools/bench.py

lint:
	$(Q)tools/deps.sh build test lint
	$(Q)$(MAKE) $(SUB) lint-sources

# Apart, because make asks pkg-config and gcc for the flags before the first line of a recipe runs.
lint-sources: $(SKEL)
	$(Q)LINT_BUILD='$(BUILD)' LINT_CFLAGS='$(ALL_CFLAGS)' LINT_BPF_CFLAGS='$(BPF_CFLAGS)' \
	    PYTHON='$(PYTHON)' tools/lint.sh

format:
	$(Q)tools/deps.sh lint
	$(Q)find user bpf tests tools -name '*.[ch]' | xargs clang-format -i

install: $(BUILD)/layover $(MAN)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin share/man/man1 share/man/man7)
	install -m 755 $(BUILD)/layover $(DESTDIR)$(PREFIX)/bin/layover
	install -m 644 $(filter %.1,$(MAN)) $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(filter %.7,$(MAN)) $(DESTDIR)$(PREFIX)/share/man/man7/

clean:
	rm -rf build
