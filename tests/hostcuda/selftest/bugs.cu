/* bugs.cu - one small program with every bug that the host runtime claims to catch.
 *
 *   bugs NAME         runs the scenario with its bug; somebody must notice: the runtime, a sanitizer, or the comparison
 *   bugs NAME good    runs the same scenario without the bug; everybody must be silent
 *   bugs list         prints the names
 *
 * run_bugs.sh runs all of them in all variants and holds the table of who must notice what. */
#include <cublasLt.h>
#include <mma.h>
#include "../hostcuda_ctl.h"
#include "selftest.h"

/* Each kernel takes the bug as a parameter: the PTX of this file carries the bugs, too. */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static __global__ void k_scale4(const float *src, float *dst, size_t n, bool one_too_many) {
    size_t n4 = n / 4 + (one_too_many ? 1 : 0), stride = size_t(gridDim.x) * blockDim.x,
           t = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (size_t i = t; i < n4; i += stride) {
        float4 v = i * 4 + 4 <= n ? reinterpret_cast<const float4 *>(src)[i] : make_float4(0, 0, 0, 0);
        reinterpret_cast<float4 *>(dst)[i] = make_float4(v.x * 2, v.y * 2, v.z * 2, v.w * 2);
    }
    for (size_t i = n4 * 4 + t; i < n; i += stride)
        dst[i] = src[i] * 2;
}
static void tail_overrun(bool bug) {
    const size_t n = 1027;
    float *src = upload(std::vector<float>(n, 1.0f)), *dst = device_array<float>(n);
    CU(launch(nullptr, 2, AMP_BLOCK, 0, k_scale4, (const float *)src, dst, n, bug));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(src));
    CU(cudaFree(dst));
}
static __global__ void k_sum_range(const float *x, size_t from, size_t to, float *out) {
    float s = 0;
    for (size_t i = from; i < to; i++)
        s += x[i];
    *out = s;
}
static void sum_some(size_t allocated, size_t from, size_t to, float expected) {
    float *x = upload(std::vector<float>(allocated, 1.0f)), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_sum_range, (const float *)x, from, to, out));
    CHECK(download(out, 1)[0] == expected);
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static void read_past_end(bool bug) { sum_some(100, 0, bug ? 101 : 100, 100.0f); } /* inside the alignment padding */
static void read_past_padding(bool bug) { sum_some(64, 0, bug ? 65 : 64, 64.0f); } /* into the guard page */
static void read_before_start(bool bug) { sum_some(64 * 16, bug ? size_t(-1024) : 0, bug ? size_t(-1023) : 1, 1.0f); }
static void uninitialised_output(bool bug) { /* the last element is never written; zeroed memory would hide that */
    const size_t n = 1025;
    float *src = upload(std::vector<float>(n, 0.0f)), *dst = device_array<float>(n);
    CU(launch(nullptr, 2, AMP_BLOCK, 0, k_scale4, (const float *)src, dst, bug ? n - 1 : n, false));
    CHECK(download(dst, n)[n - 1] == 0.0f);
    CU(cudaFree(src));
    CU(cudaFree(dst));
}
static void leaked_buffer(bool bug) {
    float *p = device_array<float>(10);
    if (!bug) CU(cudaFree(p));
}
static void leaked_handle(bool bug) {
    cublasLtHandle_t h;
    CHECK(cublasLtCreate(&h) == CUBLAS_STATUS_SUCCESS);
    if (!bug) CHECK(cublasLtDestroy(h) == CUBLAS_STATUS_SUCCESS);
}
static void use_after_free(bool bug) {
    float *x = upload(std::vector<float>(64, 1.0f)), *out = device_array<float>(1);
    cudaStream_t s;
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaDeviceSynchronize());
    if (bug) CU(cudaFreeAsync(x, s)); /* in stream order, but before the kernel */
    CU(launch(s, 1, 1, 0, k_sum_range, (const float *)x, size_t(0), size_t(64), out));
    if (!bug) CU(cudaFreeAsync(x, s));
    CU(cudaStreamSynchronize(s));
    CU(cudaFree(out));
    CU(cudaStreamDestroy(s));
}
static void freed_argument(bool bug) {
    float *x = upload(std::vector<float>(64, 1.0f)), *out = device_array<float>(1);
    if (bug) CU(cudaFree(x));
    CU(launch(nullptr, 1, 1, 0, k_sum_range, (const float *)x, size_t(0), size_t(64), out));
    CU(cudaDeviceSynchronize());
    if (!bug) CU(cudaFree(x));
    CU(cudaFree(out));
}
static void double_free(bool bug) {
    float *p = device_array<float>(10);
    CU(cudaFree(p));
    if (bug) CU(cudaFree(p));
}
static void use_before_allocation(bool bug) { /* cudaMallocAsync on one stream, used on another without order */
    cudaStream_t a, b;
    float *out = device_array<float>(1);
    void *x = nullptr;
    CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CU(cudaMallocAsync(&x, 256, a));
    CU(cudaMemsetAsync(x, 0, 256, a));
    if (!bug) CU(cudaStreamSynchronize(a));
    CU(launch(b, 1, 1, 0, k_sum_range, (const float *)x, size_t(0), size_t(64), out));
    CU(cudaStreamSynchronize(b));
    CU(cudaFreeAsync(x, a));
    CU(cudaStreamSynchronize(a));
    CU(cudaFree(out));
    CU(cudaStreamDestroy(a));
    CU(cudaStreamDestroy(b));
}
static void host_pointer_to_kernel(bool bug) {
    std::vector<float> host(64, 1.0f);
    float *x = upload(host), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_sum_range, (const float *)(bug ? host.data() : x), size_t(0), size_t(64), out));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(x));
    CU(cudaFree(out));
}
struct Range {
    const float *x;
    size_t n;
    float *out;
};
static __global__ void k_sum_struct(Range r) {
    float s = 0;
    for (size_t i = 0; i < r.n; i++)
        s += r.x[i];
    *r.out = s;
}
static void host_pointer_in_struct(bool bug) {
    std::vector<float> host(64, 1.0f);
    float *x = upload(host), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_sum_struct, Range{bug ? host.data() : x, 64, out}));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static void host_reads_device(bool bug) {
    float *x = upload(std::vector<float>(64, 1.0f)), v;
    if (bug)
        v = x[3];
    else
        CU(cudaMemcpy(&v, x + 3, sizeof v, cudaMemcpyDeviceToHost));
    CHECK(v == 1.0f);
    CU(cudaFree(x));
}
static __global__ void k_sum_of_4(const float *x, float *out) {
    float4 v = *reinterpret_cast<const float4 *>(x);
    *out = v.x + v.y + v.z + v.w;
}
static void misaligned_vector(bool bug) {
    float *x = upload(std::vector<float>(64, 1.0f)), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_sum_of_4, (const float *)(x + (bug ? 1 : 4)), out));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static __global__ void k_sum_of_4_cached(const float *x, float *out) {
    float4 v = __ldcs(reinterpret_cast<const float4 *>(x));
    *out = v.x + v.y + v.z + v.w;
}
static void misaligned_cached_load(bool bug) {
    float *x = upload(std::vector<float>(64, 1.0f)), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_sum_of_4_cached, (const float *)(x + (bug ? 1 : 4)), out));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(x));
    CU(cudaFree(out));
}

/* ---- inside a block ---------------------------------------------------------------------------------------------- */

static __global__ void k_rotate(const int *in, int *out, bool no_barrier, bool no_second_barrier) {
    AMP_SHARED(int, s, AMP_BLOCK);
    const unsigned t = threadIdx.x, next = (t + 1) % blockDim.x;
    s[t] = in[t];
    if (!no_barrier) __syncthreads();
    int v = s[next];
    if (!no_second_barrier) __syncthreads();
    s[t] = v;
    __syncthreads();
    out[t] = s[next];
}
static void rotate(bool no_barrier, bool no_second_barrier) {
    std::vector<int> h;
    for (int i = 0; i < AMP_BLOCK; i++)
        h.push_back(i);
    int *in = upload(h), *out = device_array<int>(AMP_BLOCK);
    CU(launch(nullptr, 1, AMP_BLOCK, 0, k_rotate, (const int *)in, out, no_barrier, no_second_barrier));
    std::vector<int> r = download(out, AMP_BLOCK);
    bool ok = true;
    for (int i = 0; i < AMP_BLOCK; i++)
        ok = ok && r[size_t(i)] == (i + 2) % AMP_BLOCK;
    CHECK(ok);
    CU(cudaFree(in));
    CU(cudaFree(out));
}
static void missing_barrier(bool bug) { rotate(bug, false); }
static void missing_second_barrier(bool bug) { rotate(false, bug); } /* no schedule of whole threads shows this one */
static __global__ void k_dynamic(const int *in, int *out, bool no_barrier) {
    AMP_DYN_SHARED(int, s);
    const unsigned t = threadIdx.x;
    s[t] = in[t];
    if (!no_barrier) __syncthreads();
    out[t] = s[blockDim.x - 1 - t];
}
static void missing_barrier_dynamic(bool bug) {
    int *in = upload(std::vector<int>(64, 5)), *out = device_array<int>(64);
    CU(launch(nullptr, 1, 64, 64 * sizeof(int), k_dynamic, (const int *)in, out, bug));
    CHECK(download(out, 64)[0] == 5);
    CU(cudaFree(in));
    CU(cudaFree(out));
}
static __global__ void k_block_any(const int *x, int *out, bool diverge) {
    int bad = x[threadIdx.x];
    if (diverge && threadIdx.x < 32) { /* another barrier than the others reach */
        if (__syncthreads_or(bad) && threadIdx.x == 0) *out = 1;
        return;
    }
    if (__syncthreads_or(bad) && threadIdx.x == 0) *out = 1;
}
static void divergent_barrier(bool bug) {
    int *x = upload(std::vector<int>(64, 1)), *out = device_array<int>(1);
    CU(cudaMemset(out, 0, sizeof(int)));
    CU(launch(nullptr, 1, 64, 0, k_block_any, (const int *)x, out, bug));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static __global__ void k_deadlock(int *out, bool wrong) {
    if (threadIdx.x == 0 && wrong) __syncwarp(0x3u); /* lane 1 waits at the barrier */
    __syncthreads();
    out[threadIdx.x] = 1;
}
static void deadlock(bool bug) {
    int *out = device_array<int>(64);
    CU(launch(nullptr, 1, 64, 0, k_deadlock, out, bug));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(out));
}
static __global__ void k_warp_sum(int *out, unsigned mask) {
    int v = 1;
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(mask, v, o);
    out[threadIdx.x] = v;
}
static void wrong_warp_mask(bool bug) {
    int *out = device_array<int>(32);
    CU(launch(nullptr, 1, 32, 0, k_warp_sum, out, bug ? 0x0000ffffu : 0xffffffffu));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(out));
}
static __global__ void k_two_masks(int *out, bool differ) {
    out[threadIdx.x] = __shfl_xor_sync(differ && threadIdx.x == 0 ? 0x3u : 0xffffffffu, int(threadIdx.x), 1);
}
static void different_masks(bool bug) { /* one shuffle, two opinions on who takes part */
    int *out = device_array<int>(32);
    CU(launch(nullptr, 1, 32, 0, k_two_masks, out, bug));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(out));
}
static __global__ void k_mixed(int *out, bool mixed) {
    const unsigned all = 0xffffffffu;
    int v;
    if (mixed && threadIdx.x < 16)
        v = __any_sync(all, 1);
    else
        v = int(__ballot_sync(all, 1));
    out[threadIdx.x] = v;
}
static void mixed_warp_operations(bool bug) {
    int *out = device_array<int>(32);
    CU(launch(nullptr, 1, 32, 0, k_mixed, out, bug));
    CU(cudaDeviceSynchronize());
    CU(cudaFree(out));
}
static __global__ void k_warp_exchange(int *out, bool no_syncwarp) { /* a shuffle orders no memory */
    AMP_SHARED(int, s, 32);
    const unsigned t = threadIdx.x;
    s[t] = int(t);
    int v = __shfl_xor_sync(0xffffffffu, int(t), 1);
    if (!no_syncwarp) __syncwarp();
    out[t] = v + s[t ^ 1];
}
static void missing_syncwarp(bool bug) {
    int *out = device_array<int>(32);
    CU(launch(nullptr, 1, 32, 0, k_warp_exchange, out, bug));
    CHECK(download(out, 32)[4] == 10);
    CU(cudaFree(out));
}
static __global__ void k_wmma(
    float *out, bool no_syncwarp, bool missing_lane) { /* nor does a matrix that the warp stores */
    AMP_DYN_SHARED(float, s);
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
    nvcuda::wmma::fill_fragment(f, 3.0f);
    if (missing_lane && threadIdx.x == 31) return;
    nvcuda::wmma::store_matrix_sync(s, f, 16, nvcuda::wmma::mem_row_major);
    if (!no_syncwarp) __syncwarp();
    for (unsigned i = threadIdx.x; i < 256; i += 32)
        out[i] = s[i];
}
static void store_wmma(bool no_syncwarp, bool missing_lane) {
    float *out = device_array<float>(256);
    CU(launch(nullptr, 1, 32, 256 * sizeof(float), k_wmma, out, no_syncwarp, missing_lane));
    CHECK(download(out, 256) == std::vector<float>(256, 3.0f));
    CU(cudaFree(out));
}
static void wmma_missing_syncwarp(bool bug) { store_wmma(bug, false); }
static void wmma_missing_lane(bool bug) { store_wmma(false, bug); }
static __global__ void k_block_sum(const float *x, float *out, bool skip) {
    AMP_SHARED(float, part, 32);
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;
    float v = x[threadIdx.x];
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, o);
    if (lane == 0 && !(skip && warp == 1)) part[warp] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0;
        for (unsigned w = 0; w < warps; w++)
            s += part[w];
        *out = s;
    }
}
static void uninitialised_shared(
    bool bug) { /* the second warp's sum is 0: zeroed shared memory would hide that it is missing */
    std::vector<float> h(64, 1.0f);
    for (size_t i = 32; i < 64; i++)
        h[i] = 0;
    float *x = upload(h), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 64, 0, k_block_sum, (const float *)x, out, bug));
    CHECK(download(out, 1)[0] == 32.0f);
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static __global__ void k_shared_tail(int *out, int n) {
    AMP_SHARED(int, s, 8);
    int *p = s;
    for (int i = 0; i < n; i++)
        p[i] = i;
    *out = p[7];
}
static void shared_overrun(bool bug) {
    int *out = device_array<int>(1);
    CU(launch(nullptr, 1, 1, 0, k_shared_tail, out, bug ? 9 : 8));
    CHECK(download(out, 1)[0] == 7);
    CU(cudaFree(out));
}

/* ---- between blocks ---------------------------------------------------------------------------------------------- */

static __global__ void k_count(int *out, bool plain) {
    if (threadIdx.x) return;
    if (plain)
        *out += 1;
    else
        atomicAdd(out, 1);
}
static void block_race(bool bug) {
    int *out = device_zeros<int>(1);
    CU(launch(nullptr, 4, 32, 0, k_count, out, bug));
    CHECK(download(out, 1)[0] == 4);
    CU(cudaFree(out));
}
static __global__ void k_last_block(float *partial, unsigned *count, float *out, bool no_fence) {
    AMP_SHARED(int, last, 1);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 1.0f;
        if (!no_fence) __threadfence();
        last[0] = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last[0] && threadIdx.x == 0) {
        float s = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            s += partial[i];
        *out = s;
    }
}
static void missing_fence(bool bug) {
    float *partial = device_array<float>(8), *out = device_array<float>(1);
    unsigned *count = device_zeros<unsigned>(1);
    CU(launch(nullptr, 8, 32, 0, k_last_block, partial, count, out, bug));
    CHECK(download(out, 1)[0] == 8.0f);
    CU(cudaFree(partial));
    CU(cudaFree(out));
    CU(cudaFree(count));
}

/* Read by all threads of all blocks, more than any tool remembers, and written by one. */
static __global__ void k_read_by_all(int *x, int *out, bool writes) {
    int sum = x[0];
    for (int i = 1; i < 32; i++)
        sum += x[i];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
    if (writes && blockIdx.x == 3 && threadIdx.x == 9) x[9] = 0;
}
static __global__ void k_read_by_block(int *x, int *out, bool waits) {
    out[threadIdx.x] = x[0] + x[1];
    if (waits) __syncthreads();
    if (threadIdx.x == 9) x[1] = 5;
}
static void written_by_a_reader(bool bug) {
    int *x = device_zeros<int>(32), *out = device_zeros<int>(128);
    CU(launch(nullptr, 1, 32, 0, k_read_by_block, x, out, true));
    CU(launch(nullptr, 4, 32, 0, k_read_by_all, x, out, bug));
    CU(cudaFree(x));
    CU(cudaFree(out));
}
static void written_in_the_block(bool bug) {
    int *x = device_zeros<int>(32), *out = device_zeros<int>(32);
    CU(launch(nullptr, 1, 32, 0, k_read_by_block, x, out, !bug));
    CU(cudaFree(x));
    CU(cudaFree(out));
}
/* The last block writes what all threads have read: thread 0 takes the ticket, behind the others or not. */
static __global__ void k_last_writes(int *x, int *out, unsigned *count, bool waits) {
    out[blockIdx.x * 32 + threadIdx.x] = x[0];
    if (waits) __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    unsigned ticket = atomicInc(count, gridDim.x - 1);
    __threadfence();
    if (ticket == gridDim.x - 1) x[0] = 7;
}
static void ticket_too_early(bool bug) {
    int *x = device_zeros<int>(1), *out = device_zeros<int>(128);
    unsigned *count = device_zeros<unsigned>(1);
    CU(launch(nullptr, 4, 32, 0, k_last_writes, x, out, count, !bug));
    CHECK(download(x, 1)[0] == 7);
    CU(cudaFree(x));
    CU(cudaFree(out));
    CU(cudaFree(count));
}

/* ---- streams and graphs ------------------------------------------------------------------------------------------ */

static __global__ void k_set(int *p, int v) { p[threadIdx.x] = v; }
static __global__ void k_copy(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }
struct Streams { /* two non-blocking streams, a device buffer, pinned memory */
    cudaStream_t a, b;
    cudaEvent_t e;
    int *p, *q, *pinned;
    Streams() {
        CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
        CU(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        p = device_array<int>(32);
        q = device_array<int>(32);
        CU(cudaMallocHost((void **)&pinned, 128));
    }
    ~Streams() {
        CU(cudaStreamSynchronize(a));
        CU(cudaStreamSynchronize(b));
        CU(cudaStreamDestroy(a));
        CU(cudaStreamDestroy(b));
        CU(cudaEventDestroy(e));
        CU(cudaFree(p));
        CU(cudaFree(q));
        CU(cudaFreeHost(pinned));
    }
};
static void missing_host_sync(bool bug) {
    Streams s;
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 3));
    CU(cudaMemcpyAsync(s.pinned, s.p, 128, cudaMemcpyDeviceToHost, s.a));
    if (!bug) CU(cudaStreamSynchronize(s.a));
    CHECK(s.pinned[5] == 3);
}
static void missing_event_wait(bool bug) {
    Streams s;
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 3));
    CU(cudaEventRecord(s.e, s.a));
    if (!bug) CU(cudaStreamWaitEvent(s.b, s.e, 0));
    CU(launch(s.b, 1, 32, 0, k_copy, (const int *)s.p, s.q));
    CU(cudaMemcpyAsync(s.pinned, s.q, 128, cudaMemcpyDeviceToHost, s.b));
    CU(cudaStreamSynchronize(s.b));
    CHECK(s.pinned[5] == 3);
}
static void overwritten_too_early(bool bug) { /* the consumer of p has not run when the next producer starts */
    Streams s;
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 3));
    CU(launch(s.a, 1, 32, 0, k_copy, (const int *)s.p, s.q));
    CU(cudaEventRecord(s.e, s.a));
    if (!bug) CU(cudaStreamWaitEvent(s.b, s.e, 0));
    CU(launch(s.b, 1, 32, 0, k_set, s.p, 4));
    CU(cudaStreamSynchronize(s.b));
    CU(cudaStreamSynchronize(s.a));
    CHECK(download(s.q, 32)[0] == 3);
}
static void pinned_source_changed(bool bug) {
    Streams s;
    for (int i = 0; i < 32; i++)
        s.pinned[i] = 1;
    CU(cudaMemcpyAsync(s.p, s.pinned, 128, cudaMemcpyHostToDevice, s.a));
    if (!bug) CU(cudaStreamSynchronize(s.a));
    s.pinned[7] = 2;
    CU(cudaStreamSynchronize(s.a));
}
static void pinned_in_and_out(bool bug) { /* the device takes its input from the buffer of its output */
    Streams s;
    for (int i = 0; i < 32; i++)
        s.pinned[i] = 1;
    CU(cudaMemcpyAsync(s.p, s.pinned, 128, cudaMemcpyHostToDevice, s.a));
    if (bug) s.pinned[7] = 2;
    CU(launch(s.a, 1, 32, 0, k_copy, (const int *)s.pinned, s.p));
    CU(cudaMemcpyAsync(s.pinned, s.p, 128, cudaMemcpyDeviceToHost, s.a));
    CU(cudaStreamSynchronize(s.a));
    CHECK(s.pinned[5] == 1);
}
static void sync_in_capture(bool bug) {
    Streams s;
    cudaGraph_t g = nullptr;
    CU(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 3));
    if (bug) (void)cudaStreamSynchronize(s.a);
    CHECK(cudaStreamEndCapture(s.a, &g) == cudaSuccess && g != nullptr);
    if (g) CU(cudaGraphDestroy(g));
    (void)cudaGetLastError();
}
static void allocation_in_capture(bool bug) {
    Streams s;
    cudaGraph_t g = nullptr;
    void *m = nullptr;
    CU(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 3));
    if (bug) (void)cudaMalloc(&m, 16);
    CHECK(cudaStreamEndCapture(s.a, &g) == cudaSuccess && g != nullptr);
    if (g) CU(cudaGraphDestroy(g));
    (void)cudaGetLastError();
}
static void capture_not_ended(bool bug) {
    cudaStream_t s;
    cudaGraph_t g = nullptr;
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    if (!bug) CU(cudaStreamEndCapture(s, &g));
    if (g) CU(cudaGraphDestroy(g));
    CU(cudaStreamDestroy(s));
}
static __global__ void k_set_from(int *p, const int *v, int frozen, bool use_frozen) {
    p[threadIdx.x] = use_frozen ? frozen : *v;
}
static void stale_captured_scalar(bool bug) { /* passed by value at capture: a replay does not see the new one */
    Streams s;
    cudaGraph_t g = nullptr;
    cudaGraphExec_t x = nullptr;
    int v = 1;
    CU(cudaMemcpy(s.q, &v, sizeof v, cudaMemcpyHostToDevice));
    CU(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    CU(launch(s.a, 1, 32, 0, k_set_from, s.p, (const int *)s.q, v, bug));
    CU(cudaStreamEndCapture(s.a, &g));
    CU(cudaGraphInstantiate(&x, g, 0));
    v = 2;
    CU(cudaMemcpy(s.q, &v, sizeof v, cudaMemcpyHostToDevice));
    CU(cudaGraphLaunch(x, s.a));
    CU(cudaStreamSynchronize(s.a));
    CHECK(download(s.p, 32)[0] == 2);
    CU(cudaGraphDestroy(g));
    CU(cudaGraphExecDestroy(x));
}
static void graph_branch_race(bool bug) { /* two branches of a graph touch one buffer */
    Streams s;
    cudaEvent_t join;
    cudaGraph_t g = nullptr;
    cudaGraphExec_t x = nullptr;
    CU(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CU(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal));
    CU(cudaEventRecord(s.e, s.a));
    CU(cudaStreamWaitEvent(s.b, s.e, 0));
    CU(launch(s.a, 1, 32, 0, k_set, s.p, 1));
    CU(launch(s.b, 1, 32, 0, k_set, bug ? s.p : s.q, 1));
    CU(cudaEventRecord(join, s.b));
    CU(cudaStreamWaitEvent(s.a, join, 0));
    CU(cudaStreamEndCapture(s.a, &g));
    CU(cudaGraphInstantiate(&x, g, 0));
    CU(cudaGraphLaunch(x, s.a));
    CU(cudaStreamSynchronize(s.a));
    CU(cudaGraphDestroy(g));
    CU(cudaGraphExecDestroy(x));
    CU(cudaEventDestroy(join));
}
static void zero_grid(bool bug) {
    int *p = device_array<int>(32);
    CHECK(launch(nullptr, bug ? 0 : 1, 32, 0, k_set, p, 1) == cudaSuccess);
    (void)cudaGetLastError();
    CU(cudaDeviceSynchronize());
    CU(cudaFree(p));
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct Target {
    int *p;
    int v;
};
static __global__ void k_set_struct(Target t) { t.p[threadIdx.x] = t.v; }
static void other_device_argument(bool bug) {
    int *p = device_array<int>(32);
    if (bug) CU(cudaSetDevice(1));
    CU(launch(nullptr, 1, 32, 0, k_set, p, 1));
    CU(cudaDeviceSynchronize());
    CU(cudaSetDevice(0));
    CU(cudaFree(p));
}
static void other_device_memory(bool bug) { /* hidden in a struct: seen when it is touched */
    int *p = device_array<int>(32);
    if (bug) CU(cudaSetDevice(1));
    CU(launch(nullptr, 1, 32, 0, k_set_struct, Target{p, 1}));
    CU(cudaDeviceSynchronize());
    CU(cudaSetDevice(0));
    CU(cudaFree(p));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

struct Product { /* 16 x 16 in f32; what differs from bug to bug is set before run() */
    cublasLtHandle_t lt;
    cublasLtMatmulDescOpaque_t d;
    cublasLtMatrixLayoutOpaque_t l;
    float *a, *b, *c;
    int64_t ld = 16;
    uint32_t promised = 256;
    size_t shift = 0; /* of A, in elements */
    Product() {
        CHECK(cublasLtCreate(&lt) == CUBLAS_STATUS_SUCCESS);
        a = upload(std::vector<float>(16 * 16 + 4, 1.0f));
        b = upload(std::vector<float>(16 * 16, 1.0f));
        c = device_array<float>(16 * 16);
        CU(cudaDeviceSynchronize());
    }
    ~Product() {
        CU(cudaDeviceSynchronize());
        CU(cudaFree(a));
        CU(cudaFree(b));
        CU(cudaFree(c));
        CHECK(cublasLtDestroy(lt) == CUBLAS_STATUS_SUCCESS);
    }
    void run(cudaStream_t s, void *workspace = nullptr, size_t workspace_bytes = 0, float *out = nullptr) {
        cublasLtMatmulPreferenceOpaque_t p;
        cublasLtMatmulHeuristicResult_t r;
        int found = 0;
        const float one = 1, zero = 0;
        CHECK(cublasLtMatmulDescInit(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
        CHECK(cublasLtMatrixLayoutInit(&l, CUDA_R_32F, 16, 16, ld) == CUBLAS_STATUS_SUCCESS);
        CHECK(cublasLtMatmulPreferenceInit(&p) == CUBLAS_STATUS_SUCCESS);
        uint64_t limit = workspace_bytes;
        CHECK(cublasLtMatmulPreferenceSetAttribute(
                  &p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit) == CUBLAS_STATUS_SUCCESS);
        CHECK(cublasLtMatmulPreferenceSetAttribute(
                  &p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &promised, sizeof promised) == CUBLAS_STATUS_SUCCESS);
        CHECK(cublasLtMatmulAlgoGetHeuristic(lt, &d, &l, &l, &l, &l, &p, 1, &r, &found) == CUBLAS_STATUS_SUCCESS &&
            found == 1);
        if (!out) out = c;
        CHECK(cublasLtMatmul(lt, &d, &one, a + shift, &l, b, &l, &zero, out, &l, out, &l, &r.algo, workspace,
                  workspace_bytes, s) == CUBLAS_STATUS_SUCCESS);
    }
};
static void product_broken_promise(bool bug) { /* the heuristic's default is 256 bytes */
    Product p;
    p.shift = 4;
    if (!bug) p.promised = 16;
    p.run(nullptr);
}
static void product_overrun(bool bug) {
    Product p;
    if (bug) p.ld = 17;
    p.run(nullptr);
}
static void product_missing_order(bool bug) {
    Product p;
    Streams s;
    p.run(s.a);
    CU(cudaEventRecord(s.e, s.a));
    if (!bug) CU(cudaStreamWaitEvent(s.b, s.e, 0));
    CU(launch(s.b, 1, 32, 0, k_copy, (const int *)p.c, s.q));
    CU(cudaStreamSynchronize(s.b));
    float v;
    int i = download(s.q, 1)[0];
    memcpy(&v, &i, sizeof v);
    CHECK(v == 16.0f);
}
static void product_shared_workspace(bool bug) { /* one workspace, two streams */
    Product p;
    Streams s;
    const size_t bytes = 4096;
    char *w0 = device_array<char>(bytes), *w1 = device_array<char>(bytes);
    float *other = device_array<float>(16 * 16);
    CU(cudaDeviceSynchronize());
    p.run(s.a, w0, bytes);
    p.run(s.b, bug ? w0 : w1, bytes, other);
    CU(cudaStreamSynchronize(s.a));
    CU(cudaStreamSynchronize(s.b));
    CU(cudaFree(w0));
    CU(cudaFree(w1));
    CU(cudaFree(other));
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static cudaError_t verb(bool ignores_fill, bool ignores_wait, bool leaks, int *result) {
    int *p = nullptr, *pinned = nullptr;
    cudaError_t e = cudaMalloc((void **)&p, 128);
    if (!e) e = cudaMallocHost((void **)&pinned, 128);
    if (e && leaks) return e;
    if (!e) {
        cudaError_t f = cudaMemsetAsync(p, 0, 128, nullptr);
        if (!ignores_fill) e = f;
    }
    if (!e) e = launch(nullptr, 1, 32, 0, k_set, p, 3);
    if (!e) e = cudaMemcpyAsync(pinned, p, 128, cudaMemcpyDeviceToHost, nullptr);
    if (!e) {
        cudaError_t f = cudaStreamSynchronize(nullptr);
        if (!ignores_wait) e = f;
        if (!e) *result = pinned[3];
    }
    cudaFree(p);
    cudaFreeHost(pinned);
    return e;
}
static void fault_loop(bool ignores_fill, bool leaks) {
    for (long k = 1;; k++) {
        int result = 0;
        hcu_reset();
        hcu_fail_call(nullptr, k, 0, 0);
        cudaError_t e = verb(ignores_fill, false, leaks, &result);
        bool hit = hcu_injected() != 0;
        CHECK(hit == (e != cudaSuccess));
        if (!hit) break;
    }
    hcu_reset();
}
static void swallowed_error(bool bug) { fault_loop(bug, false); }
static void leak_on_error_path(bool bug) { fault_loop(false, bug); }
static void claimed_result(bool bug) { /* the kernel faults, the verb does not look at what the wait says */
    int result = 0;
    hcu_fail_exec(2, 0);
    cudaError_t e = verb(false, bug, false, &result);
    CHECK(e != cudaSuccess || result == 3);
    hcu_reset();
}

/* ---- what only nvcc's own code shows ----------------------------------------------------------------------------- */

static __global__ void k_axpy(const float *a, const float *b, const float *c, float *out, bool written_loosely) {
    *out = written_loosely ? *a * *b + *c : __fadd_rn(__fmul_rn(*a, *b), *c);
}
static void contraction(bool bug) { /* nvcc fuses a*b+c unless told otherwise */
    const float a = 1.0f + 1.0f / 4096, c = -1.0f;
    float *x = upload(std::vector<float>{a, a, c}), *out = device_array<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_axpy, (const float *)x, (const float *)(x + 1), (const float *)(x + 2), out, bug));
    volatile float product = a * a;
    CHECK(download(out, 1)[0] == product + c);
    CU(cudaFree(x));
    CU(cudaFree(out));
}

/* clang-format off */
#define BUGS(X) \
    X(tail_overrun) X(read_past_end) X(read_past_padding) X(read_before_start) X(uninitialised_output) \
    X(leaked_buffer) X(leaked_handle) X(use_after_free) X(freed_argument) X(double_free) X(use_before_allocation) \
    X(host_pointer_to_kernel) X(host_pointer_in_struct) X(host_reads_device) X(misaligned_vector) \
    X(misaligned_cached_load) X(missing_barrier) X(missing_second_barrier) X(missing_barrier_dynamic) \
    X(divergent_barrier) X(deadlock) X(wrong_warp_mask) X(different_masks) X(mixed_warp_operations) \
    X(missing_syncwarp) X(wmma_missing_syncwarp) X(wmma_missing_lane) X(uninitialised_shared) X(shared_overrun) \
    X(block_race) X(missing_fence) X(written_by_a_reader) X(written_in_the_block) X(ticket_too_early) \
    X(missing_host_sync) X(missing_event_wait) X(overwritten_too_early) \
    X(pinned_source_changed) X(pinned_in_and_out) X(sync_in_capture) X(allocation_in_capture) X(capture_not_ended) \
    X(stale_captured_scalar) X(graph_branch_race) X(zero_grid) X(other_device_argument) X(other_device_memory) \
    X(product_broken_promise) X(product_overrun) X(product_missing_order) X(product_shared_workspace) \
    X(swallowed_error) X(leak_on_error_path) X(claimed_result) X(contraction)
/* clang-format on */

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    static const struct {
        const char *name;
        void (*run)(bool);
    } bugs[] = {
#define X(name) {#name, name},
        BUGS(X)
#undef X
    };
    const char *name = argc > 1 ? argv[1] : "list";
    for (auto &b : bugs) {
        if (!strcmp(name, "list")) printf("%s\n", b.name);
        if (strcmp(name, b.name)) continue;
        b.run(!(argc > 2 && !strcmp(argv[2], "good")));
        CHECK(hcu_leaks(1) == 0);
        return report(name);
    }
    return strcmp(name, "list") ? 2 : 0;
}
