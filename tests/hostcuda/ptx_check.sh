#!/bin/bash
# ptx_check.sh - looks at what nvcc makes of the kernels in one file; needs nvcc, no GPU.
#
#   ptx_check.sh FILE.cu EXPECT.txt ARCH...        e.g. ptx_check.sh backend.cu kernels.txt 75 80 90 120
#   NVCC=... NVCCFLAGS="-I. -DX"                   which nvcc, and what else it needs
#   PTX=FILE                                       where the PTX of the last ARCH stays
#
# EXPECT.txt: one line per kernel (or family), '#' starts a comment:
#   REGEX [ld=BYTES] [st=BYTES] [ld16=N] [st16=N] [cg=N] [fma=N|fma=N-M|fma=*] [regs=MAX] [approx=N] [spill=BYTES]
# REGEX is matched against the demangled name up to its '('.  ld and st: the widest global access has at least that
# many bytes.  ld16 and st16: so many of them, at least, have 16 bytes; an array that lost its own
# shows.  cg: so many loads, at least, go past the first-level cache, as what other blocks wrote must.
# fma: how many fma.rn on floats the source asks for (default 0: contraction may fuse what must stay apart).
# approx: how many .approx instructions are allowed (default 0).  spill: bytes that ptxas may keep on the stack, stored and
# loaded (default 0).  For every kernel, always: no .local memory, no un-suffixed add, sub, mul or mad on floats (ptxas
# may fuse those).  The first line that matches counts; a kernel without a line fails, and so does a line without a kernel.
set -u
nvcc=${NVCC:-$(command -v nvcc)}
[ $# -ge 3 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
file=$1 expect=$2
shift 2
[ -n "$nvcc" ] && [ -x "$nvcc" ] || { echo "skipped: ptx_check $file: no nvcc"; exit 77; }
ptxas=$(dirname "$nvcc")/ptxas
[ -x "$ptxas" ] || ptxas=ptxas
filt=$(command -v c++filt || echo cat)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
PTX=${PTX:-$tmp/k.ptx}
status=0
for arch in "$@"; do
    "$nvcc" -std=c++17 ${NVCCFLAGS:-} -arch=compute_"$arch" -ptx -x cu "$file" -o "$PTX" || exit 1
    "$ptxas" -arch=sm_"$arch" -v "$PTX" -o "$tmp/k.cubin" 2> "$tmp/k.log" || { cat "$tmp/k.log"; exit 1; }
    # one line per kernel: mangled name, widest load, widest store, fma, loose, approx, .local, 16-byte loads and stores, .cg
    awk '
        function bytes(op,   n, w) {
            n = 1
            if (match(op, /\.v[248]/)) n = substr(op, RSTART + 2, 1)
            w = op
            sub(/.*\./, "", w)
            sub(/^[a-z]+/, "", w)
            return n * w / 8
        }
        /\.entry/ { name = $0; sub(/.*\.entry +/, "", name); sub(/[( ].*/, "", name); inside = 1; ld = st = fma = loose = approx = local = ld16 = st16 = cg = 0 }
        inside && /^[ \t]*\.local/ { local = 1 }
        inside {
            op = $0
            sub(/^[ \t]*(@!?%[a-z0-9]+[ \t]+)?/, "", op)
            sub(/[ \t;].*/, "", op)
            if (op ~ /^ldu?\./ && op !~ /\.(shared|local|param|const)/ && bytes(op) > ld) ld = bytes(op)
            if (op ~ /^st\./ && op !~ /\.(shared|local|param)/ && bytes(op) > st) st = bytes(op)
            if (op ~ /^ldu?\./ && op !~ /\.(shared|local|param|const)/ && bytes(op) >= 16) ld16++
            if (op ~ /^st\./ && op !~ /\.(shared|local|param)/ && bytes(op) >= 16) st16++
            if (op ~ /^ld\.global\.cg/) cg++
            if (op ~ /^fma\.r[nzmp].*\.f(32|64)$/) fma++
            if (op ~ /^(add|sub|mul|mad|fma)(\.ftz|\.sat)*\.f(32|64)$/) loose++
            if (op ~ /\.approx/) approx++
        }
        inside && /^}/ { print name, ld, st, fma, loose, approx, local, ld16, st16, cg; inside = 0 }' "$PTX" > "$tmp/ptx.txt"
    # mangled name, registers, stack, spilled bytes
    awk -v q="'" '
        /entry function/ { split($0, a, q); name = a[2] }
        /bytes stack frame/ { for (i = 2; i <= NF; i++) { if ($i == "bytes" && $(i + 1) == "stack") stack = $(i - 1); if ($i == "bytes" && $(i + 1) == "spill") spill += $(i - 1) } }
        /Used [0-9]+ registers/ { for (i = 2; i <= NF; i++) if ($i ~ /^registers/) print name, $(i - 1), stack, spill + 0; spill = stack = 0 }' "$tmp/k.log" > "$tmp/ptxas.txt"
    cut -d' ' -f1 "$tmp/ptx.txt" | "$filt" | sed 's/^void //; s/(.*//; s/ /_/g' | paste -d' ' - "$tmp/ptx.txt" > "$tmp/all.txt"
    awk -v arch="$arch" -v quote="'" '
        function fail(text) { problems = problems "\n        FAIL: " text }
        FILENAME == ARGV[1] {
            sub(/#.*/, "")
            if (NF == 0) next
            lines++
            regex[lines] = $1
            for (i = 2; i <= NF; i++) { split($i, kv, "="); want[lines, kv[1]] = kv[2] }
            next
        }
        FILENAME == ARGV[2] { regs[$1] = $2; stack[$1] = $3; spill[$1] = $4; next }
        {
            problems = ""
            k = 0
            for (i = 1; i <= lines && !k; i++) if ($1 ~ regex[i]) k = i
            if (!k) fail("no line in the table matches this kernel")
            used[k] = 1
            ld = $3; st = $4; fma = $5; loose = $6; approx = $7; local = $8; ld16 = $9; st16 = $10; cg = $11
            if (k && ld < want[k, "ld"] + 0) fail("widest load " ld " bytes, wanted " want[k, "ld"])
            if (k && st < want[k, "st"] + 0) fail("widest store " st " bytes, wanted " want[k, "st"])
            if (k && ld16 < want[k, "ld16"] + 0) fail(ld16 " loads of 16 bytes, wanted " want[k, "ld16"])
            if (k && st16 < want[k, "st16"] + 0) fail(st16 " stores of 16 bytes, wanted " want[k, "st16"])
            if (k && cg < want[k, "cg"] + 0) fail(cg " loads past the first-level cache, wanted " want[k, "cg"])
            f = (k, "fma") in want ? want[k, "fma"] : 0
            if (k && f != "*") {
                n = split(f, range, "-")
                if (fma < range[1] + 0 || fma > range[n] + 0) fail(fma " fma.rn, wanted " f)
            }
            if (k && (k, "regs") in want && regs[$2] > want[k, "regs"] + 0) fail(regs[$2] " registers, allowed " want[k, "regs"])
            if (k && approx > want[k, "approx"] + 0) fail(approx " .approx instructions, allowed " want[k, "approx"] + 0)
            if (loose) fail(loose " un-suffixed float operations")
            if (spill[$2] > want[k, "spill"] + 0 || stack[$2] > want[k, "spill"] + 0 || local) fail("local memory: stack " stack[$2] ", spilled " spill[$2] ", .local " (local ? "yes" : "no"))
            if (!($2 in regs)) fail("ptxas said nothing about this kernel")
            printf "sm_%-4s %-34s regs %3d  stack %3d  spill %3d  load %2d (%2d)  store %2d (%2d)  fma %3d  loose %2d  approx %2d  %s%s\n", arch, substr($1, 1, 34), regs[$2], stack[$2], spill[$2], ld, ld16, st, st16, fma, loose, approx, problems == "" ? "ok" : "", problems
            problems == "" ? passed++ : failed++
        }
        END {
            for (i = 1; i <= lines; i++) if (!used[i]) { printf "sm_%-4s FAIL: no kernel matches %s%s%s\n", arch, quote, regex[i], quote; failed++ }
            printf "ptx_check sm_%s: %d passed, %d failed\n", arch, passed, failed
            exit failed != 0
        }' "$expect" "$tmp/ptxas.txt" "$tmp/all.txt" || status=1
done
exit $status
