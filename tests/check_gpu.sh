#!/bin/sh
# usage: check_gpu.sh SUITE CHECK PROBE BELIEFS [DIGITS]     The page of `make check-gpu`, which a user sends in. SUITE is the unit suite, CHECK
# bench/check_gpu.cu, PROBE tests/lt_probe.cpp, BELIEFS the same on the host runtime, DIGITS the digits example; all but BELIEFS use the
# GPU. FULL=1: the suite with --full. OUT: the folder of check-gpu.txt, the page; check-gpu.json, the same for programs; check-gpu.log, what
# each program says; check-gpu-lt.log, cuBLASLt's own log. SUITE_ARGS, CHECK_ARGS: more arguments. PEER: a command that times PyTorch's
# step (bench/peers_gpu.py). While it runs it says on stderr what it does. Needs sh and awk. Exit status 1 if anything was wrong: that the
# library answers otherwise than the host runtime is news, and not wrong.
set -u
suite=${1:?SUITE} check=${2:?CHECK} probe=${3:?PROBE} beliefs=${4:?BELIEFS} digits=${5:-}
out=${OUT:-${BUILD:-build}}
here=$(dirname "$0")
log=$out/check-gpu.log lt_log=$out/check-gpu-lt.log
: >"$log" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
page=$work/page facts=$work/facts wrong=''
: >"$page"
: >"$facts"
tab=$(printf '\t')

fact() { printf '%s\t%s\n' "$1" "$2" >>"$facts"; } # KEY JSON
text() { printf '%s\n' "$1" | tr '\t' ' ' | sed 's/[\\"]/\\&/g; s/^/"/; s/$/"/'; }
line() { printf "$@" >>"$page"; }                  # FORMAT ARGUMENT...: of the page
fault() { # WHAT WHY
    case ", $wrong, " in *", $1, "*) ;; *) wrong="$wrong${wrong:+, }$1" ;; esac
    line 'WRONG: %s: %s\n' "$1" "$2"
}
# step NAME COMMAND...: what it prints goes to $work/NAME, and to the log; its time to the page's end
step() {
    doing=$1
    shift
    printf 'check-gpu: %s ...' "$doing" >&2
    echo "---- $*" >>"$log"
    begun=$(date +%s)
    "$@" >"$work/$doing" 2>"$work/$doing.err"
    rc=$?
    seconds=$(($(date +%s) - begun))
    cat "$work/$doing" "$work/$doing.err" >>"$log"
    printf ' %d s\n' "$seconds" >&2
    steps="${steps:-}${steps:+, }$doing $seconds s"
    fact 'steps[]' "{\"name\": \"$doing\", \"seconds\": $seconds, \"status\": $rc}"
    [ $rc = 0 ] || fault "$doing" "exit status $rc; its last line: $(cat "$work/$doing.err" "$work/$doing" | tail -n 1 | cut -c 1-120)"
    return $rc
}

# ---- the device, by itself ----
now=$(date -u '+%Y-%m-%d %H:%M')
commit=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
fact date "\"$now\""
fact commit "\"$commit\""
if command -v nvidia-smi >/dev/null 2>&1; then
    smi=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total,clocks.sm,clocks.mem,power.limit,ecc.mode.current --format=csv,noheader 2>/dev/null | head -n 1)
    [ -z "$smi" ] || { line 'driver     %s\n' "$smi"; fact nvidia_smi "$(text "$smi")"; }
fi

# ---- results: the suite, 40 steps, the digits ----
# shellcheck disable=SC2086 # several arguments
step suite "$suite" --counts --context cuda ${FULL:+--full} ${SUITE_ARGS-}
awk -v facts="$facts" '
    function finish() { if (list != "") print "           " list; list = "" }
    /^cuda +[0-9]+ passed/ { passed += $2; failed += $4; skipped += $6 }
    /^FAILED/ && ++shown <= 10 { bad[shown] = $0 }
    $1 == "counts" && $2 == "cuda" && $4 > 0 {
        entry = $3 " " $4
        groups = groups (groups == "" ? "" : ", ") "\"" $3 "\": " $4
        all[++n] = entry
    }
    END {
        printf "checks     %d passed, %d failed, %d skipped\n", passed, failed, skipped
        for (i = 1; i <= n; i++) {
            if (length(list) + length(all[i]) > 100) finish()
            list = list (list == "" ? "" : ", ") all[i]
        }
        finish()
        for (i = 1; i <= shown && i <= 10; i++) print bad[i]
        printf "suite\t{\"passed\": %d, \"failed\": %d, \"skipped\": %d, \"groups\": {%s}}\n", passed, failed, skipped, groups >>facts
        exit passed == 0
    }' "$work/suite" >>"$page" || fault "suite" "it counted nothing"
step 40_steps "$suite" --context cuda --filter ordered.40_steps && line '40 steps   the ordered run is identical to the CPU'"'"'s: %s\n' "$(tail -n 1 "$work/40_steps")"
fact forty_steps_identical "$([ $rc = 0 ] && echo true || echo false)"
if [ -n "$digits" ]; then step digits "$digits" --device cuda --check && line 'digits     %s\n' "$(tail -n 1 "$work/digits")"; fi

# ---- times, products, questions, a training step ----
# shellcheck disable=SC2086
step check_gpu "$check" --facts "$work/check_gpu.facts" ${PEER:+--peer "$PEER"} ${CHECK_ARGS-}
[ ! -f "$work/check_gpu.facts" ] || cat "$work/check_gpu.facts" >>"$facts"
cat "$work/check_gpu" >>"$page"
arch=$(sed -n 's/^device.*"arch": \([0-9]*\).*/\1/p' "$facts")
where=$(sed -n 's/^runs_on\t"\(.*\)"$/\1/p' "$facts")
name=$(sed -n 's/^device.*"name": "\([^"]*\)".*/\1/p' "$facts")

# ---- cuBLASLt: what it does, and what the tests believe ----
believe() { # WHAT [EPILOGUES]: of a device of the same kind
    HCU_EPILOGUES=${2-} HCU_ARCH=${arch:-90} HCU_PROTECT=0 "$beliefs" "$1" >"$work/beliefs_$1" 2>>"$log" || fault "beliefs" "lt_probe on the host runtime, $1: exit status $?"
}
for what in ask run launches; do
    step "lt_$what" "$probe" "$what"
    believe "$what"
done
step lt_shapes "$probe" shapes
believe shapes names
awk -v facts="$facts" -f "$here/check_gpu.awk" "$work/beliefs_ask" "$work/lt_ask" "$work/beliefs_run" "$work/lt_run" \
    "$work/beliefs_launches" "$work/lt_launches" "$work/beliefs_shapes" "$work/lt_shapes" >>"$page" || fault "comparison" "the answers of lt_probe are not whole"
rm -f "$lt_log"
CUBLASLT_LOG_LEVEL=5 CUBLASLT_LOG_FILE=$lt_log "$probe" launches >/dev/null 2>&1
lines=0
[ ! -f "$lt_log" ] || lines=$(($(wc -l <"$lt_log")))
if [ $lines -gt 0 ]; then line "log        cuBLASLt's own: %d lines in %s\n" "$lines" "$lt_log"
else line "log        cuBLASLt wrote none\n"; fi
fact cublaslt_log_lines "$lines"

# ---- the page: the verdict above and below ----
verdict="PASS"
[ -z "$wrong" ] || verdict="FAIL: $wrong"
fact verdict "$(text "${verdict%%:*}")"
fact wrong "$(text "$wrong")"
case $where in
GPU) ;;
'') name='no device' ;;
*) verdict="$verdict (on the host runtime, not on a GPU: no times)" ;;
esac
{
    printf 'check-gpu  %s\n' "$verdict"
    printf 'for        %s, commit %s, %s UTC\n' "${name:-no device}" "$commit" "$now"
    cat "$page"
    printf 'took       %s%s\n' "${steps:-nothing}" "$([ "$where" = GPU ] || echo ', on the host')"
    printf 'all of it  %s; for programs: %s\n' "$log" "$out/check-gpu.json"
    printf 'check-gpu  %s\n' "$verdict"
} >"$out/check-gpu.txt"
# KEY, JSON lines to one object; of a key that comes twice the last one counts, KEY[] makes a list
awk -F "$tab" '
    NF < 2 { next }
    {
        key = $1
        value = substr($0, length(key) + 2)
        list = sub(/\[\]$/, "", key)
        if (!(key in kind)) order[++n] = key
        kind[key] = list
    }
    kind[key] { all[key] = all[key] (all[key] == "" ? "" : ",\n    ") value; next }
    { all[key] = value }
    END {
        print "{"
        for (i = 1; i <= n; i++) {
            key = order[i]
            printf "  \"%s\": %s%s\n", key, kind[key] ? "[\n    " all[key] "\n  ]" : all[key], i < n ? "," : ""
        }
        print "}"
    }' "$facts" >"$out/check-gpu.json"
cat "$out/check-gpu.txt"
[ -z "$wrong" ]
