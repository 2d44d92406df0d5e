#!/bin/sh
# usage: page.sh [--full]    The page that `make run` ends in, made here by build/digits (--full: by `make run` itself, with gcc and make alone):
#   nothing from elsewhere; below 400 KB; ids are unique, and no link leads to nowhere; every number of the text is the one of its table, and
#   the tables say what the terminal says; every picture has a finding. Then the same in a browser, see page.py, where one is installed;
#   with --full the pages of make play and make figures, too: see play.py and figures.py.
# Before that it tries itself: pages with one fault each must be refused. Last line: N passed, N failed, N skipped.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=${BUILD:-build}
build=$(cd "$build" && pwd) || exit 2
full=
[ "${1:-}" != --full ] || full=1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }

# ---- what a page is checked for: each prints what is wrong, or nothing ----
size() { # at most 400 KB, and not empty
    bytes=$(wc -c <"$1")
    if [ "$bytes" -gt 400000 ] || [ "$bytes" -lt 60000 ]; then echo "$bytes bytes"; fi
}
elsewhere() { grep -n -i -o -E 'https?:.{0,30}|//[a-z]+\.[a-z]+.{0,20}|<(link|iframe|object|embed|img)[ >]|@import|url\(|srcset|src=.{0,30}' "$1"; }
ids() {
    sed 's/<[a-z]/\n&/g' "$1" | sed -n 's/^<[^>]* id="\([^"]*\)".*/\1/p' | sort >"$work/ids"
    uniq -d "$work/ids" | sed 's/^/twice: /'
    grep -o 'href="#[^"]*"' "$1" | sed 's/href="#\(.*\)"/\1/' | sort -u | comm -23 - "$work/ids" | sed 's/^/a link to nowhere: /'
    [ "$(wc -l <"$work/ids")" -ge 120 ] || echo "only $(wc -l <"$work/ids") ids"
}
claims() { # a number of the text is the text of the cell that it links to
    sed 's/<\(a class="n"\|td\)/\n&/g' "$1" | sed -n 's|^<td[^>]* id="\([^"]*\)">\(.*\)</td>.*|cell \1 \2|p; s|^<a class="n" href="#\([^"]*\)">\(.*\)</a>.*|claim \1 \2|p' |
        sed 's|</td>.*||; s|</a>.*||' |
        awk '{ id = $2; text = $0; sub(/^[a-z]+ [^ ]+ /, "", text) }
             $1 == "cell" { cell[id] = text; next }
             { claim[++n] = id; said[n] = text }
             END { for (i = 1; i <= n; i++) if (said[i] != cell[claim[i]]) print claim[i] ": the text says " said[i] ", the table " cell[claim[i]]
                   if (n < 45) print "only " n " numbers" }'
}
bare() { # no percentage in a sentence that is not a link to its cell
    sed -n '/<main>/,/<\/main>/p' "$1" | tr '\n' ' ' | sed 's/<p[ >]/\n&/g' | sed -n 's|^<p\(.*\)|\1|p' | sed 's|</p>.*||; s|<a class="n"[^>]*>[^<]*\(<sup>[^<]*</sup>\)*</a>||g' |
        grep -o '[0-9][^ ]* *\(&#8239;\)*%'
}
as_printed() { # the tables say what the terminal said: the columns of its table are the cells, in this order
    awk -v what="accuracy loss skipped scale weights gradients optimizer activations - zero" '
        BEGIN { n = split(what, column, " ") }
        FILENAME == ARGV[1] && / network: / { net = $1 }
        FILENAME == ARGV[1] && NF >= n && /%/ && $2 ~ /%$/ { for (i = 1; i <= n; i++) printed[net "-" $1 "-" column[i]] = $(i + 1); rows++; next }
        FILENAME == ARGV[1] { next }
        { line = $0
          while (match(line, /id="[a-z0-9-]+">[^<]*<\/td>/)) {
              one = substr(line, RSTART + 4, RLENGTH - 9); line = substr(line, RSTART + RLENGTH)
              id = substr(one, 1, index(one, "\"") - 1); text = substr(one, index(one, ">") + 1)
              gsub(/&#8239;/, "", text)
              if (text == "none") text = "-"
              if (id ~ /-scale$/ && text != "-") text = exponent(text)
              cell[id] = text
          } }
        function exponent(s, d, out, code, k) {
            split("8304 185 178 179 8308 8309 8310 8311 8312 8313", d, " ")
            for (k in d) { code = "&#" d[k] ";"; gsub(code, k - 1, s) }
            gsub(/&#8315;/, "-", s)
            return "2^" substr(s, 2)
        }
        END {
            if (rows != 12) print "the terminal has " rows " rows"
            for (id in printed) if (id !~ /--$/ && printed[id] != cell[id]) print id ": printed " printed[id] ", the page says " cell[id]
        }' "$2" "$1"
}
pictures() { # each in two forms, with a finding of its own, and whole
    n=$(grep -c '</figure>' "$1")
    [ "$n" = 8 ] || echo "$n pictures"
    [ "$(grep -c '<svg class="wide"' "$1")" = "$n" ] && [ "$(grep -c '<svg class="phone"' "$1")" = "$n" ] || echo "a picture without one of its forms"
    [ "$(grep -c '<figcaption><b>[^<]\{30,\}</b>' "$1")" = "$n" ] || echo "a picture without a finding"
    if sed -n '/<svg/,/<\/svg>/p' "$1" | grep -n '"[^"]*\(nan\|inf\)[^"]*"'; then echo "a picture with a number that is none"; fi
}
formed() { # HTML as far as libxml2 knows it: elements of HTML 5 and of SVG it does not know
    command -v xmllint >/dev/null 2>&1 || return 0
    xmllint --html --noout "$1" 2>&1 | grep 'error' | grep -v 'Tag [a-z]* invalid' | head -n 3
}
story() { for id in picture formats masters scaling dynamic bfloat memory numbers next; do grep -q "<h2 id=\"$id\">" "$1" || echo "no section $id"; done; }
wrong() { size "$1"; elsewhere "$1"; ids "$1"; claims "$1"; bare "$1"; as_printed "$1" "$2"; pictures "$1"; formed "$1"; story "$1"; }

# ---- a page of the run that docs/numbers.md shows ----
page=$work/report.html printed=$work/printed
if [ -n "$full" ]; then
    bare=${build#"$top"/}/bare # of make, which takes no path with spaces, as $work may have
    rm -rf "$build/bare"
    if (cd "$top" && PATH=/usr/bin:/bin make -s run NVCC= CUDA_HOME= BUILD="$bare") >"$printed" 2>"$work/err"; then ok
    else bad "make run: $(tail -n 3 "$work/err")"; fi
    page=$build/bare/report.html pictures=$build/bare/pictures
else
    pictures=$work/pictures
    if ${RUN_ENV:-} "$build/digits" --net both --out "$pictures" --report "$page" >"$printed" 2>"$work/err"; then ok
    else bad "digits --report: $(cat "$work/err")"; fi
fi
[ -r "$page" ] || { echo "$passed passed, $failed failed, $skipped skipped"; exit 1; }
for check in size elsewhere ids claims bare as_printed pictures formed story; do
    found=$($check "$page" "$printed")
    if [ -z "$found" ]; then ok
    else bad "$check: $(printf '%s' "$found" | head -n 5)"; fi
done
command -v xmllint >/dev/null 2>&1 || skip "HTML and SVG are not parsed: no xmllint"
for picture in "$pictures"/*.svg; do
    if grep -q 'class="finding"[^>]*>[^<]\{20,\}' "$picture" && ! grep -q '"[^"]*\(nan\|inf\)[^"]*"' "$picture"; then ok
    else bad "$picture has no finding, or is not whole"; fi
    if command -v xmllint >/dev/null 2>&1; then if xmllint --noout "$picture"; then ok; else bad "$picture is not well-formed"; fi; fi
done
# The pictures in docs/img are these; those of a training, on machines whose products have the same bits
same="formats plain_weight"
! grep -q 'Device: cpu: avx512' "$printed" || same="$same plain_loss deep_loss deep_gradients"
for name in $(for picture in $same; do echo "$picture ${picture}_phone"; done); do
    if cmp -s "$pictures/$name.svg" "$top/docs/img/$name.svg"; then ok
    else bad "docs/img/$name.svg is not the picture of make run: copy it from build/pictures"; fi
done
# The two tables of this run in docs/numbers.md, row by row; and the one figure that it takes out of the second
shown_rows() { # PAGE: mode and eight cells, without the words after a mode's name and without spaces in a cell
    awk -F ' *[|] *' '/^[|] mode [|] test accuracy/ { on = 1; next } !/^[|]/ { on = 0 } on && !/^[|]---/ {
        sub(/:.*/, "", $2)
        for (i = 2; i <= 10; i++) { gsub(/ /, "", $i); printf "%s%s", $i, i < 10 ? " " : "\n" } }' "$1"
}
printed_rows() { awk 'NF >= 11 && $2 ~ /^[0-9.]+%$/ { print $1, $2, $3, $4, $5, $6, $7, $8, $9 }' "$1"; }
rounded_away() { sed -n 's/^\(Deep setting, where FP16\|Without loss scaling FP16\).* rounds \([0-9]*\) *% of \(its\|the\) gradients.*/\2/p' "$1"; }
numbers_are_right() { # PAGE
    shown_rows "$1" >"$work/shown.rows"
    printed_rows "$printed" >"$work/printed.rows"
    [ "$(wc -l <"$work/shown.rows")" = 12 ] && cmp -s "$work/shown.rows" "$work/printed.rows" &&
        [ "$(rounded_away "$1")" = "$(rounded_away "$printed" | tail -n 1)" ]
}
if grep -q 'Device: cpu: avx512' "$printed"; then
    if numbers_are_right "$top/docs/numbers.md"; then ok
    else bad "the tables of docs/numbers.md are not those of make run: $(diff "$work/shown.rows" "$work/printed.rows")"; fi
    for fault in 's/| 0.1777 |/| 0.1778 |/' '/^| amp-static | 97/d' 's/| 2^33 |/| 2^32 |/' 's/scaling rounds 81%/scaling rounds 80%/'; do
        sed "$fault" "$top/docs/numbers.md" >"$work/numbers.md"
        if numbers_are_right "$work/numbers.md"; then bad "docs/numbers.md with a wrong figure is accepted: $fault"; else ok; fi
    done
else
    skip "the tables of docs/numbers.md: they are those of the AVX-512 path"
fi
if grep -q '^Why the loss rises, from 2.3 to [0-9]*: ' "$printed"; then ok
else bad "the terminal does not say why the loss rises"; fi

# ---- with other options the story does not hold: the page says so, and is whole ----
if ${RUN_ENV:-} "$build/digits" --net both --epochs 1 --places 1 --out "$work/other" --report "$work/other.html" >"$work/other.txt" 2>"$work/err"; then ok
else bad "digits --epochs 1 --report: $(cat "$work/err")"; fi
found=$(wrong "$work/other.html" "$work/other.txt")
if [ -z "$found" ]; then ok
else bad "a page of other options: $(printf '%s' "$found" | head -n 5)"; fi
if grep -q 'with these options there is little to see' "$work/other.html" && ! grep -q 'learn nothing' "$work/other.html"; then ok
else bad "a run in which FP16 learns is said to learn nothing"; fi

# ---- pages with one fault each ----
planted() { # NAME SED-SCRIPT
    sed "$2" "$page" >"$work/planted.html"
    if cmp -s "$page" "$work/planted.html"; then bad "planted: $1: the page has not changed"; return; fi
    if [ -n "$(wrong "$work/planted.html" "$printed")" ]; then ok
    else bad "planted: $1: not noticed"; fi
}
planted "a script from elsewhere" 's|</head>|<script src="x.js"></script></head>|'
planted "a font from elsewhere" 's|<style>|<style>@import "x.css";|'
planted "an id twice" 's|<main>|<main><i id="scale"></i>|'
planted "a link to nowhere" 's|href="#memory"|href="#memories"|'
planted "another number in the text" 's|\(class="n" href="#plain-fp16-pure-accuracy">\)[0-9]*|\1 99|'
planted "another number in text and table" 's|\(deep-bf16-accuracy">\)[0-9]*|\199|g'
planted "a percentage that no table has" 's|<p>There is room|<p>About 12.3% fit. There is room|'
planted "a picture less" '/<figure id="deep-scale">/,/<\/figure>/d'
planted "a picture for wide windows alone" 's|<svg class="phone"|<svg class="wide"|'
planted "a picture without a finding" 's|<figcaption><b>It ends[^<]*</b>|<figcaption><b></b>|'
planted "a section less" 's|<h2 id="bfloat">|<h2>|'
planted "a tag that was never opened" 's|</caption>|</b></caption>|'

# ---- in a browser ----
browser=
for name in chromium chromium-browser google-chrome; do [ -n "$browser" ] || browser=$(command -v $name); done
if [ -z "$browser" ]; then skip "the page in a browser: no chromium"
elif ! command -v python3 >/dev/null 2>&1; then skip "the page in a browser: no python3"
else
    in_browser() { # a browser that does not answer, as on a machine with much else to do, is asked once more
        python3 "$top/tests/page.py" "$browser" "$@" >"$work/log" 2>&1
        said=$?
        [ $said = 3 ] || return $said
        python3 "$top/tests/page.py" "$browser" "$@" >"$work/log" 2>&1
    }
    in_browser "$page" "$top"/docs/img/*.svg
    rc=$?
    grep '^FAIL' "$work/log"
    counts=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, .*/\1 \2/p' "$work/log")
    if [ $rc = 3 ]; then skip "the page in a browser: it does not answer"
    elif [ -n "$counts" ]; then passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* })); else bad "page.py: exit status $rc: $(tail -n 3 "$work/log")"; fi
    mkdocs=$("${PYTHON:-python3}" -c 'import material, mkdocs' 2>/dev/null && echo there)
    if [ -n "$full" ] && [ -n "$mkdocs" ]; then
        if MAKEFLAGS='' "${MAKE:-make}" -s -C "$top" site PYTHON="${PYTHON:-python3}" MKDOCS="${PYTHON:-python3} -m mkdocs" >"$work/log" 2>&1; then ok; else bad "make site: $(tail -n 3 "$work/log")"; fi
        python3 "$top/tests/site.py" "$browser" "$top/build/site" >"$work/log" 2>&1
        rc=$?
        grep '^FAIL' "$work/log"
        counts=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, .*/\1 \2/p' "$work/log")
        if [ $rc = 3 ]; then skip "the site in a browser: it does not answer"
        elif [ -n "$counts" ]; then passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* })); else bad "site.py: exit status $rc: $(tail -n 3 "$work/log")"; fi
    elif [ -n "$full" ]; then skip "the site in a browser: no mkdocs-material"
    fi
    computes() { # NAME PROGRAM...: the page of make NAME has amp.h in it, and the bits of the programs
        name=$1
        shift
        MAKEFLAGS='' "${MAKE:-make}" -s -C "$top" "$name" BUILD="${BUILD:-build}" PYTHON="${PYTHON:-python3}" NVCC= CUDA_HOME= >"$work/log" 2>&1
        rc=$?
        if [ $rc != 0 ]; then
            bad "make $name: $(tail -n 3 "$work/log")"
            return
        fi
        if grep -q '^skipped' "$work/log"; then
            skip "make $name: no compiler for WebAssembly (pip install ziglang)"
            return
        fi
        python3 "$top/tests/$name.py" "$browser" "$build/$name.html" "$@" >"$work/log" 2>&1
        rc=$?
        grep '^FAIL' "$work/log"
        counts=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, .*/\1 \2/p' "$work/log")
        if [ $rc = 3 ]; then skip "the page of make $name: the browser does not answer"
        elif [ -n "$counts" ]; then passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* })); else bad "$name.py: exit status $rc: $(tail -n 3 "$work/log")"; fi
    }
    if [ -n "$full" ]; then
        computes play "$build/digits" "$build/play"
        computes figures "$build/figures"
    fi
    if [ -n "$full" ]; then
        shown() { # NAME SED-SCRIPT: a fault that only a browser sees
            sed "$2" "$page" >"$work/planted.html"
            if cmp -s "$page" "$work/planted.html"; then bad "planted: $1: the page has not changed"; return; fi
            if in_browser "$work/planted.html"; then bad "planted: $1: not noticed"; else ok; fi
        }
        shown "an error in the script" 's|^reach();|reach(); nothing();|'
        shown "a slider that is off by one" 's|var e = p\[0\] + k;|var e = p[0] + k + 1;|'
        shown "bits that are off by one" 's|function decode(f, b) {|& b ^= 1;|'
        shown "something wider than a phone" 's|<main>|<main><p style="width: 40rem">wide</p>|'
        shown "a label outside of its picture" 's|<text x="326.0"|<text x="340.0"|'
        shown "labels on each other" 's|\(<text x="[0-9.]*" y="\)[0-9.]*\(" text-anchor="end" font-size="12">layer\)|\1100\2|'
        shown "labels too small for a phone" 's|30rem; }|20rem; width: 85%; }|'
        shown "a table that scrolls without a sign" "s|content: 'Scrolls sideways|content: '|"
        shown "pale text" 's|--soft: #555a63|--soft: #a0a5ad|'
        shown "pale text in the dark" 's|--soft: #aab0ba|--soft: #555a63|'
        shown "a button without a name" 's|>no scale</button>|></button>|'
        shown "a focus that is not marked" 's|outline: 3px solid var(--link)|outline: none|'
        shown "parts that move are shown without JavaScript" 's|id="scale" hidden|id="scale"|'
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
