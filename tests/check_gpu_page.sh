#!/bin/sh
# usage: check_gpu_page.sh     The page of `make check-gpu` without a GPU: tests/check_gpu.sh with its real programs on the host runtime, where
# no time may be told, and with programs that only play theirs: in what it says when all is well, when something fails, when the library
# answers otherwise, when a program breaks off and when tools are missing. Uses $BUILD. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
. tests/today.sh
host=${BUILD:-build}/hostcuda/plain
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }
page=$work/check-gpu.txt
# says PATTERN...: the page has a line for each
says() {
    for pattern; do
        if grep -q -e "$pattern" "$page"; then ok; else bad "$case: no line '$pattern'"; fi
    done
}
# is STATUS VERDICT: the last run's exit status; the verdict is the page's first and last line, and the page is what was printed
is() {
    [ "$rc" = "$1" ] && [ "$(head -n 1 "$page")" = "check-gpu  $2" ] && [ "$(tail -n 1 "$page")" = "check-gpu  $2" ] && cmp -s "$page" "$work/printed" && { ok; return; }
    bad "$case: exit status $rc, not $1, or not '$2': $(head -n 1 "$page"), $(tail -n 1 "$page")"
}
# json EXPRESSION...: each holds of check-gpu.json, as p
json() {
    command -v python3 >/dev/null 2>&1 || { skip "$case: check-gpu.json: no python3"; return; }
    python3 - "$work/check-gpu.json" "$@" >"$work/err" 2>&1 <<'P'
import json, sys
p = json.load(open(sys.argv[1]))
for expression in sys.argv[2:]:
    assert eval(expression), expression
P
    # shellcheck disable=SC2181
    if [ $? = 0 ]; then passed=$((passed + $#)); else bad "$case: check-gpu.json: $(tail -n 1 "$work/err")"; fi
}

# ---- programs that play ----
mkdir "$work/bin" && cd "$work/bin" || exit 2
cat >suite <<'P'
case "$*" in
*40_steps*) echo '3 passed, 0 failed, 0 skipped'; exit "${STEPS:-0}" ;;
esac
printf 'counts cuda arrays 120\ncounts cuda step 7\ncounts cuda none 0\n'
[ -z "${BROKEN:-}" ] || { echo 'FAILED gemm.exact on cuda: 2 is not 1'; echo 'cuda 11 passed, 1 failed, 2 skipped'; exit 1; }
echo 'cuda 12 passed, 0 failed, 2 skipped'
P
cat >check <<'P'
while [ $# -gt 0 ]; do
    [ "$1" != --facts ] || facts=$2
    shift
done
tab=$(printf '\t')
echo 'device     a "T4" of the test'
printf '%s\n' "runs_on$tab\"GPU\"" "device$tab{\"name\": \"a T4\", \"arch\": 75}" "kernels[]$tab{\"name\": \"cast\", \"gb_per_s\": 250.5}" >"$facts"
[ -z "${CRASH:-}" ] || { printf 'kernels[]' >>"$facts"; kill -SEGV $$; }
printf '%s\n' "kernels[]$tab{\"name\": \"inspect\", \"gb_per_s\": null}" >>"$facts"
echo 'results    9 checked, 0 wrong'
P
cat >probe <<'P'
[ -z "${CUBLASLT_LOG_FILE:-}" ] || [ -z "${LOGS:-}" ] || printf 'a\nb\n' >"$CUBLASLT_LOG_FILE"
[ -z "${HCU_ARCH:-}" ] || [ "$HCU_ARCH" = 75 ] || exit 3 # the device's kind
other=no
[ -n "${HCU_ARCH:-}" ] || other=${OTHER:-no}
case $1 in
ask)
    i=1
    while [ $i -le 60 ]; do
        [ $other = no ] && printf 'size\tm %d\tyes\talgorithm 1\n' $i || printf 'size\tm %d\tno\tNOT_SUPPORTED\n' $i
        i=$((i + 1))
    done
    [ $other = short ] || printf 'fp8\tm 1 "quoted"\tno\t%s\n' "$([ $other = no ] && echo INVALID_VALUE || echo NOT_SUPPORTED)" ;;
run) printf 'GELU, roundings: gelu\tf32\tonce\t\nGELU, roundings: gelu\tf16\t%s\t\n' "$([ $other = no ] && echo once || echo twice)" ;;
shapes)
    printf 'rounded twice\tf16 beta\t0\t500\t0\nrounded twice\tf16 bias\t3\t500\t1\nrounded twice\tbf16 beta\t7\t500\t2\n'
    printf 'fp8 error\tk 16\tnone\nfp8 error\tk 32\t-12.25\nfp8 error\tk 64\t-13.50\nfp8 error\tk 64, fast\t%s\n' "$([ $other = no ] && echo -11.50 || echo -25.00)" ;;
launches) printf 'plain\tf16\t1\t12.5\ta_kernel\ngelu\tf16\t%s\t14.5\ta_kernel + an_epilogue\n' "$([ $other = no ] && echo 1 || echo 2)" ;;
esac
P
for p in suite check probe; do
    { echo '#!/bin/sh'; cat $p; } >$p.new && mv $p.new $p && chmod +x $p
done
cd - >/dev/null || exit 2
play() { # CASE VARIABLE=VALUE...: of those programs
    case=$1
    shift
    rm -f "$work"/check-gpu*
    env -u FULL PATH="$PATH" OUT="$work" "$@" tests/check_gpu.sh "$work/bin/suite" "$work/bin/check" "$work/bin/probe" "$work/bin/probe" >"$work/printed" 2>"$work/progress"
    rc=$?
}
# a machine without NVIDIA's tools, then one with: what is in the way of the first is not looked for
play 'all is well' A=
is 0 PASS
says '^for        a T4, commit ' '^checks     12 passed, 0 failed, 2 skipped$' '^           arrays 120, step 7$' '^40 steps .*identical.*3 passed' '^results    9 checked, 0 wrong' \
    '^cuBLASLt   61 products asked for: 0 answers' '^results    of 2 small products, 0 not' 'GELU, roundings: gelu: once (f32 f16)' '^  gelu:  f16 1, 14.5 us$' \
    '^shapes     of 500 products each, rounded .*: f16 beta 0, bias 3; bf16 beta 7$' '^  FP8 sums: .* 2^-12.25 (k 32), fast 2^-11.50 (k 64); 4 of 4 as' '^log        cuBLASLt wrote none' '^took       suite [0-9]* s, 40_steps '
json 'p["verdict"] == "PASS" and p["wrong"] == ""' 'p["suite"]["passed"] == 12 and p["suite"]["groups"]["arrays"] == 120' 'p["forty_steps_identical"] is True' 'p["device"]["arch"] == 75 and p["runs_on"] == "GPU"' \
    '[k["gb_per_s"] for k in p["kernels"]] == [250.5, None]' 'p["launches"][1]["us"] == 14.5 and p["launches"][1]["kernels"] == "a_kernel + an_epilogue"' 'p["probe"]["differences"] == 0 and "differences" not in p' \
    'len(p["steps"]) == 7 and p["steps"][0]["name"] == "suite"' 'p["cublaslt_log_lines"] == 0' \
    'p["roundings"][1] == {"of": "f16 bias", "products": 500, "twice": 3, "in_parts": 1}' '[e["log2"] for e in p["fp8_errors"]] == [None, -12.25, -13.5, -11.5]'
if grep -q '^check-gpu: suite ... [0-9]* s$' "$work/progress"; then ok; else bad "no progress is told"; fi
printf '#!/bin/sh\necho "Tesla \\"T4\\", 580.1, 7.5"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
PATH=$work/bin:$PATH
play 'tools are there' LOGS=1
is 0 PASS
says '^driver     Tesla "T4", 580.1, 7.5$' '^log .* 2 lines in '
json 'p["nvidia_smi"] == "Tesla \"T4\", 580.1, 7.5"' 'p["cublaslt_log_lines"] == 2'
play 'the suite fails' BROKEN=1
is 1 'FAIL: suite'
says '^WRONG: suite: exit status 1; its last line: cuda 11 passed, 1 failed' '^FAILED gemm.exact on cuda' '^checks     11 passed, 1 failed'
json 'p["verdict"] == "FAIL" and p["wrong"] == "suite"'
play 'the steps differ' STEPS=1
is 1 'FAIL: 40_steps'
json 'p["forty_steps_identical"] is False'
play 'check_gpu breaks off' CRASH=1
is 1 'FAIL: check_gpu'
says '^WRONG: check_gpu: exit status 139' '^cuBLASLt   61 products'
json 'len(p["kernels"]) == 1 and p["wrong"] == "check_gpu"'
play 'the library answers otherwise' OTHER=yes
is 0 PASS
says '61 products asked for: 60 answers are not as the tests believe, and 1 refusals' '  size: m 40: NOT_SUPPORTED, believed: taken$' '^  \.\.\. and 20 more' 'of 2 small products, 1 not' \
    'GELU, roundings: gelu: once (f32), twice (f16), believed of f16: once' '^  gelu:  f16 2 (believed: 1), 14.5 us' '; 3 of 4 as the tests believe$'
if [ "$(grep -c 'believed: taken' "$page")" = 40 ]; then ok; else bad "$case: not 40 differences"; fi
json 'len(p["differences"]) == 40 and p["probe"]["differences"] == 60 and p["probe"]["other_status"] == 1' 'p["answers"][1] == {"question": "GELU, roundings: gelu", "of": "f16", "answer": "twice", "believed": "once", "detail": ""}'
play 'answers are missing' OTHER=short
is 1 'FAIL: comparison'
rm "$work/bin/check"
play 'a program is missing' A=
is 1 'FAIL: check_gpu, beliefs, comparison'
says '^for        no device'
json 'p["verdict"] == "FAIL"'

# ---- the row of a page in docs/gpus.md: made-up ones, in a copy ----
row() { # NAME ARCH COMMIT SHARE [RUNS_ON]: adds a row
    cat >"$work/made.json" <<P
{"date": "2026-01-02 03:04", "commit": "$3", "runs_on": "${5:-GPU}", "device": {"name": "$1", "arch": $2}, "verdict": "FAIL", "wrong": "suite", "forty_steps_identical": true,
 "versions": {"amp": "0.1.0", "driver": 12080, "runtime": 13000, "cublaslt": 130100}, "suite": {"passed": 12, "failed": 1}, "copy_gb_per_s": null,
 "probe": {"asked": 60, "differences": 2, "news": 3, "other_launches": 4}, "kernels": [{"name": "AdamW f16", "bound": 1.2, "share": $4, "own_code": true}], "training": null}
P
    python3 tools/gpu_row.py "$work/made.json" "$work/gpus.md" "$work/measured.txt" >"$work/out" 2>&1
}
if command -v python3 >/dev/null 2>&1; then
    # the page without its rows
    awk '/^<!-- .rows/ { inside = rows = 0 } !inside { print } /^\|---/ && rows { inside = 1 } /^<!-- rows/ { rows = 1 }' docs/gpus.md >"$work/gpus.md"
    echo '# what GPUs reached' >"$work/measured.txt"
    if row 'a | b' 90 one 0.5 && row T4 75 one 0.25 && row 'a | b' 90 two 0.5 && row 'a | b' 90 one null; then ok; else bad "gpu_row.py: $(tail -n 1 "$work/out")"; fi
    sed '/^<!-- rows/,/^<!-- .rows/!d' "$work/gpus.md" | sed '1,3d;$d' >"$work/rows"
    cat >"$work/want" <<'P'
| T4, sm_75 | 12.8, 13.0, 130100 | 0.1.0, one | 2026-01-02 | FAIL: suite | 12, 1 failed; same bits | 2 of 60, 3, 4 | - | 0.25 (1.00) | - | - |
| a \| b, sm_90 | 12.8, 13.0, 130100 | 0.1.0, one | 2026-01-02 | FAIL: suite | 12, 1 failed; same bits | 2 of 60, 3, 4 | - | - | - | - |
| a \| b, sm_90 | 12.8, 13.0, 130100 | 0.1.0, two | 2026-01-02 | FAIL: suite | 12, 1 failed; same bits | 2 of 60, 3, 4 | - | 0.50 (1.00) | - | - |
P
    if cmp -s "$work/rows" "$work/want"; then ok; else bad "gpu_row.py: $(diff "$work/rows" "$work/want" | head -n 4)"; fi
    printf '# what GPUs reached\nT4\tAdamW f16\t0.25\na | b\tAdamW f16\t0.50\n' >"$work/want" # each GPU's last share
    if row 'a | b' 90 two 0.5 && cmp -s "$work/measured.txt" "$work/want"; then ok; else bad "gpu_row.py: $(cat "$work/measured.txt")"; fi
    if grep -q 'No row yet' "$work/gpus.md" || [ "$(grep -c '^| GPU |' "$work/gpus.md")" != 1 ]; then bad "gpu_row.py: the rest of the page"; else ok; fi
    if row host 90 one null 'host runtime'; then bad "gpu_row.py takes a page of the host runtime"; elif grep -q 'which is no GPU' "$work/out"; then ok; else bad "gpu_row.py: $(cat "$work/out")"; fi
    echo '{}' >"$work/made.json"
    if python3 tools/gpu_row.py "$work/made.json" "$work/gpus.md" >"$work/out" 2>&1 || ! grep -q 'no page of make check-gpu' "$work/out"; then bad "gpu_row.py takes {}"; else ok; fi
else
    skip "gpu_row.py: no python3"
fi

# ---- the real programs, on the host runtime ----
if ! today 2 3; then : # the benches of tests/bench.sh have their day
elif [ -x "$host/check_gpu" ] && [ -x "$host/lt_probe" ]; then
    real() { # CASE TABLE VARIABLE=VALUE...: with one file of the suite
        case=$1 table=$2
        shift 2
        rm -f "$work"/check-gpu*
        env "$@" HCU_PROTECT=0 HCU_SMS=4 OUT="$work" PEER='echo no torch: none here' SUITE_ARGS='--filter cast.' CHECK_ARGS="--tiny --table $table" \
            tests/check_gpu.sh "$host/suite" "$host/check_gpu" "$host/lt_probe" "$host/lt_probe" >"$work/printed" 2>"$work/progress"
        rc=$?
    }
    no_gpu='(on the host runtime, not on a GPU: no times)'
    real 'host runtime' tests/expected/sass.txt A=
    is 0 "PASS $no_gpu"
    says '^checks  *[1-9][0-9]* passed, 0 failed' '^40 steps .*5 passed, 0 failed' '^device .*sm_90' '^clocks ' '^  AdamW bf16 moments .* [0-9.]* ' '^products  *0 of 21 ' \
        '^  1 .*no clock' '^  3 .*no; cuBLASLt' '^  6 .*taken, right' '^  8 .*bias gradient' '^skipped: .*no torch: none here' '^training .*; a step - ms; no PyTorch' '^results  *[1-9][0-9]* checked, 0 wrong' \
        '^cuBLASLt   [1-9][0-9]* products asked for: 0 answers are not as the tests believe, and 0' '^results    of [1-9][0-9]* small products, 0 not' '^launches   of [1-9][0-9]* products.*; 0 not' 'on the host$'
    json 'p["runs_on"] == "host runtime" and p["verdict"] == "PASS"' 'p["copy_gb_per_s"] is None and p["training"]["ms"] is None and p["training"]["torch_ms"] is None' \
        'len(p["kernels"]) == 9 and all(k["gb_per_s"] is None and k["share"] is None and k["bound"] > 0 for k in p["kernels"])' 'len(p["launches"]) > 30 and all(x["us"] is None for x in p["launches"])' \
        'p["versions"]["cublaslt"] > 0 and p["versions"]["driver"] > 0 and p["versions"]["runtime"] > 0' 'len(p["questions"]) == 9 and p["probe"]["asked"] > 5000' \
        'all(a["answer"] == a["believed"] for a in p["answers"])' 'p["results"]["checked"] > 30 and p["results"]["wrong"] == 0'
    if grep -q '[0-9] us\|[0-9] ms\|[0-9] GB/s,' "$page"; then bad "a time from the host runtime: $(grep '[0-9] us\|[0-9] ms\|[0-9] GB/s,' "$page" | head -n 1)"; else ok; fi
    if HCU_PROTECT=0 HCU_SMS=4 "$host/check_gpu" --tiny --table /dev/null >"$work/out" 2>&1 || ! grep -q '^WRONG: a row of' "$work/out"; then bad "check_gpu takes an empty table"; else ok; fi
    if ! command -v python3 >/dev/null 2>&1; then :; elif python3 tools/gpu_row.py "$work/check-gpu.json" "$work/gpus.md" >"$work/out" 2>&1; then bad "gpu_row.py takes a page of the host runtime"; else ok; fi
    # the probe sees what the host runtime can do otherwise: GELU rounded twice, other epilogues of FP8, the sums of an H100
    HCU_ARCH=89 HCU_PROTECT=0 "$host/lt_probe" run >"$work/once"
    HCU_ARCH=89 HCU_EPILOGUES=names HCU_PROTECT=0 "$host/lt_probe" run >"$work/twice"
    if grep -q "gelu_aux	f16	once" "$work/once" && grep -q "gelu_aux	f16	twice" "$work/twice" && grep -q "gelu_aux	bf16	twice" "$work/twice"; then ok; else bad "lt_probe: GELU's roundings: $(grep -c twice "$work/twice")"; fi
    HCU_ARCH=90 HCU_EPILOGUES=names HCU_PROTECT=0 "$host/lt_probe" run >"$work/h100"
    for sum in 'k 64	e4m3	not exact	65568' 'k 4096	e4m3	not exact	69504' 'k 64, fast	e4m3	not exact	65568' 'k 4096, fast	e4m3	not exact	67584'; do
        if grep -q "ones, $sum," "$work/h100"; then ok; else bad "not an H100's sum: $sum, but $(grep "ones, ${sum%%	*}	e4m3" "$work/h100")"; fi
    done
else
    skip "check_gpu.sh with its programs: needs hostcuda: g++ and the CUDA headers"
fi

# ---- the library's own: it compiles and links as make check-gpu does it ----
cuda=${CUDA_HOME:-/usr/local/cuda}
if [ -e "$cuda/lib64/libcublasLt.so" ] && [ -e "$cuda/lib64/libcudart.so" ]; then
    if ${CXX:-g++} -std=c++17 -O0 -Wall -Wextra -Werror -isystem "$cuda/include" tests/lt_probe.cpp -L"$cuda/lib64" -lcublasLt -lcudart -o "$work/lt_probe" 2>"$work/err"; then ok; else bad "lt_probe with cuBLASLt: $(head -n 3 "$work/err")"; fi
else
    skip "lt_probe with cuBLASLt: no libraries of CUDA"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
