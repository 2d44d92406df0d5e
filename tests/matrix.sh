#!/bin/sh
# The test suite under many compilers, standards, sanitizers and machines.
#
#   tests/matrix.sh               every row that has not run on this tree yet, two at a time
#   tests/matrix.sh 'gcc-*' tsan  only rows with these names (shell patterns), also those that have
#   tests/matrix.sh --list        the rows
#   tests/matrix.sh --install     apt-get install what they use (Debian 12; needs root), then stop
#
# A row builds tests/ with one compiler and its flags and runs it: passed, failed, or skipped with the reason. Its output is kept in
# $BUILD/matrix/NAME.log, its result in NAME.result until a source changes. No row begins after MINUTES=20: run it again, it goes on.
# docs/matrix.md is the table of rows, results and dates. The last line counts rows. JOBS=2 rows run at a time; a program is killed
# after LIMIT=900 seconds.
set -u
packages="gcc g++ clang libclang-rt-dev tcc valgrind musl-tools
 gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user-static
 gcc-mingw-w64-x86-64 wine64 clang-19 clang-22 python3-venv"

# name | compiler | flags | run with ("?x": with x if it does not run by itself) | how much of the suite: all; some: two contexts;
# no-modes: some, without the tests of the floating-point control word, which these tools do not model; bits: conversions.
# The rows ordered-*: one training run, the same bits everywhere (docs/ordered.md). NEON is that of qemu;
# x86-64-avx2 has no AVX-512 (`make test HIDE=avx512` is a part of check-full).
table() {
    cat <<'ROWS'
gcc-c99|gcc|-std=c99 -O1 $W -pedantic||some
gcc-c11|gcc|-std=c11 -O1 $W -pedantic||some
gcc-c17|gcc|-std=c17 -O1 $W -pedantic||some
gcc-c2x|gcc|-std=c2x -O1 $W -pedantic||some
gcc-gnu99|gcc|-std=gnu99 -O2 $W||all
clang-c99|clang|-std=c99 -O1 $W -pedantic||some
clang-c11|clang|-std=c11 -O1 $W -pedantic||some
clang-c17|clang|-std=c17 -O1 $W -pedantic||some
clang-c2x|clang|-std=c2x -O1 $W -pedantic||some
clang-gnu99|clang|-std=gnu99 -O2 $W||all
gcc-O0|gcc|-std=c99 -O0 $W||some
gcc-Os|gcc|-std=c99 -Os $W||all
gcc-O2|gcc|-std=c99 -O2 $W||all
gcc-O3|gcc|-std=c99 -O3 $W||all
gcc-O3-native|gcc|-std=gnu99 -O3 -march=native $W||all
gcc-Ofast|gcc|@fast_row -Ofast||
gcc-fast-math|gcc|@fast_row -O2 -ffast-math -march=native||
gcc-lto|gcc|-std=c99 -O2 -flto $W||all
clang-O0|clang|-std=c99 -O0 $W||some
clang-Os|clang|-std=c99 -Os $W||all
clang-O2|clang|-std=c99 -O2 $W||all
clang-O3|clang|-std=c99 -O3 $W||all
clang-O3-native|clang|-std=gnu99 -O3 -march=native $W||all
clang-Ofast|clang|@fast_row -Ofast||
clang-fast-math|clang|@fast_row -O2 -ffast-math -march=native||
gxx-11|g++|-x c++ -std=c++11 -O1 $W -pedantic||some
gxx-14|g++|-x c++ -std=c++14 -O1 $W -pedantic||some
gxx-17|g++|-x c++ -std=c++17 -O1 $W -pedantic||some
gxx-20|g++|-x c++ -std=c++20 -O1 $W -pedantic||some
clangxx-11|clang++|-x c++ -std=c++11 -O1 $W -pedantic||some
clangxx-14|clang++|-x c++ -std=c++14 -O1 $W -pedantic||some
clangxx-17|clang++|-x c++ -std=c++17 -O1 $W -pedantic||some
clangxx-20|clang++|-x c++ -std=c++20 -O1 $W -pedantic||some
tcc|tcc|||some
no-simd|gcc|-std=c99 -O2 -DAMP_NO_SIMD $W||all
no-threads|gcc|-std=c99 -O2 -DAMP_NO_THREADS $W||all
asan-ubsan-gcc|gcc|-std=c99 -O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all||all
asan-ubsan-clang|clang|-std=c99 -O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all||all
tsan|clang|-std=c99 -O1 -g -fsanitize=thread||all
msan|clang|-std=c99 -O1 -g -fsanitize=memory -fsanitize-memory-track-origins||no-modes
valgrind|gcc|-std=c99 -O1 -g|valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite|no-modes
x86-64-avx2|gcc|-std=c99 -O2 -static $W|qemu-x86_64-static -cpu max|some
x86-64-sse2|gcc|-std=c99 -O2 -static $W|qemu-x86_64-static -cpu qemu64|some
aarch64|aarch64-linux-gnu-gcc|-std=c99 -O2 -static $W|qemu-aarch64-static|some
s390x|s390x-linux-gnu-gcc|-std=c99 -O2 -static $W|qemu-s390x-static|some
i686|i686-linux-gnu-gcc|-std=c99 -O2 -static -msse2 -mfpmath=sse $W|?qemu-i386-static|some
i686-x87|i686-linux-gnu-gcc|-std=c99 -O2 -static -mno-sse -mfpmath=387|?qemu-i386-static|bits
mingw|x86_64-w64-mingw32-gcc|-std=c99 -O2 -static|?wine64|some
musl|musl-gcc|-std=c99 -O2 -static $W||all
weverything|clang|@weverything||some
nvcc-c++14|nvcc|@nvcc_row -std=c++14 -arch=sm_90||
nvcc-c++20|nvcc|@nvcc_row -std=c++20 -arch=sm_90||
nvcc-fast|nvcc|@nvcc_row -std=c++17 -arch=sm_80 --use_fast_math||
nvcc-clang|clang++|@nvcc_row -std=c++17 -arch=sm_90 -ccbin clang++ -Xcompiler -Wno-unused-function||
clang-cuda|clang++-22|@clang_cuda 75 90||
cuda12|python3|@cuda12||
ordered-gcc|gcc|@ordered_row -O2||
ordered-native|gcc|@ordered_row -O3 -march=native||
ordered-fast-math|gcc|@ordered_row -O2 -ffast-math -march=native||
ordered-clang|clang|@ordered_row -O2||
ordered-clang-fast|clang|@ordered_row -O2 -ffast-math -march=native||
ordered-no-simd|gcc|@ordered_row -O2 -DAMP_NO_SIMD||
ordered-neon|aarch64-linux-gnu-gcc|@ordered_row -O2 -static|qemu-aarch64-static|
ordered-s390x|s390x-linux-gnu-gcc|@ordered_row -O2 -static|qemu-s390x-static|
ordered-i686|i686-linux-gnu-gcc|@ordered_row -O2 -static -msse2 -mfpmath=sse|?qemu-i386-static|
ordered-musl|musl-gcc|@ordered_row -O2 -static||
ROWS
    for target in $(tests/zig.sh --list); do echo "zig-$target|python3|@zig_row $target||"; done
    for arch in $("${NVCC:-nvcc}" --list-gpu-arch 2>/dev/null | sed 's/compute_//'); do
        echo "nvcc-sm_$arch|nvcc|@nvcc_row -std=c++17 -arch=sm_$arch||"
    done
}

# shellcheck disable=SC2034 # the table uses it
W="-Wall -Wextra -Werror"
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
out=${BUILD:-build}/matrix
mkdir -p "$out" || exit 2

# tests ask for absurd amounts of memory on purpose
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1
printf '{\n absurd-sizes\n Memcheck:FishyValue\n malloc(size)\n fun:malloc\n}\n' >"$out/valgrind.supp"
export VALGRIND_OPTS="--suppressions=$out/valgrind.supp"
export WINEDEBUG=-all WINEPREFIX="$PWD/$out/wine"
PATH=$PATH:/usr/lib/wine # where Debian's wine64 puts the program

have() { command -v "$1" >/dev/null 2>&1; }
say() { # NAME RESULT REASON, and the result for the sum
    printf '%s\n%s\n%s\n' "$2" "$(date -u +%Y-%m-%d)" "$3" >"$out/$1.result"
    printf '%-18s %-8s %s\n' "$1" "$2" "$3"
}
fail() {
    say "$1" failed "$2 ($out/$1.log)"
    tail -n 15 "$out/$1.log" | sed 's/^/    /'
}

# Runs program $1 with the words $2 before it, on the contexts $3 and the tests named $4 ("" for all), and adds up its counts in `why`.
run_suite() {
    passed=0 skipped=0
    for context in ${3:-all}; do
        for test in ${4:-all}; do
            args=
            [ "$context" = all ] || args="--context $context"
            [ "$test" = all ] || args="$args --filter $test"
            # shellcheck disable=SC2086
            timeout "${LIMIT:-900}" $2 "$1" $args >"$out/$name.run" 2>&1 </dev/null
            rc=$?
            cat "$out/$name.run" >>"$out/$name.log"
            counts=$(tr -d '\r' <"$out/$name.run" | grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' | tail -n 1)
            [ -n "$counts" ] || { why="exit status $rc, no counts"; return 1; }
            [ $rc = 0 ] || { why="$counts, exit status $rc"; return 1; }
            passed=$((passed + ${counts%% *}))
            counts=${counts% skipped}
            skipped=$((skipped + ${counts##* }))
        done
    done
    [ "$passed" -gt 0 ] || { why="no test ran"; return 1; }
    why="$passed tests passed, $skipped skipped"
}

suite="tests/main.c tests/test_*.c tests/cuda_stub.c"

plain_row() {
    # shellcheck disable=SC2086,SC2016
    eval "$cc $flags" -I. -Itests $suite tests/impl.c -o '"$program"' -lm -pthread >"$out/$name.log" 2>&1 || { fail "$name" "does not compile"; return; }
    contexts=
    tests=
    case $env in
    \?*) if timeout 60 "$program" --list >/dev/null 2>&1; then env=; else env=${env#?}; fi ;;
    esac
    # shellcheck disable=SC2086
    have ${env:-true} || { say "$name" skipped "compiles and links; no ${env%% *} to run it"; return; }
    case $much in
    some) contexts="host cpu-2" ;;
    no-modes)
        contexts="host cpu-2"
        # shellcheck disable=SC2086
        tests=$($env "$program" --list | sed 's/.* //; s/\..*/./' | sort -u | grep -v '^modes') ;;
    bits) tests="formats cast finite histogram" ;;
    esac
    run_suite "$program" "$env" "$contexts" "$tests" || { fail "$name" "$why"; return; }
    say "$name" passed "$why"
}

# The implementation with flags that give up IEEE arithmetic; the tests, which compute what is right, without. (What such flags do to
# the inline functions in a user's file is tests/test_modes.c's business.)
fast_row() {
    # shellcheck disable=SC2086
    {
        $cc -std=gnu99 $W "$@" -I. -c tests/impl.c -o "$program.o" && $cc -std=gnu99 -O1 $W -I. -Itests $suite "$program.o" -o "$program" -lm -pthread
    } >"$out/$name.log" 2>&1 || { fail "$name" "does not compile"; return; }
    run_suite "$program" "" "" "" || { fail "$name" "$why"; return; }
    say "$name" passed "$why"
}

# One run, the same bits: the tests of ordered products, with their 40 steps, and 40 steps of examples/digits.c and gpt.c, whose weights hash to
# what an ordinary build here gives. As in fast_row the flags are the implementation's; a program that is compiled without IEEE arithmetic
# cannot promise its own layers. FP8 is in.
forty_steps() { # COMMAND...: the hashes of the weights
    dir=$program.out
    mkdir -p "$dir"
    awk 'BEGIN { for (i = 0; i < 300; i++) print "line " i * i % 97 " of a text that repeats itself" }' >"$dir/text"
    # shellcheck disable=SC2086
    timeout "${LIMIT:-900}" $1 "$2.digits" --ordered --epochs 1 --mode amp-dynamic,bf16,fp8-delayed --out "$dir" 2>>"$out/$name.log" | sed -n 's/ *\(.*\) seed 1: /\1 /p'
    # shellcheck disable=SC2086
    timeout "${LIMIT:-900}" $1 "$2.gpt" --data "$dir/text" --layers 1 --width 32 --context 16 --batch 4 --steps 40 --ordered --sample 0 --out "$dir" \
        --mode fp32,fp16-dynamic,bf16,split,fp8 2>>"$out/$name.log" | grep 'weights after'
}
build_programs() { # COMPILER FLAGS IMPL TARGET
    for p in digits gpt; do
        # shellcheck disable=SC2086
        sed 's/^ *# *define AMP_IMPLEMENTATION.*//' "examples/$p.c" |
            $1 -std=gnu99 -O1 $2 -I. -iquote examples -DAMP_LINKED -x c - -x none "$3" -o "$4.$p" -lm -pthread || return 1
    done
}
ordered_row() {
    machine= # flags of the machine, which the programs need too
    for flag; do case $flag in -static | -msse2 | -mfpmath=sse) machine="$machine $flag" ;; esac; done
    # shellcheck disable=SC2086
    {
        cc -std=gnu99 -O1 -I. -c tests/impl.c -o "$program.here.o" && build_programs cc "" "$program.here.o" "$program.here" &&
            $cc -std=gnu99 $W "$@" -I. -c tests/impl.c -o "$program.o" && build_programs "$cc" "$machine" "$program.o" "$program" &&
            $cc -std=gnu99 -O1 $machine $W -I. -Itests $suite "$program.o" -o "$program" -lm -pthread
    } >"$out/$name.log" 2>&1 || { fail "$name" "does not compile"; return; }
    case $env in
    \?*) if timeout 60 "$program" --list >/dev/null 2>&1; then env=; else env=${env#?}; fi ;;
    esac
    # shellcheck disable=SC2086
    have ${env:-true} || { say "$name" skipped "compiles and links; no ${env%% *} to run it"; return; }
    run_suite "$program" "$env" "" "ordered." || { fail "$name" "$why"; return; }
    want=$(forty_steps "" "$program.here")
    [ "$(echo "$want" | grep -c .)" = 8 ] || { fail "$name" "no 8 runs here"; return; }
    got=$(forty_steps "$env" "$program")
    [ "$got" = "$want" ] || { echo "$want" >>"$out/$name.log"; echo "$got" >>"$out/$name.log"; fail "$name" "other weights"; return; }
    say "$name" passed "8 runs of digits and gpt, 40 steps and more: the weights of this machine; $why"
}

# Every warning that clang has, on the headers, in C and C++. Switched off: two that contradict C99 and C (declarations in the middle,
# pointer arithmetic), holes in structs (those of the public part are the business of tests/compile.sh), and in C++ what a C header cannot
# help (C casts, NULL, C++98).
weverything() {
    for std in c99 c11 c++11 c++17; do
        case $std in c++*) lang=c++ extra="-Wno-c++98-compat-pedantic -Wno-old-style-cast -Wno-zero-as-null-pointer-constant" ;; *) lang=c extra= ;; esac
        # shellcheck disable=SC2086
        clang -x $lang -std=$std -O1 -Weverything -Werror -Wno-padded -Wno-declaration-after-statement -Wno-unsafe-buffer-usage -Wno-unknown-warning-option \
            $extra -I. -c tests/impl.c -o "$program.o" >>"$out/$name.log" 2>&1 || { fail "$name" "warnings with -std=$std"; return; }
    done
    # shellcheck disable=SC2086
    clang++ -O1 -I. -Itests -x c $suite -x none "$program.o" -o "$program" -lm -pthread >>"$out/$name.log" 2>&1 || { fail "$name" "does not link"; return; }
    run_suite "$program" "" "host cpu-2" "" || { fail "$name" "$why"; return; }
    say "$name" passed "0 warnings in c99 c11 c++11 c++17; $why"
}

# The CUDA implementation without a warning, linked with the suite, which then runs on the GPU or finds that there is none. (clang as
# nvcc's host compiler cannot tell the inline functions of a header from the file's own, and so calls them unused.)
nvcc_row() {
    # shellcheck disable=SC2086
    {
        "${NVCC:-nvcc}" -O1 -Werror all-warnings -Xcompiler -Wall,-Wextra "$@" -I. -c tests/cuda_impl.cu -o "$program.cu.o" &&
            cc -std=c99 -O1 -I. -c tests/impl.c -o "$program.o" &&
            for f in ${suite%% tests/cuda_stub.c}; do cc -std=c99 -O1 -I. -Itests -c "$f" -o "$program.$(basename "$f" .c).o" || exit 1; done &&
            "${NVCC:-nvcc}" "$@" "$program".*o -o "$program" -lcublasLt -lm
    } >"$out/$name.log" 2>&1 || { fail "$name" "does not compile without a warning"; return; }
    run_suite "$program" "" "host cuda" "" || { fail "$name" "$why"; return; }
    say "$name" passed "0 warnings; $why"
}

# clang as the compiler of host and device code, with the toolkit that nvcc belongs to, of which clang says that it is newer than those it knows.
clang_cuda() {
    home=$(dirname "$(dirname "$(readlink -f "$(command -v "${NVCC:-nvcc}" || echo none/none)")")")
    [ -d "$home/include" ] || { say "$name" skipped "no CUDA toolkit"; return; }
    flags="-x cuda --cuda-path=$home -std=c++17 -O1 -Wall -Wextra -Werror -Wno-unknown-cuda-version -I. -c tests/cuda_impl.cu"
    for arch; do
        # shellcheck disable=SC2086
        $cc $flags --cuda-device-only --cuda-gpu-arch=sm_$arch -o "$program.cubin" >>"$out/$name.log" 2>&1 || { fail "$name" "sm_$arch"; return; }
    done
    # shellcheck disable=SC2086
    $cc $flags --cuda-host-only -o "$program.o" >>"$out/$name.log" 2>&1 || { fail "$name" "host code"; return; }
    [ ! -s "$out/$name.log" ] || { fail "$name" "it says something"; return; }
    say "$name" passed "$($cc --version | sed -n '1s/.*version \([0-9.]*\).*/clang \1/p'), CUDA $("${NVCC:-nvcc}" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p'): 0 errors, 0 warnings for sm_$(echo "$*" | sed 's/ / and sm_/g') and the host"
}

# CUDA 12: NVIDIA's headers and ptxas from PyPI, and clang as the compiler of host and device code, for nvcc 12 is not on PyPI.
cuda12() {
    clang=
    for c in clang-19 clang-18 clang-17 clang-16; do have $c && { clang=$c; break; }; done
    [ -n "$clang" ] || { say "$name" skipped "no clang of 16 to 19 (clang-19 in Debian 12)"; return; }
    venv=$out/cuda12-venv root=$PWD/$out/cuda12
    if [ ! -x "$root/bin/ptxas" ]; then
        rm -rf "$venv" "$root"
        { python3 -m venv "$venv" &&
            timeout 900 "$venv/bin/pip" install -q --no-deps nvidia-cuda-nvcc-cu12 nvidia-cuda-runtime-cu12 nvidia-cublas-cu12; } >"$out/$name.log" 2>&1 ||
            { say "$name" skipped "no CUDA 12 packages from PyPI"; return; }
        mkdir -p "$root/include"
        for d in "$PWD/$venv"/lib/python3*/site-packages/nvidia/*; do
            [ ! -d "$d/include" ] || cp -rs "$d/include/." "$root/include/"
            case $d in */cuda_nvcc) ln -s "$d/bin" "$d/nvvm" "$root/" ;; esac
        done
    fi
    cat >"$program.h" <<'SHIM' # what clang 19 and its own CUDA headers leave out
#undef __grid_constant__
#define __grid_constant__
static __device__ inline double __ldcg(const double *p) { double r; asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(r) : "l"(p) : "memory"); return r; }
static __device__ inline unsigned long long __ldcg(const unsigned long long *p) { unsigned long long r; asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(r) : "l"(p) : "memory"); return r; }
static __device__ inline uint4 __ldcs(const uint4 *p) { uint4 r; asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p) : "memory"); return r; }
static __device__ inline unsigned __ldcg(const unsigned *p) { unsigned r; asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(r) : "l"(p) : "memory"); return r; }
SHIM
    flags="-x cuda --cuda-path=$root -isystem $root/include -include $program.h -std=c++17 -O1 -Wall -Wextra -Werror -Wno-unknown-cuda-version -I. -c tests/cuda_impl.cu"
    for arch in 70 75 80 86 90; do
        # shellcheck disable=SC2086
        $clang $flags --cuda-device-only --cuda-gpu-arch=sm_$arch -o "$program.cubin" >>"$out/$name.log" 2>&1 || { fail "$name" "sm_$arch"; return; }
    done
    # shellcheck disable=SC2086
    $clang $flags --cuda-host-only -o "$program.o" >>"$out/$name.log" 2>&1 || { fail "$name" "host code"; return; }
    make -s NVCC= CUDA_HOME="$root" BUILD="$out/cuda12-build" "$out/cuda12-build/hostcuda/plain/suite" >>"$out/$name.log" 2>&1 ||
        { fail "$name" "the host runtime does not compile with these headers"; return; }
    run_suite "$out/cuda12-build/hostcuda/plain/suite" "" cuda "" || { fail "$name" "$why"; return; }
    say "$name" passed "CUDA $(sed -n 's/^#define CUDART_VERSION *\([0-9]*\).*/\1/p' "$root/include/cuda_runtime_api.h") headers, its ptxas and $clang: sm_70 75 80 86 90; on the host runtime $why"
}

# Machines and systems that are not here: tests/zig.sh.
zig_row() {
    tests/zig.sh "$1" >"$out/$name.log" 2>&1 || { fail "$name" "$(tail -n 1 "$out/$name.log")"; return; }
    counts=$(tail -n 1 "$out/$name.log")
    why=$(sed -n "s/^skipped: //p; s/^$1: digits: \(.*\)/\1/p" "$out/$name.log" | head -n 1)
    [ "${counts%% *}" != 0 ] || { say "$name" skipped "$why"; return; }
    say "$name" passed "examples and suite compile and link; ${why:-not run}; $counts"
}

row() { # one line of the table
    IFS='|' read -r name cc flags env much <<LINE
$1
LINE
    program=$out/$name.exe
    [ "$(date +%s)" -lt "$(cat "$out/until")" ] || return
    rm -f "$out/$name.log" "$out/$name.result" "$program"
    have "$cc" || { say "$name" skipped "no $cc"; return; }
    # shellcheck disable=SC2086
    case $flags in
    @*) ${flags#@} ;;
    *) plain_row ;;
    esac
}

case ${1:-} in
--help | -h) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
--list) table | cut -d'|' -f1; exit 0 ;;
--install)
    apt-get update -qq
    # shellcheck disable=SC2086
    exec apt-get install -y -qq --no-install-recommends $packages ;;
--row) row "$2"; exit 0 ;;
esac

# The table: a row of before is kept until it runs again.
page() {
    echo '# The matrix'
    echo
    echo 'This page answers: with which compilers, flags and processors was amp tested, when, and with what result?'
    echo
    echo 'Made by `make matrix`; do not edit. Each row is one configuration of `tests/matrix.sh`, which explains the names. A'
    echo 'test is skipped where the machine lacks something that it needs.'
    echo
    echo '| row | result | date | |'
    echo '|---|---|---|---|'
    for name in $(table | cut -d'|' -f1); do
        if [ -r "$out/$name.result" ]; then
            { read -r result; read -r day; read -r words; } <"$out/$name.result"
            echo "| $name | $result | $day | $words |"
        elif ! grep "^| $name |" docs/matrix.md 2>/dev/null; then
            echo "| $name | not run | | |"
        fi
    done
}

tree=$(find amp.h amp_cuda.cuh tests examples -type f | sort | xargs cksum | cksum)
[ "$tree" = "$(cat "$out/tree" 2>/dev/null)" ] || rm -f "$out"/*.result
echo "$tree" >"$out/tree"
echo $(($(date +%s) + 60 * ${MINUTES:-20})) >"$out/until"
# shellcheck disable=SC2254 # a pattern is wanted
table | while IFS= read -r line; do
    if [ $# = 0 ]; then
        [ -e "$out/${line%%|*}.result" ] || printf '%s\0' "$line"
        continue
    fi
    for pattern in "$@"; do
        case ${line%%|*} in
        $pattern) printf '%s\0' "$line"; break ;;
        esac
    done
done | xargs -0 -r -P "${JOBS:-2}" -I '{}' "$0" --row '{}'
page >"$out/page" && cp "$out/page" docs/matrix.md
count() { cat "$out"/*.result 2>/dev/null | grep -c "^$1$"; }
left=$(table | cut -d'|' -f1 | while read -r name; do [ -e "$out/$name.result" ] || echo "$name"; done)
[ -z "$left" ] || echo "not run on this tree yet:" $left
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ]
