/* hostcuda_groups.h - the part of cooperative groups that is used most, in NVIDIA's names: this_thread_block,
 * this_grid, tiled_partition of 1 to 32 threads, its shuffles, votes and matches, binary_partition, labeled_partition,
 * reduce, inclusive_scan, exclusive_scan, memcpy_async and wait, invoke_one, coalesced_threads; thread_group is any of
 * the groups.  The toolkit's headers are skipped.
 *
 * A tile is a part of a warp: its operations are warp operations with the tile's mask, so a lane that is missing is
 * found as for __shfl_sync. reduce and the scans go in the order of the lanes: the sum of floats may differ from a
 * GPU's in the last bits. Only sync() orders memory between lanes. barrier_arrive does nothing and barrier_wait is the
 * whole barrier, so that a race with what is done between the two is not found. */
#ifndef HOSTCUDA_GROUPS_H
#define HOSTCUDA_GROUPS_H
#define _CG_COOPERATIVE_GROUPS_H
#define _COOPERATIVE_GROUPS_H_
#define _COOPERATIVE_GROUPS_REDUCE_H
#define _COOPERATIVE_GROUPS_SCAN_H
#define _COOPERATIVE_GROUPS_MEMCPY_ASYNC

namespace cooperative_groups {

inline unsigned hcu_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned hcu_threads() { return blockDim.x * blockDim.y * blockDim.z; }

struct grid_group {
    struct arrival_token {};
    void sync(HCU_AT) const { hcu::grid_barrier(HCU_HERE); }
    arrival_token barrier_arrive() const { return {}; }
    void barrier_wait(arrival_token &&, HCU_AT) const { sync(HCU_HERE); }
    bool is_valid() const { return true; }
    unsigned long long num_blocks() const { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    unsigned long long size() const { return num_blocks() * hcu_threads(); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long block_rank() const {
        return blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    unsigned long long thread_rank() const { return block_rank() * hcu_threads() + hcu_thread(); }
    dim3 group_dim() const { return gridDim; }
    dim3 dim_blocks() const { return gridDim; }
    uint3 block_index() const { return blockIdx; }
};
inline grid_group this_grid() { return {}; }

struct thread_block {
    struct arrival_token {};
    void sync(HCU_AT) const { hcu::block_barrier(0, hcu::BARRIER_PLAIN, HCU_HERE); }
    arrival_token barrier_arrive() const { return {}; }
    void barrier_wait(arrival_token &&, HCU_AT) const { sync(HCU_HERE); }
    static unsigned thread_rank() { return hcu_thread(); }
    static unsigned size() { return hcu_threads(); }
    static unsigned num_threads() { return hcu_threads(); }
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

/* Lanes of one warp: what tiles and coalesced groups have in common. `first` is the lowest lane of a tile. */
struct hcu_lanes {
    unsigned mask;
    unsigned rank() const { return unsigned(__builtin_popcount(mask & ((1u << hcu::lane()) - 1u))); }
    unsigned count() const { return unsigned(__builtin_popcount(mask)); }
    unsigned lane_of(unsigned rank) const { /* 32: none */
        for (unsigned i = 0; i < 32; i++)
            if ((mask >> i & 1) && rank-- == 0) return i;
        return 32;
    }
    template <class T> T take(T v, unsigned from, HCU_AT) const { /* from that rank; the own value if there is none */
        unsigned source = from < count() ? lane_of(from) : 32;
        return hcu::shfl(mask, v, source & 31u, source < 32, HCU_HERE);
    }
    hcu_lanes part(unsigned size) const { /* of those, by rank, that the own lane is in */
        unsigned in = 0, rank_of = 0, mine = rank() / size;
        for (unsigned i = 0; i < 32; i++)
            if (mask >> i & 1) in |= unsigned(rank_of++ / size == mine) << i;
        return {in};
    }
    unsigned packed(unsigned lanes) const { /* bit r: the thread of rank r */
        unsigned out = 0, n = 0;
        for (unsigned i = 0; i < 32; i++)
            if (mask >> i & 1) out |= (lanes >> i & 1) << n++;
        return out;
    }
};
struct hcu_warp_group {
    hcu_lanes lanes;
    unsigned parts = 1, part = 0; /* of the group that it was made from */
    void sync(HCU_AT) const { hcu::exchange_done(hcu::warp_exchange(lanes.mask, 0, hcu::WARP_SYNC, HCU_HERE)); }
    unsigned thread_rank() const { return lanes.rank(); }
    unsigned size() const { return lanes.count(); }
    unsigned num_threads() const { return lanes.count(); }
    template <class T> T shfl(T v, int source, HCU_AT) const {
        return lanes.take(v, unsigned(source) % lanes.count(), HCU_HERE);
    }
    template <class T> T shfl_down(T v, unsigned delta, HCU_AT) const {
        return lanes.take(v, lanes.rank() + delta, HCU_HERE);
    }
    template <class T> T shfl_up(T v, unsigned delta, HCU_AT) const {
        return lanes.take(v, lanes.rank() - delta, HCU_HERE); /* below 0: a huge rank, so the own value */
    }
    template <class T> T shfl_xor(T v, unsigned with, HCU_AT) const {
        return lanes.take(v, lanes.rank() ^ with, HCU_HERE);
    }
    int any(int p, HCU_AT) const { return int(hcu::vote(lanes.mask, p, hcu::WARP_ANY, HCU_HERE)); }
    int all(int p, HCU_AT) const { return int(hcu::vote(lanes.mask, p, hcu::WARP_ALL, HCU_HERE)); }
    unsigned ballot(int p, HCU_AT) const { return lanes.packed(hcu::vote(lanes.mask, p, hcu::WARP_BALLOT, HCU_HERE)); }
    template <class T> unsigned match_any(T v, HCU_AT) const {
        return lanes.packed(hcu::match_any(lanes.mask, v, HCU_HERE));
    }
    template <class T> unsigned match_all(T v, int &all, HCU_AT) const {
        all = hcu::match_any(lanes.mask, v, HCU_HERE) == lanes.mask;
        return all ? lanes.packed(lanes.mask) : 0;
    }
    unsigned meta_group_size() const { return parts; }
    unsigned meta_group_rank() const { return part; }
};
struct coalesced_group : hcu_warp_group {};
inline coalesced_group coalesced_threads(HCU_AT) { return {{{hcu::coalesced_lanes(HCU_HERE)}}}; }

template <unsigned Size, class Parent = void> struct thread_block_tile : hcu_warp_group {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
        "hostcuda: a tile has 1, 2, 4, 8, 16 or 32 threads; larger ones are not modelled");
    thread_block_tile() = default;
    template <class Other> thread_block_tile(const thread_block_tile<Size, Other> &o) : hcu_warp_group(o) {}
};
/* Any of the groups; which one is known when it runs. */
struct thread_group {
    enum { GRID, BLOCK, LANES } kind;
    hcu_warp_group warp = {};
    thread_group(const grid_group &) : kind(GRID) {}
    thread_group(const thread_block &) : kind(BLOCK) {}
    thread_group(const hcu_warp_group &group) : kind(LANES), warp(group) {}
    void sync(HCU_AT) const {
        if (kind == GRID) return this_grid().sync(HCU_HERE);
        if (kind == BLOCK) return this_thread_block().sync(HCU_HERE);
        warp.sync(HCU_HERE);
    }
    unsigned long long thread_rank() const {
        if (kind == GRID) return this_grid().thread_rank();
        return kind == BLOCK ? hcu_thread() : warp.thread_rank();
    }
    unsigned long long size() const {
        if (kind == GRID) return this_grid().size();
        return kind == BLOCK ? hcu_threads() : warp.size();
    }
    unsigned long long num_threads() const { return size(); }
};

/* ---- groups of a group ------------------------------------------------------------------------------------------- */

inline hcu_lanes hcu_tile(unsigned size) {
    unsigned all = size == 32 ? ~0u : (1u << size) - 1u;
    return {(all << (hcu::lane() & ~(size - 1u))) & hcu::warp_live_mask()};
}
template <unsigned Size, class Group> inline thread_block_tile<Size, Group> tiled_partition(const Group &parent) {
    thread_block_tile<Size, Group> t;
    t.lanes = hcu_tile(Size);
    t.parts = unsigned(parent.size() + Size - 1) / Size;
    t.part = unsigned(parent.thread_rank()) / Size;
    return t;
}
inline hcu_warp_group hcu_tiles(const thread_group &parent, unsigned size, HCU_AT) {
    if (size < 1 || size > 32 || (size & (size - 1))) {
        hcu::misuse("tiled_partition: a tile has 1, 2, 4, 8, 16 or 32 threads", HCU_HERE);
        size = 32;
    }
    hcu_warp_group t;
    t.lanes = parent.kind == thread_group::LANES ? parent.warp.lanes.part(size) : hcu_tile(size);
    t.parts = unsigned(parent.size() + size - 1) / size;
    t.part = unsigned(parent.thread_rank()) / size;
    return t;
}
inline thread_group tiled_partition(const thread_group &parent, unsigned size, HCU_AT) {
    return hcu_tiles(parent, size, HCU_HERE);
}
inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned size, HCU_AT) {
    return {hcu_tiles(parent, size, HCU_HERE)};
}
/* The threads with the own label; a group for each, in the order of their first threads. */
template <class T> inline coalesced_group labeled_partition(const hcu_warp_group &parent, T label, HCU_AT) {
    unsigned mine = hcu::match_any(parent.lanes.mask, label, HCU_HERE), first = mine & -mine;
    unsigned leaders = hcu::vote(parent.lanes.mask, first == 1u << hcu::lane(), hcu::WARP_BALLOT, HCU_HERE);
    unsigned rank = unsigned(__builtin_popcount(leaders & (first - 1)));
    return {{{mine}, unsigned(__builtin_popcount(leaders)), rank}};
}
inline coalesced_group binary_partition(const hcu_warp_group &parent, bool p, HCU_AT) {
    unsigned yes = hcu::vote(parent.lanes.mask, p, hcu::WARP_BALLOT, HCU_HERE), no = parent.lanes.mask & ~yes;
    if (!yes || !no) return {{parent.lanes}};
    return {{{p ? yes : no}, 2, p}};
}
inline coalesced_group labeled_partition(const hcu_warp_group &parent, bool label, HCU_AT) {
    return binary_partition(parent, label, HCU_HERE);
}

/* ---- one thread for all ------------------------------------------------------------------------------------------ */

template <class Group, class F, class... A> inline void invoke_one(const Group &group, F &&f, A &&...a) {
    if (group.thread_rank() == 0) std::forward<F>(f)(std::forward<A>(a)...);
}
template <class F, class... A> inline auto invoke_one_broadcast(const hcu_warp_group &group, F &&f, A &&...a) {
    std::decay_t<std::invoke_result_t<F, A...>> result{};
    if (group.thread_rank() == 0) result = std::forward<F>(f)(std::forward<A>(a)...);
    return group.shfl(result, 0);
}
template <class Group> inline auto thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> inline auto group_size(const Group &group) { return group.num_threads(); }
template <class Group> inline void sync(const Group &group, HCU_AT) { group.sync(HCU_HERE); }

/* ---- reduce and scans -------------------------------------------------------------------------------------------- */

template <class T = void> struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T = void> struct less { /* the smaller one */
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T = void> struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T = void> struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <class T = void> struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <class T = void> struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};
template <class Group, class T, class Op> inline T reduce(const Group &group, T v, Op op, HCU_AT) {
    return hcu::reduce(group.lanes.mask, v, op, HCU_HERE);
}
/* ranks 0 to the own one; exclusive: without the own one, T{} for rank 0 */
template <class T, class Op> inline T hcu_scan(hcu_lanes lanes, T v, Op op, bool inclusive, HCU_AT) {
    hcu::Exchange *x = hcu::warp_exchange(lanes.mask, hcu::pack(v), hcu::WARP_REDUCE, HCU_HERE);
    T acc{};
    bool first = true;
    for (unsigned i = 0; i < hcu::lane() + inclusive; i++)
        if (x->mask >> i & 1) {
            T e = hcu::unpack<T>(x->value[i]);
            acc = first ? e : op(acc, e);
            first = false;
        }
    hcu::exchange_done(x);
    return acc;
}
template <class Group, class T, class Op> inline T inclusive_scan(const Group &group, T v, Op op, HCU_AT) {
    return hcu_scan(group.lanes, v, op, true, HCU_HERE);
}
template <class Group, class T, class Op> inline T exclusive_scan(const Group &group, T v, Op op, HCU_AT) {
    return hcu_scan(group.lanes, v, op, false, HCU_HERE);
}
template <class Group, class T> inline T inclusive_scan(const Group &group, T v, HCU_AT) {
    return hcu_scan(group.lanes, v, plus<T>{}, true, HCU_HERE);
}
template <class Group, class T> inline T exclusive_scan(const Group &group, T v, HCU_AT) {
    return hcu_scan(group.lanes, v, plus<T>{}, false, HCU_HERE);
}

/* memcpy_async: each thread of the group copies its part at once; the group sees it all after wait. */
template <class Group> inline void memcpy_async(const Group &g, void *to, const void *from, size_t bytes) {
    for (size_t i = g.thread_rank(); i < bytes; i += g.size())
        static_cast<char *>(to)[i] = static_cast<const char *>(from)[i];
}
template <class Group, class T>
inline void memcpy_async(const Group &g, T *to, size_t room, const T *from, size_t count) {
    memcpy_async(g, static_cast<void *>(to), from, (room < count ? room : count) * sizeof(T));
}
template <class Group> inline void wait(const Group &g, HCU_AT) { g.sync(HCU_HERE); }
template <unsigned Stages, class Group> inline void wait_prior(const Group &g, HCU_AT) { g.sync(HCU_HERE); }

/* ---- what is not there ------------------------------------------------------------------------------------------- */

#define HCU_NO_GROUP_FUNCTION(name) \
    template <class... A> inline void name(A &&...) { \
        static_assert(sizeof...(A) > 99, "hostcuda: cooperative_groups::" #name " is not supported"); \
    }
HCU_NO_GROUP_FUNCTION(reduce_update_async)
HCU_NO_GROUP_FUNCTION(reduce_store_async)
HCU_NO_GROUP_FUNCTION(inclusive_scan_update)
HCU_NO_GROUP_FUNCTION(exclusive_scan_update)
#undef HCU_NO_GROUP_FUNCTION
} // namespace cooperative_groups
#endif
