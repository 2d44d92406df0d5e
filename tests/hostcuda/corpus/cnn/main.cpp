// A convolution with relu and a pooling layer, against loops on the CPU; a CMake project with a library of CUDA files.
#include "layers.h"
#include <algorithm>
#include <cmath>
#include <cuda_runtime.h>
#include <iostream>
#include <vector>
int main() {
    const int rows = 22, cols = 18, count = 4, r1 = rows - K + 1, c1 = cols - K + 1;
    std::vector<float> image(rows * cols), filters(count * K * K), got(count * (r1 / 2) * (c1 / 2));
    for (size_t i = 0; i < image.size(); i++)
        image[i] = (i * 31 % 17) / 8.0f - 1;
    for (size_t i = 0; i < filters.size(); i++)
        filters[i] = (i * 7 % 11) / 5.0f - 1;
    float *di, *df, *d1, *d2;
    cudaMalloc(&di, image.size() * sizeof(float));
    cudaMalloc(&df, filters.size() * sizeof(float));
    cudaMalloc(&d1, count * r1 * c1 * sizeof(float));
    cudaMalloc(&d2, got.size() * sizeof(float));
    cudaMemcpy(di, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(df, filters.data(), filters.size() * sizeof(float), cudaMemcpyHostToDevice);
    convolution(di, df, d1, rows, cols, count);
    max_pool(d1, d2, r1, c1, count);
    cudaMemcpy(got.data(), d2, got.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int f = 0; f < count; f++)
        for (int r = 0; r < r1 / 2; r++)
            for (int c = 0; c < c1 / 2; c++) {
                double most = 0;
                for (int q = 0; q < 4; q++) {
                    double sum = 0;
                    for (int i = 0; i < K; i++)
                        for (int j = 0; j < K; j++)
                            sum += image[(2 * r + q / 2 + i) * cols + 2 * c + q % 2 + j] * filters[(f * K + i) * K + j];
                    most = std::max(most, sum);
                }
                worst = std::max(worst, std::fabs(most - got[(f * (r1 / 2) + r) * (c1 / 2) + c]));
            }
    std::cout << "cnn: " << (worst < 1e-5 ? "ok" : "WRONG") << "\n";
    cudaFree(di);
    cudaFree(df);
    cudaFree(d1);
    cudaFree(d2);
    return worst < 1e-5 ? 0 : 1;
}
