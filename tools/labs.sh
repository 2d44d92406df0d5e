#!/bin/sh
# labs.sh - the labs: examples/labs/README.md.
#
#   labs.sh run N [FILE]        builds lab N with the student's file (or with FILE), runs and checks it: one sentence, exit 0 if it passed
#   labs.sh check [--quick] [N]...   the checkers themselves: each solution passes, each wrong one and the unfilled file are refused
#                               with the right sentence (tests/labs); --quick: of the wrong ones of a lab only some,
#                               without sanitizers, and without N one lab, another each day. Last line: N passed, ...
#   labs.sh export DIR [--seed WORD]    makes the students' folder: the labs, amp.h, the host runtime of CUDA, a Makefile; no solutions.
#                               --seed: with other numbers and tasks (examples/labs/variant.h), the same for the same word
#   labs.sh runtime             builds what all labs share (run and check do that, too)
#
# Reads: CC CXX CLANGXX CUDA_HOME NVCC MAKE BUILD; IMPL, an object with amp's implementation; LAB_SECONDS, the CPU seconds of a lab (8);
# RUN_ENV; LAB_SANITIZE, flags of sanitizers ("" for none; not set: what CC has); LAB_JOBS, how many labs are checked at a time (one with
# --quick, else one for each processor).
# It works in the repository and in the students' folder, which `export` makes of it.
# shellcheck disable=SC2013,SC2030,SC2031,SC3045 # words of a file; limits in a subshell; ulimit -S is in every shell that is used
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
if [ -d "$here/../examples/labs" ]; then
    top=$(cd "$here/.." && pwd)
    labs=$top/examples/labs amp=$top programs=$top/examples host=$top/tests/hostcuda hidden=$top/tests/labs
else
    top=$(cd "$here/.." && pwd) # tools/ of the students' folder
    labs=$top amp=$here programs=$here host=$here/hostcuda hidden=
fi
CC=${CC:-cc} CXX=${CXX:-g++} MAKE=${MAKE:-make} CUDA_HOME=${CUDA_HOME:-}
build=${BUILD:-$top/build}
mkdir -p "$build/labs" || exit 2
build=$(cd "$build" && pwd)
out=$build/labs
seconds=${LAB_SECONDS:-8}
# The name, as seen from the host runtime's folder, of what is below the top: make takes no name with spaces.
from_host() { case $1 in "$top"/*) echo "../../${1#"$top"/}" ;; *) echo "$1" ;; esac; }
[ -z "${IMPL:-}" ] || { IMPL=$(realpath "$IMPL") && export IMPL; }
LC_ALL=C
export LC_ALL

die() { echo "labs.sh: $*" >&2; exit 2; }

# ---- the table: number folder file minutes topic functions ----
table() { awk -F'|' -v OFS='|' '!/^ *#/ && NF == 6 { for (i = 1; i <= NF; i++) gsub(/^ +| +$/, "", $i); print }' "$labs/labs.txt"; }
column() { table | awk -F'|' -v n="$1" -v c="$2" '$1 == n { print $c }'; } # NUMBER COLUMN
numbers() { table | cut -d'|' -f1; }
known() { case $1 in '' | *[!0-9]*) die "which lab? make lab N=1" ;; esac; [ -n "$(column "$1" 2)" ] || die "there is no lab $1: $(numbers | tr '\n' ' ')"; }

# ---- what all labs share, built once ----
# FLAGS of the sanitizers that CC has: tried once for each compiler
sanitizers() {
    if [ -n "${LAB_SANITIZE+given}" ]; then echo "$LAB_SANITIZE"; return; fi
    memory=$out/sanitize.$(echo "$CC" | tr -c 'A-Za-z0-9\n' _)
    if [ ! -e "$memory" ]; then
        flags="-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow"
        echo 'int main(void) { return 0; }' >"$out/try.c"
        # shellcheck disable=SC2086 # words
        if $CC $flags "$out/try.c" -o "$out/try" >/dev/null 2>&1 && "$out/try" >/dev/null 2>&1; then echo "$flags"; fi >"$memory.new" &&
            mv "$memory.new" "$memory"
    fi
    cat "$memory"
}

steps() { # FLAGS that count the steps of a program, if CXX has them and an attribute for the function that counts: tried once
    memory=$out/steps.$(echo "$CXX" | tr -c 'A-Za-z0-9\n' _)
    if [ ! -e "$memory" ]; then
        flags=-fsanitize-coverage=trace-pc
        echo 'extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {} int main() {}' >"$out/steps.cpp"
        if $CXX -Werror $flags "$out/steps.cpp" -o "$out/steps.try" >/dev/null 2>&1 && "$out/steps.try"; then echo "-DLAB_STEPS $flags"; fi >"$memory.new"
        mv "$memory.new" "$memory"
    fi
    cat "$memory"
}

implementation() { # prints the object with amp's implementation
    if [ -n "${IMPL:-}" ] && [ -r "$IMPL" ]; then echo "$IMPL"; return; fi
    object=$out/amp.o
    if [ ! -e "$object" ] || [ -n "$(find "$amp/amp.h" -newer "$object")" ]; then
        echo "lab: amp.h is compiled, once: some seconds" >&2
        printf '#define AMP_IMPLEMENTATION\n#include "amp.h"\n' >"$out/amp.c"
        $CC -std=gnu99 -O1 -I"$amp" -c "$out/amp.c" -o "$object.new" >&2 && mv "$object.new" "$object" || return 1
    fi
    echo "$object"
}

cuda_home() { # prints where NVIDIA's headers are, or nothing
    for folder in "$CUDA_HOME" "$top"/cuda/nvidia/cu[0-9]* "${CUDA_PATH:-}" /usr/local/cuda /usr; do
        [ -z "$folder" ] || [ ! -r "$folder/include/cuda_runtime_api.h" ] || { echo "$folder"; return; }
    done
    nvcc=$(command -v nvcc) || return 0
    folder=$(cd "$(dirname "$(realpath "$nvcc")")/.." && pwd)
    [ ! -r "$folder/include/cuda_runtime_api.h" ] || echo "$folder"
}

wheels="pip install --target cuda --no-deps 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
# Why CUDA labs cannot be executed here; nothing if they can.
no_cuda() {
    if ! command -v "$CXX" >/dev/null 2>&1; then echo "no $CXX"; elif [ -z "$(cuda_home)" ]; then
        echo "no CUDA headers ($wheels)"; fi
}
cuda_variants() { # the variants of the host runtime that this machine can build, as its own makefile finds them out
    printf 'include hostcuda.mk\nshow:\n\t@echo $(filter asan tsan,$(HCU_VARIANTS)) $(firstword $(filter msan vg,$(HCU_VARIANTS)))\n' |
        $MAKE -s --no-print-directory -C "$host" -f - show CXX="$CXX" CUDA_HOME="$(from_host "$(cuda_home)")" BUILD="$(from_host "$build")" 2>/dev/null
}
# COMMAND of make; in the students' folder it builds what a lab's kernels need: no cuBLAS, no NCCL, and undefined behaviour of the
# runtime itself is not looked for. That is half of the compile time.
light() {
    [ -n "$hidden" ] || set -- "$@" HCU_LEFT_OUT='hcu_blas hcu_blas_product hcu_blas1 hcu_curand hcu_nccl' HCU_RT_asan='-g1 -O1 -fsanitize=address'
    "$@"
}
cuda_runtime() {
    if [ ! -e "$out/cuda.variants" ]; then
        cuda_variants >"$out/cuda.new"
        grep -q . "$out/cuda.new" || echo plain >"$out/cuda.new"
        mv "$out/cuda.new" "$out/cuda.variants"
    fi
    below=$(from_host "$build")
    targets=hostcuda/translate
    for v in $(variants); do targets="$targets hostcuda/user/libhostcuda-$v.a"; done
    set --
    for target in $targets; do set -- "$@" "$below/$target"; done
    MAKEFLAGS='' light $MAKE -s -j2 --no-print-directory -C "$host" BUILD="$below" CXX="$CXX" CUDA_HOME="$(from_host "$(cuda_home)")" "$@" \
        >"$out/runtime.log" 2>&1 || { cat "$out/runtime.log" >&2; return 1; }
}

# ---- one lab ----
# compiled NUMBER MESSAGES: the sentence of the first error
compiled() {
    awk -v n="$1" '/ error: / || /undefined reference/ {
        sub(/^.*\/(lab\.c:|lab\.cu:)/, substr($0, 1, 0) "&")
        sub(/^[^ ]*\//, "")
        print "lab " n ": it does not compile: " $0
        exit
    }' "$2" | grep . || echo "lab $1: it does not compile: $(head -n 1 "$2")"
}

# Runs a command with limits on CPU seconds and on time; its output is in the file $1.
limited() {
    log=$1
    shift
    (
        ulimit -S -t "$seconds" 2>/dev/null
        ulimit -H -t $((seconds + 2)) 2>/dev/null
        if command -v timeout >/dev/null 2>&1; then exec timeout -k 2 $((seconds * 12)) "$@"; fi
        exec "$@"
    ) >"$log" 2>&1 </dev/null
}

# verdict NUMBER LOG STATUS: the sentence; the log's own, or what the tools and the system say
verdict() {
    said=$(grep "^lab $1: " "$2" | tail -n 1)
    report=$(sed -n 's/^\(.*\/\)\{0,1\}\(lab\.c:[0-9]*\):[0-9]*: runtime error: /\2: /p; s/.*AddressSanitizer: \([a-z-]*\) .*/\1/p' "$2" | head -n 1)
    line=$(sed -n 's/^ *#[0-9]* .* in .*[ /]\(lab\.c:[0-9]*\).*/\1/p' "$2" | head -n 1)
    case $report in
    '') ;;
    lab.c*) echo "lab $1: $report"; return ;;
    *) echo "lab $1: ${line:-your program}: $report: it reads or writes memory that is not its own"; return ;;
    esac
    if [ -n "$said" ] && { [ "$3" = 0 ] || [ "$3" = 1 ]; }; then echo "$said"; return; fi
    case $3 in
    0) echo "lab $1: your program ends before the checker does" ;;
    124 | 137 | 152) echo "lab $1: your program does not end: it was stopped; look at the condition of each loop" ;;
    *) echo "lab $1: your program crashes (exit status $3)" ;;
    esac
}

# lab_c NUMBER FOLDER WORK: compiles WORK/lab.c with the checker, runs it, and leaves the sentence in WORK/verdict. An answer file is data.
lab_c() {
    object=$(implementation) || die "amp.h does not compile"
    flags=$(sanitizers)
    {
        [ ! -e "$3/lab.c" ] || echo '#include "lab.c"'
        echo '#include "check.c"'
    } >"$3/main.c"
    # shellcheck disable=SC2086 # words
    if ! (cd "$3" && $CC -std=gnu99 -O1 -g -Wall -Wextra ${LAB_CFLAGS:-} $flags -DLAB_NUMBER="$1" -DLAB_SECONDS="$seconds" -DLAB_ANSWERS="\"$3/answers.txt\"" -I"$labs" -I"$amp" -I"$programs" -I"$2" \
        main.c "$object" -lm -pthread -o lab) >"$3/messages" 2>&1; then
        compiled "$1" "$3/messages" >"$3/verdict"
        return
    fi
    export ASAN_OPTIONS="detect_leaks=0:use_sigaltstack=1" UBSAN_OPTIONS=print_stacktrace=0
    # shellcheck disable=SC2086 # words, or nothing
    limited "$3/log" ${RUN_ENV:-} "$3/lab"
    verdict "$1" "$3/log" $? >"$3/verdict"
}

# lab_cuda NUMBER FOLDER WORK: the same on the host runtime, once for each tool that finds something; then on a GPU, if there is one.
# The first tool alone: where it does not compile, or reads out of bounds, there is no more to say. If the checker has refused, races are still
# looked for, and for a NaN what nobody wrote: they name the line.
lab_cuda() {
    cuda_runtime || die "the host runtime does not build"
    printf '#include "lab.cu"\n#include "check.cu"\n' >"$3/main.cu"
    ln -s "$labs" "$3/labs" # names without spaces, for a list of flags
    ln -s "$amp" "$3/amp"
    ln -s "$2" "$3/checker"
    # shellcheck disable=SC2046 # words
    set -- "$1" "$2" "$3" $(variants)
    cuda_run "$1" "$2" "$3" "$4"
    ran=$4
    said=$(grep "^lab $1: " "$3/log.$4" | tail -n 1)
    if [ "$(cat "$3/status.$4")" = 2 ] || [ -n "$(finding "$3/log.$4")" ]; then said=; fi
    jobs=
    for v in $(shift 4; echo "$@"); do
        case "$v $said" in
        *" lab $1: passed"* | "tsan lab $1: with "* | *" lab $1: with "*[Nn]a[Nn]*) ;;
        *) continue ;;
        esac
        ran="$ran $v"
        cuda_run "$1" "$2" "$3" "$v" &
        jobs="$jobs $!"
    done
    # shellcheck disable=SC2086 # words
    [ -z "$jobs" ] || wait $jobs
    for v in $ran; do cat "$3/log.$v"; done >"$3/messages"
    cuda_verdict "$1" "$3" "$ran" >"$3/verdict"
    passed "$1" "$3" && gpu "$1" "$2" "$3"
}
variants() { echo "${LAB_VARIANTS:-$(cat "$out/cuda.variants" 2>/dev/null)}"; }
cuda_run() { # NUMBER FOLDER WORK VARIANT
    (
        CHECK=$4 HCU_LIBS=$build/hostcuda/user HCU_LOGS=$3/$4 CUDA_HOME=$(cuda_home)
        FLAGS="-DLAB_NUMBER=$1 -DLAB_SECONDS=$seconds -Ilabs -Iamp -Ichecker"
        case $4 in plain | asan) if grep -q LAB_STEPS "$2/check.cu"; then FLAGS="$FLAGS $(steps)"; fi ;; esac
        export CHECK HCU_LIBS HCU_LOGS CUDA_HOME FLAGS CXX
        cd "$3" || exit 2
        seconds=$((seconds * 4)) # of the compiler and the program together
        limited "$3/log.$4" "$host/run.sh" main.cu
        echo $? >"$3/status.$4"
    )
}
# The first thing that a tool has found in the student's file, as a sentence.
finding() { # LOG
    sed -nE '/ found$/,$s/^  (.*\/)?(lab\.cu:[0-9]+: )/\2/p' "$1" | head -n 1 | sed -E '
        s| [^ ]*/(lab\.cu:)| \1|g
        s/data race, (written|read) here, (written|read) at (.*)/a data race: \1 here, \2 at \3, and nothing orders the two (a barrier, an atomic, the end of a kernel)/
        s/: uninitialised: .*/: a value is used that nobody wrote/
        s/: (address: (use-after-poison|[a-z-]*-overflow)|access past the end of ).*/: it reads or writes past the end of a buffer or of a shared array/
        s/ 0x[0-9a-f]+//g'
}
# What a tool has found in the student's file; else the checker's sentence if it refused; else what was found elsewhere; else the checker's sentence.
cuda_verdict() { # NUMBER WORK VARIANTS
    for v in $3; do
        if [ "$(cat "$2/status.$v")" = 2 ]; then compiled "$1" "$2/log.$v"; return; fi
    done
    for v in $3; do
        found=$(finding "$2/log.$v")
        [ -z "$found" ] || { echo "lab $1: $found"; return; }
    done
    for v in $3; do
        if grep "^lab $1: " "$2/log.$v" | grep -v "^lab $1: passed" | tail -n 1 | grep .; then return; fi
    done
    for v in $3; do
        found=$(sed -n '/ found$/,$s/^  //p' "$2/log.$v" | grep -v '^all of it: ' | head -n 1)
        case $found in
        '') ;;
        */check.cu:*": uninitialised: "*) echo "lab $1: the result rests on memory that nobody wrote: shared memory, or a part of a buffer"; return ;;
        *) echo "lab $1: $found"; return ;;
        esac
    done
    for v in $3; do
        [ "$(cat "$2/status.$v")" = 0 ] || { verdict "$1" "$2/log.$v" "$(cat "$2/status.$v")" | grep -v ': passed' || echo "lab $1: your program fails under $v"; return; }
    done
    verdict "$1" "$2/log.$v" 0
}
gpu() { # NUMBER FOLDER WORK: where nvcc and a device are
    command -v "${NVCC:=nvcc}" >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 || return 0
    if "$NVCC" -std=c++17 -O2 -arch=native -DLAB_NUMBER="$1" -DLAB_SECONDS="$seconds" -I"$labs" -I"$amp" -I"$2" "$3/main.cu" -o "$3/gpu" >"$3/gpu.log" 2>&1; then
        limited "$3/gpu.log" "$3/gpu"
        verdict "$1" "$3/gpu.log" $? | sed 's/$/ (on the GPU)/' >"$3/verdict"
    else
        compiled "$1" "$3/gpu.log" >"$3/verdict"
    fi
}

passed() { grep -q "^lab $1: passed" "$2/verdict"; }

# foreign NUMBER FILE: a sentence if the file uses names that are the checker's, or functions that do the work for it
foreign() {
    awk -v n="$1" -v name="$(column "$1" 3)" -v allowed=" $(column "$1" 6) amp_f16 amp_bf16 amp_f8e4m3 amp_f8e5m2 amp_dtype amp_array " '
        function bare(line,    text, comment) { # without comments, strings and what is included
            while (line != "") {
                if (inside) {
                    if (!(comment = index(line, "*/"))) return text
                    line = substr(line, comment + 2)
                    inside = 0
                } else if (match(line, /^"([^"\\]|\\.)*"/)) line = substr(line, RLENGTH + 1)
                else if (line ~ /^\/\//) return text
                else if (line ~ /^\/\*/) { inside = 1; line = substr(line, 3) }
                else { text = text substr(line, 1, 1); line = substr(line, 2) }
            }
            return text
        }
        {
            line = bare($0)
            while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
                word = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                why = ""
                if (word ~ /^check_/) why = "belongs to the checker"
                if (word ~ /^LAB[0-9]+_/) why = "belongs to the checker; write the number that your page gives"
                if (word ~ /^amp_/ && !index(allowed, " " word " ")) why = "does the work for you; here it is yours to write"
                if (word ~ /^(_Float16|__fp16|__bf16)$/) why = "does the rounding for you; here it is yours to write"
                if (why == "") continue
                print "lab " n ": " name ":" FNR ": " word " " why
                exit
            }
        }' "$2"
}
# one NUMBER FILE WORK: checks FILE as lab NUMBER; the sentence is in WORK/verdict
one() {
    rm -rf "$3"
    mkdir -p "$3" || exit 2
    cp "$2" "$3/$(column "$1" 3)" || exit 2
    kind=$(column "$1" 3)
    case $kind in *.txt) ;; *)
        foreign "$1" "$2" >"$3/verdict"
        [ ! -s "$3/verdict" ] || return 0
        ;;
    esac
    case $kind in
    *.cu) lab_cuda "$1" "$labs/$(column "$1" 2)" "$3" ;;
    *) lab_c "$1" "$labs/$(column "$1" 2)" "$3" ;;
    esac
}

run() { # NUMBER [FILE]
    known "${1:-}"
    name=$(column "$1" 3)
    file=${2:-$labs/$(column "$1" 2)/$name}
    [ -r "$file" ] || die "no file $file"
    case $name in *.cu) [ -z "$(no_cuda)" ] || die "lab $1 needs CUDA's headers and g++, and here is $(no_cuda)" ;; esac
    one "$1" "$file" "$out/$1"
    # what the student printed, and the warnings; the sentence last
    grep -E "^[^ ]*(lab\.c|lab\.cu):[0-9]+:[0-9]+: warning: " "$out/$1/messages" 2>/dev/null | sed 's|^[^ ]*/||' | head -n 5
    if [ -r "$out/$1/log" ]; then grep -v "^lab $1: \|^$" "$out/$1/log" | head -n 80; fi
    cat "$out/$1/verdict"
    passed "$1" "$out/$1"
}

# ---- the checkers themselves ----
n_passed=0 n_failed=0 n_skipped=0
ok() { n_passed=$((n_passed + 1)); }
bad() { n_failed=$((n_failed + 1)); echo "FAIL $*"; }

# What a wrong file begins with: the sentence that it must get, in its first comment; or two, with " | " between them: the first one
# is what a sanitizer says, the second one what is said without.
promised() {
    case $1 in
    *.txt) awk '!/^#/ { exit } { sub(/^# */, ""); print }' "$1" ;;
    *) awk '{ last = sub(/ *\*\/.*/, ""); sub(/^\/\* */, ""); print } last { exit }' "$1" ;;
    esac | tr '\n' ' ' | sed 's/  */ /g; s/ *$//'
}

check_lab() { # NUMBER
    number=$1
    folder=$(column "$1" 2) name=$(column "$1" 3)
    extension=${name##*.}
    secret=$hidden/$folder work=$out/check/$1
    case $extension in cu)
        why=$(no_cuda)
        if [ -n "$why" ]; then n_skipped=$((n_skipped + 1)); echo "skipped: lab $1: $why"; return; fi
        cuda_runtime || { bad "lab $1: the host runtime does not build"; return; }
        ;;
    esac
    begin=$(date +%s)
    LAB_CFLAGS=-Werror
    one "$number" "$secret/solution.$extension" "$work/solution"
    LAB_CFLAGS=
    if passed "$number" "$work/solution"; then ok
    else bad "lab $number: the solution is refused: $(cat "$work/solution/verdict")"; fi
    one "$number" "$labs/$folder/$name" "$work/gap"
    if grep -q "^lab $number: .* is still to be written$" "$work/gap/verdict"; then ok
    else bad "lab $number: the unfilled file: $(cat "$work/gap/verdict")"; fi
    count=0 tried=0
    rm -rf "$work/made"
    mkdir -p "$work/made"
    awk -v to="$work/made/wrong-" -v extension="$extension" -f "$here/labs_wrong.awk" "$secret/solution.$extension" "$secret/wrong.txt" ||
        bad "lab $number: wrong.txt does not fit the solution"
    for wrong in "$work"/made/wrong-*."$extension"; do
        [ -e "$wrong" ] || continue
        count=$((count + 1))
        [ -z "$quick" ] || [ $((count % 5)) = 1 ] || continue
        tool=$(finder "$wrong")
        case "${tool:-no}: $(variants) " in
        no:* | *:*" ${tool% *} "* | *:*" ${tool#* } "*) ;;
        *)
            [ -n "$quick" ] || { n_skipped=$((n_skipped + 1)); echo "skipped: $wrong: no $tool"; }
            continue ;;
        esac
        tried=$((tried + 1))
        planted "$number" "$wrong" "$work/$(basename "$wrong" ".$extension")"
    done
    check_variant "$number" "$secret" "$work"
    if [ $count -ge 4 ]; then ok
    else bad "lab $number: $count wrong solutions, at least 4 are wanted"; fi
    for heading in What Why 'The formula' 'Hand in' Hints; do
        grep -q "^## $heading" "$labs/$folder/README.md" || bad "lab $number: README.md has no chapter \"$heading\""
    done
    echo "lab $number: solution, unfilled file and $tried of $count wrong solutions: $(($(date +%s) - begin)) s"
}
# In the variant of a class the solution of tests/labs is refused, and one for that variant passes: variant.txt changes the solution, and the
# names of its numbers stand for what variant.h has there.
check_variant() { # NUMBER SECRET WORK
    awk -v to="$3/made/" -v extension="$extension" -f "$here/labs_wrong.awk" "$2/solution.$extension" "$2/variant.txt" ||
        bad "lab $1: variant.txt does not fit the solution"
    sed -n 's/^#define \(LAB[0-9]*_[A-Z]*\)  *\(.*\)/s|\1|\2|g/p' "$out/varied/variant.h" >"$3/numbers"
    sed -f "$3/numbers" "$3/made/variant.$extension" >"$3/made/varied.$extension"
    (labs=$out/varied && one "$1" "$3/made/varied.$extension" "$3/varied")
    if passed "$1" "$3/varied"; then ok
    else bad "lab $1: the variant's solution is refused: $(cat "$3/varied/verdict")"; fi
    [ -z "$quick" ] || [ "$extension" != cu ] || return 0 # a third of a minute
    (labs=$out/varied && one "$1" "$2/solution.$extension" "$3/unvaried")
    if grep -q "^lab $1: passed\|does not compile\|crashes" "$3/unvaried/verdict"; then bad "lab $1: of a variant the solution of tests/labs says: $(cat "$3/unvaried/verdict")"
    else ok; fi
}
# The variants of the host runtime of which one must be here, so that this mistake is found; nothing for what each finds.
finder() { # FILE
    case $(promised "$1") in
    *"a data race: "*) echo tsan ;;
    *"past the end of a buffer"*) echo asan ;;
    *"a value is used that nobody wrote" | *"rests on memory that nobody wrote"*) echo msan vg ;;
    esac
}
planted() { # NUMBER FILE WORK
    want=$(promised "$2")
    before=$seconds
    case $2 in */wrong-endless.*) seconds=1 ;; esac
    case $want in *' | '*) one "$1" "$2" "$3" ;; *) (LAB_SANITIZE='' && one "$1" "$2" "$3") ;; esac # a third of the time
    seconds=$before
    got=$(cat "$3/verdict")
    case $want in "lab $1: "*) ;; *) bad "$2 does not begin with the sentence that is wanted"; return ;; esac
    if passed "$1" "$3"; then bad "$2 is accepted"; echo "     wanted: $want"
    elif [ "$got" = "${want% | *}" ] || [ "$got" = "${want#* | }" ]; then ok
    else bad "$2: another sentence than the promised one
     got:    $got
     wanted: $want"; fi
}

# Takes labs that nobody has taken yet, until there are no more; the longest first.
worker() { # NUMBER...
    for n in ${*:-7 8 9 12 $(numbers)}; do
        mkdir "$out/taken/$n" 2>/dev/null || continue
        (
            check_lab "$n"
            echo "$n_passed $n_failed $n_skipped" >"$out/taken/$n/counts"
        ) >"$out/taken/$n/log" 2>&1
    done
}
set_counts() { # PASSED FAILED SKIPPED
    [ $# = 3 ] || return 1
    n_passed=$((n_passed + $1)) n_failed=$((n_failed + $2)) n_skipped=$((n_skipped + $3))
}

check() {
    [ -n "$hidden" ] && [ -d "$hidden" ] || die "the solutions are not here: this is the students' folder"
    quick=
    [ "${1:-}" != --quick ] || { quick=1 LAB_SANITIZE=${LAB_SANITIZE-} LAB_VARIANTS=plain; export LAB_SANITIZE; shift; }
    for n in ${*:-$(numbers)}; do known "$n"; done
    seconds=${LAB_SECONDS:-100} # on a slow machine, too; those without end have one of their own
    whole=
    [ $# != 0 ] || whole=1
    # shellcheck disable=SC2046 # words
    if [ -n "$whole" ] && [ -n "$quick" ]; then set -- $(todays); fi
    # what they share, before several of them want it
    implementation >/dev/null || die "amp.h does not compile"
    sanitizers >/dev/null
    [ -n "$(no_cuda)" ] || cuda_runtime || die "the host runtime does not build"
    jobs=${LAB_JOBS:-$([ -n "$quick" ] && echo 1 || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
    rm -rf "$out/taken" "$out/varied"
    mkdir -p "$out/taken"
    (export_to "$out/varied" --seed first) >/dev/null || die "export --seed"
    workers=
    while [ "$jobs" -gt 0 ]; do
        jobs=$((jobs - 1))
        worker "$@" &
        workers="$workers $!"
    done
    # shellcheck disable=SC2086 # words
    wait $workers
    for n in ${*:-$(numbers)}; do
        cat "$out/taken/$n/log"
        # shellcheck disable=SC2046 # three words
        set_counts $(cat "$out/taken/$n/counts" 2>/dev/null) || bad "lab $n: its check did not end"
    done
    [ -z "$whole" ] || exported
    echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
    [ $n_failed = 0 ]
}

# One lab a day
todays() {
    day=${AMP_DAY:-$(($(date +%s) / 86400))}
    if [ "$day" = all ]; then numbers; return; fi
    numbers | sed -n "$((day % $(numbers | wc -l) + 1))p"
}

# The students' folder works with nothing from here, and shows no solution.
in_export() { # NUMBER [VARIANT]
    (cd "$out/students" && env -u BUILD MAKEFLAGS='' LAB_VARIANTS="${2:-}" "$MAKE" -s lab N="$1") >"$out/students.log" 2>&1
}
exported() {
    rm -rf "$out/students"
    [ -n "$quick" ] || unset IMPL # amp.h is compiled there, too
    (export_to "$out/students") >/dev/null || { bad "export"; return; }
    if find "$out/students" -name 'solution*' -o -name 'wrong*' | grep .; then bad "export shows solutions"; else ok; fi
    if [ -n "$(no_cuda)" ] || $MAKE -n -C "$out/students/tools/hostcuda" BUILD=../../none CUDA_HOME="$(cuda_home)" ../../none/hostcuda/translate \
        ../../none/hostcuda/user/libhostcuda-plain.a >"$out/students.log" 2>&1; then ok
    else bad "the students' host runtime: $(tail -n 3 "$out/students.log")"; fi
    in_export 1
    if tail -n 1 "$out/students.log" | grep -q '^lab 1: .* is still to be written'; then ok
    else bad "make lab N=1 in the students' folder: $(tail -n 3 "$out/students.log")"; fi
    cp "$hidden/01-half/solution.c" "$out/students/01-half/lab.c"
    if in_export 1 && tail -n 1 "$out/students.log" | grep -q '^lab 1: passed'; then ok
    else bad "make lab N=1 in the students' folder: $(tail -n 3 "$out/students.log")"; fi
    for word in fall fall spring; do variant "$word" | cksum; done | uniq | wc -l | grep -q 2 && ok || bad "a word gives the same numbers, and another word others"
    (cd "$out/students" && env -u BUILD LABS='1 2' tools/labs_class.sh grade . "$out/results.json") >"$out/students.log" 2>&1
    if [ "$(grep -c '"score": 10, "max_score": 10, "output": ".*lab 1: passed' "$out/results.json") $(grep -c '"score": 0, .*still to be written"' "$out/results.json")" = "1 1" ]; then ok
    else bad "labs_class.sh grade: $(cat "$out/results.json" "$out/students.log")"; fi
    classes
    # their runtime is a lighter one: light
    if [ -n "$quick$(no_cuda)" ]; then return; fi
    cp "$hidden/07-tensor-cores/solution.cu" "$out/students/07-tensor-cores/lab.cu"
    if in_export 7 "$(variants | cut -d' ' -f1)" && tail -n 1 "$out/students.log" | grep -q '^lab 7: passed'; then ok
    else bad "make lab N=7 in the students' folder: $(tail -n 3 "$out/students.log")"; fi
}

# What a class gets, for Gradescope and for GitHub Classroom: their files are there, in their formats.
classes() {
    rm -rf "$out/classroom" "$out/gradescope.zip"
    "$here/labs_class.sh" classroom "$out/classroom" --seed fall 2 3 >/dev/null
    page=$out/classroom/.github/workflows/classroom.yml
    if [ "$(grep -c 'autograding-command-grader@' "$page")" = 2 ] && grep -q "This class" "$out/classroom/02-sums/README.md" && grep -q '^          runners: lab-2,lab-3$' "$page"; then ok
    else bad "labs_class.sh classroom: $(cat "$page")"; fi
    if python3 -c 'import yaml' 2>/dev/null; then
        if python3 -c 'import sys, yaml; j = yaml.safe_load(open(sys.argv[1]))["jobs"]["run-autograding-tests"]; assert len(j["steps"]) == 5' "$page"; then ok
        else bad "classroom.yml"; fi
    fi
    if ! command -v zip >/dev/null 2>&1 && ! command -v python3 >/dev/null 2>&1; then return; fi
    "$here/labs_class.sh" gradescope "$out/gradescope.zip" --seed fall 2 >/dev/null
    if grep -q run_autograder "$out/gradescope.zip" && grep -q labs/tools/labs_class.sh "$out/gradescope.zip"; then ok
    else bad "labs_class.sh gradescope"; fi
}

# ---- variants: examples/labs/variant.h says what it is ----
# NUMBER|NAME|VALUES|SENTENCE in a line, one for each sentence of a block
alternatives() { # VARIANT.H
    awk '
        function told() { if (sentence != "") kept[++n] = number "|%|" values "|" sentence; sentence = "" }
        /^\/\* lab [0-9]+:/ { number = $3 + 0; n = 0; next }
        number && match($0, /^ \* [-0-9.]+( [-0-9.]+)* = /) {
            told()
            values = substr($0, 4, RLENGTH - 6)
            sentence = substr($0, RLENGTH + 1)
            sub(/ *\*\/$/, "", sentence)
            next
        }
        number && /^ \* / {
            sub(/^ \* +/, "")
            sub(/ *\*\/$/, "")
            sentence = sentence " " $0
            next
        }
        number && /^#define LAB/ {
            told()
            for (i = 1; i <= n; i++) {
                sub(/%/, $2, kept[i])
                print kept[i]
            }
            number = 0
        }' "$1"
}
# WORD: a line NAME VALUE NUMBER SENTENCE for each number of the labs; the value depends on the word and the name. "first": the first values.
variant() {
    alternatives "$labs/variant.h" | while IFS='|' read -r number name values sentence; do
        for value in $values; do echo "$name $value $number $(echo "$sentence" | sed "s/%/$value/g")"; done
    done >"$out/alternatives"
    cut -d' ' -f1 "$out/alternatives" | uniq | while read -r name; do
        at=0
        if [ "$1" != first ]; then at=$(printf '%s %s' "$1" "$name" | cksum | cut -d' ' -f1); fi
        grep "^$name " "$out/alternatives" | awk -v at="$at" '{ line[NR - 1] = $0 } END { print line[at % NR] }'
    done
}
varied() { # DIR WORD: in the students' folder, the numbers, the pages and the first lines of the students' files
    variant "$2" >"$out/variant"
    while read -r name value number sentence; do
        sed "s/^#define $name .*/#define $name $value/" "$1/variant.h" >"$1/variant.new" && mv "$1/variant.new" "$1/variant.h"
        page=$1/$(column "$number" 2)/README.md file=$1/$(column "$number" 2)/$(column "$number" 3)
        awk -v new="$sentence" '
            /^## This class/ { seen = 1 }
            /^## Hand in/ { if (!seen) print "## This class\047s variant\n\nThis holds instead of what the rest of the page and your file say:\n"; print "- " new "\n" }
            { print }' "$page" >"$page.new" && mv "$page.new" "$page"
        grep -q "This class has a variant" "$file" && continue
        case $file in
        *.txt) echo '# This class has a variant of this lab: README.md says which.' ;;
        *) echo '/* This class has a variant of this lab: README.md says which. */' ;;
        esac | cat - "$file" >"$file.new" && mv "$file.new" "$file"
    done <"$out/variant"
    # the students' copy names no other values
    sed '/^\/\* lab/,/\*\/$/d' "$1/variant.h" >"$1/variant.new" && mv "$1/variant.new" "$1/variant.h"
}

# ---- the students' folder ----
export_to() { # DIR
    [ -n "$hidden" ] || die "export works in the repository"
    [ -n "${1:-}" ] || die "export where?"
    [ $# = 1 ] || { [ "$2" = --seed ] && [ -n "${3:-}" ]; } || die "export DIR --seed WORD"
    if [ -e "$1" ] && [ -n "$(ls -A "$1" 2>/dev/null)" ]; then die "$1 is not empty"; fi
    mkdir -p "$1/tools/hostcuda" || exit 2
    for folder in $(table | cut -d'|' -f2); do cp -R "$labs/$folder" "$1/"; done
    cp "$labs/README.md" "$labs/labs.txt" "$labs/lab.h" "$labs/variant.h" "$1/"
    cp "$labs/students.mk" "$1/Makefile"
    cp "$amp/amp.h" "$amp/amp_cuda.cuh" "$amp/LICENSE" "$here/labs.sh" "$here/labs_class.sh" "$1/tools/"
    for header in gpt_net.h gpt_params.h gpt_rows.h rows.h program.h; do cp "$programs/$header" "$1/tools/"; done
    cp "$host"/*.cpp "$host"/*.h "$host"/*.mk "$host/Makefile" "$host"/*.sh "$host"/*.awk "$host/features.txt" "$1/tools/hostcuda/"
    [ ! -e "$build/figures.html" ] || cp "$build/figures.html" "$1/"
    [ $# = 1 ] || varied "$1" "$3"
    echo "the students' folder: $1 (make lab N=1 there)"
}

verb=${1:-}
[ $# = 0 ] || shift
case $verb in
run) run "$@" ;;
check) check "$@" ;;
export) export_to "$@" ;;
runtime)
    implementation >/dev/null || exit 1
    if [ -z "$(no_cuda)" ]; then cuda_runtime; else echo "CUDA labs: $(no_cuda)"; fi
    ;;
*)
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
