/* scan.cu - an exclusive scan after Blelloch: blocks in dynamic shared memory, then the sums of the blocks,
 * then the rest. */
#include <stdio.h>
#include <stdlib.h>
#define THREADS 64
#define ITEMS   (2 * THREADS)

__global__ void scan_blocks(int *data, int *sums, int n) {
    extern __shared__ int temp[];
    int t = threadIdx.x, base = blockIdx.x * ITEMS, offset = 1;
    temp[2 * t] = base + 2 * t < n ? data[base + 2 * t] : 0;
    temp[2 * t + 1] = base + 2 * t + 1 < n ? data[base + 2 * t + 1] : 0;
    for (int d = ITEMS >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) {
        if (sums) sums[blockIdx.x] = temp[ITEMS - 1];
        temp[ITEMS - 1] = 0;
    }
    for (int d = 1; d < ITEMS; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, v = temp[a];
            temp[a] = temp[b];
            temp[b] += v;
        }
    }
    __syncthreads();
    if (base + 2 * t < n) data[base + 2 * t] = temp[2 * t];
    if (base + 2 * t + 1 < n) data[base + 2 * t + 1] = temp[2 * t + 1];
}
__global__ void add_sums(int *data, const int *sums, int n) {
    int i = blockIdx.x * ITEMS + threadIdx.x;
    if (i < n) data[i] += sums[blockIdx.x];
    if (i + THREADS < n) data[i + THREADS] += sums[blockIdx.x];
}
int main() {
    int n = 1000, blocks = (n + ITEMS - 1) / ITEMS, wrong = 0, sum = 0;
    int *h = (int *)malloc(n * sizeof(int)), *got = (int *)malloc(n * sizeof(int)), *d, *s;
    for (int i = 0; i < n; i++)
        h[i] = rand() % 10;
    cudaMalloc((void **)&d, n * sizeof(int));
    cudaMalloc((void **)&s, blocks * sizeof(int));
    cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice);
    scan_blocks<<<blocks, THREADS, ITEMS * sizeof(int)>>>(d, s, n);
    scan_blocks<<<1, THREADS, ITEMS * sizeof(int)>>>(s, NULL, blocks);
    add_sums<<<blocks, THREADS>>>(d, s, n);
    cudaMemcpy(got, d, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; sum += h[i++])
        wrong += got[i] != sum;
    printf("scan: %s\n", wrong ? "WRONG" : "ok");
    cudaFree(d);
    cudaFree(s);
    free(h);
    free(got);
    return wrong != 0;
}
