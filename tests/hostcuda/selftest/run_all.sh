#!/bin/bash
# run_all.sh thin|full BUILD_DIR VARIANT... - runs the built self-tests and ends with "N passed, N failed, N skipped".
# thin: the bug table in lazy mode, PTX of one target.  full: everything, PTX of four.
# What is the same for all variants, as kernels compiled by nvcc, goes with plain.
set -u
ulimit -c 0
mode=$1 build=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2> /dev/null)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export TSAN_OPTIONS=atexit_sleep_ms=0
passed=0 failed=0 skipped=0
skip() { skipped=$((skipped + 1)); echo "skipped: hostcuda $1"; }
take() {    # NAME COMMAND...: adds up what its last line reports
    local name=$1 start=$SECONDS status p f
    shift
    "$@" > "$log" 2>&1
    status=$?
    read -r p f < <(sed -n 's/.*: \([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$log" | tail -1)
    p=${p:-0} f=${f:-0}
    if [ $status != 0 ] && [ "$f" = 0 ]; then f=1; fi    # died before it could count
    if [ $status = 0 ] && [ "$p" = 0 ]; then f=1; fi     # a test that tests nothing
    passed=$((passed + p)) failed=$((failed + f))
    printf '%-44s %6d passed %4d failed %4ds\n' "$name" "$p" "$f" $((SECONDS - start))
    if [ "$f" != 0 ] || [ "$mode" = full -a "${name#bugs}" != "$name" ]; then sed 's/^/    /' "$log" | tail -70; fi
}
ok() { passed=$((passed + 1)); echo "$1"; }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }

for v in "$@"; do
    wrap="" how=quick
    [ "$v" = vg ] && wrap="valgrind -q --error-exitcode=9"
    [ "$mode" = full ] && [ "$v" != vg ] && how=all
    take "test_lang $v" $wrap "$build/$v/test_lang" "$([ "$v" = vg ] && echo quick || echo all)"
    take "test_blas $v" $wrap "$build/$v/test_blas" $how
    take "test_wmma $v" $wrap "$build/$v/test_wmma"
    take "user_main $v" $wrap "$build/$v/user_main"
done

own=$* fewer=
[ "$mode" = full ] || own=plain fewer=1
take "programs of others" env HCU_LIBS="$build" OWN_FEWER=$fewer "$here/run_own.sh" $own

# the corpus, each kind of bug, and the list of what runs: a few with one tool, or all
if [ "$mode" = full ]; then
    for v in "$@"; do
        take "corpus $v" env HCU_LIBS="$build" NVCC="$([ "$v" = plain ] && echo "$nvcc")" "$here/../corpus/run.sh" "$v"
        take "kinds of bugs $v" env HCU_LIBS="$build" "$here/../bugs/run.sh" "$v"
    done
    if command -v python3 >/dev/null && case " $* " in *" plain "*) ;; *) false ;; esac; then
        take "features" python3 "$here/../features.py" check "${CUDA_HOME:-/usr/local/cuda}" "$build/libhostcuda-plain.a" "$here/../features.txt"
    fi
else
    take "corpus" env HCU_LIBS="$build" NAMES="${CORPUS_THIN:-quicksort texture}" "$here/../corpus/run.sh" plain
fi

columns="$*"
plain=$(case " $* " in *" plain "*) echo yes ;; esac)
if [ -n "$nvcc" ]; then
    archs=90
    [ "$mode" = full ] && archs="75 80 90 120"
    for a in $archs; do
        if "$nvcc" -std=c++17 -arch=compute_"$a" -ptx -x cu "$here/test_lang.cpp" -o "$build/lang_$a.ptx"; then
            for v in "$@"; do
                case $v in msan|vg) continue ;; esac    # the interpreter uses std::string, which MSan cannot follow
                take "test_lang $v, PTX of sm_$a" env HCU_PTX="$build/lang_$a.ptx" "$build/$v/test_lang" all
            done
        else bad "nvcc cannot compile test_lang.cpp for sm_$a"; fi
    done
fi
if [ -n "$nvcc" ] && [ -n "$plain" ]; then
    if "$nvcc" -std=c++17 -arch=compute_90 -ptx "$here/bugs.cu" -o "$build/bugs.ptx"; then columns="$columns ptx"; else bad "nvcc cannot compile bugs.cu"; fi
    take "ptx_check" env NVCC="$nvcc" "$here/../ptx_check.sh" "$here/ptx_cases.cu" "$here/ptx_good.txt" $archs
    NVCC=$nvcc NVCCFLAGS=-DBAD "$here/../ptx_check.sh" "$here/ptx_cases.cu" "$here/ptx_bad.txt" 90 > "$log" 2>&1
    if grep -q "ptx_check sm_90: 0 passed, 9 failed" "$log"; then ok "ptx_check refuses the 9 bad cases"; else bad "ptx_check accepts a bad case"; cat "$log"; fi
    if [ "$mode" = full ]; then    # the same tests are valid CUDA, and run where a device is
        cuda=$(dirname "$(dirname "$nvcc")")
        for t in test_lang test_blas test_wmma; do
            if "$nvcc" -std=c++17 -Werror all-warnings -arch=sm_90 -x cu "$here/$t.cpp" -L"$cuda/lib64" -lcublasLt -lcublas -o "$build/$t.gpu" > "$log" 2>&1; then
                "$build/$t.gpu" > "$log" 2>&1
                case $? in
                0) ok "$t on the GPU" ;;
                77) ok "$t compiles and links with nvcc"; skip "$t on a GPU: no device" ;;
                *) bad "$t on the GPU"; cat "$log" ;;
                esac
            else bad "$t does not compile with nvcc"; cat "$log"; fi
        done
    fi
fi
[ -n "$nvcc" ] || skip "PTX: no nvcc"
[ "$mode" = full ] && [ -n "$plain" ] && columns="$columns eager"
take "bugs: $columns" "$here/run_bugs.sh" "$build" $columns
echo "hostcuda: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
