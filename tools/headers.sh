#!/bin/sh
# headers.sh [lines|check] - joins the parts in src/, in the order of src/order, into amp.h and amp_cuda.cuh, and adds nothing.
#   lines   with a #line before each part, for developers: compilers and debuggers then name files of src/ (not to be committed)
#   check   writes nothing; says which of the two is not what src/ gives
# A header is written whole or not at all, and stays untouched if nothing changes in it.
set -u
cd "$(dirname "$0")/.." || exit 2
mode=${1:-join}

parts() { # HEADER: the indented lines below its name
    awk -v header="$1" '/^[^ #]/ { inside = $1 == header; next } inside && NF { print "src/" $1 }' src/order
}
joined() { # HEADER
    parts "$1" | while read -r part; do
        [ "$mode" != lines ] || printf '#line 1 "%s"\n' "$part"
        cat "$part" || exit 1
    done
}

status=0
for header in amp.h amp_cuda.cuh; do
    new=$header.new.$$
    if ! joined "$header" >"$new" || [ ! -s "$new" ]; then
        echo "$header: a part of src/order is missing" >&2
        status=1
    elif cmp -s "$new" "$header"; then
        :
    elif [ "$mode" = check ]; then
        echo "$header is not what src/ gives (make headers): $(cmp "$new" "$header" 2>&1 | sed 's/^[^ ]* //')"
        status=1
    else
        cp "$new" "$header" || status=1
    fi
    rm -f "$new"
done
exit $status
