#!/bin/sh
# usage: readme_snippets.sh FILE.md... HEADER.h...
# Compiles and runs every code block of the files whose fence says so, so that what a reader pastes works:
#   ```c run          a C program: -std=c99 -pedantic, all warnings are errors
#   ```cpp run        a C++ program: as C++11 and as C++17
#   ```c run linked   the same without AMP_IMPLEMENTATION: linked with an object that has it, which is compiled once
#   ```c run openmp   the same with -fopenmp, skipped where the compiler has none
#   ```c run cuda     needs amp_cuda.cuh too: linked with the stub implementation (no CUDA needed to compile and link it)
# and the complete program on the first page of a header: the lines from "#define AMP_IMPLEMENTATION" after "A COMPLETE PROGRAM"
# to its closing brace; at most 20 lines, and it says "loss 0.0".
# A block ```output right after it is what the program prints. Programs run in an empty folder. Uses $CC, $CXX ("" or not installed:
# its blocks are skipped), $RUN_ENV and $IMPL, the object of tests/impl.c: where it is given, a program is looked at as it stands and then
# built without its #define AMP_IMPLEMENTATION and linked with that object, which takes a tenth of the time. Last line: N passed, N failed, N skipped.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}
CXX=${CXX-c++}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM
passed=0 failed=0 skipped=0
warnings="-Wall -Wextra -pedantic -Werror"

# implementation COMPILER STANDARD: the path of an object with amp.h's code, $IMPL or made when it is wanted first
implementation() {
    [ -z "${IMPL:-}" ] || { echo "-x none $IMPL"; return; }
    # shellcheck disable=SC2086
    [ -r "$work/impl.o" ] || echo '#include "amp.h"' | $1 $2 -O1 -DAMP_IMPLEMENTATION -I"$here" -c - -o "$work/impl.o" >&2
    echo "-x none $work/impl.o"
}

# the program of block's arguments
build() {
    # shellcheck disable=SC2086
    if [ -n "${IMPL:-}" ] && [ "$2" != linked ]; then
        $cc $std $warnings -I"$here" -fsyntax-only "$3" &&
            sed 's/^ *#define AMP_IMPLEMENTATION.*//' "$3" >"$work/user_text" &&
            $cc $std -O1 $warnings -I"$here" "$work/user_text" $extra -x none "$IMPL" -o "$work/program" -lm -pthread
    else
        $cc $std -O1 $warnings -I"$here" "$3" $extra -o "$work/program" -lm -pthread
    fi
}

# one block: $1 language, $2 what it needs ("cuda": the stub; "openmp"; "linked"; or ""), $3 source file, $4 expected output or "", $5 label
block() {
    case $1 in
    c) compilers="$CC -x c|-std=c99" ;;
    *) compilers="$CXX -x c++|-std=c++11
$CXX -x c++|-std=c++17" ;;
    esac
    tool=$CC
    [ "$1" = c ] || tool=$CXX
    # shellcheck disable=SC2086 # a compiler may come with arguments
    if ! command -v ${tool:-no-compiler} >/dev/null 2>&1; then
        echo "skipped: $5: no ${tool:-compiler for $1}"
        skipped=$((skipped + 1))
        return
    fi
    # shellcheck disable=SC2086
    if [ "$2" = openmp ] && ! echo 'int main(void) { return 0; }' | $tool -fopenmp -x c - -o "$work/program" >/dev/null 2>&1; then
        echo "skipped: $5: $tool has no OpenMP"
        skipped=$((skipped + 1))
        return
    fi
    echo "$compilers" >"$work/compilers"
    while IFS='|' read -r cc std; do
        extra=
        [ "$2" != cuda ] || extra=$work/stub.c
        [ "$2" != openmp ] || std="$std -fopenmp"
        [ "$2" != linked ] || extra=$(implementation "$cc" "$std")
        # shellcheck disable=SC2086
        if ! build "$@" >"$work/messages" 2>&1; then
            echo "FAIL $5 ($cc $std) does not compile:"
            cat "$work/messages"
            failed=$((failed + 1))
            continue
        fi
        mkdir -p "$work/run"
        # shellcheck disable=SC2086
        (cd "$work/run" && ${RUN_ENV:-} "$work/program") >"$work/printed" 2>&1 </dev/null
        rc=$?
        if [ $rc != 0 ]; then
            echo "FAIL $5 ($cc $std): exit status $rc"
            cat "$work/printed"
            failed=$((failed + 1))
        elif [ -n "$4" ] && ! diff -u "$4" "$work/printed" >"$work/diff"; then
            echo "FAIL $5 ($cc $std) prints something else:"
            cat "$work/diff"
            failed=$((failed + 1))
        else
            echo "ok   $5 ($cc $std)"
            passed=$((passed + 1))
        fi
        rm -rf "$work/run"
    done <"$work/compilers"
}

printf '#define AMP_CUDA_STUB_IMPLEMENTATION\n#include "amp_cuda.cuh"\n' >"$work/stub.c"
# the program on the first page of header $1
first_page() {
    awk '
        /A COMPLETE PROGRAM/ { page = 1 }
        page && /^ +#define AMP_IMPLEMENTATION/ { inside = 1; match($0, /#/); indent = RSTART }
        inside { print substr($0, indent) }
        inside && substr($0, indent) == "}" { exit }
    ' "$1" >"$work/first.source"
    lines=$(wc -l <"$work/first.source")
    if [ "$lines" -lt 5 ] || [ "$lines" -gt 20 ]; then
        echo "FAIL $1: the complete program on the first page has $lines lines, not 5 to 20"
        failed=$((failed + 1))
        return
    fi
    block c plain "$work/first.source" "" "$1, first page"
    case $(cat "$work/printed" 2>/dev/null) in
    "loss 0.0"*) ;;
    *)
        echo "FAIL $1: the program on the first page does not learn: $(cat "$work/printed")"
        failed=$((failed + 1))
        ;;
    esac
}

for file in "$@"; do
    case $file in
    *.h)
        first_page "$file"
        continue
        ;;
    esac
    rm -f "$work"/block.*
    # every runnable block to block.N.source, block.N.info ("c cuda LINE") and, if there is one, block.N.output
    awk -v to="$work/block." '
        /^```/ && !inside {
            inside = 1; name = ""
            if ($0 ~ /^```(c|cpp) run( |$)/) {
                n++; name = to n ".source"
                print substr($1, 4), ($3 != "" ? $3 : "plain"), NR >(to n ".info")
                last = n
            } else if ($0 ~ /^```output/ && last) { name = to last ".output"; last = 0; printf "" >name } else last = 0
            next
        }
        /^```/ { inside = 0; next }
        inside && name != "" { print >name }
    ' "$file"
    n=0
    while [ -r "$work/block.$((n + 1)).info" ]; do
        n=$((n + 1))
        read -r language kind line <"$work/block.$n.info"
        output=$work/block.$n.output
        [ -r "$output" ] || output=
        block "$language" "$kind" "$work/block.$n.source" "$output" "$file:$line"
    done
    if [ $n = 0 ]; then
        echo "FAIL $file has no runnable block"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
