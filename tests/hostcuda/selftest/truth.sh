#!/bin/bash
# truth.sh BUILD gpu|host|record - is what the host runtime says of CUDA true?  h100.txt has what an H100 answered to the
# questions of beliefs.cu and beliefs_numbers.cu, and below an answer, indented, what the host runtime says instead, with
# the row of docs/hostcuda.md ("otherwise than an H100") that gives the reason.
#   host    asks the host runtime: each answer must be the recorded one, of "bits" (where CUDA promises ULPs) any; a question
#           that no GPU has been asked yet may have any answer
#   gpu     where nvcc and a GPU are: the tests of the language, of cuBLAS and of wmma on it, and the questions; answers that
#           are not the recorded ones are printed (another GPU may differ), and are failures where a name begins with "exact"
#   record  writes the host's answers to h100.txt anew, as they are; rows that are new have a ? for the reason
# Last line: truth: N passed, M failed, 0 skipped
set -u
build=$1/truth how=$2 passed=0 failed=0
here=$(cd "$(dirname "$0")" && pwd)
known=$here/h100.txt
export HCU_ABORT=0 # a question may be about a bug
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }
answers() { # SUFFIX: one process for each group, and for each question that may kill the device
    for g in last attributes memory pool launch objects capture waits dead "fault address" "fault misaligned" \
        "fault trap" "fault shared" "fault end"; do
        # shellcheck disable=SC2086
        timeout 60 "$build/beliefs.$1" $g 2>/dev/null
    done
    for g in exact math warp blas curand "risky 0" "risky 1" "risky 2" "risky 3" "risky 4" "risky 5" "risky 6" "risky 7" \
        "risky 8" "risky 9" "risky 10" "risky 11" "risky 12"; do
        # shellcheck disable=SC2086
        timeout 60 "$build/beliefs_numbers.$1" $g 2>/dev/null
    done
    CUDA_VISIBLE_DEVICES='' HCU_DEVICES=0 timeout 60 "$build/beliefs.$1" none 2>/dev/null
}
compared() { # host|gpu ANSWERS: "FAIL ..." for each that must be as recorded, then the counts
    awk -v how="$1" '
        { at = match($0, /: [^:]*(:[^ ][^:]*)*$/) } # the last ": " parts name and answer
        FNR == NR && /^    / { said[name] = $0; sub(/^ *here \([^)]*\): /, "", said[name]); next }
        FNR == NR && !/^#/ {
            name = substr($0, 1, at - 1)
            gpu[name] = substr($0, at + 2)
            names[++n] = name
            next
        }
        FNR != NR && at { now[substr($0, 1, at - 1)] = substr($0, at + 2) }
        END {
            for (i = 1; i <= n; i++) {
                x = names[i]
                want = how == "host" && x in said ? said[x] : gpu[x]
                if (!(x in now)) { print "FAIL no answer to: " x; none++ }
                else if ((now[x] == want || (how == "host" && x ~ /^bits /)) && x in said) other++
                else if (now[x] == want || (how == "host" && x ~ /^bits /)) same++
                else { print (how == "host" || x ~ /^exact / ? "FAIL " : "") x ": " now[x] ", and recorded is " want; wrong++ }
            }
            printf "%s: %d as the H100, %d otherwise with a reason, %d not as recorded, %d without an answer\n", how, same, other, wrong, none
        }' "$known" "$2"
}
if [ "$how" != host ] && [ "$how" != record ]; then
    command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: hostcuda-truth: no GPU"; exit 77; }
    for t in test_lang test_blas test_wmma; do
        if "$build/$t.gpu" >"$build/$t.log" 2>&1; then ok; else bad "$t"; cat "$build/$t.log"; fi
    done
    answers gpu >"$build/answers.gpu"
    compared gpu "$build/answers.gpu" >"$build/said"
    cat "$build/said"
    if grep -q '^FAIL' "$build/said"; then bad "the GPU answers otherwise, or not"; else ok; fi
fi
answers host >"$build/answers.host"
if [ "$how" = record ]; then
    awk '
        { at = match($0, /: [^:]*(:[^ ][^:]*)*$/) }
        FNR == NR { now[substr($0, 1, at - 1)] = substr($0, at + 2); next }
        { line[++n] = $0 }
        END {
            for (i = 1; i <= n; i++) {
                if (line[i] ~ /^    /) continue
                print line[i]
                if (line[i] ~ /^#/) continue
                at = match(line[i], /: [^:]*(:[^ ][^:]*)*$/)
                x = substr(line[i], 1, at - 1)
                if (!(x in now) || now[x] == substr(line[i], at + 2)) continue
                why = line[i + 1] ~ /^    here/ ? line[i + 1] : "    here (?): "
                sub(/\): .*/, "): ", why)
                print why (x ~ /^bits / ? "others" : now[x])
            }
        }' "$build/answers.host" "$known" >"$build/h100.txt" && cp "$build/h100.txt" "$known"
fi
compared host "$build/answers.host" >"$build/said"
cat "$build/said"
if grep -q '^FAIL' "$build/said"; then bad "the host runtime's answers are not those of h100.txt"; else ok; fi
if grep -q 'here (?)' "$known"; then bad "h100.txt: an answer otherwise without a reason"; else ok; fi
for row in $(sed -n 's/^    here (\([^)]*\)).*/\1/p' "$known" | sort -u); do
    grep -q "^| $row |" "$here/../../../docs/hostcuda.md" || bad "docs/hostcuda.md has no row \"$row\""
done
echo "truth: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
