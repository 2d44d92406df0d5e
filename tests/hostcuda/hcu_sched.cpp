/* hcu_sched.cpp - runs a grid on one OS thread.
 *
 * Each CUDA thread is a fiber that is left only where it must wait: barriers and warp operations.  Threads that never
 * wait run as plain calls on one reused stack, so kernels without barriers cost no switch.  One OS thread makes every
 * run deterministic; the order of threads, warps and blocks is chosen by the test.  Under TSan every CUDA thread has
 * an identity of its own and only CUDA's ordering makes happens-before edges, so races show whatever the schedule. */
#include "hcu_sched.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#if !defined(__x86_64__)
#  include <ucontext.h>
#endif

namespace hcu {

/* ---- diagnosis --------------------------------------------------------------------------------------------------- */

static bool g_abort = true;
static int g_bugs;
void set_abort(int on) { g_abort = on != 0; }
void bug(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("HOSTCUDA BUG: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    print_place();
    g_bugs++;
    if (!g_abort) return;
    print_stack();
    abort();
}
int refused(const char *what) {
    size_t length = strlen(what);
    bool versioned =
        length > 3 && !strcmp(what + length - 3, "_v2"); /* cublasSscal_v2: the header's name for cublasSscal */
    bug("%.*s is not supported by the host runtime (docs/hostcuda.md)", int(versioned ? length - 3 : length), what);
    return strncmp(what, "cublas", 6) ? int(cudaErrorNotSupported) : 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
}
void device_trap(const char *file, int line) {
    bug("__trap() at %s:%d, block %u thread %u", file, line, blockIdx.x, threadIdx.x);
    abort();
}
[[noreturn]] static void device_assert(const char *what, const char *file, unsigned line, const char *function) {
    bug("assertion `%s' failed at %s:%u in %s", what, file, line, function);
    abort();
}
void misaligned(const void *p, size_t alignment, const char *file, int line) {
    bug("misaligned address %p for an access that needs %zu bytes (%s:%d), block %u thread %u", p, alignment, file,
        line, blockIdx.x, threadIdx.x);
}
long long clock_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static int g_order = HCU_FORWARD;
static Random g_random;
void set_order(int order, unsigned seed) {
    g_order = order;
    g_random.seed(seed);
}
static void make_order(std::vector<unsigned> &v, size_t n) {
    v.resize(n);
    for (size_t i = 0; i < n; i++)
        v[i] = unsigned(g_order == HCU_REVERSE ? n - 1 - i : i);
    if (g_order == HCU_SHUFFLE)
        for (size_t i = n; i > 1; i--)
            std::swap(v[i - 1], v[g_random.next() % i]);
}

/* ---- fibers ------------------------------------------------------------------------------------------------------ */

struct Fiber {
#if defined(__x86_64__)
    void *sp = nullptr;
#else
    ucontext_t context;
#endif
    char *stack = nullptr;
    size_t size = 0;
    void *asan_stack = nullptr;
    void *tsan = nullptr;
    size_t launch = 0; /* the one whose start it is behind */
};
static constexpr size_t kStack = HCU_HAS_ASAN || HCU_HAS_MSAN || HCU_HAS_TSAN ? 256 << 10 : 64 << 10;
static constexpr size_t kPage = 4096;
static Fiber g_main; /* the host thread that runs the grid */
static Fiber *g_self = &g_main;
static void fiber_body();

#if defined(__x86_64__)
extern "C" void hcu_swap_stack(void **save_sp, void *to_sp);
asm(R"(
.text
.globl hcu_swap_stack
.hidden hcu_swap_stack
.type hcu_swap_stack,@function
hcu_swap_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8,%rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp,(%rdi)
    movq %rsi,%rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8,%rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size hcu_swap_stack,.-hcu_swap_stack
)");
#endif

#if HCU_HAS_ASAN
static void note_main_stack(const void *bottom, size_t size) {
    g_main.stack = const_cast<char *>(static_cast<const char *>(bottom));
    g_main.size = size;
}
#endif
static void swap_to(Fiber *to) {
    Fiber *from = g_self;
    g_self = to;
#if HCU_HAS_ASAN
    __sanitizer_start_switch_fiber(&from->asan_stack, to->stack, to->size);
#endif
    hb_become(to->tsan);
#if defined(__x86_64__)
    hcu_swap_stack(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
#if HCU_HAS_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(from->asan_stack, &bottom, &size);
    if (from != &g_main) note_main_stack(bottom, size); /* fibers are only ever resumed from main */
#endif
}
static void fiber_start() {
#if HCU_HAS_ASAN
    const void *bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    note_main_stack(bottom, size);
#endif
    fiber_body();
    abort(); /* a fiber never returns */
}
static Fiber *new_fiber() {
    Fiber *f = new Fiber;
    void *m = mmap(nullptr, kStack + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) {
        perror("hostcuda: fiber stack");
        abort();
    }
    mprotect(m, kPage, PROT_NONE);
    f->stack = static_cast<char *>(m) + kPage;
    f->size = kStack;
#if HCU_HAS_VALGRIND
    (void)VALGRIND_STACK_REGISTER(f->stack, f->stack + f->size);
#endif
#if defined(__x86_64__)
    uint64_t *sp = reinterpret_cast<uint64_t *>(f->stack + f->size);
    *--sp = 0; /* fiber_start's return address: rsp is 8 mod 16 at its entry */
    *--sp = reinterpret_cast<uint64_t>(&fiber_start);
    for (int i = 0; i < 6; i++)
        *--sp = 0;                           /* the callee-saved registers */
    *--sp = uint64_t(0x037f) << 32 | 0x1f80; /* x87 and SSE control words: defaults */
    f->sp = sp;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->size;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_start, 0);
#endif
    f->tsan = hb_new();
    return f;
}

/* ---- the launch that runs ---------------------------------------------------------------------------------------- */

static const char *const kWarpOpName[] = {
    "shfl", "ballot", "any", "all", "syncwarp", "match", "reduce", "wmma", "coalesced_threads or __activemask"};
Launch *L;
size_t g_launches, g_blocks_done;
static size_t g_first_block;
static constexpr unsigned kLevels = 4;
unsigned g_level;
static std::vector<Fiber *> &g_idle =
    *new std::vector<Fiber *>; /* never destroyed: leak checkers run after static destructors */

/* Exchanges come from a fixed pool: no allocator call while a kernel thread's TSan identity is current. */
static Exchange g_exchange[4096];
static unsigned short g_exchange_free[4096];
static int g_exchange_count = -1;
static Exchange *exchange_get() {
    if (g_exchange_count < 0)
        for (g_exchange_count = 0; g_exchange_count < 4096; g_exchange_count++)
            g_exchange_free[g_exchange_count] = (unsigned short)g_exchange_count;
    if (g_exchange_count == 0) {
        bug("too many warp operations in flight");
        abort();
    }
    return &g_exchange[g_exchange_free[--g_exchange_count]];
}
void exchange_done(Exchange *x) {
    if (--x->readers == 0) g_exchange_free[g_exchange_count++] = (unsigned short)(x - g_exchange);
}

/* TSan tokens; sharing one with an old block adds an edge to the past and never drops one. */
static unsigned long g_block_number;
static char g_warp_token[4096 * 8], g_block_token[1024 * 16], g_atomic_token[4096 * 8];

bool in_kernel() { return L != nullptr; }
unsigned lane() { return L->current % L->threads_per_block & 31; }
unsigned warp_live_mask();
static Thread &me() { return L->threads[L->current]; }
static Block &my_block() { return L->blocks[L->current / L->threads_per_block]; }
static Warp &warp_of(unsigned t) {
    return L->warps[t / L->threads_per_block * L->warps_per_block + t % L->threads_per_block / 32];
}
unsigned warp_live_mask() { return warp_of(L->current).live; }
static void **g_dynamic_pointer[256]; /* filled before main, in any order of the files */
static unsigned g_dynamic_pointers;
int shared_pointer(void **where) {
    if (g_dynamic_pointers == 256) {
        bug("more than 256 dynamic shared arrays outside of functions");
        abort();
    }
    g_dynamic_pointer[g_dynamic_pointers++] = where;
    return 0;
}
static void set_current(unsigned t) {
    L->current = t;
    if (HCU_HAS_TSAN) reads_thread(t);
    for (unsigned i = 0; i < g_dynamic_pointers; i++)
        *g_dynamic_pointer[i] = L->blocks[t / L->threads_per_block].dynamic;
    const dim3 &b = L->config.block;
    unsigned i = t % L->threads_per_block;
    blockIdx = L->blocks[t / L->threads_per_block].index;
    threadIdx.x = i % b.x;
    threadIdx.y = i / b.x % b.y;
    threadIdx.z = i / (b.x * b.y);
}
static void wait_here(State s) {
    me().state = s;
    swap_to(&g_main);
}
bool thread_runs() { return L && g_self != &g_main; }
static thread_local bool t_runs_grid; /* this thread of the host does, while others may wait for it */
bool yield_thread() {
    if (!t_runs_grid || !thread_runs()) return false;
    L->progress = true;
    swap_to(&g_main);
    return true;
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

static void release_block(Block &k) {
    unsigned first = unsigned(&k - L->blocks.data()) * L->threads_per_block;
    memcpy(k.result[k.generation & 1], k.predicate, sizeof k.predicate);
    for (unsigned t = first; t < first + L->threads_per_block; t++)
        if (L->threads[t].state == AT_BARRIER) L->threads[t].state = READY;
    k.arrived = 0;
    k.generation++;
    L->progress = true;
    if (!HCU_HAS_TSAN) return;
    if (k.live < L->threads_per_block) reads_lanes_ordered(); /* what has ended is not before this barrier */
    reads_segment();
}
static void release_grid() {
    for (Thread &t : L->threads)
        if (t.state == AT_GRID_BARRIER) t.state = READY;
    L->at_grid_barrier = 0;
    L->grid_generation++;
    L->progress = true;
}
int block_barrier(int predicate, BarrierOp op, const char *file, int line) {
    Block &k = my_block();
    unsigned generation = k.generation;
    me().file = file;
    me().line = line;
    if (k.arrived == 0) {
        k.predicate[BARRIER_OR] = 0;
        k.predicate[BARRIER_AND] = 1;
        k.predicate[BARRIER_COUNT] = 0;
        k.file = file;
        k.line = line;
    } else if (k.line != line || strcmp(k.file, file)) {
        bug("%s: threads of block (%u,%u,%u) wait at different barriers: %s:%d and %s:%d", L->config.name, k.index.x,
            k.index.y, k.index.z, k.file, k.line, file, line);
    }
    k.predicate[BARRIER_OR] |= predicate != 0;
    k.predicate[BARRIER_AND] &= predicate != 0;
    k.predicate[BARRIER_COUNT] += predicate != 0;
    hb_release(&k.token[8 * (generation & 1)]);
    if (++k.arrived == k.live)
        release_block(k);
    else
        wait_here(AT_BARRIER);
    hb_acquire(&k.token[8 * (generation & 1)]);
    return op == BARRIER_PLAIN ? 0 : k.result[generation & 1][op];
}
void grid_barrier(const char *file, int line) {
    if (!L->config.cooperative) {
        bug("%s: grid.sync() in a kernel not launched with cudaLaunchAttributeCooperative (%s:%d)", L->config.name,
            file, line);
        return;
    }
    unsigned generation = L->grid_generation;
    me().file = file;
    me().line = line;
    hb_release(&L->token[16 + 8 * (generation & 1)]);
    if (++L->at_grid_barrier == L->live)
        release_grid();
    else
        wait_here(AT_GRID_BARRIER);
    hb_acquire(&L->token[16 + 8 * (generation & 1)]);
}

/* ---- warp operations: complete when every live lane of the mask has come with the same mask ---------------------- */

static bool try_complete(Warp &w, unsigned first_thread, unsigned mask) {
    unsigned want = mask & w.live;
    if (!want || (w.waiting & want) != want) return false;
    for (unsigned i = 0; i < 32; i++)
        if ((want >> i & 1) && L->threads[first_thread + i].mask != mask) return false;
    w.waiting &= ~want;
    Exchange *x = exchange_get();
    x->mask = want;
    x->readers = 0;
    const Thread *leader = nullptr;
    for (unsigned i = 0; i < 32; i++) {
        if (!(want >> i & 1)) continue;
        Thread &t = L->threads[first_thread + i];
        if (!leader)
            leader = &t;
        else if (t.op != leader->op)
            bug("%s: lanes of one mask 0x%08x execute different warp operations: %s at %s:%d and %s at %s:%d",
                L->config.name, mask, kWarpOpName[leader->op], leader->file, leader->line, kWarpOpName[t.op], t.file,
                t.line);
        x->value[i] = t.bits;
        x->readers++;
        t.exchange = x;
        t.state = READY;
    }
    L->progress = true;
    return true;
}
Exchange *warp_exchange(unsigned mask, uint64_t bits, WarpOp op, const char *file, int line) {
    Thread &t = me();
    Warp &w = warp_of(L->current);
    unsigned first = L->current - lane();
    if (!(mask >> lane() & 1))
        bug("%s: %s at %s:%d: calling lane %u is not in its own mask 0x%08x", L->config.name, kWarpOpName[op], file,
            line, lane(), mask);
    t.mask = mask;
    t.bits = bits;
    t.op = op;
    t.file = file;
    t.line = line;
    t.state = AT_WARP_OP;
    char *token = &g_warp_token[8 * ((g_block_number * 32 + first / 32) & 4095)];
    if (HCU_HAS_TSAN && op == WARP_SYNC) reads_lanes_ordered();
    if (op == WARP_SYNC) hb_release(token); /* only __syncwarp orders memory; shuffles and votes do not */
    w.waiting |= 1u << lane();
    if (!try_complete(w, first, mask)) swap_to(&g_main);
    if (op == WARP_SYNC) hb_acquire(token);
    return me().exchange;
}

/* Which lanes run together is known when no thread can go on: those of a warp that wait at one place. */
unsigned coalesced_lanes(const char *file, int line) {
    Thread &t = me();
    t.op = WARP_COALESCE;
    t.file = file;
    t.line = line;
    wait_here(AT_WARP_OP);
    return me().mask;
}
static bool coalesces(const Thread &t) { return t.state == AT_WARP_OP && t.op == WARP_COALESCE; }
static void coalesce() {
    for (size_t first = 0; first < L->threads.size(); first++) {
        const Thread leader = L->threads[first];
        unsigned mask = 0, lane0 = unsigned(first % L->threads_per_block) & 31;
        if (!coalesces(leader)) continue;
        size_t begin = first - lane0,
               end = std::min(begin + 32, begin - begin % L->threads_per_block + L->threads_per_block);
        auto together = [&](const Thread &t) {
            return coalesces(t) && t.line == leader.line && !strcmp(t.file, leader.file);
        };
        for (size_t i = first; i < end; i++)
            if (together(L->threads[i])) mask |= 1u << (i - begin);
        for (size_t i = first; i < end; i++) {
            if (!(mask >> (i - begin) & 1)) continue;
            L->threads[i].mask = mask;
            L->threads[i].state = READY;
        }
        L->progress = true;
    }
}

/* TSan has no fences.  PTX: writes before a fence are visible to whoever fences after reading an atomic that the writer
 * updated after its fence.  The tokens say that (writes between the writer's fence and its atomic are taken along). */
static char *atomic_token(const void *p) { return &g_atomic_token[8 * ((uintptr_t(p) >> 2) % 4096)]; }
void fence() {
    if (!HCU_HAS_TSAN || !L) return;
    Thread &t = me();
    t.fenced = true;
    reads_ordered();
    for (const void *p : t.atomic_at)
        if (p) hb_acquire(atomic_token(p));
}
void atomic_hook(const void *p) {
    if (!HCU_HAS_TSAN || !L) return;
    Thread &t = me();
    if (t.fenced) hb_release(atomic_token(p));
    t.atomic_at[t.atomics++ & 3] = p;
}

/* ---- shared memory: static arrays from the front of a block's arena, the dynamic one at its end ------------------ */

static constexpr size_t kArena = 256 << 10, kArenaSlots = 16, kSharedLimit = 227 << 10;
static char *g_arena;
static unsigned g_arena_slot;
static bool g_arena_used;

static void poison_shared(char *p, size_t n) { /* all ones, without memset: the range may border on redzones */
    for (size_t i = 0; i < n; i++)
        static_cast<volatile char *>(p)[i] = char(0xff);
    mark_undefined(p, n);
}
static char *map_arena(void *at, size_t n) {
    void *p =
        mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
    if (p == MAP_FAILED) {
        perror("hostcuda: shared memory");
        abort();
    }
    return static_cast<char *>(p);
}
static char *block_arena(size_t index_in_group) {
    if (!g_arena) g_arena = map_arena(nullptr, kArena * kArenaSlots);
    if (index_in_group) return map_arena(nullptr, kArena); /* cooperative launch; unmapped by run_group */
    if (HCU_HAS_TSAN && g_arena_used && ++g_arena_slot == kArenaSlots) {
        g_arena_slot = 0;
        map_arena(g_arena, kArena * kArenaSlots); /* a new mapping: TSan forgets the old accesses */
    }
    g_arena_used = false;
    return g_arena + kArena * g_arena_slot;
}
bool in_shared(const void *p) { return g_arena && p >= g_arena && p < g_arena + kArena * kArenaSlots; }
void *shared_dynamic() { return my_block().dynamic; }
void *shared_static(const void *site, size_t bytes, size_t align) {
    Block &k = my_block();
    size_t i = 0;
    while (i < L->arrays.size() && L->arrays[i].site != site)
        i++;
    if (i == L->arrays.size()) {
        size_t unit = std::max<size_t>(align, 16), offset = (L->arrays_end + 64 + unit - 1) / unit * unit;
        L->arrays_end = offset + bytes;
        L->arrays.push_back({site, offset, bytes});
        L->shared_bytes += bytes;
        if (i >= 64 || L->config.shared_bytes + L->shared_bytes > kSharedLimit)
            bug("%s: more than 227 KiB of shared memory, or more than 64 arrays", L->config.name);
    }
    const SharedArray &a = L->arrays[i];
    if (!(k.touched >> i & 1)) {
        k.touched |= uint64_t(1) << i;
        g_arena_used = true;
        __asan_unpoison_memory_region(k.arena + a.offset, a.bytes);
        poison_shared(k.arena + a.offset, a.bytes);
    }
    return k.arena + a.offset;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void thread_exit() {
    unsigned self = L->current;
    Block &k = my_block();
    me().state = DONE;
    k.live--;
    L->live--;
    if (k.arrived && k.arrived == k.live) release_block(k);
    if (L->at_grid_barrier && L->at_grid_barrier == L->live) release_grid();
    Warp &w = warp_of(self);
    unsigned first = self - lane();
    w.live &= ~(1u << lane());
    for (unsigned i = 0; w.waiting && i < 32; i++)
        if ((w.waiting >> i & 1) && try_complete(w, first, L->threads[first + i].mask)) break;
    L->progress = true;
}
/* A fiber runs new threads back to back until one of them has to wait. */
static void fiber_body() {
    for (;;) {
        me().fiber = g_self;
        if (HCU_HAS_TSAN && g_self->launch != g_launches) hb_acquire(&L->token[0]);
        g_self->launch = g_launches;
        L->desc->invoke(L->function, L->args);
        thread_exit();
        while (L->next < L->order.size() && L->threads[L->order[L->next]].state != NEW)
            L->next++;
        if (L->next < L->order.size() &&
            L->order[L->next] / L->threads_per_block == L->current / L->threads_per_block) {
            set_current(L->order[L->next++]);
            me().state = READY;
            if (HCU_HAS_TSAN) swap_to(me().fiber); /* each thread needs its own stack and identity */
            continue;
        }
        if (!HCU_HAS_TSAN) g_idle.push_back(g_self);
        swap_to(&g_main);
    }
}
static void resume(unsigned t) {
    set_current(t);
    Fiber *f = me().fiber;
    if (!f && !g_idle.empty()) {
        f = g_idle.back();
        g_idle.pop_back();
    }
    if (!f) f = new_fiber();
    if (me().state == NEW) me().state = READY;
    swap_to(f);
}
static void report_deadlock() {
    char text[2048] = "";
    size_t n = 0;
    int shown = 0;
    for (size_t i = 0; i < L->threads.size() && shown < 6; i++) {
        const Thread &t = L->threads[i];
        if (t.state == DONE) continue;
        const char *what = t.state == AT_BARRIER ? "__syncthreads"
            : t.state == AT_GRID_BARRIER         ? "grid.sync"
                                                 : kWarpOpName[t.op];
        n += size_t(snprintf(text + n, sizeof text - n, "\n    block %zu thread %zu waits in %s at %s:%d",
            i / L->threads_per_block, i % L->threads_per_block, what, t.file, t.line));
        if (n >= sizeof text) break;
        shown++;
    }
    bug("%s: deadlock, no thread can go on (divergent barrier, or a mask naming a lane that went elsewhere)%s",
        L->config.name, text);
    abort();
}
static std::vector<Fiber *> &tsan_fibers() {
    static std::vector<Fiber *> *levels =
        new std::vector<Fiber *>[kLevels]; /* children have others than their parents */
    return levels[std::min(g_level, kLevels - 1)];
}
/* Neighbouring blocks, in each direction, and launches after one another use disjoint TSan identities: one identity
 * in both would carry the first block's history into the second one's barriers and hide races between blocks.  gcc's
 * runtime has room for them; clang's tracks 255. */
unsigned half_of(const uint3 &block) { return unsigned(block.x + block.y + block.z + g_launches) & 1; }
size_t launch_of_identity(unsigned slot) { return tsan_fibers()[slot]->launch; }
static void assign_tsan_fibers(Launch &l) {
    std::vector<Fiber *> &slots = tsan_fibers();
    for (size_t i = 0; i < l.threads.size(); i++) {
        size_t s = i + half_of(l.blocks[0].index) * l.threads.size();
        while (slots.size() <= s) {
            slots.push_back(new_fiber());
            hb_name(slots.back()->tsan, g_level, unsigned(slots.size()) - 1);
        }
        l.threads[i].fiber = slots[s];
    }
}
/* The end of the launch is behind all that its threads did. */
static void release_tsan_fibers(Launch &l) {
    for (Fiber *f : tsan_fibers())
        if (f->launch == g_launches) {
            hb_become(f->tsan);
            hb_release(&l.token[8]);
        }
    hb_become(g_main.tsan);
}
/* One block, or all blocks of a cooperative launch. */
static void run_group(const std::vector<uint3> &ids) {
    Launch &l = *L;
    size_t count = ids.size(), shared = l.config.shared_bytes;
    l.blocks.assign(count, Block{});
    l.threads.assign(count * l.threads_per_block, Thread{});
    l.live = unsigned(l.threads.size());
    l.at_grid_barrier = 0;
    l.warps_per_block = (l.threads_per_block + 31) / 32;
    l.warps.resize(count * l.warps_per_block);
    for (size_t i = 0; i < l.warps.size(); i++) {
        unsigned lanes = l.threads_per_block - unsigned(i % l.warps_per_block) * 32;
        l.warps[i] = {lanes >= 32 ? ~0u : (1u << lanes) - 1, 0};
    }
    for (size_t i = 0; i < count; i++) {
        Block &k = l.blocks[i];
        k.index = ids[i];
        k.live = l.threads_per_block;
        k.arena = block_arena(i);
        k.token = &g_block_token[16 * ((g_block_number + i) & 1023)];
        __asan_poison_memory_region(k.arena, kArena);
        k.dynamic = k.arena + kArena - (shared + 127) / 128 * 128 - 128; /* 128-byte aligned, a redzone behind it */
        if (shared) {
            g_arena_used = true;
            __asan_unpoison_memory_region(k.dynamic, shared);
            poison_shared(k.dynamic, shared);
        }
    }
    make_order(l.order, l.threads.size());
    l.next = 0;
    if (HCU_HAS_TSAN) {
        assign_tsan_fibers(l);
        reads_block(half_of(ids[0]));
    }
    g_block_number += count;
    g_blocks_done = g_block_number - count - g_first_block;
    while (l.live) {
        l.progress = false;
        for (size_t i = 0; i < l.order.size(); i++) {
            Thread &t = l.threads[l.order[i]];
            if (t.state != NEW && t.state != READY) continue;
            if (t.state == NEW && l.next <= i) l.next = i + 1;
            l.progress = true;
            resume(l.order[i]);
        }
        if (!l.progress) coalesce();
        if (!l.progress) report_deadlock();
    }
    for (size_t i = 1; i < count; i++) {
        __asan_unpoison_memory_region(l.blocks[i].arena, kArena);
        munmap(l.blocks[i].arena, kArena);
    }
}

/* ---- dynamic parallelism ----------------------------------------------------------------------------------------- */

void add_child(std::function<void()> run, ChildOrder order) {
    const dim3 &g = L->config.grid;
    const uint3 &b = my_block().index;
    static void *identity[64];
    static unsigned next;
    void *&id = identity[next++ % 64];
    if (!id) id = hb_new(); /* now: a new one knows what its maker knows */
    Child *c = new Child{std::move(run), order, (size_t(b.z) * g.y + b.y) * g.x + b.x, id, {}, {}};
    hb_release(c->start);
    L->children.push_back(c);
    reads_ordered();
}
/* Under TSan a child is behind the thread that launched it and the children of that block before it; one in the tail is
 * behind everything. */
static void run_child(Launch &l, size_t which) {
    Child &c = *l.children[which];
    void *self = hb_self();
    hb_become(c.identity);
    hb_acquire(c.start);
    if (c.order == CHILD_TAIL) hb_acquire(&l.token[8]);
    for (size_t i = 0; i < l.children.size(); i++) {
        const Child &before = *l.children[i];
        bool ordered =
            i < which && c.order == CHILD_IN_BLOCK_ORDER && before.order == c.order && before.block == c.block;
        if (ordered || (c.order == CHILD_TAIL && (before.order != CHILD_TAIL || i < which)))
            hb_acquire(l.children[i]->done);
    }
    c.run();
    hb_release(c.done);
    hb_become(self);
    hb_acquire(c.done);
}
static void run_children(Launch &l) {
    g_level++;
    for (bool tail : {false, true})
        for (size_t i = 0; i < l.children.size(); i++)
            if ((l.children[i]->order == CHILD_TAIL) == tail) run_child(l, i);
    g_level--;
    for (Child *c : l.children)
        delete c;
}
void run_grid(const void *function, const KernelDesc *desc, void **args, const GridConfig &config) {
    hb_quiet(true); /* the scheduler itself; the kernel's threads have identities of their own */
    Launch l{};
    l.function = function;
    l.desc = desc;
    l.args = args;
    l.config = config;
    l.threads_per_block = config.block.x * config.block.y * config.block.z;
    l.arrays.reserve(64);
    l.token = new char[32]; /* from the heap: freeing it makes TSan forget the tokens */
    L = &l;
    t_runs_grid = true;
    blockDim = config.block;
    gridDim = config.grid;
    g_main.tsan = hb_self();
    hb_release(&l.token[0]);

    size_t blocks = size_t(config.grid.x) * config.grid.y * config.grid.z;
    std::vector<unsigned> order;
    std::vector<uint3> ids;
    g_launches++;
    g_first_block = g_block_number;
    make_order(order, blocks);
    reads_launch(function, config.cooperative);
    for (unsigned n : order) {
        ids.push_back(uint3{n % config.grid.x, n / config.grid.x % config.grid.y, n / (config.grid.x * config.grid.y)});
        if (config.cooperative) continue;
        run_group(ids);
        ids.clear();
    }
    if (config.cooperative) run_group(ids);
    reads_end();
    if (HCU_HAS_TSAN) release_tsan_fibers(l);

    hb_acquire(&l.token[8]);
    L = nullptr;
    t_runs_grid = false;
    run_children(l);
    delete[] l.token;
    hb_quiet(false);
}
} // namespace hcu

extern "C" void hcu_set_order(int order, unsigned seed) { hcu::set_order(order, seed); }
extern "C" void hcu_set_abort(int on) { hcu::set_abort(on); }
extern "C" int hcu_bugs(void) { return hcu::g_bugs; }

/* What libcu++ does in a loop that waits, as in cuda::barrier and cuda::counting_semaphore: the other threads run. They
 * stand in front of the C library's functions; threads of the host get those. */
extern "C" int sched_yield(void) { return hcu::yield_thread() ? 0 : int(syscall(SYS_sched_yield)); }
extern "C" int nanosleep(const timespec *time, timespec *left) {
    return hcu::yield_thread() ? 0 : int(syscall(SYS_nanosleep, time, left));
}
/* A failed assert in a kernel names the thread, as on a GPU; on the host it is the C library's affair. */
extern "C" [[noreturn]] void __assert_fail(
    const char *what, const char *file, unsigned line, const char *function) noexcept {
    if (hcu::t_runs_grid && hcu::thread_runs()) hcu::device_assert(what, file, line, function);
    using Fail = void (*)(const char *, const char *, unsigned, const char *);
    reinterpret_cast<Fail>(dlsym(RTLD_NEXT, "__assert_fail"))(what, file, line, function);
    abort();
}
