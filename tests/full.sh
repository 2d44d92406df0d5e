#!/bin/sh
# usage: full.sh [--list] [PART...]    `make check-full`: what `make test` thins out, with nothing left out, in parts of a few minutes
# of CPU time each, at most fifteen. PART: a name, a shell pattern, or a number in the --list; such a part runs again. Without
# any: all that have not run on this tree, so that a run that was stopped goes on. What each gave is kept in $BUILD/full until a source
# changes. Last line, over all parts that have run on this tree: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build} MAKE=${MAKE:-make} LOG=${BUILD:-build}/full
LIMIT=${LIMIT:-900} # CPU seconds of a part with what it has to build first
export BUILD MAKE LOG
host=$BUILD/hostcuda
mkdir -p "$LOG" || exit 2

# ---- the table: name | what make builds for it | command ----
# slices NAME COUNT TARGETS COMMAND: the tests that a command runs, in so many parts
slices() {
    i=1
    while [ $i -le "$2" ]; do
        echo "$1-$i|$3|$4 --slice $i/$2"
        i=$((i + 1))
    done
}
suites() { # VARIANT SLICES MODE ORDER
    slices "suite-$1-$3" "$2" "$host/$1/suite" "tests/hostcuda_suite.sh $host/$1/suite $3 $4"
}
cuda_table() {
    for variant in $1; do
        programs="$host/translate $host/plain/bugs $host/$variant/bugs"
        for p in test_lang test_blas test_wmma user_main; do programs="$programs $host/$variant/$p"; done
        echo "hostcuda-$variant|$programs|tests/hostcuda/selftest/run_all.sh full $host $variant"
        case $variant in
        plain)
            echo "hostcuda-truth|$host/truth/beliefs.host $host/truth/beliefs_numbers.host|tests/hostcuda/selftest/truth.sh $host host"
            echo "check-gpu|$host/plain/check_gpu $host/plain/lt_probe $host/plain/suite|tests/check_gpu_page.sh"
            echo "suite-plain-grids|$host/plain/suite|env HCU_PROTECT=0 tests/hostcuda_suite.sh $host/plain/suite lazy forward --full"
            for arch in 75 80 89 90; do
                echo "suite-plain-names-$arch|$host/plain/suite|env HCU_EPILOGUES=names HCU_ARCH=$arch tests/hostcuda_suite.sh $host/plain/suite"
            done
            suites plain 1 lazy forward
            suites plain 1 eager reverse
            suites plain 1 random shuffle ;;
        vg) # looks for what msan finds, 20 times slower: its suites are for machines without clang
            case " $1 " in
            *" msan "*) ;;
            *) suites vg 16 lazy forward ;;
            esac ;;
        *)
            suites "$variant" 4 lazy forward
            suites "$variant" 4 random shuffle ;;
        esac
    done
    [ -z "$1" ] || slices cuda-verbs 16 for-cuda-verbs "tests/cuda_verbs.sh --full"
    [ -z "$2" ] || printf '%s\n' "hostcuda-missing||printf '%s\n' $2 '0 passed, 0 failed, 1 skipped'"
}
table() {
    slices unit 4 "$BUILD/test_cpu" "${RUN_ENV:-} $BUILD/test_cpu --full"
    for pair in 'gcc g++' 'clang clang++'; do echo "compile-${pair% *}||tests/compile.sh --full $pair"; done
    echo "examples|all for-examples-full|tests/examples.sh --full"
    echo "labs|$BUILD/tests/impl.o|env IMPL=$BUILD/tests/impl.o tools/labs.sh check"
    echo "page|$BUILD/digits|tests/page.sh --full"
    echo "install|for-install|tests/install.sh --full"
    echo "builds||tests/builds.sh --full"
    for half in host nvcc; do echo "retrofit-$half||tests/retrofit.sh --full $half"; done
    echo "state|$BUILD/state_files|$BUILD/state_files --full $BUILD/state_files.tmp"
    echo "process|$BUILD/process|$BUILD/process"
    echo "fuzz|for-fuzz|tests/fuzz.sh"
    echo "fingerprint||tests/fingerprint.sh CHECK"
    sass=
    [ -z "${NVCC:-}" ] || [ -z "${NVDISASM:-}" ] || sass="$BUILD/sass/sass $BUILD/sass/thin/sm_90.sass"
    echo "selftest|$BUILD/selftest $sass|tests/selftest.sh --full"
    echo "style||tests/style.sh"
    echo "headers||tests/headers.sh"
    echo "readme||tests/readme_snippets.sh"
    echo "torch||tests/torch.sh --full"
    echo "notebook|for-notebook|tests/notebook.sh"
    for target in $(tests/zig.sh --list); do echo "zig-$target||tests/zig.sh $target"; done
    for place in elsewhere one sixteen loaded again; do echo "place-$place||tests/places.sh $place"; done
    # `make test` on processors with less than this one (tests/hide)
    for hidden in avx512 avx2; do echo "without-$hidden||env -u LOG MAKEFLAGS= $MAKE test HIDE=$hidden BUILD=$BUILD/hide-$hidden"; done
    if [ -n "${NVCC:-}" ]; then
        [ -z "${NVDISASM:-}" ] || for a in 75 86 90 120; do echo "sass-$a|for-sass $BUILD/sass/sm_$a.sass|tests/sass.sh $a"; done
        [ -z "${NVDISASM:-}" ] || echo "sass-reads|for-sass $BUILD/sass/sm_90.sass|tests/sass.sh --reads"
        [ -z "${NVDISASM:-}" ] || echo "sass-fast|for-sass|tests/sass.sh --fast 90"
        [ -z "${NVDISASM:-}" ] || echo "sass-gpt2|for-sass-gpt2|tests/sass_gpt2.sh 90"
        [ -z "${NVDISASM:-}" ] || echo "suite-sass|$host/plain/suite $BUILD/sass/sm_90.sass|env HCU_PROTECT=0 HCU_SASS=$BUILD/sass/sm_90 tests/hostcuda_suite.sh $host/plain/suite lazy forward"
        if [ -n "${CUDA_HOME:-}" ] && "$NVCC" --help | grep -q -e --Ofast-compile; then
            echo "suite-ptx|$host/plain/suite $BUILD/sass/mid/sm_90.ptx|tests/suite_ptx.sh $host/plain/suite $BUILD/sass/mid/sm_90.ptx"
        fi
        echo "failing-driver||tests/failing_driver.sh"
        "$NVCC" --list-gpu-arch | sed 's/.*_//' | xargs -n 3 | while read -r archs; do echo "ptx-${archs%% *}||tests/ptx.sh $archs"; done
    fi
    cuda_table "${HCU_VARIANTS:-}" "${HCU_SKIPPED:-}"
}

# ---- running them ----
sources() { find src amp.h amp_cuda.cuh Makefile README.md CHANGELOG.md docs examples tests tools bench -type f | sort | xargs cksum | cksum; }

# wanted NUMBER NAME PART...: is it one of the PARTs?
wanted() {
    number=$1 name=$2
    shift 2
    for part; do
        # shellcheck disable=SC2254 # a pattern is wanted
        case $part in "$number") return 0 ;; esac
        case $name in $part) return 0 ;; esac
    done
    return 1
}

# build TARGETS: as a job of its own, its messages kept for the part
build() {
    # shellcheck disable=SC2086 # some words
    [ -z "$1" ] || MAKEFLAGS='' $MAKE -s -j2 $1 >"$LOG/build.log" 2>&1 || { cat "$LOG/build.log"; return 1; }
}

table >"$LOG/table"
if [ "${1:-}" = --list ]; then
    cut -d'|' -f1 "$LOG/table"
    exit 0
fi
tree=$(sources)
if [ "$tree" != "$(cat "$LOG/tree" 2>/dev/null)" ]; then
    rm -f "$LOG"/*.sum
    echo "$tree" >"$LOG/tree"
fi
number=0 ran=''
while IFS='|' read -r name targets command <&3; do
    number=$((number + 1))
    if [ $# = 0 ]; then
        [ ! -e "$LOG/$name.sum" ] || continue
    else
        wanted $number "$name" "$@" || continue
    fi
    ran="$ran $name"
    if build "$targets"; then
        # shellcheck disable=SC2086
        eval tests/run.sh part "$name" "$LIMIT" $command
    else
        tests/run.sh part "$name" "$LIMIT" sh -c 'cat "$0"; exit 1' "$LOG/build.log"
    fi
done 3<"$LOG/table"
[ -n "$ran" ] || [ $# = 0 ] || { echo "no part is called $*: see --list" >&2; exit 2; }

names='' left=''
for name in $(cut -d'|' -f1 "$LOG/table"); do
    if [ -e "$LOG/$name.sum" ]; then names="$names $name"; else left="$left $name"; fi
done
[ -z "$left" ] || echo "not run on this tree yet:$left"
rm -f "$LOG/all.times"
# shellcheck disable=SC2086
tests/run.sh sum $names
