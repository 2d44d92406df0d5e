/* hcu_copies.cpp - the rest of the CUDA runtime API: copies and fills of rectangles and boxes, memory that the
 * host has made,
 * hints, limits, and cudaDeviceReset. */
#include "hcu_state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
using namespace hcu;

namespace {

/* ---- boxes: rows of `width` bytes, `height` of them in a slice, `depth` slices ----------------------------------- */

struct Side {
    char *base;
    size_t pitch, slice; /* bytes from a row to the next, from a slice to the next */
};
struct Box { size_t width, height, depth; };

size_t extent(const Side &s, const Box &b) { return (b.depth - 1) * s.slice + (b.height - 1) * s.pitch + b.width; }
template <class F> void each_row(const Box &b, F f) {
    for (size_t z = 0; z < b.depth; z++)
        for (size_t y = 0; y < b.height; y++)
            f(z, y);
}
char *row(const Side &s, size_t z, size_t y) { return s.base + z * s.slice + y * s.pitch; }
void move_box(const Side &dst, const Side &src, const Box &b) {
    each_row(b, [&](size_t z, size_t y) { memmove(row(dst, z, y), row(src, z, y), b.width); });
}
bool empty(const Box &b) { return !b.width || !b.height || !b.depth; }

cudaError_t copy_box(
    const char *api, Side dst, Side src, const Box &b, cudaMemcpyKind kind, cudaStream_t s, bool waits) {
    if (empty(b)) return cudaSuccess;
    bool rows = b.height > 1 || b.depth > 1;
    if (rows && (b.width > dst.pitch || b.width > src.pitch)) return done(cudaErrorInvalidPitchValue);
    int device = stream_device(s);
    if (device < 0) return done(cudaErrorInvalidResourceHandle);
    size_t dst_bytes = extent(dst, b), src_bytes = extent(src, b);
    CopyPlan plan;
    if (cudaError_t e = plan_copy(api, dst.base, src.base, std::min(dst_bytes, src_bytes), kind, device, &plan))
        return done(e);
    for (const auto &side : {std::make_pair(dst.base, dst_bytes), std::make_pair(src.base, src_bytes)}) {
        Place at = place_of(side.first, side.second);
        if (at.where != WHERE_OUTSIDE && at.where != WHERE_FREED) continue;
        bug("%s: %s is %s", api, side.first == dst.base ? "destination" : "source", at.text);
        return done(cudaErrorInvalidValue);
    }
    if (plan.pageable) count_extra(HCU_SYNC);
    int other = plan.other_device;
    bool staged = !plan.src_device && place_of(src.base, 1).where == WHERE_HOST;
    std::shared_ptr<std::vector<char>> copy;
    if (staged) { /* pageable source: copied before the call returns */
        copy = std::make_shared<std::vector<char>>(src_bytes);
        Side to = {copy->data(), src.pitch, src.slice};
        move_box(to, src, b);
        src = to;
    }
    auto run = [=] {
        if (other >= 0) enter_device(other);
        move_box(dst, copy ? Side{copy->data(), src.pitch, src.slice} : src, b);
        if (other >= 0) leave_device(other);
    };
    cudaError_t e = enqueue(s, Work{api, HCU_COPY, run});
    return done(e || !waits ? e : sync_stream(resolve(s)));
}
cudaError_t fill_box(const char *api, Side dst, int value, const Box &b, cudaStream_t s) {
    if (empty(b)) return cudaSuccess;
    int device = stream_device(s);
    if (device < 0) return done(cudaErrorInvalidResourceHandle);
    if (!need_device(api, "destination", dst.base, extent(dst, b), device)) return done(cudaErrorInvalidValue);
    auto run = [=] { each_row(b, [&](size_t z, size_t y) { memset(row(dst, z, y), value, b.width); }); };
    return done(enqueue(s, Work{api, HCU_FILL, run}));
}
Side side(const void *p, size_t pitch) { return {static_cast<char *>(const_cast<void *>(p)), pitch, 0}; }
Side side(const cudaPitchedPtr &p, const cudaPos &at) {
    return {static_cast<char *>(p.ptr) + at.z * p.pitch * p.ysize + at.y * p.pitch + at.x, p.pitch, p.pitch * p.ysize};
}
cudaError_t copy_3d(const char *api, const cudaMemcpy3DParms *p, cudaStream_t s, bool waits) {
    if (!p) return done(cudaErrorInvalidValue);
    if (p->srcArray || p->dstArray) return done(refused("cudaMemcpy3D with a cudaArray"));
    Box b = {p->extent.width, p->extent.height, p->extent.depth};
    return copy_box(api, side(p->dstPtr, p->dstPos), side(p->srcPtr, p->srcPos), b, p->kind, s, waits);
}
size_t rounded_pitch(size_t width) { return (width + 511) / 512 * 512; }
} // namespace

namespace hcu {
void *thrust_alloc(size_t bytes) {
    Locked l;
    return pinned_alloc(bytes, true);
}
void thrust_free(void *p) {
    Locked l;
    if (p && !pinned_free(p)) bug("thrust: %p was not allocated by thrust, or freed twice", p);
}
} // namespace hcu

extern "C" {

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
    *pitch = rounded_pitch(width);
    return cudaMalloc(p, *pitch * height);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr *p, cudaExtent e) {
    *p = {nullptr, rounded_pitch(e.width), e.width, e.height};
    return cudaMalloc(&p->ptr, p->pitch * e.height * e.depth);
}
cudaError_t cudaMemcpy2D(
    void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h, cudaMemcpyKind kind) {
    ENTER("cudaMemcpy2D", HCU_COPY, cudaErrorInvalidValue);
    return copy_box("cudaMemcpy2D", side(dst, dpitch), side(src, spitch), {w, h, 1}, kind, nullptr, true);
}
cudaError_t cudaMemcpy2DAsync(
    void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h, cudaMemcpyKind kind, cudaStream_t s) {
    ENTER("cudaMemcpy2DAsync", HCU_COPY, cudaErrorInvalidValue);
    return copy_box("cudaMemcpy2DAsync", side(dst, dpitch), side(src, spitch), {w, h, 1}, kind, s, false);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    ENTER("cudaMemcpy3D", HCU_COPY, cudaErrorInvalidValue);
    return copy_3d("cudaMemcpy3D", p, nullptr, true);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t s) {
    ENTER("cudaMemcpy3DAsync", HCU_COPY, cudaErrorInvalidValue);
    return copy_3d("cudaMemcpy3DAsync", p, s, false);
}
cudaError_t cudaMemcpyPeerAsync(void *dst, int, const void *src, int, size_t n, cudaStream_t s) {
    return cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToDevice, s);
}
/* Unlike cudaMemcpy it waits for what is pending on both devices, and what comes later there waits for it. */
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t n) {
    Locked l;
    DEVICE_OR_FAIL(dst_device);
    DEVICE_OR_FAIL(src_device);
    CUstream_st *mine = resolve(nullptr);
    std::vector<CUstream_st *> others = streams_of(src_device);
    if (dst_device != src_device)
        for (CUstream_st *s : streams_of(dst_device))
            others.push_back(s);
    others.erase(std::remove(others.begin(), others.end(), mine), others.end());
    for (CUstream_st *s : others)
        wait_behind(mine, s->tail);
    cudaError_t e = cudaMemcpy(dst, src, n, cudaMemcpyDeviceToDevice);
    for (CUstream_st *s : others)
        wait_behind(s, mine->tail);
    return e;
}
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t w, size_t h, cudaStream_t s) {
    ENTER("cudaMemset2DAsync", HCU_FILL, cudaErrorInvalidValue);
    return fill_box("cudaMemset2DAsync", side(p, pitch), value, {w, h, 1}, s);
}
cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t w, size_t h) {
    ENTER("cudaMemset2D", HCU_FILL, cudaErrorInvalidValue);
    return fill_box("cudaMemset2D", side(p, pitch), value, {w, h, 1}, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent e, cudaStream_t s) {
    ENTER("cudaMemset3DAsync", HCU_FILL, cudaErrorInvalidValue);
    return fill_box("cudaMemset3DAsync", side(p, {0, 0, 0}), value, {e.width, e.height, e.depth}, s);
}
cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent e) {
    ENTER("cudaMemset3D", HCU_FILL, cudaErrorInvalidValue);
    return fill_box("cudaMemset3D", side(p, {0, 0, 0}), value, {e.width, e.height, e.depth}, nullptr);
}

/* ---- memory of the host, and hints ---- */

cudaError_t cudaHostRegister(void *p, size_t n, unsigned) {
    ENTER("cudaHostRegister", kNoGroup, cudaErrorInvalidValue);
    if (!p || !n) return done(cudaErrorInvalidValue);
    if (place_of(p, 1).where != WHERE_HOST) return done(cudaErrorHostMemoryAlreadyRegistered);
    symbol_known(p, n);
    live_object("registered host memory", p, true);
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *p) {
    ENTER("cudaHostUnregister", kNoGroup, kNeverFails);
    sync_streams(-1, false);
    if (!symbol_forgotten(p)) return done(cudaErrorHostMemoryNotRegistered);
    live_object("registered host memory", p, false);
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, cudaMemLocation, unsigned, cudaStream_t s) {
#else
cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, int, cudaStream_t s) {
#endif
    ENTER("cudaMemPrefetchAsync", kNoGroup, cudaErrorInvalidValue);
    if (stream_device(s) < 0) return done(cudaErrorInvalidResourceHandle);
    return done(managed_range(p, n) ? cudaSuccess : cudaErrorInvalidValue);
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void *p, size_t n, cudaMemoryAdvise, cudaMemLocation) {
#else
cudaError_t cudaMemAdvise(const void *p, size_t n, cudaMemoryAdvise, int) {
#endif
    ENTER("cudaMemAdvise", kNoGroup, cudaErrorInvalidValue);
    return done(managed_range(p, n) ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- devices ---- */

/* What is alive goes, and is told as a leak before, as compute-sanitizer does it. */
cudaError_t cudaDeviceReset(void) {
    Call call("cudaDeviceReset", kNoGroup, kNeverFails);
    if (call.error) return done(call.error);
    NOT_IN_CAPTURE();
    sync_streams(t_device, true);
    report_unseen_launch();
    if (getenv("HCU_LEAKS")) hcu_leaks(1);
    g_leaks_told = true;
    device_reset_memory(t_device);
    if (g_device[t_device].error) g_device[t_device].error = cudaErrorDevicesUnavailable; /* a fault lasts */
    t_last_error = 0;
    return cudaSuccess;
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    ENTER("cudaInitDevice", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(device);
    return cudaSuccess;
}
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) {
    ENTER("cudaChooseDevice", kNoGroup, cudaErrorInvalidValue);
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned) {
    ENTER("cudaSetDeviceFlags", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess;
}
static size_t g_limits[32]; /* by cudaLimit; 0: never set */
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    ENTER("cudaDeviceSetLimit", kNoGroup, cudaErrorUnsupportedLimit);
    if (unsigned(limit) >= 32) return done(cudaErrorUnsupportedLimit);
    g_limits[limit] = value;
    return cudaSuccess; /* kept, and asked for by nothing: stacks and heaps have one size here */
}
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    ENTER("cudaDeviceGetLimit", kNoGroup, cudaErrorUnsupportedLimit);
    if (unsigned(limit) >= 32) return done(cudaErrorUnsupportedLimit);
    const size_t usual = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitPrintfFifoSize ? 1 << 20 : 8 << 20;
    *value = g_limits[limit] ? g_limits[limit] : usual;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    ENTER("cudaDeviceSetCacheConfig", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess; /* a wish */
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    ENTER("cudaDeviceGetCacheConfig", kNoGroup, cudaErrorInvalidValue);
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER("cudaDeviceCanAccessPeer", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(device);
    DEVICE_OR_FAIL(peer);
    *can = 0; /* a kernel that touches another device's memory is a bug here */
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device) {
    ENTER("cudaDeviceGetPCIBusId", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(device);
    snprintf(text, size_t(bytes), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    ENTER("cudaDeviceGetStreamPriorityRange", kNoGroup, cudaErrorInvalidValue);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) {
    ENTER("cudaStreamGetPriority", kNoGroup, cudaErrorInvalidResourceHandle);
    if (stream_device(s) < 0) return done(cudaErrorInvalidResourceHandle);
    *priority = 0;
    return cudaSuccess;
}
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

/* ---- other names for what there is ---- */

cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) { return cudaEventRecord(e, s); }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long flags) {
    return cudaGraphInstantiate(x, g, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t s) {
    ENTER("cudaGraphUpload", kNoGroup, cudaErrorInvalidValue);
    return done(g_execs.get(x) && stream_device(s) >= 0 ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *user, unsigned) {
    ENTER("cudaStreamAddCallback", kNoGroup, cudaErrorInvalidValue);
    return done(enqueue(s, Work{"callback", kNoGroup, [=] { f(s, cudaSuccess, user); }}));
}
} // extern "C"
