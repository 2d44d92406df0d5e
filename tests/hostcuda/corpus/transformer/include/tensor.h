#pragma once
#include "check.h"
#include <cuda_runtime.h>
#include <vector>
struct Tensor { // memory of the device, freed with it
    float *data = nullptr;
    size_t size = 0;
    explicit Tensor(size_t n) : size(n) { CUDA_CHECK(cudaMalloc(&data, n * sizeof(float))); }
    explicit Tensor(const std::vector<float> &h) : Tensor(h.size()) {
        CUDA_CHECK(cudaMemcpy(data, h.data(), size * sizeof(float), cudaMemcpyHostToDevice));
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor() { cudaFree(data); }
    std::vector<float> host() const {
        std::vector<float> h(size);
        CUDA_CHECK(cudaMemcpy(h.data(), data, size * sizeof(float), cudaMemcpyDeviceToHost));
        return h;
    }
};
