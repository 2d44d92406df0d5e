/* blas.cu - weights by cuRAND's host interface, products and an update by cuBLAS: a linear layer trained by
 * gradient descent. */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>
#include <cmath>
#include <cstdio>
#include <vector>
int main() {
    const int in = 8, out = 4, batch = 6;
    const float one = 1, zero = 0, minus = -1, rate = -0.05f;
    cublasHandle_t blas;
    curandGenerator_t random;
    cublasCreate(&blas);
    curandCreateGenerator(&random, CURAND_RNG_PSEUDO_DEFAULT);
    curandSetPseudoRandomGeneratorSeed(random, 7);
    float *w, *x, *t, *y, *dw, *ones, *bias, norm = -1, dot = -1;
    cudaMalloc(&w, in * out * sizeof(float));
    cudaMalloc(&dw, in * out * sizeof(float));
    cudaMalloc(&x, in * batch * sizeof(float));
    cudaMalloc(&t, out * batch * sizeof(float));
    cudaMalloc(&y, out * batch * sizeof(float));
    cudaMalloc(&ones, batch * sizeof(float));
    cudaMalloc(&bias, out * sizeof(float));
    curandGenerateNormal(random, w, in * out, 0, 0.3f);
    curandGenerateUniform(random, x, in * batch);
    curandGenerateUniform(random, t, out * batch);
    std::vector<float> hw(in * out), hx(in * batch), ht(out * batch), h1(batch, 1.0f), hb(out), got(in * out);
    cudaMemcpy(hw.data(), w, hw.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hx.data(), x, hx.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(ht.data(), t, ht.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cublasSetVector(batch, sizeof(float), h1.data(), 1, ones, 1);
    std::vector<double> rw(hw.begin(), hw.end()), rb(out);
    double worst = 0, rnorm = 0, rdot = 0;
    for (int step = 0; step < 5; step++) {
        cudaMemcpy(y, t, out * batch * sizeof(float), cudaMemcpyDeviceToDevice);
        cublasSgemm(
            blas, CUBLAS_OP_N, CUBLAS_OP_N, out, batch, in, &one, w, out, x, in, &minus, y, out); /* y = w x - t */
        cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, out, in, batch, &one, y, out, x, in, &zero, dw, out);
        cublasSgemv(blas, CUBLAS_OP_N, out, batch, &one, y, out, ones, 1, &zero, bias, 1);
        cublasSaxpy(blas, in * out, &rate, dw, 1, w, 1);
        std::vector<double> e(out * batch), g(in * out);
        for (int b = 0; b < batch; b++)
            for (int o = 0; o < out; o++) {
                e[b * out + o] = -ht[b * out + o];
                for (int k = 0; k < in; k++)
                    e[b * out + o] += rw[k * out + o] * hx[b * in + k];
            }
        for (int o = 0; o < out; o++) {
            rb[o] = 0;
            for (int b = 0; b < batch; b++)
                rb[o] += e[b * out + o];
        }
        for (int k = 0; k < in; k++)
            for (int o = 0; o < out; o++)
                for (int b = 0; b < batch; b++)
                    g[k * out + o] += e[b * out + o] * hx[b * in + k];
        for (int i = 0; i < in * out; i++)
            rw[i] += rate * g[i];
    }
    cublasSger(blas, out, in, &one, bias, 1, x, 1, w, out);
    cublasSnrm2(blas, in * out, w, 1, &norm);
    cublasSdot(blas, out, bias, 1, bias, 1, &dot);
    cublasGetMatrix(out, in, sizeof(float), w, out, got.data(), out);
    for (int k = 0; k < in; k++)
        for (int o = 0; o < out; o++) {
            double v = rw[k * out + o] + rb[o] * hx[k];
            rnorm += v * v;
            worst = fmax(worst, fabs(v - got[k * out + o]));
        }
    for (double v : rb)
        rdot += v * v;
    bool ok = worst < 1e-4 && fabs(norm - sqrt(rnorm)) < 1e-4 && fabs(dot - rdot) < 1e-3;
    printf("blas: %s, worst difference %.1e\n", ok ? "ok" : "WRONG", worst);
    for (float *p : {w, dw, x, t, y, ones, bias})
        cudaFree(p);
    cublasDestroy(blas);
    curandDestroyGenerator(random);
    return !ok;
}
