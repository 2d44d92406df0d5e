/* hcu_core.h - internal: what the runtime's source files share.  Sanitizer glue, a sorted map, and the functions that
 * scheduler, memory, runtime, BLAS and PTX interpreter offer each other. */
#ifndef HCU_CORE_H
#define HCU_CORE_H
#include <cuda_runtime_api.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>
#include "hostcuda_ctl.h"
#include "hostcuda_device.h"

/* ---- which sanitizer this is built for ------------------------------------------------------------------------------
 * TSan and Valgrind builds say so with a macro: under TSan the runtime itself stays uninstrumented. */

#if !defined(__has_feature) /* gcc 12 */
#  define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#  define HCU_HAS_ASAN 1
#  include <sanitizer/asan_interface.h>
#  include <sanitizer/common_interface_defs.h>
#else
#  define HCU_HAS_ASAN                        0
#  define __asan_poison_memory_region(p, n)   ((void)(p), (void)(n))
#  define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif
#if defined(HCU_TSAN)
#  define HCU_HAS_TSAN 1
#  include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_read_range(void *, unsigned long);
void __tsan_write_range(void *, unsigned long);
void AnnotateIgnoreReadsBegin(const char *, int);
void AnnotateIgnoreReadsEnd(const char *, int);
void AnnotateIgnoreWritesBegin(const char *, int);
void AnnotateIgnoreWritesEnd(const char *, int);
}
#else
#  define HCU_HAS_TSAN 0
#endif
#if __has_feature(memory_sanitizer)
#  define HCU_HAS_MSAN 1
#  include <sanitizer/common_interface_defs.h>
#  include <sanitizer/msan_interface.h>
#else
#  define HCU_HAS_MSAN 0
#endif
#if defined(HCU_VALGRIND)
#  define HCU_HAS_VALGRIND 1
#  include <valgrind/memcheck.h>
#else
#  define HCU_HAS_VALGRIND 0
#endif

/* A sanitizer knows lines itself. */
#define HCU_SYMBOLIZES (HCU_HAS_ASAN || HCU_HAS_TSAN || HCU_HAS_MSAN)
#if HCU_SYMBOLIZES
extern "C" void __sanitizer_print_stack_trace(void);
#endif

namespace hcu {

/* Happens-before edges for TSan, through tokens: who acquires a token is behind everybody who released it.  Device
 * work runs under the identity of its stream or CUDA thread, so that only real CUDA ordering makes edges. */
#if HCU_HAS_TSAN
inline void hb_release(void *token) { __tsan_release(token); }
inline void hb_acquire(void *token) { __tsan_acquire(token); }
inline void hb_read(const void *p, size_t n) { __tsan_read_range(const_cast<void *>(p), n); }
inline void hb_write(void *p, size_t n) { __tsan_write_range(p, n); }
inline void *hb_self() { return __tsan_get_current_fiber(); }
inline void *hb_new() { return __tsan_create_fiber(0); }
inline void hb_name(void *id, unsigned level, unsigned number) { /* for __tsan_on_report */
    char name[32];
    snprintf(name, sizeof name, "hcu %u %u", level, number);
    __tsan_set_fiber_name(id, name);
}
inline void hb_become(void *id) {
    if (id != __tsan_get_current_fiber()) __tsan_switch_to_fiber(id, __tsan_switch_to_fiber_no_sync);
}
inline void hb_quiet(
    bool on) { /* what the current identity does to the runtime's own data is none of TSan's business */
    if (on) {
        AnnotateIgnoreReadsBegin("", 0);
        AnnotateIgnoreWritesBegin("", 0);
    } else {
        AnnotateIgnoreWritesEnd("", 0);
        AnnotateIgnoreReadsEnd("", 0);
    }
}
#else
inline void hb_release(void *) {}
inline void hb_acquire(void *) {}
inline void hb_read(const void *, size_t) {}
inline void hb_write(void *, size_t) {}
inline void *hb_self() { return nullptr; }
inline void *hb_new() { return nullptr; }
inline void hb_name(void *, unsigned, unsigned) {}
inline void hb_become(void *) {}
inline void hb_quiet(bool) {}
#endif

/* Tells MSan and Valgrind that nobody has written this memory. */
inline void mark_undefined(void *p, size_t n) {
    (void)p, (void)n;
#if HCU_HAS_MSAN
    __msan_allocated_memory(p, n);
#endif
#if HCU_HAS_VALGRIND
    (void)VALGRIND_MAKE_MEM_UNDEFINED(p, n);
#endif
}
/* Tells them that it does not matter who wrote it. */
inline void mark_defined(void *p, size_t n) {
    (void)p, (void)n;
#if HCU_HAS_MSAN
    __msan_unpoison(p, n);
#endif
#if HCU_HAS_VALGRIND
    (void)VALGRIND_MAKE_MEM_DEFINED(p, n);
#endif
}

/* A sorted array of owned entries.  std::map keeps its balancing code inside the uninstrumented C++ library, where
 * MSan cannot follow it (the same goes for std::string, so the runtime uses none); entries keep their addresses. */
template <class K, class V> struct Map {
    struct Entry {
        K key;
        V value;
    };
    std::vector<Entry *> entries;
    Map() = default;
    Map(const Map &o) {
        for (Entry *e : o.entries)
            entries.push_back(new Entry(*e));
    }
    Map &operator=(Map o) {
        entries.swap(o.entries);
        return *this;
    }
    ~Map() {
        for (Entry *e : entries)
            delete e;
    }
    typename std::vector<Entry *>::iterator position(const K &k) {
        return std::lower_bound(
            entries.begin(), entries.end(), k, [](const Entry *e, const K &x) { return e->key < x; });
    }
    V *get(const K &k) {
        auto i = position(k);
        return i != entries.end() && !(k < (*i)->key) ? &(*i)->value : nullptr;
    }
    Entry *at_or_below(const K &k) {
        auto i =
            std::upper_bound(entries.begin(), entries.end(), k, [](const K &x, const Entry *e) { return x < e->key; });
        return i == entries.begin() ? nullptr : *--i;
    }
    V &operator[](const K &k) {
        if (V *v = get(k)) return *v;
        Entry *e = new Entry{k, V{}};
        entries.insert(position(k), e);
        return e->value;
    }
    bool erase(const K &k) {
        auto i = position(k);
        if (i == entries.end() || k < (*i)->key) return false;
        delete *i;
        entries.erase(i);
        return true;
    }
};

struct Random { /* xorshift32 */
    uint32_t state = 1;
    void seed(unsigned s) { state = s ? s : 1; }
    uint32_t next() {
        state ^= state << 13;
        state ^= state >> 17;
        return state ^= state << 5;
    }
};

/* ---- scheduler (hcu_sched.cpp) ----------------------------------------------------------------------------------- */

void bug(const char *format, ...)
    __attribute__((format(printf, 1, 2))); /* a diagnosed bug: aborts unless told not to */
void set_abort(int on);
void set_order(int order, unsigned seed);
bool in_kernel();
bool yield_thread(); /* the other threads run; false: no kernel's thread runs */
void print_place();  /* the kernel, block and thread that run, if any do */
void report_init();  /* Ctrl-C, progress, and what a sanitizer says at its end */
struct GridConfig {
    dim3 grid, block;
    size_t shared_bytes;
    bool cooperative;
    const char *name;
};
void run_grid(const void *function, const KernelDesc *desc, void **args, const GridConfig &config);
/* A grid that the running thread has launched: it runs when its parent has ended, which is a legal order of CUDA's. */
enum ChildOrder { CHILD_IN_BLOCK_ORDER, CHILD_FREE, CHILD_TAIL };
void add_child(std::function<void()> run, ChildOrder order);
int refused(const char *what); /* this runtime cannot do that: a bug, by name; what the call returns if that goes on */

/* ---- reads that TSan need not see (hcu_reads.cpp) ---------------------------------------------------------------- */

void reads_launch(const void *kernel, bool cooperative);
void reads_block(unsigned half);   /* whose threads have the identities of this half */
void reads_segment();              /* all threads of the block have passed a barrier */
void reads_thread(unsigned index); /* it runs now */
void reads_ordered();              /* the kernel orders its threads by something else, too */
void reads_lanes_ordered();        /* the kernel orders the lanes of a warp */
void reads_end();

/* ---- device memory (hcu_memory.cpp): every caller holds the runtime's lock --------------------------------------- */

constexpr int kMaxDevices = 8;
enum Where { WHERE_HOST, WHERE_PINNED, WHERE_DEVICE, WHERE_FREED, WHERE_OUTSIDE };
struct Place {
    Where where;
    int device;
    char text[120];
}; /* text says what is wrong with FREED and OUTSIDE */
Place place_of(const void *p, size_t bytes);
bool mapped_host_memory(const void *p);
void memory_init();
void *device_alloc(
    int device, size_t bytes, bool live); /* nullptr: limit reached; !live: cudaMallocAsync has not run */
void device_set_live(void *p);
enum FreeCheck { FREE_OK, FREE_TWICE, FREE_UNKNOWN };
FreeCheck device_free_check(const void *p, bool async);
void device_free(void *p);
size_t device_used(int device);
size_t device_limit(int device);
void set_device_limit(int device, size_t bytes);
void *pinned_alloc(size_t bytes, bool managed); /* managed: cudaFree frees it */
size_t pinned_used();
bool managed(const void *p);
bool pinned_free(void *p);
bool managed_range(const void *p, size_t bytes); /* all of it is managed memory, or a __managed__ variable */
void device_reset_memory(int device);            /* cudaDeviceReset: its buffers are gone */
bool symbol_forgotten(void *symbol);             /* false: it was not known */
void enter_device(int device);                   /* its memory may be touched until leave_device */
void leave_device(int device);
void set_protect(bool on);
void check_canaries();
int memory_leaks(bool print);
void print_backtrace(void *const *frames, int count);
struct Trace {
    void *frame[12];
    int count;
};
Trace trace_here();
void print_trace(const Trace &t);             /* without the two innermost frames */
void print_stack();                           /* where the caller is */
void symbol_known(void *symbol, size_t size); /* a __device__ variable: both sides may touch it */

const char *copy_into(const void *p);             /* the queued copy that writes there, or nullptr */
void forget_host_memory(const void *p, size_t n); /* (hcu_pinned.cpp) it is freed */

/* ---- runtime (hcu_runtime.cpp) ----------------------------------------------------------------------------------- */

struct Call { /* one API call: lock, counters, what forbids it, fault injection, random progress */
    Call(const char *api, int group, int natural_error); /* kNeverFails: not injectable */
    ~Call();
    Call(const Call &) = delete;
    int error; /* not 0: the call must return it and do nothing */
    bool dead; /* error is that of a dead device, not an injected one */
};
constexpr int kNeverFails = -1, kNoGroup = -1;
void count_extra(int group); /* a call of one group that also does another group's work */
int current_device();
cudaError_t forbidden_in_capture(); /* the error, if a capture forbids such a call: it is invalid then */
cudaError_t wait_for_device();      /* cudaDeviceSynchronize; no capture of the device survives it */
int device_arch(int device);        /* 90 for 9.0 */
int device_error(int device);       /* not 0: the device is dead */
int stream_device(cudaStream_t s);  /* -1: not a live stream */
void live_object(const char *kind, const void *object, bool created);
struct Work {
    const char *name;
    int group;
    std::function<void()> run;
    void *host_dst = nullptr;       /* of a copy that the host does not wait for: memory of the host that it writes, */
    const void *host_src = nullptr; /* or reads */
    size_t host_bytes = 0;
};
cudaError_t enqueue(cudaStream_t s, Work work);
bool need_device(const char *api, const char *what, const void *p, size_t bytes, int device); /* diagnoses if not */

/* ---- PTX interpreter (hcu_ptx.cpp) ------------------------------------------------------------------------------- */

/* If the loaded PTX holds that kernel: what run_grid must be given instead of the host function. */
bool ptx_find(const char *mangled_name, const KernelDesc *host, const void **function, KernelDesc *desc);

/* ---- machine code (hcu_sass.cpp) --------------------------------------------------------------------------------- */

/* Runs the launch from the loaded machine code; false: none is loaded. A kernel that cannot be run from it is a bug. */
bool sass_launch(const char *mangled_name, const KernelDesc *desc, void **args, const GridConfig &config);

} // namespace hcu
#endif
