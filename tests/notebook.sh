#!/bin/sh
# usage: notebook.sh   The cells of examples/notebook.ipynb, run by Jupyter's own machinery in this clone: without a compiler for CUDA, and with
# the host runtime as one ($BUILD/hostcuda-cc, if it is there). Wants a Python with nbclient, ipykernel, nbformat and numpy: $PYTHON, or
# build/tools, where .ci/run puts them. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
PYTHON=${PYTHON:-python3}
! build/tools/bin/python -c 'import nbclient' 2>/dev/null || PYTHON=build/tools/bin/python
hostcuda=$(realpath "${BUILD:-build}/hostcuda-cc" 2>/dev/null)
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM
"$PYTHON" tests/notebook.py --run 'without CUDA' >>"$log" 2>&1
if [ -n "$hostcuda" ]; then HOSTCUDA_CHECK=plain "$PYTHON" tests/notebook.py --run 'host runtime' "$hostcuda" >>"$log" 2>&1
else echo 'skipped: notebook on the host runtime: no build/hostcuda-cc (no CUDA headers)
0 passed, 0 failed, 1 skipped' >>"$log"; fi
grep -v -e ' passed, ' -e '^\[IPKernelApp' "$log"
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { n++; p += $1; f += $3; s += $5 }
    END { if (n != 2) { print "FAIL notebook: " 2 - n " of 2 runs gave no counts"; f++ }
        print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped" }' "$log"
