#!/bin/sh
# run.sh - executes a .cu file without a GPU, under each tool that finds something, and names the user's lines.
#
#   run.sh FILE.cu [ARGUMENT]...        `make hostcuda-run FILE=x.cu [ARGS='...'] [CHECK='asan tsan'] [FLAGS='-I.. -DX']`
#
# Reads: CHECK, the variants to run, in this order; FLAGS for the compiler (-I also for translate); HCU_LIBS, the folder with
# libhostcuda-VARIANT.a, and translate there or one above; CUDA_HOME CXX CLANGXX; HCU_LOGS, where full reports stay (HCU_LIBS/run).
# What the program prints comes once, from the first variant. Exit: 0 nothing found, 1 something, 2 it could not be run.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
libs=${HCU_LIBS:-$here/../../build/hostcuda}
CXX=${CXX:-g++} CLANGXX=${CLANGXX:-clang++} CUDA_HOME=${CUDA_HOME:-/usr/local/cuda} FLAGS=${FLAGS:-}
[ $# -ge 1 ] && [ -n "$1" ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
file=$1
shift
[ -r "$file" ] || { echo "hostcuda-run: no file $file"; exit 2; }
name=$(basename "$file")
name=${name%.*}
logs=${HCU_LOGS:-$libs/run}/$name
mkdir -p "$logs" || exit 2

# ---- translate ----
folders=
for word in $FLAGS; do
    case $word in -I?*) folders="$folders $word" ;; esac
done
translate=$libs/translate
[ -x "$translate" ] || translate=$libs/../translate
# shellcheck disable=SC2086 # words
source=$("$translate" $folders "$file" "$logs") || exit 2

# A variant that cannot follow the C++ library (iostream, string, map) is replaced: valgrind looks at the machine's code.
if grep -qE '^ *# *include *<(iostream|fstream|sstream|string|map|unordered_map|set|regex|filesystem)>' "$file"; then library=yes
else library=; fi
check=
for v in ${CHECK:-asan tsan msan}; do
    if [ "$v" = msan ] && { [ -n "$library" ] || [ ! -r "$libs/libhostcuda-msan.a" ]; }; then v=vg; fi
    if [ -r "$libs/libhostcuda-$v.a" ]; then check="$check $v"
    else echo "hostcuda-run: $v is not here, what only it finds is not looked for"; fi
done
finds() {
    case $1 in
    plain) echo "wrong use of CUDA, guard pages, leaks" ;;
    asan) echo "bounds, undefined behaviour, wrong use of CUDA, leaks" ;;
    tsan) echo "races" ;;
    msan | vg) echo "uninitialised reads" ;;
    esac
}

compile() { # VARIANT
    case $1 in
    plain) cc=$CXX flags=-O1 ;;
    asan) cc=$CXX flags="-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
    tsan) cc=$CXX flags="-O1 -fsanitize=thread" ;;
    msan) cc=$CLANGXX flags="-O1 -fsanitize=memory -fsanitize-memory-track-origins" ;;
    vg) cc=$CXX flags="-O1 -DHCU_VALGRIND" ;;
    *) echo "hostcuda-run: no variant $1"; return 1 ;;
    esac
    # shellcheck disable=SC2086
    "$cc" -std=gnu++17 -w -g $flags -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer $FLAGS -iquote "$(dirname "$file")" \
        -isystem "$CUDA_HOME/include" -isystem "$CUDA_HOME/include/cccl" -I"$here" -x c++ -include hostcuda.h "$source" -x none "$libs/libhostcuda-$1.a" \
        -lpthread -ldl -o "$logs/$1" >"$logs/$1.build" 2>&1 && return 0
    head -n 25 "$logs/$1.build"
    hint 'undefined reference to .\(cuda\|cublas\|cudnn\|curand\|nccl\)' "the host runtime has no such function: docs/hostcuda.md lists what there is"
    hint 'Assembler messages\|impossible constraint\|inconsistent operand' "PTX in an asm statement: put it under #ifdef __CUDA_ARCH__, beside a portable branch"
    hint 'in its own mask\|textureReference\|tex1D\|tex2D\|surf2D' "textures are not modelled"
    return 1
}
hint() { # PATTERN SENTENCE: if a message of the compiler has it
    if grep -q "$1" "$logs/build.last" 2>/dev/null || grep -q "$1" "$logs/$v.build"; then
        echo "hostcuda-run: $2"
    fi
}

execute() { # VARIANT ARGUMENT...
    v=$1
    shift
    export HCU_LINES=1 HCU_LEAKS=1
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=0}" TSAN_OPTIONS="${TSAN_OPTIONS:-atexit_sleep_ms=0:report_signal_unsafe=0}"
    if [ "$v" = vg ]; then
        valgrind -q --error-exitcode=9 "$logs/$v" "$@" >"$logs/$v.out" 2>"$logs/$v.err"
    else
        "$logs/$v" "$@" >"$logs/$v.out" 2>"$logs/$v.err"
    fi
}

# What the reports say, each with the first place in a file that is neither the system's nor the runtime's.
summary() { # VARIANT STATUS: leaks of a program that gave up are not told
    awk -v rc="$2" -v top="$PWD" '
        function place(line,    n, i, word, words) { # the first FILE:LINE in it that is the user'"'"'s
            n = split(line, words, /[ (),;]+/)
            for (i = 1; i <= n; i++) {
                word = words[i]
                sub(/:$/, "", word)
                if (word !~ /^[^:]+\.[A-Za-z+]+:[0-9]+(:[0-9]+)?$/) continue
                if (word ~ /^(\/usr|\.\.\/sysdeps|\.+\/csu)\// || word ~ /(^|\/)(hcu_[a-z]+\.(cpp|h)|hostcuda[a-z_]*\.h|mma\.h|hcu_refused\.inc):/) continue
                if (word ~ /libsanitizer|sanitizer_common|vg_replace|compiler-rt/) continue
                if (match(word, /:[0-9]+:[0-9]+$/)) sub(/:[0-9]+$/, "", word)
                if (index(word, top "/") == 1) word = substr(word, length(top) + 2)
                return word
            }
            return ""
        }
        function tell(text) {
            if (text ~ /: leak: / && rc != 0 && rc != 23) return
            if (!(text in told)) print text
            told[text] = 1
        }
        function flush() {
            if (what != "") tell((where != "" ? where ":" : "(no line)") " " what)
            what = where = ""
        }
        function begin(text) {
            flush()
            what = text
        }
        function rest(pattern,    text) { # of the line, after what the pattern matches
            text = $0
            sub(".*" pattern, "", text)
            return text
        }
        /HOSTCUDA BUG: / {
            begin(rest("HOSTCUDA BUG: "))
            where = place($0)
            next
        }
        /HOSTCUDA LEAK: / {
            leak = rest("HOSTCUDA LEAK: ")
            has_place = sub(/,* allocated at$/, "", leak)
            begin("leak: " leak)
            if (!has_place) flush()
            next
        }
        /ERROR: AddressSanitizer/ {
            address = rest("AddressSanitizer: ")
            sub(/ (on|at pc) .*/, "", address)
            if ((what ~ /^ / || what == "") && address !~ /^ABRT/) begin("address: " address)
            next
        }
        /runtime error: / {
            begin(rest("runtime error: "))
            where = place($1)
            next
        }
        /^(Direct|Indirect) leak of / {
            begin("leak: host memory, " $4 " bytes")
            next
        }
        /WARNING: ThreadSanitizer: / {
            flush()
            race = rest("ThreadSanitizer: ")
            sub(/ \(pid.*/, "", race)
            first = ""
            next
        }
        race != "" && /(Write|Read|Atomic write|Atomic read|write|read) of size/ {
            pending = 1
            kind = tolower($0) ~ /write/ ? "written" : "read"
            next
        }
        race != "" && pending && place($0) != "" {
            pending = 0
            if (first != "") {
                tell(first ": " race ", " first_kind " here, " kind " at " place($0))
                race = ""
                next
            }
            first = place($0)
            first_kind = kind
            next
        }
        race != "" && /^SUMMARY/ {
            if (first != "") tell(first ": " race ", " first_kind " here; the other side is a copy, a fill or a product")
            race = ""
        }
        /WARNING: MemorySanitizer: / {
            begin("uninitialised: " rest("MemorySanitizer: "))
            next
        }
        /^==[0-9]+== .*[Uu]ninitialised/ {
            begin("uninitialised: " rest("==[0-9]+== "))
            next
        }
        /^==[0-9]+== Invalid (read|write)/ {
            begin(rest("==[0-9]+== "))
            next
        }
        /Assertion .* failed/ {
            tell("assertion: " $0)
            next
        }
        what != "" && where == "" && place($0) != "" {
            where = place($0)
            flush()
            next
        }
        END { flush() }' "$logs/$1.err"
}

found=0 first=yes
for v in $check; do
    compile "$v" || exit 2
    execute "$v" "$@"
    rc=$?
    if [ "$first" = yes ]; then cat "$logs/$v.out"; first=; fi
    summary "$v" $rc >"$logs/$v.found"
    n=$(wc -l <"$logs/$v.found")
    echo "hostcuda-run: $v ($(finds "$v")): exit $rc, $((n)) found"
    sed 's/^/  /' "$logs/$v.found"
    if [ "$n" -gt 0 ]; then
        found=1
        echo "  all of it: $logs/$v.err"
    elif [ $rc != 0 ]; then
        sed "/HOSTCUDA LEAK/,\$d" "$logs/$v.err" | head -n 20
    fi
    [ $rc = 0 ] || [ "$n" -gt 0 ] || found=1
done
exit $found
