/* hcu_reads.cpp - keeps reads from TSan that it need not see: in most kernels nearly all of them.
 *
 * TSan's functions for reads are defined here, in the program, in front of those of its library. A read of the
 * running launch is left out if two others of the same bytes stand for it: each write that races with it races with
 * one of them,
 *   - that came from two blocks whose threads do not share their identities: no thread is behind both, or
 *   - that came from two threads of its block since the last barrier: no thread is behind one and not behind the
 *     other.
 * Both hold as long as only launches and barriers of blocks order threads. In a kernel that was seen to use a fence,
 * or to launch another, and in a cooperative launch, nothing is left out; in one that was seen to use __syncwarp,
 * only the former is. TSan keeps four accesses for each eight bytes, and any may push another out, so of one thread
 * in 64, chosen by chance, every read is passed on. */
#include "hcu_core.h"
#if HCU_HAS_TSAN && !defined(__clang__) /* clang links TSan's library into the program: no second definition */
#  include <cstring>

extern "C" {
void __tsan_read2_pc(void *, void *);
void __tsan_read4_pc(void *, void *);
void __tsan_read8_pc(void *, void *);
}

#  define HCU_QUICK extern "C" __attribute__((optimize("omit-frame-pointer")))

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
    static void forget() {
        memset(enough, 0, sizeof enough);
        memset(reader, 0, sizeof reader);
    }
    static uint32_t upper(uintptr_t address) { return uint32_t(address >> (kEntryBits + Shift)); }
};
template <unsigned Shift> uint32_t Table<Shift>::enough[kEntries];
template <unsigned Shift> Reader Table<Shift>::reader[kEntries];

/* The epochs of this launch, and of this block since its last barrier, as they stand in a table; 0: in none, for all
 * addresses have upper bits. */
uint32_t g_in_launch, g_in_segment;
uint32_t g_launch_epoch, g_segment_epoch; /* the same, while a witness runs, too */
unsigned g_epoch;
Random g_random;
uint16_t g_thread, g_half;  /* who runs */
bool g_on, g_lanes_ordered; /* not on: nothing is left out */
struct Habits { bool orders, orders_lanes; };
Map<const void *, Habits> &g_habits = *new Map<const void *, Habits>;
const void *g_kernel;

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
    else if (other_thread && !g_lanes_ordered)
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
    const Habits *habits = g_habits.get(kernel);
    g_kernel = kernel;
    g_lanes_ordered = habits && habits->orders_lanes;
    if (cooperative || (habits && habits->orders)) return;
    g_on = true;
    g_launch_epoch = next_epoch();
    g_segment_epoch = next_epoch();
}
void reads_end() {
    g_on = false;
    g_in_launch = g_in_segment = 0;
}
void reads_ordered() {
    if (!g_on) return;
    g_habits[g_kernel].orders = true;
    reads_end();
}
void reads_lanes_ordered() {
    if (!g_on || g_lanes_ordered) return;
    g_habits[g_kernel].orders_lanes = g_lanes_ordered = true;
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
