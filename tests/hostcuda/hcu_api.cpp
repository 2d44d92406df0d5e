/* hcu_api.cpp - the CUDA runtime API, as declared by the real headers: errors, devices, memory, streams,
 * events, launches,
 * capture and graphs.  What it does is in hcu_runtime.cpp; copies of rectangles and the rest are in hcu_copies.cpp. */
#include "hcu_state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
using std::vector;
using namespace hcu;

extern "C" {

/* ---- errors ---- */

#define HCU_ERRORS(X) \
    X(cudaSuccess, "no error") \
    X(cudaErrorInvalidValue, "invalid argument") \
    X(cudaErrorMemoryAllocation, "out of memory") \
    X(cudaErrorInitializationError, "initialization error") \
    X(cudaErrorCudartUnloading, "driver shutting down") \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument") \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy") \
    X(cudaErrorUnsupportedLimit, "limit is not supported on this architecture") \
    X(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
    X(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
    X(cudaErrorHardwareStackError, "hardware stack error") \
    X(cudaErrorIllegalInstruction, "an illegal instruction was encountered") \
    X(cudaErrorMisalignedAddress, "misaligned address") \
    X(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space") \
    X(cudaErrorInvalidPc, "invalid program counter") \
    X(cudaErrorAssert, "device-side assert triggered") \
    X(cudaErrorNotPermitted, "operation not permitted") \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument") \
    X(cudaErrorStubLibrary, "CUDA driver is a stub library") \
    X(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable") \
    X(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed") \
    X(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver combination") \
    X(cudaErrorCompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW") \
    X(cudaErrorMpsConnectionFailed, "MPS client failed to connect to the MPS control daemon or the MPS server") \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorInvalidDeviceFunction, "invalid device function") \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected") \
    X(cudaErrorInvalidDevice, "invalid device ordinal") \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle") \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state") \
    X(cudaErrorNotReady, "device not ready") \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered") \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch") \
    X(cudaErrorLaunchTimeout, "the launch timed out and was terminated") \
    X(cudaErrorLaunchFailure, "unspecified launch failure") \
    X(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch") \
    X(cudaErrorNotSupported, "operation not supported") \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
    X(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences") \
    X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began") \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work") \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream") \
    X(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream") \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream") \
    X(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread") \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t e) {
    switch (int(e)) {
#define X(code, text) \
    case int(code): return #code;
        HCU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t e) {
    switch (int(e)) {
#define X(code, text) \
    case int(code): return text;
        HCU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
cudaError_t cudaPeekAtLastError(void) {
    Locked l;
    launch_results_seen();
    if (start_error()) return cudaError_t(start_error()); /* also as the first call of all, and for ever */
    return cudaError_t(t_last_error); /* of a dead device, too: told once for each call that meets it */
}
cudaError_t cudaGetLastError(void) {
    cudaError_t e = cudaPeekAtLastError();
    t_last_error = 0;
    return e;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *n) {
    ENTER("cudaGetDeviceCount", kNoGroup, cudaErrorNoDevice);
    if (!n) return done(cudaErrorInvalidValue);
    *n = g_device_count;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *d) {
    ENTER("cudaGetDevice", kNoGroup, cudaErrorNoDevice);
    *d = t_device;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
    ENTER("cudaSetDevice", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(d);
    t_device = d;
    t_context = nullptr; /* its primary one is current */
    g_device[d].in_use = true;
    return cudaSuccess; /* also of a dead one */
}
cudaError_t cudaDriverGetVersion(int *v) {
    ENTER("cudaDriverGetVersion", kNoGroup, kNeverFails);
    *v = g_driver;
    return cudaSuccess;
}
static int primary_state(int device, unsigned *flags, int *active) { /* cuDevicePrimaryCtxGetState */
    Locked l;
    *flags = 0;
    *active = g_device[device].in_use;
    return 0;
}
static int get_current(void **out) { /* cuCtxGetCurrent; a device is its primary context */
    Locked l;
    *out = t_context ? t_context : g_device[t_device].in_use ? &g_device[t_device] : nullptr;
    return 0;
}
static int set_current(void *context) { /* cuCtxSetCurrent */
    Locked l;
    t_context = context;
    for (int d = 0; d < g_device_count; d++)
        if (context == &g_device[d]) {
            t_device = d;
            t_context = nullptr;
        }
    return 0;
}
static cudaError_t entry_point(const char *symbol, void **out, cudaDriverEntryPointQueryResult *how) {
    static const struct {
        const char *name;
        void *function;
    } known[] = {{"cuDevicePrimaryCtxGetState", reinterpret_cast<void *>(&primary_state)},
        {"cuCtxGetCurrent", reinterpret_cast<void *>(&get_current)},
        {"cuCtxSetCurrent", reinterpret_cast<void *>(&set_current)}};
    *out = nullptr;
    for (const auto &k : known)
        if (!strcmp(symbol, k.name)) *out = k.function;
    if (how) *how = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(
    const char *symbol, void **out, unsigned long long, cudaDriverEntryPointQueryResult *how) {
    ENTER("cudaGetDriverEntryPoint", kNoGroup, cudaErrorInvalidValue);
    return entry_point(symbol, out, how);
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **out, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *how) {
    ENTER("cudaGetDriverEntryPointByVersion", kNoGroup, cudaErrorInvalidValue);
    return entry_point(symbol, out, how);
}
#endif
cudaError_t cudaRuntimeGetVersion(int *v) {
    ENTER("cudaRuntimeGetVersion", kNoGroup, cudaErrorInvalidValue);
    *v = CUDART_VERSION;
    return cudaSuccess;
}
static const int kL2 = 512 << 10; /* small: who times products writes as much as it holds before each */
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int d) {
    ENTER("cudaDeviceGetAttribute", kNoGroup, cudaErrorInvalidValue);
    DEVICE_OR_FAIL(d);
    switch (a) {
    case cudaDevAttrMultiProcessorCount: *v = g_device[d].sms; break;
    case cudaDevAttrComputeCapabilityMajor: *v = g_device[d].arch / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *v = g_device[d].arch % 10; break;
    case cudaDevAttrMaxThreadsPerBlock: *v = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *v = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *v = 228 << 10; break;
    case cudaDevAttrMaxRegistersPerBlock: *v = 65536; break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *v = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *v = 64; break;
    case cudaDevAttrMaxGridDimX: *v = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *v = 65535; break;
    case cudaDevAttrL2CacheSize: *v = kL2; break;
    case cudaDevAttrWarpSize: *v = 32; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrMemoryPoolsSupported: *v = 1; break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrPageableMemoryAccess: *v = 0; break;
    default: return done(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d) {
    ENTER("cudaGetDeviceProperties", kNoGroup, cudaErrorInvalidDevice);
    DEVICE_OR_FAIL(d);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "hostcuda device %d", d);
    p->major = g_device[d].arch / 10;
    p->minor = g_device[d].arch % 10;
    p->multiProcessorCount = g_device[d].sms;
    p->totalGlobalMem = device_limit(d);
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->l2CacheSize = kL2;
    p->unifiedAddressing = p->cooperativeLaunch = p->memoryPoolsSupported = p->concurrentKernels = p->managedMemory = 1;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    ENTER("cudaMemGetInfo", kNoGroup, cudaErrorInvalidValue);
    *total = device_limit(t_device);
    *free_bytes = *total - std::min(*total, device_used(t_device));
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *f) {
    ENTER("cudaFuncGetAttributes", kNoGroup, cudaErrorInvalidDeviceFunction);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    if (cudaError_t e = load(f, t_device)) return done(e);
    memset(a, 0, sizeof *a);
    const KernelInfo *k = g_kernels.get(f);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->binaryVersion = g_device[t_device].arch;
    a->ptxVersion = g_compiled_for ? g_compiled_for : a->binaryVersion;
    a->maxDynamicSharedSizeBytes = k ? k->shared_optin : 48 << 10;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *f, cudaFuncAttribute a, int v) {
    ENTER("cudaFuncSetAttribute", kNoGroup, cudaErrorInvalidValue);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (v < 0 || v > 227 << 10) return done(cudaErrorInvalidValue);
        g_kernels[f].shared_optin = v;
    }
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *n, const void *f, int block, size_t shared, unsigned) {
    ENTER("cudaOccupancyMaxActiveBlocksPerMultiprocessor", kNoGroup, cudaErrorInvalidValue);
    if (!f) return done(cudaErrorInvalidDeviceFunction);
    if (block <= 0) return done(cudaErrorInvalidValue);
    if (cudaError_t e = load(f, t_device)) return done(e);
    *n = block > 1024 ? 0 : g_occupancy ? g_occupancy : std::min(32, 2048 / ((block + 31) / 32 * 32));
    if (shared) *n = std::min(*n, int((227 << 10) / shared));
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int block, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, block, shared, 0);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
    ENTER("cudaPointerGetAttributes", kNoGroup, cudaErrorInvalidValue);
    memset(a, 0, sizeof *a);
    Place at = place_of(p, 1);
    void *q = const_cast<void *>(p);
    a->type = at.where == WHERE_DEVICE ? cudaMemoryTypeDevice
        : at.where == WHERE_PINNED     ? cudaMemoryTypeHost
                                       : cudaMemoryTypeUnregistered;
    a->device = at.where == WHERE_DEVICE ? at.device : at.where == WHERE_PINNED ? t_device : cudaInvalidDeviceId;
    a->devicePointer = at.where == WHERE_DEVICE || at.where == WHERE_PINNED ? q : nullptr;
    a->hostPointer = at.where == WHERE_DEVICE ? nullptr : q;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t n) {
    ENTER("cudaMalloc", HCU_ALLOC, cudaErrorMemoryAllocation);
    NOT_IN_CAPTURE();
    if (!p) return done(cudaErrorInvalidValue);
    *p = nullptr;
    if (n == 0) return cudaSuccess;
    *p = device_alloc(t_device, n, true);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void *p) {
    ENTER("cudaFree", HCU_FREE, kNeverFails);
    if (p) count_extra(HCU_SYNC);
    NOT_IN_CAPTURE();
    if (!p) return done(g_device[t_device].error);
    if (managed(p)) {
        sync_streams(-1, true);
        pinned_free(p);
        return done(g_device[t_device].error);
    }
    FreeCheck check =
        device_free_check(p, true); /* one of cudaMallocAsync is there when the device has been waited for */
    if (check != FREE_OK) {
        bug("cudaFree(%p): %s", p, check == FREE_TWICE ? "freed twice" : "not a pointer from cudaMalloc");
        return done(cudaErrorInvalidValue);
    }
    int device = place_of(p, 1).device;
    sync_streams(device, false); /* as the driver does; not a synchronisation that the host may rely on */
    device_free(p);
    return done(g_device[device].error);
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) {
    ENTER("cudaMallocAsync", HCU_ALLOC, cudaErrorMemoryAllocation);
    *p = nullptr;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        fprintf(stderr, "hostcuda: cudaMallocAsync inside a capture is not modelled\n");
        return done(invalidate(stream->capture, cudaErrorNotSupported));
    }
    NOT_IN_CAPTURE();
    if (n == 0) return cudaSuccess;
    void *q = device_alloc(stream->device, n, false);
    if (!q) return done(cudaErrorMemoryAllocation);
    OpP op = submit(stream, Work{"cudaMallocAsync", kNoGroup, [q] { device_set_live(q); }});
    op->unconditional = true;
    settle(op);
    *p = q;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) {
    ENTER("cudaFreeAsync", HCU_FREE, kNeverFails);
    if (!p) return cudaSuccess;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorNotSupported));
    if (device_free_check(p, true) != FREE_OK) {
        bug("cudaFreeAsync(%p): not a live device buffer", p);
        return done(cudaErrorInvalidValue);
    }
    OpP op = submit(stream, Work{"cudaFreeAsync", kNoGroup, [p] { device_free(p); }});
    op->unconditional = true;
    settle(op);
    return done(g_device[stream->device].error);
}
static void *g_last_pinned;
void *hcu_last_pinned(void) {
    Locked l;
    return g_last_pinned;
}
static cudaError_t host_alloc(void **p, size_t n) {
    NOT_IN_CAPTURE();
    *p = g_last_pinned = pinned_alloc(n, false);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags) {
    ENTER("cudaHostAlloc", HCU_ALLOC, cudaErrorMemoryAllocation);
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (flags & ~known) return done(cudaErrorInvalidValue);
    return host_alloc(p, n);
}
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned) { /* reached from both sides, never moved */
    ENTER("cudaMallocManaged", HCU_ALLOC, cudaErrorMemoryAllocation);
    NOT_IN_CAPTURE();
    *p = pinned_alloc(n, true);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void **p, size_t n) {
    ENTER("cudaMallocHost", HCU_ALLOC, cudaErrorMemoryAllocation);
    return host_alloc(p, n);
}
cudaError_t cudaFreeHost(void *p) {
    ENTER("cudaFreeHost", HCU_FREE, kNeverFails);
    if (p) count_extra(HCU_SYNC);
    NOT_IN_CAPTURE();
    if (!p) return done(g_device[t_device].error);
    if (place_of(p, 0).where != WHERE_PINNED) {
        bug("cudaFreeHost(%p): not from cudaHostAlloc or cudaMallocHost", p);
        return done(cudaErrorInvalidValue);
    }
    sync_streams(-1, true);
    pinned_free(p);
    return done(g_device[t_device].error);
}
cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned) {
    ENTER("cudaHostGetDevicePointer", kNoGroup, cudaErrorInvalidValue);
    if (place_of(p, 1).where != WHERE_PINNED) return done(cudaErrorInvalidValue);
    *out = p; /* one address space */
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
    ENTER("cudaMemcpyAsync", HCU_COPY, cudaErrorInvalidValue);
    if (n == 0) return cudaSuccess;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    CopyPlan plan;
    if (cudaError_t e = plan_copy("cudaMemcpyAsync", dst, src, n, kind, stream->device, &plan)) return done(e);
    if (plan.pageable) count_extra(HCU_SYNC);
    /* from the device to pageable memory it returns when the copy is done, as NVIDIA documents */
    bool waits = plan.src_device && place_of(dst, 1).where == WHERE_HOST && !stream->capture;
    cudaError_t e = copy("cudaMemcpyAsync", dst, src, n, plan, s, waits);
    if (e || !waits) return done(e);
    run_until(stream->tail);
    make_visible(stream->tail);
    return done(g_device[stream->device].error);
}
cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, cudaMemcpyKind kind) {
    ENTER("cudaMemcpy", HCU_COPY, cudaErrorInvalidValue);
    if (n == 0) return cudaSuccess;
    CopyPlan plan;
    if (cudaError_t e = plan_copy("cudaMemcpy", dst, src, n, kind, t_device, &plan)) return done(e);
    bool waits = !(plan.dst_device && plan.src_device); /* device to device: ordered, but the host does not wait */
    if (waits) count_extra(HCU_SYNC);
    cudaError_t e = copy("cudaMemcpy", dst, src, n, plan, nullptr, waits);
    return done(e || !waits ? e : sync_stream(resolve(nullptr)));
}
} // extern "C"
namespace hcu {
/* A symbol's place in the program is its place on the device; only the order of the stream remains to be kept. */
cudaError_t symbol_copy(void *symbol, size_t size, void *other, size_t n, size_t offset, cudaMemcpyKind kind,
    cudaStream_t stream, bool to_symbol) {
    const char *api = to_symbol ? "cudaMemcpyToSymbol" : "cudaMemcpyFromSymbol";
    ENTER(api, HCU_COPY, cudaErrorInvalidValue);
    if (offset > size || n > size - offset) {
        bug("%s: bytes %zu..%zu of a variable of %zu bytes", api, offset, offset + n, size);
        return done(cudaErrorInvalidValue);
    }
    if (n == 0) return cudaSuccess;
    symbol_known(symbol, size);
    void *at = static_cast<char *>(symbol) + offset, *dst = to_symbol ? at : other;
    const void *src = to_symbol ? other : at;
    Place far = place_of(other, n);
    bool device = far.where == WHERE_DEVICE;
    if (far.where == WHERE_FREED || far.where == WHERE_OUTSIDE) {
        bug("%s: %s is %s", api, to_symbol ? "source" : "destination", far.text);
        return done(cudaErrorInvalidValue);
    }
    if (kind != cudaMemcpyDefault && device != (kind == cudaMemcpyDeviceToDevice)) return done(cudaErrorInvalidValue);
    return done(copy(api, dst, src, n, CopyPlan{to_symbol || device, !to_symbol || device, false, -1}, stream, false));
}
} // namespace hcu
extern "C" {
static cudaError_t fill(const char *api, void *p, int value, size_t n, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    int device = stream_device(s);
    if (device < 0) return done(cudaErrorInvalidResourceHandle);
    if (!need_device(api, "destination", p, n, device)) return done(cudaErrorInvalidValue);
    return done(enqueue(s, Work{api, HCU_FILL, [=] { memset(p, value, n); }}));
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) {
    ENTER("cudaMemsetAsync", HCU_FILL, cudaErrorInvalidValue);
    return fill("cudaMemsetAsync", p, value, n, s);
}
cudaError_t cudaMemset(void *p, int value, size_t n) {
    ENTER("cudaMemset", HCU_FILL, cudaErrorInvalidValue);
    return fill("cudaMemset", p, value, n, nullptr);
}

/* ---- streams ---- */

static cudaError_t stream_create(cudaStream_t *out, unsigned flags) {
    if (flags & ~unsigned(cudaStreamNonBlocking)) return done(cudaErrorInvalidValue);
    CUstream_st *s = new CUstream_st;
    s->device = t_device;
    s->flags = flags;
    s->tsan = tsan_identity();
    g_streams[s] = trace_here();
    *out = s;
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *s) {
    ENTER("cudaStreamCreate", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    ENTER("cudaStreamCreateWithFlags", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int) {
    ENTER("cudaStreamCreateWithPriority", HCU_OBJECT, cudaErrorMemoryAllocation);
    return stream_create(s, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    ENTER("cudaStreamDestroy", HCU_OBJECT, kNeverFails);
    if (!g_streams.get(s)) {
        bug("cudaStreamDestroy(%p): not a live stream", (void *)s);
        return done(cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        bug("cudaStreamDestroy: the stream is still capturing (a path without cudaStreamEndCapture?)");
        abandon_capture(s->capture);
    }
    run_until(s->tail); /* the driver returns at once and finishes the work later: this order is a legal one */
    tsan_identity_done(s->tsan);
    g_streams.erase(s);
    int device = s->device;
    if (s->tail && !s->tail->visible) g_device[device].left.push_back(s->tail);
    delete s; /* operations that events still hold are done and never look at their stream again */
    return done(g_device[device].error);
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) {
    ENTER("cudaStreamGetFlags", kNoGroup, cudaErrorInvalidResourceHandle);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureUnsupported));
    *flags = stream->flags;
    return cudaSuccess;
}
#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device) {
    ENTER("cudaStreamGetDevice", kNoGroup, cudaErrorInvalidResourceHandle);
    *device = stream_device(s);
    return done(*device < 0 ? cudaErrorInvalidResourceHandle : cudaSuccess);
}
#endif
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    ENTER("cudaStreamSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (!stream->capture) NOT_IN_CAPTURE();
    return done(sync_stream(stream));
}
cudaError_t cudaDeviceSynchronize(void) {
    ENTER("cudaDeviceSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    return done(wait_for_device());
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    ENTER("cudaStreamQuery", kNoGroup, cudaErrorLaunchFailure);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureUnsupported));
    NOT_IN_CAPTURE();
    if (stream->pending.empty()) {
        make_visible(stream->tail);
        return done(g_device[stream->device].error);
    }
    run_until(stream->pending.front()); /* one step per poll, so that polling loops end */
    return done(cudaErrorNotReady);
}

/* ---- events ---- */

static cudaError_t event_create(cudaEvent_t *out, unsigned flags) {
    if (flags & ~unsigned(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
        return done(cudaErrorInvalidValue);
    if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)) return done(cudaErrorInvalidValue);
    *out = new CUevent_st{t_device, !(flags & cudaEventDisableTiming), nullptr, nullptr, {}};
    g_events[*out] = trace_here();
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) {
    ENTER("cudaEventCreate", HCU_OBJECT, cudaErrorMemoryAllocation);
    return event_create(e, 0);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    ENTER("cudaEventCreateWithFlags", HCU_OBJECT, cudaErrorMemoryAllocation);
    return event_create(e, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    ENTER("cudaEventDestroy", HCU_OBJECT, kNeverFails);
    if (!g_events.erase(e)) {
        bug("cudaEventDestroy: not a live event");
        return done(cudaErrorInvalidResourceHandle);
    }
    int device = e->device;
    delete e;
    return done(g_device[device].error);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    ENTER("cudaEventRecord", kNoGroup, cudaErrorInvalidResourceHandle);
    CUstream_st *stream = resolve(s);
    if (!g_events.get(e) || !valid(stream) || stream->device != e->device) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        if (stream->capture->invalid) return done(cudaErrorStreamCaptureInvalidated);
        e->capture = stream->capture;
        e->capture_tail = stream->capture_tail;
        return cudaSuccess;
    }
    if (Capture *c = capture_beside(stream)) return done(invalidate(c, cudaErrorStreamCaptureImplicit));
    e->capture = nullptr;
    e->op = submit(stream, Work{"event", kNoGroup, nullptr});
    settle(e->op);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    ENTER("cudaStreamWaitEvent", kNoGroup, cudaErrorInvalidResourceHandle);
    CUstream_st *stream = resolve(s);
    if (!g_events.get(e) || !valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (flags & ~unsigned(cudaEventWaitExternal)) return done(cudaErrorInvalidValue);
    if (e->capture) { /* joins the event's capture */
        if (stream->legacy) return done(invalidate(e->capture, cudaErrorStreamCaptureImplicit));
        if (!stream->capture) {
            stream->capture = e->capture;
            stream->capture_tail.clear();
        }
        if (stream->capture != e->capture) {
            invalidate(stream->capture, cudaErrorStreamCaptureMerge);
            return done(invalidate(e->capture, cudaErrorStreamCaptureMerge));
        }
        stream->capture_tail.insert(stream->capture_tail.end(), e->capture_tail.begin(), e->capture_tail.end());
        return cudaSuccess;
    }
    if (!e->op) return cudaSuccess; /* never recorded */
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureIsolation));
    wait_behind(stream, e->op);
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    ENTER("cudaEventSynchronize", HCU_SYNC, cudaErrorLaunchFailure);
    if (!g_events.get(e)) return done(cudaErrorInvalidResourceHandle);
    if (e->capture) return done(invalidate(e->capture, cudaErrorCapturedEvent));
    NOT_IN_CAPTURE();
    run_until(e->op);
    make_visible(e->op);
    return done(g_device[e->device].error);
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    ENTER("cudaEventQuery", kNoGroup, cudaErrorLaunchFailure);
    if (!g_events.get(e)) return done(cudaErrorInvalidResourceHandle);
    if (e->capture) return done(invalidate(e->capture, cudaErrorCapturedEvent));
    NOT_IN_CAPTURE();
    if (!e->op || e->op->done) {
        make_visible(e->op);
        return done(g_device[e->device].error);
    }
    run_until(e->op);
    return done(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    ENTER("cudaEventElapsedTime", kNoGroup, cudaErrorInvalidValue);
    for (CUevent_st *e : {from, to})
        if (!g_events.get(e) || !e->timing || !e->op || e->device != from->device)
            return done(cudaErrorInvalidResourceHandle);
    if (!from->op->done || !to->op->done) return done(cudaErrorNotReady);
    *ms = float(double(to->op->time_ns - from->op->time_ns) * 1e-6);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *user) {
    ENTER("cudaLaunchHostFunc", kNoGroup, cudaErrorInvalidValue);
    if (!f) return done(cudaErrorInvalidValue);
    return done(enqueue(s, Work{"host function", kNoGroup, [=] {
                                    t_in_host_function = true;
                                    f(user);
                                    t_in_host_function = false;
                                }}));
}

/* ---- launches ---- */

cudaError_t cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s) {
    ENTER("cudaLaunchKernel", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    return done(launch(f, g, b, args, shared, s, false));
}
/* Those that only ask for speed are taken; what changes what a kernel may do is refused by name. */
static int launch_attribute(const cudaLaunchAttribute &a, bool *cooperative) {
    switch (a.id) {
    case cudaLaunchAttributeProgrammaticStreamSerialization: /* one after the other is a legal order */
        g_followers += a.val.programmaticStreamSerializationAllowed != 0;
        return 0;
    case cudaLaunchAttributeCooperative: *cooperative = a.val.cooperative != 0; return 0;
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain: return 0;
    case cudaLaunchAttributeClusterDimension: {
        const auto &d = a.val.clusterDim;
        return d.x * d.y * d.z == 1
            ? 0
            : refused("a launch in thread block clusters (cudaLaunchAttributeClusterDimension)");
    }
    default: return refused("a launch attribute that is neither cooperative nor a wish for speed");
    }
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args) {
    ENTER("cudaLaunchKernelEx", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    bool cooperative = false;
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (int refusal = launch_attribute(c->attrs[i], &cooperative)) return done(refusal);
    return done(launch(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, cooperative));
}

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s) {
    ENTER("cudaLaunchCooperativeKernel", HCU_LAUNCH, cudaErrorLaunchOutOfResources);
    return done(launch(f, g, b, args, shared, s, true));
}
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) {
    ENTER("cudaFuncSetCacheConfig", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess; /* a wish */
}
cudaError_t cudaFuncSetSharedMemConfig(const void *, cudaSharedMemConfig) {
    ENTER("cudaFuncSetSharedMemConfig", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess; /* for GPUs of another time */
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    ENTER("cudaDeviceSetSharedMemConfig", kNoGroup, cudaErrorInvalidValue);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
    ENTER("cudaDeviceGetSharedMemConfig", kNoGroup, cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

/* ---- capture and graphs ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    ENTER("cudaThreadExchangeStreamCaptureMode", kNoGroup, cudaErrorInvalidValue);
    std::swap(*mode, t_capture_mode);
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    ENTER("cudaStreamBeginCapture", kNoGroup, cudaErrorUnknown);
    static unsigned long long next_id = 1;
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (unsigned(mode) > unsigned(cudaStreamCaptureModeRelaxed)) return done(cudaErrorInvalidValue);
    if (stream->legacy) return done(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return done(cudaErrorIllegalState);
    stream->capture = new Capture{new CUgraph_st, stream, mode, pthread_self(), next_id++, false};
    stream->capture_tail.clear();
    g_captures.push_back(stream->capture);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    Call call("cudaStreamEndCapture", kNoGroup, cudaErrorStreamCaptureInvalidated);
    CUstream_st *stream = resolve(s);
    if (out) *out = nullptr;
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    Capture *c = stream->capture;
    if (call.error) { /* a failing call still ends the capture */
        if (c) abandon_capture(c);
        return done(call.error);
    }
    if (!c) return done(cudaErrorIllegalState);
    if (!out) return done(cudaErrorInvalidValue);
    if (c->origin != stream) return done(invalidate(c, cudaErrorStreamCaptureUnmatched));
    if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
        return done(cudaErrorStreamCaptureWrongThread);
    cudaError_t e = c->invalid ? cudaErrorStreamCaptureInvalidated
        : !all_joined(c)       ? cudaErrorStreamCaptureUnjoined
                               : cudaSuccess;
    if (e) {
        abandon_capture(c);
        return done(e);
    }
    leave_capture(c);
    g_graphs[c->graph] = trace_here();
    *out = c->graph;
    delete c;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) {
    ENTER("cudaStreamIsCapturing", kNoGroup, cudaErrorInvalidValue);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (capture_beside(stream)) return done(cudaErrorStreamCaptureImplicit); /* which lives on */
    *status = !stream->capture     ? cudaStreamCaptureStatusNone
        : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
static cudaError_t capture_info(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {
    ENTER("cudaStreamGetCaptureInfo", kNoGroup, cudaErrorInvalidValue);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (capture_beside(stream)) return done(cudaErrorStreamCaptureImplicit);
    Capture *c = stream->capture;
    *status = !c     ? cudaStreamCaptureStatusNone
        : c->invalid ? cudaStreamCaptureStatusInvalidated
                     : cudaStreamCaptureStatusActive;
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    stream->capture_handles.clear(); /* opaque: node numbers, counted from 1 */
    for (int n : stream->capture_tail)
        stream->capture_handles.push_back(reinterpret_cast<cudaGraphNode_t>(intptr_t(n) + 1));
    if (id) *id = c->id;
    if (graph) *graph = c->graph;
    if (nodes) *nodes = stream->capture_handles.data();
    if (count) *count = stream->capture_handles.size();
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
    if (edges) *edges = nullptr;
    return capture_info(s, status, id, graph, nodes, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {
    return capture_info(s, status, id, graph, nodes, count);
}
#endif
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long) {
    ENTER("cudaGraphInstantiate", HCU_OBJECT, cudaErrorMemoryAllocation);
    if (!g_graphs.get(g)) return done(cudaErrorInvalidValue);
    *out = new CUgraphExec_st{std::make_shared<vector<Node>>(g->nodes)};
    g_execs[*out] = trace_here();
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *count) {
    ENTER("cudaGraphGetNodes", kNoGroup, cudaErrorInvalidValue);
    if (!g_graphs.get(g) || nodes) return done(cudaErrorInvalidValue); /* only the count is modelled */
    *count = g->nodes.size();
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
    ENTER("cudaGraphLaunch", HCU_GRAPH, cudaErrorLaunchFailure);
    if (!g_execs.get(x)) return done(cudaErrorInvalidValue);
    CUstream_st *stream = resolve(s);
    if (!valid(stream)) return done(cudaErrorInvalidResourceHandle);
    if (stream->capture) return done(invalidate(stream->capture, cudaErrorStreamCaptureUnsupported));
    int device = stream->device;
    Nodes nodes = x->nodes;
    return done(enqueue(s, Work{"graph", HCU_GRAPH, [=] { run_graph(*nodes, device); }}));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
    ENTER("cudaGraphExecDestroy", HCU_OBJECT, kNeverFails);
    if (!g_execs.erase(x)) {
        bug("cudaGraphExecDestroy: not a live executable graph");
        return done(cudaErrorInvalidValue);
    }
    delete x;
    return cudaSuccess; /* on a dead device, too */
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    ENTER("cudaGraphDestroy", HCU_OBJECT, kNeverFails);
    if (!g_graphs.erase(g)) {
        bug("cudaGraphDestroy: not a live graph");
        return done(cudaErrorInvalidValue);
    }
    delete g;
    return done(g_device[t_device].error);
}
} // extern "C"
