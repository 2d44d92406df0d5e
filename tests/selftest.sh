#!/bin/sh
# usage: selftest.sh [--full]    The checks are checked: each script of `make test`, and the harness, gets something wrong and must refuse it.
# tests/compile.sh and tests/style.sh do it themselves. Stands in for compilers and programs, so that it takes seconds.
# Uses $CC, and $BUILD for the harness. Last line: N passed, N failed, N skipped.
set -u
full=
[ "${1:-}" != --full ] || full=1
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
CC=${CC:-cc} AMP_DAY=all # tests/today.sh: whatever the day, each of them refuses what is wrong
export AMP_DAY
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; [ ! -s "$work/log" ] || sed 's/^/    /' "$work/log" | tail -n 12; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }

mkdir "$work/bin"
PATH=$work/bin:$PATH # for compilers that are called by name: CC may be several words, and $work may have spaces
# program FILE: a program with the shell text from stdin
program() { mkdir -p "$(dirname "$1")"; { echo '#!/bin/sh'; cat; } >"$1"; chmod +x "$1"; }
# compiler FILE: a compiler whose every program, the file behind -o, does what stdin says
compiler() {
    mkdir -p "$(dirname "$1")"
    cat >"$1.program"
    program "$1" <<SH
case \$1 in --version | -print*) echo "a compiler of the test"; exit 0 ;; esac
while [ \$# -gt 1 ]; do
    [ "\$1" != -o ] || { { echo '#!/bin/sh'; cat "$1.program"; } >"\$2"; chmod +x "\$2"; }
    shift
done
SH
}

# run COMMAND...: its output is in $work/log, its status in rc, the counts of its last line in p and f
run() {
    "$@" >"$work/log" 2>&1 </dev/null
    rc=$?
    # shellcheck disable=SC2046 # three words
    set -- $(tail -n 1 "$work/log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, [0-9]* skipped$/\1 \2/p')
    p=${1:-none} f=${2:-none}
}
# accepts NAME COMMAND...: the other side: what is right passes
accepts() {
    name=$1
    shift
    run "$@"
    if [ $rc = 0 ] && { [ "$f" = 0 ] || [ "$f" = none ]; }; then ok; else bad "$name is refused (exit status $rc)"; fi
}
# refuses NAME COMMAND...: an exit status other than 0; run.sh makes a failure of it where the command counts none
refuses() {
    name=$1
    shift
    run "$@"
    if [ $rc != 0 ]; then ok; else bad "$name is accepted"; fi
}
# all_refuse NAME PASSED COMMAND...: no check may pass but PASSED that have nothing to do with the mutant
all_refuse() {
    name=$1 allowed=$2
    shift 2
    refuses "$name" "$@"
    if [ "$p" = "$allowed" ]; then ok; else bad "$name: $p checks pass, $allowed should"; fi
}
# says TEXT...: each is in the log of the last run
says() { for text in "$@"; do if grep -q -e "$text" "$work/log"; then ok; else bad "$name: nothing says \"$text\""; fi; done; }

# ---- the harness ----
harness() {
    if ! [ -x "$build/selftest" ]; then skip "the harness: no $build/selftest"; return; fi
    run "$build/selftest" -v --seed 1
    awk '$2 ~ /^(fails|passes|skips)\./ {
            n++; v = $3 ~ /^ok/ ? "passes" : $3 == "FAILED" ? "fails" : $3 ~ /^skipped/ ? "skips" : "?"
            if (index($2, v ".") != 1) { print $0; wrong++ } }
        END { print n + 0, "verdicts", wrong + 0, "wrong"; exit n < 20 || wrong }' "$work/log" >"$work/verdicts"
    verdicts=$?
    cp "$work/verdicts" "$work/log"
    if [ $rc = 1 ] && [ $verdicts = 0 ]; then ok; else bad "main.c (exit status $rc)"; fi
    for i in 1 2 3; do "$build/selftest" --filter names_its_file >"$work/at_once.$i" & done
    wait
    cat "$work"/at_once.? >"$work/log"
    for word in seed file; do
        if [ "$(grep "^$word " "$work/log" | sort -u | wc -l)" = 3 ]; then ok; else bad "main.c: runs that begin at once share a $word"; fi
    done
    run "$build/selftest" --seed 1 --filter names_its_file
    sed -n 's/^file //p' "$work/log" >"$work/named"
    run "$build/selftest" --seed 1 --filter names_its_file
    if [ -s "$work/named" ] && ! grep -q -F -f "$work/named" "$work/log"; then ok; else bad "main.c: runs with one seed share a file"; fi
}

# ---- run.sh ----
part() { BUILD=$work/run tests/run.sh part "$@" && BUILD=$work/run tests/run.sh sum "$1"; }
# floor_part CHECKS [SED]: the part unit on a processor with SSE2, with so many checks in each file and context, and a change of that
floor_part() {
    awk -v n="$1" '$1 == "unit" { sub(/^cpu-vector$/, "cpu-sse2", $2); print "echo counts", $2, $3, n }
        END { for (i = split("neon avx2 avx512", path, " "); i; i--) print "echo cpu-" path[i] " skipped: none here" }' tests/expected/floor.txt |
        sed "${2:-}" | { cat; echo 'echo 1 passed, 0 failed, 0 skipped'; } | program "$work/floor"
    part unit 9 "$work/floor"
}
# third_part [SED]: the part hostcuda-suite on a day of its second third, with a change of that
third_part() {
    awk '$1 == "hostcuda-suite" && $2 ~ /-2of3$/ { print "echo counts", $2, $3, 99999999 }' tests/expected/floor.txt |
        sed "${1:-}" | { cat; echo 'echo 1 passed, 0 failed, 0 skipped'; } | program "$work/floor"
    part hostcuda-suite 9 "$work/floor"
}
many_programs() { echo 'end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do sleep 0.01; done'; } # for 4 seconds or more, some of each
gone() { # no process has $work/hung in its command line
    echo "$work/hung" >"$work/pattern"
    for line in /proc/[0-9]*/cmdline; do tr '\000' ' ' <"$line"; done 2>/dev/null | grep -F -f "$work/pattern" >"$work/log"
    if [ -s "$work/log" ]; then bad "$name goes on"; else ok; fi
}
# floors CHECKS PATH...: what `make floor` writes after a run on a processor with these paths
floors() {
    checks=$1
    shift
    mkdir -p "$work/floors/tests/expected"
    cp tests/run.sh "$work/floors/tests"
    printf '# floors\nunit cpu-3 step 6\nhostcuda-suite cuda-2of3 step 7\n' >"$work/floors/tests/expected/floor.txt"
    for context in host "$@"; do echo "counts $context step $checks"; done >"$work/floors/unit.log"
    echo 'cpu-3 skipped: it has its turn another day' >>"$work/floors/unit.log"
    echo 'counts cuda-1of3 step 50' >"$work/floors/hostcuda-suite.log"
    LOG=$work/floors "$work/floors/tests/run.sh" floor && cat "$work/floors/tests/expected/floor.txt"
}
driver() {
    counts='1 passed, 0 failed, 0 skipped'
    accepts "run.sh: a right part" part right 9 echo "$counts"
    accepts "run.sh: a skipped part" part right 9 echo "0 passed, 0 failed, 1 skipped"
    refuses "run.sh: a failure" part wrong 9 sh -c 'echo 1 passed, 1 failed, 0 skipped; exit 1'
    refuses "run.sh: no counts" part wrong 9 true
    refuses "run.sh: nothing run" part wrong 9 echo "0 passed, 0 failed, 0 skipped"
    refuses "run.sh: exit status 3" part wrong 9 sh -c "echo $counts; exit 3"
    refuses "run.sh: a part that is stopped" env BUILD="$work/run" timeout 1 tests/run.sh part wrong 9 sh -c 'sleep 99; :' "$work/hung"
    name="run.sh: a part that is stopped"
    gone
    STALL=2 refuses "run.sh: a part that hangs" part wrong 9 sh -c "echo $counts; timeout 99 sh -c 'sleep 99; :' \"\$0\"" "$work/hung"
    says 'it hangs: no output for 2 s'
    STALL=2 SPIN=1 refuses "run.sh: a part that spins" part wrong 9 sh -c "echo $counts; timeout 99 sh -c 'while :; do :; done' \"\$0\"" "$work/hung"
    says 'it hangs: no output for [23] CPU seconds'
    STALL=4 accepts "run.sh: a part that is slow, and says something" part right 9 sh -c "for i in 1 2 3 4 5; do sleep 1; echo \$i; done; echo $counts"
    STALL=2 SPIN=9 accepts "run.sh: a part that takes CPU time, and says nothing" part right 0 sh -c "$(many_programs); echo $counts"
    says 'slow: [1-9][0-9]* CPU seconds, where 0'
    name="run.sh: what hung"
    gone
    refuses "run.sh: all of it is stopped" env BUILD="$work/run" timeout 1 tests/run.sh all \
        sh -c 'tests/run.sh part wrong 9 timeout 99 sh -c "sleep 99; :" "$0"; sleep 98; :' "$work/hung"
    gone
    accepts "run.sh: something that may be skipped" part right 9 sh -c "echo skipped: no tool; echo $counts"
    AMP_REQUIRE="other tool" refuses "run.sh: something required is skipped" part wrong 9 sh -c "echo skipped: no tool; echo $counts"
    AMP_REQUIRE=tool refuses "run.sh: what needs something required is skipped" part wrong 9 sh -c "echo 'skipped: all of it: needs tool: none'; echo $counts"
    refuses "run.sh: a part that never ran" env BUILD="$work/run" tests/run.sh sum no-such-part
    accepts "run.sh: checks on the floor" floor_part 99999999
    refuses "run.sh: fewer checks than the floor" floor_part 1
    refuses "run.sh: a file of tests that is gone" floor_part 99999999 '/cpu-2 step/d'
    refuses "run.sh: a file of tests that is gone on one path" floor_part 99999999 '/cpu-sse2 step/d'
    accepts "run.sh: a context that has its turn another day" floor_part 99999999 '/cpu-3 .* [0-9]/d; 1i echo "cpu-3 skipped: it has its turn another day"'
    refuses "run.sh: a context that is skipped" floor_part 99999999 '/cpu-3 .* [0-9]/d; 1i echo "cpu-3 skipped: none here"'
    refuses "run.sh: a path that neither ran nor is skipped" floor_part 99999999 '/cpu-avx512 skipped/d'
    HIDE=avx512 refuses "run.sh: a path that HIDE hides" floor_part 99999999 's/\(.*cpu-\)sse2\(.*\)/&\n\1avx512\2/; /avx512 skipped/d'
    says 'cpu-avx512 ran, and HIDE hides it'
    accepts "run.sh: the other thirds of a context have no turn" third_part
    refuses "run.sh: a file of tests that is gone in the third that has" third_part '/ step /d'
    refuses "run.sh: no third of a context" third_part d
    accepts "run.sh: floors from three paths" floors 100 cpu-sse2 cpu-avx2 cpu-avx512
    cp "$work/log" "$work/floors.many"
    accepts "run.sh: floors from one path" floors 100 cpu-neon
    says '^unit host step 80$' '^unit cpu-vector step 80$' '^unit cpu-3 step 6$' '^hostcuda-suite cuda-1of3 step 25$' '^hostcuda-suite cuda-2of3 step 7$'
    cp "$work/log" "$work/floors.one"
    accepts "run.sh: the same floors from one path" cmp "$work/floors.one" "$work/floors.many"
    refuses "run.sh: floors from no path" floors 100 cpu-scalar
}

# ---- check_output.sh ----
outputs() {
    printf '/* a program\n *   > one\n */\nint x;\n' >"$work/promise.c"
    printf '/* a program */\nint x; /*\n *   > one */\n' >"$work/no_promise.c"
    accepts "check_output.sh: what is promised" tests/check_output.sh "$work/promise.c" echo one
    refuses "check_output.sh: other output" tests/check_output.sh "$work/promise.c" echo two
    refuses "check_output.sh: more output" tests/check_output.sh "$work/promise.c" printf 'one\ntwo\n'
    refuses "check_output.sh: no output" tests/check_output.sh "$work/promise.c" true
    refuses "check_output.sh: exit status 1" tests/check_output.sh "$work/promise.c" sh -c 'echo one; exit 1'
    refuses "check_output.sh: no promise" tests/check_output.sh "$work/no_promise.c" echo one
}

# ---- readme_snippets.sh ----
# shellcheck disable=SC2059 # the arguments have line ends
page() { sed "1,60$1" amp.h >"$work/page.h"; IMPL=$impl tests/readme_snippets.sh --look "$work/page.h"; }
snippet() { printf "# text\n\n\`\`\`$1\n$2\n\`\`\`\n\n\`\`\`output\n$3\n\`\`\`\n" >"$work/x.md"; CXX='' tests/readme_snippets.sh "$work/x.md"; }
links() { printf "$1" >"$work/x.md"; tests/readme_snippets.sh --links "$work/x.md"; }
snippets() {
    impl=$build/tests/impl.o # else each page is compiled with it
    [ -r "$impl" ] || impl=
    prints='#include <stdio.h>\nint main(void) { puts("one"); return 0; }'
    accepts "readme_snippets.sh: a right block" snippet 'c run' "$prints" one
    refuses "readme_snippets.sh: other output" snippet 'c run' "$prints" two
    refuses "readme_snippets.sh: a block that does not compile" snippet 'c run' 'int main(void) { return y; }' ''
    refuses "readme_snippets.sh: a warning" snippet 'c run' 'int main(void) { int unused; return 0; }' ''
    refuses "readme_snippets.sh: exit status 1" snippet 'c run' 'int main(void) { return 1; }' ''
    refuses "readme_snippets.sh: no block that runs" snippet c "$prints" one
    accepts "readme_snippets.sh: commands" snippet 'sh run' 'seq 8 10; echo end' '8\n...\n1...\nend'
    refuses "readme_snippets.sh: commands that print something else" snippet 'sh run' 'seq 8 11' '8\n...\n12'
    refuses "readme_snippets.sh: commands that print more" snippet 'sh run' 'seq 8 11' '8\n9\n10'
    refuses "readme_snippets.sh: commands that print less" snippet 'sh run' 'seq 8 11' '8\n...\n11\n12'
    refuses "readme_snippets.sh: a command that fails" snippet 'sh run' 'false; true' ''
    accepts "readme_snippets.sh: a number of the text" snippet 'sh run' 'echo 95.6%%' '95.6%%\n```\nso much: `95.6%%`\n```'
    refuses "readme_snippets.sh: a number that nothing has printed" snippet 'sh run' 'echo 195.6%%' '195.6%%\n```\nso much: `95.6%%`\n```'
    refuses "readme_snippets.sh: a link to nowhere" snippet 'sh run' 'echo 1' '1\n```\n[x](none.md)\n```'
    accepts "readme_snippets.sh: a link to a heading" snippet 'sh run' 'echo 1' '1\n```\n[x](#a-b_c)\n## A `b_c`!\n```'
    refuses "readme_snippets.sh: a link to no heading" snippet 'sh run' 'echo 1' '1\n```\n[x](x.md#b_c)\n## A `b_c`!\n```'
    accepts "readme_snippets.sh: a page of links" links '[x](x.md)\n'
    refuses "readme_snippets.sh: links to nowhere" links '[x](none.md)\n'
    refuses "readme_snippets.sh: a block that nobody runs" links '```c run\n```\n'
    accepts "readme_snippets.sh: the first page" page 's/no change//'
    refuses "readme_snippets.sh: a first page that does not learn" page 's/[.]lr = 0[.]1f/.lr = 1e-9f/'
    refuses "readme_snippets.sh: a first page that does not compile" page 's/amp_linear_forward(ctx/amp_linear_forwards(ctx/'
    refuses "readme_snippets.sh: a first page of 21 lines" page 's/^ *#include <stdio.h>/&\n\n\n/'
}

# ---- hostcuda_suite.sh, cuda_verbs.sh: a program with the given text instead of the real one ----
suite() { echo "$1" | program "$work/plain/suite"; tests/hostcuda_suite.sh "$work/plain/suite"; }
verbs() {
    mkdir -p "$work/verbs/hostcuda/plain"
    echo "$1" | compiler "$work/cxx"
    MAKE=true BUILD=$work/verbs CXX=$work/cxx CUDA_HOME=$work/cuda tests/cuda_verbs.sh
}
hostcuda() {
    mkdir -p "$work/cuda/include"
    : >"$work/cuda/include/cuda_runtime_api.h"
    for script in suite verbs; do
        accepts "$script: what is right" $script 'echo 1 passed, 0 failed, 0 skipped'
        refuses "$script: a failure" $script 'echo 1 passed, 1 failed, 0 skipped; exit 1'
        refuses "$script: exit status 3" $script 'echo 1 passed, 0 failed, 0 skipped; exit 3'
        refuses "$script: no counts" $script true
        refuses "$script: a program that dies" $script 'kill -9 $$'
    done
    echo true | compiler "$work/cxx"
    refuses "verbs: make fails" env MAKE=false BUILD="$work/verbs" CXX="$work/cxx" CUDA_HOME="$work/cuda" tests/cuda_verbs.sh
    refuses "verbs: it does not compile" env MAKE=true BUILD="$work/verbs" CXX=false CUDA_HOME="$work/cuda" tests/cuda_verbs.sh
}

# ---- examples.sh: no check may be content with programs that do nothing, that refuse all, or that leave a file behind ----
examples() {
    # without --full two of them, the second another one each day
    day=$(date +%s)
    day=$((day / 86400 % 4)) n=-1
    for digits in true 'echo no >&2; exit 1' 'echo "$@" >&2; case $PWD in */empty) : >left ;; esac; exit 1' 'echo "$@" >&2' 'echo "$@ step 1"; echo "$@" >&2; exit 1'; do
        n=$((n + 1))
        [ -n "$full" ] || [ $n = 0 ] || [ $n = $((day + 1)) ] || continue
        for source in examples/*.c; do echo true | program "$work/ex/$(basename "$source" .c)"; done
        echo "$digits" | program "$work/ex/digits"
        all_refuse "examples.sh: digits is \"$digits\"" 0 env BUILD="$work/ex" RUN_ENV= IMPL= tests/examples.sh
    done
}

# ---- retrofit.sh, in a copy, with a compiler whose programs print what is wanted here ----
retrofit() { NVCC='' MAKE=true CXX=$work/cxx CUDA_HOME=$work/cuda BUILD=$work/copy/build "$work/copy/tests/retrofit.sh" "$@"; }
curves() { # FACTOR ARGUMENT...: before.cu's loss, and after.cu's that much higher
    compiler "$work/cxx" <<SH
awk -v s="\$1" -v f="\$(case \$0 in *after) echo $1 ;; *) echo 1 ;; esac)" 'BEGIN {
    for (i = 1; i <= 8; i++) print "epoch", i, "loss", f * (1 + 0.05 * s) / i
    print "test accuracy 97.5 %" }'
SH
    shift
    run retrofit "$@"
}
retrofits() {
    mkdir -p "$work/copy/tests" "$work/copy/build/hostcuda"
    cp -R examples amp.h amp_cuda.cuh "$work/copy/"
    cp -R tests/retrofit.sh tests/today.sh tests/check_output.sh tests/hostcuda "$work/copy/tests/"
    : >"$work/copy/build/hostcuda/libhostcuda-plain.a"
    name=retrofit.sh
    curves 1.1 --full host
    says 'FAIL hostcuda: the loss curves' 'FAIL after.cu: not all products' 'FAIL retrofit_gpt' 'FAIL cuda_graph' 'FAIL own_optimizer' 'FAIL tensor_core' 'FAIL tensor_core --size'
    for factor in 0 nan 1.02; do curves $factor; says 'FAIL hostcuda: the loss curves'; done
    curves 1.001
    if grep -q 'FAIL.*loss curves' "$work/log"; then bad "retrofit.sh refuses equal loss curves"; else ok; fi
    program "$work/cxx" <"$work/warning"
    awk '{ print } END { for (i = 0; i < 30; i++) print "// a line more" }' examples/retrofit/after.cu >"$work/copy/examples/retrofit/after.cu"
    run retrofit
    says 'FAIL .* changed lines' 'FAIL retrofit/README.md shows another diff' 'FAIL before: ' 'FAIL own_optimizer: '
}

# ---- install.sh, in a copy without the benches ----
install() { # MAKE
    (cd "$work/inst" && MAKE=$1 CC=cc-of-the-test BUILD=build RUN_ENV='' tests/install.sh)
}
installs() {
    mkdir -p "$work/inst/tests"
    cp -R Makefile amp.h amp_cuda.cuh amp.pc.in CHANGELOG.md docs "$work/inst/"
    cp tests/install.sh "$work/inst/tests/"
    for page in operations products memory; do echo 'echo another page' | program "$work/inst/build/$page"; done
    echo 'echo 9.9.9' | compiler "$work/bin/cc-of-the-test"
    name=install.sh
    run install true
    says 'FAIL install: no include/amp.h' 'FAIL install: no share' 'FAIL amp.pc says another version' 'FAIL CHANGELOG.md has no entry' 'FAIL the first line of amp.h' \
        'FAIL make help does not list test' 'FAIL docs/operations.md' 'FAIL docs/products.md' 'FAIL docs/memory.md' 'FAIL clean left'
    run install false
    says 'FAIL make install' 'FAIL make help' 'FAIL make clean'
    echo 'exit 1' | compiler "$work/bin/cc-of-the-test"
    run install true
    says 'FAIL a program with the installed files' 'FAIL CHANGELOG.md has no entry'
}

# ---- bench.sh: benches that do nothing; the peer, which is Python and real, may pass ----
benches() {
    peer=2 # and the two sources that are read
    ! command -v python3 >/dev/null || peer=3
    for bench in true 'exit 1'; do
        [ "$bench" = true ] && allowed=$((peer + 2)) || allowed=$peer # both only run
        for f in bench/train hostcuda/plain/bench_gpu; do echo "$bench" | program "$work/bench/$f"; done
        all_refuse "bench.sh: benches are \"$bench\"" "$allowed" env BUILD="$work/bench" CC=true MAKE=true NVCC= RUN_ENV= tests/bench.sh
    done
}

# ---- ptx.sh: an nvcc whose kernels flush, call approximations, spill, and whose objects export what they like ----
ptx() {
    program "$work/nvcc/nvcc" <<'SH'
while [ $# -gt 1 ]; do
    [ "$1" != -ptx ] || ptx=1
    [ "$1" != -o ] || out=$2
    shift
done
if [ "${ptx:-}" ]; then
    printf '.visible .entry ampi_k_cast(\n)\n{\n.local .align 4 .b8 x[4];\nadd.ftz.f32 %%f1, %%f2, %%f3;\nex2.approx.ftz.f32 %%f1, %%f2;\n}\n' >"$out"
else
    echo 'int amp_x(void) { return 1; } int leaked(void) { return 1; }' | "${CC:-cc}" -x c -c - -o "$out"
fi
SH
    program "$work/nvcc/ptxas" <<'SH'
echo "ptxas info : Compiling entry function 'ampi_k_cast' for 'sm_90'" >&2
echo "8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads" >&2
echo "Used 10 registers" >&2
SH
    all_refuse "ptx.sh: kernels that flush" 0 env CC="$CC" BUILD="$work/nvcc" NVCC="$work/nvcc/nvcc" tests/ptx.sh
    says 'flushes subnormals' 'exports leaked'
    printf '.visible .entry ampi_k_cast(\n)\n{\nadd.ftz.f32 %%f1, %%f2, %%f3;\n}\n' >"$work/nvcc/fast.ptx"
    all_refuse "ptx.sh: machine code that flushes" 0 env CC="$CC" BUILD="$work/nvcc" NVCC="$work/nvcc/nvcc" FAST_PTX="$work/nvcc/fast.ptx" tests/ptx.sh
    says 'use_fast_math flushes subnormals' 'such as add.ftz.f32'
    all_refuse "ptx.sh: bad kernels" 0 env CC="$CC" BUILD="$work/nvcc" NVCC="$work/nvcc/nvcc" tests/ptx.sh 90
    says 'FAIL: no line in the table\|FAIL: widest load' 'FAIL: .* un-suffixed' 'FAIL: .* .approx' 'FAIL: local memory' 'FAIL: no kernel matches' 'flushes subnormals' 'exports leaked'
    echo 'exit 0' | program "$work/nvcc/nvcc"
    all_refuse "ptx.sh: an nvcc that makes nothing" 0 env BUILD="$work/nvcc" NVCC="$work/nvcc/nvcc" tests/ptx.sh
    echo 'exit 1' | program "$work/nvcc/nvcc"
    all_refuse "ptx.sh: an nvcc that fails" 0 env BUILD="$work/nvcc" NVCC="$work/nvcc/nvcc" tests/ptx.sh
}

# ---- sass.sh: a program that does nothing, dies, or counts a failure; then the real one, if it is built, with machine code that
# is wrong in one instruction, or has one that nobody knows, and with counts that are too low ----
stands_in() { # TEXT: in place of the program
    mkdir -p "$work/sass/sass"
    echo "$1" | program "$work/sass/sass/sass"
    BUILD=$work/sass tests/sass.sh 90
}
code() { # SED COMMAND: what it makes of the machine code of one kernel, and of the table
    mkdir -p "$work/code/sass"
    cp "$build/sass/sass" "$build/sass/thin/sm_90.cubin" "$work/code/sass/"
    sed "$1" "$build/sass/thin/sm_90.sass" >"$work/code/sass/sm_90.sass"
    "$work/code/sass/sass" --thin --code "$work/code/sass/sm_90" --row 'AdamW f32' --data normal --table "${2:-tests/expected/sass.txt}"
}
machine_code() {
    accepts "sass.sh: what is right" stands_in 'echo 1 passed, 0 failed, 0 skipped'
    refuses "sass.sh: a failure" stands_in 'echo 1 passed, 1 failed, 0 skipped; exit 1'
    refuses "sass.sh: exit status 3" stands_in 'echo 1 passed, 0 failed, 0 skipped; exit 3'
    refuses "sass.sh: no counts" stands_in true
    refuses "sass.sh: a program that dies" stands_in 'kill -9 $$'
    if ! [ -f "$build/sass/thin/sm_90.sass" ] || ! [ -x "$build/sass/sass" ]; then
        skip "sass: no $build/sass/sass with machine code"
        return
    fi
    accepts "sass: right code" code ''
    refuses "sass: a wrong instruction" code 's/ FADD R/ FMUL R/'
    says 'not the bits'
    refuses "sass: an instruction that nobody knows" code 's/ LOP3[.]LUT / LOP9.LUT /'
    says 'not known'
    refuses "sass: a modifier that nobody knows" code 's/ LOP3[.]LUT / LOP3.LUT.NEW /'
    says 'not known'
    awk -F '\t' -v OFS='\t' '/^#/ { print; next } { $4 *= 0.96; print }' tests/expected/sass.txt >"$work/table"
    refuses "sass: counts that rose by 4 %" code '' "$work/table"
    says 'instructions per element'
    grep -v 'AdamW f32' tests/expected/sass.txt >"$work/table"
    refuses "sass: a row that the table has not" code '' "$work/table"
    says 'not in'
}

# ---- fingerprint.sh, in a copy: programs that give other hashes than the record, and contexts that disagree ----
fingerprint() { # MODE LINES...: what the program says
    mode=$1
    shift
    {
        for line; do printf "echo %s | tr ' ' '\\t'\n" "$line"; done
    } | compiler "$work/bin/cc-of-the-test"
    MAKE=true CC=cc-of-the-test CXX=no-compiler BUILD=build "$work/finger/tests/fingerprint.sh" "$mode"
}
fingerprints() {
    record=$work/finger/tests/expected/fingerprint.txt changes=$work/finger/tests/expected/fingerprint_changes.txt
    mkdir -p "$work/finger/tests/expected"
    cp tests/fingerprint.sh "$work/finger/tests/"
    refuses "fingerprint.sh: no record" fingerprint CHECK 'a 00' 'b 11'
    refuses "fingerprint.sh: a record of contexts that disagree" fingerprint RECORD 'a 00' 'b $2'
    accepts "fingerprint.sh: a record" fingerprint RECORD 'a 00' 'b 11' 'product $2'
    sed -i.whole '1s/$/,cuda/' "$record"
    refuses "fingerprint.sh: a record that loses a context" fingerprint RECORD 'a 00' 'b 11' 'product $2'
    mv "$record.whole" "$record"
    accepts "fingerprint.sh: the same" fingerprint CHECK 'a 00' 'b 11' 'product $2'
    refuses "fingerprint.sh: a different hash" fingerprint CHECK 'a 00' 'b 12' 'product $2'
    refuses "fingerprint.sh: a different hash of a product" fingerprint CHECK 'a 00' 'b 11' 'product 11'
    refuses "fingerprint.sh: contexts that disagree" fingerprint CHECK 'a 00' 'b $2' 'product $2'
    refuses "fingerprint.sh: a case less" fingerprint CHECK 'a 00' 'product $2'
    refuses "fingerprint.sh: a case more" fingerprint CHECK 'a 00' 'b 11' 'c 22' 'product $2'
    refuses "fingerprint.sh: a case twice" fingerprint CHECK 'a 00' 'b 11' 'b 11' 'product $2'
    refuses "fingerprint.sh: a program that dies" fingerprint CHECK 'a 00' 'b 11' 'product $2; exit 1'
    printf 'b\tof the test\n' >"$changes"
    accepts "fingerprint.sh: an intended change" fingerprint CHECK 'a 00' 'b 12' 'product $2'
    refuses "fingerprint.sh: one more than intended" fingerprint CHECK 'a 01' 'b 12' 'product $2'
    rm "$changes"
    sed 's/00/01/' "$record" >"$record.new" && mv "$record.new" "$record"
    refuses "fingerprint.sh: an altered record" fingerprint CHECK 'a 00' 'b 11' 'product $2'
}

echo 'echo warning: of the test' >"$work/warning"
harness
driver
outputs
snippets
hostcuda
examples
retrofits
installs
benches
ptx
machine_code
fingerprints
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
