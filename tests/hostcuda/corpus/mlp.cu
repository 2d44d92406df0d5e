/* mlp.cu - a digit classifier of plain kernels, INPUT-HIDDEN-10 with softmax, as people write their first network; the
 * same steps on the CPU in double are the reference.  mlp [STEPS [INPUT HIDDEN BATCH]] */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define CUDA_CHECK(call) \
    do { \
        cudaError_t e = (call); \
        if (e != cudaSuccess) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
            exit(EXIT_FAILURE); \
        } \
    } while (0)

__global__ void linear_forward(const float *x, const float *w, const float *b, float *y, int batch, int in, int out) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= batch || col >= out) return;
    float sum = b[col];
    for (int k = 0; k < in; k++)
        sum += x[row * in + k] * w[k * out + col];
    y[row * out + col] = sum;
}
__global__ void relu(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] > 0 ? x[i] : 0;
}
__global__ void softmax_gradient(const float *y, const int *label, float *dy, float *loss, int batch, int classes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= batch) return;
    float most = y[row * classes], sum = 0;
    for (int c = 1; c < classes; c++)
        most = fmaxf(most, y[row * classes + c]);
    for (int c = 0; c < classes; c++)
        sum += expf(y[row * classes + c] - most);
    for (int c = 0; c < classes; c++)
        dy[row * classes + c] = (expf(y[row * classes + c] - most) / sum - (c == label[row])) / batch;
    atomicAdd(loss, -(y[row * classes + label[row]] - most - logf(sum)) / batch);
}
__global__ void linear_input_gradient(
    const float *dy, const float *w, const float *x, float *dx, int batch, int in, int out) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= batch || col >= in) return;
    float sum = 0;
    for (int k = 0; k < out; k++)
        sum += dy[row * out + k] * w[col * out + k];
    dx[row * in + col] = x[row * in + col] > 0 ? sum : 0; /* through the relu */
}
__global__ void linear_update(
    const float *x, const float *dy, float *w, float *b, int batch, int in, int out, float rate) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= in || col >= out) return;
    float sum = 0, bias = 0;
    for (int k = 0; k < batch; k++) {
        sum += x[k * in + row] * dy[k * out + col];
        bias += dy[k * out + col];
    }
    w[row * out + col] -= rate * sum;
    if (row == 0) b[col] -= rate * bias;
}

/* ---- the reference ---- */

struct Net {
    int in, hidden, out;
    std::vector<double> w1, b1, w2, b2;
};
static double reference_step(Net &n, const float *x, const int *label, int batch, double rate) {
    std::vector<double> h(batch * n.hidden), dy(batch * n.out), dh(batch * n.hidden);
    double loss = 0;
    for (int r = 0; r < batch; r++) {
        std::vector<double> y(n.b2);
        for (int j = 0; j < n.hidden; j++) {
            double sum = n.b1[j];
            for (int k = 0; k < n.in; k++)
                sum += x[r * n.in + k] * n.w1[k * n.hidden + j];
            h[r * n.hidden + j] = sum > 0 ? sum : 0;
        }
        double all = 0;
        for (int c = 0; c < n.out; c++) {
            for (int j = 0; j < n.hidden; j++)
                y[c] += h[r * n.hidden + j] * n.w2[j * n.out + c];
            all += exp(y[c]);
        }
        for (int c = 0; c < n.out; c++)
            dy[r * n.out + c] = (exp(y[c]) / all - (c == label[r])) / batch;
        loss -= log(exp(y[label[r]]) / all) / batch;
        for (int j = 0; j < n.hidden; j++)
            for (int c = 0; c < n.out; c++)
                if (h[r * n.hidden + j] > 0) dh[r * n.hidden + j] += dy[r * n.out + c] * n.w2[j * n.out + c];
    }
    for (int r = 0; r < batch; r++) {
        for (int j = 0; j < n.hidden; j++)
            for (int c = 0; c < n.out; c++)
                n.w2[j * n.out + c] -= rate * h[r * n.hidden + j] * dy[r * n.out + c];
        for (int c = 0; c < n.out; c++)
            n.b2[c] -= rate * dy[r * n.out + c];
        for (int k = 0; k < n.in; k++)
            for (int j = 0; j < n.hidden; j++)
                n.w1[k * n.hidden + j] -= rate * x[r * n.in + k] * dh[r * n.hidden + j];
        for (int j = 0; j < n.hidden; j++)
            n.b1[j] -= rate * dh[r * n.hidden + j];
    }
    return loss;
}
static float *to_device(const std::vector<double> &v) {
    std::vector<float> f(v.begin(), v.end());
    float *d;
    CUDA_CHECK(cudaMalloc(&d, f.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d, f.data(), f.size() * sizeof(float), cudaMemcpyHostToDevice));
    return d;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 12, in = argc > 2 ? atoi(argv[2]) : 48,
              hidden = argc > 3 ? atoi(argv[3]) : 24;
    const int batch = argc > 4 ? atoi(argv[4]) : 16, out = 10, checked = argc > 5 ? atoi(argv[5]) : 20; /* steps */
    const float rate = 0.1f;
    Net net = {in, hidden, out, {}, std::vector<double>(hidden), {}, std::vector<double>(out)};
    srand(1);
    for (int i = 0; i < in * hidden; i++)
        net.w1.push_back((float)((rand() / (double)RAND_MAX - 0.5) / sqrt(in)));
    for (int i = 0; i < hidden * out; i++)
        net.w2.push_back((float)((rand() / (double)RAND_MAX - 0.5) / sqrt(hidden)));
    std::vector<float> x(batch * in);
    std::vector<int> label(batch);
    for (int r = 0; r < batch; r++) {
        label[r] = r % 10;
        for (int k = 0; k < in; k++)
            x[r * in + k] = (k % 10 == label[r]) + rand() / (float)RAND_MAX * 0.5f;
    }
    float *w1 = to_device(net.w1), *b1 = to_device(net.b1), *w2 = to_device(net.w2), *b2 = to_device(net.b2), *dx, *h,
          *dh, *y, *dy, *dloss;
    int *dlabel;
    CUDA_CHECK(cudaMalloc(&dx, x.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dlabel, batch * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&h, batch * hidden * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dh, batch * hidden * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&y, batch * out * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dy, batch * out * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&dloss, sizeof(float)));
    CUDA_CHECK(cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(dlabel, label.data(), batch * sizeof(int), cudaMemcpyHostToDevice));
    const dim3 block(16, 8);
    auto grid = [&](int cols, int rows) {
        return dim3((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
    };
    float loss = 0;
    double worst = 0, reference = 0;
    for (int step = 0; step < steps; step++) {
        CUDA_CHECK(cudaMemset(dloss, 0, sizeof(float)));
        linear_forward<<<grid(hidden, batch), block>>>(dx, w1, b1, h, batch, in, hidden);
        relu<<<(batch * hidden + 63) / 64, 64>>>(h, batch * hidden);
        linear_forward<<<grid(out, batch), block>>>(h, w2, b2, y, batch, hidden, out);
        softmax_gradient<<<(batch + 31) / 32, 32>>>(y, dlabel, dy, dloss, batch, out);
        linear_input_gradient<<<grid(hidden, batch), block>>>(dy, w2, h, dh, batch, hidden, out);
        linear_update<<<grid(out, hidden), block>>>(h, dy, w2, b2, batch, hidden, out, rate);
        linear_update<<<grid(hidden, in), block>>>(dx, dh, w1, b1, batch, in, hidden, rate);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(&loss, dloss, sizeof loss, cudaMemcpyDeviceToHost));
        if (step >= checked) continue;
        reference = reference_step(net, x.data(), label.data(), batch, rate);
        worst = fmax(worst, fabs(loss - reference));
    }
    printf("mlp: %s, loss %.4f after %d steps, worst difference %.1e\n", worst < 1e-4 ? "ok" : "WRONG", loss, steps,
        worst);
    for (float *p : {w1, b1, w2, b2, dx, h, dh, y, dy, dloss})
        CUDA_CHECK(cudaFree(p));
    CUDA_CHECK(cudaFree(dlabel));
    return worst < 1e-4 ? 0 : 1;
}
