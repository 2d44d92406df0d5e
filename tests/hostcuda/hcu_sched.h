/* hcu_sched.h - internal: the launch that runs. hcu_sched.cpp runs it; hcu_where.cpp reads it, perhaps in a signal's
 * handler. */
#ifndef HCU_SCHED_H
#define HCU_SCHED_H
#include "hcu_core.h"

namespace hcu {

struct Fiber;
enum State : unsigned char { NEW, READY, AT_BARRIER, AT_GRID_BARRIER, AT_WARP_OP, DONE };
struct Thread {
    State state;
    WarpOp op; /* the warp operation it waits in */
    unsigned mask;
    uint64_t bits;
    Exchange *exchange;
    Fiber *fiber;
    const char *file; /* the place it waits at */
    int line;
    bool fenced; /* TSan model of fences and atomics, see fence() */
    unsigned atomics;
    const void *atomic_at[4];
};
struct Block {
    uint3 index;
    unsigned live, arrived, generation;
    int predicate[4], result[2][4]; /* by BarrierOp; results are kept for two generations */
    const char *file;               /* where the first thread arrived */
    int line;
    char *dynamic, *arena;
    uint64_t touched; /* shared arrays already poisoned for this block */
    char *token;      /* two TSan tokens, at an address no recent block used */
};
struct Warp { unsigned live, waiting; };
struct SharedArray {
    const void *site;
    size_t offset, bytes;
};
struct Child {
    std::function<void()> run;
    ChildOrder order;
    size_t block;   /* of the parent; its children in order wait for one another */
    void *identity; /* TSan, with two tokens */
    char start[8], done[8];
};
struct Launch {
    const void *function;
    const KernelDesc *desc;
    void **args;
    GridConfig config;
    unsigned threads_per_block, warps_per_block;
    std::vector<Block> blocks;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> order;
    std::vector<SharedArray> arrays;
    size_t next, arrays_end, shared_bytes;
    unsigned current, live, at_grid_barrier, grid_generation;
    char *token; /* TSan: start, end, two for the grid barrier */
    bool progress;
    std::vector<Child *> children;
};
extern Launch *L; /* the launch that runs, or nullptr */
extern size_t g_launches, g_blocks_done;
extern unsigned g_level; /* of the grid that runs: 1 for one that a kernel launched */
bool thread_runs();      /* a thread of the kernel does, not the scheduler */
unsigned half_of(const uint3 &block);
size_t launch_of_identity(unsigned slot); /* TSan: the last one that a thread of this identity was of */

} // namespace hcu
#endif
