/* hcu_memory.cpp - device and pinned memory.
 *
 * Every device buffer is a mapping of its own: guard pages on both sides, the end flush against the rear guard up to
 * CUDA's 256-byte alignment, canaries (redzones under ASan) in the rest.  New memory is filled with 0xFF, a NaN in
 * f32, f16, bf16, e4m3 and e5m2.  A device's memory is PROT_NONE except while that device works, so host code and the
 * other devices cannot touch it by accident; freed buffers stay unmapped in a quarantine.  A SIGSEGV handler turns
 * each of these faults into a sentence. */
#include "hcu_core.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace hcu {
namespace {

constexpr size_t kPage = 4096, kAlign = 256;
constexpr unsigned char kCanary = 0xfe; /* read by mistake: huge as f32 and bf16, a NaN as f16 */
constexpr size_t kQuarantineBytes = size_t(1) << 30, kQuarantineCount = 4096;

enum ChunkState { RESERVED, LIVE, FREED }; /* reserved: its cudaMallocAsync has not run yet */
struct Chunk {
    char *base, *data; /* the mapping with its guard pages; what the program got */
    size_t total, size;
    int id, device;
    ChunkState state;
    Trace trace;
    char *inner() const { return base + kPage; }
    size_t inner_size() const { return total - 2 * kPage; }
};
struct Pinned {
    size_t size;
    bool managed;
    Trace trace;
};

/* never destroyed: leak checkers and static destructors of the program may still ask */
Map<uintptr_t, Chunk> &g_chunks = *new Map<uintptr_t, Chunk>;
Map<uintptr_t, Pinned> &g_pinned = *new Map<uintptr_t, Pinned>;
Map<uintptr_t, size_t> &g_symbols = *new Map<uintptr_t, size_t>; /* __device__ variables whose address was asked for */
std::deque<uintptr_t> &g_quarantine = *new std::deque<uintptr_t>;
size_t g_quarantine_bytes;
size_t g_used[kMaxDevices], g_limit[kMaxDevices];
int g_inside[kMaxDevices], g_next_id = 1;
bool g_protect = true;

Chunk *find(const void *p) {
    auto *e = g_chunks.at_or_below(uintptr_t(p));
    return e && static_cast<const char *>(p) < e->value.base + e->value.total ? &e->value : nullptr;
}
bool accessible(const Chunk &c) { return c.state == LIVE && (!g_protect || g_inside[c.device] > 0); }
void apply_protection(Chunk &c) {
    if (c.state != FREED) mprotect(c.inner(), c.inner_size(), accessible(c) ? PROT_READ | PROT_WRITE : PROT_NONE);
}
void poison(char *p, size_t n) {
    static const char *const fill = getenv("HCU_FILL"); /* 0: as a GPU's fresh memory often is, by luck */
    memset(p, fill ? atoi(fill) : 0xff, n);
    mark_undefined(p, n);
}
bool is_canary(const char *p) { return static_cast<unsigned char>(*p) == kCanary; }
void check_rear(const Chunk &c) {
    for (const char *p = c.data + c.size; p < c.inner() + c.inner_size(); p++)
        if (!is_canary(p)) {
            bug("device buffer #%d of %zu bytes was overrun: byte %td past its end", c.id, c.size,
                p - (c.data + c.size));
            print_trace(c.trace);
            return;
        }
}
void check_front(const Chunk &c) {
    for (const char *p = c.inner(); p < c.data; p++)
        if (!is_canary(p)) {
            bug("device buffer #%d of %zu bytes was underrun by %td bytes", c.id, c.size, c.data - p);
            print_trace(c.trace);
            return;
        }
}

void on_fault(int, siginfo_t *info, void *) {
    static const char *const what[] = {
        "use of a buffer before its cudaMallocAsync ran", "", "use of a freed device buffer"};
    if (Chunk *c = find(info->si_addr)) {
        ptrdiff_t offset = static_cast<char *>(info->si_addr) - c->data;
        const char *text = c->state != LIVE ? what[c->state]
            : offset < 0                    ? "access before a device buffer"
            : size_t(offset) >= c->size     ? "access past the end of a device buffer"
            : in_kernel()                   ? "access to another device's memory"
                                            : "host code touches device memory";
        char line[300];
        int n = snprintf(line, sizeof line, "HOSTCUDA BUG: %s: %p is byte %td of buffer #%d (%zu bytes, device %d)%s\n",
            text, info->si_addr, offset, c->id, c->size, c->device, in_kernel() ? ", inside a kernel" : "");
        if (n > 0 && write(2, line, size_t(n)) < 0) _exit(1);
    }
    print_place();
    print_stack();
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    abort();
}
} // namespace

/* ---- places in the source: by addr2line when HCU_LINES is set, for it knows of inlined functions ----------------- */

static bool executable_is_relocated() { /* position-independent: addresses in the file begin at 0 */
    return reinterpret_cast<const ElfW(Ehdr) *>(getauxval(AT_PHDR) & ~uintptr_t(kPage - 1))->e_type == ET_DYN;
}
static bool print_lines(void *const *frames, int count) {
    char exe[512] = "", command[2048] = "";
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (length <= 0 || memchr(exe, '\'', size_t(length))) return false;
    int n = snprintf(command, sizeof command, "addr2line -C -f -p -i -e '%s'", exe), told = 0;
    for (int i = 0; i < count && n < int(sizeof command) - 64; i++) {
        Dl_info object;
        if (!dladdr(frames[i], &object) || !object.dli_fname || strstr(object.dli_fname, ".so")) continue;
        uintptr_t base = executable_is_relocated() ? uintptr_t(object.dli_fbase) : 0;
        unsigned long offset = uintptr_t(frames[i]) - base - 1; /* the call, not what comes after it */
        n += snprintf(command + n, sizeof command - size_t(n), " 0x%lx", offset);
        told++;
    }
    snprintf(command + n, sizeof command - size_t(n), " >&2");
    fflush(stderr);
    return told && system(command) == 0;
}
void print_stack() {
#if HCU_SYMBOLIZES
    __sanitizer_print_stack_trace();
#else
    void *frames[32];
    print_backtrace(frames, backtrace(frames, 32));
#endif
}
void print_backtrace(void *const *frames, int count) {
    if (!getenv("HCU_LINES") || !print_lines(frames, count)) backtrace_symbols_fd(frames, count, 2);
}

Trace trace_here() {
    Trace t;
    t.count = backtrace(t.frame, 12);
    return t;
}
void print_trace(const Trace &t) { print_backtrace(t.frame + 2, t.count > 2 ? std::min(t.count - 2, 6) : 0); }

void memory_init() {
    for (size_t &l : g_limit)
        if (!l) l = size_t(4) << 30;
    static char stack[65536];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}

constexpr size_t kLarge = size_t(4) << 20;
void *device_alloc(int device, size_t bytes, bool live) {
    if (bytes > g_limit[device] - std::min(g_limit[device], g_used[device])) return nullptr;
    size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign, inner = (rounded + kPage - 1) / kPage * kPage;
    size_t total = inner + 2 * kPage;
    void *m = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) return nullptr;
    if (total >= kLarge) madvise(m, total, MADV_HUGEPAGE); /* opening, closing and filling it: a 500th of the pages */
    char *base = static_cast<char *>(m);
    Chunk &c = g_chunks[uintptr_t(base)];
    c = Chunk{
        base, base + kPage + inner - rounded, total, bytes, g_next_id++, device, live ? LIVE : RESERVED, trace_here()};
    g_used[device] += bytes;
    mprotect(c.inner(), inner, PROT_READ | PROT_WRITE);
    memset(c.inner(), kCanary, size_t(c.data - c.inner()));
    poison(c.data, bytes);
    memset(c.data + bytes, kCanary, rounded - bytes);
    __asan_poison_memory_region(c.inner(), size_t(c.data - c.inner()));
    __asan_poison_memory_region(c.data + bytes, rounded - bytes);
    apply_protection(c);
    return c.data;
}
void device_set_live(void *p) {
    if (Chunk *c = find(p)) {
        c->state = LIVE;
        apply_protection(*c);
    }
}
FreeCheck device_free_check(const void *p, bool async) {
    Chunk *c = find(p);
    if (!c || c->data != p) return FREE_UNKNOWN;
    return c->state == LIVE || (async && c->state == RESERVED) ? FREE_OK : FREE_TWICE;
}
void device_free(void *p) {
    Chunk *c = find(p);
    if (!c || c->state == FREED) return; /* freed twice by stream work; the first free was diagnosed at its call */
    if (!HCU_HAS_ASAN) {
        mprotect(c->inner(), c->inner_size(), PROT_READ);
        check_rear(*c);
        check_front(*c);
    }
    c->state = FREED;
    g_used[c->device] -= c->size;
    mprotect(c->base, c->total, PROT_NONE);
    madvise(c->base, c->total, MADV_DONTNEED);
    g_quarantine.push_back(uintptr_t(c->base));
    g_quarantine_bytes += c->total;
    while (g_quarantine_bytes > kQuarantineBytes || g_quarantine.size() > kQuarantineCount) {
        Chunk old = *g_chunks.get(g_quarantine.front());
        g_quarantine.pop_front();
        g_quarantine_bytes -= old.total;
        __asan_unpoison_memory_region(old.base, old.total);
        munmap(old.base, old.total);
        g_chunks.erase(uintptr_t(old.base));
    }
}
size_t device_used(int device) { return g_used[device]; }
size_t device_limit(int device) { return g_limit[device]; }
void set_device_limit(int device, size_t bytes) { g_limit[device] = bytes; }

void *pinned_alloc(size_t bytes, bool managed) {
    void *m = nullptr;
    if (posix_memalign(&m, kAlign, bytes ? bytes : 1)) return nullptr;
    poison(static_cast<char *>(m), bytes);
    g_pinned[uintptr_t(m)] = Pinned{bytes, managed, trace_here()};
    return m;
}
bool managed(const void *p) {
    const Pinned *m = g_pinned.get(uintptr_t(p));
    return m && m->managed;
}
bool pinned_free(void *p) {
    const Pinned *m = g_pinned.get(uintptr_t(p));
    if (!m) return false;
    forget_host_memory(p, m->size);
    g_pinned.erase(uintptr_t(p));
    free(p);
    return true;
}

size_t pinned_used() {
    size_t bytes = 0;
    for (auto *e : g_pinned.entries)
        bytes += e->value.size;
    return bytes;
}

void symbol_known(void *symbol, size_t size) { g_symbols[uintptr_t(symbol)] = size; }
bool symbol_forgotten(void *symbol) {
    const size_t *size = g_symbols.get(uintptr_t(symbol));
    if (!size) return false;
    forget_host_memory(symbol, *size);
    return g_symbols.erase(uintptr_t(symbol));
}
bool managed_range(const void *p, size_t bytes) {
    if (auto *e = g_pinned.at_or_below(uintptr_t(p)))
        if (e->value.managed && uintptr_t(p) + bytes <= e->key + e->value.size) return true;
    auto *e = g_symbols.at_or_below(uintptr_t(p));
    return e && uintptr_t(p) + bytes <= e->key + e->value;
}
void device_reset_memory(int device) {
    std::vector<void *> gone;
    for (auto *e : g_chunks.entries)
        if (e->value.device == device && e->value.state != FREED) gone.push_back(e->value.data);
    for (void *p : gone)
        device_free(p);
}

Place place_of(const void *p, size_t bytes) {
    Place r{WHERE_HOST, -1, ""};
    if (const Chunk *c = find(p)) {
        ptrdiff_t offset = static_cast<const char *>(p) - c->data;
        r.device = c->device;
        r.where = WHERE_DEVICE;
        if (c->state == FREED) {
            r.where = WHERE_FREED;
            snprintf(r.text, sizeof r.text, "inside freed device buffer #%d", c->id);
        } else if (offset < 0 || size_t(offset) + bytes > c->size) {
            r.where = WHERE_OUTSIDE;
            snprintf(r.text, sizeof r.text, "bytes %td..%td of device buffer #%d, which has %zu", offset,
                offset + ptrdiff_t(bytes), c->id, c->size);
        }
        return r;
    }
    if (auto *e = g_symbols.at_or_below(uintptr_t(p)))
        if (uintptr_t(p) - e->key < e->value) {
            r.where = WHERE_PINNED;
            return r;
        }
    if (auto *e = g_pinned.at_or_below(uintptr_t(p))) {
        size_t offset = uintptr_t(p) - e->key, size = e->value.size;
        if (offset >= size) return r;
        r.where = offset + bytes > size ? WHERE_OUTSIDE : WHERE_PINNED;
        if (r.where == WHERE_OUTSIDE)
            snprintf(r.text, sizeof r.text, "%zu bytes past pinned memory", offset + bytes - size);
    }
    return r;
}
bool in_global(const void *p) { /* or a __device__ variable, which is one of the program */
    Dl_info object;
    return place_of(p, 1).where != WHERE_HOST || (!in_shared(p) && dladdr(p, &object));
}
/* Of a function, of the program or of a library: on a GPU it would be that of a __device__ function. */
static int holds_code(dl_phdr_info *object, size_t, void *address) {
    uintptr_t a = uintptr_t(address) - object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = object->dlpi_phdr[i];
        if (h.p_type == PT_LOAD && (h.p_flags & PF_X) && a - h.p_vaddr < h.p_memsz) return 1;
    }
    return 0;
}
/* Does this look like an address of the program's own memory?  Used on the words of struct parameters. */
bool mapped_host_memory(const void *p) {
    uintptr_t a = uintptr_t(p);
    if (dl_iterate_phdr(holds_code, const_cast<void *>(p))) return false;
    if (a < uintptr_t(1) << 32 || a >= uintptr_t(1) << 47 || find(p)) return false;
#if HCU_HAS_ASAN /* its tables fill 16 TiB of addresses, where two small numbers look like a pointer */
    size_t scale, offset;
    __asan_get_shadow_mapping(&scale, &offset);
    if (a >= offset && a < offset + (uintptr_t(1) << 47 >> scale)) return false;
#endif
    unsigned char resident;
    if (mincore(reinterpret_cast<void *>(a / kPage * kPage), 1, &resident) != 0) return false;
    if (HCU_HAS_ASAN || HCU_HAS_TSAN || HCU_HAS_MSAN) return resident & 1; /* of what they reserve few pages are used */
    return true;
}

void enter_device(int device) {
    if (g_inside[device]++ || !g_protect) return;
    for (auto *e : g_chunks.entries)
        if (e->value.device == device) apply_protection(e->value);
}
void leave_device(int device) {
    if (--g_inside[device] || !g_protect) return;
    for (auto *e : g_chunks.entries)
        if (e->value.device == device) apply_protection(e->value);
}
void set_protect(bool on) {
    g_protect = on;
    for (auto *e : g_chunks.entries)
        apply_protection(e->value);
}
void check_canaries() {
    if (HCU_HAS_ASAN) return;
    for (auto *e : g_chunks.entries)
        if (accessible(e->value)) check_rear(e->value);
}
int memory_leaks(bool print) {
    int count = 0;
    for (auto *e : g_chunks.entries) {
        const Chunk &c = e->value;
        if (c.state == FREED) continue;
        count++;
        if (!print) continue;
        fprintf(
            stderr, "HOSTCUDA LEAK: device buffer #%d, %zu bytes on device %d, allocated at\n", c.id, c.size, c.device);
        print_trace(c.trace);
    }
    for (auto *e : g_pinned.entries) {
        count++;
        if (!print) continue;
        fprintf(stderr, "HOSTCUDA LEAK: %s memory, %zu bytes, allocated at\n", e->value.managed ? "managed" : "pinned",
            e->value.size);
        print_trace(e->value.trace);
    }
    return count;
}
} // namespace hcu
