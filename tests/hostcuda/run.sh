#!/bin/sh
# run.sh - executes a CUDA program without a GPU, under each tool that finds something, and names the user's lines.
#
#   run.sh FILE.cu [ARGUMENT]...        `make hostcuda-run FILE=x.cu [FILES='b.cu c.cpp'] [INCLUDE=include] [ARGS='...'] [CHECK='asan tsan']`
#   PROJECT=FOLDER run.sh '' [ARGUMENT]...   `make hostcuda-run PROJECT=folder RUN=./program [BUILD_WITH='make release']`
#
# Reads: CHECK, the variants to run, in this order; FILES, more sources and objects; INCLUDE, folders; FLAGS for hostcuda-cc; in a project RUN,
# the program, and BUILD_WITH, what builds it there (make, with NVCC, CC and CXX given, or cmake), run in a copy; JSON, a file for what was
# found; HCU_LIBS, the folder with libhostcuda-VARIANT.a, and translate there or one above; CUDA_HOME CXX CLANGXX; HCU_LOGS, where full reports
# stay (HCU_LIBS/run); QUIET, no line for what runs. What the program prints comes once, from the first variant.
# Exit: 0 nothing found, 1 something was, or the program's own status was not 0, 2 it could not be run.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
libs=$(cd "${HCU_LIBS:-$here/../../build/hostcuda}" && pwd) || exit 2
CXX=${CXX:-g++} CLANGXX=${CLANGXX:-clang++} CUDA_HOME=${CUDA_HOME:-/usr/local/cuda} FLAGS=${FLAGS:-} FILES=${FILES:-} PROJECT=${PROJECT:-}
[ $# -ge 1 ] && [ -n "$1$PROJECT" ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/variants.sh"
file=$1
shift
for f in ${file:+"$file"} $FILES ${PROJECT:+"$PROJECT"}; do [ -r "$f" ] || { echo "hostcuda-run: no file $f"; exit 2; }; done
[ -z "$PROJECT" ] || [ -n "${RUN:-}" ] || { echo "hostcuda-run: PROJECT=$PROJECT wants RUN=./program"; exit 2; }
name=$(basename "${PROJECT:-$file}")
name=${name%.*}
logs=${HCU_LOGS:-$libs/run}/$name
mkdir -p "$logs" || exit 2
logs=$(cd "$logs" && pwd)
[ -z "${JSON:-}" ] || : >"$logs/findings"

# The compiler driver, as build/hostcuda-cc and, for what calls nvcc by name, as nvcc.
bin=$logs/bin build=$libs
[ -x "$build/translate" ] || build=$libs/..
mkdir -p "$bin"
cat >"$bin/hostcuda-cc" <<END
#!/bin/sh
HCU_HOME='$here' HCU_BUILD='$build' HCU_LIBS='$libs' CUDA_HOME='$CUDA_HOME' CXX='$CXX' CLANGXX='$CLANGXX' exec '$here/hostcuda-cc.sh' "\$@"
END
chmod +x "$bin/hostcuda-cc"
ln -sf hostcuda-cc "$bin/nvcc"

# A variant that cannot follow the C++ library (iostream, string, map) is replaced: valgrind looks at the machine's code.
library=
if grep -rqE '^ *# *include *<(iostream|fstream|sstream|string|map|unordered_map|set|regex|filesystem|thrust/.*|cuda/.*)>' ${file:+"$file"} $FILES ${PROJECT:+"$PROJECT"}
then library=yes; fi
check=
for v in ${CHECK:-asan tsan msan}; do
    if [ "$v" = msan ] && { [ -n "$library" ] || [ ! -r "$libs/libhostcuda-msan.a" ]; }; then v=vg; fi
    if [ -r "$libs/libhostcuda-$v.a" ]; then check="$check $v"
    else echo "hostcuda-run: $v is not here, what only it finds is not looked for"; fi
done
[ -n "$check" ] || [ ! -r "$libs/libhostcuda-plain.a" ] || check=plain # run at least
include=
for f in ${INCLUDE:-}; do include="$include -I$f"; done

compile() { # VARIANT: the program is $logs/VARIANT, or in a project RUN in $logs/VARIANT.tree
    export HOSTCUDA_CHECK=$1
    if [ -n "$PROJECT" ]; then build_project "$1"
    else
        # shellcheck disable=SC2086 # words
        "$bin/hostcuda-cc" -rdc=${RDC:-true} $include $FLAGS "$file" $FILES -o "$logs/$1" >"$logs/$1.build" 2>&1
    fi && return 0
    grep -E 'error|^hostcuda|undefined reference|No such file' "$logs/$1.build" | head -n 12 >"$logs/build.first"
    if [ -s "$logs/build.first" ]; then head -n 25 "$logs/$1.build"; else tail -n 25 "$logs/$1.build"; fi
    [ "$(wc -l <"$logs/$1.build")" -le 25 ] || grep '^hostcuda:' "$logs/$1.build"
    echo "hostcuda-run: it does not compile: $logs/$1.build has all of it"
    return 1
}
build_project() {
    tree=$logs/$1.tree
    rm -rf "$tree"
    cp -R "$PROJECT" "$tree" || return 1
    make_words="NVCC=nvcc CXX=nvcc CC=nvcc LD=nvcc" # by name, on the PATH: a folder may have spaces
    (
        cd "$tree" && PATH=$bin:$PATH
        export PATH
        if [ -n "${BUILD_WITH:-}" ]; then
            case $BUILD_WITH in make*) eval "$BUILD_WITH $make_words" ;; *) eval "$BUILD_WITH" ;; esac
        elif [ -r CMakeLists.txt ]; then
            cmake -S . -B build -DCMAKE_TOOLCHAIN_FILE="$here/hostcuda.cmake" -DHOSTCUDA_CC="$bin/nvcc" && cmake --build build
        else
            # shellcheck disable=SC2086
            make $make_words
        fi
    ) >"$logs/$1.build" 2>&1
}

execute() { # VARIANT ARGUMENT...
    v=$1
    shift
    export HCU_LINES=1 HCU_LEAKS=1
    [ -n "${QUIET:-}" ] || export HCU_PROGRESS=3
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=0}" TSAN_OPTIONS="${TSAN_OPTIONS:-atexit_sleep_ms=0:report_signal_unsafe=0}"
    wrap=
    [ "$v" != vg ] || wrap="valgrind -q --error-exitcode=9"
    if [ -n "$PROJECT" ]; then # shellcheck disable=SC2086
        (cd "$logs/$v.tree" && $wrap $RUN "$@") 3>&2 >"$logs/$v.out" 2>"$logs/$v.err"
    else
        $wrap "$logs/$v" "$@" 3>&2 >"$logs/$v.out" 2>"$logs/$v.err"
    fi
}
summary() { # VARIANT STATUS JSON
    top=$PWD
    [ -z "$PROJECT" ] || top=$logs/$1.tree
    awk -v rc="$2" -v top="$top" -v check="$1" -v json="$3" -f "$here/report.awk" "$logs/$1.err"
}

found=0 first=yes
for v in $check; do
    compile "$v" || exit 2
    execute "$v" "$@"
    rc=$?
    if [ "$first" = yes ]; then cat "$logs/$v.out"; first=; fi
    if [ $rc = 130 ]; then
        grep '^hostcuda: \|^    block' "$logs/$v.err"
        echo "hostcuda-run: interrupted"
        exit 1
    fi
    summary "$v" $rc 0 >"$logs/$v.found"
    n=$(grep -c '^[^ ]' "$logs/$v.found")
    echo "hostcuda-run: $v ($(finds "$v")): exit $rc, $((n)) found"
    sed 's/^/  /' "$logs/$v.found"
    [ -z "${JSON:-}" ] || summary "$v" $rc 1 >>"$logs/findings"
    if [ "$n" -gt 0 ]; then
        found=1
        echo "  all of it: ${logs#"$PWD"/}/$v.err"
    elif [ $rc != 0 ]; then
        sed "/HOSTCUDA LEAK/,\$d" "$logs/$v.err" | head -n 20
    fi
    [ $rc = 0 ] || [ "$n" -gt 0 ] || found=1
done
[ -z "${JSON:-}" ] || awk 'BEGIN { print "[" } NR > 1 { print last "," } { last = $0 } END { if (NR) print last; print "]" }' "$logs/findings" >"$JSON"
exit $found
