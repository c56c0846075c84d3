#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What `make lint` runs: formatting, function length, static analysis of C, shell scripts, Python.
# make says in LINT_BUILD where gen/*.skel.h are, in LINT_CFLAGS and LINT_BPF_CFLAGS how to compile.
# Every check runs, whatever the others found; the exit status is 1 when one of them found something.
set -u
cd "$(dirname "$0")/.." || exit 2

python=${PYTHON:-/usr/bin/python3}
max_lines=80
failed=""
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The files of these patterns (find's words), in a stable order.
files() {
    find user bpf tests tools "$@" | LC_ALL=C sort
}

check() {
    name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        printf '  %-8s%s\n' LINT "$name"
    else
        printf '  %-8s%s: failed\n' LINT "$name"
        cat "$work/out"
        failed="$failed $name"
    fi
}

formatting() {
    files -name '*.[ch]' | xargs clang-format --dry-run -Werror
}

# The formatting puts a function's braces, and nothing else's, alone into column 1.
function_length() {
    # shellcheck disable=SC2016 # awk expands them
    files -name '*.[ch]' | xargs awk -v max="$max_lines" '
        FNR == 1 { open = 0 }
        /^\{$/ { open = FNR }
        /^\}$/ && open {
            if (FNR - open - 1 > max) {
                printf "%s:%d:%s: %d lines, %d are allowed\n", FILENAME, at, name, FNR - open - 1, max
                bad = 1
            }
            open = 0
        }
        /^[A-Za-z_].*\(/ {
            at = FNR
            name = $0
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
        }
        END { exit bad }'
}

# Which files: standard input; with which compiler flags: the arguments. What is found goes to stdout.
tidy() {
    # shellcheck disable=SC2016 # the inner shell expands them
    flags="$*" xargs -n 3 -P "$(nproc)" sh -c '
        found=$(clang-tidy --quiet "$@" -- $flags 2>&1) || { printf "%s\n" "$found"; exit 1; }' sh
}

tidy_user() {
    # What bpftool generated is not ours: a copy that says so comes first.
    for skel in "$LINT_BUILD"/gen/*.skel.h; do
        { echo '// NOLINTBEGIN'; cat "$skel"; echo '// NOLINTEND'; } >"$work/${skel##*/}"
    done
    files -name '*.c' -not -name '*.bpf.c' | tidy "-I$work" "$LINT_CFLAGS"
}

tidy_bpf() {
    files -name '*.bpf.c' | tidy "$LINT_BPF_CFLAGS"
}

cpp_check() {
    cppcheck --quiet --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
        --suppress=normalCheckLevelMaxBranches --suppress='nullPointerOutOfMemory:tests/*' \
        --std=c11 -j "$(nproc)" -Iuser -Ibpf user tools tests -i tests/net/bpf
}

shell_scripts() {
    { files -name '*.sh'; echo .ci/run; } | xargs shellcheck
}

python_compiles() {
    PYTHONPYCACHEPREFIX="$work" "$python" -m compileall -q -f tests tools
}

python_names() {
    files -name '*.py' | xargs pyflakes3
}

check 'formatting (clang-format)' formatting
check "functions of at most $max_lines lines" function_length
check 'clang-tidy: user space' tidy_user
check 'clang-tidy: BPF' tidy_bpf
check 'cppcheck' cpp_check
check 'shellcheck' shell_scripts
check 'python compiles' python_compiles
check 'pyflakes' python_names
[ -z "$failed" ]
