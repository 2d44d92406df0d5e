#!/bin/sh
# headers.sh - are amp.h and amp_cuda.cuh what src/ gives, and does tools/headers.sh notice when they are not? Last line: the counts.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
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
refused() { # WHAT WORDS: in a copy, `check` fails and says so
    if "$work/tools/headers.sh" check >"$work/out" 2>&1 || ! grep -q "$2" "$work/out"; then
        failed=$((failed + 1))
        echo "FAIL self-test: $1"
    else
        passed=$((passed + 1))
    fi
}
copy() {
    rm -rf "$work/src"
    mkdir -p "$work/tools" && cp -R src amp.h amp_cuda.cuh "$work" && cp tools/headers.sh "$work/tools"
}

check 'the headers are what src/ gives (make headers)' tools/headers.sh check
find src -name '*.h' -o -name '*.cuh' | sed 's|^src/||' | sort >"$work/there"
awk '/^ / { print $1 }' src/order | sort >"$work/listed"
check 'src/order lists each part once' cmp "$work/there" "$work/listed"

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

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
