#!/bin/sh
# usage: tools/tests_of.sh NAME...    Which tests guard a function: the files of tests/ that name it most, how often, and in which functions;
# then the files that the banner above its body names. No test names most private functions: these have the banner alone.
set -u
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }

named() { # NAME: a line for each file of tests/, the first eight, with at most six functions
    find tests \( -name '*.c' -o -name '*.cpp' \) -exec awk -v name="$1" '
        function show() { if (n) print n, file ": " (n == 1 ? "once" : n " times") ", in" list (k > 6 ? " and " k - 6 " more" : "") }
        FNR == 1 { show(); file = FILENAME; n = k = 0; list = f = ""; split("", seen) }
        /^[a-zA-Z].*\(/ && !/;$/ { f = $0; sub(/\(.*/, "", f); sub(/.*[ *]/, "", f) }
        $0 ~ "(^|[^a-zA-Z0-9_])" name "([^a-zA-Z0-9_]|$)" { n++; if (f != "" && !(f in seen)) { seen[f]; if (++k <= 6) list = list " " f } }
        END { show() }' {} + | sort -k1,1nr -k2 | sed -n '1,8s/^[0-9]* /  /p'
}
banner() { # NAME: the files behind "tests:" in the last banner before its body
    find src \( -name '*.h' -o -name '*.cuh' \) -exec awk -v name="$1" '
        FNR == 1 { files = "" }
        /^\/\*|^   / && /  *tests: / && !/\(tests:/ { more = 1; files = ""; sub(/.*tests:/, "") }
        more { for (i = 1; i <= NF; i++) if ($i ~ /^tests\//) { sub(/[,;]$/, "", $i); files = files " " $i } }
        /\*\// { more = 0 }
        /^[a-zA-Z].*\(/ && $0 ~ "(^|[^a-zA-Z0-9_])" name "\\(" { open = 1 }
        open && /[{;]/ { if (/[{]/) print "  banner above its body, in " FILENAME ":" files; open = 0 }' {} +
}
bad=0
for name; do
    found=$(named "$name"; banner "$name")
    echo "$name"
    if [ -n "$found" ]; then echo "$found"; else echo "  no test names it, and src/ has no body of it"; bad=1; fi
done
exit $bad
