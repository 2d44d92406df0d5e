#!/bin/sh
# headers.sh - are amp.h and amp_cuda.cuh what src/ gives, do its parts keep to their walls, does tests/verbs.h say what amp.h does, and do the
# tools notice when not? Last line: the counts.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
check() { # WHAT COMMAND...
    what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        sed 's/^/    /' "$work/out"
    fi
}
refused() { # WHAT WORDS [COMMAND...]: in a copy, `check` (or COMMAND) fails and says so
    what=$1 words=$2
    shift 2
    [ $# -gt 0 ] || set -- "$work/tools/headers.sh" check
    if "$@" >"$work/out" 2>&1 || ! grep -q "$words" "$work/out"; then
        failed=$((failed + 1))
        echo "FAIL self-test: $what"
    else
        passed=$((passed + 1))
    fi
}
copy() {
    rm -rf "$work/src"
    mkdir -p "$work/tools" && cp -R src amp.h amp_cuda.cuh "$work" && cp tools/headers.sh "$work/tools"
}

tests_of() { tools/tests_of.sh amp_step ampi_split8_round ampi_k_pair | tr '\n' ' ' | grep "amp_step.*$1.*round.*$2.*pair.*$3"; }
check 'tools/tests_of.sh: by calls, and by banners of both headers' tests_of 'test_step.c: .* accuracy.*front/step.h: tests/test_step.c' \
    'split.h: tests/test_layouts.c' 'update.cuh: tests/test_step.c'
refused 'tools/tests_of.sh takes a name that nobody has' 'no test names it' tools/tests_of.sh amp_steps
check 'the headers are what src/ gives (make headers)' tools/headers.sh check
find src -name '*.h' -o -name '*.cuh' | sed 's|^src/||' | sort >"$work/there"
awk '/^ / { print $1 }' src/order | sort >"$work/listed"
check 'src/order lists each part once' cmp "$work/there" "$work/listed"

# Parts with code say in their first lines which tests guard them.
unguarded() {
    for file in $(awk '/^ / { print "src/" $1 }' src/order | grep -v -e /page -e /license -e /stub -e /platform); do
        head -n 20 "$file" | grep -q 'tests:' || { echo "$file does not say which tests guard it" && found=1; }
    done
    [ -z "${found:-}" ]
}
check 'each part says which tests guard it' unguarded

part=$(awk '/^ / { print "src/" $1 }' src/order | sed -n 2p)
copy
echo >>"$work/$part"
refused 'a changed part is accepted' '^amp.h is not what src/ gives'
copy
rm "$work/$part"
refused 'a missing part is accepted' 'a part of src/order is missing'
copy
"$work/tools/headers.sh" lines
check 'with #line the compiler names the part' \
    sh -c 'echo "int x = missing;" >>"$0/$1" && "$0/tools/headers.sh" lines && ${CC:-cc} -fsyntax-only -include "$0/amp.h" -x c - </dev/null 2>&1 | grep -q "$1:"' "$work" "$part"

# The verbs with their classes: by tests/verbs.h, those of class host left out; and by amp.h, where the comment before a declaration, or behind
# it on its line, says "Class: ..." for it and those after it.
listed() { sed -n 's/^ *X(\(amp_[a-z0-9_]*\), \([a-z_]*\)).*/\1 \2/p' "$1" | grep -v ' host$' | sort; }
declared() {
    awk '
        function class_of(text) {
            if (!match(text, /Class: +[a-z]+( if| as)?|Class: as [a-z_]+/)) return ""
            text = substr(text, RSTART + 7, RLENGTH - 7)
            if (text ~ / if$/) return "enqueue_or_query"
            if (sub(/^as /, "", text)) return of[text]
            return text
        }
        /^\/\* ==== >>impl/ { exit }
        /^AMP_API/ { declaration = ""; behind = 1 }
        behind { declaration = declaration " " $0 }
        behind && /;/ {
            match(declaration, /amp_[a-z0-9_]*\(/)
            name = substr(declaration, RSTART, RLENGTH - 1)
            sub(/_checked$/, "", name)
            of[name] = class_of($0) == "" ? class : class_of($0)
            behind = 0
        }
        !behind && /^\/\*/ { comment = "" }
        !behind { comment = comment " " $0 }
        !behind && /\*\/$/ { gsub(/  +/, " ", comment); if (class_of(comment) != "") class = class_of(comment) }
        END { for (name in of) if (of[name] != "host" && of[name] != "") print name, of[name] }' "$1" |
        grep -v -e '^amp_cpu_create ' -e '^amp_ctx_destroy ' | sort
}
same_verbs() { listed "$1" >"$work/listed" && declared amp.h >"$work/declared" && [ -s "$work/declared" ] && diff "$work/listed" "$work/declared"; }
check 'tests/verbs.h has the verbs and the classes of the comments in amp.h' same_verbs tests/verbs.h
sed 's/amp_step, enqueue/amp_step, query/' tests/verbs.h >"$work/verbs.h"
refused 'a verb of another class is accepted' '^< amp_step query' same_verbs "$work/verbs.h"
sed '/X(amp_clip,/d' tests/verbs.h >"$work/verbs.h"
refused 'a missing verb is accepted' '^> amp_clip enqueue' same_verbs "$work/verbs.h"

# A getter that asks the device, or can fail, returns a status and fills *out; the others return the value (end of >>types).
one_rule() { # FILE...
    sed -n 's/^AMP_\(CUDA_\)\{0,1\}API \([a-z_0-9]* amp_[a-z_0-9]*_get([^{]*\);.*/\2/p' "$@" >"$work/getters"
    [ "$(wc -l <"$work/getters")" -ge 5 ] && ! awk '($1 == "amp_status") != /, amp_[a-z_0-9]* \*out\)$/' "$work/getters" | grep .
}
check 'getters follow one rule' one_rule amp.h amp_cuda.cuh
sed 's/^AMP_API amp_autocast_info amp_autocast_get(const amp_ctx \*ctx)/AMP_API void amp_autocast_get(const amp_ctx *ctx, amp_autocast_info *out)/' amp.h >"$work/getters.h"
refused 'a getter that fills a pointer and cannot fail is accepted' amp_autocast_get one_rule "$work/getters.h" amp_cuda.cuh

# A program may have both in one file, in either order.
kept() { # FILE: the macros that it leaves defined
    awk '{ sub(/^# +/, "#") } $1 == "#define" { sub(/\(.*/, "", $2); has[$2] = 1 } $1 == "#undef" { delete has[$2] } END { for (m in has) print m }' "$1" | sort
}
no_macro_twice() { kept "$1" >"$work/macros" && [ "$(wc -l <"$work/macros")" -gt 100 ] && ! kept "$2" | comm -12 - "$work/macros" | grep .; }
check 'amp.h and amp_cuda.cuh define no macro of one name' no_macro_twice amp.h amp_cuda.cuh
{ cat amp_cuda.cuh; echo '#define AMP_PART 1'; } >"$work/twice.cuh"
refused 'a macro of both headers is accepted' '^AMP_PART$' no_macro_twice amp.h "$work/twice.cuh"

if command -v python3 >/dev/null 2>&1; then
    walls() { python3 tools/walls.py --check "$@"; }
    check 'a part uses names of parts above it, and few of them (tools/walls.py)' walls
    copy
    mkdir -p "$work/tests"
    sed 's/^\(crossings *\)[0-9]*/\1 1/' tests/limits.txt >"$work/tests/limits.txt"
    refused 'more crossings than allowed are accepted' ' crossings, at most 1 ' walls "$work"
    cp tests/limits.txt "$work/tests"
    first=$(sed -n 's/^# forward: \([a-z_0-9]*\).*/\1/p' src/order | head -n 1)
    sed "s/$first//" src/order >"$work/src/order"
    refused 'a use above the definition is accepted' "^$first is used in " walls "$work"
    sed 's/^# forward:/& ampi_nobody/' src/order >"$work/src/order"
    refused 'an exception for nothing is accepted' 'ampi_nobody is used nowhere' walls "$work"
    check 'the faults of mutants.txt have their text' python3 tests/mutants/mutants.py --gone
    refused 'a fault without its text is accepted' 'low parts' sh -c 'cp -R "$1/tests/mutants" "$2/tests" && cd "$2" && sed "s/e->low/e->lo/" "$1/amp.h" >amp.h && python3 tests/mutants/mutants.py --gone' - "$PWD" "$work"
else
    skipped=$((skipped + 1))
    echo 'skipped: the walls between the parts: no python3'
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
