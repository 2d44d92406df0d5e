/* monte_carlo.cu - pi by curand_kernel.h; the reference makes the same numbers on the host, from Philox as
 * published. */
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cstdio>
#include <cstdint>
#define THREADS 64
#define BLOCKS  2
#define DRAWS   64

__global__ void setup(curandState *state, unsigned long long seed) {
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    curand_init(seed, id, 0, &state[id]);
}
__global__ void throws(curandState *state, unsigned int *hits) {
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    curandState mine = state[id];
    unsigned int inside = 0;
    for (int i = 0; i < DRAWS; i++) {
        float x = curand_uniform(&mine), y = curand_uniform(&mine);
        inside += x * x + y * y <= 1.0f;
    }
    state[id] = mine;
    atomicAdd(hits, inside);
}
__global__ void philox(unsigned int *out, unsigned long long seed) {
    curandStatePhilox4_32_10_t s;
    curand_init(seed, 0, 0, &s);
    for (int i = 0; i < 4; i++)
        out[i] = curand(&s);
}
static void reference(uint32_t key0, uint32_t out[4]) { /* Salmon et al. 2011, counter 0 */
    uint32_t c[4] = {0, 0, 0, 0}, k[2] = {key0, 0};
    for (int r = 0; r < 10; r++) {
        uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
        uint32_t n[4] = {
            uint32_t(p1 >> 32) ^ c[1] ^ k[0], uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k[1], uint32_t(p0)};
        for (int i = 0; i < 4; i++)
            c[i] = n[i];
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}
int main() {
    curandState *state;
    unsigned int *d, h[5] = {0}, want[4];
    cudaMalloc(&state, BLOCKS * THREADS * sizeof(curandState));
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    setup<<<BLOCKS, THREADS>>>(state, 1234ULL);
    throws<<<BLOCKS, THREADS>>>(state, d);
    philox<<<1, 1>>>(d + 1, 42);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    reference(42, want);
    double pi = 4.0 * h[0] / (BLOCKS * THREADS * DRAWS);
    bool ok = pi > 3.05 && pi < 3.23;
    for (int i = 0; i < 4; i++)
        ok = ok && h[1 + i] == want[i];
    printf("monte_carlo: %s, pi %.4f\n", ok ? "ok" : "WRONG", pi);
    cudaFree(state);
    cudaFree(d);
    return !ok;
}
