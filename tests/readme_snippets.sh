#!/bin/sh
# usage: readme_snippets.sh [--look] [FILE.md... HEADER.h... --links FILE.md...]    After --look the commands of the next file are not run; of
# files after --links only the links are looked at, and none may have a block that runs. Without files: every page of this tree (--look: but
# for the commands of docs/lesson.md), and README links to each page of docs/ exactly once.
# Compiles and runs every code block of the files whose fence says so, so that what a reader pastes works:
#   ```c run          a C program: -std=c99 -pedantic, all warnings are errors
#   ```cpp run        a C++ program: as C++11 and as C++17
#   ```c run linked   the same without AMP_IMPLEMENTATION: linked with an object that has it, which is compiled once
#   ```c run openmp   the same with -fopenmp, skipped where the compiler has none
#   ```c run cuda     needs amp_cuda.cuh too: linked with the stub implementation (no CUDA needed to compile and link it)
#   ```sh run         commands as a reader types them in a clone, run in a copy of this tree whose build folder is its own; programs
#                     that are in $BUILD, and examples linked with $IMPL, are put there first, so that make finds them up to date
# and the complete program on the first page of a header: the lines from "#define AMP_IMPLEMENTATION" after "A COMPLETE PROGRAM"
# to its closing brace; at most 20 lines, and it says "loss 0.0".
# A block ```output right after it is what the program prints: "..." stands for any text in a line, or, alone, for any lines. In a file with
# sh blocks a number in the text between backquotes, as `95.6%`, is one that a block of the same section (##) has printed. Links to files
# and headings of the tree lead somewhere. Programs run in an empty folder. Uses $CC, $CXX ("" or not installed:
# its blocks are skipped), $RUN_ENV and $IMPL, the object of tests/impl.c: where it is given, a program is looked at as it stands and then
# built without its #define AMP_IMPLEMENTATION and linked with that object, which takes a tenth of the time. Last line: N passed, N failed, N skipped.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}
CXX=${CXX-c++}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# what stands in a list of words has no path in it, which may have spaces: compilers run in $work
in_work() { (cd "$work" && "$@"); }
[ -z "${IMPL:-}" ] || IMPL=$(realpath "$IMPL") || exit 2
[ -z "${IMPL:-}" ] || ln -s "$IMPL" "$work/impl.o"
passed=0 failed=0 skipped=0
warnings="-Wall -Wextra -pedantic -Werror"

# implementation COMPILER STANDARD: $work/impl.o, an object with amp.h's code, $IMPL or made when it is wanted first
implementation() {
    # shellcheck disable=SC2086
    [ -r "$work/impl.o" ] || echo '#include "amp.h"' | $1 $2 -O1 -DAMP_IMPLEMENTATION -I"$here" -c - -o "$work/impl.o" >&2
    echo "-x none impl.o"
}

# the program of block's arguments; with IMPL the implementation in it is only looked at, of C++ as C++11
build() {
    # shellcheck disable=SC2086
    if [ -n "${IMPL:-}" ] && [ "$2" != linked ]; then
        { [ "$std" = -std=c++17 ] || in_work $cc $std $warnings $lean -I"$here" -fsyntax-only "$3"; } &&
            sed 's/^ *#define AMP_IMPLEMENTATION.*//' "$3" >"$work/user_text" &&
            in_work $cc $std -O1 $warnings -I"$here" user_text $extra -x none "$IMPL" -o program -lm -pthread
    else
        in_work $cc $std -O1 $warnings -I"$here" "$3" $extra -o program -lm -pthread
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
        [ "$2" != cuda ] || extra=stub.c
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

# same WANT PRINTED: is the text as wanted? Says where it is not.
same() {
    awk '
        function pattern(s) { gsub(/[][\\.^$*+?(){}|\/]/, "\\\\&", s); gsub(/\\\.\\\.\\\./, ".*", s); return "^" s "$" }
        { sub(/[ \t\r]+$/, "") }
        NR == FNR { want[++wants] = $0; next }
        { line[++lines] = $0 }
        END {
            for (i = j = 1; i <= wants; i++) {
                if (want[i] == "...") { any = 1; continue }
                from = j
                while (any && j <= lines && line[j] !~ pattern(want[i])) j++
                if (j > lines || line[j] !~ pattern(want[i])) {
                    print "    wanted:  " want[i]
                    print "    printed: " (from > lines ? "(the end)" : line[from]) (any ? ", and so on" : "")
                    exit 1
                }
                any = 0
                j++
            }
            if (!any && j <= lines) { print "    not wanted: " line[j]; exit 1 }
        }' "$1" "$2"
}

# The copy of the tree for sh blocks, made when it is wanted first: links to everything but the build folder.
room() {
    [ ! -d "$work/room" ] || return
    built=${BUILD:-$here/build}
    mkdir -p "$work/room/build"
    for entry in "$here"/*; do
        case $entry in */build) ;; *) ln -s "$entry" "$work/room/" ;; esac
    done
    in_room make -s build/flags # before the object and the programs, which make else takes for old
    mkdir -p "$work/room/build/tests"
    [ -z "${IMPL:-}" ] || cp "$IMPL" "$work/room/build/tests/impl.o"
    for program in $(grep -o 'build/[a-z_]*' "$1" | sort -u); do
        source=$here/examples/${program#build/}.c
        there=$built/${program#build/}
        if [ -f "$there" ] && [ -z "$(find "$here/amp.h" "$here/examples" "$here/tools" -name '*.[ch]' -newer "$there")" ]; then
            cp "$there" "$work/room/$program"
        elif [ -n "${IMPL:-}" ] && [ -r "$source" ]; then # in a tenth of the time
            # shellcheck disable=SC2086
            sed 's/^# *define AMP_IMPLEMENTATION.*//' "$source" |
                $CC -std=c99 -O1 -DAMP_LINKED -iquote "$here/examples" -I"$here" -x c - -x none "$IMPL" -lm -pthread -o "$work/room/$program"
        fi
    done
}
in_room() { (cd "$work/room" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL BUILD=build "$@") </dev/null; }
# $1 file of commands, $2 wanted output or "", $3 label, $4 the page
shell_block() {
    if [ -n "${RUN_ENV:-}" ]; then
        echo "skipped: $3: commands are not run under RUN_ENV"
        skipped=$((skipped + 1))
        return
    fi
    room "$4"
    in_room sh -e "$1" >"$work/printed" 2>"$work/messages"
    rc=$?
    if [ $rc != 0 ]; then
        echo "FAIL $3: exit status $rc: $(cat "$1")"
        cat "$work/printed" "$work/messages"
        failed=$((failed + 1))
    elif [ -n "$2" ] && ! same "$2" "$work/printed" >"$work/diff"; then
        echo "FAIL $3 prints something else: $(cat "$1")"
        cat "$work/diff"
        failed=$((failed + 1))
    else
        echo "ok   $3"
        passed=$((passed + 1))
    fi
}
# The numbers in the text of file $1, those between backquotes: printed by a block of their section? $work/section.N has what was.
numbers() {
    awk '
        /^```/ { inside = !inside; next }
        /^## / { section++ }
        !inside {
            n = split($0, part, "`")
            for (i = 2; i < n; i += 2)
                if (part[i] ~ /^[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+|\^-?[0-9]+)?( ?%)?$/) print section + 0, NR, part[i]
        }' "$1" >"$work/numbers"
    looked=0
    while read -r section line number; do
        looked=$((looked + 1))
        if grep -q -w -F -e "$number" "$work/section.$section" 2>/dev/null; then continue; fi
        echo "FAIL $1:$line: nothing in this section has printed $number"
        failed=$((failed + 1))
    done <"$work/numbers"
    passed=$((passed + 1))
    echo "ok   $1: $looked numbers of the text looked up in what was printed"
}
# The names by which links find the headings of page $1.
headings() {
    awk '/^```/ { inside = !inside } !inside && /^#+ / { sub(/^#+ /, ""); $0 = tolower($0); gsub(/[^a-z0-9 _-]/, ""); gsub(/ /, "-"); print }' "$1"
}
links() {
    folder=$(dirname "$1")
    grep -o ']([^):]*)' "$1" | sed 's/^](//; s/)$//' | sort -u >"$work/links"
    while read -r link; do
        to=$folder/${link%%#*}
        [ "${link%%#*}" ] || to=$1
        if [ ! -e "$to" ]; then
            echo "FAIL $1: a link leads to $link, which is not there"
            failed=$((failed + 1))
        elif [ "$link" != "${link#*.md#}" ] || [ "$link" != "${link#\#}" ]; then
            headings "$to" | grep -q -x -F -e "${link#*#}" && continue
            echo "FAIL $1: a link leads to $link, and no heading has this name"
            failed=$((failed + 1))
        fi
    done <"$work/links"
    passed=$((passed + 1))
}
# README.md links to each page of docs/, once.
contents() {
    for page in docs/*.md; do
        n=$(grep -o "](${page}[#)]" README.md | wc -l)
        [ "$n" != 1 ] || continue
        echo "FAIL README.md links to $page $n times, not once"
        failed=$((failed + 1))
    done
    passed=$((passed + 1))
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

case $* in
'' | --look)
    cd "$here" || exit 2
    set -- README.md docs/faq.md docs/threads.md docs/gpu.md docs/coming-from.md docs/from-fp32.md docs/recipes.md "$@" docs/lesson.md amp.h
    # shellcheck disable=SC2046 # one word per file
    set -- "$@" --links $(find ./*.md docs examples tests bench -name '*.md' | sed 's|^\./||' | sort | grep -v -x -F "$(printf '%s\n' "$@")")
    contents
    ;;
esac
look='' only_links=''
lean='' # all paths of the implementation in each block
case " $* " in *" --look "*) lean=-DAMP_NO_SIMD ;; esac
for file in "$@"; do
    case $file in
    --look)
        look=1
        continue
        ;;
    --links)
        only_links=1
        continue
        ;;
    *.h)
        first_page "$file"
        continue
        ;;
    esac
    if [ -n "$only_links" ]; then
        links "$file"
        grep -q -E '^```(c|cpp|sh) run( |$)' "$file" || continue
        echo "FAIL $file has a block that nobody runs"
        failed=$((failed + 1))
        continue
    fi
    rm -f "$work"/block.* "$work"/section.*
    # every runnable block to block.N.source, block.N.info ("c cuda LINE SECTION") and, if there is one, block.N.output
    awk -v to="$work/block." '
        /^## / && !inside { section++ }
        /^```/ && !inside {
            inside = 1; name = ""
            if ($0 ~ /^```(c|cpp|sh) run( |$)/) {
                n++; name = to n ".source"
                print substr($1, 4), ($3 != "" ? $3 : "plain"), NR, section + 0 >(to n ".info")
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
        read -r language kind line section <"$work/block.$n.info"
        output=$work/block.$n.output
        [ -r "$output" ] || output=
        rm -f "$work/printed"
        if [ "$language" = sh ] && [ -n "$look" ]; then continue; fi
        if [ "$language" = sh ]; then shell_block "$work/block.$n.source" "$output" "$file:$line" "$file"
        else block "$language" "$kind" "$work/block.$n.source" "$output" "$file:$line"; fi
        [ ! -r "$work/printed" ] || cat "$work/printed" >>"$work/section.$section"
    done
    links "$file"
    if [ -z "${RUN_ENV:-}$look" ] && grep -q '^```sh run' "$file"; then numbers "$file"; fi
    look=
    if [ $n = 0 ]; then
        echo "FAIL $file has no runnable block"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
