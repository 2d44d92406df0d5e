#!/bin/sh
# usage: fuzz.sh            part `fuzz` of `make test`: the fuzzers that are built, on a fixed small set of seeds
#        fuzz.sh SECONDS    `make fuzz`: each of them for so long; on the CPU with libFuzzer, ASan and UBSan if $FUZZ_CC (clang) has them,
#                           else with what $CC has; on the host CUDA runtime from seeds, with ASan and UBSan if it can be built so
# tests/fuzz.h says what a fuzzer is. SEED: where seeds begin (of the day). What libFuzzer has found interesting stays in
# $BUILD/fuzz/NAME.corpus; a finding is a file in $BUILD/fuzz, and   FUZZER FILE   runs it again. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build} CC=${CC:-cc} FUZZ_CC=${FUZZ_CC:-clang} MAKE=${MAKE:-make}
host=$BUILD/hostcuda
export HCU_PROTECT="${HCU_PROTECT:-0}" ASAN_OPTIONS=allocator_may_return_null=1:detect_odr_violation=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
FUZZ_DIR=$work # of state files; in memory where there is such a place, for each save waits for the disk
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    FUZZ_DIR=$(mktemp -d /dev/shm/amp-fuzz.XXXXXX) || exit 2
    trap 'rm -rf "$work" "$FUZZ_DIR"' EXIT
fi
export FUZZ_DIR
passed=0 failed=0 skipped=0

# add NAME: the counts at the end of $work/out
add() {
    line=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$work/out" | tail -n 1)
    # shellcheck disable=SC2046
    set -- "$1" $(printf '%s\n' "${line:-0 1 0}" | sed 's/[^0-9 ]//g')
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    sed "s|^|$1: |" "$work/out" | grep -v -E ': [0-9]+ passed, [0-9]+ failed' | tail -n 40
}
skip() {
    echo "skipped: $1"
    skipped=$((skipped + 1))
}
# seeds NAME PROGRAM ARGUMENT...: from seeds
seeds() {
    name=$1 program=$2
    shift 2
    if [ ! -x "$program" ]; then
        skip "$name: needs hostcuda: a C++ compiler and the CUDA headers"
        return
    fi
    case $program in "$host"/*) run='' ;; *) run=${RUN_ENV:-} ;; esac
    $run "$program" "$@" >"$work/out" 2>&1
    add "$name"
}

# ---- make test ----
if [ $# = 0 ]; then
    seeds api "$BUILD/fuzz_api" --seed 1 --count 60
    seeds state "$BUILD/fuzz_state" --seed 1 --count 150
    seeds cuda-api "$host/plain/fuzz_api" --seed 1 --count 8
    if [ -e tests/fuzz_programs.c ]; then
        seeds programs "$BUILD/fuzz_programs" --seed 1 --count 6
        seeds cuda-programs "$host/plain/fuzz_programs" --seed 1 --count 6
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
fi

# ---- make fuzz ----
seconds=$1 seed=${SEED:-$(date +%Y%m%d000000)} fuzz=$BUILD/fuzz
mkdir -p "$fuzz" || exit 2
sanitize='-g -O1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow'
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return n && d[0] > 300; }' >"$work/try.c"
# shellcheck disable=SC2086
if "$FUZZ_CC" $sanitize -fsanitize=fuzzer "$work/try.c" -o "$work/try" >/dev/null 2>&1; then
    compiler=$FUZZ_CC engine=-fsanitize=fuzzer flags='-DFUZZ_LIBFUZZER -fsanitize=fuzzer-no-link'
else
    compiler=$CC engine='' flags=''
    skip "libFuzzer: $FUZZ_CC does not have it: the bytes are made from seeds"
    echo 'int main(void) { return 0; }' >"$work/try.c"
    "$CC" $sanitize "$work/try.c" -o "$work/try" >/dev/null 2>&1 || { sanitize='-g -O1'; skip "sanitizers: $CC does not have them"; }
fi
# shellcheck disable=SC2086
newer() { [ -n "$(find amp.h tests/fuzz*.[ch] tests/impl.c -newer "$1" 2>/dev/null)" ] || [ ! -e "$1" ]; }
for source in tests/fuzz_*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2086
    if newer "$fuzz/$name"; then
        newer "$fuzz/impl.o" && { "$compiler" -std=c99 -I. $sanitize $flags -c tests/impl.c -o "$fuzz/impl.o" || exit 1; }
        "$compiler" -std=c99 -I. -Itests $sanitize $flags $engine -DFUZZ_SANITIZED "$source" "$fuzz/impl.o" -lm -pthread -o "$fuzz/$name" || exit 1
    fi
    if [ -n "$engine" ]; then
        mkdir -p "$fuzz/$name.corpus"
        longest=16384
        [ "$name" != fuzz_state ] || longest=512
        if "$fuzz/$name" -seed="$(($(date +%s) % 100000))" -max_total_time="$seconds" -max_len=$longest -len_control=0 -rss_limit_mb=4096 -timeout=120 \
            -artifact_prefix="$fuzz/" -print_final_stats=1 "$fuzz/$name.corpus" >"$work/out" 2>&1; then
            echo "$name, libFuzzer: $(sed -n 's/.*number_of_executed_units: */inputs: /p; s/.*new_units_added: */new: /p' "$work/out" | tr '\n' ' ')"
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            grep -E -A12 'FAILED|ERROR|runtime error|artifact' "$work/out" | head -n 40
        fi
    else
        seeds "$name" "$fuzz/$name" --seed "$seed" --seconds "$seconds"
    fi
done
variant=plain
if $MAKE -s "$host/asan/fuzz_api" >/dev/null 2>&1; then variant=asan; fi
for source in tests/fuzz_*.c; do
    grep -q FUZZ_CUDA "$source" || continue
    name=$(basename "$source" .c)
    $MAKE -s "$host/$variant/$name" >"$work/build" 2>&1 || rm -f "$host/$variant/$name"
    seeds "cuda-$name, $variant" "$host/$variant/$name" --seed "$seed" --seconds "$seconds"
done
mv fuzz-[0-9]* "$fuzz/" 2>/dev/null
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
