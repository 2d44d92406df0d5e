/* block_reduce.cu - a sum by CUB: refused by name. */
#include <cub/cub.cuh>
#include <cstdio>
__global__ void sum(const int *x, int *out) {
    typedef cub::BlockReduce<int, 64> Reduce;
    __shared__ typename Reduce::TempStorage temp;
    int s = Reduce(temp).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) *out = s;
}
int main() {
    int *d;
    cudaMalloc(&d, 65 * sizeof(int));
    cudaMemset(d, 0, 65 * sizeof(int));
    sum<<<1, 64>>>(d, d + 64);
    cudaDeviceSynchronize();
    printf("block_reduce: ok\n");
    cudaFree(d);
}
