#!/bin/sh
# usage: ptx.sh [--full]     Looks at what nvcc really makes of amp_cuda.cuh; needs nvcc, no GPU.
# For one architecture, with --full for all that nvcc knows, with plain flags and with --use_fast_math:
#   the file compiles without a warning; no kernel spills registers or uses local memory; no kernel has arithmetic that flags could change
#   (unrounded or approximate FP32 instructions, flushing of subnormals, a fused multiply-add that nobody wrote);
#   vector loads and stores are where tests/ptx.txt asks for them (KERNEL ld|st WIDTH; "KERNEL fma|approx|local" allows what is meant).
# And once: the object exports amp_ names only. Last line: N passed, N failed, N skipped.
set -u
NVCC=${NVCC:-nvcc}
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM
ptxas=$(dirname "$(command -v "$NVCC")")/ptxas
[ -x "$ptxas" ] || ptxas=ptxas
passed=0 failed=0
bad() { failed=$((failed + 1)); echo "FAIL $*"; }

archs=90
[ "${1:-}" != --full ] || archs=$("$NVCC" --list-gpu-arch | sed 's/compute_//')
for arch in $archs; do
    for flags in "" --use_fast_math; do
        name=sm_$arch${flags:+-fast}
        # shellcheck disable=SC2086
        if ! "$NVCC" -std=c++17 -O2 $flags -arch=compute_"$arch" -Werror all-warnings -I. -ptx tests/cuda_impl.cu -o "$work/k.ptx" >"$work/log" 2>&1; then
            bad "$name does not compile without a warning"; cat "$work/log"
            continue
        fi
        if ! "$ptxas" -arch=sm_"$arch" -v "$work/k.ptx" -o "$work/k.cubin" >"$work/ptxas" 2>&1; then
            bad "$name: ptxas"; cat "$work/ptxas"
            continue
        fi
        # A line per kernel: NAME registers stack spill loads stores loose fma approx ftz. NAME is the mangled name's identifier.
        awk '
            FNR == NR { # ptxas -v
                if (match($0, /Compiling entry function .[^ ]*/)) { k = substr($0, RSTART + 26, RLENGTH - 27) }
                if (/bytes stack frame/) { stack[k] = $1; spill[k] = $5 + 0 }
                if (match($0, /Used [0-9]+ registers/)) regs[k] = substr($0, RSTART + 5, RLENGTH - 15)
                next
            }
            /^\.visible \.entry|^\.entry|^[^\/]*\.entry [A-Za-z0-9_]+\(/ {
                match($0, /\.entry [A-Za-z0-9_]+/); k = substr($0, RSTART + 7, RLENGTH - 7); names[++n] = k; inside = 1; next
            }
            inside && /^}/ { inside = 0 }
            inside {
                if (match($0, /ld\.global[a-zA-Z0-9_.:]*/)) wide("ld", substr($0, RSTART, RLENGTH))
                if (match($0, /st\.global[a-zA-Z0-9_.:]*/)) wide("st", substr($0, RSTART, RLENGTH))
                if (/[ \t](add|sub|mul|mad|div|sqrt|rcp)\.(ftz\.|sat\.|full\.)*f(32|64)/) loose[k]++
                if (/[ \t]fma\./) fma[k]++
                if (/\.approx/) approx[k]++
                if (/\.ftz/) ftz[k]++
            }
            function wide(what, text,   bits) { # widest access in bits
                bits = text; sub(/.*[a-z]/, "", bits)
                if (text ~ /\.v2\./) bits *= 2
                if (text ~ /\.v4\./) bits *= 4
                if (bits > width[what, k]) width[what, k] = bits
            }
            END {
                for (i = 1; i <= n; i++) {
                    k = names[i]; id = k
                    if (match(id, /^_Z[A-Z]*[0-9]+/)) { len = substr(id, RSTART, RLENGTH); sub(/^_Z[A-Z]*/, "", len); id = substr(id, RLENGTH + 1, len) }
                    print id, regs[k] + 0, stack[k] + 0, spill[k] + 0, width["ld", k] + 0, width["st", k] + 0, loose[k] + 0, fma[k] + 0, approx[k] + 0, ftz[k] + 0
                }
            }' "$work/ptxas" "$work/k.ptx" >"$work/kernels"
        [ -s "$work/kernels" ] || bad "$name: no kernel found"
        while read -r id regs stack spill ld st loose fma approx ftz; do
            why=
            rule() { grep -q "^${id}[[:space:]]\{1,\}$1\$" tests/ptx.txt 2>/dev/null; }
            [ "$spill" = 0 ] || why="$why spills $spill bytes;"
            [ "$stack" = 0 ] || rule local || why="$why $stack bytes of local memory;"
            [ "$loose" = 0 ] || why="$why $loose unrounded instructions;"
            [ "$fma" = 0 ] || rule fma || why="$why $fma fused multiply-adds;"
            [ "$approx" = 0 ] || rule approx || why="$why $approx approximations;"
            [ "$ftz" = 0 ] || why="$why $ftz instructions that flush subnormals;"
            # shellcheck disable=SC2013 # words are wanted
            for want in $(sed -n "s/^${id}[[:space:]]\{1,\}\(ld\|st\)[[:space:]]\{1,\}\([0-9]*\).*/\1:\2/p" tests/ptx.txt 2>/dev/null); do
                have=$ld
                [ "${want%:*}" = ld ] || have=$st
                [ "$have" -ge "${want#*:}" ] || why="$why widest ${want%:*} is $have bits, not ${want#*:};"
            done
            printf '%-12s %-34s %3d registers, loads %3d, stores %3d bits\n' "$name" "$id" "$regs" "$ld" "$st"
            if [ -n "$why" ]; then bad "$name $id:$why"; else passed=$((passed + 1)); fi
        done <"$work/kernels"
    done
done

if "$NVCC" -std=c++17 -O1 -arch=sm_"${archs##* }" -I. -c tests/cuda_impl.cu -o "$work/k.o" >"$work/log" 2>&1; then
    names=$(nm -g --defined-only "$work/k.o" | awk '$2 != "V" && $2 != "W" && $2 != "u" { print $3 }' | grep -v '^amp_')
    if [ -z "$names" ]; then passed=$((passed + 1)); else bad "cuda_impl.o exports $(echo "$names" | tr '\n' ' ')"; fi
else
    bad "cuda_impl.cu does not compile"; cat "$work/log"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
