# check_gpu.awk - for check_gpu.sh: the answers of lt_probe beside what the host runtime believes. Reads eight files, by turns what is believed
# and what is: of `ask`, `run`, `launches` and `shapes`. Prints a part of the page; the same goes to the file `facts`. Exit status 1: an answer is missing.
BEGIN { FS = "\t"; most = 40 }
# Entries side by side, in lines of a width that a report keeps.
function fill(entry, between) {
    if (line != "" && length(line) + length(entry) > 108) flush()
    line = line (line == "" ? "" : between) entry
}
function flush() { if (line != "") print "  " line; line = "" }
function quoted(s) { gsub(/["\\]/, "\\\\&", s); gsub(/[\001-\037]/, " ", s); return "\"" s "\"" }
FNR == 1 { file++ }
FILENAME != last { for (f = 1; f <= 8; f++) if (ARGV[f] == FILENAME) file = f; last = FILENAME }
NF < 3 { broken++; next }
file % 2 == 1 { believed[file + 1, $1, $2] = $3; status[file + 1, $1, $2] = $4; expected[file + 1]++; next }
{
    got[file]++
    if (!((file, $1, $2) in believed)) { broken++; next }
    differs = $3 != believed[file, $1, $2]
}

# ---- is there an algorithm? ----
file == 2 {
    if (!($1 in asked)) topic[++topics] = $1
    asked[$1]++
    if (!differs && $3 == "no" && $4 != status[file, $1, $2]) otherwise++
    if (!differs) next
    unlike[$1]++
    unlike_all++
    difference[$1, unlike[$1]] = $1 ": " $2 ": " ($3 == "yes" ? "taken" : $4) ", believed: " ($3 == "yes" ? status[file, $1, $2] : "taken")
}

# ---- how is it computed? The dtypes of an answer side by side ----
file == 4 {
    if (!($1 in answers)) question[++questions] = $1
    if (!(($1, $3) in which)) answer[$1, ++answers[$1]] = $3
    which[$1, $3] = which[$1, $3] " " $2
    if (differs) surprise[$1] = surprise[$1] ", believed of " $2 ": " believed[file, $1, $2]
    news += differs
    printf "answers[]\t{\"question\": %s, \"of\": %s, \"answer\": %s, \"believed\": %s, \"detail\": %s}\n", quoted($1), quoted($2), quoted($3), quoted(believed[file, $1, $2]), quoted($4) >>facts
}
function told(q,    s, k) {
    for (k = 1; k <= answers[q]; k++) s = s (k > 1 ? "," : ":") " " answer[q, k] " (" substr(which[q, answer[q, k]], 2) ")"
    return q s
}

# ---- how many kernels is it? ----
file == 6 {
    if (!($1 in count)) what[++products] = $1
    count[$1] = count[$1] "  " $2 " " $3 (differs ? " (believed: " believed[file, $1, $2] ")" : "") ($4 != "-" ? ", " $4 " us" : "")
    many += differs
    printf "launches[]\t{\"product\": %s, \"of\": %s, \"launches\": %s, \"us\": %s, \"kernels\": %s}\n", quoted($1), quoted($2), $3 == "no" ? "null" : $3, $4 == "-" ? "null" : $4, quoted($5) >>facts
}

# ---- what is rounded twice, and how exact are sums of FP8? ----
file == 8 && $1 == "rounded twice" {
    type = $2; sub(/ .*/, "", type)
    epilogue = $2; sub(/[^ ]* /, "", epilogue)
    roundings = roundings (roundings == "" ? "" : type == last_type ? ", " : "; ") (type == last_type ? "" : type " ") epilogue " " $3
    last_type = type
    of_each = $4
    printf "roundings[]\t{\"of\": %s, \"products\": %d, \"twice\": %d, \"in_parts\": %d}\n", quoted($2), $4, $3, $5 >>facts
}
file == 8 && $1 == "fp8 error" {
    sums++
    as_believed += !differs
    fast = $2 ~ /, fast$/
    number = $3 + 0 != 0
    if (number && (!(fast in error) || $3 + 0 > error[fast])) { error[fast] = $3 + 0; worst[fast] = $2 }
    printf "fp8_errors[]\t{\"of\": %s, \"log2\": %s}\n", quoted($2), number ? $3 : "null" >>facts
}
function largest(fast,    what) {
    what = worst[fast]
    sub(/, fast$/, "", what)
    return fast in error ? sprintf("2^%.2f (%s)", error[fast], what) : "none"
}

END {
    printf "cuBLASLt   %d products asked for: %d answers are not as the tests believe, and %d refusals have a different status\n", got[2], unlike_all, otherwise
    for (i = 1; i <= topics; i++) fill(sprintf("%s %d of %d", topic[i], unlike[topic[i]], asked[topic[i]]), ", ")
    flush()
    shown = 0
    for (k = 1; shown < most && k <= unlike_all; k++) # the first of each topic, then the second of each
        for (i = 1; i <= topics && shown < most; i++)
            if (k <= unlike[topic[i]]) {
                print "  " difference[topic[i], k]
                printf "differences[]\t%s\n", quoted(difference[topic[i], k]) >>facts
                shown++
            }
    if (unlike_all > shown) printf "  ... and %d more: `lt_probe ask` in the log\n", unlike_all - shown
    printf "results    of %d small products, %d not as the tests believe\n", got[4], news
    for (i = 1; i <= questions; i++) if (question[i] in surprise) print "  " told(question[i]) surprise[question[i]]
    for (i = 1; i <= questions; i++) if (!(question[i] in surprise)) fill(told(question[i]), "; ")
    flush()
    printf "launches   of %d products, by the nodes of a captured graph; %d not as the tests believe\n", got[6], many
    for (i = 1; i <= products; i++) printf "  %s:%s\n", what[i], count[what[i]]
    printf "shapes     of %d products each, rounded before a last addition or GELU: %s\n", of_each, roundings
    printf "  FP8 sums: errors up to %s of the sum of sizes, fast %s; %d of %d as the tests believe\n", largest(0), largest(1), as_believed, sums
    printf "probe\t{\"asked\": %d, \"differences\": %d, \"other_status\": %d, \"answers\": %d, \"news\": %d, \"products\": %d, \"other_launches\": %d}\n", got[2], unlike_all, otherwise, got[4], news, got[6], many >>facts
    for (f = 2; f <= 8; f += 2) if (!got[f] || got[f] != expected[f]) broken++
    exit broken > 0
}
