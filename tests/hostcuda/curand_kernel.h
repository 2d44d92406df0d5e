/* curand_kernel.h - NVIDIA's own header, so that the numbers are those of a GPU. It declares threadIdx and blockDim as
 * constants for the one generator that needs them: that one, curandStateMtgp32, is refused by the linker, by name. */
#ifndef HOSTCUDA_CURAND_KERNEL_H
#define HOSTCUDA_CURAND_KERNEL_H
#define blockDim  hcu_no_curandStateMtgp32_blockDim
#define threadIdx hcu_no_curandStateMtgp32_threadIdx
#include_next <curand_mtgp32_kernel.h>
#undef blockDim
#undef threadIdx
#include_next <curand_kernel.h>
#endif
