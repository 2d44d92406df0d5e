/* stuck.cu - a kernel that never ends: its first warp is at a barrier, the second waits for a flag that nobody sets.
   After three seconds it gets what Ctrl-C sends. For run_own.sh. */
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>
__global__ void stuck(volatile int *flag) {
    if (threadIdx.x < 32) __syncthreads(); /* 0 to 31 wait here */
    while (*flag == 0) {
    }
}
static void *interrupt(void *thread) {
    sleep(3);
    pthread_kill(*(pthread_t *)thread, SIGINT);
    return NULL;
}
int main() {
    int *flag;
    pthread_t self = pthread_self(), other;
    pthread_create(&other, NULL, interrupt, &self);
    cudaMalloc(&flag, sizeof *flag);
    cudaMemset(flag, 0, sizeof *flag);
    stuck<<<2, 64>>>(flag);
    cudaDeviceSynchronize();
    printf("never\n");
    return 0;
}
