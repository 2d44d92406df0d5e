#!/bin/sh
# usage: style.sh [--report] [ROOT]    The limits of tests/limits.txt, and that clang-format changes nothing, for the tree in ROOT (this one).
# --report: every violation and a table; fails nothing. Without a ROOT it first tries itself on a small tree that breaks every limit.
# Needs python3, and clang-format and lizard in the versions that limits.txt names (or $CLANG_FORMAT, $LIZARD): what is missing is skipped.
# Last line: N passed, N failed, N skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
report=
[ "${1:-}" != --report ] || { report=1; shift; }
given=${1:-}
cd "${given:-$here/..}" || exit 2
limits=${STYLE_LIMITS:-$here/limits.txt}
venv=$here/../build/tools/bin # where .ci/run installs them if it must
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
shown=12 # violations per check; --report shows all
[ -z "$report" ] || shown=100000

# limit NAME [FILE]: the value for FILE, else for all
limit() {
    awk -v name="$1" -v file="${2:-}" '
        { sub(/#.*/, "") }
        $1 == name && NF == 2 { all = $2 }
        $1 == name && NF == 3 && $2 == file { own = $3 }
        END { print own != "" ? own : all }' "$limits"
}

# tool NAME PROGRAM...: the first of the programs that has the version of limits.txt
tool() {
    name=$1 version=$(limit tool "$1")
    shift
    for program in "$@"; do
        [ -n "$program" ] || continue
        case " $("$program" --version 2>/dev/null) " in *" $version "*) echo "$program"; return ;; esac
    done
}

# verdict NAME LIMIT: passed if there is nothing in $work/found
verdict() {
    n=$(grep -c . "$work/found")
    [ -z "$report" ] || printf '%-32s limit %-8s worst %-8s violations %d\n' "$1" "$2" "${worst:--}" "$n" >>"$work/table"
    if [ "$n" = 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAIL $1: $n violations"
    head -n "$shown" "$work/found" | sed 's/^/    /'
    [ "$n" -le "$shown" ] || echo "    ..."
}
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }

# text NAME FILE...: a check of style.py. One that ends without its last line has not looked: it fails.
text() {
    name=$1
    shift
    python3 "$here/style.py" "$name" "$limits" "$@" >"$work/out" 2>&1
    worst=$(sed -n '$s/^value: //p' "$work/out")
    sed '/^value: /d' "$work/out" >"$work/found"
    [ -n "$worst" ] || echo "$1:1: $name could not be looked at" >>"$work/found"
    if [ $# = 1 ]; then verdict "$name $1" "$(limit "$name" "$1")"; else verdict "$name" "$(limit "$name")"; fi
}
lines() { # FILE
    worst=$(wc -l <"$1")
    : >"$work/found"
    [ "$worst" -le "$(limit lines "$1")" ] || echo "$1:1: $worst lines, at most $(limit lines "$1")" >"$work/found"
    verdict "lines $1" "$(limit lines "$1")"
}
# clang-format reads a file once for each way through its #if's, and amp.h has many: large files go in pieces of 250 lines or more,
# cut at their banners. A declaration ends each but the last, for empty lines before a banner are right, and at the end of a file are not;
# all are inside of an #if as they are in the file, for what follows depends on it.
pieces() { # FILE: $work/piece.LINE, whose line 1 is that line or stands before it
    rm -f "$work"/piece.*
    awk -v to="$work/piece." '
        NR > 1 && n > 250 && /^\/\* ==== >>/ { print "int the_next_piece;" >out; close(out); n = 0 }
        n++ == 0 { out = to (NR > 1 ? NR - 1 : 1); if (NR > 1) print "#ifndef AMP_H_INCLUDED" >out }
        { print >out }' "$1"
}
format_piece() { # FILE PIECE
    if ! "$clang_format" --style=file --assume-filename="$1" <"$2" >"$work/formatted" 2>"$work/messages"; then
        echo "$1:${2##*.}: clang-format: $(head -n 1 "$work/messages")"
        return
    fi
    n=$(diff "$2" "$work/formatted" | grep -c '^[<>]')
    [ "$n" = 0 ] || echo "$1:$((${2##*.} - 1 + $(cmp "$2" "$work/formatted" | sed 's/.* //'))): clang-format changes $n lines, counted on both sides"
}
format() {
    for file in amp.h amp_cuda.cuh; do
        pieces "$file"
        for piece in "$work"/piece.*; do format_piece "$file" "$piece"; done
    done >"$work/found"
    grep -v -x -e amp.h -e amp_cuda.cuh "$work/sources" >"$work/others"
    # the others in one process, which names each place that is not as it should be
    if [ -s "$work/others" ] && ! xargs "$clang_format" --style=file --dry-run -Werror <"$work/others" >"$work/messages" 2>&1; then
        sed -n 's/: error: /: clang-format: /p' "$work/messages" >"$work/places"
        [ -s "$work/places" ] || echo "$(head -n 1 "$work/others"):1: clang-format: $(head -n 1 "$work/messages")" >"$work/places"
        cat "$work/places" >>"$work/found"
    fi
    worst=$(grep -c . "$work/found")
    verdict "clang-format changes nothing" 0
}

# Without git, so that it works in an archive too: build folders are not looked into.
list_sources() {
    { ls; find tests examples bench tools -type f 2>/dev/null; } | grep -E '\.(h|c|cu|cuh|cpp)$' | sort |
        grep -v -x -F "$(awk '{ sub(/#.*/, "") } $1 == "generated" { print $2 }' "$limits")" >"$work/sources"
}

check_all() {
    list_sources
    for file in amp.h amp_cuda.cuh README.md CHANGELOG.md; do lines $file; done
    # shellcheck disable=SC2046 # one word per file
    text width $(cat "$work/sources")
    text page-width README.md CHANGELOG.md docs/*.md
    # shellcheck disable=SC2046
    text fenced $(cat "$work/sources")
    for name in public-lines public-functions backend-functions tokens; do text "$name" amp.h; done
    for name in ternaries statements; do
        for file in amp.h amp_cuda.cuh; do text "$name" $file; done
    done
    LIZARD=$(tool lizard "${LIZARD:-}" lizard "$venv/lizard")
    LIZARD_RESULTS=$work
    export LIZARD LIZARD_RESULTS
    if [ -n "$LIZARD" ]; then
        for name in function-lines complexity functions; do
            for file in amp.h amp_cuda.cuh; do text "$name" $file; done
        done
    else skip "no lizard $(limit tool lizard): length and complexity of functions"; fi
    clang_format=$(tool clang-format "${CLANG_FORMAT:-}" clang-format "$venv/clang-format")
    if [ -n "$clang_format" ]; then format; else skip "no clang-format $(limit tool clang-format): the format"; fi
}

# ---- self-test: a tree that breaks each limit must fail each check, and the same tree without the faults must pass ----
many() { awk -v n="$2" -v text="$1" 'BEGIN { for (i = 0; i < n; i++) { s = text; gsub(/@/, i, s); print s } }'; }
good_tree() { # FOLDER
    mkdir -p "$1/tests" "$1/docs" && cp "$here/../.clang-format" "$1/"
    cat >"$1/amp.h" <<'C'
AMP_API int amp_public(int x);
/* ==== >>backend ======== */
AMP_API int amp_backend(int x);
/* AMP_API int not_counted(void); a ? b : c ? d : e; "; ; */
AMP_API int amp_public(int x) {
    const char *text = "a ? b ? c; d; e;";
    for (x = 0; x < 3; x++) text++;
    return x ? text[0] : 0;
}
C
    printf '__global__ static void kernel(int *p) {\n    *p = 1;\n}\n' >"$1/amp_cuda.cuh"
    for page in README CHANGELOG; do echo "# $page" >"$1/$page.md"; done
    printf '| %0*d |\n' "$(limit page-width)" 0 >"$1/docs/table.md"
    clang_format=$(tool clang-format "${CLANG_FORMAT:-}" clang-format "$venv/clang-format")
    [ -z "$clang_format" ] || "$clang_format" -i "$1"/amp*
}
bad_tree() { # FOLDER
    good_tree "$1"
    {
        many 'AMP_API int amp_f@(int a, int b, int c, int d, int e);' "$(($(limit public-lines) + 1))"
        cat "$1/amp.h"
        many 'AMP_API int amp_b@(void);' "$(($(limit backend-functions) + 1))"
        many '/* @ */' "$(limit lines amp.h)"
    } >"$1/new" && mv "$1/new" "$1/amp.h"
    for page in README CHANGELOG; do many @ "$(limit lines $page.md)" >>"$1/$page.md"; done
    printf 'x %0*d\n' "$(limit page-width)" 0 >>"$1/docs/table.md"
    for file in amp.h amp_cuda.cuh; do
        {
            many '/* @ */' "$(limit lines $file)"
            printf 'static int two(int x) { x++; return x; }\nstatic int which(int x) { return x ? 1 : x > 2 ? 3 : 4; }\nstatic void branches(int x) {\n'
            many '    if (x == @) x += f(x, @, (x + 3) * 4, (x + 5) * 6, x[7] * 8, x * 9 + 10, x - 11, x - 12);' "$(limit function-lines)"
            printf '}\n#define BROKEN {\nstatic void MACRO() name\n' 
            printf '    (int x) hidden_by_macro(int y) {\n}\n/* %0*d */\n' "$(limit width)" 0
            printf '// clang-format off\n'
            many '/* @ */' "$(($(limit lines $file) / 8))"
            printf '// clang-format on\n'
        } >>"$1/$file"
    done
}
refused() { # PATTERN: the bad tree failed in this way
    if grep -q "^FAIL $1" "$work/bad.log"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL self-test: \"$1\" accepts its mutant"; fi
}
self_test() {
    # files of some hundred lines may be as wrong as large ones
    STYLE_LIMITS=$work/limits.txt
    sed 's/^\(lines  *[a-z_.]*  *\)[0-9]*/\1500/' "$limits" >"$STYLE_LIMITS"
    limits=$STYLE_LIMITS
    export STYLE_LIMITS
    good_tree "$work/good"
    if "$here/style.sh" "$work/good" >"$work/good.log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL self-test: a right tree is refused"; cat "$work/good.log"; fi
    bad_tree "$work/bad"
    "$here/style.sh" "$work/bad" >"$work/bad.log" 2>&1 && { failed=$((failed + 1)); echo "FAIL self-test: a wrong tree is accepted"; }
    for check in "lines README.md" "lines CHANGELOG.md" page-width: width: fenced: "public-lines " "public-functions " "backend-functions " "tokens "; do refused "$check"; done
    for file in amp.h amp_cuda.cuh; do
        for check in lines ternaries statements; do refused "$check $file"; done
        [ -z "$LIZARD" ] || for check in function-lines complexity functions; do refused "$check $file"; done
    done
    [ -z "$clang_format" ] || refused clang-format
}

if ! python3 -c '' 2>/dev/null; then
    skip "no python3: the style is not looked at"
else
    check_all
    if [ -z "$given" ] && [ -z "$report" ]; then self_test; fi
fi
if [ -n "$report" ]; then
    echo
    cat "$work/table"
    exit 0
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
