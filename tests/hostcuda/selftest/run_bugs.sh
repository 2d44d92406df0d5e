#!/bin/bash
# run_bugs.sh - runs every planted bug where somebody must notice it, and its correct twin everywhere.
#
#   run_bugs.sh BUILD_DIR COLUMN...    columns: plain eager asan tsan msan vg ptx     (ptx needs BUILD_DIR/bugs.ptx)
#
# A bug passes when it is noticed by exactly what the table says; a correct twin passes when nobody says anything.
#   bug  the runtime's own diagnosis      leak  its account of live objects      test  the program's own comparison
#   asan ubsan race uninit  the sanitizers (uninit: MSan or Valgrind)            .     not visible there, not run
# plain is the lazy mode; eager shows why it is not the default.
set -u
ulimit -c 0
build=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export ASAN_OPTIONS=symbolize=0 TSAN_OPTIONS=atexit_sleep_ms=0:symbolize=0

table='
#                        plain eager asan  tsan msan   vg     ptx
tail_overrun             bug   bug   asan  bug  bug    bug    bug
read_past_end            test  test  asan  test test   test   test
read_past_padding        bug   bug   bug   bug  bug    bug    bug
read_before_start        bug   bug   bug   bug  bug    bug    bug
uninitialised_output     test  test  test  test uninit uninit test
leaked_buffer            leak  leak  leak  leak leak   leak   leak
leaked_handle            leak  leak  leak  leak leak   leak   leak
use_after_free           bug   bug   bug   bug  bug    bug    bug
freed_argument           bug   bug   bug   bug  bug    bug    bug
double_free              bug   bug   bug   bug  bug    bug    bug
use_before_allocation    bug   .     bug   bug  bug    bug    bug
host_pointer_to_kernel   bug   bug   bug   bug  bug    bug    bug
host_pointer_in_struct   bug   bug   bug   bug  bug    .      bug
host_reads_device        bug   bug   bug   bug  bug    bug    bug
misaligned_vector        .     .     ubsan .    .      .      bug
misaligned_cached_load   bug   bug   bug   bug  bug    bug    bug
missing_barrier          test  test  test  race uninit uninit test
missing_second_barrier   test  test  test  race test   test   test
missing_barrier_dynamic  test  test  test  race uninit uninit test
divergent_barrier        bug   bug   bug   bug  bug    bug    bug
deadlock                 bug   bug   bug   bug  bug    bug    bug
wrong_warp_mask          bug   bug   bug   bug  bug    bug    bug
different_masks          bug   bug   bug   bug  bug    bug    bug
mixed_warp_operations    bug   bug   bug   bug  bug    bug    bug
missing_syncwarp         .     .     .     race .      .      .
wmma_missing_syncwarp    .     .     .     race .      .      .
wmma_missing_lane        bug   bug   bug   bug  bug    bug    bug
uninitialised_shared     test  test  test  test uninit uninit test
shared_overrun           .     .     asan  .    .      .      .
block_race               .     .     .     race .      .      .
missing_fence            .     .     .     race .      .      .
written_by_a_reader      .     .     .     race .      .      .
written_in_the_block     .     .     .     race .      .      .
ticket_too_early         .     .     .     race .      .      .
missing_host_sync        test  .     asan  race test   test   test
missing_event_wait       test  .     test  race uninit uninit test
overwritten_too_early    .     .     .     race .      .      .
pinned_source_changed    bug   .     bug   race bug    bug    bug
pinned_in_and_out        bug   .     bug   race bug    bug    bug
sync_in_capture          test  test  test  test test   test   test
allocation_in_capture    test  test  test  test test   test   test
capture_not_ended        bug   bug   bug   bug  bug    bug    bug
stale_captured_scalar    test  test  test  test test   test   test
graph_branch_race        .     .     .     race .      .      .
zero_grid                test  test  test  test test   test   test
other_device_argument    bug   bug   bug   bug  bug    bug    bug
other_device_memory      bug   bug   bug   bug  bug    bug    bug
product_broken_promise   bug   bug   bug   bug  bug    bug    bug
product_overrun          bug   bug   bug   bug  bug    bug    bug
product_missing_order    test  .     test  race uninit uninit test
product_shared_workspace .     .     .     race .      .      .
swallowed_error          test  test  test  test test   test   test
leak_on_error_path       leak  leak  leak  leak leak   leak   leak
claimed_result           test  .     test  test uninit uninit test
contraction              .     .     .     .    .      .      test
'
run() {    # COLUMN NAME good|bad
    case $1 in
    eager) HCU_MODE=eager "$build/plain/bugs" "$2" "$3" ;;
    ptx) HCU_PTX=$build/bugs.ptx "$build/plain/bugs" "$2" "$3" ;;
    vg) valgrind -q --error-exitcode=9 "$build/vg/bugs" "$2" "$3" ;;
    *) "$build/$1/bugs" "$2" "$3" ;;
    esac > "$log" 2>&1
}
noticed_by() {    # EXIT_STATUS: who spoke first
    if grep -q "HOSTCUDA BUG:" "$log"; then echo bug
    elif grep -q "ERROR: AddressSanitizer:" "$log"; then echo asan
    elif grep -q "runtime error:" "$log"; then echo ubsan
    elif grep -q "ThreadSanitizer: data race" "$log"; then echo race
    elif grep -q "MemorySanitizer: use-of-uninitialized-value\|ninitialised value\|ninitialised byte" "$log"; then echo uninit
    elif grep -q "HOSTCUDA LEAK:" "$log"; then echo leak
    elif grep -q "^FAIL" "$log"; then echo test
    elif [ "$1" = 0 ]; then echo -
    else echo "exit$1"; fi
}
passed=0 failed=0
printf '%-26s' 'bug'
printf '%-9s' "$@"
echo
listed=""
while read -r name plain eager asan tsan msan vg ptx; do
    case $name in ''|'#'*) continue ;; esac
    listed="$listed $name"
    line="" notes=""
    for column in "$@"; do
        want=${!column}
        got=.
        if [ "$want" != . ]; then
            run "$column" "$name" bad 2> /dev/null
            got=$(noticed_by $?)
            if [ "$got" = "$want" ]; then passed=$((passed + 1)); else
                failed=$((failed + 1))
                notes="$notes\n    FAIL $column: noticed by '$got', must be '$want'"
            fi
        fi
        run "$column" "$name" good 2> /dev/null
        quiet=$(noticed_by $?)
        if [ "$quiet" = - ]; then passed=$((passed + 1)); else
            failed=$((failed + 1))
            notes="$notes\n    FAIL $column: the correct twin is noticed by '$quiet'"
        fi
        line="$line$(printf '%-9s' "$got")"
    done
    printf '%-26s%s' "$name" "$line"
    printf "$notes\n"
done <<< "$table"
for name in $("$build/plain/bugs" list); do    # nothing may be missing from the table
    case " $listed " in *" $name "*) ;; *)
        failed=$((failed + 1))
        echo "FAIL $name has no line in the table" ;;
    esac
done
echo "run_bugs: $passed passed, $failed failed"
[ $failed = 0 ]
