#!/bin/sh
# usage: zig.sh --list | TARGET...    amp for machines that are not here, by the C compiler and the headers of `python3 -m ziglang` (PyPI).
# For each TARGET: every example of C and the unit suite compile and link, without a warning; on macOS, whose headers hide more than others,
# whatever the program asks of POSIX (see tests/compile.sh). What this machine can run is run: the unit suite without a context and
# on one of the CPU, and digits.c in one or two modes, which have to give README's numbers. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
top=$PWD
build=${BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
# has MODULE: in $python
has() {
    for python in "$build/tools/bin/python3" "${PYTHON:-python3}"; do
        if "$python" -c "import $1" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

# target | what runs its programs: nothing for this machine's own, - for none | contexts of the unit suite
table() {
    cat <<'TABLE'
aarch64-macos|-|
x86_64-macos|-|
x86_64-windows-gnu|wine64|host cpu-2
aarch64-windows-gnu|-|
x86_64-linux-musl||host cpu-2
aarch64-linux-musl|qemu-aarch64-static|host cpu-2
riscv64-linux-musl|qemu-riscv64-static|host cpu-2
wasm32-wasi|wasmtime|host cpu-scalar
TABLE
}
if [ "${1:-}" = --list ]; then
    table | cut -d'|' -f1
    exit 0
fi
if ! has ziglang; then
    echo "skipped: no ziglang (pip install ziglang)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
zig=$python

passed=0 failed=0 skipped=0
pass() { passed=$((passed + 1)); }
fail() { # WHAT FILE: its last lines
    failed=$((failed + 1))
    echo "FAILED $1"
    tail -n "${3:-12}" "$2" | sed 's/^/    /'
}
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }
have() { command -v "$1" >/dev/null 2>&1; }

# must WHAT COMMAND...: succeeds without a word
must() {
    what=$1
    shift
    if "$@" >"$out/said" 2>&1 && [ ! -s "$out/said" ]; then pass; return 0; fi
    fail "$target: $what" "$out/said"
    return 1
}
cc() { "$zig" -m ziglang cc -target "$target" -std=c99 -Wall -Wextra -Werror -I. "$@"; }

# Compiled and linked: the programs in $out.
compiles() {
    echo 'int f(int x) { int unused; return x; }' >"$out/warns.c"
    if (must "a warning" cc -c "$out/warns.c" -o "$out/warns.o") >"$out/refused"; then fail "$target: it accepts a warning" "$out/warns.c"; else pass; fi
    must "tests/impl.c" cc -O2 -c tests/impl.c -o "$out/impl.o" || return 1
    objects=$out/impl.o
    for f in tests/main.c tests/test_*.c tests/cuda_stub.c; do
        o=$out/$(basename "$f" .c).o
        # shellcheck disable=SC2086
        must "$f" cc -O1 $clock -Itests -DREF_OWN_FMAF -c "$f" -o "$o" # zig's fmaf rounds twice
        objects="$objects $o"
    done
    # shellcheck disable=SC2086 # some words
    must "the unit suite links" cc $stack $objects -o "$out/suite$exe" $emulated -lm $threads || return 1
    must "digits.c in one file" cc -O2 examples/digits.c -o "$out/digits$exe" -lm $threads || return 1
    for f in examples/*.c; do
        case $f in */ranks_mpi.c | */digits.c) continue ;; esac # the first needs MPI
        linked="-DAMP_LINKED $out/impl.o"
        grep -q AMP_LINKED "$f" || linked='' # it has the implementation
        # shellcheck disable=SC2086
        must "$f" cc -O1 $clock "$f" $linked $emulated -o "$out/$(basename "$f" .c)$exe" -lm $threads
    done
    return 0
}
# Its headers hide flock, and snprintf from who asks for POSIX of before 2001.
asks() {
    for year in 1 2 199309L 199506L 200112L 200809L 202405L; do asked="${asked:-} -D_POSIX_C_SOURCE=$year"; done
    for macro in $asked -D_XOPEN_SOURCE=500 -D_XOPEN_SOURCE=600 -D_XOPEN_SOURCE=700 -D_GNU_SOURCE -D_DEFAULT_SOURCE; do
        must "$macro" cc -O0 -DAMP_NO_SIMD "$macro" -c tests/impl.c -o "$out/asks.o"
    done
}

# not node 20, which dies when garbage is collected beside a program whose memory grows
wasmtime() {
    program=$1
    shift
    "$python" "$top/tests/zig_wasi.py" "$program" "$@"
}

# The rows of the plain setting: mode accuracy loss skipped scale. In README.md or where it sends its readers; and as digits prints them.
readme_rows() {
    cat README.md docs/*.md | awk -F'|' '/^\| mode \| test accuracy \|/ { table++ }
        table == 1 && NF > 5 { split($2, name, /[ :]+/); print name[2], $3 + 0 "%", $4 + 0, $5 + 0, $6 }' | awk '{ print $1, $2, $3, $4, $5 }'
}
printed_rows() { awk '$1 ~ /^(fp32|fp16-|amp-|bf16)/ && $2 ~ /%$/ { print $1, $2 + 0 "%", $3 + 0, $4, $5 }' "$1" | tr -d '\r'; }

runs() { # RUNNER CONTEXT...: of the suite
    runner=$1
    shift
    for context; do
        (cd "$out" && $runner "./suite$exe" --context "$context") >"$out/suite.log" 2>&1
        status=$?
        counts=$(tr -d '\r' <"$out/suite.log" | grep '^[1-9][0-9]* passed, 0 failed, [0-9]* skipped$')
        if [ $status = 0 ] && [ -n "$counts" ]; then
            passed=$((passed + ${counts%% *}))
            echo "$target: unit suite on $context: $counts"
        else fail "$target: unit suite on $context, exit status $status" "$out/suite.log" 40; fi
    done
    modes=fp16-pure,amp-dynamic
    case $runner in qemu-*) modes=amp-dynamic ;; esac # a minute each
    if ! (cd "$out" && $runner "./digits$exe" --net plain --threads 1 --mode "$modes") >"$out/digits.log" 2>&1; then
        fail "$target: digits" "$out/digits.log"
        return
    fi
    printed_rows "$out/digits.log" >"$out/printed"
    readme_rows | grep -E "^($(echo "$modes" | tr , '|')) " >"$out/readme"
    if [ -s "$out/readme" ] && cmp -s "$out/readme" "$out/printed"; then
        pass
        echo "$target: digits: README's numbers"
    else
        cat "$out/readme" >>"$out/printed"
        fail "$target: digits, and README's rows" "$out/printed"
    fi
}

export ZIG_GLOBAL_CACHE_DIR="$build/zig/cache" ZIG_LOCAL_CACHE_DIR="$build/zig/cache"
export WINEDEBUG=-all WINEPREFIX="$build/zig/wine"
PATH=$PATH:/usr/lib/wine # where Debian's wine64 puts the program
for target; do
    line=$(table | grep "^$target|") || { echo "zig.sh: no target $target: see --list" >&2; exit 2; }
    out=${BUILD:-build}/zig/$target exe='' threads=-pthread stack='' clock='' emulated=''
    case $target in
    *-windows-*) exe=.exe ;;
    wasm*)
        threads=''
        stack=-Wl,-z,stack-size=8388608
        clock=-D_WASI_EMULATED_PROCESS_CLOCKS emulated=-lwasi-emulated-process-clocks ;; # of clock()
    esac
    mkdir -p "$out" || exit 2
    compiles || continue
    case $target in *-macos) asks ;; esac
    line=${line#*|} runner=${line%%|*}
    case $runner in
    -) continue ;;
    wasmtime) has wasmtime ;;
    *) have "${runner:-true}" ;;
    esac
    # shellcheck disable=SC2181
    if [ $? = 0 ]; then
        # shellcheck disable=SC2086 # some words
        runs "$runner" ${line#*|}
    else skip "$target compiles and links; no $runner to run it"; fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
