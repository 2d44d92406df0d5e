#!/bin/sh
# compile.sh [--full] [CC CXX] - compiles amp.h in the ways that users will, runs the results, looks at the symbols.
# CC and CXX from the arguments, else from the environment, else cc and c++. --full: runs every program, in each standard, with the SIMD
# paths. $IMPL: an object of tests/impl.c, for programs whose point is not how amp is compiled.
# Each kind of check first has to refuse something wrong. That, C++, x87, Intel's syntax and 32 bits have their days without --full (tests/today.sh).
# Last line: N passed, N failed, N skipped
# shellcheck disable=SC2030,SC2031,SC2016 # a subshell of the self-test keeps its counts to itself; awk has dollars of its own
set -u
impl=${IMPL:-}
[ -z "$impl" ] || impl=$(realpath "$impl") || exit 2
cd "$(dirname "$0")/compile" || exit 2
. ../today.sh
full=
[ "${1:-}" = --full ] && { full=1; shift; }
[ "${1:-}" = -v ] && shift
CC=${1:-${CC:-cc}} CXX=${2:-${CXX:-c++}}
LIBS="-lm -pthread"
# For programs whose point is not the SIMD paths, which take four fifths of a compilation.
lean=${full:+-DFULL}
lean=${lean:--DAMP_NO_SIMD}
looked=${full:+-UAMP_NO_SIMD} # the same for what is only looked at: --full sees all of it
looked=${looked:--DAMP_NO_SIMD}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/amp-compile.XXXXXX") || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
static='' # an object with a private copy of amp.h, once there is one

WARN="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wsign-conversion -Wcast-qual -Wundef -Wdouble-promotion -Wswitch-enum -Wvla -Wpointer-arith -Werror"
WARN_C="-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wdeclaration-after-statement"

have() { command -v "$1" >/dev/null 2>&1; }
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "FAILED $1"; sed 's/^/    /' "$tmp/out" | head -n "${2:-12}"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }

# flags and object for a program that need not have amp's code in it
linked='' linked_object=''
[ -n "$full" ] || [ -z "$impl" ] || linked=-DOTHER_FILE_HAS_IT linked_object=$impl

# must NAME COMMAND...: the command succeeds, without a word. $tmp/out is only for these two and fail: never give it to a command.
must() {
    name=$1; shift
    if "$@" >"$tmp/out" 2>&1 && [ ! -s "$tmp/out" ]; then pass; return 0; fi
    fail "$name"
    return 1
}
# runs NAME COMPILER ARGUMENT...: it compiles without a word and the program succeeds
runs() {
    label=$1; shift
    # shellcheck disable=SC2086
    must "$label" "$@" -o "$tmp/a" $LIBS && must "$label, run" "$tmp/a"
}
# looks NAME COMPILER ARGUMENT...: the same with --full; else it is only looked at, which takes a quarter of the time
looks() {
    if [ -n "$full" ]; then runs "$@"; return; fi
    label=$1; shift
    must "$label" "$@" -fsyntax-only
}
# mustnot NAME TEXT COMMAND...: the command fails, and says TEXT
mustnot() {
    name=$1 text=$2; shift 2
    if "$@" >"$tmp/out" 2>&1; then echo "it should not have compiled" >"$tmp/out"; fail "$name"
    elif grep -q -- "$text" "$tmp/out"; then pass
    else fail "$name: it fails, but says nothing of \"$text\""
    fi
}
# refuses CHECK...: a check that is given something wrong counts failures, and nothing as passed
refuses() {
    if (passed=0 failed=0 skipped=0; "$@" >"$tmp/self" 2>&1; [ "$failed" -gt 0 ] && [ "$passed" = 0 ]); then pass; return; fi
    { echo "it accepts its mutant; what it refused:"; cat "$tmp/self"; } >"$tmp/out"
    fail "self-test: $*" 30
}
# flag COMPILER LANGUAGE FLAG: does it know it?
flag() { echo 'int main(void){return 0;}' >"$tmp/flag.c"; "$1" -x "$2" -Werror "$3" -c "$tmp/flag.c" -o "$tmp/flag.o" >/dev/null 2>&1; }

# What a program may ask of the system's headers before it includes amp.h: nothing, the least, what hides most beside it, and all; --full: each.
asked="-U_POSIX_C_SOURCE -D_POSIX_C_SOURCE=1 -D_POSIX_C_SOURCE=200112L -D_XOPEN_SOURCE=500 -D_GNU_SOURCE"
if [ -n "$full" ]; then
    asked="$asked -D_POSIX_SOURCE -D_XOPEN_SOURCE -D_DEFAULT_SOURCE -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64"
    for year in 2 199309L 199506L 200809L 202405L; do asked="$asked -D_POSIX_C_SOURCE=$year"; done
    for issue in 600 700; do asked="$asked -D_XOPEN_SOURCE=$issue"; done
fi
# hidden SOURCE COMPILER FLAG...: the implementation needs nothing that headers hide from such a program
hidden() {
    source=$1
    shift
    for macro in $asked; do
        # shellcheck disable=SC2086
        must "$* $macro" "$@" $macro $WARN -O1 -DAMP_NO_SIMD -fsyntax-only "$source"
    done
}

# Every header of the C, C++ and POSIX standards that the compiler has, before amp.h: nothing of them, the macros of <tgmath.h> and what only
# some modes have among them, is in its way.
c_headers="assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbit stdbool stdckdint
    stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype"
cxx_headers="algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale cmath codecvt
    compare complex concepts condition_variable csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
    deque exception execution expected filesystem format forward_list fstream functional future generator initializer_list iomanip ios iosfwd iostream
    istream iterator latch limits list locale map mdspan memory memory_resource mutex new numbers numeric optional ostream print queue random ranges
    ratio regex scoped_allocator semaphore set shared_mutex source_location span spanstream sstream stack stacktrace stdexcept stdfloat stop_token
    streambuf string string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
    valarray variant vector version"
posix_headers="aio arpa/inet cpio dirent dlfcn fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen monetary mqueue ndbm net/if netdb netinet/in
    netinet/tcp nl_types poll pthread pwd regex sched search semaphore spawn strings sys/ipc sys/mman sys/msg sys/param sys/resource sys/select sys/sem
    sys/shm sys/socket sys/stat sys/statvfs sys/sysmacros sys/time sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios trace
    ulimit unistd utime utmpx wordexp"
headers_of() { # c|c++: the lines that include them
    {
        # shellcheck disable=SC2086
        if [ "$1" = c ]; then printf '%s.h\n' $c_headers $posix_headers; else printf '%s\n' $cxx_headers; printf '%s.h\n' $posix_headers; fi
    } | sed 's|.*|#if __has_include(<&>)\n#  include <&>\n#endif|'
}
# after_headers c|c++ HEADER COMPILER FLAG...: the implementation; with --full the declarations alone, too
after_headers() {
    { headers_of "$1"; echo "#include \"$2\""; } >"$tmp/after.c"
    language=$1
    shift 2
    for what in ${full:+-UAMP_IMPLEMENTATION} -DAMP_IMPLEMENTATION; do
        # shellcheck disable=SC2086
        must "$* $what: every standard header before it" "$@" -x $language -Wall -Wextra -Werror -Wno-deprecated -Wno-cpp $lean $what -fsyntax-only "$tmp/after.c"
    done
}

# sizes NAME [FIRST-LINE]: a file whose function NAME gives the sizes of all public structs and enums
sizes() {
    printf '%s\n#include "%s"\n#include "%s"\n' "${2:-}" "$header" "${header%.h}_cuda.cuh"
    echo "extern const size_t *$1(size_t *n);"
    echo "const size_t *$1(size_t *n) { static const size_t all[] = {0"
    sed -n 's/^typedef \(struct\|enum\) \(amp_[a-z0-9_]*\) {.*/, sizeof(\2)/p' "$header" "${header%.h}_cuda.cuh"
    echo '}; *n = sizeof all / sizeof all[0]; return all; }'
}
# abi CC FLAG...: what one file sees of the structs is what another sees, also where the one includes amp.h inside a pack(1) and with -fshort-enums
abi() {
    if ! flag "$1" c -fshort-enums; then skip "$1 has no -fshort-enums"; return; fi
    sizes plain >"$tmp/plain.c"
    { sizes packed '#pragma pack(1)'; echo 'struct after { char c; int i; }; typedef char pack_holds_on[sizeof(struct after) == 1 + sizeof(int) ? 1 : -1];'; } >"$tmp/packed.c"
    cat >"$tmp/both.c" <<'C'
#include <stddef.h>
#include <string.h>
const size_t *plain(size_t *n), *packed(size_t *n);
int main(void) {
    size_t n, m;
    const size_t *a = plain(&n), *b = packed(&m);
    return n < 60 || n != m || memcmp(a, b, n * sizeof *a) != 0;
}
C
    must "$*: pack(1) and -fshort-enums" "$@" -fshort-enums -c "$tmp/packed.c" -o "$tmp/packed.o" &&
        must "$*: the sizes" "$@" -c "$tmp/plain.c" -o "$tmp/plain.o" && runs "$*: the same sizes" "$@" "$tmp/both.c" "$tmp/plain.o" "$tmp/packed.o"
}

c_family() {
    cc=$1 switches="-DAMP_NO_SIMD -DAMP_NO_THREADS -DAMP_NO_STDIO -DTEST_OWN_MALLOC"
    # shellcheck disable=SC2086
    {
        # every standard, strict; then what it computes
        for std in c99 ${full:+c11 c17} c2x ${full:+gnu99}; do # hostile.c is looked at as gnu99
            if ! flag "$cc" c -std=$std; then skip "$cc has no -std=$std"; continue; fi
            if [ $std = c99 ]; then runs "$cc -std=c99, strict warnings" "$cc" -std=c99 $WARN $WARN_C ${full:+-O1} $lean strict.c
            else looks "$cc -std=$std, strict warnings" "$cc" -std=$std $WARN $WARN_C $looked strict.c; fi
        done
        # -O0 with the SIMD paths is below, where symbols are looked at
        for o in ${full:+-O0 -O3 -Ofast}; do runs "$cc $o" "$cc" -std=c99 -Wall -Wextra -Werror $o $lean strict.c; done
        must "$cc: the header alone, without a prototype unused" "$cc" -std=c99 $WARN $WARN_C -c second.c -o "$tmp/second.o"
        # included twice, implemented twice, two files
        looks "$cc: included and implemented twice" "$cc" -std=c99 $WARN $WARN_C $lean twice.c ${full:+"$tmp/second.o"}
        cp "$header" "$tmp/mine.h" && printf '#define AMP_IMPLEMENTATION\n#include "mine.h"\n' >"$tmp/mine.c"
        must "$cc: AMP_SELF, a copy of a different name" "$cc" -std=c99 -Wall -Werror $looked '-DAMP_SELF="mine.h"' -fsyntax-only "$tmp/mine.c"
        must "$cc: AMP_STATIC" "$cc" -std=c99 $WARN $WARN_C $lean -c static_b.c -o "$tmp/static_b.o" && static=$tmp/static_b.o # its symbols are looked at below
        runs "$cc: AMP_STATIC in two files" "$cc" -std=c99 $WARN $WARN_C $lean static_a.c "$tmp/static_b.o"
        must "a member is called (x->f)(...), past a macro f(x) of the program" sh -c "! grep -nE '(->|[a-z]\\.)[a-z0-9_]+\\(' '$header' | grep -vE '_fn\\(|torch\\.autocast'"
        looks "$cc: hostile macros" "$cc" -std=gnu99 -Wall -Wextra -Werror hostile.c
        [ -z "$full" ] || must "$cc: hostile macros, declarations" "$cc" -std=gnu99 -Wall -Wextra -Werror -DDECLARATIONS -fsyntax-only hostile.c
        for std in gnu99 ${full:+gnu17 gnu2x}; do after_headers c "$header" "$cc" -std=$std; done
        # switches, one by one and all of them
        # (without --full where symbols are looked at, with warnings)
        for s in "" ${full:+-DAMP_NO_SIMD -DAMP_NO_THREADS -DAMP_NO_STDIO -DTEST_OWN_MALLOC}; do
            looks "$cc switches $s" "$cc" -std=c99 $WARN $WARN_C $s switches.c
        done
        # (without --full below, with the object whose symbols are looked at)
        [ -z "$full" ] && have nm || runs "$cc: all switches" "$cc" -std=c99 $WARN $WARN_C $switches switches.c
        # a profiler's ranges: with a header that records them, and with the toolkit's
        runs "$cc: AMP_CUDA_NVTX" "$cc" -std=c99 $WARN $WARN_C $lean -Invtx nvtx.c
        if [ -f "${CUDA_HOME:-/usr/local/cuda}/include/nvtx3/nvToolsExt.h" ]; then
            must "$cc: AMP_CUDA_NVTX, the toolkit's header" "$cc" -std=c99 $WARN $WARN_C $lean -isystem "${CUDA_HOME:-/usr/local/cuda}/include" -DAMP_CUDA_NVTX -fsyntax-only ../impl.c
        else skip "$cc: AMP_CUDA_NVTX with the toolkit's header: it is not there"; fi
        compat=
        flag "$cc" c -Wc++-compat && compat=-Wc++-compat
        looks "$cc: the program's own globals, -Wshadow $compat" "$cc" -std=c11 $WARN $WARN_C $compat globals.c
    }
    abi "$cc" -std=c99
    for std in c99 ${full:+gnu99 c11 c2x}; do hidden ../impl.c "$cc" -std=$std; done
    # C89: one error, and it says what is needed
    mustnot "$cc: C89" 'amp.h: C99' "$cc" -std=c89 -include ../../amp.h -c "$tmp/empty.c" -o "$tmp/a.o"
    "$cc" -std=c89 -include ../../amp.h -c "$tmp/empty.c" -o "$tmp/a.o" 2>"$tmp/c89"
    must "$cc: C89, one error" [ "$(grep -c 'error: ' "$tmp/c89")" = 1 ]
    mustnot "$cc: AMP_MALLOC without AMP_FREE" 'amp.h: ' "$cc" -std=c99 $looked -fsyntax-only half_a_pair.c
    # both headers of one release
    sed 's/^\(#define AMP_VERSION_MINOR\).*/\1 2/' ../../amp.h >"$tmp/amp.h"
    cp ../../amp_cuda.cuh "$tmp/both.h"
    mustnot "$cc: amp_cuda.cuh of a different release" 'take both files from one release' "$cc" -std=c99 -c -x c -include "$tmp/both.h" "$tmp/empty.c" -o "$tmp/a.o"
    # shellcheck disable=SC2086
    must "$cc: mixing.c without a mistake" "$cc" -std=c99 $WARN $lean -DLINE=0 -c mixing.c -o "$tmp/a.o"
    for n in 1 2 3 4 5; do mustnot "$cc: mixing types, line $n" 'error' "$cc" -std=c99 -Wall -Werror -DLINE=$n -c mixing.c -o "$tmp/a.o"; done
    # the inline conversions, with and without instructions for FP16
    # shellcheck disable=SC2086
    must "$cc: inline conversions" "$cc" -std=c99 -O2 $WARN $lean inline.c -o "$tmp/a" $LIBS && must "$cc: inline conversions, run" "$tmp/a"
    # quotients under fast-math, also by the C of machines without SSE2: the bits of the plain build
    # shellcheck disable=SC2086
    right=$("$cc" -std=c99 -O2 $WARN quotients.c -o "$tmp/a" -lm && "$tmp/a")
    must "$cc: quotients" [ -n "$right" ]
    for fast in '' -U__SSE2__; do
        # shellcheck disable=SC2086
        must "$cc: quotients, -ffast-math $fast" "$cc" -std=c99 -O3 -ffast-math $fast $WARN quotients.c -o "$tmp/a" -lm && must "$cc: quotients, -ffast-math $fast, the same bits" [ "$("$tmp/a")" = "$right" ]
    done
    # arithmetic in x87 registers beside SSE2: two control words
    if ! today 1 3; then :
    elif flag "$cc" c -mfpmath=387; then
        # shellcheck disable=SC2086
        runs "$cc: rounding modes" "$cc" -std=c99 -O1 $WARN rounding.c
        plain=$("$tmp/a" hash)
        # shellcheck disable=SC2086
        runs "$cc: rounding modes, -mfpmath=387" "$cc" -std=c99 -O1 -mfpmath=387 $WARN rounding.c
        must "$cc: -mfpmath=387, the same bits" [ "$("$tmp/a" hash)" = "$plain" ]
    else skip "$cc has no -mfpmath=387"; fi
    # the other syntax of assembly, for inline functions and for the whole
    if flag "$cc" c -masm=intel; then
        # shellcheck disable=SC2086
        must "$cc: quotients, -masm=intel" "$cc" -std=c99 -O2 -masm=intel $WARN quotients.c -o "$tmp/a" -lm && must "$cc: quotients, -masm=intel, the same bits" [ "$("$tmp/a")" = "$right" ]
        cat >"$tmp/id.c" <<'END'
#include <cpuid.h>
unsigned f(void) {
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    return a + b + c + d;
}
END
        if ! today 2 3; then :
        elif "$cc" -masm=intel -c "$tmp/id.c" -o "$tmp/a.o" >/dev/null 2>&1; then
            must "$cc: the whole, -masm=intel" "$cc" -O1 -masm=intel -c -x c -DAMP_IMPLEMENTATION ../../amp.h -o "$tmp/a.o"
        else skip "$cc's own cpuid.h does not take -masm=intel"; fi
    else skip "$cc has no -masm=intel"; fi
    if [ "${HIDE:-}" != avx2 ] && grep -qw f16c /proc/cpuinfo 2>/dev/null && flag "$cc" c -mf16c; then
        # shellcheck disable=SC2086
        must "$cc: inline conversions, -mf16c" "$cc" -std=c99 -O2 -mf16c $WARN $looked inline.c -o "$tmp/a" $LIBS && must "$cc: inline conversions, -mf16c, run" "$tmp/a"
    else skip "$cc or this machine has no F16C"; fi
    # a loop over the batch in OpenMP's threads
    if echo 'int main(void) { return 0; }' >"$tmp/omp.c" && "$cc" -fopenmp "$tmp/omp.c" -o "$tmp/a" >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        must "$cc: OpenMP" "$cc" -std=c99 -O1 -fopenmp $WARN $lean $linked openmp.c ${linked_object:+"$linked_object"} -o "$tmp/a" $LIBS && must "$cc: OpenMP, run" "$tmp/a"
    else skip "$cc has no OpenMP"; fi
    # 32 bits, where the libraries are there
    printf '#include <errno.h>\nint main(void) { return errno != 0; }\n' >"$tmp/m32.c"
    if ! today 3 3; then :
    elif "$cc" -m32 "$tmp/m32.c" -o "$tmp/m32" >/dev/null 2>&1 && "$tmp/m32"; then
        # shellcheck disable=SC2086
        runs "$cc -m32" "$cc" -m32 -msse2 -mfpmath=sse -std=c99 $WARN $WARN_C strict.c
        # shellcheck disable=SC2086
        runs "$cc -m32, x87 beside SSE2" "$cc" -m32 -msse2 -std=c99 -O1 $WARN rounding.c
    else skip "$cc makes no 32-bit programs here"; fi
    # shellcheck disable=SC2086
    {
        symbols "$cc" $WARN $WARN_C
        if [ -z "$full" ] && [ -e "$tmp/own.o" ]; then runs "$cc: all switches" "$cc" -std=c99 $WARN $WARN_C $switches -DOTHER_FILE_HAS_IT switches.c "$tmp/own.o"; fi
    }
}

# padding CLANG: no struct of the public part has hidden padding, and no warning that clang has is without a reason
padding() {
    must "$1 -Wpadded, the public part" "$1" -std=c99 -Wpadded -Werror -c second.c -o "$tmp/a.o"
    must "$1 -Weverything, the public part" "$1" -std=c99 -Weverything -Wno-unknown-warning-option -Wno-unsafe-buffer-usage -Wno-declaration-after-statement \
        -Wno-unused-macros -Wno-reserved-macro-identifier -Wno-pre-c2x-compat -Wno-unused-function -Wno-switch-default -Wno-float-equal -Werror -c second.c -o "$tmp/a.o"
    refuses must "a hole in a struct" "$1" -std=c99 -Wpadded -Werror -c "$tmp/padded.c" -o "$tmp/a.o"
}

# object CC FLAG... SOURCE: compiles it and lists its symbols in $tmp/nm; without an object there is nothing to look at: a failure
object() {
    rm -f "$tmp/impl.o" "$tmp/nm"
    if "$@" -c -o "$tmp/impl.o" >"$tmp/out" 2>&1 && nm "$tmp/impl.o" >"$tmp/nm" && [ -s "$tmp/nm" ]; then return 0; fi
    fail "$*"
    return 1
}
# none NAME AWK-PATTERN: no line of $tmp/nm has it; t is the letter of the symbol's type, n its name
none() { must "$1" awk '{ t = $(NF - 1); n = $NF } '"$2"' { print t, n }' "$tmp/nm"; }

speaks='^(exit|abort|_exit|quick_exit|printf|fprintf|vfprintf|puts|fputs|putchar|perror|stderr|stdout|__assert_fail|__printf_chk|__fprintf_chk|longjmp|raise|signal|getenv|setlocale|localeconv|strto[a-z]*|ato[a-z]*|rand|time)(@.*)?$'
files='^(fopen|fopen64|fdopen|fwrite|fread|fclose|rename|remove|open|fsync|fchmod|flock|opendir|readlink|stat|strerror|clock)(@.*)?$'

# names WHAT: of the implementation whose symbols are in $tmp/nm
names() {
    # nothing writable: B, D and C and their small and local forms. Tables of pointers in .data.rel.ro (d) count too: they are written once, at start
    none "$1: no writable globals" 't ~ /^[BbDdCcGgSs]$/'
    none "$1: exports amp_ only" 't ~ /^[TRVW]$/ && n !~ /^amp_/'
    none "$1: never prints, exits or aborts" "n ~ /$speaks/"
}
symbols() { # CC FLAG..., in a folder with second.c, static_b.c and ../impl.c
    cc=$1
    shift
    if ! have nm; then skip "no nm: symbols are not looked at"; return; fi
    if [ -z "$full" ] && [ -n "$impl" ]; then
        nm "$impl" >"$tmp/nm" && names "$impl"
    else
        for pic in '-O0 -fPIC' ${full:+'-O0 -fno-pic' '-O2 -fPIC'}; do
            # shellcheck disable=SC2086
            object "$cc" -std=c99 $pic ../impl.c && names "$cc $pic"
        done
    fi
    own() { rm -f "$tmp/own.o"; object "$cc" -std=c99 -O0 "$@" $lean -DAMP_MALLOC=amp_test_malloc -DAMP_FREE=amp_test_free -include stddef.h -include "$tmp/own.h" ../impl.c; }
    no_pthread() { none "$cc -DAMP_NO_THREADS needs no pthread" 'n ~ /pthread/'; }
    no_files() { none "$cc -DAMP_NO_STDIO opens no file" "n ~ /$files/"; }
    no_malloc() { none "$cc -DAMP_MALLOC uses no other" 't == "U" && n ~ /^(malloc|calloc|realloc|free)(@.*)?$/'; }
    if [ -n "$full" ]; then
        object "$cc" -std=c99 -O0 "$@" $lean -DAMP_NO_THREADS ../impl.c && no_pthread
        object "$cc" -std=c99 -O0 "$@" $lean -DAMP_NO_STDIO ../impl.c && no_files
        own "$@" && no_malloc
    else # one object without all three
        if own "$@" -DAMP_NO_THREADS -DAMP_NO_STDIO; then
            cp "$tmp/impl.o" "$tmp/own.o"
            no_pthread
            no_files
            no_malloc
        fi
    fi
    if [ -n "$static" ]; then
        nm "$static" >"$tmp/nm"
    else
        object "$cc" -std=c99 -O0 $lean static_b.c
    fi &&
        none "$cc -DAMP_STATIC exports nothing" 't ~ /^[TRDBVWC]$/ && n != "other_half"'
    # without optimisation even unused code must not need symbols of its own (inline functions are static)
    object "$cc" -std=c99 -O0 second.c && none "$cc: the header defines no function" 't == "T" && n != "second_file"'
}
echo 'void *amp_test_malloc(size_t n); void amp_test_free(void *p);' >"$tmp/own.h"
echo 'typedef int empty;' >"$tmp/empty.c"
printf '#include <stddef.h>\nstruct padded { char c; double d; };\n' >"$tmp/padded.h"
printf '#include "padded.h"\nint f(struct padded *p);\nint f(struct padded *p) { return p->c; }\n' >"$tmp/padded.c"

# a header with every fault that symbols looks for
mutant() { # FOLDER
    mkdir -p "$1/compile"
    cat >"$1/amp.h" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int leaked_in_header(void) { return 1; }
#ifdef AMP_IMPLEMENTATION
int amp_leaked_global = 1;
void leaked_function(void *p) {
    FILE *f = fopen("leaked", "w");
    fputs("printed", stderr);
    printf("%d %d", amp_leaked_global, f != NULL && pthread_self() == 0);
    free(p);
    exit(1);
}
#endif
C
    printf '#define AMP_IMPLEMENTATION\n#include "amp.h"\n' >"$1/impl.c"
    printf '#define AMP_IMPLEMENTATION\n#include "../amp.h"\nint other_half(void) { return 1; }\n' >"$1/compile/static_b.c"
    printf '#include "../amp.h"\nint second_file(void) { return 1; }\n' >"$1/compile/second.c"
}
symbols_of_mutant() {
    impl='' static=''
    cd "$tmp/mutant/compile" && symbols "$1"
    wanted=8
    [ -z "$full" ] || wanted=14
    [ "$failed" = $wanted ] || { passed=1; echo "$failed of $wanted checks of symbols refuse it"; }
}
says() { # CC STATEMENT
    printf '#include <stdio.h>\n#include <stdlib.h>\nvoid amp_f(void) { %s; }\n' "$2" >"$tmp/one.c"
    object "$1" -O2 "$tmp/one.c" && none "$2" "n ~ /$speaks/"
}

hidden_of_mutant() { # a header that forgot one: who asks for all of POSIX sees it, the others do not
    hidden "$tmp/forgets.c" "$1" -std=c99
    [ "$failed" -ge $((full ? 3 : 1)) ] && [ "$passed" -gt "$failed" ] && passed=0
}
abi_of_mutant() { # CC: headers whose enums are what the compiler makes of them, and whose structs are as a pack(1) has them; one fault at a time
    for fault in 's/__attribute__((__mode__(__SI__)))//' '/^#pragma pack()/d'; do
        mkdir -p "$tmp/abi"
        for h in amp.h amp_cuda.cuh; do sed "$fault" "../../$h" >"$tmp/abi/$h"; done
        header=$tmp/abi/amp.h
        abi "$1" -std=c99
    done
    [ "$failed" = 2 ] && passed=0
}
self_test() { # CC: symbols, and what all other checks are made of
    refuses abi_of_mutant "$1"
    printf 'typedef struct k { int (*round)(int, int); } k;\nstatic inline int f(const k *x) { return x->round(1, 2); }\n' >"$tmp/round.h"
    refuses after_headers c "$tmp/round.h" "$1" -std=gnu99
    printf '#include <stdio.h>\nint amp_number(FILE *f);\nint amp_number(FILE *f) { return fileno(f); }\n' >"$tmp/forgets.c"
    refuses hidden_of_mutant "$1"
    if ! have nm; then return; fi
    mutant "$tmp/mutant"
    refuses symbols_of_mutant "$1"
    for call in 'puts("x")' 'fputs("x", stderr)' 'fprintf(stdout, "%d", 1)' 'abort()' 'perror("x")'; do refuses says "$1" "$call"; done
    refuses object "$1" -std=c99 no_such_file.c
    refuses must "a failure" false
    refuses must "a word" echo warning
    refuses mustnot "a success" '' true
    refuses mustnot "a failure for another reason" 'amp.h: ' "$1" -c no_such_file.c
    printf 'extern int scale;\nint f(int scale);\nint f(int scale) { return scale; }\n' >"$tmp/shadows.c"
    # shellcheck disable=SC2086
    refuses must "a shadowed global" "$1" -std=c11 $WARN $WARN_C -c "$tmp/shadows.c" -o "$tmp/a.o"
    printf 'int f(int x) { int y = x * 2.5f; return y; }\n' >"$tmp/warns.c"
    # shellcheck disable=SC2086
    refuses must "a warning" "$1" -std=c99 $WARN $WARN_C -fsyntax-only "$tmp/warns.c"
}

# overloads CXX HEADER: each function of the header that ends with a desc takes a reference, too
overloads() {
    {
        echo "#include \"$2\""
        "$1" -E -P -x c++ -std=c++11 "$2" | tr '\n;' ' \n' |
            sed -n 's/^.*extern amp_status \(amp_[a-z0-9_]*\)(\(.*const amp_[a-z0-9_]*_desc\) \*[a-z_]*)$/amp_status (*to_\1)(\2 \&) = \1;/p'
    } >"$tmp/references.cpp"
    must "$1: an overload of each verb with a desc, at least 20" sh -c "[ \$(grep -c to_ '$tmp/references.cpp') -ge 20 ] && '$1' -std=c++11 -fsyntax-only '$tmp/references.cpp'"
}
cxx_family() {
    cxx=$1
    overloads "$cxx" "$(realpath ../../amp.h)"
    sed '/^AMPI_REF(amp_step,/d' ../../amp.h >"$tmp/amp.h"
    refuses overloads "$cxx" "$tmp/amp.h"
    # shellcheck disable=SC2086
    {
        # g++ defines _GNU_SOURCE by itself
        for std in ${full:+c++11 gnu++17 c++20}; do hidden ../impl.c "$cxx" -x c++ -std=$std -U_GNU_SOURCE; done
        for std in ${full:+c++11 c++14 c++17} c++20; do # as C++11 it is looked at, linked and run below
            if ! flag "$cxx" c++ -std=$std; then skip "$cxx has no -std=$std"; continue; fi
            if [ $std = c++17 ]; then runs "$cxx -std=$std: every overload" "$cxx" -std=$std $WARN $lean overloads.cpp
            else looks "$cxx -std=$std: every overload" "$cxx" -std=$std $WARN $looked overloads.cpp; fi
        done
        looks "$cxx: strict.c as C++" "$cxx" -x c++ -std=c++11 $WARN strict.c
        echo '#include "amp.h"' >"$tmp/header.cpp" # of a program that wants no C in its C++
        must "$cxx: amp.h, -Wold-style-cast" "$cxx" -std=c++17 -Wall -Wextra -Wold-style-cast -Wzero-as-null-pointer-constant -Werror -I../.. -fsyntax-only "$tmp/header.cpp"
        for e in gpt convnet debug release; do # nvcc compiles these for a GPU, and it is a C++ compiler
            must "$cxx: $e.c as C++" "$cxx" -x c++ -std=c++17 -Wall -Wextra -Werror -I../.. -DAMP_LINKED ../../examples/$e.c -fsyntax-only
        done
        [ -z "$full" ] || runs "$cxx: AMP_STATIC in two files" "$cxx" -x c++ -std=c++17 $WARN $lean static_a.c static_b.c
        # C++ program, implementation compiled as C, and the other way round
        if [ -n "$linked_object" ]; then runs "$CC and $cxx in one program" "$cxx" -std=c++11 $linked $WARN overloads.cpp "$linked_object"
        else
            must "$CC implementation" "$CC" -std=c99 $lean -c ../impl.c -o "$tmp/impl.o" &&
                runs "$CC and $cxx in one program" "$cxx" -std=c++11 -DOTHER_FILE_HAS_IT $WARN overloads.cpp "$tmp/impl.o"
        fi
        must "$cxx implementation" "$cxx" -x c++ -std=c++11 $lean -c ../impl.c -o "$tmp/impl.o" &&
            must "$CC program" sh -c "$CC -std=c99 -DONLY_USE -c second.c -o '$tmp/second.o' && echo 'int second_file(void); int main(void) { return second_file() <= 0; }' >'$tmp/m.c' && $CC -c '$tmp/m.c' -o '$tmp/m.o'" &&
            runs "$cxx implementation, $CC program" "$cxx" "$tmp/m.o" "$tmp/second.o" "$tmp/impl.o"
        useless=
        flag "$cxx" c++ -Wuseless-cast && useless=-Wuseless-cast
        [ -z "$full" ] || runs "$cxx: the program's own globals, -Wshadow $useless" "$cxx" -x c++ -std=c++17 $WARN $useless globals.c
        if [ -n "$full" ]; then
            runs "$cxx: hostile macros" "$cxx" -x c++ -std=gnu++11 -Wall -Wextra -Werror hostile.c
            must "$cxx: hostile macros, declarations" "$cxx" -x c++ -std=gnu++11 -Wall -Wextra -Werror -DDECLARATIONS -fsyntax-only hostile.c
        fi
        for std in gnu++11 ${full:+gnu++17 gnu++20}; do after_headers c++ "$header" "$cxx" -std=$std; done
        looks "$cxx: inside extern \"C\"" "$cxx" -std=c++11 $WARN $useless $looked extern_c.cpp
    }
    for n in 1 2 3 4 5; do mustnot "$cxx: mixing types, line $n" 'error' "$cxx" -x c++ -std=c++11 -Wall -Werror -DLINE=$n -c mixing.c -o "$tmp/a.o"; done
}

header=$(realpath ../../amp.h)
# The time of a compilation goes with the machine code that it makes, whose size is the same on every machine: gcc 12 took 9.8 s for 537 KB and
# 6.2 for 415 (bench/NOTES.md). So what costs every user more time is seen here, in no time at all.
is_short() { # OBJECT LIMIT
    text=$(size "$1" | awk 'NR == 2 { print $1 }')
    [ "${text:-0}" -gt 0 ] && [ "$text" -le "$2" ] && return 0
    echo "$1 has $text bytes of code and constants, at most $2 (tests/limits.txt)"
    return 1
}
compile_cost() {
    most=$(awk '$1 == "impl-text" { print $2 }' ../limits.txt)
    known=$("$CC" -dM -E - </dev/null 2>/dev/null | awk '$2 == "__x86_64__" { x = 1 } $2 == "__GNUC__" { g = 1 } $2 == "__clang__" { c = 1 } END { print x && g && !c }')
    if [ -z "$impl" ] || [ "${IMPL_FLAGS:-}" != -O2 ] || [ "$known" != 1 ] || ! have size; then
        skip 'how long the implementation takes to compile: looked at with gcc on x86-64, -O2, by make test'
        return
    fi
    must 'the implementation takes as long to compile as it did' is_short "$impl" "$most"
    if is_short "$impl" $((most / 2)) >"$tmp/out"; then fail 'half of that size is kept, too: nothing is measured'; else pass; fi
}

compile_cost
if have "$CC"; then
    if today 1 2; then self_test "$CC"; fi
    c_family "$CC"
else skip "no C compiler \"$CC\""; fi
if ! today 2 2; then : # nvcc and the host runtime compile all of it as C++ each day
elif have "$CXX"; then cxx_family "$CXX"; else skip "no C++ compiler \"$CXX\""; fi
# shellcheck disable=SC2086
if [ -z "$full" ] && have clang; then must "clang: the implementation, strict warnings" clang -std=c99 $WARN $WARN_C -fsyntax-only strict.c; fi
if have clang; then # as clang 17 and later, whose -ffast-math drops what a test of the bits of Inf finds
    finite="clang -w -U__clang_major__ -D__clang_major__=17 -ffast-math -std=c99 $looked -fsyntax-only ../impl.c"
    # shellcheck disable=SC2086
    mustnot "clang 17 -ffast-math" "add -fno-finite-math-only" $finite
    # shellcheck disable=SC2086
    must "clang 17 -ffast-math -fno-finite-math-only" $finite -fno-finite-math-only
fi
if have clang; then padding clang; else skip "no clang: -Wpadded and -Weverything are not looked at"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
