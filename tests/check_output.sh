#!/bin/sh
# usage: check_output.sh SOURCE.c PROGRAM [ARGUMENT...]
# Runs PROGRAM and compares what it prints, stdout and stderr, with what the comment at the top of SOURCE.c promises: its lines that
# begin with " *   > " (or "//   > "). Prints a diff when they differ. Exit status 0: equal, and the program's status was 0.
set -u
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
source=$1
shift
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
awk '/^(#|int |static |typedef |void )/ { exit } sub(/^( \*|\/\/|  ) *> ?/, "") { print }' "$source" >"$work/promised"
[ -s "$work/promised" ] || { echo "$source: its top comment promises no output (no line ' *   > ...')"; exit 1; }
"$@" >"$work/printed" 2>&1 </dev/null
rc=$?
[ $rc = 0 ] || { echo "$1: exit status $rc"; cat "$work/printed"; exit 1; }
if ! diff -u "$work/promised" "$work/printed" >"$work/diff"; then
    echo "$1 does not print what the comment in $source promises:"
    cat "$work/diff"
    exit 1
fi
