/* check.cu - the checker of lab 13. It does the loop on the CPU and compares every element, the guard elements behind
 * the array and the count; what differs is compared with known mistakes. */
#include "lab.h"

enum { CHECK_MOST = 1000, CHECK_GUARD = 8, CHECK_BEFORE = 5 };
static const float check_untouched = -3.0f; /* what to[] has before the call */
static const float check_factor = 1024.0f;

static void check_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess) lab_wrong("%s fails: %s", what, cudaGetErrorString(error));
}
/* Every fifth is lost, every seventh is zero, some are large, some lie halfway between two halves. */
static float check_gradient(size_t i) {
    if (i % 7 == 6) return 0;
    if (i % 5 == 4) return 0x1p-40f * (float)(i + 1);
    if (i % 11 == 10) return i % 2 ? 1e9f : -1e9f;
    return (i % 2 ? -1.0f : 1.0f) * (1.0f + (float)i * 0x1.8p-12f) * 0x1p-12f;
}
static bool check_is_lost(size_t i, float factor) {
    float x = check_gradient(i);
    return x != 0 && fabsf(__half2float(__float2half(x * factor))) < ldexpf(1, -LAB13_BELOW); /* below 2^-24 is 0 */
}
static unsigned check_lost(size_t n, float factor) {
    unsigned lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += check_is_lost(i, factor);
    return lost;
}
static unsigned check_zeros(size_t n) { /* counted by somebody who forgets that some were zero before */
    unsigned zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += check_gradient(i) == 0 || check_is_lost(i, check_factor);
    return zeros;
}

static const char *check_why(size_t i, size_t n, float got) {
    float x = check_gradient(i);
    if (got == check_untouched && i >= 256)
        return "nobody wrote it: a thread goes on by gridDim.x * blockDim.x, up to n";
    if (got == check_untouched && i + 1 == n) return "nobody wrote it: the last element is n - 1, and it counts";
    if (got == check_untouched) return "nobody wrote it: thread i begins at blockIdx.x * blockDim.x + threadIdx.x";
    if (got == __half2float(__float2half(x))) return "that is the gradient without the factor";
    if (got == __half2float(__float2half_rz(x * check_factor))) return "that is cut off, not rounded to nearest";
    return "compare the body with the loop above it";
}
static const char *check_why_count(size_t n, unsigned got) {
    if (got == CHECK_BEFORE) return "nobody counted";
    if (got == check_lost(n, check_factor)) return "lost is increased: what was in it stays";
    if (got == CHECK_BEFORE + check_zeros(n)) return "a gradient that was zero before is not lost";
    if (got < CHECK_BEFORE + check_lost(n, check_factor)) return "additions of several threads got in each other's way";
    return "each lost gradient counts once";
}

static void check_call(size_t n) {
    static float from[CHECK_MOST];
    static __half to[CHECK_MOST + CHECK_GUARD];
    float *d_from;
    __half *d_to;
    unsigned *d_lost, lost = CHECK_BEFORE;
    const unsigned want = CHECK_BEFORE + check_lost(n, check_factor);
    for (size_t i = 0; i < n; i++)
        from[i] = check_gradient(i);
    for (size_t i = 0; i < n + CHECK_GUARD; i++)
        to[i] = __float2half(check_untouched);
    check_cuda(cudaMalloc((void **)&d_from, (n + 1) * sizeof *d_from), "cudaMalloc");
    check_cuda(cudaMalloc((void **)&d_to, (n + CHECK_GUARD) * sizeof *d_to), "cudaMalloc");
    check_cuda(cudaMalloc((void **)&d_lost, sizeof lost), "cudaMalloc");
    check_cuda(cudaMemcpy(d_from, from, n * sizeof *from, cudaMemcpyHostToDevice), "cudaMemcpy");
    check_cuda(cudaMemcpy(d_to, to, (n + CHECK_GUARD) * sizeof *to, cudaMemcpyHostToDevice), "cudaMemcpy");
    check_cuda(cudaMemcpy(d_lost, &lost, sizeof lost, cudaMemcpyHostToDevice), "cudaMemcpy");
    lab_doing("lab_scale with n %zu", n);
    lab_scale(d_to, d_from, n, check_factor, d_lost);
    check_cuda(cudaGetLastError(), "the launch");
    check_cuda(cudaDeviceSynchronize(), "the kernel");
    check_cuda(cudaMemcpy(to, d_to, (n + CHECK_GUARD) * sizeof *to, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check_cuda(cudaMemcpy(&lost, d_lost, sizeof lost, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (size_t i = 0; i < n; i++) {
        const float right = __half2float(__float2half(check_gradient(i) * check_factor)), got = __half2float(to[i]);
        if (got != right)
            lab_wrong("with n %zu, to[%zu] must be %.7g and is %.7g: %s", n, i, (double)right, (double)got,
                check_why(i, n, got));
    }
    for (size_t i = n; i < n + CHECK_GUARD; i++)
        if (__half2float(to[i]) != check_untouched)
            lab_wrong("with n %zu, to[%zu] was written: the last element is n - 1", n, i);
    if (lost != want)
        lab_wrong(
            "with n %zu, lost was %d, must be %u and is %u: %s", n, CHECK_BEFORE, want, lost, check_why_count(n, lost));
    cudaFree(d_from);
    cudaFree(d_to);
    cudaFree(d_lost);
}

int main(void) {
    static const size_t sizes[] = {1, 63, 256, 257, CHECK_MOST, 0};
    lab_begin();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_call(sizes[i]);
    lab_passed("%u of 1000 gradients are lost without an error of yours", check_lost(CHECK_MOST, check_factor));
    return 0;
}
