#!/bin/sh
# usage: check_gpu.sh SUITE CHECK [DIGITS]     The page of `make check-gpu`, to be pasted into a report: the GPU as its driver names it, each
# file of the unit suite on the CUDA context, 40 steps beside the CPU, the digits example, and bench/check_gpu.cu. What each of them says
# in full is in $LOG. SUITE_ARGS, CHECK_ARGS: more arguments. Exit status 1 if anything was wrong.
set -u
suite=${1:?SUITE} check=${2:?CHECK} digits=${3:-}
log=${LOG:-${BUILD:-build}/check-gpu.log}
status=0
: >"$log" || exit 2
run() { # WHAT COMMAND...: to the log; a failure is told
    what=$1
    shift
    echo "---- $*" >>"$log"
    "$@" >"$log.part" 2>&1
    rc=$?
    cat "$log.part" >>"$log"
    [ $rc = 0 ] || { status=1; echo "WRONG: $what: exit status $rc"; }
    return $rc
}
echo "check-gpu  $(date -u '+%Y-%m-%d %H:%M') UTC, commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
if command -v nvidia-smi >/dev/null 2>&1; then
    nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total,clocks.sm,clocks.mem,power.limit,ecc.mode.current --format=csv,noheader 2>/dev/null |
        sed 's/^/driver     /'
fi
# shellcheck disable=SC2086 # several arguments
run "the suite" "$suite" --counts --context cuda ${SUITE_ARGS---full}
echo "checks     $(grep -a '^cuda  *[0-9]* passed' "$log.part" || tail -n 1 "$log.part")"
sed -n 's/^counts cuda \([a-z_]*\) \([1-9][0-9]*\)$/\1 \2/p' "$log.part" | awk '{ line = line (line == "" ? "" : ", ") $0; if (length(line) > 100) { print "           " line; line = "" } } END { if (line != "") print "           " line }'
grep -a '^FAILED' "$log.part" | head -n 10
run "40 steps" "$suite" --context cuda --filter ordered.40_steps && echo "40 steps   $(tail -n 1 "$log.part"): the ordered run is identical to the CPU's"
[ -z "$digits" ] || { run "digits" "$digits" --device cuda --check && echo "digits     $(tail -n 1 "$log.part")"; }
# shellcheck disable=SC2086
run "check_gpu" "$check" ${CHECK_ARGS-}
cat "$log.part"
rm -f "$log.part"
echo "all of it  $log"
exit $status
