#!/bin/sh
# What the Makefile promises besides tests: install, its pkg-config file, help, clean; docs/operations.md, products.md and memory.md are what
# $BUILD/operations, products and memory make of this amp.h and of the table of products; and the benches (tests/bench.sh, which gets the
# arguments). Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
MAKE=${MAKE:-make} CC=${CC:-cc}
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
mk() { MAKEFLAGS='' "$MAKE" -s --no-print-directory "$@" >"$work/log" 2>&1 || { bad "make $*: $(cat "$work/log")"; return 1; }; }

mk install DESTDIR="$work/root" PREFIX=/opt/amp
for f in include/amp.h include/amp_cuda.cuh share/pkgconfig/amp.pc share/cmake/amp/ampConfig.cmake share/cmake/amp/ampConfigVersion.cmake; do
    if [ -r "$work/root/opt/amp/$f" ]; then ok; else bad "install: no $f"; fi
done
if [ "$(cd "$work/root" && find . -type f | wc -l)" = 5 ]; then ok
else bad "install: $(cd "$work/root" && find . -type f)"; fi

# a program that has nothing but the installed files
cat >"$work/use.c" <<'C'
#define AMP_IMPLEMENTATION
#include <amp.h>
#include <stdio.h>
int main(void) {
    printf("%d.%d.%d\n", AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH);
    return amp_version() == AMP_VERSION ? 0 : 1;
}
C
flags="-Iroot/opt/amp/include -lm -pthread"
if command -v pkg-config >/dev/null 2>&1; then
    export PKG_CONFIG_PATH="$work/root/opt/amp/share/pkgconfig" PKG_CONFIG_SYSROOT_DIR=root
    flags=$(pkg-config --cflags --libs amp) || bad "pkg-config: $flags"
else
    echo "skipped: no pkg-config"
    skipped=1
fi
lean=-DAMP_NO_SIMD # a fifth of the time
[ "${1:-}" != --full ] || lean=
# shellcheck disable=SC2086
if (cd "$work" && $CC $lean use.c $flags -o use && ${RUN_ENV:-} ./use >version); then ok
else bad "a program with the installed files"; fi
version=$(cat "$work/version")
version=${version:-none}
if [ "Version: $version" = "$(grep '^Version' "$work/root/opt/amp/share/pkgconfig/amp.pc")" ]; then ok; else bad "amp.pc says another version than amp.h"; fi
grep -q '@' "$work/root/opt/amp/share/pkgconfig/amp.pc" && bad "amp.pc: $(grep @ "$work/root/opt/amp/share/pkgconfig/amp.pc")"
if grep -q "^## $version" CHANGELOG.md; then ok; else bad "CHANGELOG.md has no entry for $version"; fi
if head -n 1 amp.h | grep -q "v$version "; then ok; else bad "the first line of amp.h names another version"; fi

# a prefix with any characters, and one from here: the files are there, and amp.pc names the folder
for prefix in "/opt/a b&c|d'e\\f\"g#h;i" 'build/in stalled' "/opt/a\$\$b"; do
    rm -rf "$work/odd"
    mk install DESTDIR="$work/odd/" PREFIX="$prefix" || continue
    plain=$(printf '%s' "$prefix" | sed 's/\$\$/$/') # as make writes a dollar
    if [ -r "$work/odd/$plain/include/amp.h" ] && [ -r "$work/odd/$plain/share/pkgconfig/amp.pc" ]; then ok
    else bad "install: nothing in $plain"; continue; fi
    case $plain in /*) ;; *) plain=$PWD/$plain ;; esac
    case $plain in *\$*) continue ;; esac # pkg-config does not quote a dollar
    if command -v pkg-config >/dev/null 2>&1; then
        eval "set -- $(unset PKG_CONFIG_SYSROOT_DIR; PKG_CONFIG_PATH=$(dirname "$(find "$work/odd" -name amp.pc)") pkg-config --cflags amp)"
        if [ "$1" = "-I$plain/include" ]; then ok; else bad "pkg-config for $plain: $1"; fi
    fi
    mk uninstall DESTDIR="$work/odd/" PREFIX="$prefix"
    if [ -z "$(find "$work/odd" -type f)" ]; then ok; else bad "uninstall in $plain leaves $(find "$work/odd" -type f)"; fi
done

mk help
for target in all run test check-full check-gpu exhaustive matrix docs install clean help; do
    if grep -q "^  make $target " "$work/log"; then ok; else bad "make help does not list $target"; fi
done
for page in operations products memory; do
    if ${RUN_ENV:-} "${BUILD:-build}/$page" | diff - docs/$page.md; then ok; else bad "docs/$page.md is not what \`make docs\` makes"; fi
done
if ${RUN_ENV:-} "${BUILD:-build}/roofline" H100 --out "$work/roofline.svg" >"$work/log" && cmp "$work/roofline.svg" docs/img/roofline.svg; then ok
else bad "docs/img/roofline.svg is not what \`make docs\` makes"; fi
there=${BUILD:-build}/to-clean # make takes no path with spaces, as $work may have
mkdir -p "$there/x"
if MAKEFLAGS='' "$MAKE" -s clean BUILD="$there" >"$work/log" 2>&1 || [ ! -e "$there/x" ]; then bad "clean removes a folder that make did not make"; else ok; fi
touch "$there/flags"
mk clean BUILD="$there"
if [ -e "$there" ]; then bad "clean left $there"; else ok; fi

if [ -r bench/bench.mk ]; then
    tests/bench.sh "$@" >"$work/log"
    sed '$d' "$work/log"
    # shellcheck disable=SC2046 # three words are wanted
    set -- $(tail -n 1 "$work/log" | sed 's/[^0-9 ]//g')
    if [ $# = 3 ]; then passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); else bad "tests/bench.sh: no counts"; fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
