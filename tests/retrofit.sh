#!/bin/sh
# usage: retrofit.sh [--full [host|nvcc]] | --table    The programs that amp was put into, and the other CUDA examples, built and run:
#   retrofit_lstm/before.c and after.c, retrofit_conv/before.cpp and after.cpp: an LSTM in C and a convolutional network in C++, on the CPU;
#   retrofit_gpt/before.cu and after.cu: the same for a GPT with kernels of its own for all but the products;
#   retrofit/before.cu (FP32, cuBLAS) and after.cu, autocast.cu, set.cu, verbs.cu (the same with amp, four ways): few changed lines, the diff that its README shows, the same loss
#   curve for several seeds, no waiting for the device that before.cu does not do; cuda_graph.cu, own_optimizer.cu and tensor_core.cu (in
#   FP16 and BF16): what they promise; offload.cu, ranks_nccl.cu: what they claim. gpt.c, convnet.c: nvcc compiles them (tests/examples.sh runs them).
# They run on the CPU, by tests/hostcuda (g++ and the CUDA headers), and on a GPU if there is one and nvcc; nvcc also compiles each
# without a warning. `make test` runs one of the seven retrofits, the LSTM, and over fewer epochs retrofit/after.cu, which shares its
# days with the examples (tests/today.sh); it compiles the others. All diffs are looked at. --full: all seven, more seeds, a loss scale that starts far too high, stream work and threads in random order.
# --table: the tables of docs/programs.md: lines, losses, processor seconds of whole runs (those in CUDA on the host runtime); what rounding does.
# Uses $BUILD $CXX $CUDA_HOME $NVCC $NVCC_ARCH. Last line: N passed, N failed, N skipped.
set -u
full=
[ "${1:-}" != --full ] || full=1
table=
[ "${1:-}" != --table ] || table=1
half=${2:-both} # host: what needs no nvcc; nvcc: the rest
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
. "$top/tests/today.sh"
build=${BUILD:-$top/build}
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 2
mk() { ${MAKE:-make} -s -C "$top" BUILD="${build#"$top"/}" "$@"; } # with relative names: make takes none with spaces
CXX=${CXX:-g++}
NVCC=${NVCC-$(command -v nvcc)}
CUDA_HOME=${CUDA_HOME-/usr/local/cuda} # empty, as make says it: no CUDA
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }
quiet() { # NAME COMMAND...: succeeds without a word
    name=$1
    shift
    if "$@" >"$work/log" 2>&1 && [ ! -s "$work/log" ]; then ok; else bad "$name"; head -n 12 "$work/log"; return 1; fi
}
ex=$top/examples
max_lines=47 # added and modified lines, one statement a line
arguments() { case $1 in tensor_core*) echo "--check --seed $$" ;; esac; } # of an example, for what it promises
claimants="offload" # programs with --check
if [ -r "$CUDA_HOME/include/nccl.h" ]; then
    claimants="$claimants ranks_nccl"
else
    skip "ranks_nccl.cu: no nccl.h"
fi
seeds="1 2 3"
if [ -n "$full" ]; then seeds="1 2 3 4 5 6 7 8"
else
    HCU_SMS=4 # smaller grids: less time
    export HCU_SMS
fi

# The implementation that `make test` has built.
impl=${HCU_IMPL:-$build/tests/impl.o}
case $impl in /*) ;; *) impl=$top/$impl ;; esac

# user_text SOURCE: a copy without the two implementations, for which the object files of the tests stand in
user_text() {
    mkdir -p "$work/user"
    sed "s|^ *# *define AMP_\(CUDA_\)*IMPLEMENTATION.*||; s|\"\.\./digits_data.h\"|\"$ex/digits_data.h\"|" "$1" >"$work/user/$(basename "$1")"
    echo "$work/user/$(basename "$1")"
}

high_scale() { # SOURCE: with a first loss scale of 2^40
    sed 's/\([a-zA-Z]*\)(amp_scaler_create(&scaler, ctx, [a-zA-Z]*));/amp_scaler_desc sd = AMP_ZERO; sd.scale = 1099511627776.0f; \1(amp_scaler_create(\&scaler, ctx, \&sd));/' "$1"
}

alike() { # FILE FILE: the same words, numbers to 0.2 %, whatever the scale
    paste -d '\n' "$1" "$2" | sed 's/scale [0-9]*$/scale/' | awk '
        NR % 2 { n = split($0, a); next }
        NF != n { exit bad = 1 }
        { for (i = 1; i <= n; i++) if ($i != a[i] && (a[i] == 0 || $i / a[i] < 0.998 || $i / a[i] > 1.002)) exit bad = 1 }
        END { exit bad || NR < 20 }'
}

# ---- the diff ----
check_diff() { # FOLDER LINES [AFTER PAGE [SED]]: at most so many, those that the page shows; after a sed of before that the page tells, too
    after=$ex/$1/${3:-after.cu} page=$1/${4:-README.md} before=$work/before.text
    sed "${5:-}" "$ex/$1/before.${after##*.}" >"$before"
    diff "$before" "$after" >"$work/diff"
    lines=$(grep -c '^>' "$work/diff")
    echo "$1${3:+/$3}: $lines lines added or modified, $(grep -c '^<' "$work/diff") removed or modified, of $(wc -l <"$before")"
    if [ "$lines" -le "$2" ]; then ok
    else bad "$1${3:+/$3}: $lines changed lines, at most $2"; fi
    diff -U0 "$before" "$after" | grep -v '^\(---\|+++\|@@\)' >"$work/wanted"
    awk '/^```diff/ { on = 1; next } /^```/ { on = 0 } on && !/^@@/' "$ex/$page" >"$work/shown"
    if cmp -s "$work/wanted" "$work/shown"; then ok
    else bad "$page shows another diff:"; diff "$work/shown" "$work/wanted" | head -n 12; fi
    if [ -z "${5:-}" ] || grep -q -F -e "sed -i '$5'" "$ex/$page"; then ok
    else bad "$page does not tell sed -i '$5'"; fi
}
if [ -z "$table" ]; then
    check_diff retrofit $max_lines
    check_diff retrofit 16 autocast.cu autocast.md
    check_diff retrofit 47 set.cu set.md
    check_diff retrofit 54 verbs.cu verbs.md
    check_diff retrofit_gpt 69
    check_diff retrofit_lstm 47 after.c README.md 's/double/float/g'
    check_diff retrofit_conv 64 after.cpp README.md
fi

# ---- an LSTM in C and a convolutional network in C++: the same losses on the CPU, none of the steps skipped ----
# Bounds in percent, of each printed loss: measured are 0.01 and, over eight seeds, 2.0, which is what rounding does to a run (docs/programs.md).
same_losses() { # NAME PERCENT: $work/NAME_before and NAME_after have printed them
    paste -d' ' "$work/$1_before" "$work/$1_after" | awk -v name="$1" -v percent="$2" '
        function number(s) { return s ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ }
        $3 == "loss" && NF == 8 && number($4) && number($8) { d = $8 / $4 - 1; d = d < 0 ? -d : d; if (!(d <= most)) most = d; n++; last = $4; if (n == 1) first = $4 }
        $0 ~ /(^| )0 skipped, scale [0-9]+$/ { none = 1 }
        END {
            printf "%s: %d losses, after/before differs by at most %.2f %%; loss %.3f -> %.3f\n", name, n, 100 * most, first, last
            exit !(n >= 2 && most <= percent / 100 && last < 0.9 * first && none)
        }'
}
# plain NAME COMPILER STANDARD SUFFIX DEFINE: builds before and after, the latter with the implementation of the tests and a first loss scale
# of 2^40, from which it finds its way down
plain() {
    for p in before after; do
        high_scale "$ex/retrofit_$1/$p.$4" | sed "s|^#define AMP_IMPLEMENTATION.*||; s|\"\.\./digits_data.h\"|\"$ex/digits_data.h\"|" >"$work/$1_$p.$4"
        object=
        [ $p = before ] || object=$impl
        quiet "retrofit_$1/$p.$4: $2" "$2" "$3" -O2 -Wall -Wextra -Werror "$5" -I"$top" "$work/$1_$p.$4" ${object:+"$object"} -lm -pthread -o "$work/$1_$p.run" || return 1
    done
}
tiny() { # NAME PERCENT COMPILER STANDARD SUFFIX DEFINE ARGUMENT...
    tiny=$1 percent=$2 compiler=$3 standard=$4 suffix=$5 define=$6
    shift 6
    if ! command -v "$compiler" >/dev/null 2>&1; then skip "retrofit_$tiny: no $compiler"; return; fi
    plain "$tiny" "$compiler" "$standard" "$suffix" "$define" || return
    grep -q 'sd.scale' "$work/${tiny}_after.$suffix" || bad "retrofit_$tiny: where is its scaler made?"
    for p in before after; do "$work/${tiny}_$p.run" "$@" >"$work/${tiny}_$p" 2>"$work/err" || bad "retrofit_$tiny/$p: $(cat "$work/err")"; done
    if same_losses "$tiny" "$percent"; then ok
    else bad "retrofit_$tiny: the losses are not equal, or steps are skipped"; cat "$work/${tiny}_before" "$work/${tiny}_after"; fi
}
gzip -dc "$ex/shakespeare.txt.gz" 2>/dev/null | head -c 50000 >"$work/text"
if [ "$half" != nvcc ] && [ -z "$table" ]; then
    mk "${impl#"$top"/}"
    if [ -r "$impl" ]; then
        tiny lstm 0.1 "${CC:-cc}" -std=c99 c "-DSTEPS=$([ -n "$full" ] && echo 500 || echo 100)" "$work/text" 1
        if [ -n "$full" ]; then tiny conv 3 "$CXX" -std=c++14 cpp -DEPOCHS=6 1
        elif command -v "$CXX" >/dev/null 2>&1; then
            quiet "retrofit_conv/after.cpp: $CXX" "$CXX" -std=c++14 -Wall -Wextra -Werror -I"$top" -iquote "$ex" -fsyntax-only "$(user_text "$ex/retrofit_conv/after.cpp")"
        fi
    else
        bad "retrofit_lstm, retrofit_conv: the implementation does not build"
    fi
fi

# ---- curves DEVICE: the loss curves in $work/before.SEED and after.SEED agree within noise ----
# FP16 rounds each operand of a product by at most 2^-11 of it; what becomes of that in training is measured: 0.9 % of an epoch's loss at
# most, over 8 seeds; 0.2 % root mean square. The bounds are 3 % per seed and epoch, and for the root mean square over all of them a
# quarter of the noise, which is the spread of the FP32 program between seeds (about 5 %). Accuracy: 2 of the 360 test images, per seed.
curves() {
    for s in $seeds; do paste -d' ' "$work/before.$s" "$work/after.$s" | sed "s/^/$s /"; done | awk -v device="$1" '
        # by its text: not every awk knows that a comparison with NaN is false
        function number(s) { return s ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ }
        $2 == "epoch" && NF == 9 && number($5) && number($9) { a = $5; b = $9; d = b / a - 1; d = d < 0 ? -d : d
            if (!(d <= most)) most = d
            n++; q += d * d; e[$3]++; sum[$3] += a; sq[$3] += a * a }
        $2 == "test" && NF == 9 && number($4) && number($8) { d = $8 - $4; d = d < 0 ? -d : d; if (!(d <= worst)) worst = d; mean_a += $4; mean_b += $8; tests++ }
        END {
            for (i in e) { epochs++; m = sum[i] / e[i]; v = (sq[i] / e[i] - m * m) * e[i] / (e[i] - 1); noise += v / (m * m) }
            if (n == 0 || n != epochs * tests || tests < 3) { print "curves of different length or with NaN, or none"; exit 1 }
            rms = sqrt(q / n); noise = sqrt(noise / epochs)
            printf "%s: %d seeds, %d epochs: loss after/before differs by at most %.2f %% (bound 3 %%), rms %.2f %% (seed to seed: %.2f %%); accuracy %.2f -> %.2f %%, at most %.2f apart\n",
                device, tests, epochs, 100 * most, 100 * rms, 100 * noise, mean_a / tests, mean_b / tests, worst
            exit !(most <= 0.03 && rms <= noise / 4 && worst <= 0.57)
        }'
}
# The other ways: the losses of the epochs that they ran are those of before.cu, within the same bounds.
same_way() { # NAME: $work/NAME is built
    for s in ${full:+3 4} 1 2; do
        (cd "$work" && "./$1" "$s") >"$work/$1.$s" 2>"$work/$1.$s.err" || { bad "$1, seed $s: $(head -n 3 "$work/$1.$s.err")"; return; }
        paste -d' ' "$work/before.$s" "$work/$1.$s"
    done | awk -v name="$1" '
        function number(s) { return s ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ }
        $1 == "epoch" && $5 == "epoch" && NF == 8 && number($4) && number($8) { d = $8 / $4 - 1; d = d < 0 ? -d : d; if (!(d <= most)) most = d; q += d * d; n++ }
        END {
            printf "hostcuda: %s, %d epochs: loss differs from before.cu by at most %.2f %%, rms %.2f %%\n", name, n, 100 * most, n ? 100 * sqrt(q / n) : 100
            exit !(n >= 4 && most <= 0.03 && q / n <= 0.0125 ^ 2)
        }' && ok || bad "$1: the losses are not those of before.cu"
}
train() { # DEVICE: builds are $work/before and $work/after
    for s in $seeds; do
        for p in before after; do
            (cd "$work" && "./$p" "$s") >"$work/$p.$s" 2>"$work/$p.$s.err" || { bad "$p, seed $s, on $1: $(head -n 3 "$work/$p.$s.err")"; return; }
        done
    done
    if curves "$1" >"$work/log"; then ok; else bad "$1: the loss curves are not equal within noise"; cat "$work"/before.1 "$work"/after.1; fi
    cat "$work/log"
}

# ---- the table of docs/programs.md ----
# seconds OUTPUT COMMAND...: $took is what it took of the processor (times is not in a pipe: a subshell has no children yet)
seconds() {
    times >"$work/before.times"
    output=$1
    shift
    "$@" >"$output" 2>/dev/null
    times >"$work/after.times"
    took=$(awk 'FNR == 2 { split($1, a, /[ms]/); t = 60 * a[1] + a[2] - t } END { printf "%.1f", t }' "$work/before.times" "$work/after.times")
}
last_loss() { awk '{ for (i = 1; i < NF; i++) if ($i == "loss") l = $(i + 1) } END { print l }' "$1"; }
row() { # TITLE FOLDER AFTER BEFORE-PROGRAM AFTER-PROGRAM ARGUMENT...; $how says where it ran
    title=$1 source=$ex/$2/before.${3##*.} after=$ex/$2/$3 first=$4 second=$5
    shift 5
    seconds "$work/o1" "$first" "$@"
    before=$took
    seconds "$work/o2" "$second" "$@"
    echo "| $title | $(diff "$source" "$after" | grep -c '^>') of $(wc -l <"$source") | $(last_loss "$work/o1"), $(last_loss "$work/o2") | $before, $took$how |"
}

# What the lines are for: types; errors; objects, made and destroyed; the loss scale; verbs and what calls them.
purposes() { # TITLE BEFORE AFTER
    diff "$2" "$3" | sed -n 's/^> //p' | awk -v title="$1" '
        /static void check\(amp_status/ { errors = 1 }
        /do \{ .* first loss scale/ { recipe = 1 }
        { kind = "verbs" }
        /#include|#define|amp_[a-z]*_(create|destroy|commit)|amp_params_add|^static amp_|amp_cuda_desc|\.stream|amp_param_desc|\.master = / { kind = "objects" }
        /real/ && !/amp_/ { kind = "types" }
        /scale|skipped|amp_step_(record|poll)|amp_scaler|amp_finite_report|double norm|bad\.|&bad|grads/ { kind = "scale" }
        /amp_step\(/ { kind = "verbs" }
        recipe { kind = "scale" }
        errors { kind = "errors" }
        { n[kind]++ }
        recipe && /while \(/ { recipe = 0 }
        errors && /^}/ { errors = 0 }
        END { printf "| %s | %d | %d | %d | %d | %d | %d |\n", title, NR, n["scale"], n["types"], n["objects"], n["errors"], n["verbs"] }'
}

# What rounding alone does to a run: the difference from `before` in each printed loss, over seeds.
# halved SOURCE: a copy whose initial weights are rounded to FP16, once, and that is FP32 otherwise
halved() {
    sed '1s/^/#include "amp.h"\n/
        s/^    CHECK(cudaMemcpy(\(param\|w\), init/    for (int i = 0; i < n; i++) init[i] = amp_f32_from_f16(amp_f16_from_f32(init[i]));\n&/
        s/^\( *\(x\|a.i.\)\) = \(.*uniform().*sqrt.*\);/\1 = amp_f32_from_f16(amp_f16_from_f32((float)(\3)));/
        s|"\.\./digits_data.h"|"'"$ex"'/digits_data.h"|' "$1"
}
# in_fp32 SOURCE: a copy without its scope
in_fp32() { sed 's/amp_autocast_\(begin\|end\)(ctx[^)]*)/AMP_OK/; s/^#define AMP_IMPLEMENTATION.*//; s|"\.\./digits_data.h"|"'"$ex"'/digits_data.h"|' "$1"; }
# losses NAME PROGRAM TEXT-OR-EMPTY SEED...: to $work/NAME.losses
losses() {
    to=$work/$1.losses program=$2 text=$3
    shift 3
    for s; do "$program" ${text:+"$text"} "$s" 2>/dev/null; done | awk '{ for (i = 1; i < NF; i++) if ($i == "loss") print $(i + 1) }' >"$to"
}
apart() { # NAME: how far from those of `before`: root mean square and the largest, in percent
    paste -d' ' "$work/before.losses" "$work/$1.losses" |
        awk '{ d = 100 * ($2 / $1 - 1); q += d * d; if (d < 0) d = -d; if (d > most) most = d; n++ } END { printf "%.2f %%, %.2f %%", sqrt(q / n), most }'
}
rounding() { # TITLE BEFORE HALVED IN-FP32 AFTER TEXT SEED...; no BEFORE: beside those that were there
    title=$1 b=$2 h=$3 f=$4 a=$5
    shift 5
    [ -z "$b" ] || losses before "$b" "$@"
    [ -z "$h" ] || losses halved "$h" "$@"
    [ -z "$f" ] || losses fp32 "$f" "$@"
    losses after "$a" "$@"
    echo "| $title | $(apart after) | ${f:+$(apart fp32)} | $(apart halved) |"
}

# ---- on the CPU, by the host runtime ----
# (-Wno-maybe-uninitialized: gcc 12 warns about its own AVX-512 header in C++)
if [ "$half" = nvcc ]; then :
elif command -v "$CXX" >/dev/null 2>&1 && [ -r "$CUDA_HOME/include/cuda_runtime_api.h" ]; then
    lib=$build/hostcuda/libhostcuda-plain.a
    [ -r "$lib" ] || mk "${lib#"$top"/}" || bad "the host runtime does not build"
    # The two implementations are those of `make test`, already built. --full: each program's own.
    user='' cuda_impl=$build/hostcuda/plain/cuda_impl.o
    if [ -z "$full" ]; then
        mk "${cuda_impl#"$top"/}" "${impl#"$top"/}" || bad "the implementations do not build"
        user=1
    fi
    compile() { # ARGUMENT...
        "$CXX" -std=c++17 -O1 -Wall -Wextra -Wno-maybe-uninitialized -Werror -ffp-contract=off -fno-math-errno \
            -isystem "$CUDA_HOME/include" -I"$top/tests/hostcuda" -I"$top" -iquote "$ex" -x c++ -include hostcuda.h "$@"
    }
    host() { # SOURCE NAME FLAG...
        source=$1 name=$2
        shift 2
        [ -z "$user" ] || source=$(user_text "$source")
        quiet "$name: $CXX, host runtime" compile "$@" "$source" -x none "$work/probe.o" ${user:+"$cuda_impl"} ${user:+"$impl"} "$lib" -lpthread -ldl -lm -o "$work/$name"
    }
    cat >"$work/probe.c" <<'C'
#include <stdio.h>
#include "hostcuda_ctl.h"
__attribute__((destructor)) static void probe(void) { /* after main: what the program did */
    const char text[] = "probe";
    if (hcu_leaks(1)) fprintf(stderr, "%s leaks\n", text);
    fprintf(stderr, "%s syncs %ld launches %ld products %ld\n", text, hcu_group_calls(HCU_SYNC), hcu_executed(HCU_LAUNCH), hcu_executed(HCU_MATMUL));
}
C
    "${CC:-cc}" -I"$top/tests/hostcuda" -c "$work/probe.c" -o "$work/probe.o" || bad "probe.c"
    figure() { sed -n "s/^probe.* $2 \([0-9]*\).*/\1/p" "$1"; }

    if [ -n "$table" ]; then
        mk "${impl#"$top"/}" || exit 2
        plain lstm "${CC:-cc}" -std=c99 c -DSTEPS=500 && plain conv "$CXX" -std=c++14 cpp -DEPOCHS=6 || exit 2
        for p in retrofit/before retrofit/after retrofit/autocast retrofit/set retrofit/verbs retrofit_gpt/before retrofit_gpt/after; do
            host "$ex/$p.cu" "$(echo "$p" | tr / _)" || exit 2
        done
        HCU_PROTECT=0
        HCU_SMS=4
        export HCU_PROTECT HCU_SMS
        echo "| program, way | lines | last loss | processor seconds |"
        echo "|---|---|---|---|"
        how=' (host runtime)'
        row "an MLP in CUDA with cuBLAS: autocast, BF16" retrofit autocast.cu "$work/retrofit_before" "$work/retrofit_autocast" 1
        row "the same: half storage" retrofit after.cu "$work/retrofit_before" "$work/retrofit_after" 1
        row "the same: autocast and a set, FP16" retrofit set.cu "$work/retrofit_before" "$work/retrofit_set" 1
        row "the same: single verbs" retrofit verbs.cu "$work/retrofit_before" "$work/retrofit_verbs" 1
        row "a GPT in CUDA with kernels of its own: half storage" retrofit_gpt after.cu "$work/retrofit_gpt_before" "$work/retrofit_gpt_after" "$work/text" 1
        how=
        row "an LSTM in C, double, a character at a time: autocast and a set" retrofit_lstm after.c "$work/lstm_before.run" "$work/lstm_after.run" "$work/text" 1
        row "a convolutional network in C++, channels first: autocast, single verbs" retrofit_conv after.cpp "$work/conv_before.run" "$work/conv_after.run" 1
        echo
        sed 's/double/float/g' "$ex/retrofit_lstm/before.c" >"$work/float.c"
        sed 's/amp_cpu_create(&ctx, NULL)/amp_cpu_create(\&ctx, \&(amp_cpu_desc){.threads = 1})/' "$work/lstm_after.c" >"$work/alone.c"
        "${CC:-cc}" -std=c99 -Ofast "$work/float.c" -lm -o "$work/float" || exit 2
        "${CC:-cc}" -std=c99 -O2 -I"$top" "$work/alone.c" "$impl" -lm -pthread -o "$work/alone" || exit 2
        all=
        for p in float lstm_after.run alone; do
            seconds "$work/o1" "$work/$p" "$work/text" 1
            all="$all $took"
        done
        # shellcheck disable=SC2086 # three words
        set -- $all
        echo "The LSTM: loops in float at -Ofast $1 s, after.c with the default of threads $2 s, with one $3 s"
        echo
        echo "| program, way | lines | loss scale | types | made, destroyed | errors | verbs |"
        echo "|---|---|---|---|---|---|---|"
        e=$ex/retrofit
        for p in autocast after set verbs; do purposes "MLP, $p.cu" "$e/before.cu" "$e/$p.cu"; done
        purposes "GPT" "${e}_gpt/before.cu" "${e}_gpt/after.cu"
        purposes "LSTM, after \`sed\`" "$work/float.c" "${e}_lstm/after.c"
        purposes "convolutional network" "${e}_conv/before.cpp" "${e}_conv/after.cpp"
        echo
        for p in lstm conv; do
            case $p in lstm) c="${CC:-cc} -std=c99" d=-DSTEPS=500 x=c ;; *) c="$CXX -std=c++14" d=-DEPOCHS=6 x=cpp ;; esac
            halved "$ex/retrofit_$p/before.$x" >"$work/halved.$x"
            in_fp32 "$ex/retrofit_$p/after.$x" >"$work/in_fp32.$x"
            $c -O2 "$d" -I"$top" "$work/halved.$x" -lm -o "$work/${p}_halved" || exit 2
            $c -O2 "$d" -I"$top" "$work/in_fp32.$x" "$impl" -lm -pthread -o "$work/${p}_fp32" || exit 2
        done
        for p in retrofit retrofit_gpt; do
            halved "$ex/$p/before.cu" >"$work/${p}_halved.cu"
            host "$work/${p}_halved.cu" "${p}_halved" || exit 2
        done
        in_fp32 "$ex/retrofit/set.cu" >"$work/fp32.cu"
        host "$work/fp32.cu" fp32 || exit 2
        echo "| program | with amp, FP16 | with amp, FP32 | FP32, first weights rounded to FP16 |"
        echo "|---|---|---|---|"
        w=$work
        rounding "an MLP, autocast and a set" "$w/retrofit_before" "$w/retrofit_halved" "$w/fp32" "$w/retrofit_set" '' 1 2
        rounding "the same, half storage" '' '' '' "$w/retrofit_after" '' 1 2
        rounding "a GPT, half storage" "$w/retrofit_gpt_before" "$w/retrofit_gpt_halved" '' "$w/retrofit_gpt_after" "$w/text" 1 2
        rounding "an LSTM" "$w/lstm_before.run" "$w/lstm_halved" "$w/lstm_fp32" "$w/lstm_after.run" "$w/text" 1 2
        rounding "a convolutional network" "$w/conv_before.run" "$w/conv_halved" "$w/conv_fp32" "$w/conv_after.run" '' 1 2 3 4
        echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1), $("${CC:-cc}" --version | head -n 1)"
        exit 0
    fi
    epochs=2 least=300 # of 8, and of the products that are cuBLASLt's
    [ -z "$full" ] || epochs=8 least=1000
    for p in before after; do
        sed "s|EPOCHS = 8|EPOCHS = $epochs|; s|\.\./digits_data.h|$ex/digits_data.h|" "$ex/retrofit/$p.cu" >"$work/$p.cu"
    done
    today 1 2 && host "$work/before.cu" before && host "$work/after.cu" after && {
        HCU_PROTECT=0 # fast; --full runs an epoch with device memory protected from the host
        export HCU_PROTECT
        train hostcuda
        for way in ${full:+autocast set verbs}; do
            sed "s|\.\./digits_data.h|$ex/digits_data.h|" "$ex/retrofit/$way.cu" >"$work/$way.cu"
            if host "$work/$way.cu" $way; then same_way $way; fi
        done
        if { [ -z "$full" ] || grep -q '^[0-9]* skipped, scale [0-9]*$' "$work/verbs.1"; } && grep -q '^[0-9]* skipped, scale [0-9]*$' "$work/after.1"; then ok
        else bad "retrofit: how many steps were skipped is not printed"; fi
        unset HCU_PROTECT
        # The loss scaler never stalls the stream: what amp waits for is setting up, with the first loss scale, and not the steps
        waits=$(figure "$work/after.1.err" syncs) waited=$(figure "$work/before.1.err" syncs)
        more=$((${waits:-999} - ${waited:-0})) # a program that says nothing of its waits has too many
        echo "hostcuda: after.cu waits for the device $more times more often than before.cu, $(figure "$work/after.1.err" products) products"
        if [ "$more" -le 30 ]; then ok; else bad "after.cu waits $more times more often than before.cu"; fi
        products=$(figure "$work/after.1.err" products)
        if [ "${products:-0}" -gt $least ]; then ok
        else bad "after.cu: not all products are those of cuBLASLt"; fi
        if grep -h 'leaks' "$work"/*.err; then bad "something leaks"; else ok; fi
        if [ -n "$full" ]; then
            # device memory protected from the host: slow, so one epoch
            sed 's/EPOCHS = 8/EPOCHS = 1/' "$ex/retrofit/after.cu" | sed "s|\.\./digits_data.h|$ex/digits_data.h|" >"$work/short.cu"
            host "$work/short.cu" short && quiet "after.cu: protected memory, random order" \
                sh -c "HCU_MODE=random HCU_ORDER=shuffle HCU_SEED=7 '$work/short' 1 2>/dev/null | awk '/^epoch 1 loss 1\\.[45]/ { n++ } END { exit n != 1 }'"
            # from 2^40 it finds a scale that fits before the first step: none is skipped, and the losses are those of 65536 but for
            # what FP16 rounds away. The scale itself may be larger: 65536 is not the largest that fits.
            high_scale "$ex/retrofit/after.cu" | sed "s|\.\./digits_data.h|$ex/digits_data.h|" >"$work/high.cu"
            host "$work/high.cu" high && {
                HCU_PROTECT=0 "$work/high" 1 >"$work/high.1" 2>/dev/null
                if grep -q 'sd.scale' "$work/high.cu" && alike "$work/high.1" "$work/after.1" && grep -q '^0 skipped' "$work/high.1"; then ok
                else bad "with a first loss scale of 2^40 after.cu prints something else"; diff "$work/after.1" "$work/high.1"; fi
            }
        fi
    }
    # A GPT, all FP32 before: the same loss over each tenth of 30 steps, to 0.5 %, and to 0.1 % root mean square. (Measured: 0.002 %.) Its
    # loss scale begins at 2^40 here, of which it finds its way down before the first step: none is skipped.
    gpt_curves() {
        for s in ${full:+3 4} 1 2; do
            for p in before after; do HCU_PROTECT=0 "$work/gpt_$p" "$work/text" "$s" >"$work/gpt_$p.$s" 2>"$work/gpt_$p.err" || return 1; done
            grep -q '^0 skipped, scale [0-9]*$' "$work/gpt_after.$s" || return 1
            paste -d' ' "$work/gpt_before.$s" "$work/gpt_after.$s"
        done | awk '
            function number(s) { return s ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ }
            $1 == "step" && NF == 8 && number($4) && number($8) { a = $4; b = $8; n++; if ($2 == 3) first += a; last = $2 == 30 ? last + a : last }
            $1 == "validation" && NF == 6 && number($3) && number($6) { a = $3; b = $6; tests++ }
            { d = b / a - 1; d = d < 0 ? -d : d; if (!(d <= most)) most = d; q += d * d }
            END {
                printf "hostcuda: a GPT, %d losses: after/before differs by at most %.3f %%, rms %.3f %%; loss %.3f -> %.3f\n", n + tests, 100 * most, 100 * sqrt(q / (n + tests + 1e-9)), first / (tests + 1e-9), last / (tests + 1e-9)
                exit !(tests >= 2 && n == 10 * tests && most <= 0.005 && q / n <= 0.001 ^ 2 && last < 0.9 * first)
            }' && ! grep leaks "$work/gpt_after.err"
    }
    if [ -n "$full" ]; then
        high_scale "$ex/retrofit_gpt/after.cu" >"$work/gpt_after.cu"
        grep -q 'sd.scale' "$work/gpt_after.cu" || bad "retrofit_gpt: where is its scaler made?"
        host "$ex/retrofit_gpt/before.cu" gpt_before -DSTEPS=30 && host "$work/gpt_after.cu" gpt_after -DSTEPS=30 &&
            if gpt_curves; then ok
            else bad "retrofit_gpt: the losses are not equal"; cat "$work"/gpt_*.[0-9]; fi
    else # the others are compiled
        for p in retrofit/autocast retrofit/set retrofit/verbs retrofit_gpt/after; do
            quiet "$p.cu: $CXX, host runtime" compile -fsyntax-only "$(user_text "$ex/$p.cu")"
        done
    fi
    # (own_optimizer runs below, too, as a reader runs it)
    examples="cuda_graph ${full:+own_optimizer} tensor_core ${full:+tensor_core-DBF16}"
    claimed=$claimants
    today 2 2 || examples='' claimed=''
    for e in $examples; do
        source=$ex/${e%-D*}.cu flag=
        [ "$e" = "${e%-D*}" ] || flag=-D${e##*-D}
        # shellcheck disable=SC2086 # none, or one word
        host "$source" $e $flag || continue
        open=
        [ -n "$full" ] || [ "$e" = tensor_core ] || open='HCU_PROTECT=0 ' # own_optimizer runs below with device memory protected
        cat >"$work/$e.sh" <<SH
$open"$work/$e" $(arguments $e) 2>"$work/$e.err"
SH
        for order in "lazy forward" ${full:+"random shuffle" "eager reverse"}; do
            # shellcheck disable=SC2086 # two words
            set -- $order
            if HCU_MODE=$1 HCU_ORDER=$2 HCU_SEED=$$ "$top/tests/check_output.sh" "$source" sh "$work/$e.sh"; then ok; else bad "$e ($order)"; cat "$work/$e.err"; fi
        done
        if grep leaks "$work/$e.err"; then bad "$e leaks"; else ok; fi
    done
    # programs that say what they claim: each line "ok"; where copies and other streams overlap, in two orders of stream work
    for e in $claimed; do
        host "$ex/$e.cu" "$e" || continue
        orders=random:shuffle
        [ "$e" != ranks_nccl ] || orders=lazy:shuffle
        [ -z "$full" ] || orders=lazy:shuffle,random:shuffle,eager:reverse
        for order in $(echo $orders | tr , ' '); do
            # shellcheck disable=SC2046 # two words
            set -- $(echo "$order" | tr : ' ')
            HCU_DEVICES=4 HCU_PROTECT=0 HCU_MODE=$1 HCU_ORDER=$2 HCU_SEED=$$ "$work/$e" --check >"$work/log" 2>"$work/$e.err"
            rc=$?
            n=$(grep -c '^ok ' "$work/log")
            if [ $rc = 0 ] && [ "$n" -ge 6 ]; then passed=$((passed + n)); else bad "$e --check ($order): exit status $rc, $n claims hold"; cat "$work/log" "$work/$e.err"; fi
        done
        if grep leaks "$work/$e.err"; then bad "$e leaks"; else ok; fi
    done
    # tensor_core: a barrier that is missing between its warps shows only here
    if [ -n "$full" ]; then
        case $("$CXX" -print-file-name=libtsan.so) in
        /*)
            tsan=$build/hostcuda/libhostcuda-tsan.a plain=$lib
            [ -r "$tsan" ] || ${MAKE:-make} -s -C "$top" BUILD="$build" "$tsan" || bad "the host runtime does not build with -fsanitize=thread"
            lib=$tsan user='' objects=''
            host "$ex/tensor_core.cu" tensor_core-tsan -fsanitize=thread -DAMP_BLOCK=64 && {
                if TSAN_OPTIONS=atexit_sleep_ms=0 "$work/tensor_core-tsan" --check --seed $$ >"$work/log" 2>&1; then ok
                else bad "tensor_core, thread sanitizer"; head -n 30 "$work/log"; fi
            }
            for e in $claimants; do # an event that nobody waits for, a buffer that is written too early
                host "$ex/$e.cu" "$e-tsan" -fsanitize=thread -DAMP_BLOCK=64 && {
                    if TSAN_OPTIONS=atexit_sleep_ms=0 HCU_PROTECT=0 HCU_DEVICES=4 "$work/$e-tsan" --check >"$work/log" 2>&1; then ok
                    else bad "$e, thread sanitizer"; head -n 30 "$work/log"; fi
                }
            done
            lib=$plain ;;
        *) skip "tensor_core, races: $CXX has no thread sanitizer" ;;
        esac
    fi
    # its table of times, of which nothing but that it comes is tested here
    [ -z "$examples" ] || "$work/tensor_core" --size 64 >"$work/log" 2>&1
    rc=$?
    if [ -z "$examples" ]; then :
    elif [ $rc = 0 ] && [ "$(grep -c '^step .*%' "$work/log")" = 5 ] && [ "$(grep -c '^passed$' "$work/log")" = 1 ]; then ok
    else bad "tensor_core --size 64"; cat "$work/log"; fi
    # as a reader runs it
    on_cpu() { mk run-cuda-on-cpu EXAMPLE="$1"; }
    on_cpu own_optimizer >"$work/log" 2>&1
    if grep -q '^weights and moments equal bit for bit$' "$work/log"; then ok
    else bad "run-cuda-on-cpu"; tail -n 5 "$work/log"; fi
    if on_cpu first_half >"$work/log" 2>&1 || ! grep -q 'EXAMPLE= one of .*tensor_core' "$work/log"; then bad "run-cuda-on-cpu EXAMPLE=first_half"; else ok; fi
else
    skip "retrofit on the CPU: needs hostcuda: g++ and the CUDA headers"
fi

# ---- own_optimizer without any CUDA: its first line ----
if [ "$half" = nvcc ]; then :
elif command -v "$CXX" >/dev/null 2>&1; then
    lean='-O0 -DAMP_NO_SIMD' # a fifth of the time
    [ -z "$full" ] || lean=-O1
    # shellcheck disable=SC2086 # none, or one word
    quiet "own_optimizer: $CXX alone" "$CXX" -std=c++11 $lean -Wall -Wextra -Wno-maybe-uninitialized -Werror -I"$top" -x c++ "$ex/own_optimizer.cu" -o "$work/own" -lm -pthread && {
        "$work/own" >"$work/log" 2>&1
        sed -n 's/^ \*   > cpu/cpu/p' "$ex/own_optimizer.cu" >"$work/promised"
        if cmp -s "$work/promised" "$work/log"; then ok; else bad "own_optimizer without CUDA prints:"; cat "$work/log"; fi
    }
else
    skip "own_optimizer without CUDA: no $CXX"
fi

# ---- nvcc: no warning; and a GPU ----
if [ "$half" = host ]; then :
elif [ -n "$NVCC" ] && "$NVCC" --version >/dev/null 2>&1; then
    # only the warnings are of interest; those of the implementation, and what becomes of its kernels, are the business of tests/ptx.sh, and
    # what the host's compiler says of these programs has been seen above: nvcc's own part is enough
    warn="-O0 -Xcicc -O0 -Xptxas -O0 -Werror all-warnings -Xcompiler -Wall,-Wextra"
    parse="-arch=compute_80 -ptx $warn"
    [ -z "$full" ] || parse="-gencode arch=compute_80,code=compute_80 -c $warn"
    # without --full the one with the most of amp, and those with kernels of their own
    own='' gpt=''
    if today 1 2; then gpt=gpt; fi
    if today 2 2; then own=own_optimizer; fi
    for f in ${full:+retrofit/before} retrofit/after ${full:+retrofit/autocast retrofit/set retrofit/verbs retrofit_gpt/after cuda_graph} $own ${full:+$claimants}; do
        # shellcheck disable=SC2086
        quiet "$f.cu: nvcc" "$NVCC" $parse -I"$top" -I"$ex" "$(user_text "$ex/$f.cu")" -o "$work/x.o"
    done
    for f in $gpt ${full:+convnet}; do
        # shellcheck disable=SC2086
        quiet "$f.c: nvcc" "$NVCC" -std=c++17 $parse -I"$top" -DAMP_LINKED -x cu "$ex/$f.c" -o "$work/x.o"
    done
    archs=${own:+75} # tensor_core: its own Tensor Core code for each kind of GPU that this nvcc knows; BF16 from 80 on
    [ -z "$full" ] || archs=$("$NVCC" --list-gpu-arch | sed -n 's/^compute_//p' | awk '$1 >= 75')
    for a in $archs; do
        # shellcheck disable=SC2086
        quiet "tensor_core.cu: nvcc, sm_$a" "$NVCC" -arch=sm_$a $warn -I"$top" -c "$(user_text "$ex/tensor_core.cu")" -o "$work/x.o"
        [ -n "$full" ] || continue
        if [ "$a" = 75 ]; then a=80; fi
        # shellcheck disable=SC2086
        quiet "tensor_core.cu in BF16: nvcc, sm_$a" "$NVCC" -DBF16 -arch=sm_$a $warn -I"$top" \
            -c "$(user_text "$ex/tensor_core.cu")" -o "$work/x.o"
    done
    if nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; then
        gpu() { quiet "$2 for the GPU" "$NVCC" -O2 -arch=native -I"$top" "$ex/$1.cu" -o "$work/$2" -lcublas -lcublasLt; }
        gpu retrofit/before before && gpu retrofit/after after && train gpu
        for e in $claimants; do
            nccl=
            [ "$e" != ranks_nccl ] || nccl=-lnccl
            # shellcheck disable=SC2086 # none, or one word
            quiet "$e for the GPU" "$NVCC" -O2 -arch=native -I"$top" "$ex/$e.cu" -o "$work/$e" -lcublasLt $nccl || continue
            "$work/$e" --check >"$work/claims" 2>"$work/err"
            case $? in
            0) passed=$((passed + $(grep -c '^ok ' "$work/claims"))) ;;
            77) skip "$e on the GPU: $(cat "$work/claims")" ;;
            *) bad "$e --check on the GPU: $(grep -v '^ok ' "$work/claims" "$work/err")" ;;
            esac
        done
        for e in cuda_graph own_optimizer tensor_core; do
            # shellcheck disable=SC2046 # none, or some words
            gpu $e $e && if "$top/tests/check_output.sh" "$ex/$e.cu" "$work/$e" $(arguments $e); then ok; else bad "$e on the GPU"; fi
        done
    else
        skip "CUDA examples on a GPU: no CUDA device"
    fi
else
    skip "CUDA examples with nvcc: no nvcc"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
