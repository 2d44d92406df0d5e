/* hcu_state.h - internal: what lies behind the API's opaque handles, and the state that the files of the
 * runtime API share
 * (hcu_runtime.cpp has it; hcu_api.cpp, hcu_copies.cpp and hcu_ctl.cpp use it). */
#ifndef HCU_STATE_H
#define HCU_STATE_H
#include <pthread.h>
#include <deque>
#include <memory>
#include "hcu_core.h"

/* ---- objects behind the API's opaque handles --------------------------------------------------------------------- */

namespace hcu {
struct Op {
    hcu::Work work;
    CUstream_st *stream = nullptr;
    std::vector<std::shared_ptr<Op>> after; /* what must have run before */
    bool unconditional = false;             /* runs on a dead device, too: keeps the memory account right */
    bool done = false, visible = false;     /* it ran; the host has synchronised with it */
    long long time_ns = 0;
    char start_token = 0, done_token = 0; /* TSan */
};
using OpP = std::shared_ptr<Op>;
struct Node {
    hcu::Work work;
    std::vector<int> after;
};
using Nodes = std::shared_ptr<std::vector<Node>>;
struct Capture {
    CUgraph_st *graph;
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    pthread_t thread;
    unsigned long long id;
    bool invalid;
};
} // namespace hcu
struct CUgraph_st { std::vector<hcu::Node> nodes; };
struct CUgraphExec_st { hcu::Nodes nodes; };
struct CUstream_st {
    int device = 0;
    unsigned flags = 0;
    bool legacy = false; /* the default stream, ordered with all blocking streams of its device */
    hcu::OpP tail;
    std::deque<hcu::OpP> pending;
    void *tsan = nullptr;
    hcu::Capture *capture = nullptr;
    std::vector<int> capture_tail; /* nodes the next captured one depends on */
    std::vector<cudaGraphNode_t> capture_handles;
};
struct CUevent_st {
    int device;
    bool timing;
    hcu::OpP op;
    hcu::Capture *capture;
    std::vector<int> capture_tail;
};

namespace hcu {

struct Device {
    int arch = 90, error = 0, sms = 132;
    bool in_use = false; /* it has a primary context */
    CUstream_st legacy, per_thread;
    std::vector<OpP> left; /* the last work of destroyed streams, until the host has seen it */
};
struct Object {
    const char *kind;
    Trace trace;
};
struct KernelInfo {
    const KernelDesc *desc = nullptr;
    const char *name = nullptr;
    int shared_optin = 48 << 10;
    unsigned loaded = 0; /* a bit for each device */
};
struct Times { /* hcu_product_time */
    bool set;
    long long now_ns, next_ns, more_ns;
};

extern Device *g_device;
extern int g_device_count, g_mode;
extern bool g_ready, g_scan_params, g_leaks_told;
extern Random g_random;
extern Map<CUstream_st *, Trace> &g_streams;
extern Map<CUevent_st *, Trace> &g_events;
extern Map<CUgraph_st *, Trace> &g_graphs;
extern Map<CUgraphExec_st *, Trace> &g_execs;
extern Map<const void *, Object> &g_objects; /* handles of cuBLAS and the like */
extern std::vector<Capture *> &g_captures;
extern Map<const void *, KernelInfo> &g_kernels;
extern Map<const char *, long> &g_api_calls;
extern long g_group_calls[HCU_GROUP_COUNT], g_executed[HCU_GROUP_COUNT], g_failable, g_injected, g_ptx_launches;
extern int g_occupancy; /* 0: by threads */
extern long g_loads, g_followers;
extern int g_compiled_for;          /* 0: each device's kind */
extern int g_start_error, g_driver; /* of every call: the driver cannot be started; its version */
extern bool g_loads_in_capture;
extern size_t g_largest_grid;
extern long g_fail_call_in, g_fail_exec_in;
extern int g_fail_call_error, g_fail_exec_error;
extern bool g_fail_call_sticky;
extern char g_fail_api[80]; /* empty: any call */
extern const char *g_last_injected;
extern Times g_times;
extern thread_local int t_device, t_last_error;
extern thread_local void *t_context;         /* current, and not its device's primary one; or NULL */
extern thread_local bool t_in_host_function; /* of cudaLaunchHostFunc, which may call nothing of CUDA's */
extern thread_local cudaStreamCaptureMode t_capture_mode;

void unlock();
struct Locked {
    Locked();
    ~Locked() { unlock(); }
};
void *tsan_identity();
void tsan_identity_done(void *id);
cudaError_t done(int error); /* every call returns through here: it sets the thread's last error */
int start_error();           /* of every call, also of the first: no device, or a driver that cannot be started */

/* ---- streams ----------------------------------------------------------------------------------------------------- */

CUstream_st *resolve(cudaStream_t s);
bool valid(CUstream_st *s);
bool blocking(const CUstream_st *s);
std::vector<CUstream_st *> streams_of(int device); /* -1: of all */
void run_until(const OpP &target);                 /* the operation and all it depends on, nothing else */
void make_visible(const OpP &target);              /* the host has synchronised with this operation and its past */
OpP submit(CUstream_st *s, Work work, OpP wait_for = nullptr);
void wait_behind(CUstream_st *s, const OpP &op); /* what comes next in the stream does */
void settle(const OpP &op);                      /* eager mode: work is done and seen as soon as it is submitted */
void sync_streams(int device, bool visible);
cudaError_t sync_stream(CUstream_st *s);

/* ---- host memory of queued copies (hcu_pinned.cpp) --------------------------------------------------------------- */

void watch_host_memory(const OpP &op); /* what the host may not touch until op is visible */
void show_host_memory();               /* stream work runs, until hide_host_memory */
void hide_host_memory();
void host_memory_seen(); /* some work has become visible */

/* ---- capture, launches, copies ----------------------------------------------------------------------------------- */

cudaError_t invalidate(Capture *c, cudaError_t e);
Capture *capture_beside(const CUstream_st *s);
void leave_capture(Capture *c); /* the capture is over for all streams and events */
void abandon_capture(Capture *c);
bool all_joined(const Capture *c);
void run_graph(const std::vector<Node> &nodes, int device);
cudaError_t launch(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s, bool cooperative);
cudaError_t load(const void *f, int device); /* a kernel, at its first use on the device */
void launch_results_seen();
void report_unseen_launch();
struct CopyPlan {
    bool dst_device, src_device, pageable;
    int other_device;
}; /* -1: one device is enough */
cudaError_t plan_copy(
    const char *api, void *dst, const void *src, size_t n, cudaMemcpyKind kind, int stream_dev, CopyPlan *plan);
cudaError_t copy(
    const char *api, void *dst, const void *src, size_t n, const CopyPlan &plan, cudaStream_t s, bool host_waits);

} // namespace hcu

#define ENTER(api, group, natural) \
    Call call_(api, group, natural); \
    if (call_.error) return done(call_.error)
#define NOT_IN_CAPTURE() \
    if (cudaError_t capture_error = forbidden_in_capture()) return done(capture_error)
#define DEVICE_OR_FAIL(d) \
    if ((d) < 0 || (d) >= g_device_count) return done(cudaErrorInvalidDevice)
#endif
