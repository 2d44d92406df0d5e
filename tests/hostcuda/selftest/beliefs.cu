/* beliefs.cu - what our host runtime believes of CUDA, as questions (beliefs.h): errors, captures, what waits, a dead
 * device. beliefs [errors | last | attributes | memory | pool | launch | objects | capture | waits | dead |
 * fault NAME | none]: a fault kills the device, so each is asked in a process of its own; none is for a process that
 * sees no device (CUDA_VISIBLE_DEVICES=, HCU_DEVICES=0). */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <curand.h>
#include <chrono>
#include <thread>
#include "beliefs.h"

static __global__ void k_nothing(int *p) {
    if (p) p[threadIdx.x] = 1;
}
template <int N> static __global__ void k_fresh(int *p) { /* each N is loaded at its own first use */
    if (p) p[threadIdx.x] = N;
}
static __global__ void k_large(int *p) {
    AMP_DYN_SHARED(int, room);
    room[threadIdx.x] = 1;
    if (p) p[threadIdx.x] = room[threadIdx.x];
}
static cudaError_t start(cudaStream_t s, unsigned grid, unsigned block, size_t shared = 0) {
    return launch(s, grid, block, shared, k_nothing, (int *)nullptr);
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void last_errors() {
    int value = 0;
    (void)cudaSetDevice(99);
    cudaGetDevice(&value);
    error_is("last error, after a call that succeeds", cudaPeekAtLastError());
    (void)cudaSetDevice(99);
    (void)cudaGetLastError();
    error_is("last error, asked twice", cudaGetLastError());
    (void)cudaSetDevice(99);
    (void)start(nullptr, 1, 2048);
    error_is("last error, of two", cudaGetLastError());
    (void)cudaSetDevice(99);
    (void)start(nullptr, 1, 32);
    error_is("last error, after a launch that succeeds", cudaGetLastError());
    error_is("device 99: set", cudaSetDevice(99));
    error_is("device 99: attribute", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
    error_is("device 0: attribute 9999", cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
    cudaDeviceProp prop;
    error_is("device 99: properties", cudaGetDeviceProperties(&prop, 99));
    error_is("device -1: set", cudaSetDevice(-1));
    error_is("cudaGetDeviceCount(NULL)", cudaGetDeviceCount(nullptr));
    say("name of error 12345", "%s", cudaGetErrorName((cudaError_t)12345));
    say("text of error 12345", "%s", cudaGetErrorString((cudaError_t)12345));
}
static void attributes() {
    static const struct {
        const char *name;
        cudaDeviceAttr attribute;
    } list[] = {{"warp size", cudaDevAttrWarpSize}, {"threads per block", cudaDevAttrMaxThreadsPerBlock},
        {"shared memory per block", cudaDevAttrMaxSharedMemoryPerBlock},
        {"shared memory, opted in", cudaDevAttrMaxSharedMemoryPerBlockOptin},
        {"shared memory per SM", cudaDevAttrMaxSharedMemoryPerMultiprocessor},
        {"registers per block", cudaDevAttrMaxRegistersPerBlock}, {"SMs", cudaDevAttrMultiProcessorCount},
        {"threads per SM", cudaDevAttrMaxThreadsPerMultiProcessor},
        {"blocks per SM", cudaDevAttrMaxBlocksPerMultiprocessor}, {"cooperative", cudaDevAttrCooperativeLaunch},
        {"grid x", cudaDevAttrMaxGridDimX}, {"grid y", cudaDevAttrMaxGridDimY}, {"block z", cudaDevAttrMaxBlockDimZ},
        {"memory pools", cudaDevAttrMemoryPoolsSupported}, {"managed memory", cudaDevAttrManagedMemory},
        {"unified addressing", cudaDevAttrUnifiedAddressing}};
    for (const auto &x : list) {
        char name[80];
        int value = -1;
        cudaError_t e = cudaDeviceGetAttribute(&value, x.attribute, 0);
        snprintf(name, sizeof name, "attribute, %s", x.name);
        say(name, "%s %d", cudaGetErrorName(e), value);
    }
}
static void memory_errors() {
    char host[64] = {0}, *d = device_array<char>(256), *twice = device_array<char>(256), *malloced = (char *)malloc(64);
    void *p = (void *)1, *pinned = nullptr;
    cudaPointerAttributes a;
    error_is("cudaMalloc of 2^50", cudaMalloc(&p, (size_t)1 << 50));
    say("cudaMalloc of 2^50, the pointer", "%s", p == (void *)1 ? "untouched" : p ? "something" : "NULL");
    p = (void *)1;
    error_is("cudaMalloc of 0", cudaMalloc(&p, 0));
    say("cudaMalloc of 0, the pointer", "%s", p == (void *)1 ? "untouched" : p ? "something" : "NULL");
    error_is("cudaMalloc to NULL", cudaMalloc((void **)nullptr, 64));
    error_is("cudaMallocHost of 0", cudaMallocHost(&pinned, 0));
    error_is("cudaMallocHost of 2^50", cudaMallocHost(&pinned, (size_t)1 << 50));
    error_is("cudaFree(NULL)", cudaFree(nullptr));
    error_is("cudaFreeHost(NULL)", cudaFreeHost(nullptr));
    error_is("cudaFree inside an allocation", cudaFree(d + 16));
    error_is("cudaFree of host memory", cudaFree(malloced));
    error_is("cudaFreeHost of malloc's memory", cudaFreeHost(malloced));
    error_is("cudaFreeHost of device memory", cudaFreeHost(d));
    CU(cudaFree(twice));
    error_is("cudaFree, twice", cudaFree(twice));
    error_is("copy, wrong direction", cudaMemcpy(d, host, 64, cudaMemcpyDeviceToHost));
    error_is("copy, host to host, as device to device", cudaMemcpy(malloced, host, 64, cudaMemcpyDeviceToDevice));
    error_is("copy, to NULL", cudaMemcpy(nullptr, host, 64, cudaMemcpyHostToDevice));
    error_is("copy of 0 bytes to NULL", cudaMemcpy(nullptr, host, 0, cudaMemcpyHostToDevice));
    error_is("copy, kind 77", cudaMemcpy(d, host, 64, (cudaMemcpyKind)77));
    error_is("copy of 0 bytes, kind 77", cudaMemcpy(d, host, 0, (cudaMemcpyKind)77));
    error_is("fill of NULL", cudaMemset(nullptr, 0, 64));
    error_is("fill of 0 bytes of NULL", cudaMemset(nullptr, 0, 0));
    error_is("fill of host memory", cudaMemset(malloced, 0, 64));
    for (const void *q : {(const void *)nullptr, (const void *)malloced, (const void *)(d + 16)}) {
        cudaError_t e = cudaPointerGetAttributes(&a, q);
        say(q == nullptr      ? "attributes of NULL"
                : q == d + 16 ? "attributes inside an allocation"
                              : "attributes of malloc's memory",
            "%s type %d device %d, its pointer %s", cudaGetErrorName(e), (int)a.type, a.device,
            a.devicePointer == q ? "equal" : "another");
    }
    error_is("device pointer of malloc's memory", cudaHostGetDevicePointer(&p, malloced, 0));
    CU(cudaHostAlloc(&pinned, 64, 0));
    CU(cudaHostGetDevicePointer(&p, pinned, 0));
    say("device pointer of pinned memory", "%s", p == pinned ? "equal" : "another");
    error_is("cudaFree of pinned memory", cudaFree(pinned));
    error_is("cudaHostAlloc, flags 0x1000", cudaHostAlloc(&p, 64, 0x1000));
    CU(cudaFreeHost(pinned));
    CU(cudaFree(d));
    free(malloced);
}
static void pool_errors() {
    cudaStream_t s;
    void *p = (void *)1, *q = nullptr;
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    error_is("cudaMallocAsync of 0", cudaMallocAsync(&p, 0, s));
    say("cudaMallocAsync of 0, the pointer", "%s", p == (void *)1 ? "untouched" : p ? "something" : "NULL");
    error_is("cudaMallocAsync of 2^50", cudaMallocAsync(&p, (size_t)1 << 50, s));
    CU(cudaMalloc(&q, 64));
    error_is("cudaFreeAsync of cudaMalloc's", cudaFreeAsync(q, s));
    CU(cudaMallocAsync(&p, 64, s));
    error_is("cudaFree of cudaMallocAsync's", cudaFree(p));
    error_is("cudaFreeAsync(NULL)", cudaFreeAsync(nullptr, s));
    CU(cudaStreamSynchronize(s));
    CU(cudaStreamDestroy(s));
}
static void launch_errors() {
    int blocks = -1;
    cudaFuncAttributes a;
    error_is("launch, grid 0", start(nullptr, 0, 32));
    error_is("launch, block 0", start(nullptr, 1, 0));
    error_is("launch, block 1025", start(nullptr, 1, 1025));
    error_is("launch, grid 2^31", start(nullptr, 1u << 31, 32));
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(1, 65536);
    c.blockDim = dim3(32);
    error_is("launch, grid y 65536", cudaLaunchKernelEx(&c, k_nothing, (int *)nullptr));
    c.gridDim = dim3(1);
    c.blockDim = dim3(1, 1, 65);
    error_is("launch, block z 65", cudaLaunchKernelEx(&c, k_nothing, (int *)nullptr));
    error_is("launch, 48 KiB of shared memory", launch(nullptr, 1, 32, 48 << 10, k_large, (int *)nullptr));
    error_is("launch, 48 KiB and a byte", launch(nullptr, 1, 32, (48 << 10) + 1, k_large, (int *)nullptr));
    error_is(
        "opting in, 227 KiB", cudaFuncSetAttribute(k_large, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    error_is("launch, 227 KiB", launch(nullptr, 1, 32, 227 << 10, k_large, (int *)nullptr));
    error_is("launch, 228 KiB", launch(nullptr, 1, 32, 228 << 10, k_large, (int *)nullptr));
    error_is(
        "opting in, 228 KiB", cudaFuncSetAttribute(k_large, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10));
    error_is("opting in, -1", cudaFuncSetAttribute(k_large, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    void *no_arguments[1] = {nullptr};
    error_is("launch of NULL", cudaLaunchKernel(nullptr, dim3(1), dim3(1), no_arguments, 0, nullptr));
    error_is("launch of no kernel",
        cudaLaunchKernel((const void *)&last_errors, dim3(1), dim3(1), no_arguments, 0, nullptr));
    error_is("attributes of the kernel NULL", cudaFuncGetAttributes(&a, (const void *)nullptr));
    error_is("attributes of no kernel", cudaFuncGetAttributes(&a, (const void *)&last_errors));
    error_is("occupancy, block 0", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_nothing, 0, 0));
    cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_nothing, 2048, 0);
    say("occupancy, block 2048", "%s %d", cudaGetErrorName(e), blocks);
    e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_nothing, 256, 0);
    say("occupancy, block 256", "%s %d", cudaGetErrorName(e), blocks);
    e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_nothing, 256, 300 << 10);
    say("occupancy, 300 KiB", "%s %d", cudaGetErrorName(e), blocks);
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeCooperative;
    attribute[0].val.cooperative = 1;
    c.gridDim = dim3(1 << 20);
    c.blockDim = dim3(256);
    c.attrs = attribute;
    c.numAttrs = 1;
    error_is("cooperative launch, 2^20 blocks", cudaLaunchKernelEx(&c, k_nothing, (int *)nullptr));
    error_is("afterwards, the device", cudaDeviceSynchronize());
}
static void object_errors() {
    cudaStream_t s;
    cudaEvent_t e, f;
    float ms = -1;
    error_is("stream, flags 77", cudaStreamCreateWithFlags(&s, 77));
    error_is("event, flags 77", cudaEventCreateWithFlags(&e, 77));
    error_is("event, interprocess and timing", cudaEventCreateWithFlags(&e, cudaEventInterprocess));
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaEventCreate(&e));
    CU(cudaEventCreate(&f));
    error_is("event never recorded: query", cudaEventQuery(e));
    error_is("event never recorded: synchronise", cudaEventSynchronize(e));
    error_is("event never recorded: wait", cudaStreamWaitEvent(s, e, 0));
    error_is("event never recorded: elapsed", cudaEventElapsedTime(&ms, e, f));
    error_is("wait, flags 77", cudaStreamWaitEvent(s, e, 77));
    error_is("cudaEventDestroy(NULL)", cudaEventDestroy(nullptr));
    error_is("cudaEventRecord(NULL)", cudaEventRecord(nullptr, s));
    error_is("cudaEventQuery(NULL)", cudaEventQuery(nullptr));
    error_is("cudaStreamDestroy(NULL)", cudaStreamDestroy(nullptr));
    error_is("cudaGraphDestroy(NULL)", cudaGraphDestroy(nullptr));
    error_is("cudaGraphExecDestroy(NULL)", cudaGraphExecDestroy(nullptr));
    error_is("cudaGraphLaunch(NULL)", cudaGraphLaunch(nullptr, s));
    error_is("a host function that is NULL", cudaLaunchHostFunc(s, nullptr, nullptr));
    cudaError_t inside = cudaSuccess;
    CU(cudaLaunchHostFunc(s, [](void *u) { *static_cast<cudaError_t *>(u) = cudaFree(nullptr); }, &inside));
    CU(cudaStreamSynchronize(s));
    error_is("cudaFree(NULL) in a host function", inside);
    error_is("end of no capture", cudaStreamEndCapture(s, nullptr));
    cudaGraph_t g;
    error_is("end of no capture, with room", cudaStreamEndCapture(s, &g));
    error_is("capture of the legacy stream", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed));
    error_is("capture, mode 77", cudaStreamBeginCapture(s, (cudaStreamCaptureMode)77));
    (void)cudaStreamEndCapture(s, &g);
    CU(cudaStreamDestroy(s));
    CU(cudaEventDestroy(e));
    CU(cudaEventDestroy(f));
}

/* ---- captures: each call in a capture of each mode ------------------------------------------------------------- */

static cudaStream_t captured, other, blocking;
static cudaEvent_t outside, inside;
static cublasHandle_t blas;
static cublasLtHandle_t lt;
static curandGenerator_t random_numbers;
static float *area, *area2;
static void *pinned_area;
static cudaGraphExec_t ready_graph;
static char words[64];

static int of_blas(cublasStatus_t s) { return s == CUBLAS_STATUS_SUCCESS ? 0 : 100000 + (int)s; }
template <int N> static int first_attributes() {
    cudaFuncAttributes a;
    return cudaFuncGetAttributes(&a, k_fresh<N>);
}
template <int N> static int first_occupancy() {
    int blocks;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_fresh<N>, 64, 0);
}
template <int N> static int first_launch() { return launch(captured, 1, 32, 0, k_fresh<N>, (int *)nullptr); }
template <int N> static int first_opt_in() {
    return cudaFuncSetAttribute(k_fresh<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16);
}
static int product(bool with_algo) {
    static cublasLtMatmulDesc_t d; /* made before any device dies */
    static cublasLtMatrixLayout_t l;
    static cublasLtMatmulPreference_t p;
    cublasLtMatmulHeuristicResult_t r;
    int found = 0, result = 0;
    const float one = 1, zero = 0;
    if (!d) {
        cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, 32, 32, 32);
        cublasLtMatmulPreferenceCreate(&p);
        return 0;
    }
    if (with_algo)
        result = of_blas(cublasLtMatmulAlgoGetHeuristic(lt, d, l, l, l, l, p, 1, &r, &found));
    else
        result = of_blas(
            cublasLtMatmul(lt, d, &one, area, l, area, l, &zero, area2, l, area2, l, nullptr, nullptr, 0, captured));
    return result;
}
static int sgemm() {
    const float one = 1, zero = 0;
    return of_blas(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 32, 32, 32, &one, area, 32, area, 32, &zero, area2, 32));
}
static cublasLtHandle_t made_lt[3];
static int made_and_destroyed(int what) {
    cublasHandle_t h;
    cublasLtHandle_t l;
    curandGenerator_t g;
    if (what == 0) {
        int e = of_blas(cublasCreate(&h));
        return e ? e : of_blas(cublasDestroy(h));
    }
    if (what == 1) {
        int e = of_blas(cublasLtCreate(&l));
        return e ? e : of_blas(cublasLtDestroy(l));
    }
    int e = curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    if (!e) curandDestroyGenerator(g);
    return e ? 200000 + e : 0;
}
static int object_in_capture(int what) {
    cudaStream_t s;
    cudaEvent_t e;
    int r = what ? (int)cudaEventCreate(&e) : (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    if (r) return r;
    return what ? (int)cudaEventDestroy(e) : (int)cudaStreamDestroy(s);
}
static int fork_unjoined() {
    int e = cudaEventRecord(inside, captured);
    return e ? e : (int)cudaStreamWaitEvent(other, inside, 0);
}
static int on_captured_event(int what) {
    int e = cudaEventRecord(inside, captured);
    if (e) return e;
    return what ? (int)cudaEventQuery(inside) : (int)cudaEventSynchronize(inside);
}
static int memory_in_capture(int what) {
    void *p = nullptr;
    int e = 0;
    switch (what) {
    case 0: e = cudaMalloc(&p, 64); break;
    case 1: e = cudaMallocHost(&p, 64); break;
    case 2: e = cudaHostAlloc(&p, 64, 0); break;
    case 3: e = cudaMallocAsync(&p, 64, other); break;
    case 4: e = cudaMallocAsync(&p, 64, captured); break;
    default: e = cudaMallocManaged(&p, 64); break;
    }
    return e;
}
static int query(int what) {
    size_t a, b;
    int n;
    unsigned flags;
    cudaFuncAttributes f;
    cudaDeviceProp prop;
    cudaPointerAttributes p;
    cudaStreamCaptureStatus status;
    void *q;
    switch (what) {
    case 0: return cudaMemGetInfo(&a, &b);
    case 1: return cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0);
    case 2: return cudaFuncGetAttributes(&f, k_nothing);
    case 3: return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k_nothing, 64, 0);
    case 4: return cudaGetDeviceProperties(&prop, 0);
    case 5: return cudaPointerGetAttributes(&p, area);
    case 6: return cudaHostGetDevicePointer(&q, pinned_area, 0);
    case 7: return cudaStreamGetFlags(captured, &flags);
    case 8: return cudaSetDevice(0);
    case 9: return cudaStreamIsCapturing(nullptr, &status);
    case 10: return cudaStreamIsCapturing(captured, &status);
    default: return cudaGetDeviceCount(&n);
    }
}
#define FRESH(f) (m == 0 ? f<__COUNTER__>() : m == 1 ? f<__COUNTER__>() : f<__COUNTER__>())
static const struct {
    const char *name;
    int (*call)(int m);
} calls[] = {{"nothing", [](int) { return 0; }}, {"cudaMalloc", [](int) { return memory_in_capture(0); }},
    {"cudaMallocHost", [](int) { return memory_in_capture(1); }},
    {"cudaHostAlloc", [](int) { return memory_in_capture(2); }},
    {"cudaMallocManaged", [](int) { return memory_in_capture(5); }},
    {"cudaMallocAsync, another stream", [](int) { return memory_in_capture(3); }},
    {"cudaFree(NULL)", [](int) { return (int)cudaFree(nullptr); }},
    {"cudaFree", [](int) { return (int)cudaFree(area2); }},
    {"cudaFreeHost(NULL)", [](int) { return (int)cudaFreeHost(nullptr); }},
    {"cudaFreeHost", [](int) { return (int)cudaFreeHost(pinned_area); }},
    {"cudaMemGetInfo", [](int) { return query(0); }}, {"cudaDeviceGetAttribute", [](int) { return query(1); }},
    {"cudaFuncGetAttributes", [](int) { return query(2); }}, {"occupancy", [](int) { return query(3); }},
    {"cudaGetDeviceProperties", [](int) { return query(4); }},
    {"cudaPointerGetAttributes", [](int) { return query(5); }},
    {"cudaHostGetDevicePointer", [](int) { return query(6); }}, {"cudaStreamGetFlags", [](int) { return query(7); }},
    {"cudaSetDevice", [](int) { return query(8); }}, {"cudaStreamIsCapturing, legacy", [](int) { return query(9); }},
    {"cudaGetDeviceCount", [](int) { return query(11); }},
    {"cudaFuncGetAttributes, first load", [](int m) { return FRESH(first_attributes); }},
    {"occupancy, first load", [](int m) { return FRESH(first_occupancy); }},
    {"cudaFuncSetAttribute, first load", [](int m) { return FRESH(first_opt_in); }},
    {"launch, first load", [](int m) { return FRESH(first_launch); }},
    {"launch", [](int) { return (int)start(captured, 1, 32); }},
    {"launch with a wrong block", [](int) { return (int)start(captured, 1, 2048); }},
    {"launch, another stream", [](int) { return (int)start(other, 1, 32); }},
    {"launch, legacy stream", [](int) { return (int)start(nullptr, 1, 32); }},
    {"cudaStreamCreate and Destroy", [](int) { return object_in_capture(0); }},
    {"cudaEventCreate and Destroy", [](int) { return object_in_capture(1); }},
    {"cudaEventRecord, another stream", [](int) { return (int)cudaEventRecord(outside, other); }},
    {"cudaEventQuery, outside", [](int) { return (int)cudaEventQuery(outside); }},
    {"cudaEventSynchronize, outside", [](int) { return (int)cudaEventSynchronize(outside); }},
    {"cudaEventQuery, inside", [](int) { return on_captured_event(1); }},
    {"cudaEventSynchronize, inside", [](int) { return on_captured_event(0); }},
    {"cudaStreamWaitEvent, outside", [](int) { return (int)cudaStreamWaitEvent(captured, outside, 0); }},
    {"a fork, not joined", [](int) { return fork_unjoined(); }},
    {"cudaStreamSynchronize", [](int) { return (int)cudaStreamSynchronize(captured); }},
    {"cudaStreamSynchronize, another", [](int) { return (int)cudaStreamSynchronize(other); }},
    {"cudaStreamSynchronize, legacy", [](int) { return (int)cudaStreamSynchronize(nullptr); }},
    {"cudaDeviceSynchronize", [](int) { return (int)cudaDeviceSynchronize(); }},
    {"cudaStreamQuery", [](int) { return (int)cudaStreamQuery(captured); }},
    {"cudaStreamQuery, another", [](int) { return (int)cudaStreamQuery(other); }},
    {"cudaMemcpy", [](int) { return (int)cudaMemcpy(words, area, 64, cudaMemcpyDeviceToHost); }},
    {"cudaMemset", [](int) { return (int)cudaMemset(area, 0, 64); }},
    {"cudaMemcpyAsync, pageable",
        [](int) { return (int)cudaMemcpyAsync(area, words, 64, cudaMemcpyHostToDevice, captured); }},
    {"cudaMemcpyAsync, another stream, pageable",
        [](int) { return (int)cudaMemcpyAsync(area, words, 64, cudaMemcpyHostToDevice, other); }},
    {"cudaMemsetAsync", [](int) { return (int)cudaMemsetAsync(area, 0, 64, captured); }},
    {"cudaStreamBeginCapture, again",
        [](int) { return (int)cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed); }},
    {"cudaGraphLaunch, into it", [](int) { return (int)cudaGraphLaunch(ready_graph, captured); }},
    {"cudaGraphLaunch, another stream", [](int) { return (int)cudaGraphLaunch(ready_graph, other); }},
    {"cublasLtMatmul", [](int) { return product(false); }},
    {"cublasLtMatmulAlgoGetHeuristic", [](int) { return product(true); }}, {"cublasSgemm", [](int) { return sgemm(); }},
    {"cublasCreate and Destroy", [](int) { return made_and_destroyed(0); }},
    {"cublasLtCreate and Destroy", [](int) { return made_and_destroyed(1); }},
    {"cublasLtCreate alone", [](int m) { return of_blas(cublasLtCreate(&made_lt[m])); }},
    {"cublasLtDestroy alone", [](int m) { return made_lt[m] ? of_blas(cublasLtDestroy(made_lt[m])) : 0; }},
    {"curandCreateGenerator and Destroy", [](int) { return made_and_destroyed(2); }},
    {"curandGenerate", [](int) {
         int e = curandGenerateUniform(random_numbers, area, 64);
         return e ? 200000 + e : 0;
     }}};

static const char *capture_name(int status) {
    return status == cudaStreamCaptureStatusActive ? "active"
        : status == cudaStreamCaptureStatusNone    ? "none"
                                                   : "invalid";
}
static const char *answer(int e, char *room) {
    if (e >= 200000) return sprintf(room, "curand %d", e - 200000), room;
    if (e >= 100000) return sprintf(room, "cublas %d", e - 100000), room;
    return cudaGetErrorName((cudaError_t)e);
}
static const char *const modes[] = {"global", "thread", "relaxed"};
static void in_capture(int i, int m) {
    char name[120], room[2][32];
    cudaStreamCaptureStatus after = cudaStreamCaptureStatusNone;
    cudaGraph_t g = nullptr;
    size_t nodes = 0;
    snprintf(name, sizeof name, "capture, %s, %s", modes[m], calls[i].name);
    cudaError_t begin = cudaStreamBeginCapture(captured, (cudaStreamCaptureMode)m); /* in the order of the names */
    if (begin) return error_is(name, begin);
    int e = calls[i].call(m);
    (void)cudaGetLastError();
    cudaStreamIsCapturing(captured, &after);
    (void)cudaGetLastError();
    int end = cudaStreamEndCapture(captured, &g);
    if (g) cudaGraphGetNodes(g, nullptr, &nodes);
    say(name, "%s, then %s, end %s, %zu nodes", answer(e, room[0]), capture_name(after), answer(end, room[1]), nodes);
    if (g) cudaGraphDestroy(g);
    cudaStreamSynchronize(captured);
    cudaDeviceSynchronize();
    if (!strcmp(calls[i].name, "cudaFree") && !e) cudaMalloc((void **)&area2, 1 << 16);
    if (!strcmp(calls[i].name, "cudaFreeHost") && !e) cudaMallocHost(&pinned_area, 64);
    (void)cudaGetLastError();
}
static void prepare() {
    cudaGraph_t g;
    CU(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CU(cudaStreamCreate(&blocking));
    CU(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
    CU(cudaEventCreateWithFlags(&inside, cudaEventDisableTiming));
    area = device_zeros<float>(1 << 14);
    area2 = device_zeros<float>(1 << 14);
    CU(cudaMallocHost(&pinned_area, 64));
    cublasCreate(&blas);
    cublasSetStream(blas, captured);
    cublasLtCreate(&lt);
    product(false); /* makes the descriptors */
    curandCreateGenerator(&random_numbers, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    curandSetPseudoRandomGeneratorSeed(random_numbers, 1);
    curandSetStream(random_numbers, captured);
    CU(start(captured, 1, 32));
    CU(cudaEventRecord(outside, other));
    CU(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    CU(start(captured, 1, 32));
    CU(cudaStreamEndCapture(captured, &g));
    CU(cudaGraphInstantiate(&ready_graph, g, 0));
    CU(cudaGraphDestroy(g));
    CU(cudaDeviceSynchronize());
}
/* cudaMalloc while a stream is captured: the capture's mode, the thread's, the same thread or another. */
static void threads_and_modes() {
    for (int c = 0; c < 3; c++)
        for (int t = 0; t < 3; t++)
            for (int another = 0; another < 2; another++) {
                char name[120];
                cudaGraph_t g = nullptr;
                void *p = nullptr;
                cudaError_t e = cudaSuccess;
                auto allocate = [&]() {
                    cudaStreamCaptureMode mode = (cudaStreamCaptureMode)t;
                    cudaThreadExchangeStreamCaptureMode(&mode);
                    e = cudaMalloc(&p, 64);
                    cudaThreadExchangeStreamCaptureMode(&mode);
                };
                CU(cudaStreamBeginCapture(captured, (cudaStreamCaptureMode)c));
                if (another)
                    std::thread(allocate).join();
                else
                    allocate();
                cudaError_t end = cudaStreamEndCapture(captured, &g);
                snprintf(name, sizeof name, "cudaMalloc, capture %s, %s thread %s", modes[c],
                    another ? "another" : "the same", modes[t]);
                say(name, "%s, end %s", cudaGetErrorName(e), cudaGetErrorName(end));
                if (g) cudaGraphDestroy(g);
                cudaFree(p);
            }
}
static void capture_rules() {
    cudaGraph_t g = nullptr;
    cudaGraphExec_t x = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    for (int m = 0; m < 3; m++) {
        char name[80];
        cudaError_t e = cudaSuccess;
        CU(cudaStreamBeginCapture(captured, (cudaStreamCaptureMode)m));
        std::thread([&] { e = cudaStreamEndCapture(captured, &g); }).join();
        snprintf(name, sizeof name, "end by another thread, %s", modes[m]);
        error_is(name, e);
        (void)cudaStreamEndCapture(captured, &g);
    }
    CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    error_is("blocking stream captured: launch on the legacy stream", start(nullptr, 1, 32));
    error_is("then the end", cudaStreamEndCapture(blocking, &g));
    CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    error_is("blocking stream captured: is the legacy stream", cudaStreamIsCapturing(nullptr, &status));
    error_is("is it, then the end", cudaStreamEndCapture(blocking, &g));
    CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    error_is("blocking stream captured: cudaMemset", cudaMemset(area, 0, 64));
    error_is("cudaMemset, then the end", cudaStreamEndCapture(blocking, &g));
    CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    error_is("blocking stream captured: record on the legacy stream", cudaEventRecord(outside, nullptr));
    error_is("record, then the end", cudaStreamEndCapture(blocking, &g));
    CU(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    CU(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    CU(cudaEventRecord(inside, other));
    error_is("wait for the event of another capture", cudaStreamWaitEvent(captured, inside, 0));
    error_is("then the end of one", cudaStreamEndCapture(captured, &g));
    error_is("then the end of the other", cudaStreamEndCapture(other, &g));
    CU(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    CU(cudaStreamEndCapture(captured, &g));
    error_is("an empty graph: instantiate", cudaGraphInstantiate(&x, g, 0));
    error_is("an empty graph: launch", cudaGraphLaunch(x, captured));
    CU(cudaGraphExecDestroy(x));
    CU(cudaGraphDestroy(g));
    /* pageable memory in a capture: read when the graph runs, or when it was captured? */
    int *d = device_zeros<int>(1), h = 1;
    CU(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    CU(cudaMemcpyAsync(d, &h, sizeof h, cudaMemcpyHostToDevice, captured));
    CU(cudaStreamEndCapture(captured, &g));
    CU(cudaGraphInstantiate(&x, g, 0));
    h = 2;
    CU(cudaGraphLaunch(x, captured));
    CU(cudaStreamSynchronize(captured));
    say("a captured copy from pageable memory gives what was there at the", "%s",
        download(d, 1)[0] == 2 ? "launch" : "capture");
}

/* ---- what waits for work that runs ----------------------------------------------------------------------------- */

#ifdef AMP_HOSTCUDA
static void busy() { CU(start(other, 1, 32)); }
static bool has_waited() { return hcu_pending() == 0; }
#else
static __global__ void k_busy(long long cycles) {
    long long from = clock64();
    while (clock64() - from < cycles) {
    }
}
static void busy() { CU(launch(other, 1, 1, 0, k_busy, 200000000ll)); } /* about 0.1 s */
static bool has_waited() { return cudaStreamQuery(other) == cudaSuccess; }
#endif
static void asks_waiting(const char *name, int (*call)(void)) {
    char text[100];
    CU(cudaDeviceSynchronize());
    busy();
    int e = call();
    bool waited = has_waited();
    (void)cudaGetLastError();
    snprintf(text, sizeof text, "waits for another stream: %s", name);
    char room[32];
    say(text, "%s, %s", waited ? "yes" : "no", answer(e, room));
    CU(cudaDeviceSynchronize());
}
static void *spare;
static cudaEvent_t spare_event;
static cudaStream_t spare_stream;
static void waits() {
    prepare();
    asks_waiting("nothing", [] { return 0; });
    asks_waiting("cudaMalloc", [] { return (int)cudaMalloc(&spare, 1 << 20); });
    asks_waiting("cudaFree", [] { return (int)cudaFree(spare); });
    asks_waiting("cudaFree(NULL)", [] { return (int)cudaFree(nullptr); });
    asks_waiting("cudaMallocHost", [] { return (int)cudaMallocHost(&spare, 1 << 20); });
    asks_waiting("cudaFreeHost", [] { return (int)cudaFreeHost(spare); });
    asks_waiting("cudaHostAlloc, 64 bytes", [] { return (int)cudaHostAlloc(&spare, 64, 0); });
    asks_waiting("cudaFreeHost, 64 bytes", [] { return (int)cudaFreeHost(spare); });
    asks_waiting("cudaMallocAsync", [] { return (int)cudaMallocAsync(&spare, 64, captured); });
    asks_waiting("cudaFreeAsync", [] { return (int)cudaFreeAsync(spare, captured); });
    asks_waiting("cudaMemset", [] { return (int)cudaMemset(area, 0, 64); });
    asks_waiting("cudaMemcpy, down", [] { return (int)cudaMemcpy(words, area, 64, cudaMemcpyDeviceToHost); });
    asks_waiting(
        "cudaMemcpy, on the device", [] { return (int)cudaMemcpy(area, area2, 64, cudaMemcpyDeviceToDevice); });
    asks_waiting("cudaMemcpyAsync, up, its own stream",
        [] { return (int)cudaMemcpyAsync(area, words, 64, cudaMemcpyHostToDevice, other); });
    asks_waiting("cudaMemcpyAsync, down, its own stream",
        [] { return (int)cudaMemcpyAsync(words, area, 64, cudaMemcpyDeviceToHost, other); });
    asks_waiting(
        "cudaStreamCreate", [] { return (int)cudaStreamCreateWithFlags(&spare_stream, cudaStreamNonBlocking); });
    asks_waiting("cudaStreamDestroy", [] { return (int)cudaStreamDestroy(spare_stream); });
    asks_waiting("cudaEventCreate", [] { return (int)cudaEventCreate(&spare_event); });
    asks_waiting("cudaEventDestroy", [] { return (int)cudaEventDestroy(spare_event); });
    asks_waiting("cudaStreamSynchronize, legacy", [] { return (int)cudaStreamSynchronize(nullptr); });
    asks_waiting("cudaStreamSynchronize, another", [] { return (int)cudaStreamSynchronize(captured); });
    asks_waiting("cudaMemGetInfo", [] { return query(0); });
    asks_waiting("cudaFuncGetAttributes, first load", [] { return first_attributes<1001>(); });
    asks_waiting("occupancy, first load", [] { return first_occupancy<1002>(); });
    asks_waiting("launch, first load", [] { return first_launch<1003>(); });
    asks_waiting("cublasCreate and Destroy", [] { return made_and_destroyed(0); });
    asks_waiting("cublasLtCreate and Destroy", [] { return made_and_destroyed(1); });
    asks_waiting("cublasLtMatmulAlgoGetHeuristic", [] { return product(true); });
    asks_waiting("cublasLtMatmul", [] { return product(false); });
    asks_waiting("cublasSgemm", [] { return sgemm(); });
    asks_waiting("cudaGraphLaunch", [] { return (int)cudaGraphLaunch(ready_graph, captured); });
    asks_waiting("cudaGraphExecDestroy", [] { return (int)cudaGraphExecDestroy(ready_graph); });
    asks_waiting("cudaDeviceSynchronize", [] { return (int)cudaDeviceSynchronize(); });
}

/* ---- a dead device --------------------------------------------------------------------------------------------- */

static __global__ void k_fault(int kind, int *p) {
    if (kind == 0) *(volatile int *)16 = 1;              /* no such address */
    if (kind == 1) *(volatile int *)((char *)p + 1) = 1; /* misaligned */
#ifndef AMP_HOSTCUDA
    if (kind == 2) asm volatile("trap;");
    if (kind == 3) {
        extern __shared__ int few[];
        ((volatile int *)few)[1 << 20] = 1;
    }
#endif
    if (kind == 4) ((volatile int *)p)[(size_t)1 << 34] = 1; /* far behind the end */
}
static const char *const faults[] = {"address", "misaligned", "trap", "shared", "end"};
static void die(int kind) {
#ifdef AMP_HOSTCUDA
    static const int errors[] = {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorLaunchFailure,
        cudaErrorIllegalAddress, cudaErrorIllegalAddress};
    hcu_fail_exec(1, errors[kind]);
    CU(start(captured, 1, 32));
#else
    CU(launch(captured, 1, 1, 0, k_fault, kind, (int *)area));
#endif
}
static void fault(int kind) {
    char name[80];
    prepare();
    snprintf(name, sizeof name, "fault %s", faults[kind]);
    char told[100];
    snprintf(told, sizeof told, "fault %s, not waited for: the last error", faults[kind]);
    die(kind);
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); /* it has happened, and no call has met it */
    error_is(told, cudaPeekAtLastError());
    error_is(name, cudaStreamSynchronize(captured));
    snprintf(name, sizeof name, "fault %s, last error asked a third time", faults[kind]);
    (void)cudaGetLastError();
    (void)cudaGetLastError();
    error_is(name, cudaGetLastError());
}
static void dead() {
    char room[32];
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    const char *rt;
    prepare();
    die(0);
    error_is("dead: synchronise", cudaStreamSynchronize(captured));
    error_is("dead: peek at the last error", cudaPeekAtLastError());
    error_is("dead: last error", cudaGetLastError());
    error_is("dead: last error, again", cudaGetLastError());
    cublasLtMatmulDesc_t d = nullptr;
    say("dead: cublasLtMatmulDescCreate", "%d", (int)cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    say("dead: cublasLtMatmulAlgoGetHeuristic", "%s", answer(product(true), room));
    say("dead: cublasLtMatmul", "%s", answer(product(false), room));
    say("dead: cublasSgemm", "%s", answer(sgemm(), room));
    say("dead: cublasLtCreate", "%s", answer(made_and_destroyed(1), room));
    say("dead: cublasCreate", "%s", answer(made_and_destroyed(0), room));
    for (int i = 0; i < 12; i++) {
        static const char *const names[] = {"cudaMemGetInfo", "cudaDeviceGetAttribute", "cudaFuncGetAttributes",
            "occupancy", "cudaGetDeviceProperties", "cudaPointerGetAttributes", "cudaHostGetDevicePointer",
            "cudaStreamGetFlags", "cudaSetDevice", "cudaStreamIsCapturing, legacy", "cudaStreamIsCapturing",
            "cudaGetDeviceCount"};
        snprintf(words, sizeof words, "dead: %s", names[i]);
        rt = cudaGetErrorName((cudaError_t)query(i));
        say(words, "%s", rt);
    }
    error_is("dead: cudaThreadExchangeStreamCaptureMode", cudaThreadExchangeStreamCaptureMode(&mode));
    error_is("dead: cudaMalloc", (cudaError_t)memory_in_capture(0));
    error_is("dead: cudaMallocHost", (cudaError_t)memory_in_capture(1));
    error_is("dead: launch", start(captured, 1, 32));
    error_is("dead: launch with a wrong block", start(captured, 1, 2048));
    error_is("dead: cudaMemsetAsync", cudaMemsetAsync(area, 0, 64, captured));
    error_is("dead: cudaStreamBeginCapture", cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    error_is("dead: cudaEventRecord", cudaEventRecord(outside, captured));
    error_is("dead: cudaEventQuery", cudaEventQuery(outside));
    error_is("dead: cudaStreamQuery", cudaStreamQuery(other));
    error_is("dead: cudaStreamCreate and Destroy", (cudaError_t)object_in_capture(0));
    error_is("dead: cudaFree", cudaFree(area));
    error_is("dead: cudaFree(NULL)", cudaFree(nullptr));
    error_is("dead: cudaFreeHost", cudaFreeHost(pinned_area));
    error_is("dead: cudaEventDestroy", cudaEventDestroy(outside));
    error_is("dead: cudaGraphExecDestroy", cudaGraphExecDestroy(ready_graph));
    error_is("dead: cudaStreamDestroy", cudaStreamDestroy(captured));
    say("dead: cublasDestroy", "%d", (int)cublasDestroy(blas));
    say("dead: cublasLtDestroy", "%d", (int)cublasLtDestroy(lt));
    error_is("dead: cudaDeviceReset", cudaDeviceReset());
    error_is("dead, after cudaDeviceReset: cudaMalloc", (cudaError_t)memory_in_capture(0));
}
static void none() {
    int n = 77;
    void *p;
    error_is("no device: last error, the first call", cudaPeekAtLastError());
    cudaError_t e = cudaGetDeviceCount(&n);
    say("no device: cudaGetDeviceCount, cudaPeekAtLastError", "%s %d %s", cudaGetErrorName(e), n,
        cudaGetErrorName(cudaPeekAtLastError()));
    (void)cudaGetDeviceCount(&n);
    (void)cudaGetLastError();
    error_is("no device: last error, again", cudaGetLastError());
    error_is("no device: cudaSetDevice(0)", cudaSetDevice(0));
    error_is("no device: cudaGetDevice", cudaGetDevice(&n));
    error_is("no device: cudaMalloc", cudaMalloc(&p, 64));
    error_is("no device: cudaFree(NULL)", cudaFree(nullptr));
    error_is("no device: launch", start(nullptr, 1, 32));
}
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    bool all = !strcmp(what, "all");
    int n = 0;
    if (!strcmp(what, "none")) return none(), 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("beliefs: skipped, no GPU\n");
        return 77;
    }
    static const struct {
        const char *name;
        void (*ask)(void);
    } groups[] = {{"last", last_errors}, {"attributes", attributes}, {"memory", memory_errors}, {"pool", pool_errors},
        {"launch", launch_errors}, {"objects", object_errors}};
    for (const auto &g : groups)
        if (all || !strcmp(what, "errors") || !strcmp(what, g.name)) g.ask();
    if (all || !strcmp(what, "capture")) {
        prepare();
        threads_and_modes();
        capture_rules();
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            for (int m = 0; m < 3; m++)
                in_capture((int)i, m);
    }
    if (all || !strcmp(what, "waits")) waits();
    if (!strcmp(what, "dead")) dead();
    for (int k = 0; argc > 2 && k < 5; k++)
        if (!strcmp(what, "fault") && !strcmp(argv[2], faults[k])) fault(k);
    return g_failed != 0;
}
