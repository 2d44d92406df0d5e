# labs_wrong.awk - makes the wrong solutions of a lab from its solution: awk -v to=FOLDER/wrong- -v extension=c -f labs_wrong.awk solution.c wrong.txt
# wrong.txt says how it is written. The solution's first line is a comment; the sentence takes its place. A change whose lines do not
# stand in the solution once is told on stderr, and the exit status is 1.
function fail(why) {
    print "wrong.txt: " name ": " why > "/dev/stderr"
    failed = 1
}
# Where the old lines stand in `text`, after the change before; 0: nowhere, -1: more than once.
function place(    i, k, at) {
    at = 0
    for (i = from; i + n_old - 1 <= n_text; i++) {
        for (k = 0; k < n_old && text[i + k] == old[k]; k++)
            continue
        if (k < n_old) continue
        if (at) return -1
        at = i
    }
    return at
}
function change(    at, k, grown, n) {
    if (!n_old && !n_new) return
    at = n_old ? place() : 0
    if (at < 1) {
        fail((at ? "more than once: " : "not in the solution: ") old[0])
        return
    }
    n = 0
    for (k = 1; k < at; k++) grown[++n] = text[k]
    for (k = 0; k < n_new; k++) grown[++n] = added[k]
    for (k = at + n_old; k <= n_text; k++) grown[++n] = text[k]
    for (k = 1; k <= n; k++) text[k] = grown[k]
    n_text = n
    from = at + n_new
    n_old = n_new = 0
}
function finish(    k, file, first, last) {
    if (name == "") return
    change()
    file = to name "." extension
    for (k = 0; k < n_said; k++) {
        first = extension == "txt" ? "# " : k ? "   " : "/* "
        last = extension != "txt" && k == n_said - 1 ? " */" : ""
        print first said[k] last > file
    }
    for (k = 2; k <= n_text; k++) print text[k] > file
    close(file)
    name = ""
}
FNR == NR { solution[++n_solution] = $0; next }
/^#/ && name == "" { next }
/^$/ { finish(); next }
name == "" {
    name = $0
    n_text = n_solution
    for (k = 1; k <= n_text; k++) text[k] = solution[k]
    n_old = n_new = n_said = 0
    from = 2
    next
}
/^>/ { said[n_said++] = substr($0, 3); next }
/^\.\.\.$/ { change(); next }
/^-/ { old[n_old++] = substr($0, 3); next }
/^\+/ { added[n_new++] = substr($0, 3); next }
{ fail("not a line of a block: " $0) }
END {
    finish()
    exit failed
}
