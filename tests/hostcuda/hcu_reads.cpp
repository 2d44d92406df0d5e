/* hcu_reads.cpp - keeps reads from TSan that it need not see: in most kernels nearly all of them.
 *
 * TSan's functions for reads are defined here, in the program, in front of those of its library. A read of the
 * running launch is left out if two others of the same bytes stand for it: each write that races with it races with
 * one of them,
 *   - that came from two blocks whose threads do not share their identities: no thread is behind both, or
 *   - that came from two threads of its block since the last barrier: no thread is behind one and not behind the
 *     other.
 * Both hold as long as only launches and barriers of blocks order threads. In a kernel that was seen to use a fence or
 * an atomic that orders, or to launch another, and in a cooperative launch, nothing is left out; in one that was seen
 * to use __syncwarp, or a barrier that not all threads of the block reach, only the former is. Nothing is left out of
 * the first two blocks of a kernel, which show what it uses: what none of them did, and a later block does, is known
 * too late for the reads before it. TSan keeps four accesses for each eight bytes, and any may push another out, so
 * of one thread in 64, chosen by chance, every read is passed on. */
#include "hcu_core.h"
#if HCU_HAS_TSAN && !defined(__clang__) /* clang links TSan's library into the program: no second definition */
#  include <dlfcn.h>

extern "C" {
void __tsan_read2_pc(void *, void *);
void __tsan_read4_pc(void *, void *);
void __tsan_read8_pc(void *, void *);
}

/* Other threads of the host run meanwhile: of their reads none is left out. */
#  define HCU_OF_THREAD __attribute__((tls_model("initial-exec"))) thread_local
#  define HCU_QUICK     extern "C" __attribute__((optimize("omit-frame-pointer")))

namespace hcu {
namespace {
constexpr unsigned kEntryBits = 18, kEpochShift = 17, kLastEpoch = (1u << 15) - 1, kWitness = 64;
constexpr size_t kEntries = size_t(1) << kEntryBits;
struct Reader {     /* the last one that TSan was told of */
    uint32_t where; /* the address' upper bits, and the epoch of the launch */
    uint16_t segment, thread;
};
constexpr uint16_t kHalf = 0x8000; /* of Reader::thread: which half of the identities its block has */
/* For reads of one width: where TSan knows enough readers, the address' upper bits and the epoch in which that holds.
 * One word for both, or a read would cost twice as much; two addresses that are taken for one lie 128 GB apart. */
template <unsigned Shift> struct Table {
    static uint32_t enough[kEntries];
    static Reader reader[kEntries];
    /* Not by memset, nor by what a compiler takes for it: TSan has one of its own, which finds, byte by byte, that
     * another fiber has forgotten the same places, and needs minutes for it. */
    static void forget() {
        for (size_t i = 0; i < kEntries; i++) {
            enough[i] = 0;
            reader[i] = Reader();
            asm volatile("" : : : "memory");
        }
    }
    static uint32_t upper(uintptr_t address) { return uint32_t(address >> (kEntryBits + Shift)); }
};
template <unsigned Shift> uint32_t Table<Shift>::enough[kEntries];
template <unsigned Shift> Reader Table<Shift>::reader[kEntries];

/* The epochs of this launch, and of this block since its last barrier, as they stand in a table; 0: in none, for all
 * addresses have upper bits. */
HCU_OF_THREAD uint32_t g_in_launch, g_in_segment;
uint32_t g_launch_epoch, g_segment_epoch; /* the same, while a witness runs, too */
unsigned g_epoch;
Random g_random;
uint16_t g_thread, g_half; /* who runs */
struct Habits {
    bool orders, orders_lanes;
    unsigned blocks; /* that have begun */
};
constexpr unsigned kLearned = 2; /* blocks that show a kernel's habits */
Map<const void *, Habits> &g_habits = *new Map<const void *, Habits>;
HCU_OF_THREAD Habits *g_kernel; /* of the launch that this thread of the host runs */
HCU_OF_THREAD bool g_on;        /* not on: nothing is left out */
bool g_cooperative;

uint32_t next_epoch() {
    if (++g_epoch > kLastEpoch) {
        Table<1>::forget();
        Table<2>::forget();
        Table<3>::forget();
        g_launch_epoch = 1u << kEpochShift;
        g_epoch = 2;
    }
    return g_epoch << kEpochShift;
}
template <unsigned Shift> __attribute__((noinline)) void note(uintptr_t address, size_t entry) {
    Reader &before = Table<Shift>::reader[entry];
    uint32_t upper = Table<Shift>::upper(address);
    uint16_t segment = uint16_t(g_segment_epoch >> kEpochShift);
    if (!g_on) return;
    bool known = before.where == (upper ^ g_launch_epoch);
    bool other_half = known && (before.thread & kHalf) != g_half;
    bool other_thread = known && before.segment == segment && before.thread != (g_thread | g_half);
    if (other_half)
        Table<Shift>::enough[entry] = upper ^ g_launch_epoch;
    else if (other_thread && !g_kernel->orders_lanes)
        Table<Shift>::enough[entry] = upper ^ g_segment_epoch;
    else
        before = {upper ^ g_launch_epoch, segment, uint16_t(g_thread | g_half)};
}
template <unsigned Shift> inline bool left_out(const void *p) {
    uintptr_t address = reinterpret_cast<uintptr_t>(p);
    size_t entry = address >> Shift & (kEntries - 1);
    uint32_t enough = Table<Shift>::enough[entry] ^ Table<Shift>::upper(address);
    if (enough == g_in_launch || enough == g_in_segment) return true;
    note<Shift>(address, entry);
    return false;
}
} // namespace

void reads_segment() {
    if (!g_on) return;
    g_segment_epoch = next_epoch();
    if (g_in_segment) g_in_segment = g_segment_epoch;
}
void reads_block(unsigned half) {
    g_half = half ? kHalf : 0;
    g_on = !g_cooperative && !g_kernel->orders && g_kernel->blocks >= kLearned;
    g_kernel->blocks = std::min(g_kernel->blocks + 1, kLearned);
    reads_segment();
}
void reads_thread(unsigned number) {
    if (!g_on) return;
    bool witness = g_random.next() % kWitness == 0;
    g_thread = uint16_t(number);
    g_in_launch = witness ? 0 : g_launch_epoch;
    g_in_segment = witness ? 0 : g_segment_epoch;
}
void reads_launch(const void *kernel, bool cooperative) {
    g_kernel = &g_habits[kernel];
    g_cooperative = cooperative;
    g_launch_epoch = next_epoch();
    g_segment_epoch = next_epoch();
}
static void leave_nothing_out() {
    g_on = false;
    g_in_launch = g_in_segment = 0;
}
void reads_end() {
    leave_nothing_out();
    g_kernel = nullptr;
}
void reads_ordered() {
    if (!g_kernel) return;
    g_kernel->orders = true;
    leave_nothing_out();
}
void reads_lanes_ordered() {
    if (!g_kernel || g_kernel->orders_lanes) return;
    g_kernel->orders_lanes = true;
    reads_segment();
}
} // namespace hcu

HCU_QUICK void __tsan_read2(void *p) {
    if (!hcu::left_out<1>(p)) __tsan_read2_pc(p, __builtin_return_address(0));
}
HCU_QUICK void __tsan_read4(void *p) {
    if (!hcu::left_out<2>(p)) __tsan_read4_pc(p, __builtin_return_address(0));
}
HCU_QUICK void __tsan_read8(void *p) {
    if (!hcu::left_out<3>(p)) __tsan_read8_pc(p, __builtin_return_address(0));
}

/* Atomics, as those of libcu++: TSan knows how they order threads. Each of these ends in a jump to the library's, which
 * reports the place of the call. */
#  define HCU_ATOMIC(type, name, parameters, ...) \
    extern "C" type name parameters { \
        static type(*next) parameters; \
        if (order != __ATOMIC_RELAXED) hcu::reads_ordered(); \
        if (!next) next = reinterpret_cast<type(*) parameters>(dlsym(RTLD_NEXT, #name)); \
        return next(__VA_ARGS__); \
    }
#  define HCU_UPDATE(type, name) HCU_ATOMIC(type, name, (volatile void *p, type v, int order), p, v, order)
#  define HCU_ATOMICS(type, of) \
    HCU_ATOMIC(type, of##_load, (const volatile void *p, int order), p, order) \
    HCU_ATOMIC(void, of##_store, (volatile void *p, type v, int order), p, v, order) \
    HCU_UPDATE(type, of##_exchange) \
    HCU_UPDATE(type, of##_fetch_add) \
    HCU_UPDATE(type, of##_fetch_sub) \
    HCU_UPDATE(type, of##_fetch_and) \
    HCU_UPDATE(type, of##_fetch_or) \
    HCU_UPDATE(type, of##_fetch_xor) \
    HCU_UPDATE(type, of##_fetch_nand) \
    HCU_ATOMIC(bool, of##_compare_exchange_strong, (volatile void *p, void *old, type v, int order, int otherwise), p, \
        old, v, order, otherwise) \
    HCU_ATOMIC(bool, of##_compare_exchange_weak, (volatile void *p, void *old, type v, int order, int otherwise), p, \
        old, v, order, otherwise)
HCU_ATOMICS(uint8_t, __tsan_atomic8)
HCU_ATOMICS(uint16_t, __tsan_atomic16)
HCU_ATOMICS(uint32_t, __tsan_atomic32)
HCU_ATOMICS(uint64_t, __tsan_atomic64)
HCU_ATOMIC(void, __tsan_atomic_thread_fence, (int order), order)
#else
namespace hcu {
void reads_segment() {}
void reads_block(unsigned) {}
void reads_thread(unsigned) {}
void reads_launch(const void *, bool) {}
void reads_end() {}
void reads_ordered() {}
void reads_lanes_ordered() {}
} // namespace hcu
#endif
