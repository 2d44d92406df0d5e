#!/bin/sh
# usage: examples.sh [--full]        Runs the built examples in $BUILD:
#   programs print what their comments promise, or, where no comment does, just succeed; digits holds its claims over 5 seeds on both networks; it reads IDX files; and
#   every wrong option or file gives exit status 1, one line on stderr that names it, and leaves nothing behind.
# Last line: N passed, N failed, N skipped.
set -u
build=${BUILD:-build}
build=$(cd "$build" && pwd) || exit 2
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
digits() { ${RUN_ENV:-} "$build/digits" "$@"; }

# ---- programs ----
for source in "$top"/examples/*.c; do
    [ "$source" != "$top/examples/digits.c" ] || continue
    name=$(basename "$source" .c)
    if ! grep -q '^ \*   > ' "$source"; then
        # shellcheck disable=SC2086
        if (cd "$work" && ${RUN_ENV:-} "$build/$name" >log 2>&1) && [ -s "$work/log" ]; then ok; else bad "$name: $(cat "$work/log")"; fi
        continue
    fi
    # shellcheck disable=SC2086
    if (cd "$work" && "$top/tests/check_output.sh" "$source" ${RUN_ENV:-} "$build/$name"); then ok; else bad "$name"; fi
done

# ---- digits: its claims ----
digits --check >"$work/claims" 2>&1
rc=$?
grep '^WRONG' "$work/claims"
n=$(grep -c '^ok ' "$work/claims")
passed=$((passed + n)) failed=$((failed + $(grep -c '^WRONG' "$work/claims")))
if [ $rc != 0 ] || [ "$n" -lt 10 ]; then bad "digits --check: exit status $rc, $n claims hold"; fi

# ---- digits: IDX files, good and bad ----
be32() { # $1 as 4 bytes, the highest first
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}
# images FILE MAGIC COUNT ROWS COLUMNS BYTES; labels FILE MAGIC COUNT BYTES: what the header says, and how many bytes follow it
images() { { be32 "$2"; be32 "$3"; be32 "$4"; be32 "$5"; awk -v n="$6" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 33 + i * 7 % 90 }'; } >"$1"; }
labels() { { be32 "$2"; be32 "$3"; awk -v n="$4" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 1 + i % 9 }'; } >"$1"; }
good() { # a folder with four right files: 64 training images and 16 test images of 5 x 4 pixels
    rm -rf "$work/idx"
    mkdir "$work/idx"
    images "$work/idx/train-images-idx3-ubyte" 2051 64 5 4 1280
    labels "$work/idx/train-labels-idx1-ubyte" 2049 64 64
    images "$work/idx/t10k-images-idx3-ubyte" 2051 16 5 4 320
    labels "$work/idx/t10k-labels-idx1-ubyte" 2049 16 16
}
good
if digits --data "$work/idx" --epochs 1 --out "$work/out" --csv "$work/steps.csv" >"$work/log" 2>&1 && [ -s "$work/steps.csv" ] &&
    [ "$(find "$work/out" -name '*.svg' | wc -l)" -ge 3 ]; then ok; else bad "digits --data: $(tail -n 2 "$work/log")"; fi
for picture in "$work"/out/*.svg; do # well-formed as far as a tool here can tell
    if { head -c 200 "$picture" | grep -q '<svg' && tail -n 1 "$picture" | grep -q '</svg>'; }; then ok; else bad "$picture is not an SVG file"; fi
    if command -v xmllint >/dev/null 2>&1; then if xmllint --noout "$picture"; then ok; else bad "$picture is not well-formed"; fi; fi
done
if digits --help >"$work/log" 2>"$work/err" && grep -q -- --seeds "$work/log" && [ ! -s "$work/err" ]; then ok; else bad "digits --help"; fi

# refused WORD ARGUMENT...: exit status 1, one line on stderr with WORD in it, no training, nothing new in the folder
refused() {
    word=$1
    shift
    rm -rf "$work/empty"
    mkdir "$work/empty"
    (cd "$work/empty" && digits "$@" >../log 2>../err)
    rc=$?
    if [ $rc != 1 ]; then bad "digits $*: exit status $rc, not 1"
    elif [ "$(wc -l <"$work/err")" != 1 ]; then bad "digits $*: not one line on stderr: $(cat "$work/err")"
    elif ! grep -q -e "$word" "$work/err"; then bad "digits $*: '$word' is not named: $(cat "$work/err")"
    elif [ -n "$(ls -A "$work/empty")" ]; then bad "digits $*: left $(ls -A "$work/empty")"
    elif grep -q '^.* step ' "$work/log"; then bad "digits $*: trained all the same"
    else ok; fi
}
refused nonsense --nonsense
refused nonsense nonsense
refused --net --net
refused --net --net wide
refused --mode --mode fp64
refused --mode --mode fp32,,bf16
refused --seeds --seeds 0
refused --seeds --seeds 1.5
refused --seed --seed -1
refused --epochs --epochs many
refused --batch --batch 0
refused --batch --batch 100000000
refused --batch --batch 2000
refused --hidden --hidden 64x
refused --lr --lr nan
refused --lr --lr -1
refused --lr --lr ''
refused --simd --simd mmx
refused --threads --threads 0
refused --device --device tpu
refused --csv --csv "$work/no/such/folder/x.csv"
refused --out --out "$work/no/such/folder"
refused --out --out "$work/log"
refused no-such --data "$work/no-such"
refused --check --check --mode fp32
for f in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    good; rm "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; : >"$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; head -c 6 "$work/idx/$f" >"$work/part"; mv "$work/part" "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; head -c 20 "$work/idx/$f" >"$work/part"; mv "$work/part" "$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; printf x >>"$work/idx/$f"
    refused "$f" --data "$work/idx"
    good; rm "$work/idx/$f"; mkdir "$work/idx/$f"
    refused "$f" --data "$work/idx"
done
good; images "$work/idx/train-images-idx3-ubyte" 2049 64 5 4 1280; refused train-images --data "$work/idx"     # a magic of labels
good; labels "$work/idx/t10k-labels-idx1-ubyte" 2051 16 16;        refused t10k-labels --data "$work/idx"      # a magic of images
good; labels "$work/idx/train-labels-idx1-ubyte" 2049 63 63;       refused 63 --data "$work/idx"               # counts that differ
good; labels "$work/idx/t10k-labels-idx1-ubyte" 2049 17 17;        refused 17 --data "$work/idx"
good; images "$work/idx/train-images-idx3-ubyte" 2051 0 5 4 0; labels "$work/idx/train-labels-idx1-ubyte" 2049 0 0
refused train- --data "$work/idx"                                                                              # zero images
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 0 5 4 0; labels "$work/idx/t10k-labels-idx1-ubyte" 2049 0 0
refused t10k- --data "$work/idx"
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 16 0 4 0;     refused t10k-images --data "$work/idx"      # zero pixels
good; images "$work/idx/t10k-images-idx3-ubyte" 2051 16 4 4 256;   refused t10k-images --data "$work/idx"      # another size than those for training
good; images "$work/idx/train-images-idx3-ubyte" 2051 4294967295 65535 65535 64; refused train-images --data "$work/idx"

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
