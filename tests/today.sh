# shellcheck shell=sh
# today.sh - read by the tests that `make test` deals over days: what `make check-full` does in full each time.
# today I N: does part I of N have its turn? With --full ($full) each has. AMP_DAY: another day than today's, or all; `make test` ends with its own.
AMP_DAY=${AMP_DAY:-$(($(date +%s) / 86400))}
today() { [ -n "${full:-}" ] || [ "$AMP_DAY" = all ] || [ $((AMP_DAY % $2 + 1)) = "$1" ]; }
