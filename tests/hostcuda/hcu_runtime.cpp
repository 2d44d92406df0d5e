/* hcu_runtime.cpp - the CUDA runtime over host memory: running stream work, capture and graphs, launches, copies.
 * Linked instead of libcudart; the API's functions are in hcu_api.cpp and hcu_copies.cpp.
 *
 * A stream is a real queue.  An operation holds what it depends on (its stream's last operation, events waited for,
 * the default stream's rules); it runs when a synchronisation needs it, when the random mode picks it, or at once in
 * eager mode.  A missing synchronisation therefore shows as missing work, not as a rare race. */
#include "hcu_state.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
using std::vector;

namespace hcu {

Device *g_device = new Device[kMaxDevices];
int g_device_count = 2, g_mode = HCU_LAZY;
bool g_ready, g_scan_params = true, g_leaks_told;
Random g_random;
Map<CUstream_st *, Trace> &g_streams = *new Map<CUstream_st *, Trace>;
Map<CUevent_st *, Trace> &g_events = *new Map<CUevent_st *, Trace>;
Map<CUgraph_st *, Trace> &g_graphs = *new Map<CUgraph_st *, Trace>;
Map<CUgraphExec_st *, Trace> &g_execs = *new Map<CUgraphExec_st *, Trace>;
Map<const void *, Object> &g_objects = *new Map<const void *, Object>; /* handles of cuBLAS and the like */
vector<Capture *> &g_captures = *new vector<Capture *>;

Map<const void *, KernelInfo> &g_kernels = *new Map<const void *, KernelInfo>;

Map<const char *, long> &g_api_calls = *new Map<const char *, long>;
long g_group_calls[HCU_GROUP_COUNT], g_executed[HCU_GROUP_COUNT], g_failable, g_injected, g_ptx_launches;
int g_occupancy; /* 0: by threads */
long g_loads, g_followers;
int g_compiled_for;
int g_start_error, g_driver = CUDART_VERSION;
bool g_loads_in_capture = true;
size_t g_largest_grid;
long g_fail_call_in, g_fail_exec_in;
int g_fail_call_error, g_fail_exec_error;
bool g_fail_call_sticky;
char g_fail_api[80]; /* empty: any call */
const char *g_last_injected = "";

thread_local int t_device, t_last_error;
thread_local void *t_context;
thread_local bool t_in_host_function;
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

static int env_choice(const char *name, int fallback, const char *const *words, int count) {
    const char *value = getenv(name);
    if (!value) return fallback;
    for (int i = 0; i < count; i++)
        if (!strcmp(value, words[i])) return i;
    fprintf(stderr, "hostcuda: %s=%s is not known\n", name, value);
    exit(2);
}
/* Told before main, when nothing of the runtime need be made yet: kept until the first call. */
static struct {
    void *symbol;
    size_t size;
} g_early[1024];
static unsigned g_early_count;
static bool g_thrust;
int symbol_before_main(void *symbol, size_t size) {
    if (g_early_count == 1024) {
        bug("more than 1024 __managed__ variables");
        abort();
    }
    g_early[g_early_count++] = {symbol, size};
    return 0;
}
int thrust_present() {
    g_thrust = true;
    return 0;
}
static void init() {
    if (g_ready) return;
    g_ready = true;
    memory_init();
    report_init();
    for (unsigned i = 0; i < g_early_count; i++)
        symbol_known(g_early[i].symbol, g_early[i].size);
    static const char *const modes[] = {"eager", "lazy", "random"}, *const orders[] = {"forward", "reverse", "shuffle"};
    const char *seed_text = getenv("HCU_SEED"), *value;
    unsigned seed = seed_text ? unsigned(strtoul(seed_text, nullptr, 0)) : 1;
    g_mode = env_choice("HCU_MODE", g_mode, modes, 3);
    g_random.seed(seed);
    if (getenv("HCU_ORDER")) set_order(env_choice("HCU_ORDER", 0, orders, 3), seed);
    if ((value = getenv("HCU_DEVICES"))) g_device_count = std::max(0, std::min(kMaxDevices, atoi(value)));
    if ((value = getenv("HCU_ABORT"))) set_abort(atoi(value));
    if ((value = getenv("HCU_PROTECT"))) set_protect(atoi(value) != 0);
    if (g_thrust) {
        g_mode = HCU_EAGER;
        set_protect(false);
    }
    if (getenv("HCU_LEAKS")) atexit([] { cudaDeviceSynchronize(); }); /* what nobody waited for is looked at, too */
    if ((value = getenv("HCU_PTX")) && hcu_ptx_load(value) < 0) exit(2);
    if ((value = getenv("HCU_SASS")) && hcu_sass_load(value) < 0) exit(2);
    for (int d = 0; d < kMaxDevices; d++) {
        if ((value = getenv("HCU_ARCH"))) g_device[d].arch = atoi(value);
        if ((value = getenv("HCU_SMS"))) g_device[d].sms = std::max(1, atoi(value));
        g_device[d].legacy.legacy = true;
        for (CUstream_st *s : {&g_device[d].legacy, &g_device[d].per_thread}) {
            s->device = d;
            if (d < g_device_count) s->tsan = tsan_identity();
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
int start_error() { return g_start_error ? g_start_error : g_device_count ? 0 : int(cudaErrorNoDevice); }
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

Times g_times;
static int g_running_device; /* of the stream work that runs, or ran last */

/* Is this piece of work to be done?  Counts it, delivers armed faults, refuses on a dead device. */
static bool starts(int device, int group) {
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
static void run_op(Op &op) {
    void *host = hb_self();
    g_running_device = op.stream->device;
    hb_become(op.stream->tsan);
    hb_acquire(&op.start_token);
    for (auto &d : op.after)
        hb_acquire(&d->done_token);
    bool go = starts(op.stream->device, op.work.group);
    if (op.work.run && (go || op.unconditional)) op.work.run();
    op.work.run = nullptr;
    hb_release(&op.done_token);
    hb_become(host);
    op.time_ns = g_times.set ? g_times.now_ns : clock_ns();
    op.done = true;
}
void run_until(const OpP &target) { /* the operation and all it depends on, nothing else */
    if (!target || target->done) return;
    show_host_memory();
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
    hide_host_memory();
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
        for (auto &d : op->after)
            stack.push_back(d);
        op->after.clear();
    }
    host_memory_seen();
}
static void random_progress() {
    if (g_mode != HCU_RANDOM || in_kernel()) return;
    for (unsigned n = g_random.next() % 3; n; n--) {
        vector<CUstream_st *> busy;
        for (auto *s : streams_of(-1))
            if (!s->pending.empty()) busy.push_back(s);
        if (busy.empty()) return;
        run_until(busy[g_random.next() % busy.size()]->pending.front());
    }
}
OpP submit(CUstream_st *s, Work work, OpP wait_for) {
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
void wait_behind(CUstream_st *s, const OpP &op) {
    if (op) settle(submit(s, Work{"wait", kNoGroup, nullptr}, op));
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
/* The capture of a blocking stream: the legacy stream would have to wait for what is only being recorded. */
Capture *capture_beside(const CUstream_st *s) {
    if (!s->legacy) return nullptr;
    for (auto *t : streams_of(s->device))
        if (t->capture && blocking(t)) return t->capture;
    return nullptr;
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
    for (int d = 0; visible && d < g_device_count; d++) {
        if (device >= 0 && d != device) continue;
        for (const OpP &op : g_device[d].left)
            make_visible(op);
        g_device[d].left.clear();
    }
}
cudaError_t wait_for_device() {
    cudaError_t e = cudaSuccess;
    for (Capture *c : g_captures)
        if (c->origin->device == t_device) e = invalidate(c, cudaErrorStreamCaptureUnsupported);
    if (e) return e;
    sync_streams(t_device, true);
    return cudaError_t(g_device[t_device].error);
}
cudaError_t sync_stream(CUstream_st *s) {
    if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
    if (Capture *c = capture_beside(s)) return invalidate(c, cudaErrorStreamCaptureImplicit);
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
static const char *symbol_name(const void *f) { /* never freed: one per kernel */
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
static const char *host_pointer_text(const void *p) {
    if (!in_kernel()) return "a host pointer";
    Dl_info object; /* in a kernel, a __device__ variable's address is that of the program's own variable */
    return dladdr(p, &object) ? nullptr : "shared or local memory of the parent, or a host pointer";
}
static void check_parameter(const KernelInfo &k, int index, const void *value, int device) {
    const KernelDesc &d = *k.desc;
    if (d.kind[index] == PARAM_POINTER) {
        void *p;
        memcpy(&p, value, sizeof p);
        if (!p) return;
        Place at = place_of(p, 1);
        const char *text = at.where == WHERE_HOST ? host_pointer_text(p) : at.where == WHERE_FREED ? at.text : nullptr;
        if (text)
            bug("launch of %s: argument %d (%p) is %s", k.name, index, p, text);
        else if (at.where == WHERE_DEVICE && at.device != device)
            bug("launch of %s on device %d: argument %d (%p) is memory of device %d", k.name, device, index, p,
                at.device);
        return;
    }
    if (!g_scan_params || d.kind[index] != PARAM_WORDS || in_kernel()) return;
    for (size_t i = 0; i + sizeof(void *) <= d.size[index]; i += sizeof(void *)) {
        void *p;
        memcpy(&p, static_cast<const char *>(value) + i, sizeof p);
        if (place_of(p, 1).where == WHERE_HOST && mapped_host_memory(p))
            bug("launch of %s: argument %d holds a host pointer (%p) at byte %zu", k.name, index, p, i);
    }
}
/* The streams that a kernel may name: the default one, and the two that have no handle. */
static bool child_order(cudaStream_t s, ChildOrder *order) {
    *order = s == nullptr ? CHILD_IN_BLOCK_ORDER : uintptr_t(s) == 3 ? CHILD_TAIL : CHILD_FREE;
    return uintptr_t(s) == 0 || uintptr_t(s) == 3 || uintptr_t(s) == 4;
}
static cudaError_t enqueue_launch(cudaStream_t s, std::function<void()> run) {
    if (!in_kernel()) return enqueue(s, Work{"kernel", HCU_LAUNCH, run});
    ChildOrder order;
    if (!child_order(s, &order)) return cudaError_t(refused("a launch in a kernel on a stream made in a kernel"));
    add_child(run, order);
    return cudaSuccess;
}
cudaError_t load(const void *f, int device) {
    unsigned &loaded = g_kernels[f].loaded, bit = 1u << device;
    g_device[device].in_use = true;
    if (loaded & bit) return cudaSuccess;
    if (cudaError_t e = g_loads_in_capture ? cudaSuccess : forbidden_in_capture()) return e;
    loaded |= bit;
    g_loads++;
    return cudaSuccess;
}
/* CUDA 13 has one error for a grid or block of a wrong size; cudaErrorInvalidConfiguration was that of older ones. */
static cudaError_t refused_launch(CUstream_st *stream, cudaError_t e) {
    return !in_kernel() && stream->capture ? invalidate(stream->capture, e) : e;
}
cudaError_t launch(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s, bool cooperative) {
    if (!f) return cudaErrorInvalidDeviceFunction;
    KernelInfo *k = g_kernels.get(f);
    if (!k || !k->desc) /* no kernel, or one whose parameters nobody knows */
        return cudaError_t(refused("a launch by an untyped pointer to what was never seen as a kernel"));
    CUstream_st *stream = resolve(s);
    if (!in_kernel() && (!valid(stream) || stream->device != t_device)) return cudaErrorInvalidResourceHandle;
    int device = in_kernel() ? g_running_device : stream->device;
    size_t threads = size_t(block.x) * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || block.x > 1024 || block.y > 1024 ||
        block.z > 64 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
        return refused_launch(stream, cudaErrorInvalidValue);
    if (!in_kernel())
        if (cudaError_t e = load(f, device)) return e;
    if (shared > size_t(std::max(k->shared_optin, 48 << 10))) return refused_launch(stream, cudaErrorInvalidValue);
    if (cooperative && size_t(grid.x) * grid.y * grid.z * threads > 32768)
        return refused_launch(stream, cudaErrorCooperativeLaunchTooLarge);
    if (!k->name) k->name = symbol_name(f);
    g_largest_grid = std::max(g_largest_grid, size_t(grid.x) * grid.y * grid.z);

    KernelDesc desc = *k->desc;
    vector<size_t> offset(size_t(desc.count) + 1);
    for (int i = 0; i < desc.count; i++)
        offset[size_t(i) + 1] = (offset[size_t(i)] + desc.size[i] + 15) / 16 * 16;
    auto values = std::make_shared<vector<char>>(offset.back() + 16);
    for (int i = 0; i < desc.count; i++) {
        memcpy(values->data() + offset[size_t(i)], args[i], desc.size[i]);
        check_parameter(*k, i, args[i], device);
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
    return enqueue_launch(s, run);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

cudaError_t plan_copy(
    const char *api, void *dst, const void *src, size_t n, cudaMemcpyKind kind, int stream_dev, CopyPlan *plan) {
    Place d = place_of(dst, n), s = place_of(src, n);
    for (const Place *p : {&d, &s})
        if (p->where == WHERE_FREED || p->where == WHERE_OUTSIDE) {
            bug("%s: %s is %s", api, p == &d ? "destination" : "source", p->text);
            return cudaErrorInvalidValue;
        }
    if (unsigned(kind) > unsigned(cudaMemcpyDefault)) return cudaErrorInvalidMemcpyDirection;
    plan->dst_device = d.where == WHERE_DEVICE;
    plan->src_device = s.where == WHERE_DEVICE;
    plan->pageable = d.where == WHERE_HOST || s.where == WHERE_HOST;
    plan->other_device = plan->dst_device && d.device != stream_dev ? d.device
        : plan->src_device && s.device != stream_dev                ? s.device
                                                                    : -1;
    /* an address tells what it is: only pageable memory cannot be taken for the device's */
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool wrong = (to_device && d.where == WHERE_HOST) || (from_device && s.where == WHERE_HOST);
    return wrong ? cudaErrorInvalidValue : cudaSuccess;
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
    Work work{api, HCU_COPY, nullptr, nullptr, nullptr, n};
    if (!plan.dst_device && !host_waits) work.host_dst = dst;
    if (!plan.src_device && place_of(src, 1).where == WHERE_HOST && !stream->capture && !host_waits) {
        auto staged = std::make_shared<vector<char>>(n); /* pageable source: copied before the call returns */
        memcpy(staged->data(), src, n);
        work.run = [=] { move(staged->data()); };
        return enqueue(s, work);
    }
    if (!plan.src_device && !host_waits && !HCU_HAS_TSAN) work.host_src = src;
    work.run = [=] { move(src); };
    return enqueue(s, work);
}
/* ---- what the other parts of the runtime use (hcu_core.h) -------------------------------------------------------- */

/* What a kernel may call: launches, and questions. The rest of the API is for the host, or of a device runtime that is
 * not modelled; nvcc refuses most of it. */
static bool allowed_in_kernel(const char *api) {
    static const char *const names[] = {"cudaLaunchKernel", "cudaLaunchKernelEx", "cudaGetDevice", "cudaGetDeviceCount",
        "cudaDeviceGetAttribute", "cudaFuncGetAttributes", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"};
    for (const char *name : names)
        if (!strcmp(api, name)) return true;
    return false;
}
static void check_in_kernel(const char *api) {
    if (!strcmp(api, "cudaDeviceSynchronize"))
        bug("cudaDeviceSynchronize in a kernel: CUDA 12 has none; a grid launched there runs after it (launch the "
            "rest into cudaStreamTailLaunch)");
    else
        bug("%s in a kernel: a call for the host, or of a part of CUDA's device runtime that is not supported "
            "(docs/hostcuda.md)",
            api);
    abort();
}
/* Whatever happens, these answer: they ask the host, or what was known before. */
static bool needs_no_driver(const char *api) {
    return !strcmp(api, "cudaDriverGetVersion") || !strcmp(api, "cudaRuntimeGetVersion");
}
static bool survives_the_device(const char *api) {
    static const char *const names[] = {"cudaDeviceGetAttribute", "cudaGetDeviceProperties", "cudaPointerGetAttributes",
        "cudaSetDevice", "cudaGetDevice", "cudaGetDeviceCount", "cudaThreadExchangeStreamCaptureMode",
        "cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate"};
    for (const char *name : names)
        if (!strcmp(api, name)) return true;
    return needs_no_driver(api);
}
Call::Call(const char *api, int group, int natural) : error(0), dead(false) {
    lock();
    init();
    if (in_kernel() && !allowed_in_kernel(api)) check_in_kernel(api);
    g_api_calls[api]++;
    if (group >= 0) g_group_calls[group]++;
    if (group >= 0) g_device[t_device].in_use = true;
    if (start_error() && !needs_no_driver(api)) {
        error = strncmp(api, "cublas", 6) ? start_error() : 1; /* CUBLAS_STATUS_NOT_INITIALIZED */
        return;
    }
    if (t_in_host_function && !strncmp(api, "cuda", 4)) {
        error = cudaErrorNotPermitted;
        return;
    }
    if (t_context && group >= 0) { /* what the program has is the primary context's */
        error = strncmp(api, "cublas", 6) ? int(cudaErrorInvalidResourceHandle) : 14; /* CUBLAS_STATUS_INTERNAL_ERROR */
        return;
    }
    if (natural >= 0) {
        if (g_device[t_device].error && !survives_the_device(api)) {
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
/* A launch by <<<>>> tells nobody that it failed: whoever never asks is told at the end. */
static struct {
    const char *name;
    cudaError_t error;
    Trace trace;
} g_unseen;
void launch_result(cudaError_t e, const char *name) {
    Locked l;
    if (e == cudaSuccess || g_unseen.error || g_device[t_device].error) return;
    g_unseen = {name, e, trace_here()};
}
void launch_results_seen() { g_unseen.error = cudaSuccess; }
void report_unseen_launch() {
    if (!g_unseen.error) return;
    set_abort(0);
    bug("the launch of %s failed: %s (%s), and nobody noticed: cudaGetLastError was not asked; launched at",
        g_unseen.name, cudaGetErrorName(g_unseen.error), cudaGetErrorString(g_unseen.error));
    print_trace(g_unseen.trace);
}
__attribute__((destructor)) static void report_at_exit() {
    if (!g_ready) return;
    report_unseen_launch();
    if (getenv("HCU_LEAKS") && !g_leaks_told) hcu_leaks(1);
}
cudaError_t symbol_copied() {
    Locked l;
    return done(sync_stream(resolve(nullptr)));
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
    if (Capture *c = capture_beside(stream)) return invalidate(c, cudaErrorStreamCaptureImplicit);
    OpP op = submit(stream, std::move(work));
    if (g_mode != HCU_EAGER) watch_host_memory(op);
    settle(op);
    return cudaSuccess;
}
} // namespace hcu
