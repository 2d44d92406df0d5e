#include "lstm.cuh"
/* z: B x 4H, gates i f g o side by side */
__global__ void gates(const float *x, const float *h, const float *wx, const float *wh, const float *b, float *z) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (col >= 4 * H) return;
    float s = b[col];
    for (int k = 0; k < X; k++)
        s += x[row * X + k] * wx[k * 4 * H + col];
    for (int k = 0; k < H; k++)
        s += h[row * H + k] * wh[k * 4 * H + col];
    z[row * 4 * H + col] = s;
}
__global__ void cell(const float *z, const float *c_before, float *c, float *h, float *act) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * H) return;
    int r = i / H, j = i % H;
    const float *q = z + r * 4 * H;
    float *a = act + r * 4 * H;
    a[j] = sigmoid(q[j]);
    a[H + j] = sigmoid(q[H + j]);
    a[2 * H + j] = tanhf(q[2 * H + j]);
    a[3 * H + j] = sigmoid(q[3 * H + j]);
    c[i] = a[H + j] * c_before[i] + a[j] * a[2 * H + j];
    h[i] = a[3 * H + j] * tanhf(c[i]);
}
__global__ void cell_back(
    const float *act, const float *c_before, const float *c, const float *dh, float *dc, float *dz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * H) return;
    int r = i / H, j = i % H;
    const float *a = act + r * 4 * H;
    float *q = dz + r * 4 * H, t = tanhf(c[i]), d = dc[i] + dh[i] * a[3 * H + j] * (1 - t * t);
    q[j] = d * a[2 * H + j] * d_sigmoid(a[j]);
    q[H + j] = d * c_before[i] * d_sigmoid(a[H + j]);
    q[2 * H + j] = d * a[j] * (1 - a[2 * H + j] * a[2 * H + j]);
    q[3 * H + j] = dh[i] * t * d_sigmoid(a[3 * H + j]);
    dc[i] = d * a[H + j];
}
__global__ void back_to_h(const float *dz, const float *wh, float *dh) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * H) return;
    float s = 0;
    for (int k = 0; k < 4 * H; k++)
        s += dz[i / H * 4 * H + k] * wh[i % H * 4 * H + k];
    dh[i] = s;
}
__global__ void accumulate(const float *dz, const float *in, int n, float *dw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * 4 * H) return;
    float s = 0;
    for (int r = 0; r < B; r++)
        s += in[r * n + i / (4 * H)] * dz[r * 4 * H + i % (4 * H)];
    dw[i] += s;
}
__global__ void bias_gradient(const float *dz, float *db) {
    __shared__ float part[B];
    part[threadIdx.x] = dz[threadIdx.x * 4 * H + blockIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0;
        for (int r = 0; r < B; r++)
            s += part[r];
        db[blockIdx.x] += s;
    }
}
__global__ void mse(const float *h, const float *target, float *dh, float *loss) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * H) return;
    float d = h[i] - target[i];
    dh[i] = 2 * d / (B * H);
    atomicAdd(loss, d * d / (B * H));
}
