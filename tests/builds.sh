#!/bin/sh
# usage: builds.sh [--full]    amp in other people's build systems: `make install`, uninstall, shared and install-shared into folders with
# spaces; pkg-config; CMake: add_subdirectory, FetchContent, find_package after each kind of install, version requests; two foreign-shaped
# programs, tests/dropin/strict (C11 and C++17, every warning an error) and threads.c; the first program of amp.h under -flto, -fvisibility=hidden,
# --gc-sections, in a shared object that comes and goes, under valgrind; Python's ctypes and the wheel; the notebook's format; files for a hosting
# site, editors, contributors and teachers; `make dist`. --full: also Conan's package and its test, the types of the bindings in mypy's strict
# mode and beside their code, the site. Without it one of two programs of each kind has its day (tests/today.sh).
# What is not installed is skipped: cmake pkg-config python3 numpy valgrind conan. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
top=$PWD full=''
. tests/today.sh
[ "${1:-}" != --full ] || full=1
work=$(mktemp -d) || exit 2
own=${BUILD:-build}/builds # of make, which takes no path with spaces, as $work may have
trap 'rm -rf "$work" "$own"' EXIT
trap 'exit 130' INT TERM
MAKE=${MAKE:-make} CC=${CC:-cc} CXX=${CXX:-g++} PYTHON=${PYTHON:-python3}
export CC CXX
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }
try() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then ok
    else bad "$name"; tail -n 20 "$work/log"; return 1; fi
}
refused() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then bad "$name"; else ok; fi
}
has() { command -v "$1" >/dev/null 2>&1; }
mk() { MAKEFLAGS='' "$MAKE" -s --no-print-directory BUILD="$own" CFLAGS='-O0 -DAMP_NO_SIMD' NVCC= "$@"; }

# ---- make install, uninstall, a shared library ----
root="$work/a folder/root" prefix="/opt/my amp"
installed=$root$prefix
try "make install, with spaces" mk install install-shared DESTDIR="$root" PREFIX="$prefix"
version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$installed/share/cmake/amp/ampConfigVersion.cmake")
for f in include/amp.h include/amp_cuda.cuh share/pkgconfig/amp.pc share/cmake/amp/ampConfig.cmake lib/libamp.so "lib/libamp.so.$version"; do
    if [ -s "$installed/$f" ]; then ok
    else bad "install: no $f"; fi
done
cat >"$work/use.c" <<'C'
#include <amp.h>
int main(void) {
    amp_ctx *ctx;
    if (amp_version() != AMP_VERSION || amp_cpu_create(&ctx, NULL) != AMP_OK) return 1;
    amp_ctx_destroy(ctx);
    return 0;
}
C
if has pkg-config; then
    (
        PKG_CONFIG_PATH=$installed/share/pkgconfig
        export PKG_CONFIG_PATH
        eval "set -- $(pkg-config --define-variable=prefix="$installed" --cflags amp)"
        "$CC" "$@" "$work/use.c" "$installed/lib/libamp.so" -o "$work/by_pkg_config"
    ) >"$work/log" 2>&1
    if LD_LIBRARY_PATH="$installed/lib" "$work/by_pkg_config"; then ok
    else bad "pkg-config and the shared library"; cat "$work/log"; fi
else skip "builds: no pkg-config"; fi
if has nm; then
    nm -D --defined-only "$installed/lib/libamp.so" | awk '$2 == "T" || $2 == "D" || $2 == "B" || $2 == "R"' >"$work/symbols"
    if [ "$(grep -c ' amp_[a-z0-9_]*@@AMP_0\.1$' "$work/symbols")" -gt 60 ] && ! grep -v ' amp_[a-z0-9_]*@@AMP_0\.1$' "$work/symbols"; then ok
    else bad "the shared library's symbols"; head -n 5 "$work/symbols"; fi
else skip "builds: no nm"; fi

# ---- CMake ----
strict() { # NAME BUILD_FOLDER OPTION...: configures, builds and runs tests/dropin/strict
    name=$1 folder=$2
    shift 2
    try "$name: configure" cmake -S "$top/tests/dropin/strict" -B "$folder" "$@" && try "$name: build" cmake --build "$folder" &&
        try "$name: run" "$folder/strict" && if grep -q '^w 3.00 b -1.00, [0-9]* skipped, scale ' "$work/log"; then ok
    else bad "$name: $(cat "$work/log")"; fi
}
if has cmake && has "$CXX"; then
    if today 1 2; then strict "CMake, add_subdirectory" "$work/cmake 1" -DAMP_SOURCE="$top"; fi
    # all three targets by FetchContent, with a compiled library, installed by CMake itself
    mkdir -p "$work/fetch me" && cat >"$work/fetch me/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.14)
project(fetch LANGUAGES C)
include(FetchContent)
set(AMP_COMPILED ON CACHE BOOL "")
set(AMP_INSTALL ON CACHE BOOL "")
FetchContent_Declare(amp SOURCE_DIR "${AMP_HERE}")
FetchContent_MakeAvailable(amp)
target_compile_definitions(amp_compiled PRIVATE AMP_NO_SIMD)
add_executable(use "${USE}")
target_link_libraries(use PRIVATE amp::compiled amp::amp)
if(NOT TARGET amp::cuda)
  message(FATAL_ERROR "no amp::cuda")
endif()
CMAKE
    if try "CMake, FetchContent: configure" cmake -S "$work/fetch me" -B "$work/cmake 2" -DAMP_HERE="$top" -DUSE="$work/use.c" -DBUILD_SHARED_LIBS=ON \
        -DCMAKE_INSTALL_PREFIX="$work/by cmake" && try "CMake, FetchContent: build" cmake --build "$work/cmake 2" &&
        try "CMake, FetchContent: run" "$work/cmake 2/use" && try "cmake --install" cmake --install "$work/cmake 2"; then
        if cmp -s "$installed/share/cmake/amp/ampConfigVersion.cmake" "$work/by cmake/share/cmake/amp/ampConfigVersion.cmake"; then ok
        else bad "make install and cmake --install differ"; fi
        if has pkg-config; then
            (
                PKG_CONFIG_PATH="$work/by cmake/share/pkgconfig"
                export PKG_CONFIG_PATH
                eval "set -- $(pkg-config --cflags amp)"
                echo '#include <amp.h>' | "$CC" -fsyntax-only -x c "$@" -
            ) >"$work/log" 2>&1
            # shellcheck disable=SC2181
            if [ $? = 0 ]; then ok; else bad "amp.pc of cmake --install"; cat "$work/log"; fi
        else skip "builds: no pkg-config"; fi
        [ -z "$full" ] || { mkdir -p "$work/vcpkg/share/amp" && cp -r "$work/by cmake/include" "$work/vcpkg/" && cp "$work/by cmake/share/cmake/amp/"* "$work/vcpkg/share/amp/"
        strict "find_package, as vcpkg moves it" "$work/cmake 5" -DCMAKE_PREFIX_PATH="$work/vcpkg"; }
        [ -z "$full" ] || strict "find_package, installed by CMake" "$work/cmake 3" -DCMAKE_PREFIX_PATH="$work/by cmake" -DSTRICT_COMPILED=ON
        [ -z "$full" ] || { try "CMake, headers elsewhere" cmake -S "$top" -B "$work/cmake 6" -DCMAKE_INSTALL_PREFIX="$work/elsewhere" -DCMAKE_INSTALL_INCLUDEDIR=include/amp-0.1 &&
            try "CMake, headers elsewhere: install" cmake --install "$work/cmake 6" && strict "find_package, headers elsewhere" "$work/cmake 7" -DCMAKE_PREFIX_PATH="$work/elsewhere"; }
    fi
    if today 2 2; then strict "find_package, installed by make" "$work/cmake 4" -DCMAKE_PREFIX_PATH="$installed" -DSTRICT_COMPILED=ON; fi
    find_it() { # VERSION
        mkdir -p "$work/find"
        printf 'cmake_minimum_required(VERSION 3.14)\nproject(find LANGUAGES C)\nfind_package(amp %s REQUIRED)\n' "$1" >"$work/find/CMakeLists.txt"
        rm -rf "$work/find/b"
        cmake -S "$work/find" -B "$work/find/b" -DCMAKE_PREFIX_PATH="$installed"
    }
    try "find_package(amp 0.1)" find_it 0.1
    try "find_package(amp $version EXACT)" find_it "$version EXACT"
    for v in 0.0.9 0.1.99 0.2 1.0; do refused "find_package(amp $v) finds $version" find_it $v; done
else skip "builds: no cmake, or no $CXX"; fi

# ---- a program with threads ----
today 1 2 && try "dropin/threads.c: compile" "$CC" -std=c11 -O0 -DAMP_NO_SIMD -Wall -Wextra -Werror -I. tests/dropin/threads.c -o "$work/threads" -lm -pthread &&
    try "dropin/threads.c" "$work/threads"

# ---- make dist, of a checkout of its own ----
if has git && has sha256sum && git rev-parse -q --verify HEAD >/dev/null 2>&1; then
    (
        mkdir "$work/repository" && git ls-files -z amp.h amp_cuda.cuh LICENSE Makefile tools cmake | xargs -0 cp --parents -t "$work/repository" && cd "$work/repository" &&
            git init -q . && git add -A && git -c user.name=amp -c user.email=amp@example.org commit -qm x
    ) >"$work/log" 2>&1 || bad "a checkout for make dist: $(cat "$work/log")"
    dist() { (cd "$work/repository" && tools/dist.sh 0.0.1 "$1"); }
    try "make dist" dist "$work/dist 1" && sleep 1 && try "make dist again" dist "$work/dist 2"
    try "make dist: the same bytes" diff -r "$work/dist 1" "$work/dist 2"
    if [ "$(tar tzf "$work/dist 1/amp-0.0.1-headers.tar.gz" | grep -c -E 'amp.h$|amp_cuda.cuh$|LICENSE$')" = 3 ]; then ok; else bad "dist: the headers' tarball"; fi
    echo >>"$work/repository/amp.h"
    refused "make dist of a changed tree" dist "$work/dist 3"
    if [ -e "$work/dist 3" ]; then bad "make dist of a changed tree left files"; else ok; fi
else skip "builds: no git checkout, so make dist was not tried"; fi
# ---- the first program of amp.h, as others build and link it ----
lean='-std=c99 -O0 -DAMP_NO_SIMD'
[ -z "$full" ] || lean='-std=c99 -O2'
sed -n '/^   A COMPLETE PROGRAM/,/^   For a GPU/s/^       //p' amp.h | sed 's/amp_cpu_create(&ctx, NULL)/amp_cpu_create(\&ctx, \&(amp_cpu_desc){.threads = 3})/' >"$work/first.c"
sed '/^#define AMP_IMPLEMENTATION/d' "$work/first.c" >"$work/user.c"
printf '#define AMP_IMPLEMENTATION\n#include "amp.h"\n' >"$work/impl.c"
learns() { "$@" >"$work/said" && grep -q '^loss 0\.00' "$work/said"; }
first() { # NAME FLAG...: two files, then the program
    name=$1
    shift
    # shellcheck disable=SC2086
    try "first program, $name: compile" "$CC" $lean "$@" -I. "$work/user.c" "$work/impl.c" -o "$work/first" -lm -pthread && try "first program, $name" learns "$work/first"
}
echo 'int main(void) { return 0; }' >"$work/nothing.c"
takes() { "$CC" "$@" "$work/nothing.c" -o "$work/nothing" >/dev/null 2>&1; }
sections='-ffunction-sections -fdata-sections -Wl,--gc-sections' lto=-flto
takes -flto || { lto='' && skip "builds: $CC has no -flto"; }
# shellcheck disable=SC2086
if ! today 1 2; then :
elif takes -fvisibility=hidden $sections; then # all at once; --full: also one by one
    if first "$lto -fvisibility=hidden --gc-sections" $lto -g -fvisibility=hidden $sections && has nm; then
        refused "--gc-sections leaves amp_state_save, which nobody calls" sh -c 'nm "$0" | grep -w amp_state_save' "$work/first"
    fi
    if has valgrind && valgrind -q "$work/nothing" >/dev/null 2>&1; then
        try "valgrind finds nothing" learns valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all "$work/first"
    else skip "builds: no valgrind, or it does not run a program here"; fi
    [ -z "$full" ] || { first "-fvisibility=hidden" -fvisibility=hidden && first "--gc-sections" $sections && { [ -z "$lto" ] || first "$lto" $lto; }; }
else skip "builds: $CC has no -fvisibility=hidden or --gc-sections, so valgrind has no program"; fi
if ! today 2 2; then :
elif takes -fvisibility=hidden -shared -fPIC && [ -d /proc/self/task ]; then
    # shellcheck disable=SC2086
    sed 's/i < 200/i < 20/' "$work/first.c" >"$work/brief.c" && try "a shared object with amp in it" "$CC" $lean -fvisibility=hidden -fPIC -shared -I. -Dmain='__attribute__((visibility("default"))) first' "$work/brief.c" -o "$work/first.so" -lm -pthread
    if has nm; then refused "-fvisibility=hidden exports amp_" sh -c 'nm -D --defined-only "$0" | grep " amp"' "$work/first.so"; fi
    try "unload.c" "$CC" -std=gnu99 -O1 -Wall -Wextra -Werror tests/dropin/unload.c -o "$work/unload" -ldl && try "loaded and unloaded 100 times" "$work/unload" "$work/first.so"
    if [ "$(grep -c '^loss 0\.' "$work/log")" = 100 ]; then ok
    else bad "the object that is unloaded does not learn 100 times"; fi
else skip "builds: no -shared or no /proc, so nothing is unloaded"; fi

# ---- Python ----
if ! has "$PYTHON"; then skip "builds: no $PYTHON"
else
    # numpy or not, the header is understood and each struct lies where the compiler has it
    try "make python" mk python PYTHON="$PYTHON" && "$PYTHON" tools/python_bindings.py "$CC" --sizes >"$work/sizes.c" &&
        try "sizes" "$CC" -I. "$work/sizes.c" -o "$work/sizes" && "$work/sizes" >"$work/sizes.txt"
    try "_amp.py is Python" env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$own/python/amp" "$PYTHON" -c 'import _amp'
    if "$PYTHON" -c 'import numpy' 2>/dev/null; then
        PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$own/python" "$PYTHON" tests/python_amp.py "$work/sizes.txt" >"$work/log" 2>&1
        rc=$?
        grep 'FAIL\|^skipped' "$work/log"
        # shellcheck disable=SC2046 # three words are wanted
        set -- $(tail -n 1 "$work/log" | sed 's/[^0-9 ]//g')
        if [ $# = 3 ]; then passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); else bad "python_amp.py, exit status $rc"; tail -n 5 "$work/log"; fi
    else skip "builds: no numpy, so bindings/python was not run"; fi
    if ! today 2 2; then :
    elif "$PYTHON" -c 'import setuptools, pip
try: import setuptools.command.bdist_wheel
except ImportError: import wheel' 2>/dev/null; then
        try "pip wheel ." env BUILD="$own" CFLAGS='-O0 -DAMP_NO_SIMD' "$PYTHON" -m pip wheel -q --no-build-isolation --no-deps -w "$own/wheel" . &&
            try "the wheel's files" "$PYTHON" -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' "$own"/wheel/amp-*.whl "$work/wheel" &&
            try "the wheel's library" env PYTHONPATH="$work/wheel/amp" "$PYTHON" -c 'import ctypes, os, sys, _amp
lib = ctypes.CDLL(os.path.join(sys.argv[1], "amp", "libamp.so"))
assert lib.amp_version() == _amp.AMP_VERSION' "$work/wheel"
    else skip "builds: no pip with setuptools and wheel, so pip install . was not tried"; fi
    if "$PYTHON" -c 'import mypy' 2>/dev/null; then
        printf '%s\n' 'from amp import _amp as c' 'd = c.amp_step_desc()' 'd.lr = 0.5' 'd.lr = "x"' >"$work/typed.py"
        refused "types: a string for .lr" env MYPYPATH="$own/python" "$PYTHON" -m mypy --follow-imports=silent --cache-dir="$work/mypy" "$work/typed.py"
        if grep -q 'typed.py:4: error' "$work/log" && [ "$(grep -c error: "$work/log")" = 1 ]; then ok; else bad "types: $(cat "$work/log")"; fi
        # a program of a user's, in strict mode: that of docs/build.md
        [ -z "$full" ] || { echo 'def program() -> None:'; awk '/^```/ { inside = 0 } inside { print "    " $0 } /^```python/ { inside = 1 }' docs/build.md; } >"$work/strict.py"
        [ -z "$full" ] || try "mypy --strict" env MYPYPATH="$own/python" "$PYTHON" -m mypy --strict --cache-dir="$work/mypy" "$work/strict.py"
        [ -z "$full" ] || env PYTHONPATH="$own/python" MYPYPATH="$own/python" "$PYTHON" -m mypy.stubtest amp >"$work/stubs" 2>&1
        if [ -z "$full" ]; then :
        elif grep '^error: amp\.' "$work/stubs" | grep -v 'amp\._amp\|amp\.libamp'; then bad "the types of the package are not those of its code"; else ok; fi
    else skip "builds: no mypy, so the types of the bindings were not read"; fi
    # the reference: every function is on a page, and one without a class is refused
    mkdir -p "$work/top" && cp -R tools src docs examples README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE amp.h bench bindings tests "$work/top/"
    try "reference" "$PYTHON" "$work/top/tools/reference.py" "$work/site"
    for name in amp_gemm amp_step amp_cuda_create amp_linear_forward; do
        if grep -q "^## $name { #$name }" "$work"/site/reference/*.md; then ok; else bad "reference: no $name"; fi
    done
    echo 'AMP_API void amp_nothing(void);' >>"$work/top/src/amp/page/state.h"
    refused "reference: a function without a class" "$PYTHON" "$work/top/tools/reference.py" "$work/site"
    if grep -q 'amp_nothing .*names no class' "$work/log" && [ -e "$work/site/index.md" ]; then ok; else bad "reference: $(cat "$work/log")"; fi
    if [ -z "$full" ]; then :
    elif "$PYTHON" -c 'import material, mkdocs' 2>/dev/null; then
        mkdir -p "$work/top/build" && mv "$work/site" "$work/top/build/site-src"
        try "the site" env NO_MKDOCS_2_WARNING=1 "$PYTHON" -m mkdocs build -q --strict -f "$work/top/tools/mkdocs.yml"
    else skip "builds: no mkdocs-material, so the site was not built"; fi
    try "make slides" "$PYTHON" tools/slides.py docs/teaching/slides.md && cp "$work/log" "$work/slides.html"
    if [ "$(grep -c '^<section>' "$work/slides.html") $(grep -c '</aside></section>' "$work/slides.html") $(grep -c '^<details>' docs/teaching/quiz.md)" = "30 30 24" ]; then ok; else bad "30 slides with notes and 24 answers are promised"; fi
    for program in notebook repository; do
        said=$("$PYTHON" tests/$program.py)
        # shellcheck disable=SC2046 # three words are wanted
        set -- $(echo "$said" | tail -n 1 | sed 's/[^0-9 ]//g')
        echo "$said" | sed '$d'
        if [ $# = 3 ]; then passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); else bad "$program.py: no counts"; fi
    done
    try "vcpkg.json" "$PYTHON" -c 'import json, sys; d = json.load(open("packaging/vcpkg/vcpkg.json")); sys.exit(d["version"] != sys.argv[1])' "$version"
fi
if has vcpkg; then try "vcpkg's format" sh -c 'cp packaging/vcpkg/vcpkg.json "$0/v.json" && vcpkg format-manifest "$0/v.json" && cmp packaging/vcpkg/vcpkg.json "$0/v.json"' "$work"
else skip "builds: no vcpkg"; fi

# ---- Conan ----
if [ -z "$full" ]; then :
elif has conan && has cmake; then
    CONAN_HOME=$work/conan
    export CONAN_HOME
    cp -r packaging/conan/test_package "$work/test_package"
    try "conan profile" env -u CC -u CXX conan profile detect &&
        try "conan create" conan create packaging/conan --test-folder="$work/test_package" --build=missing --no-remote
else skip "builds: no conan"; fi

# ---- uninstall ----
try "make uninstall" mk uninstall DESTDIR="$root" PREFIX="$prefix"
if [ -z "$(find "$root" ! -type d)" ]; then ok
else bad "uninstall leaves $(find "$root" ! -type d)"; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
