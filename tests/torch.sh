#!/bin/sh
# usage: torch.sh [--full]   What is compared with PyTorch, if $PYTHON (python3) can import it; else all of it is skipped and counted:
#   1,000 steps of each optimizer (torch_steps.c); loss and gradients of examples/gpt.c and convnet.c (torch_gpt.c, torch_convnet.c); the Muon of docs/recipes.md
#   (torch_muon.c); the PyTorch columns of docs/operations.md (torch_operations.py); a run that goes on in amp and comes back, by files (torch_exchange.py); --full: examples/libtorch.cpp is built on its headers and libraries (half of the time), and holds its claims.
# Uses $BUILD $CC $CXX $IMPL, the object of tests/impl.c. Last line: N passed, N failed, N skipped.
set -u
full=
[ "${1:-}" != --full ] || full=1
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=${BUILD:-$top/build}
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 2
mk() { ${MAKE:-make} -s -C "$top" BUILD="${build#"$top"/}" "$@"; } # with relative names: make takes none with spaces
PYTHON=${PYTHON:-python3}
CC=${CC:-cc}
IMPL=${IMPL:-$build/tests/impl.o}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
set --
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip_all() {
    for what in "steps of each optimizer" "gradients of examples/gpt.c" "gradients of examples/convnet.c" "Muon" "docs/operations.md" "a run by files" ${full:+"examples/libtorch.cpp"}; do echo "skipped: $what: $PYTHON cannot import torch"; done
    echo "0 passed, 0 failed, $((6 + ${full:-0})) skipped"
    exit 0
}
"$PYTHON" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null || skip_all
mk "${IMPL#"$top"/}" || bad "the implementation does not build"

# program FOLDER/NAME FLAG...: FOLDER/NAME.c without an implementation of its own
program() {
    name=${1#*/} folder=${1%/*}
    shift
    sed 's/^#define AMP_IMPLEMENTATION.*//' "$top/$folder/$name.c" |
        "$CC" -std=c99 -O1 -Wall -Wextra -Wno-return-type -DAMP_LINKED -iquote "$top/$folder" -I"$top" "$@" -x c - -x none "$IMPL" -lm -pthread -o "$work/$name" >"$work/log" 2>&1 ||
        { bad "$name.c does not build"; head -n 12 "$work/log"; return 1; }
}
program tests/torch_steps && set -- "$@" , "$top/tests/torch_steps.py" "$work/torch_steps"
program tests/torch_gpt && set -- "$@" , "$top/tests/torch_programs.py" gpt "$work/torch_gpt"
program tests/torch_convnet && set -- "$@" , "$top/tests/torch_programs.py" convnet "$work/torch_convnet"
sed -n '/^## Muon/,/^## /p' "$top/docs/recipes.md" | awk '/^```/ { on = !on && /c run/; next } on' >"$work/recipe.h"
program tests/torch_muon "-DRECIPE=\"$work/recipe.h\"" && set -- "$@" , "$top/tests/torch_programs.py" muon "$work/torch_muon"
# the recipe is the first block of Python in its section
sed -n '/^## A PyTorch run/,/^## From/p' "$top/docs/coming-from.md" | awk '/^```/ { n += /python/; on = /python/ && n == 1; next } on' >"$work/recipe.py"
if ! mk python PYTHON="$PYTHON" >"$work/log" 2>&1; then bad "make python: $(tail -n 3 "$work/log")"
elif program examples/exchange; then set -- "$@" , "$top/tests/torch_exchange.py" "$work/recipe.py" "$work/exchange"; fi

PYTHONPATH=$build/python "$PYTHON" "$top/tests/torch_beside.py" "$top/tests/torch_operations.py" "$@" >"$work/log" 2>"$work/err"
rc=$?
[ $rc != 77 ] || skip_all
sed '$d' "$work/log"
counts=$(tail -n 1 "$work/log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
[ -n "$counts" ] || bad "torch_beside.py: exit status $rc: $(tail -n 1 "$work/err")"
# shellcheck disable=SC2086 # three words
set -- ${counts:-0 0 0}
passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))

if [ -z "$full" ]; then :
elif mk PYTHON="$PYTHON" "${build#"$top"/}/libtorch" >"$work/log" 2>&1; then
    OMP_NUM_THREADS=1 "$build/libtorch" --check >"$work/log" 2>"$work/err"
    rc=$?
    sed 's/^ok/  /' "$work/log"
    n=$(grep -c '^ok ' "$work/log")
    passed=$((passed + n)) failed=$((failed + $(grep -c '^WRONG' "$work/log")))
    if [ $rc != 0 ] || [ "$n" -lt 8 ]; then bad "libtorch --check: exit status $rc, $n claims hold: $(tail -n 2 "$work/err")"; fi
    if "$build/libtorch" --nonsense >"$work/log" 2>"$work/err" || [ "$(grep -c nonsense "$work/err")" != 1 ]; then bad "libtorch --nonsense"; else ok; fi
else
    bad "libtorch.cpp does not build"
    grep -i error "$work/log" | head -n 12
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
