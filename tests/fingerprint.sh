#!/bin/sh
# usage: fingerprint.sh RECORD|CHECK    Does the library still compute what it computed?
#
# Builds tests/fingerprint.c, runs it on every context of this machine (CUDA: the real source, executed by
# tests/hostcuda), and writes tests/expected/fingerprint.txt, or compares with it and names the lines that differ. Both demand
# that lines which are no product's are the same on all contexts. Intended changes: tests/expected/fingerprint_changes.txt, per
# line a pattern (awk, of names), a tab and the reason; they are counted apart. A case counts once; a context that this
# machine lacks is one skipped. Last line: N passed, N failed, N skipped.
#
# A line of the record: the name, a tab, and the hash of all contexts; or hash@contexts for each group that agrees.
set -u
cd "$(dirname "$0")/.." || exit 2
MAKE=${MAKE:-make} BUILD=${BUILD:-build} CC=${CC:-cc} CXX=${CXX:-g++}
record=tests/expected/fingerprint.txt changes=tests/expected/fingerprint_changes.txt
cpu='cpu-scalar cpu-sse2 cpu-avx2 cpu-avx512 cpu-2threads'
out=$BUILD/fingerprint
mode=${1:-}
case $mode in
RECORD | CHECK) ;;
*)
    echo 'usage: fingerprint.sh RECORD|CHECK'
    exit 2
    ;;
esac
rm -rf "$out"
mkdir -p "$out" || exit 2
skipped=0

failed() {
    echo "FAILED: $1"
    echo "0 passed, 1 failed, $skipped skipped"
    exit 1
}

skip() {
    echo "skipped: $1"
    skipped=$((skipped + 1))
}

find_cuda() { # as in tests/hostcuda/hostcuda.mk
    nvcc=$(command -v nvcc) && nvcc=$(realpath "$nvcc") && nvcc=${nvcc%/bin/nvcc}
    for d in "${CUDA_HOME:-}" "${nvcc:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        [ ! -f "$d/include/cuda_runtime_api.h" ] || { CUDA_HOME=$d && return 0; }
    done
    return 1
}

build_cpu() {
    objects="$BUILD/tests/fingerprint.o $BUILD/tests/impl.o $BUILD/tests/cuda_stub.o"
    # shellcheck disable=SC2086
    $MAKE -s BUILD="$BUILD" $objects && $CC -O2 $objects -lm -pthread -o "$out/fingerprint"
}

build_cuda() {
    plain=$BUILD/hostcuda/plain
    objects="$plain/fingerprint.c.o $plain/cuda_impl.o ${HCU_IMPL:-$BUILD/tests/impl.o} $BUILD/hostcuda/libhostcuda-plain.a"
    # shellcheck disable=SC2086
    $MAKE -s BUILD="$BUILD" CUDA_HOME="$CUDA_HOME" $objects &&
        $CXX -O2 $objects -lpthread -ldl -lm -o "$out/fingerprint_cuda"
}

run_context() { # NAME PROGRAM
    start=$(date +%s)
    HCU_PROTECT=0 TMPDIR=$out "$2" --context "$1" >"$out/$1.part" 2>"$out/$1.log"
    rc=$?
    if [ $rc = 77 ]; then
        skip "$1: $(cat "$out/$1.log")"
        return
    fi
    [ $rc = 0 ] || failed "$1: exit status $rc: $(tail -n 1 "$out/$1.log")"
    twice=$(cut -f1 "$out/$1.part" | sort | uniq -d)
    [ -z "$twice" ] || failed "$1: more than one case is called $twice"
    mv "$out/$1.part" "$out/$1.txt"
    printf '%-14s %6d cases %4d s\n' "$1" "$(wc -l <"$out/$1.txt")" $(($(date +%s) - start))
}

build_cpu || failed 'build'
for c in $cpu; do run_context "$c" "$out/fingerprint"; done
if ! command -v "$CXX" >/dev/null; then
    skip "cuda: no $CXX"
elif ! find_cuda; then
    skip 'cuda: no CUDA headers (set CUDA_HOME)'
else
    build_cuda || failed 'build for CUDA'
    run_context cuda "$out/fingerprint_cuda"
fi

# name, context, hash of all that ran
for c in $cpu cuda; do
    [ ! -f "$out/$c.txt" ] || awk -F'\t' -v c="$c" '{ print $1 "\t" c "\t" $2 }' "$out/$c.txt"
done >"$out/all.tsv"

# one line per name, in the order of the program
awk -F'\t' '
    !($1 in line) { line[$1] = ++n; name[n] = $1 }
    !seen[$2]++ { contexts = contexts " " $2 }
    {
        key = $1 SUBSEP $3
        if (!(key in where)) groups[$1] = groups[$1] " " $3
        where[key] = where[key] (where[key] == "" ? "" : ",") $2
    }
    END {
        all = substr(contexts, 2)
        gsub(" ", ",", all)
        cpu = all
        sub(",cuda$", "", cpu)
        print "# contexts: " all
        for (i = 1; i <= n; i++) {
            m = split(substr(groups[name[i]], 2), hash, " ")
            text = name[i] "\t"
            for (k = 1; k <= m; k++) {
                w = where[name[i] SUBSEP hash[k]]
                text = text (k > 1 ? " " : "") hash[k] (w == all ? "" : "@" (w == cpu ? "cpu" : w))
            }
            print text
            if (m > 1 && name[i] !~ /^product/) print name[i] >"/dev/stderr"
        }
    }' "$out/all.tsv" >"$out/new.txt" 2>"$out/unequal"
if [ "$mode" = RECORD ]; then
    for c in $(sed -n '1s/^# contexts: //p' $record 2>/dev/null | tr , ' '); do
        [ -f "$out/$c.txt" ] || failed "the record has $c, which this machine lacks: it would be lost"
    done
    sed 's/^/FAILED: not the same on all contexts: /' "$out/unequal"
    unequal=$(wc -l <"$out/unequal")
    cp "$out/new.txt" $record
    echo "recorded: $(grep -vc '^#' $record) lines"
    echo "$(($(grep -vc '^#' $record) - unequal)) passed, $((unequal)) failed, $skipped skipped"
    [ "$unequal" = 0 ]
    exit
fi

[ -f $record ] || failed "there is no $record: RECORD first"
[ -f $changes ] || changes=/dev/null
awk -F'\t' -v skipped="$skipped" -v changes="$changes" '
    function verdict(what, name,    i) { # contexts that disagree are never intended
        if (name in unequal) what = what ", contexts disagree"
        for (i = 1; i <= patterns && !(name in unequal); i++)
            if (name ~ pattern[i]) {
                print "intended: " what ": " name " (" reason[i] ")"
                intended++
                return
            }
        print "FAILED: " what ": " name
        failed++
    }
    FILENAME == changes {
        if ($0 !~ /^#/ && NF) { pattern[++patterns] = $1; reason[patterns] = $2 }
        next
    }
    FILENAME ~ /unequal$/ {
        unequal[$1] = 1
        next
    }
    FILENAME ~ /all.tsv$/ {
        here[$2] = 1
        got[$1, $2] = $3
        if (!($1 in known)) { known[$1] = 1; order[++n] = $1 }
        next
    }
    /^# contexts: / { all = substr($0, 13); next }
    {
        recorded[$1] = 1
        m = split($2, group, " ")
        bad = ""
        present = 0
        for (k = 1; k <= m; k++) {
            w = all
            at = index(group[k], "@")
            hash = at ? substr(group[k], 1, at - 1) : group[k]
            if (at) w = substr(group[k], at + 1)
            if (w == "cpu") { w = all; sub(",cuda$", "", w) }
            c = split(w, context, ",")
            for (i = 1; i <= c; i++) {
                if (!(context[i] in here)) continue
                present = 1
                if (got[$1, context[i]] != hash) bad = bad " " context[i]
            }
        }
        if (!present) next
        if (!($1 in known)) verdict("gone", $1)
        else if (bad != "") verdict("differs on" bad, $1)
        else if ($1 in unequal) verdict("as recorded", $1)
        else passed++
    }
    END {
        for (i = 1; i <= n; i++) if (!(order[i] in recorded)) verdict("not recorded", order[i])
        if (intended) print intended " intended changes"
        print passed + 0 " passed, " failed + 0 " failed, " skipped " skipped"
        exit failed > 0
    }' $changes "$out/unequal" "$out/all.tsv" $record
