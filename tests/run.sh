#!/bin/sh
# The driver of `make test`: runs parts, keeps their output apart, adds up their counts.
#
#   tests/run.sh part NAME SECONDS COMMAND...   runs COMMAND, prints one line with its CPU seconds; always exit 0
#   tests/run.sh all COMMAND...                 runs COMMAND, which runs parts, and stops it when it is stopped itself
#   tests/run.sh sum NAME...                    adds up those parts; last line "N passed, N failed, N skipped"; exit 1 on a failure
#
# A part ends with its own line "N passed, N failed, N skipped"; a line "skipped: why" goes before it for what could not run.
# These count as one failure: no such line, an exit status other than 0 without a counted failure, a context with fewer checks than
# tests/expected/floor.txt says, something skipped for want of a thing that AMP_REQUIRE lists ("hostcuda nvcc": a line "skipped: ... no nvcc" or
# "... needs hostcuda ..."). Output: $LOG/NAME.log. And: tests/run.sh floor   writes tests/expected/floor.txt from the last `make test`.
#
# A slow or loaded machine fails nothing: SECONDS are CPU seconds, user and system, and a part that takes more gets a line that says so. A
# hang fails: a part is stopped when for $STALL (600) seconds neither its output grew nor its processes used 1 % of
# a processor; and when they used $SPIN (12 times SECONDS) CPU seconds while its output did not grow. Who stops run.sh stops the part.
set -u
BUILD=${BUILD:-build}
here=$(dirname "$0")
log=${LOG:-$BUILD/log}
mkdir -p "$log" || exit 1
counts='^\([A-Za-z0-9_-]*: \)\{0,1\}[0-9][0-9]* passed, [0-9][0-9]* failed, [0-9][0-9]* skipped$'

# The vector paths: a processor has some of them, and each runs as much as the others.
vector_paths='cpu-sse2 cpu-avx2 cpu-avx512 cpu-neon'

# What is below its floor in the log $2 of part $1, from lines "counts CONTEXT FILE N". A floor of cpu-vector is that of each vector path
# that is not skipped; and one that HIDE hides must be. Of the parts CONTEXT-1of3, -2of3, -3of3 of a context one has its turn (tests/today.sh);
# other contexts say that they have theirs another day.
below_floor() {
    case ${HIDE:-} in avx512) hidden=cpu-avx512 ;; avx2) hidden='cpu-avx2 cpu-avx512' ;; *) hidden='' ;; esac
    awk -v part="$1" -v vectors="$vector_paths" -v hidden="$hidden" '
        function look(context, file, least) {
            if (n[context, file] < least)
                printf "%s %s ran %d checks, the floor is %d; ", context, file, n[context, file], least
        }
        function whole(context) { sub(/-[0-9]+of[0-9]+$/, "", context); return context }
        FILENAME == ARGV[1] && $1 == "counts" { n[$2, $3] = $4; here[$2]; here[whole($2)] }
        FILENAME == ARGV[1] && $2 == "skipped:" { gone[$1] = 1 }
        FILENAME == ARGV[1] && /skipped: it has its turn another day$/ { later[$1] }
        FILENAME == ARGV[1] || $1 != part { next }
        $2 in later || (whole($2) != $2 && whole($2) in here && !($2 in here)) { next }
        $2 != "cpu-vector" { look($2, $3, $4); next }
        {
            count = split(vectors, path, " ")
            for (i = 1; i <= count; i++) if (!gone[path[i]]) look(path[i], $3, $4)
        }
        END {
            count = part == "unit" ? split(hidden, path, " ") : 0
            for (i = 1; i <= count; i++) if (!gone[path[i]]) printf "%s ran, and HIDE hides it; ", path[i]
        }' "$2" "$here/expected/floor.txt"
}

# Lines of the log $1 that skip for want of something in AMP_REQUIRE.
required_skips() {
    for required in ${AMP_REQUIRE:-}; do
        sed -n "s/.*skipped: \(.*\(no\|needs\) $required.*\)/AMP_REQUIRE=$required, but: \1; /p" "$1" | head -n 1 | tr -d '\n'
    done
}

# Writes tests/expected/floor.txt: 20 % below what the parts of the last `make test` ran, whatever vector paths this processor has; half of
# what ran for a part of a context, where one test of random size weighs more. What had no turn in it keeps its floor.
floor() {
    {
        sed '/^#/!d' "$here/expected/floor.txt"
        for part in unit hostcuda-suite; do
            awk -v part="$part" -v vectors=" $vector_paths " '
                $1 != "counts" || $4 == 0 { next }
                index(vectors, " " $2 " ") { $2 = "cpu-vector" }
                !(($2, $3) in least) { order[++rows] = $2 " " $3; least[$2, $3] = $4 }
                $4 < least[$2, $3] { least[$2, $3] = $4 }
                $2 == "cpu-vector" { vector = 1 }
                END {
                    for (i = 1; i <= rows; i++) {
                        split(order[i], row, " ")
                        checks = int(least[row[1], row[2]] * (row[1] ~ /-[0-9]+of[0-9]+$/ ? 0.5 : 0.8))
                        print part, order[i], checks ? checks : 1
                    }
                    exit rows == 0 || (part == "unit" && !vector)
                }' "$log/$part.log" || { echo "floor: $part has not run, or on no vector path: nothing is written" >&2; return 1; }
            awk -v part="$part" '
                FILENAME == ARGV[1] && /skipped: it has its turn another day$/ { later[$1] }
                FILENAME == ARGV[1] { ran[$2]; next }
                $1 == part && !($2 in ran) && ($2 in later || $2 ~ /-[0-9]+of[0-9]+$/)' "$log/$part.log" "$here/expected/floor.txt"
        done
    } >"$log/floor" && mv "$log/floor" "$here/expected/floor.txt"
}

# CPU seconds that the shell's `times` in the file $1 has for what it waited for.
children() { awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, "m"); s += 60 * t[1] + t[2] } } END { printf "%d", s + 0.99 }' "$1"; }

# The family of process $1: it, its session, their children and the sessions of those. A line for each: its number and its CPU time, with
# that of the children that it has waited for, in ticks of the clock. Without /proc: nothing.
family() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v first="$1" '
        { n = $1; sub(/.*\) /, ""); parent[n] = $2; session[n] = $4; time[n] = $12 + $13 + $14 + $15 }
        END {
            ours[first]
            do {
                found = 0
                for (n in parent)
                    if (!(n in known) && (n == first || session[n] in ours || parent[n] in known)) {
                        known[n]
                        ours[session[n] == n ? n : first]
                        found = 1
                    }
            } while (found)
            for (n in known) print n, time[n]
        }'
}
cpu_time() { family "$1" | awk -v tick="$(getconf CLK_TCK 2>/dev/null || echo 100)" '{ t += $2 } END { printf "%d", t * 100 / tick }'; } # hundredths of s
end_family() { # PROCESS SIGNAL
    for process in $(family "$1" | cut -d' ' -f1); do kill -s "$2" "$process" 2>/dev/null; done
    kill -s "$2" "$1" 2>/dev/null
}
stop() { # PROCESS SECONDS: its family, in order, so that scripts remove their files; then by force
    end_family "$1" TERM
    left=$2
    while [ "$left" -gt 0 ] && { kill -0 "$1" 2>/dev/null || [ -n "$(family "$1")" ]; }; do
        left=$((left - 1))
        sleep 1
    done
    end_family "$1" KILL
}
# Runs a command in a session of its own: what has lost its parent is known by it.
alone() {
    if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
    exec "$@"
}
nap() { # SECONDS: unless this shell is stopped
    sleep "$1" &
    napping=$!
    trap 'kill "$napping"; exit' TERM
    wait "$napping"
}
starter=${STARTER:-$PPID} # a make, whose process make test gives
orphaned() { ! kill -0 "$starter" 2>/dev/null && [ ! -d "/proc/$starter" ]; }

# Stops the family of $1 when it hangs, and says why in the file $3; and when this is orphaned. Its output is the file $2, its limit $4.
watch() {
    stall=${STALL:-600} spin=${SPIN:-$((12 * $4))} size=-1 quiet=0 said=0 used=0
    pause=$(((stall + 59) / 60))
    [ -n "$(family "$1")" ] || stall=$((6 * stall)) # no /proc: there is only the output to look at
    while nap "$pause" && kill -0 "$1" 2>/dev/null; do
        quiet=$((quiet + pause)) cpu=$(cpu_time "$1") grown=$(($(wc -c <"$2")))
        if [ "$grown" != "$size" ]; then
            size=$grown said=$cpu used=$cpu quiet=0
        elif [ "$cpu" -lt "$used" ] || [ $((cpu - used)) -gt "$stall" ]; then # less: a process has ended; more than 1 %
            used=$cpu quiet=0
        fi
        if [ "$quiet" -ge "$stall" ]; then
            echo "it hangs: no output for $quiet s, and hardly any CPU time" >"$3"
        elif [ $(((cpu - said) / 100)) -gt "$spin" ]; then
            echo "it hangs: no output for $(((cpu - said) / 100)) CPU seconds" >"$3"
        elif ! orphaned; then
            continue
        fi
        stop "$1" 5
    done
}

part() {
    name=$1 limit=$2
    shift 2
    out=$log/$name.log hung=$log/$name.hung
    rm -f "$log/$name.sum" "$hung"
    command='' watcher='' # a signal may come before they are there
    trap '[ -z "$command" ] || stop "$command" 5; [ -z "$watcher" ] || kill "$watcher" 2>/dev/null; exit 143' HUP INT TERM
    alone "$@" >"$out" 2>&1 </dev/null &
    command=$!
    watch "$command" "$out" "$hung" "$limit" >/dev/null 2>&1 &
    watcher=$!
    wait "$command"
    rc=$?
    trap - HUP INT TERM
    kill "$watcher" 2>/dev/null
    times >"$log/$name.times" # not in a pipe: a subshell has no children yet
    seconds=$(children "$log/$name.times")
    line=$(grep "$counts" "$out" | tail -n 1)
    # shellcheck disable=SC2046 # three words are wanted
    set -- $(printf '%s\n' "${line:-0 0 0}" | sed 's/^[^ ]*: //; s/[^0-9 ]//g')
    passed=$1 failed=$2 skipped=$3 why=
    if [ -s "$hung" ]; then
        why="$(cat "$hung")"
    elif [ -z "$line" ]; then
        why="exit status $rc and no line 'N passed, N failed, N skipped'"
    elif [ "$rc" != 0 ] && [ "$failed" = 0 ]; then
        why="exit status $rc, though nothing failed by its own count"
    elif [ "$passed" = 0 ] && [ "$failed" = 0 ]; then
        [ "$skipped" -gt 0 ] || why="nothing passed, failed or was skipped"
    else
        why=$(below_floor "$name" "$out")
    fi
    why=$why$(required_skips "$out")
    [ -z "$why" ] || failed=$((failed + 1))
    printf '%-16s %6d passed, %d failed, %d skipped  %4d CPU s\n' "$name" "$passed" "$failed" "$skipped" "$seconds"
    grep -i -E '(^| )skipped: ' "$out" | sort -u | sed -n 's/^ */             /; 1,6p'
    [ "$seconds" -le "$limit" ] || echo "             slow: $seconds CPU seconds, where $limit are enough elsewhere; no failure"
    [ -z "$why" ] || echo "             FAILED: $why"
    if [ "$failed" -gt 0 ]; then
        echo "             ---- from $out:"
        { grep -n -E 'FAIL|[Ee]rror|Sanitizer|warning:' "$out" | head -n 15; echo ...; tail -n 3 "$out"; } | sed 's/^/             /'
    fi
    echo "$passed $failed $skipped $seconds" >"$log/$name.sum"
    return 0
}

all() {
    command='' watcher=''
    trap '[ -z "$command" ] || stop "$command" 20; [ -z "$watcher" ] || kill "$watcher" 2>/dev/null; exit 143' HUP INT TERM
    alone "$@" </dev/null &
    command=$!
    (while nap 10 && ! orphaned; do :; done && stop "$command" 20) >/dev/null 2>&1 &
    watcher=$!
    wait "$command"
    rc=$?
    trap - HUP INT TERM
    kill "$watcher" 2>/dev/null
    times >"$log/all.times"
    return $rc
}

sum() {
    passed=0 failed=0 skipped=0 seconds=0
    for name in "$@"; do
        if [ -r "$log/$name.sum" ]; then
            read -r a b c d <"$log/$name.sum"
        else
            echo "$name did not finish"
            a=0 b=1 c=0 d=0
        fi
        passed=$((passed + a)) failed=$((failed + b)) skipped=$((skipped + c)) seconds=$((seconds + d))
    done
    if [ -r "$log/all.times" ]; then # with what the parts share, which make builds before them
        echo "$(children "$log/all.times") CPU seconds, $seconds of them in the parts${AMP_DAY:+; AMP_DAY=$AMP_DAY (tests/today.sh)}"
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

case ${1:-} in
part | all | sum | floor)
    verb=$1
    shift
    "$verb" "$@"
    ;;
*)
    sed -n '2,17s/^# \{0,1\}//p' "$0"
    exit 1
    ;;
esac
