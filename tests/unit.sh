#!/bin/sh
# usage: unit.sh PROGRAM ARGUMENT...    The unit suite on the CPU, for `make test`: of SSE2 and AVX2 one has its turn today (tests/today.sh); the
# best path that the processor has runs each day, as cpu-2 and cpu-3.
set -u
. "$(dirname "$0")/today.sh"
today 1 2 || exec "$@" --without cpu-sse2
today 2 2 || exec "$@" --without cpu-avx2
exec "$@"
