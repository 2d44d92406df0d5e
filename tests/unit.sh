#!/bin/sh
# usage: unit.sh PROGRAM ARGUMENT...    The unit suite on the CPU, for `make test`: of SSE2, AVX2 and three threads one has its turn today
# (tests/today.sh); the scalar path and, with two threads, the best path that the processor has run each day.
set -u
. "$(dirname "$0")/today.sh"
others=''
today 1 3 || others=cpu-sse2
today 2 3 || others=$others,cpu-avx2
today 3 3 || others=$others,cpu-3
exec "$@" ${others:+--without "$others"}
