/* hcu_nccl.cpp - the calls of NCCL that examples/ranks_nccl.cu makes, for ranks that are host threads of one process,
 * each on a device of its own. Prototypes are those of NVIDIA's nccl.h; without that header this file is empty.
 *
 * A call is stream work, as in the real one: it reads what the work before it on each rank's stream has written, and
 * nothing else orders it, so a missing event is a race for TSan and wrong data elsewhere. Two pieces of work per rank:
 * the result, from everyone's operands, behind everyone's "ready"; then, when all results are made, the move to the
 * output, which may be an operand. The host threads meet in each call. Real ones may, too.
 *
 * A sum begins at a different rank for each part of the array, as in a ring, and is rounded to its type after each
 * addition: the order is no promise, but all ranks get the same bits. */
#if __has_include(<nccl.h>)
#  include <cuda_bf16.h>
#  include <cuda_fp16.h>
#  include <nccl.h>
#  include <pthread.h>
#  include <cstdio>
#  include <cstring>
#  include <functional>
#  include <memory>
#  include "hcu_core.h"

using namespace hcu;
using std::vector;

namespace {
enum Kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER };
struct Request {
    Kind kind;
    const void *send;
    void *receive;
    size_t count; /* of one rank's part: all of it for ALL_REDUCE */
    ncclDataType_t type;
    ncclRedOp_t op;
    cudaStream_t stream;
    cudaEvent_t ready, made;
};
struct Group { /* the ranks that were made with one id */
    ncclUniqueId id;
    int ranks = 0, here = 0, joined = 0, left = 0;
    unsigned turn = 0;
    vector<int> device;
    vector<vector<Request>> request; /* of each rank, in this turn */
};
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_all_here = PTHREAD_COND_INITIALIZER;
vector<Group *> &g_groups = *new vector<Group *>;
unsigned g_ids;
thread_local int t_depth;
thread_local ncclComm_t t_comm; /* of the calls between ncclGroupStart and ncclGroupEnd: one at a time here */
thread_local vector<Request> *t_requests;
thread_local Group *t_joined; /* between the two: its other ranks are waited for at the end */
} // namespace

struct ncclComm {
    Group *group;
    int rank, device;
};

namespace {
void meet(Group *g) { /* until every rank is here */
    pthread_mutex_lock(&g_mutex);
    unsigned turn = g->turn;
    if (++g->here == g->ranks) {
        g->here = 0;
        g->turn++;
        pthread_cond_broadcast(&g_all_here);
    }
    while (turn == g->turn)
        pthread_cond_wait(&g_all_here, &g_mutex);
    pthread_mutex_unlock(&g_mutex);
}
size_t size_of(ncclDataType_t t) {
    switch (t) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
    }
}
template <class T> T at(const void *p, size_t i) {
    T x;
    memcpy(&x, static_cast<const char *>(p) + i * sizeof x, sizeof x);
    return x;
}
template <class T, class F> bool add_as(vector<char> &out, const vector<const void *> &from, size_t first, F add) {
    size_t n = out.size() / sizeof(T), ranks = from.size();
    for (size_t i = 0; i < n; i++) {
        size_t begin = ((first + i) / 16 + 1) % ranks; /* parts of 16 elements: in a ring each begins elsewhere */
        T sum = at<T>(from[begin], first + i);
        for (size_t q = 1; q < ranks; q++)
            sum = add(sum, at<T>(from[(begin + q) % ranks], first + i));
        memcpy(&out[i * sizeof sum], &sum, sizeof sum);
    }
    return true;
}
/* Elements [first, first + out.size() / size) of the sum. */
bool add_up(vector<char> &out, const vector<const void *> &from, size_t first, ncclDataType_t type) {
    switch (type) {
    case ncclFloat32: return add_as<float>(out, from, first, std::plus<float>());
    case ncclFloat64: return add_as<double>(out, from, first, std::plus<double>());
    case ncclUint64: return add_as<uint64_t>(out, from, first, std::plus<uint64_t>());
    case ncclFloat16:
        return add_as<__half>(
            out, from, first, [](__half a, __half b) { return __float2half_rn(__half2float(a) + __half2float(b)); });
    case ncclBfloat16:
        return add_as<__nv_bfloat16>(out, from, first, [](__nv_bfloat16 a, __nv_bfloat16 b) {
            return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
        });
    default: return false;
    }
}
/* Rank `me`'s output of request k, made from everyone's operands. */
void make_result(const Group *g, const vector<vector<Request>> &all, size_t k, int me, vector<char> &out) {
    const Request &mine = all[size_t(me)][k];
    size_t size = size_of(mine.type), ranks = size_t(g->ranks);
    size_t sent = (mine.kind == REDUCE_SCATTER ? ranks : 1) * mine.count * size;
    vector<const void *> from;
    for (size_t q = 0; q < ranks; q++) {
        enter_device(g->device[q]);
        from.push_back(all[q][k].send);
        hb_read(from[q], sent);
    }
    hb_quiet(true); /* what was read is said above */
    if (mine.kind == ALL_GATHER)
        for (size_t q = 0; q < ranks; q++)
            memcpy(&out[q * sent], from[q], sent);
    else
        add_up(out, from, mine.kind == REDUCE_SCATTER ? size_t(me) * mine.count : 0, mine.type);
    hb_quiet(false);
    for (size_t q = 0; q < ranks; q++)
        leave_device(g->device[q]);
}
bool alike(const Request &a, const Request &b) {
    return a.kind == b.kind && a.count == b.count && a.type == b.type && a.op == b.op;
}
ncclResult_t run(ncclComm_t c, vector<Request> &requests) { /* what a group of calls holds */
    Group *g = c->group;
    int ok = 1;
    for (Request &r : requests) {
        ok &= cudaEventCreateWithFlags(&r.ready, cudaEventDisableTiming) == cudaSuccess;
        ok &= cudaEventCreateWithFlags(&r.made, cudaEventDisableTiming) == cudaSuccess;
        ok &= cudaEventRecord(r.ready, r.stream) == cudaSuccess;
    }
    g->request[size_t(c->rank)] = requests;
    meet(g);
    auto all = std::make_shared<vector<vector<Request>>>(g->request);
    vector<std::shared_ptr<vector<char>>> result;
    for (size_t k = 0; k < requests.size(); k++) {
        const Request &r = requests[k];
        size_t parts = r.kind == ALL_GATHER ? size_t(g->ranks) : 1;
        auto out = std::make_shared<vector<char>>(parts * r.count * size_of(r.type));
        int me = c->rank;
        for (auto &other : *all) {
            if (other.size() != requests.size() || !alike(other[k], r)) bug("NCCL: ranks make different calls");
            ok &= cudaStreamWaitEvent(r.stream, other[k].ready, 0) == cudaSuccess;
        }
        ok &= enqueue(r.stream, Work{"NCCL", kNoGroup, [=] { make_result(g, *all, k, me, *out); }}) == cudaSuccess;
        ok &= cudaEventRecord(r.made, r.stream) == cudaSuccess;
        result.push_back(out);
    }
    meet(g);
    for (size_t k = 0; k < requests.size(); k++) {
        void *to = requests[k].receive;
        auto out = result[k];
        for (auto &other : *all)
            ok &= cudaStreamWaitEvent(requests[k].stream, other[k].made, 0) == cudaSuccess;
        Work move{"NCCL", kNoGroup, [=] {
                      hb_write(to, out->size());
                      hb_quiet(true);
                      memcpy(to, out->data(), out->size());
                      hb_quiet(false);
                  }};
        ok &= enqueue(requests[k].stream, move) == cudaSuccess;
    }
    meet(g); /* nobody waits for these events any more */
    for (Request &r : requests) {
        cudaEventDestroy(r.ready);
        cudaEventDestroy(r.made);
    }
    return ok ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t call(const char *api, ncclComm_t c, Request r) {
    size_t bytes = r.count * size_of(r.type), all = bytes * size_t(c->group->ranks);
    {
        Call entered(api, kNoGroup, kNeverFails);
        if (bytes == 0 && r.count) return ncclInvalidArgument;
        if (r.kind != ALL_GATHER && r.op != ncclSum) return ncclInvalidArgument; /* not here */
        if (stream_device(r.stream) != c->device) return ncclInvalidUsage;
        if (!need_device(api, "the operand", r.send, r.kind == REDUCE_SCATTER ? all : bytes, c->device) ||
            !need_device(api, "the output", r.receive, r.kind == ALL_GATHER ? all : bytes, c->device))
            return ncclInvalidArgument;
    }
    vector<Request> one{r};
    if (!t_depth) return run(c, one);
    if (t_comm && t_comm != c) { /* the real one can */
        refused("calls of several ranks between one ncclGroupStart and ncclGroupEnd (here a rank is a host thread)");
        return ncclInvalidUsage;
    }
    t_comm = c;
    t_requests->push_back(r);
    return ncclSuccess;
}
} // namespace

extern "C" {
const char *ncclGetErrorString(ncclResult_t r) {
    static const char *const text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage", "remote process exited or there was a network error", "in progress"};
    return r >= 0 && r < ncclNumResults ? text[r] : "unknown result code";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "hostcuda %u", __atomic_add_fetch(&g_ids, 1, __ATOMIC_RELAXED));
    return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    Group *g = nullptr;
    int device = 0;
    *comm = nullptr;
    if (t_joined) { /* the real one can; here it would wait for itself */
        refused("several ncclCommInitRank between one ncclGroupStart and ncclGroupEnd (here a rank is a host thread)");
        return ncclInvalidUsage;
    }
    if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
    if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
    pthread_mutex_lock(&g_mutex);
    for (Group *known : g_groups)
        if (!memcmp(&known->id, &id, sizeof id)) g = known;
    if (!g) {
        g = new Group;
        g->id = id;
        g->ranks = ranks;
        g->device.assign(size_t(ranks), -1);
        g->request.resize(size_t(ranks));
        g_groups.push_back(g);
    }
    bool twice = false;
    for (int d : g->device)
        twice = twice || d == device;
    if (g->ranks == ranks) g->device[size_t(rank)] = device;
    pthread_mutex_unlock(&g_mutex);
    if (g->ranks != ranks) return ncclInvalidArgument;
    if (twice) { /* the real one refuses it, on all ranks; here the others would wait */
        fprintf(stderr, "hostcuda: NCCL: two ranks on device %d (HCU_DEVICES=%d)\n", device, ranks);
        return ncclInvalidUsage;
    }
    if (t_depth)
        t_joined = g;
    else
        meet(g);
    *comm = new ncclComm{g, rank, device};
    Call entered("ncclCommInitRank", kNoGroup, kNeverFails);
    live_object("ncclComm", *comm, true);
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    Group *g = comm->group;
    pthread_mutex_lock(&g_mutex);
    if (++g->left == g->ranks) {
        g_groups.erase(std::find(g_groups.begin(), g_groups.end(), g));
        delete g;
    }
    pthread_mutex_unlock(&g_mutex);
    Call entered("ncclCommDestroy", kNoGroup, kNeverFails);
    live_object("ncclComm", comm, false);
    delete comm;
    return ncclSuccess;
}
ncclResult_t ncclGroupStart(void) {
    if (t_depth++ == 0) t_requests = new vector<Request>;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void) {
    if (t_depth == 0) return ncclInvalidUsage;
    if (--t_depth) return ncclSuccess;
    if (t_joined) meet(t_joined);
    t_joined = nullptr;
    ncclResult_t r = t_comm ? run(t_comm, *t_requests) : ncclSuccess;
    delete t_requests;
    t_comm = nullptr;
    return r;
}
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
    ncclComm_t comm, cudaStream_t stream) {
    return call("ncclAllReduce", comm, Request{ALL_REDUCE, send, receive, count, type, op, stream, nullptr, nullptr});
}
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
    ncclComm_t comm, cudaStream_t stream) {
    return call(
        "ncclReduceScatter", comm, Request{REDUCE_SCATTER, send, receive, count, type, op, stream, nullptr, nullptr});
}
ncclResult_t ncclAllGather(
    const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    return call(
        "ncclAllGather", comm, Request{ALL_GATHER, send, receive, count, type, ncclSum, stream, nullptr, nullptr});
}
} /* extern "C" */
#endif
