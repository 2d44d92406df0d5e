#!/bin/sh
# usage: examples.sh [--full]        Runs the examples, those in $BUILD with --full; else all but digits and gpt are built here and linked with
# $IMPL, the object of tests/impl.c, in place of an implementation of their own:
#   programs print what their comments promise, or, where no comment does, just succeed; digits holds its claims over 2 seeds (--full: 5) on both networks; gpt holds its own; digits reads IDX files; and
#   every wrong option gives exit status 2, every wrong file 1, with one line on stderr that names it, and leaves nothing behind. On the host runtime gpt alone runs; --full: convnet, debug and release, too. Without it
#   the claims of digits, gpt and convnet and the two MPIs have their days (tests/today.sh).
# Last line: N passed, N failed, N skipped.
set -u
build=${BUILD:-build}
build=$(cd "$build" && pwd) || exit 2
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
. "$top/tests/today.sh"
cd "$work" || exit 2 # so that a list of options has no path in it, which may have spaces
full=
[ "${1:-}" != --full ] || full=1
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
digits() { ${RUN_ENV:-} "$build/digits" "$@"; }

# ---- programs ----
# linked NAME [COMPILER [FILE]]: built without its implementation, in a tenth of the time, with one more file
linked() {
    sed 's/^#define AMP_IMPLEMENTATION.*//' "$top/examples/$1.c" |
        "${2:-${CC:-cc}}" -std=c99 -O1 -Wall -Wextra -Werror -DAMP_LINKED -iquote "$top/examples" -I"$top" -x c - -x none ${3:+"$3"} "$IMPL" -lm -pthread \
            -o "$work/$1"
}
programs=$build
[ -n "$full" ] || [ -z "${IMPL:-}" ] || { programs=$work; IMPL=$(cd "$top" && realpath "$IMPL"); }
for source in "$top"/examples/*.c; do
    case $source in */digits.c | */gpt.c | */ranks_mpi.c) continue ;; esac
    name=$(basename "$source" .c)
    if [ "$programs" = "$work" ] && ! linked "$name" >"$work/log" 2>&1; then bad "$name does not build: $(cat "$work/log")"; continue; fi
    case $source in */convnet.c | */debug.c | */release.c) continue ;; esac # below: their claims
    if ! grep -q '^ \*   > ' "$source"; then
        # shellcheck disable=SC2086
        if (cd "$work" && ${RUN_ENV:-} "$programs/$name" >log 2>&1) && [ -s "$work/log" ]; then ok; else bad "$name: $(cat "$work/log")"; fi
        continue
    fi
    # shellcheck disable=SC2086
    if (cd "$work" && "$top/tests/check_output.sh" "$source" ${RUN_ENV:-} "$programs/$name"); then ok; else bad "$name"; fi
done

# ---- digits and gpt are in $BUILD, linked with an object: do they stand alone, too? ----
alone=
[ "$programs" = "$build" ] || alone=-fsyntax-only
[ -z "$full" ] || alone="-O1 -o alone"
for name in ${alone:+digits gpt}; do
    # shellcheck disable=SC2086 # words
    if "${CC:-cc}" -std=c99 -Wall -Wextra -Werror -I"$top" $alone "$top/examples/$name.c" -lm -pthread >"$work/log" 2>&1 &&
        { [ "$alone" = -fsyntax-only ] || ${RUN_ENV:-} "$work/alone" --help >"$work/log"; }; then ok
    else bad "$name alone: $(head -n 5 "$work/log")"; fi
done

# ---- digits: its claims ----
seeds=2
[ -z "$full" ] || seeds=5
if today 1 3; then
    digits --check --seeds $seeds >"$work/claims" 2>&1
    rc=$?
    grep '^WRONG' "$work/claims"
    n=$(grep -c '^ok ' "$work/claims")
    passed=$((passed + n)) failed=$((failed + $(grep -c '^WRONG' "$work/claims")))
    if [ $rc != 0 ] || [ "$n" -lt 10 ]; then bad "digits --check: exit status $rc, $n claims hold"; fi
fi

# ---- on the host runtime, without --full: smaller grids, in less time ----
if [ -z "$full" ]; then
    HCU_SMS=4
    export HCU_SMS
fi

# ---- gpt: its claims; a run on a text; on the host runtime its kernels, and how many launches a step has ----
gpt() { ${RUN_ENV:-} "$build/gpt" "$@"; }
claims() { # NAME MINIMUM COMMAND...: each line "ok" counts, and there are at least so many
    name=$1 least=$2
    shift 2
    "$@" >"$work/claims" 2>"$work/err"
    rc=$?
    grep '^WRONG' "$work/claims"
    n=$(grep -c '^ok ' "$work/claims")
    passed=$((passed + n)) failed=$((failed + $(grep -c '^WRONG' "$work/claims")))
    if [ $rc != 0 ] || [ "$n" -lt "$least" ]; then bad "$name: exit status $rc, $n claims hold: $(tail -n 2 "$work/err")"; fi
}
if today 2 3; then claims "gpt --check" 23 gpt --check --threads 1; fi
awk 'BEGIN { for (i = 0; i < 300; i++) print "line " i * i % 97 " of a text that repeats itself" }' >"$work/text"
if gpt --data "$work/text" --layers 1 --width 32 --context 16 --batch 4 --steps 30 --threads 1 --chunks 2 --sample 20 --seeds 2 --mode fp32,fp16-dynamic \
    --out "$work/gpt" >"$work/log" 2>"$work/err" && [ "$(grep -c 'as planned$' "$work/log")" = 4 ] && grep -q '^Means over 2 seeds' "$work/log" &&
    grep -q 'has learnt to write' "$work/log" && [ "$(find "$work/gpt" -name 'gpt_*.svg' | wc -l)" = 6 ]; then ok; else bad "gpt on a text: $(tail -n 3 "$work/log" "$work/err")"; fi
if gpt --draw "$work/gpt/gpt_loss.txt" --out "$work/again" >"$work/log" 2>"$work/err" && grep -q '<circle' "$work/again/gpt_loss.svg" &&
    gpt --draw "$top/docs/img/gpt_loss.txt" --out "$work/again" >"$work/log" 2>"$work/err" && cmp "$work/again/gpt_loss.svg" "$top"/docs/img/gpt_loss.svg &&
    cmp "$work/again/gpt_loss_phone.svg" "$top"/docs/img/gpt_loss_phone.svg; then ok; else bad "gpt --draw: $(tail -n 3 "$work/err")"; fi
echo "fp32 1.9" >"$work/no.txt"
if gpt --draw "$work/no.txt" --out "$work/again" >"$work/log" 2>"$work/err"; then
    bad "gpt --draw takes what is no record"
else
    ok
fi
for act in gelu-fp8 relu; do # what they keep for backward is what was planned
    if gpt --data "$work/text" --layers 1 --width 32 --context 16 --batch 4 --steps 3 --threads 1 --sample 0 --mode bf16 --act $act --out "$work/gpt" >"$work/log" 2>"$work/err" &&
        grep -q 'as planned$' "$work/log"; then ok; else bad "gpt --act $act: $(tail -n 3 "$work/log" "$work/err")"; fi
done
for picture in "$work"/gpt/*.svg; do
    if tail -n 1 "$picture" | grep -q '</svg>' && ! grep -q 'nan\|inf' "$picture"; then ok; else bad "$picture is not whole"; fi
done
wrong_status() { # 1 for what is wrong only beside the data
    case $1 in
        "--data none") echo 1 ;;
        *) echo 2 ;;
    esac
}
for wrong in "--mode fp64" "--steps 0" "--heads 3" "--chunks 5" "--shape gpt9" "--norm fp64" "--act tanh" "--softmax bf16" "--embed 1001" "--data none" "--nonsense 1"; do
    # shellcheck disable=SC2086 # two words
    (cd "$work" && gpt $wrong >log 2>err)
    rc=$?
    if [ $rc = $(wrong_status "$wrong") ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q -e "${wrong%% *}\|${wrong#* }" "$work/err"; then ok; else bad "gpt $wrong: $rc, $(cat "$work/err")"; fi
done
# in the defined order 40 steps give the same weights with any number of threads
small="--data text --layers 1 --width 32 --context 16 --batch 4 --steps 40 --mode fp16-dynamic,bf16 --ordered --out gpt"
weights() { "$@" 2>/dev/null | grep 'weights after'; }
# shellcheck disable=SC2086 # many words
want=$(weights gpt $small --threads 1)
# shellcheck disable=SC2086
if [ "$(echo "$want" | wc -l)" = 2 ] && [ "$(weights gpt $small --threads 3)" = "$want" ]; then ok; else bad "gpt --ordered: other weights with 3 threads: $want"; fi
if [ -x "$build/hostcuda/plain/gpt" ]; then
    HCU_PROTECT=0
    export HCU_PROTECT
    if [ -n "$full" ]; then
        # shellcheck disable=SC2086
        if [ "$(weights "$build/hostcuda/plain/gpt" --device cuda $small)" = "$want" ]; then ok
        else bad "gpt --ordered on the host runtime: not $want"; fi
    fi
    if today 2 2; then
        claims "gpt --check-gradients on the host runtime" 8 "$build/hostcuda/plain/gpt" --check-gradients --device cuda
        if grep leaks "$work/err"; then bad "gpt leaks on the host runtime"; else ok; fi
    fi
    # layer norm and softmax in FP16: the same weights as on the CPU
    half="--data text --layers 1 --width 32 --context 8 --batch 2 --steps 2 --sample 0 --mode fp16-dynamic --ordered --norm fp16 --softmax fp16 --out gpt"
    # shellcheck disable=SC2086 # many words
    want=$(weights gpt $half)
    # shellcheck disable=SC2086
    if [ -n "$want" ] && [ "$(weights "$build/hostcuda/plain/gpt" --device cuda $half)" = "$want" ]; then ok
    else bad "gpt --norm fp16 on the host runtime: not $want"; fi
    # GPT-2's 12 layers and 12 heads, as narrow as can be, and more rows than one part of a column's sum has: what a step
    # launches depends on nothing else
    for steps in 1 2; do
        "$build/hostcuda/plain/gpt" --shape gpt2-124m --width 12 --context 40 --batch 1 --vocab 8 --mode fp16-dynamic --steps $steps >"$work/log" 2>"$work/steps.$steps" ||
            bad "gpt2-124m on the host runtime: $(tail -n 2 "$work/steps.$steps")"
    done
    launches=$(cat "$work/steps.1" "$work/steps.2" | awk '$1 == "probe:" { l = $3 - l; p = $5 - p } END { print l " launches, " p " products" }')
    echo "gpt2-124m: a step has $launches"
    if grep -q "$launches" "$top/docs/gpt.md"; then ok; else bad "docs/gpt.md does not say that a step of gpt2-124m has $launches"; fi
    unset HCU_PROTECT
else
    skipped=$((skipped + 1))
    echo "skipped: gpt on the host runtime: needs hostcuda: g++ and the CUDA headers"
fi

# ---- convnet: its claims; on the host runtime its kernels; wrong options ----
convnet() { ${RUN_ENV:-} "$programs/convnet" "$@"; }
if today 3 3; then claims "convnet --check" 55 convnet --check --threads 1; fi
if [ -z "$full" ]; then : # gpt's kernels stand for those of the others
elif [ -x "$build/hostcuda/plain/convnet" ]; then
    HCU_PROTECT=0
    export HCU_PROTECT
    claims "convnet --check-layers on the host runtime" 51 "$build/hostcuda/plain/convnet" --check-layers --device cuda
    if grep leaks "$work/err"; then bad "convnet leaks on the host runtime"; else ok; fi
    unset HCU_PROTECT
else
    skipped=$((skipped + 1))
    echo "skipped: convnet on the host runtime: needs hostcuda: g++ and the CUDA headers"
fi
for wrong in "--mode fp64" "--mode fp32,,bf16" "--epochs 0" "--batch 5000" "--lr nan" "--seeds 0" "--data none" "--device tpu" "--nonsense 1"; do
    # shellcheck disable=SC2086 # two words
    (cd "$work" && convnet $wrong >log 2>err)
    rc=$?
    if [ $rc = $(wrong_status "$wrong") ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q -e "${wrong%% *}\|${wrong#* }" "$work/err"; then ok
    else bad "convnet $wrong: $rc, $(cat "$work/err")"; fi
done

# ---- debug: its claims and pictures; on the host runtime the same with few steps; wrong options ----
mkdir -p "$work/patients"
claims "debug --check" 16 "$programs/debug" --check --out "$work/patients"
for picture in "$work"/patients/debug_1.svg "$work"/patients/debug_2.svg "$work"/patients/debug_3.svg; do
    if tail -n 1 "$picture" | grep -q '</svg>' && ! grep -q '"[^"]*\(nan\|inf\)[^"]*"' "$picture"; then ok
    else bad "$picture is not whole"; fi
done
if [ -s "$work/patients/debug_3.svg" ] && [ ! -e "$work/patients/debug.state" ]; then ok
else bad "debug leaves its state file, or has not run"; fi
if [ -z "$full" ]; then :
elif [ -x "$build/hostcuda/plain/debug" ]; then
    HCU_PROTECT=0
    export HCU_PROTECT
    claims "debug --check on the host runtime" 16 "$build/hostcuda/plain/debug" --check --steps 4 --device cuda --out "$work/patients"
    unset HCU_PROTECT
else
    skipped=$((skipped + 1))
    echo "skipped: debug on the host runtime: needs hostcuda: g++ and the CUDA headers"
fi
for wrong in "--steps 0" "--device tpu" "--nonsense 1"; do
    # shellcheck disable=SC2086 # two words
    (cd "$work" && "$programs/debug" $wrong >log 2>err)
    rc=$?
    if [ $rc = $(wrong_status "$wrong") ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q -e "${wrong%% *}" "$work/err"; then ok
    else bad "debug $wrong: $rc, $(cat "$work/err")"; fi
done

# ---- release: gradients have the memory of one layer, and the losses are those of the ordinary loop ----
claims release 12 "$programs/release"
if [ -z "$full" ]; then :
elif [ -x "$build/hostcuda/plain/release" ]; then
    claims "release on the host runtime" 12 "$build/hostcuda/plain/release" --device cuda --steps 3 --layers 3 --width 32
    if grep leaks "$work/err"; then bad "release leaks on the host runtime"; else ok; fi
else
    skipped=$((skipped + 1))
    echo "skipped: release on the host runtime: needs hostcuda: g++ and the CUDA headers"
fi

# ---- ranks_mpi, with each MPI: its claims with 4 processes; one of 4 dies, and 2 go on from the state file as if nothing had happened.
# Without --full its collectives sleep while they wait: tests/patient_mpi.c ----
has() { command -v "$1" >/dev/null 2>&1; }
find_mpi() { # NAME VERSION: $mpicc and $mpirun are Debian's of that name, else those that say in their version that they are it
    mpicc=mpicc.$1 mpirun=mpirun.$1
    if ! has "$mpicc" || ! has "$mpirun"; then
        mpicc=mpicc mpirun=mpirun
        has mpicc && has mpirun && mpirun --version 2>&1 | grep -q -i -e "$2" || return 1
    fi
    echo '#include <mpi.h>' | "$mpicc" -x c -E - >/dev/null 2>&1 # Debian's mpich has a compiler, and libmpich-dev this
}
build_ranks() { # COMPILER: $work/ranks_mpi
    if [ "$programs" = "$work" ]; then linked ranks_mpi "$1" "$top/tests/patient_mpi.c"
    elif [ -n "$full" ]; then "$1" -std=c99 -O1 -Wall -Wextra -Werror -I"$top" "$top/examples/ranks_mpi.c" -lm -pthread -o "$work/ranks_mpi"
    else cp "$build/ranks_mpi" "$work/ranks_mpi"; fi
}
mpi() { # COUNT ARGUMENT...
    n=$1
    shift
    # shellcheck disable=SC2086 # none, or one word
    (cd "$work" && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$mpirun" -n "$n" $oversubscribe ./ranks_mpi "$@")
}
survives() { # NAME RANKS HALF-OF-THEM: Open MPI says on standard error that a process died, MPICH on standard output, where it
    # may name a process that it stopped itself
    rm -f "$work/whole" "$work/half"
    mpi "$2" --mode sharded --ranks "$2" --steps 150 --state whole >"$work/log" 2>"$work/err" || bad "ranks_mpi, $1: $(tail -n 3 "$work/err")"
    want=$(awk '$1 == "sharded" { print $NF }' "$work/log")
    if mpi "$2" --mode sharded --ranks "$2" --steps 150 --state half --kill "$3" --at 120 >"$work/log" 2>"$work/err"; then
        bad "ranks_mpi, $1: a process died, and nobody noticed"
    elif cat "$work/err" "$work/log" | grep -q 'signal 9\|Killed\|KILLED\|APPLICATION TERMINATED'; then ok
    else bad "ranks_mpi, $1: a process died, and nobody says so: $(cat "$work/err" "$work/log" | tail -n 3)"; fi
    mpi "$3" --mode plain --ranks "$3" --steps 150 --state half --resume >"$work/log" 2>"$work/err" || bad "ranks_mpi --resume, $1: $(tail -n 3 "$work/err")"
    if [ -n "$want" ] && grep -q "^plain.* $want\$" "$work/log"; then ok
    else bad "ranks_mpi --resume, $1: not the state $want: $(cat "$work/log")"; fi
}
openmpi='Open MPI\|OpenRTE' mpich='MPICH\|HYDRA' # in their versions
ranks() { # NAME VERSION
    if ! find_mpi "$1" "$2" || [ -n "${RUN_ENV:-}" ]; then
        skipped=$((skipped + 1))
        echo "skipped: ranks_mpi, $1: no mpicc.$1 with mpi.h, or no mpirun.$1 (or RUN_ENV is set)"
        return
    fi
    if ! build_ranks "$mpicc" >"$work/log" 2>&1; then bad "ranks_mpi, $1, does not build: $(cat "$work/log")"; return; fi
    oversubscribe=
    [ "$1" != openmpi ] || oversubscribe=--oversubscribe
    before=$failed
    claims "ranks_mpi --check, $1" 11 mpi 4 --check
    [ -z "$full" ] || claims "ranks_mpi --check --model gpt, $1" 11 mpi 4 --check --model gpt
    [ $failed = $before ] || return
    survives "$1" 4 2
    for wrong in "--rows 100000" "--mode both"; do
        # shellcheck disable=SC2086 # two words
        if mpi 2 --steps 10 $wrong >"$work/log" 2>"$work/err"; then bad "ranks_mpi $wrong, $1, is not refused"
        elif grep -q -e "$wrong" "$work/err"; then ok
        else bad "ranks_mpi $wrong, $1: $(cat "$work/err")"; fi
    done
}
if today 1 2 || ! find_mpi mpich "$mpich"; then ranks openmpi "$openmpi"; fi
if today 2 2 || ! find_mpi openmpi "$openmpi"; then ranks mpich "$mpich"; fi

# ---- exchange: what it wrote is read by others, and what they write by it; headers that are wrong ----
exchange() { (cd "$work" && ${RUN_ENV:-} "$programs/exchange" "$@"); }
if [ "$(find "$work" -name 'run.*' | wc -l)" != 4 ] || [ -n "$(find "$work" -name '*.tmp')" ]; then bad "exchange: not four files, or a temporary one"; fi
if "${PYTHON:-python3}" -c 'import numpy' 2>/dev/null; then
    # shellcheck disable=SC2086 # none, or words
    counts=$(cd "$work" && "${PYTHON:-python3}" "$top/tests/exchange.py" ${RUN_ENV:-} "$programs/exchange" 2>&1)
    echo "$counts" | sed '$d'
    # shellcheck disable=SC2046 # three words are wanted
    set -- $(echo "$counts" | tail -n 1 | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ $# = 3 ]; then passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); else bad "exchange.py: $counts"; fi
else
    skipped=$((skipped + 1))
    echo "skipped: exchange beside numpy and safetensors: ${PYTHON:-python3} cannot import numpy"
fi
tensors() { # HEADER BYTES-OF-DATA: a safetensors file
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o\\%03o\\0\\0\\0\\0\\0\\0' $((${#1} & 255)) $((${#1} >> 8)))"
    printf '%s' "$1"
    head -c "$2" /dev/zero
}
npy() { # HEADER BYTES-OF-DATA
    # shellcheck disable=SC2059
    printf "$(printf '\\223NUMPY\\1\\0\\%03o\\0' ${#1})"
    printf '%s' "$1"
    head -c "$2" /dev/zero
}
not_taken() { # FILE WORDS: exit status 1, and one line that has them behind the file's name
    exchange "$1" >"$work/log" 2>"$work/err"
    rc=$?
    if [ $rc = 1 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q -e "$1:* $2" "$work/err"; then ok
    else bad "exchange, $2: $rc, $(cat "$work/log" "$work/err")"; fi
}
a='"dtype":"F32","shape":[2],"data_offsets":[0,8]'
while IFS='|' read -r bytes header words; do
    tensors "$header" "$bytes" >"$work/bad.safetensors"
    not_taken bad.safetensors "$words"
done <<END
8||'{' is expected
8|[]|'{' is expected
8|{"a":{$a}|a comma is expected
8|{"a":{$a},}|a string is expected
8|{"a":{"dtype":"F32","shape":[2,],"data_offsets":[0,8]}}|a number is expected
8|{"a":{$a}}x|text behind the header
8|{"a":{$a},"a":{$a}}|a name twice
8|{"a:{$a}}|':' is expected
8|{"a\\u0062":{$a}}|a name too long, or with a backslash
8|{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}|a dtype that is not
8|{"a":{"shape":[2],"data_offsets":[0,8]}}|a tensor without a dtype
4|{"a":{"dtype":"F32","data_offsets":[0,4]}}|a tensor without a dtype, or without a shape
8|{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}|two offsets are expected
8|{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}|a number is expected
8|{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}|a list is too long
8|{"a":{"dtype":"F32","shape":[9999999999999999999999],"data_offsets":[0,8]}}|a number is too large
8|{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}|a shape of more elements
8|{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}|a shape of more elements\|dtype and shape need
8|{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}|data behind the end
4|{"a":{$a}}|data behind the end
12|{"a":{$a}}|bytes that no tensor has
12|{"a":{$a},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}|tensors overlap
16|{"a":{$a},"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}|bytes that no tensor has
8|{"a":{$a,"more":1}}|an unknown field
8|{"__metadata__":{"a":1},"a":{$a}}|a string is expected
8|{"__metadata__":{"a":"b\\"},"a":{$a}}|a comma is expected
END
while IFS='|' read -r bytes header words; do
    npy "$header" "$bytes" >"$work/bad.npy"
    not_taken bad.npy "$words"
done <<END
8|{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }|a dtype that is not
8|{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }|an array stored by columns
8|{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }|dtype and shape need
8|{'descr': '<f4', 'fortran_order': False, 'shape': 2, }|a list is expected
8|{'descr': '<f4', 'fortran_order': False, 'shape': (2), 'descr': '<f2', }|dtype and shape need
8|{'descr': '<f4', 'fortran_order': False, 'shape': (2,), |a string is expected
END
head -c 20 "$work/run.model.safetensors" >"$work/bad.safetensors"
not_taken bad.safetensors "the header is longer than the file"
head -c 5 "$work/run.model.safetensors" >"$work/bad.safetensors"
not_taken bad.safetensors "it is too short"
head -c 8 "$work/run.model.safetensors" >"$work/bad.npy"
not_taken bad.npy "it is no .npy"
not_taken missing.npy "cannot be read"
# a run does not begin from files that lack a tensor or have it in another shape; it goes on from good ones
cp "$work/run.weights.safetensors" "$work/half.weights.safetensors"
cp "$work/run.weights.safetensors" "$work/half.moments.safetensors"
if exchange 1 half next >"$work/log" 2>"$work/err" || [ -e "$work/next.weights.safetensors" ]; then bad "exchange goes on without moments"
elif grep -q 'half.moments.safetensors has no 0.weight.exp_avg' "$work/err"; then ok; else bad "exchange without moments: $(cat "$work/err")"; fi
sed 's/"shape": \[16, 8\]/"shape": [8, 16]/' "$work/run.weights.safetensors" >"$work/half.weights.safetensors"
if exchange 1 half next >"$work/log" 2>"$work/err" || ! grep -q '0.weight has another shape' "$work/err"; then bad "exchange takes [8, 16] for [16, 8]: $(cat "$work/err")"; else ok; fi
if exchange 10 run next && exchange next.moments.safetensors | grep -q '^0.bias.step f32 \[\] sum 20$'; then ok; else bad "exchange 10 run next"; fi

# ---- digits: in the defined order every path gives the same weights ----
digits_weights() { digits --ordered --epochs 1 --out "$work/out" "$@" 2>&1 | grep ' seed 1: '; }
want=$(digits_weights --mode amp-dynamic,bf16)
for path in "--simd scalar --threads 1" "--threads 3"; do
    # shellcheck disable=SC2086
    if [ -n "$want" ] && [ "$(digits_weights --mode amp-dynamic,bf16 $path)" = "$want" ]; then ok; else bad "digits --ordered $path: other weights"; fi
done

# ---- digits: IDX files, good and bad ----
be32() { # $1 as 4 bytes, the highest first
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}
# images FILE MAGIC COUNT ROWS COLUMNS BYTES; labels FILE MAGIC COUNT BYTES: what the header says, and how many bytes follow it
images() { { be32 "$2"; be32 "$3"; be32 "$4"; be32 "$5"; awk -v n="$6" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 33 + i * 7 % 90 }'; } >"$1"; }
labels() { { be32 "$2"; be32 "$3"; awk -v n="$4" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 1 + i % 9 }'; } >"$1"; }
good() { # a folder with four right files: 64 training images and 16 test images of 5 x 4 pixels
    rm -rf "$work/idx"
    mkdir "$work/idx"
    images "$work/idx/train-images-idx3-ubyte" 2051 64 5 4 1280
    labels "$work/idx/train-labels-idx1-ubyte" 2049 64 64
    images "$work/idx/t10k-images-idx3-ubyte" 2051 16 5 4 320
    labels "$work/idx/t10k-labels-idx1-ubyte" 2049 16 16
}
good
if convnet --data "$work/idx" >"$work/log" 2>&1; then bad "convnet --data: images of 5 x 4 pixels"; elif grep -q 'multiples of 4' "$work/log"; then ok; else bad "convnet --data: $(cat "$work/log")"; fi
images "$work/idx/train-images-idx3-ubyte" 2051 64 8 4 2048
images "$work/idx/t10k-images-idx3-ubyte" 2051 16 8 4 512
if convnet --data "$work/idx" --epochs 1 --batch 16 --seeds 1 --mode bf16 >"$work/log" 2>&1 && grep -q '^bf16 .*%' "$work/log"; then ok
else bad "convnet --data: $(cat "$work/log")"; fi
good
if digits --data "$work/idx" --epochs 1 --out "$work/out" --csv "$work/steps.csv" >"$work/log" 2>&1 && [ -s "$work/steps.csv" ] &&
    [ "$(find "$work/out" -name '*.svg' | wc -l)" -ge 3 ]; then ok; else bad "digits --data: $(tail -n 2 "$work/log")"; fi
for picture in "$work"/out/*.svg; do # well-formed as far as a tool here can tell
    if { head -c 200 "$picture" | grep -q '<svg' && tail -n 1 "$picture" | grep -q '</svg>'; }; then ok; else bad "$picture is not an SVG file"; fi
    if grep -q 'class="finding"[^>]*>[^<]\{10,\}' "$picture"; then ok
    else bad "$picture does not say its finding"; fi
    if command -v xmllint >/dev/null 2>&1; then if xmllint --noout "$picture"; then ok; else bad "$picture is not well-formed"; fi; fi
done
if digits --help >"$work/log" 2>"$work/err" && grep -q -- --seeds "$work/log" && [ ! -s "$work/err" ]; then ok; else bad "digits --help"; fi

# refused WORD ARGUMENT...: exit status $status (2: the command line, 1: what it names), one line on stderr with WORD in it, no training, nothing new in the folder
refused() {
    word=$1
    shift
    rm -rf "$work/empty"
    mkdir "$work/empty"
    (cd "$work/empty" && digits "$@" >../log 2>../err)
    rc=$?
    if [ $rc != $status ]; then bad "digits $*: exit status $rc, not $status"
    elif [ "$(wc -l <"$work/err")" != 1 ]; then bad "digits $*: not one line on stderr: $(cat "$work/err")"
    elif ! grep -q -e "$word" "$work/err"; then bad "digits $*: '$word' is not named: $(cat "$work/err")"
    elif [ -n "$(ls -A "$work/empty")" ]; then bad "digits $*: left $(ls -A "$work/empty")"
    elif grep -q '^.* step ' "$work/log"; then bad "digits $*: trained all the same"
    else ok; fi
}
status=2
refused nonsense --nonsense
refused "--epochs needs a value" --epochs
refused nonsense nonsense
refused --net --net
refused --net --net wide
refused --mode --mode fp64
refused --mode --mode fp32,,bf16
refused --seeds --seeds 0
refused --seeds --seeds 1.5
refused --seed --seed -1
refused --epochs --epochs many
refused --batch --batch 0
refused --batch --batch 100000000
refused --hidden --hidden 64x
refused --lr --lr nan
refused --lr --lr -1
refused --lr --lr ''
refused --simd --simd mmx
refused --threads --threads 0
refused --device --device tpu
status=1
refused --batch --batch 2000
refused --csv --csv "$work/no/such/folder/x.csv"
refused --out --out "$work/no/such/folder"
refused --out --out "$work/log"
refused no-such --data "$work/no-such"
refused --report --net both --report "$work/no/such/folder/page.html"
status=2
refused --check --check --mode fp32
refused --report --net plain --report page.html
refused --report --net both --mode fp32,bf16 --report page.html
refused --report --net both --seeds 2 --report page.html
refused --report --check --report page.html
status=1
for f in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    good; rm "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; : >"$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; head -c 6 "$work/idx/$f" >"$work/part"; mv "$work/part" "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; head -c 20 "$work/idx/$f" >"$work/part"; mv "$work/part" "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; printf x >>"$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; rm "$work/idx/$f"; mkdir "$work/idx/$f"
    refused "$f" --data "$work/idx"
done
good; images "$work/idx/train-images-idx3-ubyte" 2049 64 5 4 1280; refused train-images --data "$work/idx"     # a magic of labels
good; labels "$work/idx/t10k-labels-idx1-ubyte" 2051 16 16;        refused t10k-labels --data "$work/idx"      # a magic of images
good; labels "$work/idx/train-labels-idx1-ubyte" 2049 63 63;       refused 63 --data "$work/idx"               # counts that differ
good; labels "$work/idx/t10k-labels-idx1-ubyte" 2049 17 17;        refused 17 --data "$work/idx"
good; images "$work/idx/train-images-idx3-ubyte" 2051 0 5 4 0; labels "$work/idx/train-labels-idx1-ubyte" 2049 0 0
refused train- --data "$work/idx"                                                                              # zero images
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 0 5 4 0; labels "$work/idx/t10k-labels-idx1-ubyte" 2049 0 0
refused t10k- --data "$work/idx"
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 16 0 4 0;     refused t10k-images --data "$work/idx"      # zero pixels
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 16 4 4 256;   refused t10k-images --data "$work/idx"      # another size than those for training
good; images "$work/idx/train-images-idx3-ubyte" 2051 4294967295 65535 65535 64; refused train-images --data "$work/idx"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
