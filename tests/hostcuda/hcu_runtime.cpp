/* hcu_runtime.cpp - the CUDA runtime API over host memory: devices, streams, events, copies, launches, capture and
 * graphs, call counters and fault injection.  Linked instead of libcudart.
 *
 * A stream is a real queue.  An operation holds what it depends on (its stream's last operation, events waited for,
 * the default stream's rules); it runs when a synchronisation needs it, when the random mode picks it, or at once in
 * eager mode.  A missing synchronisation therefore shows as missing work, not as a rare race. */
#include "hcu_core.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
using std::shared_ptr;
using std::vector;

/* ---- objects behind the API's opaque handles --------------------------------------------------------------------- */

namespace {
struct Op {
    hcu::Work work;
    CUstream_st *stream = nullptr;
    vector<shared_ptr<Op>> after;       /* what must have run before */
    bool unconditional = false;         /* runs on a dead device, too: keeps the memory account right */
    bool done = false, visible = false; /* it ran; the host has synchronised with it */
    long long time_ns = 0;
    char start_token = 0, done_token = 0; /* TSan */
};
using OpP = shared_ptr<Op>;
struct Node {
    hcu::Work work;
    vector<int> after;
};
using Nodes = shared_ptr<vector<Node>>;
struct Capture {
    CUgraph_st *graph;
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    pthread_t thread;
    unsigned long long id;
    bool invalid;
};
} // namespace
struct CUgraph_st { vector<Node> nodes; };
struct CUgraphExec_st { Nodes nodes; };
struct CUstream_st {
    int device = 0;
    unsigned flags = 0;
    bool legacy = false; /* the default stream, ordered with all blocking streams of its device */
    OpP tail;
    std::deque<OpP> pending;
    void *tsan = nullptr;
    Capture *capture = nullptr;
    vector<int> capture_tail; /* nodes the next captured one depends on */
    vector<cudaGraphNode_t> capture_handles;
};
struct CUevent_st {
    int device;
    bool timing;
    OpP op;
    Capture *capture;
    vector<int> capture_tail;
};

namespace hcu {
namespace {

struct Device {
    int arch = 90, error = 0, sms = 132;
    CUstream_st legacy, per_thread;
};
Device *g_device = new Device[kMaxDevices];
int g_device_count = 2, g_mode = HCU_LAZY;
bool g_ready, g_scan_params = true;
Random g_random;
Map<CUstream_st *, Trace> &g_streams = *new Map<CUstream_st *, Trace>;
Map<CUevent_st *, Trace> &g_events = *new Map<CUevent_st *, Trace>;
Map<CUgraph_st *, Trace> &g_graphs = *new Map<CUgraph_st *, Trace>;
Map<CUgraphExec_st *, Trace> &g_execs = *new Map<CUgraphExec_st *, Trace>;
struct Object {
    const char *kind;
    Trace trace;
};
Map<const void *, Object> &g_objects = *new Map<const void *, Object>; /* handles of cuBLAS and the like */
vector<Capture *> &g_captures = *new vector<Capture *>;

struct KernelInfo {
    const KernelDesc *desc = nullptr;
    const char *name = nullptr;
    int shared_optin = 48 << 10;
};
Map<const void *, KernelInfo> &g_kernels = *new Map<const void *, KernelInfo>;

Map<const char *, long> &g_api_calls = *new Map<const char *, long>;
long g_group_calls[HCU_GROUP_COUNT], g_executed[HCU_GROUP_COUNT], g_failable, g_injected, g_ptx_launches;
int g_occupancy; /* 0: by threads */
size_t g_largest_grid;
long g_fail_call_in, g_fail_exec_in;
int g_fail_call_error, g_fail_exec_error;
bool g_fail_call_sticky;
char g_fail_api[80]; /* empty: any call */
const char *g_last_injected = "";

thread_local int t_device, t_last_error;
thread_local cudaStreamCaptureMode t_capture_mode = cudaStreamCaptureModeGlobal;

/* ---- the lock: TSan must not see it, it would order the program's threads; nor the runtime's own data ------------ */

pthread_t g_lock_owner;
int g_lock_depth;
char g_lock_flag;
void lock() {
    if (__atomic_load_n(&g_lock_depth, __ATOMIC_ACQUIRE) && pthread_equal(g_lock_owner, pthread_self())) {
        g_lock_depth++;
        return;
    }
    while (__atomic_test_and_set(&g_lock_flag, __ATOMIC_ACQUIRE))
        sched_yield();
    g_lock_owner = pthread_self();
    __atomic_store_n(&g_lock_depth, 1, __ATOMIC_RELEASE);
    hb_quiet(true);
}
void unlock() {
    if (g_lock_depth == 1) hb_quiet(false);
    if (--g_lock_depth == 0) __atomic_clear(&g_lock_flag, __ATOMIC_RELEASE);
}
struct Locked {
    Locked();
    ~Locked() { unlock(); }
};

/* Stream identities for TSan are reused late: an early reuse would order a new stream behind an old one. */
#if HCU_HAS_TSAN
std::deque<void *> &g_tsan_idle = *new std::deque<void *>;
void *tsan_identity() {
    if (g_tsan_idle.size() < 16) return hb_new();
    void *id = g_tsan_idle.front();
    g_tsan_idle.pop_front();
    return id;
}
void tsan_identity_done(void *id) { g_tsan_idle.push_back(id); }
#else
void *tsan_identity() { return nullptr; }
void tsan_identity_done(void *) {}
#endif

int env_choice(const char *name, int fallback, const char *const *words, int count) {
    const char *value = getenv(name);
    if (!value) return fallback;
    for (int i = 0; i < count; i++)
        if (!strcmp(value, words[i])) return i;
    fprintf(stderr, "hostcuda: %s=%s is not known\n", name, value);
    exit(2);
}
void init() {
    if (g_ready) return;
    g_ready = true;
    memory_init();
    static const char *const modes[] = {"eager", "lazy", "random"}, *const orders[] = {"forward", "reverse", "shuffle"};
    const char *seed_text = getenv("HCU_SEED"), *value;
    unsigned seed = seed_text ? unsigned(strtoul(seed_text, nullptr, 0)) : 1;
    g_mode = env_choice("HCU_MODE", g_mode, modes, 3);
    g_random.seed(seed);
    if (getenv("HCU_ORDER")) set_order(env_choice("HCU_ORDER", 0, orders, 3), seed);
    if ((value = getenv("HCU_DEVICES"))) g_device_count = std::max(0, std::min(kMaxDevices, atoi(value)));
    if ((value = getenv("HCU_ABORT"))) set_abort(atoi(value));
    if ((value = getenv("HCU_PROTECT"))) set_protect(atoi(value) != 0);
    if (getenv("HCU_LEAKS")) atexit([] { cudaDeviceSynchronize(); }); /* what nobody waited for is looked at, too */
    if ((value = getenv("HCU_PTX")) && hcu_ptx_load(value) < 0) exit(2);
    if ((value = getenv("HCU_SASS")) && hcu_sass_load(value) < 0) exit(2);
    for (int d = 0; d < kMaxDevices; d++) {
        if ((value = getenv("HCU_SMS"))) g_device[d].sms = std::max(1, atoi(value));
        g_device[d].legacy.legacy = true;
        for (CUstream_st *s : {&g_device[d].legacy, &g_device[d].per_thread}) {
            s->device = d;
            if (d < 2) s->tsan = tsan_identity();
        }
    }
}
Locked::Locked() {
    lock();
    init();
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

cudaError_t done(int error) { /* every call returns through here: it sets the thread's last error */
    if (error) t_last_error = error;
    return cudaError_t(error);
}
CUstream_st *resolve(cudaStream_t s) {
    return s == nullptr || s == cudaStreamLegacy ? &g_device[t_device].legacy
        : s == cudaStreamPerThread               ? &g_device[t_device].per_thread
                                                 : s;
}
bool is_default(const CUstream_st *s) {
    for (int d = 0; d < kMaxDevices; d++)
        if (s == &g_device[d].legacy || s == &g_device[d].per_thread) return true;
    return false;
}
bool valid(CUstream_st *s) { return is_default(s) || g_streams.get(s); }
bool blocking(const CUstream_st *s) { return !(s->flags & cudaStreamNonBlocking); }
vector<CUstream_st *> streams_of(int device) { /* -1: of all */
    vector<CUstream_st *> v;
    for (auto *e : g_streams.entries)
        if (device < 0 || e->key->device == device) v.push_back(e->key);
    for (int d = 0; d < g_device_count; d++)
        if (device < 0 || d == device) {
            v.push_back(&g_device[d].legacy);
            v.push_back(&g_device[d].per_thread);
        }
    return v;
}

/* ---- running stream work ----------------------------------------------------------------------------------------- */

struct Times { /* hcu_product_time */
    bool set;
    long long now_ns, next_ns, more_ns;
} g_times;

/* Is this piece of work to be done?  Counts it, delivers armed faults, refuses on a dead device. */
bool starts(int device, int group) {
    if (group < 0) return !g_device[device].error;
    if (!g_device[device].error && g_fail_exec_in > 0 && --g_fail_exec_in == 0) {
        g_injected++;
        g_last_injected = "stream work";
        g_device[device].error = g_fail_exec_error;
    }
    if (g_device[device].error) return false;
    g_executed[group]++;
    if (group == HCU_MATMUL && g_times.set) {
        g_times.now_ns += g_times.next_ns;
        g_times.next_ns += g_times.more_ns;
    }
    return true;
}
void run_op(Op &op) {
    void *host = hb_self();
    hb_become(op.stream->tsan);
    hb_acquire(&op.start_token);
    for (auto &d : op.after)
        hb_acquire(&d->done_token);
    if (op.work.host_dst) __asan_unpoison_memory_region(op.work.host_dst, op.work.host_bytes);
    bool go = starts(op.stream->device, op.work.group);
    if (op.work.run && (go || op.unconditional)) op.work.run();
    if (op.work.host_dst && !op.visible) __asan_poison_memory_region(op.work.host_dst, op.work.host_bytes);
    op.work.run = nullptr;
    hb_release(&op.done_token);
    hb_become(host);
    op.time_ns = g_times.set ? g_times.now_ns : clock_ns();
    op.done = true;
}
void run_until(const OpP &target) { /* the operation and all it depends on, nothing else */
    if (!target || target->done) return;
    int inside = -1; /* the device whose memory is open */
    vector<OpP> stack{target};
    while (!stack.empty()) {
        OpP op = stack.back();
        bool ready = true;
        for (auto &d : op->after)
            if (!op->done && !d->done) {
                stack.push_back(d);
                ready = false;
            }
        if (!ready) continue;
        stack.pop_back();
        if (op->done) continue;
        if (op->stream->device != inside) {
            if (inside >= 0) leave_device(inside);
            inside = op->stream->device;
            enter_device(inside);
        }
        run_op(*op);
        check_canaries();
        auto &queue = op->stream->pending;
        queue.erase(std::find(queue.begin(), queue.end(), op));
    }
    if (inside >= 0) leave_device(inside);
}
void make_visible(const OpP &target) { /* the host has synchronised with this operation and its past */
    if (!target) return;
    hb_acquire(&target->done_token);
    vector<OpP> stack{target};
    while (!stack.empty()) {
        OpP op = stack.back();
        stack.pop_back();
        if (op->visible) continue;
        op->visible = true;
        if (op->work.host_dst) __asan_unpoison_memory_region(op->work.host_dst, op->work.host_bytes);
        for (auto &d : op->after)
            stack.push_back(d);
        op->after.clear();
    }
}
void random_progress() {
    if (g_mode != HCU_RANDOM || in_kernel()) return;
    for (unsigned n = g_random.next() % 3; n; n--) {
        vector<CUstream_st *> busy;
        for (auto *s : streams_of(-1))
            if (!s->pending.empty()) busy.push_back(s);
        if (busy.empty()) return;
        run_until(busy[g_random.next() % busy.size()]->pending.front());
    }
}
OpP submit(CUstream_st *s, Work work, OpP wait_for = nullptr) {
    OpP op = std::make_shared<Op>();
    op->work = std::move(work);
    op->stream = s;
    if (wait_for) op->after.push_back(std::move(wait_for));
    if (s->tail) op->after.push_back(s->tail);
    if (s->legacy) {
        for (auto *t : streams_of(s->device))
            if (t != s && blocking(t) && t->tail) op->after.push_back(t->tail);
    } else if (blocking(s) && g_device[s->device].legacy.tail) {
        op->after.push_back(g_device[s->device].legacy.tail);
    }
    hb_release(&op->start_token);
    s->tail = op;
    s->pending.push_back(op);
    return op;
}
void settle(const OpP &op) { /* eager mode: work is done and seen as soon as it is submitted */
    if (g_mode != HCU_EAGER) return;
    run_until(op);
    make_visible(op);
}

/* ---- capture ----------------------------------------------------------------------------------------------------- */

cudaError_t invalidate(Capture *c, cudaError_t e) {
    c->invalid = true;
    return e;
}
/* Some calls are forbidden while a capture runs; which captures count depends on both modes (see
 * cudaThreadExchangeStreamCaptureMode).  Returns the error and invalidates those captures. */
cudaError_t forbidden_in_capture() {
    cudaError_t e = cudaSuccess;
    if (t_capture_mode == cudaStreamCaptureModeRelaxed) return e;
    for (Capture *c : g_captures) {
        if (c->mode == cudaStreamCaptureModeRelaxed) continue;
        bool mine = pthread_equal(c->thread, pthread_self());
        bool both_global = t_capture_mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
        if (mine || both_global) e = invalidate(c, cudaErrorStreamCaptureUnsupported);
    }
    return e;
}
void leave_capture(Capture *c) { /* the capture is over for all streams and events */
    for (auto *s : streams_of(-1))
        if (s->capture == c) {
            s->capture = nullptr;
            s->capture_tail.clear();
        }
    for (auto *e : g_events.entries)
        if (e->key->capture == c) e->key->capture = nullptr;
    g_captures.erase(std::find(g_captures.begin(), g_captures.end(), c));
}
void abandon_capture(Capture *c) {
    leave_capture(c);
    delete c->graph;
    delete c;
}
/* Every captured node must lead to the origin's last ones: no branch may be left open. */
bool all_joined(const Capture *c) {
    vector<char> seen(c->graph->nodes.size());
    vector<int> stack(c->origin->capture_tail);
    while (!stack.empty()) {
        int n = stack.back();
        stack.pop_back();
        if (seen[size_t(n)]) continue;
        seen[size_t(n)] = 1;
        for (int d : c->graph->nodes[size_t(n)].after)
            stack.push_back(d);
    }
    for (auto *s : streams_of(-1))
        if (s->capture == c)
            for (int n : s->capture_tail)
                if (!seen[size_t(n)]) return false;
    return true;
}
/* Any order the edges allow.  For TSan, nodes have their own identities: branches are not ordered by running here. */
void run_graph(const vector<Node> &nodes, int device) {
    static void *identity[8];
    vector<char> ran(nodes.size()), token(8 * nodes.size() + 8);
    void *self = hb_self();
    char *start = &token[8 * nodes.size()];
    hb_release(start);
    for (size_t left = nodes.size(); left; left--) {
        vector<size_t> ready;
        for (size_t i = 0; i < nodes.size(); i++) {
            bool all = !ran[i];
            for (int d : nodes[i].after)
                all = all && ran[size_t(d)];
            if (all) ready.push_back(i);
        }
        size_t pick = ready[g_mode == HCU_RANDOM ? g_random.next() % ready.size()
                : g_mode == HCU_LAZY             ? ready.size() - 1
                                                 : 0];
        void *&id = identity[pick % 8];
        if (!id) id = hb_new();
        hb_become(id);
        hb_acquire(start);
        for (int d : nodes[pick].after)
            hb_acquire(&token[8 * size_t(d)]);
        if (starts(device, nodes[pick].work.group) && nodes[pick].work.run) nodes[pick].work.run();
        hb_release(&token[8 * pick]);
        hb_become(self);
        ran[pick] = 1;
    }
    for (size_t i = 0; i < nodes.size(); i++)
        hb_acquire(&token[8 * i]);
}

/* ---- synchronisation --------------------------------------------------------------------------------------------- */

void sync_streams(int device, bool visible) {
    for (auto *s : streams_of(device)) {
        run_until(s->tail);
        if (visible) make_visible(s->tail);
    }
}
cudaError_t sync_stream(CUstream_st *s) {
    if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
    run_until(s->tail);
    make_visible(s->tail);
    if (s->legacy)
        for (auto *t : streams_of(s->device))
            if (blocking(t)) {
                run_until(t->tail);
                make_visible(t->tail);
            }
    return cudaError_t(g_device[s->device].error);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* The mangled name from the ELF symbol table: kernels are static, and dladdr does not see static functions.  nvcc names
 * a static kernel like a global one where g++ puts an L behind _Z: that L is dropped. */
const char *symbol_name(const void *f) { /* never freed: one per kernel */
    Dl_info object, self;
    struct stat st;
    if (!dladdr(f, &object) || !dladdr(reinterpret_cast<const void *>(&symbol_name), &self)) return "kernel";
    int fd = open(object.dli_fbase == self.dli_fbase ? "/proc/self/exe" : object.dli_fname, O_RDONLY);
    if (fd < 0) return "kernel";
    void *m = fstat(fd, &st) ? MAP_FAILED : mmap(nullptr, size_t(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (m == MAP_FAILED) return "kernel";
    const char *file = static_cast<const char *>(m);
    const ElfW(Ehdr) *header = reinterpret_cast<const ElfW(Ehdr) *>(file);
    const ElfW(Shdr) *section = reinterpret_cast<const ElfW(Shdr) *>(file + header->e_shoff);
    uintptr_t address = uintptr_t(f) - (header->e_type == ET_DYN ? uintptr_t(object.dli_fbase) : 0);
    const char *name = "kernel";
    for (int i = 0; i < header->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB && section[i].sh_type != SHT_DYNSYM) continue;
        const ElfW(Sym) *symbol = reinterpret_cast<const ElfW(Sym) *>(file + section[i].sh_offset);
        const char *strings = file + section[section[i].sh_link].sh_offset;
        for (size_t j = 0; j < section[i].sh_size / sizeof *symbol; j++)
            if (symbol[j].st_value == address && (symbol[j].st_info & 15) == STT_FUNC)
                name = strings + symbol[j].st_name;
    }
    char *copy = strdup(name);
    munmap(m, size_t(st.st_size));
    if (!strncmp(copy, "_ZL", 3)) memmove(copy + 2, copy + 3, strlen(copy + 3) + 1);
    return copy;
}
/* A pointer parameter must be device or pinned memory of this device; a word inside a struct must not be an address of
 * ordinary host memory. */
void check_parameter(const KernelInfo &k, int index, const void *value, int device) {
    const KernelDesc &d = *k.desc;
    if (d.kind[index] == PARAM_POINTER) {
        void *p;
        memcpy(&p, value, sizeof p);
        if (!p) return;
        Place at = place_of(p, 1);
        if (at.where == WHERE_HOST || at.where == WHERE_FREED)
            bug("launch of %s: argument %d (%p) is %s", k.name, index, p,
                at.where == WHERE_HOST ? "a host pointer" : at.text);
        else if (at.where == WHERE_DEVICE && at.device != device)
            bug("launch of %s on device %d: argument %d (%p) is memory of device %d", k.name, device, index, p,
                at.device);
        return;
    }
    if (!g_scan_params || d.kind[index] != PARAM_WORDS) return;
    for (size_t i = 0; i + sizeof(void *) <= d.size[index]; i += sizeof(void *)) {
        void *p;
        memcpy(&p, static_cast<const char *>(value) + i, sizeof p);
        if (place_of(p, 1).where == WHERE_HOST && mapped_host_memory(p))
            bug("launch of %s: argument %d holds a host pointer (%p) at byte %zu", k.name, index, p, i);
    }
}
cudaError_t launch(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s, bool cooperative) {
    KernelInfo *k = g_kernels.get(f);
    if (!k || !k->desc) return cudaErrorInvalidDeviceFunction;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->device != t_device) return cudaErrorInvalidResourceHandle;
    size_t threads = size_t(block.x) * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || block.x > 1024 || block.y > 1024 ||
        block.z > 64 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (shared > size_t(std::max(k->shared_optin, 48 << 10))) return cudaErrorInvalidValue;
    if (cooperative && size_t(grid.x) * grid.y * grid.z * threads > 32768) return cudaErrorCooperativeLaunchTooLarge;
    if (!k->name) k->name = symbol_name(f);
    g_largest_grid = std::max(g_largest_grid, size_t(grid.x) * grid.y * grid.z);

    KernelDesc desc = *k->desc;
    vector<size_t> offset(size_t(desc.count) + 1);
    for (int i = 0; i < desc.count; i++)
        offset[size_t(i) + 1] = (offset[size_t(i)] + desc.size[i] + 15) / 16 * 16;
    auto values = std::make_shared<vector<char>>(offset.back() + 16);
    for (int i = 0; i < desc.count; i++) {
        memcpy(values->data() + offset[size_t(i)], args[i], desc.size[i]);
        check_parameter(*k, i, args[i], stream->device);
    }
    const void *run_f = f;
    KernelDesc run_desc = desc;
    bool ptx = ptx_find(k->name, &desc, &run_f, &run_desc);
    const char *name = k->name;
    auto run = [=] {
        vector<void *> a;
        for (int i = 0; i < desc.count; i++)
            a.push_back(values->data() + offset[size_t(i)]);
        a.push_back(nullptr);
        g_ptx_launches += ptx;
        if (sass_launch(name, &desc, a.data(), GridConfig{grid, block, shared, cooperative, name})) return;
        run_grid(run_f, &run_desc, a.data(), GridConfig{grid, block, shared, cooperative, name});
    };
    return enqueue(s, Work{"kernel", HCU_LAUNCH, run});
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

uint64_t content_hash(const void *p, size_t n) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < n; i++)
        h = (h ^ static_cast<const unsigned char *>(p)[i]) * 1099511628211ull;
    return h;
}
struct CopyPlan {
    bool dst_device, src_device, pageable;
    int other_device;
}; /* -1: one device is enough */
cudaError_t plan_copy(
    const char *api, void *dst, const void *src, size_t n, cudaMemcpyKind kind, int stream_dev, CopyPlan *plan) {
    Place d = place_of(dst, n), s = place_of(src, n);
    for (const Place *p : {&d, &s})
        if (p->where == WHERE_FREED || p->where == WHERE_OUTSIDE) {
            bug("%s: %s is %s", api, p == &d ? "destination" : "source", p->text);
            return cudaErrorInvalidValue;
        }
    plan->dst_device = d.where == WHERE_DEVICE;
    plan->src_device = s.where == WHERE_DEVICE;
    plan->pageable = d.where == WHERE_HOST || s.where == WHERE_HOST;
    plan->other_device = plan->dst_device && d.device != stream_dev ? d.device
        : plan->src_device && s.device != stream_dev                ? s.device
                                                                    : -1;
    bool to = plan->dst_device, from = plan->src_device;
    bool fits = kind == cudaMemcpyDefault || (kind == cudaMemcpyHostToDevice && to && !from) ||
        (kind == cudaMemcpyDeviceToHost && !to && from) || (kind == cudaMemcpyDeviceToDevice && to && from) ||
        (kind == cudaMemcpyHostToHost && !to && !from);
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t copy(
    const char *api, void *dst, const void *src, size_t n, const CopyPlan &plan, cudaStream_t s, bool host_waits) {
    CUstream_st *stream = resolve(s);
    int other = plan.other_device;
    auto move = [=](const void *from) {
        if (other >= 0) enter_device(other);
        memmove(dst, from, n);
        if (other >= 0) leave_device(other);
    };
    bool host_dst = !plan.dst_device && !host_waits;
    Work work{api, HCU_COPY, nullptr, host_dst ? dst : nullptr, host_dst ? n : 0};
    if (!plan.src_device && place_of(src, 1).where == WHERE_HOST && !stream->capture && !host_waits) {
        auto staged = std::make_shared<vector<char>>(n); /* pageable source: copied before the call returns */
        memcpy(staged->data(), src, n);
        work.run = [=] { move(staged->data()); };
        return enqueue(s, work);
    }
    bool watch = !plan.src_device && !host_waits && !stream->capture && g_mode != HCU_EAGER && !HCU_HAS_TSAN;
    uint64_t hash = watch ? content_hash(src, n) : 0;
    work.run = [=] {
        if (watch && content_hash(src, n) != hash)
            bug("%s: the pinned source %p was modified before the copy ran", api, src);
        move(src);
    };
    return enqueue(s, work);
}
} // namespace

/* ---- what the other parts of the runtime use (hcu_core.h) -------------------------------------------------------- */

Call::Call(const char *api, int group, int natural) : error(0), dead(false) {
    lock();
    init();
    g_api_calls[api]++;
    if (group >= 0) g_group_calls[group]++;
    if (natural >= 0) {
        if (g_device[t_device].error) {
            error = g_device[t_device].error;
            dead = true;
            return;
        }
        g_failable++;
        if (g_fail_call_in > 0 && (!g_fail_api[0] || !strcmp(g_fail_api, api)) && --g_fail_call_in == 0) {
            g_injected++;
            g_last_injected = api;
            error = g_fail_call_error ? g_fail_call_error : natural;
            if (g_fail_call_sticky)
                g_device[t_device].error =
                    strncmp(api, "cublas", 6) ? error : int(cudaErrorIllegalAddress); /* no cublasStatus_t */
            return;
        }
    }
    random_progress();
}
Call::~Call() { unlock(); }
void count_extra(int group) { g_group_calls[group]++; }
int current_device() { return t_device; }
int device_arch(int device) { return g_device[device].arch; }
int device_error(int device) { return g_device[device].error; }
int stream_device(cudaStream_t s) {
    CUstream_st *stream = resolve(s);
    return valid(stream) ? stream->device : -1;
}
void live_object(const char *kind, const void *object, bool created) {
    if (created)
        g_objects[object] = {kind, trace_here()};
    else
        g_objects.erase(object);
}
void register_kernel(const void *f, const KernelDesc *desc) {
    Locked l;
    g_kernels[f].desc = desc;
}
void name_kernel(const void *f, const char *name) {
    Locked l;
    g_kernels[f].name = name;
}
cudaError_t symbol_register(void *symbol, size_t size) {
    Locked l;
    symbol_known(symbol, size);
    return cudaSuccess;
}
bool need_device(const char *api, const char *what, const void *p, size_t bytes, int device) {
    Place at = place_of(p, bytes);
    if (at.where == WHERE_PINNED || (at.where == WHERE_DEVICE && at.device == device)) return true;
    if (at.where == WHERE_DEVICE)
        bug("%s on device %d: %s %p is memory of device %d", api, device, what, p, at.device);
    else
        bug("%s: %s %p (%zu bytes) is not device memory: %s", api, what, p, bytes,
            at.where == WHERE_HOST ? "a host pointer" : at.text);
    return false;
}
cudaError_t enqueue(cudaStream_t s, Work work) {
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) {
        bug("%s: stream %p was destroyed or never existed", work.name, (void *)s);
        return cudaErrorInvalidResourceHandle;
    }
    if (Capture *c = stream->capture) {
        if (c->invalid) return cudaErrorStreamCaptureInvalidated;
        c->graph->nodes.push_back({std::move(work), stream->capture_tail});
        stream->capture_tail.assign(1, int(c->graph->nodes.size()) - 1);
        return cudaSuccess;
    }
    if (stream->legacy) /* would have to wait for a stream that is only recording */
        for (auto *t : streams_of(stream->device))
            if (t->capture && blocking(t)) return invalidate(t->capture, cudaErrorStreamCaptureImplicit);
    if (work.host_dst && g_mode != HCU_EAGER) { /* the device may write there at any time from now on */
        memset(work.host_dst, 0xff, work.host_bytes);
        __asan_poison_memory_region(work.host_dst, work.host_bytes);
    } else {
        work.host_dst = nullptr;
    }
    settle(submit(stream, std::move(work)));
    return cudaSuccess;
}
} // namespace hcu
using namespace hcu;

/* ==== the CUDA runtime API, as declared by the real headers ======================================================= */

#define ENTER(api, group, natural) \
    Call call_(api, group, natural); \
    if (call_.error) return done(call_.error)
#define NOT_IN_CAPTURE() \
    if (cudaError_t capture_error = forbidden_in_capture()) return done(capture_error)
#define DEVICE_OR_FAIL(d) \
    if ((d) < 0 || (d) >= g_device_count) return done(cudaErrorInvalidDevice)

extern "C" {

/* ---- errors ---- */

#define HCU_ERRORS(X) \
    X(cudaSuccess, "no error") \
    X(cudaErrorInvalidValue, "invalid argument") \
    X(cudaErrorMemoryAllocation, "out of memory") \
    X(cudaErrorInitializationError, "initialization error") \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument") \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorInvalidDeviceFunction, "invalid device function") \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected") \
    X(cudaErrorInvalidDevice, "invalid device ordinal") \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle") \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state") \
    X(cudaErrorNotReady, "device not ready") \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered") \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch") \
    X(cudaErrorLaunchTimeout, "the launch timed out and was terminated") \
    X(cudaErrorLaunchFailure, "unspecified launch failure") \
    X(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch") \
    X(cudaErrorNotSupported, "operation not supported") \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
    X(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences") \
    X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began") \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work") \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream") \
    X(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream") \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream") \
    X(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread") \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t e) {
    switch (int(e)) {
#define X(code, text) \
    case int(code): return #code;
        HCU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t e) {
    switch (int(e)) {
#define X(code, text) \
    case int(code): return text;
        HCU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
cudaError_t cudaPeekAtLastError(void) {
    Locked l;
    int dead = g_device[t_device].error;
    return cudaError_t(dead ? dead : t_last_error);
}
cudaError_t cudaGetLastError(void) {
    cudaError_t e = cudaPeekAtLastError();
    t_last_error = 0;
    return e;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *n) {
    ENTER("cudaGetDeviceCount", kNoGroup, cudaErrorNoDevice);
    *n = g_device_count;
    return done(g_device_count ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int *d) {
    ENTER("cudaGetDevice", kNoGroup, cudaErrorNoDevice);
    if (!g_device_count) return done(cudaErrorNoDevice);
    *d = t_device;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
    Call call("cudaSetDevice", kNoGroup, cudaErrorInvalidDevice);
    if (call.error && !call.dead) return done(call.error); /* leaving a dead device is allowed */
    DEVICE_OR_FAIL(d);
    t_device = d;
    return done(g_device[d].error);
}
cudaError_t cudaDriverGetVersion(int *v) {
    ENTER("cudaDriverGetVersion", kNoGroup, cudaErrorInvalidValue);
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *v) {
    ENTER("cudaRuntimeGetVersion", kNoGroup, cudaErrorInvalidValue);
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int d) {
    ENTER("cudaDeviceGetAttribute", kNoGroup, cudaErrorInvalidValue);
    DEVICE_OR_FAIL(d);
    switch (a) {
    case cudaDevAttrMultiProcessorCount: *v = g_device[d].sms; break;
    case cudaDevAttrComputeCapabilityMajor: *v = g_device[d].arch / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *v = g_device[d].arch % 10; break;
    case cudaDevAttrMaxThreadsPerBlock: *v = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *v = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *v = 228 << 10; break;
    case cudaDevAttrMaxRegistersPerBlock: *v = 65536; break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *v = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *v = 64; break;
    case cudaDevAttrMaxGridDimX: *v = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *v = 65535; break;
    case cudaDevAttrL2CacheSize: *v = 50 << 20; break;
    case cudaDevAttrWarpSize: *v = 32; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrMemoryPoolsSupported: *v = 1; break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrPageableMemoryAccess: *v = 0; break;
    default: return done(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d) {
    ENTER("cudaGetDeviceProperties", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(d);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "hostcuda device %d", d);
    p->major = g_device[d].arch / 10;
    p->minor = g_device[d].arch % 10;
    p->multiProcessorCount = g_device[d].sms;
    p->totalGlobalMem = device_limit(d);
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->l2CacheSize = 50 << 20;
    p->unifiedAddressing = p->cooperativeLaunch = p->memoryPoolsSupported = p->concurrentKernels = 1;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    ENTER("cudaMemGetInfo", kNoGroup, cudaErrorInvalidValue);
    *total = device_limit(t_device);
    *free_bytes = *total - std::min(*total, device_used(t_device));
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *f) {
    ENTER("cudaFuncGetAttributes", kNoGroup, cudaErrorInvalidDeviceFunction);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    memset(a, 0, sizeof *a);
    const KernelInfo *k = g_kernels.get(f);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->ptxVersion = a->binaryVersion = g_device[t_device].arch;
    a->maxDynamicSharedSizeBytes = k ? k->shared_optin : 48 << 10;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *f, cudaFuncAttribute a, int v) {
    ENTER("cudaFuncSetAttribute", kNoGroup, cudaErrorInvalidValue);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (v < 0 || v > 227 << 10) return done(cudaErrorInvalidValue);
        g_kernels[f].shared_optin = v;
    }
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *n, const void *f, int block, size_t shared, unsigned) {
    ENTER("cudaOccupancyMaxActiveBlocksPerMultiprocessor", kNoGroup, cudaErrorInvalidValue);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    if (block <= 0) return done(cudaErrorInvalidValue);
    *n = block > 1024 ? 0 : g_occupancy ? g_occupancy : std::min(32, 2048 / ((block + 31) / 32 * 32));
    if (shared) *n = std::min(*n, int((227 << 10) / shared));
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int block, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, block, shared, 0);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
    ENTER("cudaPointerGetAttributes", kNoGroup, cudaErrorInvalidValue);
    memset(a, 0, sizeof *a);
    Place at = place_of(p, 1);
    void *q = const_cast<void *>(p);
    a->type = at.where == WHERE_DEVICE ? cudaMemoryTypeDevice
        : at.where == WHERE_PINNED     ? cudaMemoryTypeHost
                                       : cudaMemoryTypeUnregistered;
    a->device = at.where == WHERE_DEVICE ? at.device : t_device;
    a->devicePointer = at.where == WHERE_DEVICE || at.where == WHERE_PINNED ? q : nullptr;
    a->hostPointer = at.where == WHERE_DEVICE ? nullptr : q;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t n) {
    ENTER("cudaMalloc", HCU_ALLOC, cudaErrorMemoryAllocation);
    NOT_IN_CAPTURE();
    *p = nullptr;
    if (n == 0) return cudaSuccess;
    *p = device_alloc(t_device, n, true);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void *p) {
    ENTER("cudaFree", HCU_FREE, kNeverFails);
    if (!p) return cudaSuccess;
    count_extra(HCU_SYNC);
    NOT_IN_CAPTURE();
    if (managed(p)) {
        sync_streams(-1, true);
        pinned_free(p);
        return done(g_device[t_device].error);
    }
    FreeCheck check = device_free_check(p, false);
    if (check != FREE_OK) {
        bug("cudaFree(%p): %s", p, check == FREE_TWICE ? "freed twice" : "not a pointer from cudaMalloc");
        return done(cudaErrorInvalidValue);
    }
    int device = place_of(p, 1).device;
    sync_streams(device, false); /* as the driver does; not a synchronisation that the host may rely on */
    device_free(p);
    return done(g_device[device].error);
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) {
    ENTER("cudaMallocAsync", HCU_ALLOC, cudaErrorMemoryAllocation);
    *p = nullptr;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        fprintf(stderr, "hostcuda: cudaMallocAsync inside a capture is not modelled\n");
        return done(invalidate(stream->capture, cudaErrorNotSupported));
    }
    if (n == 0) return cudaSuccess;
    void *q = device_alloc(stream->device, n, false);
    if (!q) return done(cudaErrorMemoryAllocation);
    OpP op = submit(stream, Work{"cudaMallocAsync", kNoGroup, [q] { device_set_live(q); }});
    op->unconditional = true;
    settle(op);
    *p = q;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) {
    ENTER("cudaFreeAsync", HCU_FREE, kNeverFails);
    if (!p) return cudaSuccess;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorNotSupported));
    if (device_free_check(p, true) != FREE_OK) {
        bug("cudaFreeAsync(%p): not a live device buffer", p);
        return done(cudaErrorInvalidValue);
    }
    OpP op = submit(stream, Work{"cudaFreeAsync", kNoGroup, [p] { device_free(p); }});
    op->unconditional = true;
    settle(op);
    return done(g_device[stream->device].error);
}
static void *g_last_pinned;
static cudaError_t host_alloc(void **p, size_t n) {
    NOT_IN_CAPTURE();
    *p = g_last_pinned = pinned_alloc(n, false);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) {
    ENTER("cudaHostAlloc", HCU_ALLOC, cudaErrorMemoryAllocation);
    return host_alloc(p, n);
}
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned) { /* reached from both sides, never moved */
    ENTER("cudaMallocManaged", HCU_ALLOC, cudaErrorMemoryAllocation);
    NOT_IN_CAPTURE();
    *p = pinned_alloc(n, true);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void **p, size_t n) {
    ENTER("cudaMallocHost", HCU_ALLOC, cudaErrorMemoryAllocation);
    return host_alloc(p, n);
}
cudaError_t cudaFreeHost(void *p) {
    ENTER("cudaFreeHost", HCU_FREE, kNeverFails);
    if (!p) return cudaSuccess;
    count_extra(HCU_SYNC);
    NOT_IN_CAPTURE();
    if (place_of(p, 0).where != WHERE_PINNED) {
        bug("cudaFreeHost(%p): not from cudaHostAlloc or cudaMallocHost", p);
        return done(cudaErrorInvalidValue);
    }
    sync_streams(-1, true);
    pinned_free(p);
    return done(g_device[t_device].error);
}
cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned) {
    ENTER("cudaHostGetDevicePointer", kNoGroup, cudaErrorInvalidValue);
    if (place_of(p, 1).where != WHERE_PINNED) return done(cudaErrorInvalidValue);
    *out = p; /* one address space */
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
    ENTER("cudaMemcpyAsync", HCU_COPY, cudaErrorInvalidValue);
    if (n == 0) return cudaSuccess;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    CopyPlan plan;
    if (cudaError_t e = plan_copy("cudaMemcpyAsync", dst, src, n, kind, stream->device, &plan)) return done(e);
    if (plan.pageable) count_extra(HCU_SYNC);
    return done(copy("cudaMemcpyAsync", dst, src, n, plan, s, false));
}
cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, cudaMemcpyKind kind) {
    ENTER("cudaMemcpy", HCU_COPY, cudaErrorInvalidValue);
    NOT_IN_CAPTURE();
    if (n == 0) return cudaSuccess;
    CopyPlan plan;
    if (cudaError_t e = plan_copy("cudaMemcpy", dst, src, n, kind, t_device, &plan)) return done(e);
    bool waits = !(plan.dst_device && plan.src_device); /* device to device: ordered, but the host does not wait */
    if (waits) count_extra(HCU_SYNC);
    cudaError_t e = copy("cudaMemcpy", dst, src, n, plan, nullptr, waits);
    return done(e || !waits ? e : sync_stream(resolve(nullptr)));
}
} // extern "C"
namespace hcu {
/* A symbol's place in the program is its place on the device; only the order of the stream remains to be kept. */
cudaError_t symbol_copy(void *symbol, size_t size, void *other, size_t n, size_t offset, cudaMemcpyKind kind,
    cudaStream_t stream, bool to_symbol) {
    const char *api = to_symbol ? "cudaMemcpyToSymbol" : "cudaMemcpyFromSymbol";
    ENTER(api, HCU_COPY, cudaErrorInvalidValue);
    if (offset > size || n > size - offset) {
        bug("%s: bytes %zu..%zu of a variable of %zu bytes", api, offset, offset + n, size);
        return done(cudaErrorInvalidValue);
    }
    if (n == 0) return cudaSuccess;
    symbol_known(symbol, size);
    void *at = static_cast<char *>(symbol) + offset, *dst = to_symbol ? at : other;
    const void *src = to_symbol ? other : at;
    Place far = place_of(other, n);
    bool device = far.where == WHERE_DEVICE;
    if (far.where == WHERE_FREED || far.where == WHERE_OUTSIDE) {
        bug("%s: %s is %s", api, to_symbol ? "source" : "destination", far.text);
        return done(cudaErrorInvalidValue);
    }
    if (kind != cudaMemcpyDefault && device != (kind == cudaMemcpyDeviceToDevice)) return done(cudaErrorInvalidValue);
    return done(copy(api, dst, src, n, CopyPlan{to_symbol || device, !to_symbol || device, false, -1}, stream, false));
}
} // namespace hcu
extern "C" {
static cudaError_t fill(const char *api, void *p, int value, size_t n, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    int device = stream_device(s);
    if (device < 0) return done(cudaErrorInvalidResourceHandle);
    if (!need_device(api, "destination", p, n, device)) return done(cudaErrorInvalidValue);
    return done(enqueue(s, Work{api, HCU_FILL, [=] { memset(p, value, n); }}));
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) {
    ENTER("cudaMemsetAsync", HCU_FILL, cudaErrorInvalidValue);
    return fill("cudaMemsetAsync", p, value, n, s);
}
cudaError_t cudaMemset(void *p, int value, size_t n) {
    ENTER("cudaMemset", HCU_FILL, cudaErrorInvalidValue);
    NOT_IN_CAPTURE();
    return fill("cudaMemset", p, value, n, nullptr);
}

/* ---- streams ---- */

static cudaError_t stream_create(cudaStream_t *out, unsigned flags) {
    if (flags & ~unsigned(cudaStreamNonBlocking)) return done(cudaErrorInvalidValue);
    CUstream_st *s = new CUstream_st;
    s->device = t_device;
    s->flags = flags;
    s->tsan = tsan_identity();
    g_streams[s] = trace_here();
    *out = s;
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *s) {
    ENTER("cudaStreamCreate", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    ENTER("cudaStreamCreateWithFlags", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int) {
    ENTER("cudaStreamCreateWithPriority", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    ENTER("cudaStreamDestroy", HCU_OBJECT, kNeverFails);
    if (!g_streams.get(s)) {
        bug("cudaStreamDestroy(%p): not a live stream", (void *)s);
        return done(cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        bug("cudaStreamDestroy: the stream is still capturing (a path without cudaStreamEndCapture?)");
        abandon_capture(s->capture);
    }
    run_until(s->tail); /* the driver returns at once and finishes the work later: this order is a legal one */
    tsan_identity_done(s->tsan);
    g_streams.erase(s);
    int device = s->device;
    delete s; /* operations that events still hold are done and never look at their stream again */
    return done(g_device[device].error);
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) {
    ENTER("cudaStreamGetFlags", kNoGroup, cudaErrorInvalidResourceHandle);
    if (!valid(resolve(s))) return done(cudaErrorInvalidResourceHandle);
    *flags = resolve(s)->flags;
    return cudaSuccess;
}
#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device) {
    ENTER("cudaStreamGetDevice", kNoGroup, cudaErrorInvalidResourceHandle);
    *device = stream_device(s);
    return done(*device < 0 ? cudaErrorInvalidResourceHandle : cudaSuccess);
}
#endif
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    ENTER("cudaStreamSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    if (!valid(resolve(s))) return done(cudaErrorInvalidResourceHandle);
    return done(sync_stream(resolve(s)));
}
cudaError_t cudaDeviceSynchronize(void) {
    ENTER("cudaDeviceSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    NOT_IN_CAPTURE();
    sync_streams(t_device, true);
    return done(g_device[t_device].error);
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    ENTER("cudaStreamQuery", kNoGroup, cudaErrorLaunchFailure);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureUnsupported));
    if (stream->pending.empty()) {
        make_visible(stream->tail);
        return done(g_device[stream->device].error);
    }
    run_until(stream->pending.front()); /* one step per poll, so that polling loops end */
    return done(cudaErrorNotReady);
}

/* ---- events ---- */

static cudaError_t event_create(cudaEvent_t *out, unsigned flags) {
    if (flags & ~unsigned(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
        return done(cudaErrorInvalidValue);
    *out = new CUevent_st{t_device, !(flags & cudaEventDisableTiming), nullptr, nullptr, {}};
    g_events[*out] = trace_here();
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) {
    ENTER("cudaEventCreate", HCU_OBJECT, cudaErrorMemoryAllocation);
    return event_create(e, 0);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    ENTER("cudaEventCreateWithFlags", HCU_OBJECT, cudaErrorMemoryAllocation);
    return event_create(e, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    ENTER("cudaEventDestroy", HCU_OBJECT, kNeverFails);
    if (!g_events.erase(e)) {
        bug("cudaEventDestroy: not a live event");
        return done(cudaErrorInvalidResourceHandle);
    }
    int device = e->device;
    delete e;
    return done(g_device[device].error);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    ENTER("cudaEventRecord", kNoGroup, cudaErrorInvalidResourceHandle);
    CUstream_st *stream = resolve(s);
    if (!g_events.get(e) || !valid(stream) || stream->device != e->device) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        if (stream->capture->invalid) return done(cudaErrorStreamCaptureInvalidated);
        e->capture = stream->capture;
        e->capture_tail = stream->capture_tail;
        return cudaSuccess;
    }
    e->capture = nullptr;
    e->op = submit(stream, Work{"event", kNoGroup, nullptr});
    settle(e->op);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
    ENTER("cudaStreamWaitEvent", kNoGroup, cudaErrorInvalidResourceHandle);
    CUstream_st *stream = resolve(s);
    if (!g_events.get(e) || !valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (e->capture) { /* joins the event's capture */
        if (stream->legacy) return done(invalidate(e->capture, cudaErrorStreamCaptureImplicit));
        if (!stream->capture) {
            stream->capture = e->capture;
            stream->capture_tail.clear();
        }
        if (stream->capture != e->capture) {
            invalidate(stream->capture, cudaErrorStreamCaptureMerge);
            return done(invalidate(e->capture, cudaErrorStreamCaptureMerge));
        }
        stream->capture_tail.insert(stream->capture_tail.end(), e->capture_tail.begin(), e->capture_tail.end());
        return cudaSuccess;
    }
    if (!e->op) return cudaSuccess; /* never recorded */
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureIsolation));
    settle(submit(stream, Work{"wait", kNoGroup, nullptr}, e->op));
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    ENTER("cudaEventSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    if (!g_events.get(e)) return done(cudaErrorInvalidResourceHandle);
    if (e->capture) return done(invalidate(e->capture, cudaErrorCapturedEvent));
    run_until(e->op);
    make_visible(e->op);
    return done(g_device[e->device].error);
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    ENTER("cudaEventQuery", kNoGroup, cudaErrorLaunchFailure);
    if (!g_events.get(e)) return done(cudaErrorInvalidResourceHandle);
    if (e->capture) return done(invalidate(e->capture, cudaErrorCapturedEvent));
    NOT_IN_CAPTURE();
    if (!e->op || e->op->done) {
        make_visible(e->op);
        return done(g_device[e->device].error);
    }
    run_until(e->op);
    return done(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    ENTER("cudaEventElapsedTime", kNoGroup, cudaErrorInvalidValue);
    for (CUevent_st *e : {from, to})
        if (!g_events.get(e) || !e->timing || !e->op || e->device != from->device)
            return done(cudaErrorInvalidResourceHandle);
    if (!from->op->done || !to->op->done) return done(cudaErrorNotReady);
    *ms = float(double(to->op->time_ns - from->op->time_ns) * 1e-6);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *user) {
    ENTER("cudaLaunchHostFunc", kNoGroup, cudaErrorInvalidValue);
    return done(enqueue(s, Work{"host function", kNoGroup, [=] { f(user); }}));
}

/* ---- launches ---- */

cudaError_t cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s) {
    ENTER("cudaLaunchKernel", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    return done(launch(f, g, b, args, shared, s, false));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args) {
    ENTER("cudaLaunchKernelEx", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    bool cooperative = false;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == cudaLaunchAttributeCooperative) cooperative = c->attrs[i].val.cooperative != 0;
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            return done(cudaErrorNotSupported); /* not modelled */
    }
    return done(launch(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, cooperative));
}

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s) {
    ENTER("cudaLaunchCooperativeKernel", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    return done(launch(f, g, b, args, shared, s, true));
}
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) {
    ENTER("cudaFuncSetCacheConfig", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess; /* a wish */
}

/* ---- capture and graphs ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    ENTER("cudaThreadExchangeStreamCaptureMode", kNoGroup, cudaErrorInvalidValue);
    std::swap(*mode, t_capture_mode);
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    ENTER("cudaStreamBeginCapture", kNoGroup, cudaErrorUnknown);
    static unsigned long long next_id = 1;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->legacy) return done(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return done(cudaErrorIllegalState);
    stream->capture = new Capture{new CUgraph_st, stream, mode, pthread_self(), next_id++, false};
    stream->capture_tail.clear();
    g_captures.push_back(stream->capture);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    Call call("cudaStreamEndCapture", kNoGroup, cudaErrorStreamCaptureInvalidated);
    CUstream_st *stream = resolve(s);
    *out = nullptr;
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    Capture *c = stream->capture;
    if (call.error) { /* a failing call still ends the capture */
        if (c) abandon_capture(c);
        return done(call.error);
    }
    if (!c) return done(cudaErrorIllegalState);
    if (c->origin != stream) return done(invalidate(c, cudaErrorStreamCaptureUnmatched));
    if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
        return done(cudaErrorStreamCaptureWrongThread);
    cudaError_t e = c->invalid ? cudaErrorStreamCaptureInvalidated
        : !all_joined(c)       ? cudaErrorStreamCaptureUnjoined
                               : cudaSuccess;
    if (e) {
        abandon_capture(c);
        return done(e);
    }
    leave_capture(c);
    g_graphs[c->graph] = trace_here();
    *out = c->graph;
    delete c;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) {
    ENTER("cudaStreamIsCapturing", kNoGroup, cudaErrorInvalidValue);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    *status = !stream->capture     ? cudaStreamCaptureStatusNone
        : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
static cudaError_t capture_info(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {
    ENTER("cudaStreamGetCaptureInfo", kNoGroup, cudaErrorInvalidValue);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    Capture *c = stream->capture;
    *status = !c     ? cudaStreamCaptureStatusNone
        : c->invalid ? cudaStreamCaptureStatusInvalidated
                     : cudaStreamCaptureStatusActive;
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    stream->capture_handles.clear(); /* opaque: node numbers, counted from 1 */
    for (int n : stream->capture_tail)
        stream->capture_handles.push_back(reinterpret_cast<cudaGraphNode_t>(intptr_t(n) + 1));
    if (id) *id = c->id;
    if (graph) *graph = c->graph;
    if (nodes) *nodes = stream->capture_handles.data();
    if (count) *count = stream->capture_handles.size();
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
    if (edges) *edges = nullptr;
    return capture_info(s, status, id, graph, nodes, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {
    return capture_info(s, status, id, graph, nodes, count);
}
#endif
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long) {
    ENTER("cudaGraphInstantiate", HCU_OBJECT, cudaErrorMemoryAllocation);
    if (!g_graphs.get(g)) return done(cudaErrorInvalidValue);
    *out = new CUgraphExec_st{std::make_shared<vector<Node>>(g->nodes)};
    g_execs[*out] = trace_here();
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *count) {
    ENTER("cudaGraphGetNodes", kNoGroup, cudaErrorInvalidValue);
    if (!g_graphs.get(g) || nodes) return done(cudaErrorInvalidValue); /* only the count is modelled */
    *count = g->nodes.size();
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
    ENTER("cudaGraphLaunch", HCU_GRAPH, cudaErrorLaunchFailure);
    if (!g_execs.get(x)) return done(cudaErrorInvalidValue);
    int device = stream_device(s);
    if (device < 0) return done(cudaErrorInvalidResourceHandle);
    Nodes nodes = x->nodes;
    return done(enqueue(s, Work{"graph", HCU_GRAPH, [=] { run_graph(*nodes, device); }}));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
    ENTER("cudaGraphExecDestroy", HCU_OBJECT, kNeverFails);
    if (!g_execs.erase(x)) {
        bug("cudaGraphExecDestroy: not a live executable graph");
        return done(cudaErrorInvalidValue);
    }
    delete x;
    return done(g_device[t_device].error);
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    ENTER("cudaGraphDestroy", HCU_OBJECT, kNeverFails);
    if (!g_graphs.erase(g)) {
        bug("cudaGraphDestroy: not a live graph");
        return done(cudaErrorInvalidValue);
    }
    delete g;
    return done(g_device[t_device].error);
}

/* ==== the control API (hostcuda_ctl.h) ============================================================================ */

void hcu_set_mode(int mode, unsigned seed) {
    Locked l;
    sync_streams(-1, true);
    g_mode = mode;
    g_random.seed(seed);
}
void hcu_set_devices(int count) {
    Locked l;
    g_device_count = std::max(0, std::min(kMaxDevices, count));
    t_device = 0;
    for (int d = 0; d < g_device_count; d++)
        for (CUstream_st *s : {&g_device[d].legacy, &g_device[d].per_thread})
            if (!s->tsan) s->tsan = tsan_identity();
}
void hcu_set_sms(int device, int count) {
    Locked l;
    g_device[device].sms = count;
}
void hcu_set_occupancy(int blocks) {
    Locked l;
    g_occupancy = blocks;
}
size_t hcu_largest_grid(void) { return g_largest_grid; }
void hcu_set_arch(int device, int major, int minor) {
    Locked l;
    g_device[device].arch = major * 10 + minor;
}
void hcu_set_memory_limit(int device, size_t bytes) {
    Locked l;
    set_device_limit(device, bytes);
}
size_t hcu_device_bytes(int device) {
    Locked l;
    return device_used(device);
}
void hcu_set_protect(int on) {
    Locked l;
    set_protect(on != 0);
}
void hcu_set_scan_params(int on) { g_scan_params = on != 0; }
long hcu_pending(void) {
    Locked l;
    long n = 0;
    for (auto *s : streams_of(-1))
        n += long(s->pending.size());
    return n;
}
} // extern "C"
template <class K> static int leaked(const char *kind, const Map<K, Trace> &live, int print) {
    for (auto *e : live.entries) {
        if (!print) continue;
        fprintf(stderr, "HOSTCUDA LEAK: %s, allocated at\n", kind);
        print_trace(e->value);
    }
    return int(live.entries.size());
}
extern "C" {
__attribute__((destructor)) static void leaks_at_exit(void) {
    if (g_ready && getenv("HCU_LEAKS")) hcu_leaks(1);
}
int hcu_leaks(int print) {
    Locked l;
    int n = memory_leaks(print != 0);
    n += leaked("stream", g_streams, print) + leaked("event", g_events, print) + leaked("graph", g_graphs, print) +
        leaked("executable graph", g_execs, print) + int(g_captures.size());
    if (print && !g_captures.empty()) fprintf(stderr, "HOSTCUDA LEAK: %zu open captures\n", g_captures.size());
    for (auto *e : g_objects.entries) {
        n++;
        if (!print) continue;
        fprintf(stderr, "HOSTCUDA LEAK: %s, allocated at\n", e->value.kind);
        print_trace(e->value.trace);
    }
    return n;
}
static int move_device(void *device, void *host, size_t n, bool to_host) {
    Locked l;
    Place at = place_of(device, n);
    if (at.where != WHERE_DEVICE) return 0;
    enter_device(at.device);
    memcpy(to_host ? host : device, to_host ? device : host, n);
    leave_device(at.device);
    return 1;
}
int hcu_peek(void *dst, const void *src, size_t n) { return move_device(const_cast<void *>(src), dst, n, true); }
void *hcu_last_pinned(void) {
    Locked l;
    return g_last_pinned;
}
int hcu_poke(void *dst, const void *src, size_t n) { return move_device(dst, const_cast<void *>(src), n, false); }

long hcu_calls(const char *api) {
    Locked l;
    long n = 0;
    for (auto *e : g_api_calls.entries)
        if (!api || !strcmp(e->key, api)) n += e->value;
    return n;
}
long hcu_group_calls(int group) { return group >= 0 && group < HCU_GROUP_COUNT ? g_group_calls[group] : 0; }
long hcu_executed(int group) { return group >= 0 && group < HCU_GROUP_COUNT ? g_executed[group] : 0; }
long hcu_failable_calls(void) { return g_failable; }
long hcu_injected(void) { return g_injected; }
const char *hcu_last_injected(void) { return g_last_injected; }
long hcu_ptx_launches(void) { return g_ptx_launches; }
void hcu_reset_counts(void) {
    Locked l;
    for (auto *e : g_api_calls.entries)
        e->value = 0;
    memset(g_group_calls, 0, sizeof g_group_calls);
    memset(g_executed, 0, sizeof g_executed);
    g_failable = g_injected = g_ptx_launches = 0;
    g_largest_grid = 0;
    g_last_injected = "";
}
void hcu_product_time(double first_ms, double more_ms) {
    Locked l;
    g_times = {true, 0, (long long)(1e6 * first_ms), (long long)(1e6 * more_ms)};
}
void hcu_fail_call(const char *api, long nth, int err, int sticky) {
    Locked l;
    snprintf(g_fail_api, sizeof g_fail_api, "%s", api ? api : "");
    g_fail_call_in = nth;
    g_fail_call_error = err;
    g_fail_call_sticky = sticky != 0;
}
void hcu_fail_exec(long nth, int err) {
    Locked l;
    g_fail_exec_in = nth;
    g_fail_exec_error = err ? err : cudaErrorIllegalAddress;
}
void hcu_reset(void) {
    Locked l;
    for (int d = 0; d < g_device_count; d++)
        if (g_device[d].error) {
            sync_streams(d, true); /* what was pending on a dead device never runs */
            g_device[d].error = 0;
        }
    while (!g_captures.empty())
        abandon_capture(g_captures.back());
    g_fail_call_in = g_fail_exec_in = 0;
    g_times = {};
    t_last_error = 0;
    t_capture_mode = cudaStreamCaptureModeGlobal; /* a dead device has not let the library give it back */
    hcu_reset_counts();
}
} // extern "C"
