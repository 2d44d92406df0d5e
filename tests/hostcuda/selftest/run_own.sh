#!/bin/sh
# run_own.sh VARIANT... - the programs of own/ as a user runs them, by run.sh: the right one finds nothing, each planted mistake is told
# at the line that names it ("MISTAKE n" in softmax.cu) by the variant that the table names; with OWN_FEWER=1 not each of them.
# Last line: own: N passed, M failed
set -u
here=$(cd "$(dirname "$0")" && pwd)
own=$here/own
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
HCU_LOGS=$work
export HCU_LOGS
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
have() { case " $variants " in *" $1 "*) return 0 ;; esac; return 1; }
variants=$*

# MISTAKE VARIANT TEXT: what run.sh must say of it, at a line marked with that number
table='
1 tsan  data race
2 asan  address:
3 plain access past the end
3 asan  access past the end
4 msan  uninitialised
4 vg    uninitialised
5 plain leak: device buffer
5 asan  leak: device buffer
6 plain a host pointer
7 plain different barriers
8 tsan  data race
9 tsan  data race
'
run() { # VARIANT FILE FLAGS
    CHECK=$1 FLAGS=$3 "$here/../run.sh" "$2" >"$work/said" 2>&1
}
for v in plain asan tsan msan vg; do
    have $v || continue
    names=''
    case $v in # what is translated; under a sanitizer it is the same, but the headers are not
    plain) names='language forms' ;;
    asan | tsan) names=forms ;;
    esac
    for name in $names; do
        if run $v "$own/$name.cu" "-I${CUDA_HOME:-/usr/local/cuda}/include" && grep -q "^$name: [1-9][0-9]* passed, 0 failed" "$work/said"; then ok
        else bad "$name.cu, $v"; cat "$work/said"; fi
    done
    if run $v "$own/softmax.cu" "" && grep -q 'add up to 1' "$work/said"; then ok
    else bad "softmax.cu, $v: nothing is wrong with it"; cat "$work/said"; fi
done
if have plain && env --default-signal=INT true 2>/dev/null; then # a kernel that never ends: progress, then Ctrl-C (a background ignores it)
    HCU_PROGRESS_EVERY=1 CHECK=plain env --default-signal=INT timeout 120 "$here/../run.sh" "$own/stuck.cu" >"$work/said" 2>&1
    rc=$?
    waits=$(grep -n '0 to 31 wait here' "$own/stuck.cu" | cut -d: -f1)
    at='hostcuda: launch 1: kernel stuck, block (0,0,0), thread (32,0,0); 0 of 2 blocks are done'
    if [ $rc = 1 ] && grep -q 'hostcuda-run: interrupted' "$work/said" && [ "$(grep -cF "$at" "$work/said")" -ge 3 ] &&
        grep -q "block (0,0,0), threads 0 to 31 .*wait at .*stuck.cu:$waits\$" "$work/said"
    then ok; else bad "stuck.cu: no progress, or not where it was interrupted (status $rc)"; cat "$work/said"; fi
fi
digits() { # MISTAKE VARIANT WHAT IS SAID: NaN or the accuracy of a guess, docs/hostcuda.md
    run "$2" "$own/digits.cu" "-DMISTAKE=$1"
    if grep -qE "$3" "$work/said"; then ok; else bad "digits.cu, mistake $1, $2: not said: $3"; cat "$work/said"; fi
}
if have plain; then
    digits 2 plain '^4 of 40 right, first logit is NaN'
    HCU_FILL=0 && export HCU_FILL
    digits 2 plain '^40 of 40 right, first logit is a number' # a GPU's fresh memory, and the author's luck
    unset HCU_FILL
fi
if have tsan; then digits 4 tsan 'digits\.cu:[0-9]*: data race'; fi
if have tsan; then # what orders threads, but not the one of the MISTAKE: hcu_reads.cpp may not leave out its read
    for n in 0 1 2 3 4; do
        run tsan "$own/orders.cu" "-DMISTAKE=$n"
        rc=$?
        if [ $n = 0 ] && [ $rc = 0 ] && grep -q '^orders: 1' "$work/said"; then ok
        elif [ $n != 0 ] && [ $rc = 1 ] && grep -q 'orders\.cu:[0-9]*: data race' "$work/said"; then ok
        else bad "orders.cu, mistake $n (status $rc)"; cat "$work/said"; fi
    done
fi
if have msan; then digits 2 msan 'digits\.cu:[0-9]*: uninitialised'; fi
echo "$table" | while read -r n v text; do
    [ -n "$n" ] && have "$v" || continue
    case ${OWN_FEWER:+$n} in 5 | 7) continue ;; esac # the table of bugs.cu has them too
    run "$v" "$own/softmax.cu" "-DMISTAKE=$n"
    rc=$?
    lines=$(grep -n "MISTAKE\( [0-9]*\)* $n\( [0-9]*\)* \*/" "$own/softmax.cu" | sed 's/:.*//' | paste -sd '|' -)
    if [ $rc = 1 ] && grep -qE "softmax\.cu:($lines)[:,].*$text" "$work/said"; then echo ok; else
        echo bad
        echo "mistake $n, $v: line $lines is not told:" >>"$work/why"
        cat "$work/said" >>"$work/why"
    fi
done >"$work/results"
passed=$((passed + $(grep -c '^ok' "$work/results"))) failed=$((failed + $(grep -c '^bad' "$work/results")))
[ ! -r "$work/why" ] || sed 's/^/FAIL /' "$work/why"

# what is refused, with the line
refused() { # TEXT OF THE PROGRAM, WHAT IS SAID
    printf '%s\n' "$1" >"$work/wrong.cu"
    CHECK=plain "$here/../run.sh" "$work/wrong.cu" >"$work/said" 2>&1
    if [ $? = 2 ] && grep -q "$2" "$work/said"; then ok
    else bad "refused with another sentence:"; cat "$work/said"; fi
}
if have plain; then
    refused '__shared__ float x[3];
int main() { return 0; }' 'wrong.cu:1: error: hostcuda: __shared__ outside of a function'
    refused '#include <stdio.h>
__global__ void k() {}
int main() { k<<<1, 1>>(); return 0; }' 'wrong.cu:3: error: hostcuda: no >>> to this <<<'
    refused '__global__ void k() { undeclared(3); }
int main() { k<<<1, 1>>>(); return 0; }' 'wrong.cu:1:.*undeclared'
    if CHECK=plain "$here/../run.sh" "$work/nothing.cu" >/dev/null 2>&1; then bad "a file that is not there"; else ok; fi
fi
echo "own: $passed passed, $failed failed"
[ $failed = 0 ]
