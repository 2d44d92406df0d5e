#!/bin/sh
# usage: sass.sh ARCH...            The kernels' machine code, executed without a GPU: the CPU context's bits, and no more instructions
#                                   per element than tests/expected/sass.txt says (3 % are allowed). Normal and half subnormal data.
#        sass.sh --fast ARCH...     the same of the code that nvcc makes under --use_fast_math, which must change neither
#        sass.sh --thin ARCH...     of that code some kernels, which nvcc makes in a tenth of the time
#        sass.sh --reads            of sm_90: NOTES' table of bytes under way is what the machine code does
#        sass.sh --record ARCH...   writes tests/expected/sass.txt, the tables of bounds in docs/numbers.md and bench/NOTES.md, and docs/img/roofline.svg
# Needs build/sass/sass, and build/sass/sm_ARCH.cubin and .sass (in build/sass/fast and thin those of --fast and --thin), which make builds. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
table=${TABLE:-tests/expected/sass.txt}
out=$(mktemp) || exit 2
trap 'rm -f "$out" "$out.block" "$out.reads"' EXIT
trap 'exit 130' INT TERM

# block FILE NAME: FILE with what stdin says between <!-- NAME --> and <!-- /NAME -->
block() {
    cat >"$out.block"
    awk -v name="$2" -v text="$out.block" '
        $0 == "<!-- /" name " -->" { inside = 0 }
        !inside { print }
        $0 == "<!-- " name " -->" { inside = 1; while ((getline line <text) > 0) print line }' "$1"
}
if [ "${1:-}" = --record ]; then
    shift
    archs=$*
    {
        echo "# Instructions per element of each kernel: written by \`make sass-table\`, read by tests/sass.sh. Counted from machine code, not timed."
        printf '# architecture\trow of tests/sass.c\tdata\tall\talu\tfma\timad\tfp64\tcvt64\txu\tlsu\tbranch\tuniform\n'
    } >"$out"
    for arch; do "$build/sass/sass" --code "$build/sass/sm_$arch" --quick --record >>"$out" || { cat "$out"; exit 1; }; done
    awk -F '\t' -v archs=" $archs " '!/^#/ && index(archs, " " $1 " ") == 0' "$table" >>"$out" # those of other architectures stay
    cat "$out" >"$table"
    "$build/roofline" H100 --table "$table" --out docs/img/roofline.svg >"$out" || cat "$out"
    for page in docs/numbers.md bench/NOTES.md; do
        main=
        [ $page != docs/numbers.md ] || main=--main
        # shellcheck disable=SC2086
        "$build/sass/sass" --bounds "$table" $main | block $page counted >"$out" && cat "$out" >$page
    done
    case " $archs " in
    *" 90 "*)
        "$build/sass/sass" --code "$build/sass/sm_90" --reads >"$out.reads" || exit 1
        block bench/NOTES.md reads <"$out.reads" >"$out" && cat "$out" >bench/NOTES.md ;;
    esac
    exit
fi
if [ "${1:-}" = --reads ]; then
    "$build/sass/sass" --code "$build/sass/sm_90" --reads >"$out.reads"
    rc=$?
    sed -n '/^<!-- reads -->$/,/^<!-- \/reads -->$/p' bench/NOTES.md | sed '1d;$d' >"$out"
    diff "$out" "$out.reads" || rc=1
    [ $rc = 0 ] && echo "1 passed, 0 failed, 0 skipped" || echo "0 passed, 1 failed, 0 skipped"
    exit $rc
fi
passed=0 failed=0 code=$build/sass thin=
case ${1:-} in --fast | --thin)
    code=$build/sass/${1#--}
    # rows of the kernels that tests.mk names
    [ "$1" = --fast ] || thin='cast |all_finite|clip|AdamW f32|AdamW f16 split|AdamW bf16 Kahan|quantize f32'
    shift ;;
esac
for arch; do
    echo "---- sm_$arch"
    "$build/sass/sass" --code "$code/sm_$arch" ${thin:+--thin --row "$thin"} --quick --table "$table" >"$out" 2>&1
    rc=$?
    cat "$out"
    # shellcheck disable=SC2046 # two words are wanted
    set -- $(tail -n 1 "$out" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, [0-9]* skipped$/\1 \2/p')
    if [ $# = 2 ]; then passed=$((passed + $1)) failed=$((failed + $2)); fi
    if [ $# != 2 ] || { [ $rc != 0 ] && [ "$2" = 0 ]; }; then
        echo "FAIL sm_$arch: exit status $rc"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
