/* quicksort.cu - kernels that launch kernels (nvcc -rdc=true), as in the samples. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
__global__ void selection_sort(int *a, int left, int right) {
    for (int i = left; i <= right; i++) {
        int best = i;
        for (int k = i + 1; k <= right; k++)
            if (a[k] < a[best]) best = k;
        int t = a[i];
        a[i] = a[best];
        a[best] = t;
    }
}
__global__ void quicksort(int *a, int left, int right, int depth) {
    if (depth >= 8 || right - left <= 8) {
        selection_sort<<<1, 1>>>(a, left, right);
        return;
    }
    int l = left, r = right, pivot = a[(left + right) / 2];
    while (l <= r) {
        while (a[l] < pivot)
            l++;
        while (a[r] > pivot)
            r--;
        if (l > r) break;
        int t = a[l];
        a[l++] = a[r];
        a[r--] = t;
    }
    if (left < r) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(a, left, r, depth + 1);
    if (l < right) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(a, l, right, depth + 1);
}
int main() {
    const int n = 300;
    int h[n], want[n], *d;
    for (int i = 0; i < n; i++)
        want[i] = h[i] = rand() % 1000;
    std::sort(want, want + n);
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    quicksort<<<1, 1>>>(d, 0, n - 1, 0);
    cudaDeviceSynchronize();
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    bool ok = std::equal(h, h + n, want);
    printf("quicksort: %s\n", ok ? "ok" : "WRONG");
    cudaFree(d);
    return !ok;
}
