#!/bin/sh
# labs_class.sh - the labs for a class: docs/teaching.md.
#
#   labs_class.sh grade DIR JSON          runs each lab of which a file is in DIR (as NN-topic/lab.c, or by its own name if there is one
#                                         lab only) and writes what Gradescope reads as results.json
#   labs_class.sh gradescope ZIP [--seed WORD] [N]...   an autograder for Gradescope that grades these labs (all of them without N)
#   labs_class.sh classroom DIR [--seed WORD] [N]...    the students' folder with a workflow for GitHub Classroom
#
# A lab gives 10 points, or none. --seed: the variant of a class, the same for the same word (labs.sh export). Reads what labs.sh reads.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
top=$(cd "$here/.." && pwd)
labs=$top
[ ! -d "$top/examples/labs" ] || labs=$top/examples/labs
points=10
die() { echo "labs_class.sh: $*" >&2; exit 2; }
column() { awk -F'|' -v n="$1" -v c="$2" '!/^ *#/ && $1 + 0 == n { gsub(/^ +| +$/, "", $c); print $c }' "$labs/labs.txt"; }
numbers() { awk -F'|' '!/^ *#/ && NF == 6 { print $1 + 0 }' "$labs/labs.txt"; }
# The labs that were asked for, one in a line.
chosen() {
    for n in "$@"; do [ -n "$(column "$n" 2)" ] || die "there is no lab $n"; done
    if [ $# = 0 ]; then numbers; else printf '%s\n' "$@"; fi
}

# ---- grade ----
json_text() { awk 'BEGIN { ORS = "" } { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); gsub(/[\001-\037\177]/, " "); print (NR > 1 ? "\\n" : "") $0 }'; }
# handed_in NUMBER DIR: the file, or nothing
handed_in() {
    name=$(column "$1" 3)
    for file in "$2/$(column "$1" 2)/$name" "$2/$name"; do
        [ ! -r "$file" ] || { echo "$file"; return; }
    done
}
grade() { # DIR JSON
    [ -d "${1:-}" ] && [ -n "${2:-}" ] || die "grade which folder, into which file?"
    work=$(mktemp -d) || exit 2
    graded=${LABS:-$(numbers)} comma=
    for n in $graded; do
        file=$(handed_in "$n" "$1") score=0
        if [ -z "$file" ]; then echo "lab $n: no $(column "$n" 2)/$(column "$n" 3) was handed in" >"$work/said"
        elif "$here/labs.sh" run "$n" "$file" >"$work/said" 2>&1; then score=$points
        fi
        printf '%s\n  {"name": "Lab %s: %s", "score": %s, "max_score": %s, "output": "%s"}' \
            "$comma" "$n" "$(column "$n" 5 | json_text)" "$score" "$points" "$(json_text <"$work/said")"
        tail -n 1 "$work/said" >&2
        comma=,
    done >"$work/tests"
    printf '{"stdout_visibility": "hidden", "tests": [%s\n]}\n' "$(cat "$work/tests")" >"$2.new" && mv "$2.new" "$2"
    rm -rf "$work"
}

# ---- exports ----
gradescope() { # ZIP [N]...
    zip=${1:-}
    [ -n "$zip" ] || die "gradescope into which file?"
    command -v zip >/dev/null 2>&1 || command -v python3 >/dev/null 2>&1 || die "zip or python3 is needed"
    shift
    seed=
    if [ "${1:-}" = --seed ]; then seed=${2:?"--seed WORD"} && shift 2; fi
    these=$(chosen "$@" | tr '\n' ' ')
    work=$(mktemp -d) || exit 2
    "$here/labs.sh" export "$work/grader/labs" ${seed:+--seed "$seed"} >/dev/null || exit 2
    cat >"$work/grader/setup.sh" <<'SH'
#!/bin/sh
apt-get update && apt-get install -y gcc g++ make python3-pip
cd /autograder/source/labs || exit 1
pip3 install --target cuda --no-deps 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*'
tools/labs.sh runtime
SH
    cat >"$work/grader/run_autograder" <<SH
#!/bin/sh
mkdir -p /autograder/results
LABS='${these% }' /autograder/source/labs/tools/labs_class.sh grade /autograder/submission /autograder/results/results.json
SH
    chmod +x "$work/grader/setup.sh" "$work/grader/run_autograder"
    case $zip in /*) ;; *) zip=$PWD/$zip ;; esac
    rm -f "$zip"
    if command -v zip >/dev/null 2>&1; then (cd "$work/grader" && zip -qr "$zip" .)
    else (cd "$work/grader" && python3 -m zipfile -c "$zip" ./*); fi || exit 1
    rm -rf "$work"
    echo "the autograder for Gradescope: $zip"
}
classroom() { # DIR [N]...
    to=${1:-}
    [ -n "$to" ] || die "classroom into which folder?"
    shift
    seed=
    if [ "${1:-}" = --seed ]; then seed=${2:?"--seed WORD"} && shift 2; fi
    these=$(chosen "$@")
    "$here/labs.sh" export "$to" ${seed:+--seed "$seed"} >/dev/null || exit 2
    mkdir -p "$to/.github/workflows"
    {
        printf '%s\n' 'name: Autograding Tests' 'on: [push, repository_dispatch, workflow_dispatch]' \
            'permissions: { checks: write, actions: read, contents: read }' 'jobs:' '  run-autograding-tests:' '    runs-on: ubuntu-latest' \
            "    if: github.actor != 'github-classroom[bot]'" '    steps:' '      - uses: actions/checkout@v4' \
            "      - run: pip install --target cuda --no-deps 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
        for n in $these; do
            printf '%s\n' "      - id: lab-$n" '        uses: classroom-resources/autograding-command-grader@v1' '        with:' \
                "          test-name: 'Lab $n: $(column "$n" 5)'" "          command: 'tools/labs.sh run $n'" '          timeout: 10' "          max-score: $points"
        done
        printf '%s\n' '      - uses: classroom-resources/autograding-grading-reporter@v1' '        env:'
        for n in $these; do printf '          LAB-%s_RESULTS: "${{ steps.lab-%s.outputs.result }}"\n' "$n" "$n"; done
        printf '%s\n' '        with:' "          runners: $(echo "$these" | sed 's/^/lab-/' | paste -s -d, -)"
    } >"$to/.github/workflows/classroom.yml"
    echo "the folder for GitHub Classroom: $to"
}

verb=${1:-}
[ $# = 0 ] || shift
case $verb in
grade | gradescope | classroom) "$verb" "$@" ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
