/* forms.cuh - a header of forms.cu that has functions of the device and no kernel, as NVIDIA's helper_math.h. */
#ifndef FORMS_CUH
#define FORMS_CUH
#ifndef __CUDACC__ /* what nvcc has, and a host compiler has not */
inline float rsqrtf(float x) { return 1.0f / x; }
inline int max(int a, int) { return a; }
#else
__device__ __forceinline__ int add_one(int x) { return x + 1; }
#endif
inline __host__ __device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
#endif
