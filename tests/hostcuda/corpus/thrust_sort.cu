/* thrust_sort.cu - vectors of thrust: sort, reduce, transform, and a kernel on the same memory. */
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

__global__ void twice(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
struct Square {
    __host__ __device__ int operator()(int x) const { return x * x; }
};
int main() {
    const int n = 1000;
    thrust::host_vector<int> h(n), want(n);
    for (int i = 0; i < n; i++)
        h[i] = rand() % 500;
    thrust::device_vector<int> d = h, keys(n), squares(n);
    twice<<<(n + 127) / 128, 128>>>(thrust::raw_pointer_cast(d.data()), n);
    thrust::sequence(keys.begin(), keys.end());
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    thrust::sort_by_key(thrust::cuda::par.on(stream), d.begin(), d.end(), keys.begin());
    thrust::transform(d.begin(), d.end(), squares.begin(), Square());
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    int most = thrust::reduce(thrust::cuda::par_nosync, squares.begin(), squares.end(), 0, thrust::maximum<int>());
    for (int i = 0; i < n; i++)
        want[i] = 2 * h[i];
    std::sort(want.begin(), want.end());
    thrust::host_vector<int> got = d, key = keys;
    bool ok = most == want[n - 1] * want[n - 1];
    for (int i = 0; i < n; i++)
        ok = ok && got[i] == want[i] && 2 * h[key[i]] == got[i];
    printf("thrust_sort: %s, most %d\n", ok ? "ok" : "WRONG", most);
    return ok ? 0 : 1;
}
