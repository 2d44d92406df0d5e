/* forms.cu - forms of CUDA that programs of others have, and that were once refused or misread here; language.cu has
 * the usual ones. Prints "forms: N passed, 0 failed".  nvcc -arch=native forms.cu, or
 * make hostcuda-run FILE=tests/hostcuda/selftest/own/forms.cu */
#include <cuda_runtime.h>
#include <stdio.h>
#include <vector>
#include "forms.cuh"

static int passed, failed;
static void check(bool good, int line) {
    good ? passed++ : failed++;
    if (!good) printf("FAIL forms.cu:%d\n", line);
}
#define CHECK(good) check(good, __LINE__)
#define OK(call)    CHECK((call) == cudaSuccess)

enum { N = 64 };
static int *g_x;             /* of all kernels, and of both sides */
static bool all(int value) { /* since the last time */
    OK(cudaDeviceSynchronize());
    bool good = true;
    for (int i = 0; i < N; i++) {
        good = good && g_x[i] == value;
        g_x[i] = 0;
    }
    return good;
}

/* ---- what may stand before <<< ---- */

#define DEFINE(name, expression) \
    __global__ void name##_kernel(int *x) { x[threadIdx.x] = expression; } \
    static void name##_all(int *x) { name##_kernel<<<1, N>>>(x); }
DEFINE(three, 3)
DEFINE(header, add_one(int((make_float2(1, 2) + make_float2(3, 4)).y)))
#define PASTED(a, b)    a##_##b<<<1, N>>>(g_x)
#define KERNEL_OF(name) name##_kernel

template <class T> struct Box { typedef T type; };
template <class T> __global__ void boxed(int *x) { x[threadIdx.x] = int(sizeof(T)); }
typedef void (*Kernel)(int *);
static Kernel kernel_of(int i) { return i == 3 ? three_kernel : header_kernel; }
struct Table {
    std::vector<Kernel> kernels{three_kernel};
    Kernel first = three_kernel;
    Table *self() { return this; }
    template <class T> static void run() { boxed<Box<Box<T>>><<<1, N>>>(g_x); }
};
static void pasted() {
    three_all(g_x);
    CHECK(all(3));
    PASTED(three, kernel);
    CHECK(all(3));
    KERNEL_OF(header)<<<1, N>>>(g_x);
    CHECK(all(7));
}
static void expressions() {
    Table t, *p = &t;
    kernel_of(3)<<<1, N>>>(g_x);
    CHECK(all(3));
    if (p) (kernel_of(4))<<<1, N>>>(g_x);
    CHECK(all(7));
    t.kernels.at(0)<<<1, N>>>(g_x);
    CHECK(all(3));
    p->self()->kernels[0]<<<1, N>>>(g_x);
    CHECK(all(3));
    (*p).first<<<1, N>>>(g_x);
    CHECK(all(3));
    if (p) ::three_kernel<<<1, N>>>(g_x);
    CHECK(all(3));
    boxed<Box<Box<int>>><<<1, N>>>(g_x);
    CHECK(all(1));
    boxed<Box<Box<Box<int>::type>>::type><<<1, N>>>(g_x);
    CHECK(all(1));
    Table::run<int>();
    CHECK(all(1));
}

int main() {
    OK(cudaMallocManaged(&g_x, N * sizeof(int)));
    all(0);
    pasted();
    expressions();
    OK(cudaFree(g_x));
    printf("forms: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
