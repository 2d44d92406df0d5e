/* overlap.cu - chunks on four streams from pinned memory, timed by events; a callback; an event waited for across
 * streams. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void HandleError(cudaError_t err, const char *file, int line) {
    if (err != cudaSuccess) {
        printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
        exit(EXIT_FAILURE);
    }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))
__global__ void polynomial(float *x, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) x[i] = ((x[i] * 2 + 1) * x[i] + 3) * x[i];
}
__global__ void total(const float *x, int n, float *sum) {
    __shared__ float cache[128];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s += x[i];
    cache[threadIdx.x] = s;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
        i /= 2;
    }
    if (threadIdx.x == 0) *sum = cache[0];
}
static void CUDART_CB done(cudaStream_t, cudaError_t status, void *data) {
    if (status == cudaSuccess) ++*(int *)data;
}
int main(void) {
    cudaDeviceProp prop;
    int dev, finished[4] = {0}, priority_low, priority_high;
    HANDLE_ERROR(cudaGetDevice(&dev));
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, dev));
    if (!prop.asyncEngineCount) printf("Device will not handle overlaps\n");
    HANDLE_ERROR(cudaDeviceGetStreamPriorityRange(&priority_low, &priority_high));
    const int n = 4 * 500, streams = 4, chunk = n / streams;
    float *h, *d, *sum, s = 0, ms = 0;
    cudaStream_t stream[streams], last;
    cudaEvent_t start, stop, ready[streams];
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaHostAlloc((void **)&h, n * sizeof(float), cudaHostAllocDefault));
    HANDLE_ERROR(cudaMalloc((void **)&d, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&sum, sizeof(float)));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&last, cudaStreamNonBlocking, priority_high));
    for (int i = 0; i < n; i++)
        h[i] = (i % 100) / 50.0f;
    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (int i = 0; i < streams; i++) {
        HANDLE_ERROR(cudaStreamCreate(&stream[i]));
        HANDLE_ERROR(cudaEventCreateWithFlags(&ready[i], cudaEventDisableTiming));
    }
    for (int i = 0; i < streams; i++) {
        int at = i * chunk;
        HANDLE_ERROR(cudaMemcpyAsync(d + at, h + at, chunk * sizeof(float), cudaMemcpyHostToDevice, stream[i]));
        polynomial<<<(chunk + 127) / 128, 128, 0, stream[i]>>>(d + at, chunk);
        HANDLE_ERROR(cudaEventRecord(ready[i], stream[i]));
        HANDLE_ERROR(cudaStreamWaitEvent(last, ready[i], 0));
        HANDLE_ERROR(cudaStreamAddCallback(stream[i], done, &finished[i], 0));
    }
    total<<<1, 128, 0, last>>>(d, n, sum);
    HANDLE_ERROR(cudaPeekAtLastError());
    HANDLE_ERROR(cudaMemcpyAsync(&s, sum, sizeof(float), cudaMemcpyDeviceToHost, last));
    for (int i = 0; i < streams; i++)
        HANDLE_ERROR(cudaStreamSynchronize(stream[i]));
    HANDLE_ERROR(cudaStreamSynchronize(last));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    while (cudaEventQuery(stop) == cudaErrorNotReady) {
    }
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    double want = 0;
    for (int i = 0; i < n; i++) {
        double x = h[i];
        want += ((x * 2 + 1) * x + 3) * x;
    }
    bool ok = ms >= 0 && finished[0] + finished[1] + finished[2] + finished[3] == streams && (s - want) < 0.5 &&
        (want - s) < 0.5;
    printf("overlap: %s, sum %.1f\n", ok ? "ok" : "WRONG", s);
    for (int i = 0; i < streams; i++) {
        HANDLE_ERROR(cudaEventDestroy(ready[i]));
        HANDLE_ERROR(cudaStreamDestroy(stream[i]));
    }
    HANDLE_ERROR(cudaStreamDestroy(last));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(d));
    HANDLE_ERROR(cudaFree(sum));
    HANDLE_ERROR(cudaFreeHost(h));
    return !ok;
}
