/* streams.cu - work in slices over four streams with pinned memory, an event that joins them, then a captured
 * graph of it. */
#include <cuda_runtime.h>
#include <cstdio>
const int SLICES = 4, EACH = 256, N = SLICES * EACH;
__global__ void square(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * x[i];
}
__global__ void total(const float *x, float *sum, int n) {
    float s = 0;
    for (int i = 0; i < n; i++)
        s += x[i];
    *sum = s;
}
int main() {
    float *h, *d, *sum, got = -1, again = -1, want = 0, want2 = 0;
    cudaStream_t s[SLICES];
    cudaEvent_t done[SLICES], begun;
    cudaHostAlloc(&h, N * sizeof(float), cudaHostAllocDefault);
    cudaMalloc(&d, N * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    for (int i = 0; i < N; i++) {
        h[i] = (i % 9) * 0.25f;
        want += h[i] * h[i];
        want2 += h[i] * h[i] * h[i] * h[i];
    }
    for (int k = 0; k < SLICES; k++) {
        cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming);
        cudaMemcpyAsync(d + k * EACH, h + k * EACH, EACH * sizeof(float), cudaMemcpyHostToDevice, s[k]);
        square<<<EACH / 64, 64, 0, s[k]>>>(d + k * EACH, EACH);
        cudaEventRecord(done[k], s[k]);
        cudaStreamWaitEvent(s[0], done[k], 0);
    }
    total<<<1, 1, 0, s[0]>>>(d, sum, N);
    cudaMemcpyAsync(&got, sum, sizeof got, cudaMemcpyDeviceToHost, s[0]);
    cudaStreamSynchronize(s[0]);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEventCreate(&begun);
    cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal);
    cudaEventRecord(begun, s[0]);
    cudaStreamWaitEvent(s[1], begun, 0);
    square<<<N / 128, 64, 0, s[0]>>>(d, N / 2);
    square<<<N / 128, 64, 0, s[1]>>>(d + N / 2, N / 2);
    cudaEventRecord(done[1], s[1]);
    cudaStreamWaitEvent(s[0], done[1], 0);
    total<<<1, 1, 0, s[0]>>>(d, sum, N);
    cudaStreamEndCapture(s[0], &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, s[0]);
    cudaStreamSynchronize(s[0]);
    cudaMemcpy(&again, sum, sizeof again, cudaMemcpyDeviceToHost);
    bool ok = got == want && again - want2 < 0.01f * want2 && want2 - again < 0.01f * want2;
    printf("streams: %s, %g\n", ok ? "ok" : "WRONG", got);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begun);
    for (int k = 0; k < SLICES; k++) {
        cudaEventDestroy(done[k]);
        cudaStreamDestroy(s[k]);
    }
    cudaFree(d);
    cudaFree(sum);
    cudaFreeHost(h);
    return !ok;
}
