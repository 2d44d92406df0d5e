// extern_c.cpp - amp.h and amp_cuda.cuh inside extern "C", as C++ programs include what they take for C.
extern "C" {
#define AMP_IMPLEMENTATION
#include "../../amp.h"
#define AMP_CUDA_STUB_IMPLEMENTATION
#include "../../amp_cuda.cuh"
}

int main() {
    amp_ctx *ctx = nullptr;
    amp_cpu_desc d = AMP_ZERO;
    amp_cuda_desc gpu = AMP_ZERO;
    d.threads = 1;
    if (amp_cuda_create(&ctx, gpu) != AMP_ERR_NO_CUDA) return 1;
    if (amp_cpu_create(&ctx, d) != AMP_OK) return 2;
    amp_ctx_destroy(ctx);
    return 0;
}
