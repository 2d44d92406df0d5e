#!/bin/bash
# truth.sh BUILD - is what the host runtime says of CUDA true? Where nvcc and a GPU are: runs the tests of the language, of
# cuBLAS and of wmma on it, and asks the questions of beliefs.cu and beliefs_numbers.cu both of it and of the host runtime
# (BUILD/truth has them, compiled for both).  Answers that differ are printed: those whose names begin with "exact" are
# failures, of the others each is to be judged.  Last line: truth: N passed, M failed
set -u
build=$1/truth passed=0 failed=0
command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: hostcuda-truth: no GPU"; exit 77; }
export HCU_ABORT=0 # a question may be about a bug
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }
for t in test_lang test_blas test_wmma; do
    if "$build/$t.gpu" >"$build/$t.log" 2>&1; then ok; else bad "$t"; cat "$build/$t.log"; fi
done
answers() { # SUFFIX: one process for each group, and for each question that may kill the device
    for g in last attributes memory pool launch objects capture waits dead "fault address" "fault misaligned" \
        "fault trap" "fault shared" "fault end"; do
        # shellcheck disable=SC2086
        timeout 60 "$build/beliefs.$1" $g 2>/dev/null
    done
    for g in exact math warp blas curand "risky 0" "risky 1" "risky 2" "risky 3" "risky 4" "risky 5" "risky 6" "risky 7" \
        "risky 8" "risky 9"; do
        # shellcheck disable=SC2086
        timeout 60 "$build/beliefs_numbers.$1" $g 2>/dev/null
    done
    CUDA_VISIBLE_DEVICES='' HCU_DEVICES=0 timeout 60 "$build/beliefs.$1" none 2>/dev/null
}
answers gpu >"$build/answers.gpu"
answers host >"$build/answers.host"
if [ "$(wc -l <"$build/answers.gpu")" -gt 300 ]; then ok; else bad "few answers of the GPU"; fi
diff -U0 "$build/answers.host" "$build/answers.gpu" | grep '^[-+][^-+]' >"$build/differences"
cat "$build/differences"
if grep -q '^.exact' "$build/differences"; then bad "exact answers differ"; else ok; fi
echo "truth: $passed passed, $failed failed"
[ $failed = 0 ]
