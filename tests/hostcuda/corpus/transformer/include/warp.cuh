#pragma once
template <typename F> __device__ __forceinline__ float warp_reduce(float v, F combine) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1)
        v = combine(v, __shfl_xor_sync(0xffffffffu, v, mask, 32));
    return v;
}
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
