/* thrust_stats.cu - mean, variance and a histogram by thrust: transform_reduce with a functor, zip and counting
 * iterators, reduce_by_key. */
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <cmath>
#include <iostream>
struct Stats { double n, mean, m2; };
struct Lift {
    __host__ __device__ Stats operator()(float x) const { return {1, x, 0}; }
};
struct Merge { /* Chan's formula */
    __host__ __device__ Stats operator()(const Stats &a, const Stats &b) const {
        double n = a.n + b.n, d = b.mean - a.mean;
        if (n == 0) return {0, 0, 0};
        return {n, a.mean + d * b.n / n, a.m2 + b.m2 + d * d * a.n * b.n / n};
    }
};
struct Saxpy {
    float a;
    __host__ __device__ float operator()(const thrust::tuple<float, float> &t) const {
        return a * thrust::get<0>(t) + thrust::get<1>(t);
    }
};
__global__ void square(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}
int main() {
    const int n = 2000;
    thrust::host_vector<float> h(n);
    for (int i = 0; i < n; i++)
        h[i] = (i * 7919 % 1000) / 100.0f;
    thrust::device_vector<float> x = h, y(n);
    Stats s = thrust::transform_reduce(x.begin(), x.end(), Lift(), Stats{0, 0, 0}, Merge());
    thrust::sequence(y.begin(), y.end());
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin()));
    thrust::transform(zip, zip + n, y.begin(), Saxpy{2.0f});
    square<<<(n + 63) / 64, 64>>>(thrust::raw_pointer_cast(y.data()), n);
    float dot = thrust::inner_product(x.begin(), x.end(), x.begin(), 0.0f);
    thrust::device_vector<int> bin(n), key(10), count(10);
    thrust::transform(x.begin(), x.end(), bin.begin(), [] __host__ __device__(float v) { return (int)v; });
    thrust::sort(bin.begin(), bin.end());
    auto end =
        thrust::reduce_by_key(bin.begin(), bin.end(), thrust::constant_iterator<int>(1), key.begin(), count.begin());
    int most = *thrust::max_element(count.begin(), end.second);
    double mean = 0, var = 0, d = 0;
    int c[10] = {0}, m = 0;
    for (int i = 0; i < n; i++) {
        mean += h[i] / (double)n;
        d += (double)h[i] * h[i];
        c[(int)h[i]]++;
    }
    for (int i = 0; i < n; i++)
        var += (h[i] - mean) * (h[i] - mean);
    for (int v : c)
        m = v > m ? v : m;
    float want = (2 * h[5] + 5) * (2 * h[5] + 5), got = y[5];
    bool ok = std::fabs(s.mean - mean) < 1e-6 && std::fabs(s.m2 - var) < 1e-3 && most == m &&
        end.first - key.begin() == 10 && std::fabs(want - got) < 1e-3 && std::fabs(dot - d) < 1;
    std::cout << "thrust_stats: " << (ok ? "ok" : "WRONG") << ", mean " << s.mean << std::endl;
    return !ok;
}
