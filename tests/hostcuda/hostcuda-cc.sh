#!/bin/sh
# hostcuda-cc.sh - a compiler driver that takes the command lines people give nvcc, and makes programs that run on the CPU.
#
#   hostcuda-cc [nvcc's or g++'s options] FILE...       make NVCC=.../build/hostcuda-cc; it may be the Makefile's CC and CXX, too
#
# HOSTCUDA_CHECK=asan (plain, asan, tsan, msan, vg) says what the program will look for; all files of a program want the same.
# build/hostcuda-cc is this file with HCU_HOME (this folder), HCU_BUILD, CUDA_HOME, CXX and CLANGXX set by make.
# Taken: -I -isystem -iquote -D -U -include -O -g -G -std -x -o -c -l -L -arch -gencode -rdc -dc -dlink -lib -shared -Xcompiler -Xlinker
# -Xptxas -lineinfo -maxrregcount --use_fast_math --extended-lambda --expt-relaxed-constexpr -M... -E; what only a GPU needs is
# dropped, and other options go to the compiler. Refused by name: -ptx -cubin -fatbin -cudart=shared --default-stream per-thread.
set -u
here=${HCU_HOME:-$(cd "$(dirname "$0")" && pwd)}
build=${HCU_BUILD:-$here/../../build/hostcuda}
CXX=${CXX:-g++} CLANGXX=${CLANGXX:-clang++} CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
check=${HOSTCUDA_CHECK:-asan}
libs=${HCU_LIBS:-$build/user}
. "$here/variants.sh"
die() { echo "hostcuda-cc: $*" >&2; exit 2; }
variant "$check" || die "HOSTCUDA_CHECK=$check: one of plain asan tsan msan vg"

runtime=$libs/libhostcuda-$check.a # not in a shared library: it is the program's, once
mode=link out='' whole=--whole language='' objects='' verbose=''
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
: >"$tmp/sources" # one a line: LANGUAGE FILE
: >"$tmp/flags"   # of the compiler, one a line
: >"$tmp/link"    # of the linker and the objects, in their order
flag() { printf '%s\n' "$1" >>"$tmp/flags"; }
link() { printf '%s\n' "$1" >>"$tmp/link"; }
compiler() { # "a,b c": each word of -Xcompiler, which nvcc puts into a shell's line
    rest=$1,
    while [ -n "$rest" ]; do
        first=${rest%%[, ]*}
        [ -z "$first" ] || both "$first"
        rest=${rest#*[, ]}
    done
}
both() { # -Xcompiler: for each compilation, and for the link
    flag "$1"
    case $1 in -f* | -m* | -pthread | -g*) link "$1" ;; esac
}
version() {
    number=$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\).*/\1/p' "$CUDA_HOME/include/cuda_runtime_api.h")
    release=$((number / 1000)).$((number % 1000 / 10))
    echo "nvcc: NVIDIA (R) Cuda compiler driver, of hostcuda-cc: programs run on the CPU"
    echo "Cuda compilation tools, release $release, V$release.0"
    exit 0
}
source_of() { # FILE: its language, or nothing
    case $language in
    cu | cuda) echo cu ;;
    c) echo c ;;
    c++) echo c++ ;;
    *) case $1 in
        *.cu) echo cu ;;
        *.c) echo c ;;
        *.cpp | *.cc | *.cxx | *.C) echo c++ ;;
        esac ;;
    esac
}

# ---- options ----
while [ $# -gt 0 ]; do
    word=$1 value='' taken=1
    shift
    case $word in --?*=*) value=${word#*=} word=${word%%=*} taken='' ;; esac # --name=value
    next() { if [ -n "$taken" ]; then value=${1:?$word: an argument is missing}; fi; } # the argument of an option
    used() { [ -n "$taken" ]; }
    case $word in
    --version | -V) version ;;
    --help | -h) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -v | --verbose) verbose=1 ;;
    -dryrun | --dryrun) die "--dryrun: there are no steps of nvcc's here" ;;
    -ptx | --ptx | -cubin | --cubin | -fatbin | --fatbin) die "$word: no GPU code is made here" ;;
    -default-stream | --default-stream) next "${1:-}"; used && shift; [ "$value" = legacy ] || die "$word $value is not supported" ;;
    -o | --output-file) next "${1:-}"; used && shift; out=$value ;;
    -o*) out=${word#-o} ;;
    -c | --compile) mode=object ;;
    -dc | --device-c) mode=object whole='' ;;
    -E | --preprocess) mode=preprocess ;;
    -M | -MM) mode=depend; flag "$word" ;;
    -dlink | --device-link) mode=nothing ;;
    -lib | --lib) mode=archive ;;
    -shared | --shared) link -shared; flag -fPIC; runtime='' ;;
    -rdc=true | -rdc=1) whole='' ;;
    -rdc=false | -rdc=0) whole=--whole ;;
    -rdc | --relocatable-device-code) next "${1:-}"; used && shift; case $value in true | 1) whole='' ;; *) whole=--whole ;; esac ;;
    -x | --x) next "${1:-}"; used && shift; language=$value ;;
    -I | -isystem | -iquote | --include-path | --system-include)
        next "${1:-}"; used && shift
        case $word in -I | --include-path) flag "-I$value" ;; --system-include) flag -isystem; flag "$value" ;; *) flag "$word"; flag "$value" ;; esac ;;
    -I* | -D?* | -U?*) flag "$word" ;;
    -D | -U | --define-macro | --undefine-macro)
        next "${1:-}"; used && shift
        case $word in -U | --undefine-macro) flag "-U$value" ;; *) flag "-D$value" ;; esac ;;
    -include | --pre-include | -MF | -MT | -MQ) next "${1:-}"; used && shift; case $word in --pre-include) flag -include ;; *) flag "$word" ;; esac; flag "$value" ;;
    -MD | -MMD | -MP) flag "$word" ;;
    -std=* | -O*) flag "$word" ;;
    -std | --std | -O | --optimize) next "${1:-}"; used && shift; case $word in *std) flag "-std=$value" ;; *) flag "-O$value" ;; esac ;;
    -Xcompiler | --compiler-options) next "${1:-}"; used && shift; compiler "$value" ;;
    -Xcompiler=*) compiler "${word#*=}" ;;
    -Xlinker | --linker-options) next "${1:-}"; used && shift; link "-Wl,$value" ;;
    -Xlinker=*) link "-Wl,${word#*=}" ;;
    -l | --library | -L | --library-path) next "${1:-}"; used && shift; case $word in -l | --library) link "-l$value" ;; *) link "-L$value" ;; esac ;;
    -lineinfo | --generate-line-info | -dlto | -lto | --dlink-time-opt) ;; # before -l*
    -gencode) next "${1:-}"; shift ;;                                     # before -g*
    -lcudart* | -lcudadevrt | -lcublas* | -lcurand* | -lcuda | -lcudnn* | -lnvToolsExt | -lcufft* | -lcusparse* | -lcusolver*) ;; # ours, or refused at the call
    -l* | -L* | -Wl,*) link "$word" ;;
    -gencode=* | -g | --debug | -G | --device-debug | -g?*) ;;
    -arch=* | -code=* | -maxrregcount=* | -Xptxas=* | -Xnvlink=* | -Xcudafe=* | -ccbin=* | -cudart=static | -cudart=none | -t=* | -threads=* | -m64 | -diag-suppress=*) ;;
    -cudart=*) die "$word: only the static runtime" ;;
    -cudart | --cudart)
        next "${1:-}"
        used && shift
        case $value in
        static | none) ;;
        *) die "$word $value: only the static runtime" ;;
        esac
        ;;
    -Werror | --Werror)
        case ${1:-} in
        all-warnings | cross-execution-space-call | reorder | deprecated-declarations | default-stream-launch) shift ;;
        esac
        ;;
    -arch | --gpu-architecture | -code | --gpu-code | --generate-code | -maxrregcount | --maxrregcount | -Xptxas | --ptxas-options | -Xnvlink | \
        -Xcudafe | -ccbin | --compiler-bindir | -t | --threads | --diag-suppress | -diag-suppress | -Xfatbin | --options-file)
        next "${1:-}"; used && shift ;;
    -use_fast_math | --use_fast_math | -ftz=* | --ftz | -prec-div=* | --prec-div | -prec-sqrt=* | --prec-sqrt | -fmad=* | --fmad | --expt-* | -expt-* | \
        -extra-device-vectorization | --extra-device-vectorization | -allow-unsupported-compiler | --allow-unsupported-compiler | \
        --extended-lambda | -extended-lambda | -res-usage | --resource-usage | --keep | -keep | --source-in-ptx | -restrict | --restrict | \
        -noprof | --no-compress | -no-compress | -forward-unknown-to-host-compiler | --forward-unknown-to-host-compiler | -Wno-deprecated-gpu-targets) ;;
    -w | -W*) ;;
    -pthread | -fopenmp | -fPIC | -fpic | -fPIE | -pie | -no-pie | -static-libstdc++ | -rdynamic) both "$word"; link "$word" ;;
    @*) [ -r "${word#@}" ] || die "no file ${word#@}"; eval "set -- $(tr '\n' ' ' <"${word#@}") \"\$@\"" ;; # a response file, in a shell's quoting
    -) die "no source is read from the standard input" ;;
    -*) [ -n "$taken" ] || word=$word=$value; flag "$word" ;;
    *)
        kind=$(source_of "$word")
        if [ -n "$kind" ]; then echo "$kind $word" >>"$tmp/sources"; link "@$word"
        else link "$word"; objects=1; fi ;;
    esac
done
[ "$mode" != nothing ] || { # the device code is linked with the rest: an empty object stands for it
    echo "" | "$cxx" -x c++ -c - -o "${out:-a_dlink.o}"
    exit
}
[ -s "$tmp/sources" ] || [ -n "$objects" ] || die "no input files"

# ---- one compilation ----
# A list of flags in a file becomes the positional parameters of the caller: set -- then this.
compile() { # LANGUAGE SOURCE OUTPUT HOW
    kind=$1 source=$2 to=$3 how=$4
    set --
    while IFS= read -r f; do
        # shellcheck disable=SC2086
        case $kind$f in
        c-std=c++* | c-std=gnu++*) ;;
        cu-std=*03 | cu-std=*11 | cu-std=*14) set -- "$@" -std=gnu++17 ;; # hostcuda.h is C++17
        c*) set -- "$@" "$f" ;;
        esac
    done <"$tmp/flags"
    optimised=$variant_flags
    [ "$check" = plain ] || set -- "$@" -O1 # whatever was asked for
    case " $* " in *" -std="*) ;; *) [ "$kind" = c ] || set -- "$@" -std=gnu++17 ;; esac
    common="-gdwarf-4 -w -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -fno-optimize-sibling-calls"
    compiler=$cxx
    if [ "$kind" = c ]; then set -- -x c "$@"; else set -- -x c++ "$@"; fi
    text=$source
    if [ "$kind" = cu ]; then
        set -f
        # shellcheck disable=SC2046
        text=$("$build/translate" $whole $(folders) "$source" "$tmp") || exit 1
        set +f
        case $check in asan) ! grep -q '<thrust/' "$source" || set -- "$@" -fno-sanitize=null ;; esac # thrust binds references to null
        set -- -I"$here" -include hostcuda.h -iquote "$(dirname "$source")" "$@"
    fi
    [ -z "$verbose" ] || echo "hostcuda-cc: $compiler $optimised $common $* $how $source -o $to" >&2
    # shellcheck disable=SC2086
    "$compiler" $optimised $common "$@" -isystem "$CUDA_HOME/include" -isystem "$CUDA_HOME/include/cccl" $how "$text" -o "$to" 2>"$tmp/said"
    status=$?
    [ ! -s "$tmp/said" ] || explain "$tmp/said" >&2
    return $status
}
folders() { # those that translate looks for headers in
    awk 'want { print "-I" $0; want = 0; next } /^-I./ { print } /^-(isystem|iquote)$/ { want = 1 }' "$tmp/flags"
}
# The compiler's words, and one sentence for each name of CUDA's that the runtime is known not to have.
explain() {
    cat "$1"
    awk -v list="$here/features.txt" '
        BEGIN { while ((getline line < list) > 0) { split(line, f, " "); if (f[3] == "refused") refused[f[2]] = f[1]; else runs[f[2]] = 1 } }
        /error:/ {
            n = split($0, w, /[^A-Za-z0-9_]+/)
            for (i = 1; i <= n; i++) if (w[i] in refused && !(w[i] in runs) && !told[w[i]]++)
                print "hostcuda: " w[i] " is not supported by the host runtime (" refused[w[i]] "; docs/hostcuda.md has the table)"
        }
        /tex[123]D|surf[123]D|textureReference/ && !told["tex"]++ { print "hostcuda: textures and surfaces are not supported (docs/hostcuda.md)" }
        /this_cluster|cluster_group|this_multi_grid|cp_async_bulk|cuda::ptx/ && !told["far"]++ {
            print "hostcuda: thread block clusters, grids on several devices and bulk copies are not supported (docs/hostcuda.md)"
        }
        /Assembler messages|impossible constraint|inconsistent operand/ && !told["asm"]++ {
            print "hostcuda: PTX in an asm statement: put it under #ifdef __CUDA_ARCH__, beside a portable branch"
        }
        /cub\/|cudnn|cutlass|cufft|cusparse|cusolver/ && /No such file|undefined reference/ && !told["lib"]++ {
            print "hostcuda: CUB, cuDNN, CUTLASS, cuFFT, cuSPARSE and cuSOLVER are not supported (docs/hostcuda.md)"
        }
        match($0, /undefined reference to .nccl[A-Za-z]+/) {
            name = substr($0, RSTART + 24, RLENGTH - 24)
            if (!told[name]++) print "hostcuda: " name " is not supported; of NCCL there are ncclGetUniqueId, ncclCommInitRank (for each rank in a thread of the host, in place of ncclCommInitAll), ncclCommDestroy, ncclGroupStart, ncclGroupEnd, ncclAllReduce, ncclReduceScatter and ncclAllGather"
        }' "$1"
}

# ---- what is asked for ----
single() { # the one output of a mode that has one per source
    count=$(wc -l <"$tmp/sources")
    [ -z "$out" ] || [ "$count" -le 1 ] || die "-o with several files needs a link"
}
case $mode in
object)
    single
    while read -r kind source; do
        base=$(basename "$source")
        compile "$kind" "$source" "${out:-${base%.*}.o}" -c || exit 1
    done <"$tmp/sources"
    exit 0 ;;
preprocess | depend)
    single
    while read -r kind source; do
        compile "$kind" "$source" "${out:-/dev/stdout}" "$([ $mode = preprocess ] && echo -E)" || exit 1
    done <"$tmp/sources"
    exit 0 ;;
esac
[ -r "$libs/libhostcuda-$check.a" ] || die "no $libs/libhostcuda-$check.a: make hostcuda-cc CHECK=$check"
number=0
set --
while IFS= read -r f; do
    case $f in
    @*)
        number=$((number + 1))
        kind=$(grep -F " ${f#@}" "$tmp/sources" | head -n 1)
        compile "${kind%% *}" "${f#@}" "$tmp/$number.o" -c || exit 1
        set -- "$@" "$tmp/$number.o" ;;
    *) set -- "$@" "$f" ;;
    esac
done <"$tmp/link"
if [ "$mode" = archive ]; then
    rm -f "${out:-a.a}"
    ar rcs "${out:-a.a}" "$@"
    exit
fi
[ -z "$verbose" ] || echo "hostcuda-cc: $cxx $variant_flags $* $runtime -o ${out:-a.out}" >&2
# shellcheck disable=SC2086
"$cxx" $variant_flags -g "$@" ${runtime:+"$runtime"} -lpthread -ldl -lm -o "${out:-a.out}" 2>"$tmp/said"
status=$?
[ ! -s "$tmp/said" ] || explain "$tmp/said" >&2
[ $status = 0 ]
