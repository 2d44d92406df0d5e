#define AMP_CUDA_STUB_IMPLEMENTATION
#include "../amp_cuda.cuh"
