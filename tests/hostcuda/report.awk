# report.awk - what the reports of a program say, for run.sh: each finding once, with the first place in it that is a file of the
# user's, where it was (kernel, block, thread), and one sentence on what to do.
#
# awk -v rc=STATUS -v top=FOLDER -v check=VARIANT -v json=0|1 -f report.awk FILE.err
# text: FILE:LINE: WHAT, then indented lines; json: one object a line.

function place(line,    n, i, word, words) { # the first FILE:LINE in it that is the user's
    n = split(line, words, /[ (),;]+/)
    for (i = 1; i <= n; i++) {
        word = words[i]
        sub(/:$/, "", word)
        if (word !~ /^[^:]+\.[A-Za-z+]+:[0-9]+(:[0-9]+)?$/) continue
        if (word ~ /^(\/usr|\.\.\/sysdeps|\.+\/csu)\// || word ~ /(^|\/)(hcu_[a-z0-9]+\.(cpp|h|inc)|hostcuda[a-z_]*\.h|mma\.h|curand_[a-z0-9_]+\.h):/) continue
        if (word ~ /libsanitizer|sanitizer_common|vg_replace|compiler-rt|\/include\/(cccl|cuda|crt)\//) continue
        if (match(word, /:[0-9]+:[0-9]+$/)) sub(/:[0-9]+$/, "", word)
        if (index(word, top "/") == 1) word = substr(word, length(top) + 2)
        return word
    }
    return ""
}
function advice(text) {
    if (text ~ /data race.* by the host/) return "Synchronise (stream, event, device) before the host touches what the device reads or writes."
    if (text ~ /data race/ && text ~ /copy, a fill or a product/) return "Synchronise (stream, event, device) between the kernel and the copy or product."
    if (text ~ /data race/ && other_stream)
        return "Order the two streams: cudaEventRecord behind the first kernel, cudaStreamWaitEvent before the second; or use one stream."
    if (text ~ /data race.* by an atomic/)
        return "An atomic does not protect a plain access of the same word: make both atomic. A plain read that only begins a loop of atomicCAS does no harm, for the loop checks it; atomicCAS(p, 0, 0) in its place is not reported."
    if (text ~ /data race/ && shared_memory) return "Put __syncthreads() (or __syncwarp() within a warp) between the two accesses, reached by all threads."
    if (text ~ /data race/) return "Let one thread own the element, use an atomic, or split the kernel in two: blocks have no order among themselves. A last block that takes what the others wrote needs __threadfence() before its atomic and after it."
    if (text ~ /has not waited/) return "Synchronise (stream, event, device) before the host touches what a copy writes."
    if (text ~ /heap-buffer-overflow|past the end|before a device buffer|overrun|underrun|use-after-poison|index .* out of bounds/)
        return "Compare the index with the size of the array: the grid has more threads than the array has elements, or the array is too short."
    if (text ~ /uninitialised/) return "Write the memory before it is read: cudaMemset or a copy for a buffer, a loop and __syncthreads() for shared memory."
    if (text ~ /leak: host memory/) return "Free what malloc or new gave."
    if (text ~ /leak: /) return "Free it: cudaFree, cudaFreeHost, cudaStreamDestroy, cudaEventDestroy, or the handle's Destroy."
    if (text ~ /host code touches device memory/) return "Copy it with cudaMemcpy first: a pointer from cudaMalloc means nothing to the CPU."
    if (text ~ /host pointer/) return "Give the kernel a pointer from cudaMalloc or cudaMallocManaged; copy the data there with cudaMemcpy."
    if (text ~ /outside the range/) return "Test for NaN and limit the value before the cast: C++ leaves the result open, a GPU gives the nearest or 0, a CPU another."
    if (text ~ /misaligned/) return "A float4 needs an address that 16 divides (float2: 8): begin at a multiple, and let the row length be one."
    if (text ~ /different barriers|deadlock/) return "Each thread of the block must reach the same __syncthreads(): take it out of the branch, or let no thread return before it."
    if (text ~ /not in its own mask|deadlock/) return "Name in the mask exactly the lanes that come here: 0xffffffff only where the whole warp does."
    if (text ~ /the launch of .* failed/) return "Look at cudaGetLastError() after each launch; a block has at most 1024 threads."
    if (text ~ /freed/) return "Free a buffer once, after the last use of it."
    if (text ~ /is not supported/) return "docs/hostcuda.md has the table of what runs."
    if (text ~ /before the copy ran|before its cudaMallocAsync/) return "Synchronise the stream before you use what it makes."
    return ""
}
function tell(at, text) {
    if (text ~ /^leak: / && rc != 0 && rc != 23) return # a program that gave up frees nothing
    if ((at, text) in told) {
        last = told[at, text]
        return
    }
    last = ++findings
    told[at, text] = last
    where_[last] = at
    what_[last] = text
}
function flush() {
    if (what != "") tell(where != "" ? where : "(no line)", what)
    what = where = ""
}
function begin(text) {
    flush()
    what = text
}
function rest(pattern,    text) { # of the line, after what the pattern matches
    text = $0
    sub(".*" pattern, "", text)
    return text
}
function end_race() {
    if (race == "") return
    if (first != "") tell(first, race ", " first_kind " here; the other side is a copy, a fill or a product")
    race = ""
}
/HOSTCUDA UNDEFINED AT: / {
    undefined_at = rest("HOSTCUDA UNDEFINED AT: ")
    next
}
/HOSTCUDA AT: / {
    flush_later = rest("HOSTCUDA AT: ")
    if (what != "") pending_at = flush_later
    else if (last) at_[last] = flush_later
    next
}
/HOSTCUDA PENDING: / {
    late = ": " rest("HOSTCUDA PENDING: ") " writes there, and the host has not waited for it"
    if (what != "") what = what late
    else if (last) what_[last] = what_[last] late
    next
}
/HOSTCUDA OTHER: / {
    if (last && !(last in other_)) other_[last] = rest("HOSTCUDA OTHER: ")
    next
}
/HOSTCUDA BUG: / {
    begin(rest("HOSTCUDA BUG: "))
    sub(/; launched at$/, "", what)
    where = place($0)
    next
}
/HOSTCUDA LEAK: / {
    leak = rest("HOSTCUDA LEAK: ")
    has_place = sub(/,* allocated at$/, "", leak)
    begin("leak: " leak)
    if (!has_place) flush()
    next
}
/ERROR: AddressSanitizer/ {
    address = rest("AddressSanitizer: ")
    sub(/ (on|at pc) .*/, "", address)
    if ((what ~ /^ / || what == "") && address !~ /^ABRT/) begin("address: " address)
    next
}
/runtime error: / {
    begin(rest("runtime error: "))
    where = place($1)
    if (where != "") {
        flush()
        if (undefined_at != "") at_[last] = undefined_at
    }
    undefined_at = ""
    next
}
/^(Direct|Indirect) leak of / {
    begin("leak: host memory, " $4 " bytes")
    next
}
/WARNING: ThreadSanitizer: / {
    flush()
    end_race()
    race = rest("ThreadSanitizer: ")
    sub(/ \(pid.*/, "", race)
    first = ""
    next
}
race != "" && /(Write|Read|Atomic write|Atomic read|write|read) of size/ {
    pending = 1
    kind = tolower($0) ~ /write/ ? "written" : "read"
    if (tolower($0) ~ /atomic/) kind = kind " by an atomic"
    if (/by main thread/) kind = kind " by the host"
    next
}
race != "" && pending && place($0) != "" {
    pending = 0
    if (first != "") {
        tell(first, race ", " first_kind " here, " kind " at " place($0))
        race = ""
        next
    }
    first = place($0)
    first_kind = kind
    next
}
race != "" && /^SUMMARY/ {
    end_race()
    next
}
/WARNING: MemorySanitizer: / {
    begin("uninitialised: " rest("MemorySanitizer: "))
    next
}
/^==[0-9]+== [A-Z].*[Uu]ninitialised/ {
    begin("uninitialised: " rest("==[0-9]+== "))
    next
}
/^==[0-9]+== Invalid (read|write)/ {
    begin(rest("==[0-9]+== "))
    next
}
/Assertion .* failed/ {
    tell(place($0) != "" ? place($0) : "(no line)", "assertion: " $0)
    next
}
what != "" && where == "" && place($0) != "" {
    where = place($0)
    flush()
    if (pending_at != "") at_[last] = pending_at
    pending_at = ""
    next
}
function quoted(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/"/, "\\\"", s)
    gsub(/[\001-\037]/, " ", s)
    return "\"" s "\""
}
function pair(name, value) { return value == "" ? "" : ", " quoted(name) ": " quoted(value) }
function object(i,    file, line, s) {
    file = where_[i]
    line = 0
    if (match(file, /:[0-9]+$/)) {
        line = substr(file, RSTART + 1)
        file = substr(file, 1, RSTART - 1)
    }
    s = "{\"check\": " quoted(check) ", \"file\": " quoted(file) ", \"line\": " line ", \"what\": " quoted(what_[i])
    return s pair("at", at_[i]) pair("other", other_[i]) pair("advice", advice(what_[i])) "}"
}
END {
    flush()
    if (pending_at != "" && last) at_[last] = pending_at
    end_race()
    for (i = 1; i <= findings; i++) {
        other_stream = other_[i] ~ /another kernel/
        shared_memory = other_[i] ~ /shared memory/
        if (json) {
            print object(i)
            continue
        }
        print where_[i] ": " what_[i]
        if (at_[i] != "") print "    in " at_[i]
        if (other_[i] != "") print "    the other access: " other_[i]
        if (advice(what_[i]) != "") print "    " advice(what_[i])
    }
}
