#!/bin/sh
# usage: sass_gpt2.sh ARCH    The kernels of a training step of gpt.c in GPT-2's 124M shape, executed as the machine code of sm_ARCH on the
#                             host runtime: the losses and weights of the C++ source, and a table of launches, instructions and bounds
#                             (sass_gpt2.c). The table of sm_90 stands in bench/NOTES.md, the launches in docs/gpt.md.
# Needs what `make for-sass-gpt2` builds. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
arch=${1:?usage: sass_gpt2.sh ARCH}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
export HCU_PROTECT=0
code="$build/sass/sm_$arch $build/sass/gpt_sm_$arch"

# step NAME OPTION...: standard output is in NAME.out, what the probe says in NAME
step() {
    name=$1
    shift
    "$build/hostcuda/plain/gpt" --shape gpt2-124m --batch 1 --mode fp16-dynamic --sample 0 "$@" >"$work/$name.out" 2>"$work/$name" ||
        bad "gpt $*: $(tail -n 3 "$work/$name")"
}
learned() { sed -n 's/ *[0-9]* s left$//; s/.*\(1\/1\|2\/2\) *loss/loss/p; s/.*\(weights after\)/\1/p' "$work/$1" "$work/$1.out"; }
narrow="--width 12 --context 40 --vocab 2056" # more classes than a team takes, as in GPT-2
# shellcheck disable=SC2086 # words
{
    step source $narrow --steps 2
    step source-ordered $narrow --steps 2 --ordered
    export HCU_SASS="$code"
    step one $narrow --steps 1
    step two $narrow --steps 2
    step two-ordered $narrow --steps 2 --ordered
    step wide --layers 1 --width 768 --context 64 --vocab 1024 --steps 1
    step long --layers 1 --heads 1 --width 12 --context 1024 --vocab 8 --steps 1
}
if [ -n "$(learned two)" ] && [ "$(learned two)" = "$(learned source)" ]; then ok
else bad "the machine code learns something else than the source: $(learned two), $(learned source)"; fi
if learned two-ordered | grep -q weights && [ "$(learned two-ordered)" = "$(learned source-ordered)" ]; then ok
else bad "the machine code has other weights than the source: $(learned two-ordered), $(learned source-ordered)"; fi

echo "sm_$arch: share of nominal memory bandwidth that the instructions allow at most (counted, not timed)"
if "$build/sass/gpt2" "$arch" tests/expected/sass.txt "$work/one" "$work/two" "$work/wide" "$work/long" >"$work/table"; then ok
else bad "a kernel of the step is not counted"; fi
cat "$work/table"
launches=$(tail -n 1 "$work/table" | cut -d' ' -f1)
if grep -q "A step of it has $launches launches" docs/gpt.md; then ok
else bad "docs/gpt.md does not say that a step has $launches launches"; fi
if [ "$arch" = 90 ]; then
    grep '^|' "$work/table" >"$work/rows"
    while read -r row; do
        if grep -q -x -F -e "$row" bench/NOTES.md; then ok
        else bad "not in bench/NOTES.md: $row"; fi
    done <"$work/rows"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
