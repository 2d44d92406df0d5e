#!/bin/sh
# usage: places.sh [PLACE...]    `make run` and `make test` where other people are; without PLACEs all of them:
#   elsewhere   a tarball of the tree, in a path with spaces, as an ordinary user without a home, without git, with umask 077, a TMPDIR with
#               a space, LANG=de_DE.UTF-8, an odd time zone and make -j8: make run, and the whole of make test; nothing is left in TMPDIR
#   one         one processor
#   sixteen     sixteen processors, as far as programs can see
#   loaded      four busy processes for each processor: a slow machine is no failure
#   again       twice in a row; stopped by Ctrl-C, by kill and by kill -9, while it compiles and while a part runs: nothing goes on, and
#               then it runs again
# All but the first run in this tree, in $BUILD/places, and of the parts of make test those that such a place can change; all of them
# with PLACE_PARTS='compile unit ...'. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
MAKE=${MAKE:-make} BUILD=${BUILD:-build}
mine=$BUILD/places
work=$(mktemp -d) || exit 2
spinners=
finish() {
    # shellcheck disable=SC2086 # words
    [ -z "$spinners" ] || kill $spinners 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $place: $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $place: $*"; }
holds() { # WHAT COMMAND...
    what=$1
    shift
    if "$@" >"$work/log" 2>&1; then ok
    else bad "$what: exit status $?"; grep -e 'FAIL' -e '[Ee]rror' "$work/log" | head -n 20; tail -n 3 "$work/log"; fi
}
# What make and tests/full.sh have told this script is not for the makes in it.
fresh() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u LOG -u STALL -u SPIN -u STARTER "$@"; }
parts() { # PART...: make test of these
    fresh "$MAKE" -s BUILD="$mine" PARTS="${PLACE_PARTS:-$*}" test
}

# ---- elsewhere ----
without_git() { # the PATH, with links in place of each folder that has a git
    # shellcheck disable=SC2030
    echo "$PATH" | tr : '\n' | awk '!seen[$0]++' | {
        n=0 path=
        while read -r folder; do
            if [ -e "$folder/git" ]; then
                n=$((n + 1))
                mkdir "$work/bin.$n"
                for program in "$folder"/*; do [ "${program##*/}" = git ] || ln -s "$program" "$work/bin.$n/"; done
                folder=$work/bin.$n
            fi
            path=$path:$folder
        done
        echo "${path#:}"
    }
}
german() { # LOCPATH=..., where this machine has no such locale and can make it
    locale -a 2>/dev/null | grep -qi '^de_DE.utf-*8' && return
    mkdir "$work/locale"
    if localedef -i de_DE -f UTF-8 "$work/locale/de_DE.UTF-8" >/dev/null 2>&1; then echo "LOCPATH=$work/locale"; fi
}
unpack() { # FOLDER: what git would give, or else all but build folders
    if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -z | xargs -0 tar -c
    else tar -c --exclude='./build*' .; fi | tar -x -C "$1"
}
as_somebody() { # COMMAND...: not as root
    if [ "$(id -u)" != 0 ]; then "$@"
    else setpriv --reuid nobody --regid "$(id -gn nobody)" --clear-groups "$@"; fi
}
there() { # TARGET...
    (
        cd "$work/a folder/with spaces" || exit 2
        umask 077
        as_somebody env -i PATH="$path" TMPDIR="$work/tmp dir" HOME=/nonexistent LANG=de_DE.UTF-8 TZ=Pacific/Chatham ${locale:+"$locale"} \
            ${CUDA_HOME:+"CUDA_HOME=$CUDA_HOME"} "$MAKE" -j8 "$@"
    )
}
elsewhere() {
    if [ "$(id -u)" = 0 ] && ! as_somebody true 2>/dev/null; then skip "no setpriv, or no user nobody"; return; fi
    mkdir -p "$work/a folder/with spaces" "$work/tmp dir"
    unpack "$work/a folder/with spaces"
    # shellcheck disable=SC2031 # another path
    path=$(without_git) locale=$(german)
    locale -a 2>/dev/null | grep -qi '^de_DE.utf-*8' || [ -n "$locale" ] || skip "no locale de_DE.UTF-8, and no localedef to make it"
    chmod 755 "$work"
    [ "$(id -u)" != 0 ] || chown -R nobody "$work/a folder" "$work/tmp dir"
    holds "make run" there run
    # shellcheck disable=SC2086 # one word with the parts
    holds "make test" there ${PLACE_PARTS:+PARTS="$PLACE_PARTS"} test
    grep ' passed, .* failed, ' "$work/log"
    left=$(ls -A "$work/tmp dir")
    if [ -z "$left" ]; then ok
    else bad "left in TMPDIR: $left"; fi
    left=$(cd "$work/a folder/with spaces" && find . -newer build/flags ! -path './build*' ! -name .)
    if [ -z "$left" ]; then ok
    else bad "changed in the tree: $left"; fi
}

# ---- processors, load ----
one() {
    if ! command -v taskset >/dev/null 2>&1; then skip "no taskset"; return; fi
    first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    holds "make test" taskset -c "$first" "$0" --parts unit process examples fuzz
}
sixteen() {
    cat >"$work/sixteen.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
long sysconf(int name) {
    long (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? 16 : real(name);
}
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask) {
    (void)pid;
    memset(mask, 0, bytes);
    memset(mask, 0xff, 2);
    return 0;
}
C
    if ! "${CC:-cc}" -shared -fPIC -O1 "$work/sixteen.c" -o "$work/sixteen.so" -ldl >/dev/null 2>&1; then skip "no shared libraries here"; return; fi
    if [ "$(LD_PRELOAD=$work/sixteen.so nproc)" != 16 ]; then skip "LD_PRELOAD is not obeyed"; return; fi
    holds "make test" env LD_PRELOAD="$work/sixteen.so" "$0" --parts unit process examples fuzz
}
loaded() {
    n=$((4 * $(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)))
    while [ $n -gt 0 ]; do
        n=$((n - 1))
        sh -c 'while :; do :; done' &
        spinners="$spinners $!"
    done
    holds "make test" "$0" --parts process state labs selftest fuzz
    # shellcheck disable=SC2086 # words
    kill $spinners
    spinners=
}

# ---- stopped, and again ----
left_over() { # the processes of the make that is marked
    for process in /proc/[0-9]*; do
        if grep -q "AMP_PLACE=$work" "$process/environ" 2>/dev/null; then echo "${process##*/}"; fi
    done
}
begins() { # FILE: waits until it is there
    tries=0
    while [ ! -e "$1" ] && [ $tries -lt 6000 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    sleep 1
}
stopped() { # after kill -9 what is left needs some seconds to notice it. SIGNAL WHOM WHEN: make, or its whole group as a terminal does; when this file has come
    rm -rf "$mine/log"
    # a shell lets its background ignore Ctrl-C, and a terminal does not
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u LOG --default-signal=INT AMP_PLACE="$work" setsid "$MAKE" -s BUILD="$mine" PARTS=unit test >"$work/stopped" 2>&1 &
    make=$!
    begins "$3"
    kill -s "$1" -- "$2$make"
    wait "$make"
    tries=0
    while [ -n "$(left_over)" ] && [ $tries -lt 60 ]; do # compilers may take a while
        tries=$((tries + 1))
        sleep 1
    done
    left=$(left_over)
    if [ -z "$left" ]; then ok
    else
        bad "SIG$1: goes on: $(for process in $left; do tr '\0' ' ' <"/proc/$process/cmdline"; done)"
        # shellcheck disable=SC2086 # words
        kill -9 $left
    fi
    if [ "$1" = KILL ]; then :
    elif grep -q '^[0-9]* passed, 0 failed' "$work/stopped"; then bad "SIG$1: it had passed before it was stopped"; else ok; fi
}
again() {
    if ! env --default-signal=INT setsid true 2>/dev/null || [ ! -r /proc/self/environ ]; then skip "no /proc, no setsid, or an old env"; return; fi
    holds "make test" parts headers process
    holds "make test, the second time" parts headers process
    rm -f "$mine"/tests/*.o "$mine/test_cpu"
    stopped INT - "$mine/tests/main.o"
    stopped TERM '' "$mine/tests/test_context.o"
    stopped INT - "$mine/log/unit.log"
    stopped TERM '' "$mine/log/unit.log"
    stopped KILL '' "$mine/log/unit.log"
    holds "make test, after it was stopped" parts headers process unit
}

if [ "${1:-}" = --parts ]; then
    shift
    parts "$@"
    exit
fi
[ $# -gt 0 ] || set -- elsewhere one sixteen loaded again
for place; do
    case $place in
    elsewhere | one | sixteen | loaded | again) echo "---- $place"; "$place" ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
