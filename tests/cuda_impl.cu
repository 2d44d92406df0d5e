#define AMP_CUDA_IMPLEMENTATION
#include "../amp_cuda.cuh"
