/* check.cu - the checker of lab 7. It compares each element with a sum in double, and if one is wrong, the whole result
 * with what known mistakes give, so that the sentence can name the mistake. */
#include "lab.h"

typedef struct check_data {
    int m, n, k;
    __half *x, *w; /* on the host, and on the device */
    float *y;
    __half *device_x, *device_w;
    float *device_y;
} check_data;

static void check_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess) lab_wrong("%s fails: %s", what, cudaGetErrorString(error));
}

static double check_x(const check_data *t, long i, long k) { return (double)__half2float(t->x[i * t->k + k]); }
static double check_w(const check_data *t, long j, long k) { return (double)__half2float(t->w[j * t->k + k]); }

/* ---- what each mistake would give, element (i, j) ---- */

static double check_right(const check_data *t, int i, int j) {
    double sum = 0;
    for (int k = 0; k < t->k; k++)
        sum += check_x(t, i, k) * check_w(t, j, k);
    return sum;
}
/* Each 16 x 16 tile of w is taken as it is stored; outside of w there are zeros. */
static double check_tile_as_stored(const check_data *t, int i, int j) {
    double sum = 0;
    for (int k = 0; k < t->k; k++) {
        int row = j / 16 * 16 + k % 16, col = k / 16 * 16 + j % 16;
        if (row < t->n && col < t->k) sum += check_x(t, i, k) * check_w(t, row, col);
    }
    return sum;
}
/* w is read as if its rows were n apart. */
static double check_rows_n_apart(const check_data *t, int i, int j) {
    double sum = 0;
    for (long k = 0; k < t->k; k++) {
        long at = (long)j * t->n + k;
        if (at < (long)t->n * t->k) sum += check_x(t, i, k) * check_w(t, 0, at);
    }
    return sum;
}
/* w is read as [k, n]. */
static double check_not_transposed(const check_data *t, int i, int j) {
    double sum = 0;
    for (long k = 0; k < t->k; k++)
        sum += check_x(t, i, k) * check_w(t, 0, k * t->n + j);
    return sum;
}
static double check_whole_slices(const check_data *t, int i, int j) {
    double sum = 0;
    for (int k = 0; k < t->k / 16 * 16; k++)
        sum += check_x(t, i, k) * check_w(t, j, k);
    return sum;
}
static double check_last_slice(const check_data *t, int i, int j) {
    double sum = 0;
    for (int k = (t->k - 1) / 16 * 16; k < t->k; k++)
        sum += check_x(t, i, k) * check_w(t, j, k);
    return sum;
}
static double check_first_warp(const check_data *t, int i, int j) { return check_right(t, i / 64 * 64 + i % 16, j); }
static double check_tile_of_y_transposed(const check_data *t, int i, int j) {
    int row = i / 16 * 16 + j % 16, col = j / 16 * 16 + i % 16;
    return row < t->m && col < t->n ? check_right(t, row, col) : 0;
}

typedef struct check_mistake {
    double (*gives)(const check_data *t, int i, int j);
    const char *sentence;
} check_mistake;

static const check_mistake check_mistakes[] = {
    {check_tile_as_stored,
        "each tile of w is taken as it is stored, and x w^T wants it transposed: its fragment is "
        "col_major"},
    {check_not_transposed, "w is read as [k, n], and it is stored as [n, k]"},
    {check_rows_n_apart, "w is read as if its rows were n values apart, and they are k values apart"},
    {check_last_slice, "only the last slice of k is in the sum: fill the accumulator before the loop, not in it"},
    {check_whole_slices, "the last k % 16 values of k are left out: the last slice is not a whole one"},
    {check_first_warp, "all four warps multiply the same 16 rows of x: warp 1 begins at row 16 of xs"},
    {check_tile_of_y_transposed, "each tile of y is transposed: store it mem_row_major"},
};

/* ---- verdict ---- */

/* The FP32 sum of k products may differ from the exact one by so much; Tensor Cores cut off where FP32 rounds. */
static double check_bound(const check_data *t, int i, int j) {
    double size = 0;
    for (int k = 0; k < t->k; k++)
        size += fabs(check_x(t, i, k) * check_w(t, j, k));
    return (t->k + 4) * ldexp(size, -23);
}
static bool check_gives(const check_data *t, double (*gives)(const check_data *, int, int)) {
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++)
            if (!(fabs(gives(t, i, j) - (double)t->y[i * t->n + j]) <= 1e-3)) return false;
    return true;
}
static bool check_all_are_halves(const check_data *t) {
    for (long e = 0; e < (long)t->m * t->n; e++)
        if (__half2float(__float2half(t->y[e])) != t->y[e]) return false;
    return true;
}
static const char *check_why(const check_data *t, float y) {
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    if (bits == 0xfefefefeu) return "nobody wrote it: which threads write which elements of y?";
    if (y != y) return "a NaN: shared memory that nobody wrote, or a fragment that nobody filled, was read";
    if (check_all_are_halves(t) && check_gives(t, check_right))
        return "every element is a number of FP16: the sum must stay in FP32";
    for (const check_mistake &mistake : check_mistakes)
        if (check_gives(t, mistake.gives)) return mistake.sentence;
    if (check_all_are_halves(t)) return "every element is a number of FP16: the sum must stay in FP32";
    return "compare which elements of x and w each thread copies, and to where";
}
static void check_result(const check_data *t) {
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++) {
            float y = t->y[i * t->n + j];
            double want = check_right(t, i, j);
            if (fabs((double)y - want) <= check_bound(t, i, j)) continue;
            lab_wrong("with m %d, n %d, k %d, y[%d][%d] must be %.6g and is %.6g: %s", t->m, t->n, t->k, i, j, want,
                (double)y, check_why(t, y));
        }
}

/* A class's variant multiplies y by a power of two, which rounds nothing. */
static void check_factor(check_data *t) {
    double largest = 0;
    for (long e = 0; e < (long)t->m * t->n; e++)
        if (fabs((double)t->y[e]) < 1e30) t->y[e] /= (float)LAB7_FACTOR;
    if (LAB7_FACTOR == 1) return;
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++)
            largest = fmax(
                largest, fabs((double)t->y[i * t->n + j] * LAB7_FACTOR - check_right(t, i, j)) - check_bound(t, i, j));
    if (largest <= 0) lab_wrong("y is x w^T without the factor %g of your variant", (double)LAB7_FACTOR);
}

static __half check_random(void) { /* -1 .. 1 */
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return __float2half((float)(state >> 8) / 8388608.0f - 1.0f);
}
static __half *check_matrix(size_t count, __half **device) {
    __half *h = (__half *)malloc(count * sizeof *h);
    for (size_t i = 0; h && i < count; i++)
        h[i] = check_random();
    check_cuda(cudaMalloc((void **)device, count * sizeof *h), "cudaMalloc");
    check_cuda(cudaMemcpy(*device, h, count * sizeof *h, cudaMemcpyHostToDevice), "cudaMemcpy");
    return h;
}
static void check_shape(int m, int n, int k) {
    check_data t;
    size_t bytes = (size_t)m * n * sizeof(float);
    t.m = m;
    t.n = n;
    t.k = k;
    t.x = check_matrix((size_t)m * k, &t.device_x);
    t.w = check_matrix((size_t)n * k, &t.device_w);
    t.y = (float *)malloc(bytes);
    check_cuda(cudaMalloc((void **)&t.device_y, bytes), "cudaMalloc");
    check_cuda(cudaMemset(t.device_y, 0xfe, bytes), "cudaMemset"); /* -1.7e38: what nobody writes is seen */
    lab_doing("lab_product with m %d, n %d, k %d", m, n, k);
    lab_product(t.device_x, t.device_w, t.device_y, m, n, k);
    check_cuda(cudaGetLastError(), "the launch");
    check_cuda(cudaMemcpy(t.y, t.device_y, bytes, cudaMemcpyDeviceToHost), "the kernel");
    check_factor(&t);
    check_result(&t);
    cudaFree(t.device_x);
    cudaFree(t.device_w);
    cudaFree(t.device_y);
    free(t.x);
    free(t.w);
    free(t.y);
}

int main(void) {
    static const int shapes[][3] = {
        {16, 16, 48}, {64, 16, 16}, {80, 48, 64}, {48, 16, 24}, {16, 24, 16}, {33, 40, 24}, {5, 3, 200}, {1, 1, 1}};
    long products = 0;
    lab_begin();
    for (const int *s : shapes) {
        check_shape(s[0], s[1], s[2]);
        products += (long)((s[0] + 15) / 16) * ((s[1] + 15) / 16) * ((s[2] + 15) / 16);
    }
#ifdef AMP_HOSTCUDA
    if (hcu_warp_products() < products)
        lab_wrong("y is right, but not from Tensor Cores: the kernel must multiply by wmma::mma_sync");
#endif
    lab_passed("%d shapes, each element within the bound of an FP32 sum", (int)(sizeof shapes / sizeof *shapes));
    return 0;
}
