/* check.cu - the checker of lab 9. The value first, beside what known mistakes give; then the bits, over launches and
 * over the orders in which blocks may run. */
#include "lab.h"

#include <ctime>

enum { CHECK_CHUNK = 256 };

typedef struct check_data {
    size_t n;
    float *x; /* on the host, and on the device */
    float *device_x, *part, *out;
} check_data;

typedef struct check_launch { unsigned grid, block; } check_launch;

static void check_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess) lab_wrong("%s fails: %s", what, cudaGetErrorString(error));
}
static uint32_t check_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t check_state = 7;
/* Numbers of many sizes: any other order of the additions gives other bits. */
static float check_random(void) {
    uint32_t &state = check_state;
    state = state * 1664525u + 1013904223u;
    return ldexpf((float)(state >> 8) / 16777216.0f + 0.5f, (int)(state >> 4 & 7u) - 4);
}

/* ---- who does the work ---- */

/* With LAB_STEPS the compiler calls this at the begin of each piece of code that has no branch in it: the steps of each
   thread of a launch are counted. */
enum { CHECK_THREADS = 128 };
static long check_steps[CHECK_THREADS];
static bool check_counts; /* while the student's kernels run */
#ifdef LAB_STEPS
extern "C" __attribute__((no_sanitize_coverage, no_sanitize_address)) void __sanitizer_cov_trace_pc(void) {
    if (!check_counts) return;
    check_counts = false; /* what threadIdx is made of may count itself */
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    if (me < CHECK_THREADS) check_steps[me]++;
    check_counts = true;
}
#endif

/* ---- what each mistake would give ---- */

static double check_sum(const check_data *t, size_t end, bool (*counts)(size_t i)) {
    double sum = 0;
    for (size_t i = 0; i < end; i++)
        if (counts(i)) sum += (double)t->x[i] * (double)t->x[i];
    return sum;
}
static bool check_all(size_t) { return true; }
static bool check_lower_lanes(size_t i) { return i % 32 < 16; }
static bool check_first_lane(size_t i) { return i % 32 == 0; }
static bool check_negative(size_t i) { return i % 5 == 3; } /* so check_size makes them */
static bool check_positive(size_t i) { return !check_negative(i); }

static double check_right(const check_data *t) { return sqrt(check_sum(t, t->n, check_all)); }
static double check_no_root(const check_data *t) { return check_sum(t, t->n, check_all); }
static double check_half_a_warp(const check_data *t) { return sqrt(check_sum(t, t->n, check_lower_lanes)); }
static double check_one_lane(const check_data *t) { return sqrt(check_sum(t, t->n, check_first_lane)); }
static double check_no_negative(const check_data *t) { return sqrt(check_sum(t, t->n, check_positive)); }
static double check_whole_chunks(const check_data *t) {
    return sqrt(check_sum(t, t->n / CHECK_CHUNK * CHECK_CHUNK, check_all));
}
static double check_first_parts(const check_data *t) {
    size_t end = 32 * CHECK_CHUNK;
    return sqrt(check_sum(t, end < t->n ? end : t->n, check_all));
}
static double check_not_squared(const check_data *t) {
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += (double)t->x[i];
    return sqrt(sum);
}

typedef struct check_mistake {
    double (*gives)(const check_data *t);
    const char *sentence;
} check_mistake;

static const check_mistake check_mistakes[] = {
    {check_no_root, "the square root is missing"},
    {check_not_squared, "the numbers are not squared"},
    {check_whole_chunks, "the last chunk, which is not a whole one, is left out"},
    {check_half_a_warp, "half of each warp is left out: the first offset over 32 lanes is 16"},
    {check_one_lane, "only lane 0 of each warp counts: the lanes' sums must be added up"},
    {check_no_negative, "negative numbers are left out: a square has no sign"},
    {check_first_parts, "only the first 32 parts count: a lane takes every 32nd one"},
};

/* ---- verdict ---- */

static bool check_near(float y, double want) { return fabs((double)y - want) <= 4e-6 * want; }

static float check_run(const check_data *t, check_launch l) {
    float y;
    size_t parts = (t->n + CHECK_CHUNK - 1) / CHECK_CHUNK;
    check_cuda(cudaMemset(t->out, 0xfe, sizeof(float)), "cudaMemset"); /* -1.7e38: what nobody writes is seen */
    check_cuda(cudaMemset(t->part, 0xff, parts * sizeof(float)), "cudaMemset");
    lab_doing("lab_norm with n %zu, grid %u, block %u", t->n, l.grid, l.block);
    memset(check_steps, 0, sizeof check_steps);
    check_counts = true;
    lab_norm(t->device_x, t->n, t->part, t->out, l.grid, l.block);
    check_cuda(cudaGetLastError(), "a launch");
    check_cuda(cudaMemcpy(&y, t->out, sizeof y, cudaMemcpyDeviceToHost), "a kernel");
    check_counts = false;
    return check_bits(y) == 0xfefefefeu ? y : y / (float)LAB9_FACTOR; /* of a class's variant: a power of two */
}
static void check_value(const check_data *t, float y, check_launch l) {
    double want = check_right(t);
    const char *why = "compare which numbers each lane adds";
    if (check_near(y, want)) return;
    for (const check_mistake &mistake : check_mistakes)
        if (check_near(y, mistake.gives(t))) {
            why = mistake.sentence;
            break;
        }
    if (LAB9_FACTOR != 1 && check_near(y * (float)LAB9_FACTOR, want)) why = "the factor of your variant is missing";
    if (check_bits(y) == 0xfefefefeu) why = "nobody wrote it";
    if (y != y) why = "a NaN: a part or shared memory that nobody wrote was read, or a lane that was not there";
    lab_wrong("with n %zu, grid %u and block %u the norm must be %.7g and is %.7g: %s", t->n, l.grid, l.block, want,
        (double)y, why);
}
/* 128 threads have far more numbers than there are threads: nobody does an eighth of it alone. */
static void check_shares(const check_data *t, check_launch l) {
    long all = 0, most = 0;
    if (t->n < 65536 || l.grid * l.block != CHECK_THREADS) return;
    for (long steps : check_steps) {
        all += steps;
        if (steps > most) most = steps;
    }
    if (8 * most <= all || !all) return;
    lab_wrong(
        "with n %zu, grid %u and block %u one thread does %ld of 100 steps: each warp takes chunks, and each lane "
        "its numbers of them",
        t->n, l.grid, l.block, 100 * most / all);
}
static void check_order(
    const check_data *t, float y, check_launch l) { /* the same launch, and other orders of blocks */
#ifdef AMP_HOSTCUDA
    static const int orders[] = {HCU_REVERSE, HCU_SHUFFLE};
    for (int order : orders) {
        hcu_set_order(order, 5);
        float again = check_run(t, l);
        hcu_set_order(HCU_FORWARD, 0);
#else
    for (int run = 0; run < 20; run++) {
        float again = check_run(t, l);
#endif
        if (check_bits(again) != check_bits(y))
            lab_wrong("with n %zu, grid %u and block %u the norm is %a, and %a when the threads run in another order: "
                      "what is added to what must be fixed, and atomicAdd leaves it open",
                t->n, l.grid, l.block, (double)y, (double)again);
    }
}
static void check_numbers(check_data *t) {
    for (size_t i = 0; i < t->n; i++) {
        float large = t->n > 65536 && i % 97 == 0 ? 4096.0f : 1.0f;
        t->x[i] = check_random() * (check_negative(i) ? -large : large);
    }
}
/* Numbers that nobody can know before: of a size that was there, drawn by the clock. */
static void check_fresh(const check_data *t, check_launch l) {
    if (check_near(check_run(t, l), check_right(t))) return;
    lab_wrong(
        "with n %zu and numbers that are drawn anew the norm is wrong, and with those before it was right: it must "
        "be computed each time",
        t->n);
}
static void check_size(size_t n, bool fresh) {
    static const check_launch launches[] = {{2, 64}, {1, 32}, {3, 64}, {2, 96}, {5, 128}, {50, 32}};
    check_data t;
    float first = 0;
    t.n = n;
    t.x = (float *)malloc((n + 1) * sizeof(float));
    check_numbers(&t);
    check_cuda(cudaMalloc((void **)&t.device_x, n * sizeof(float)), "cudaMalloc");
    check_cuda(cudaMalloc((void **)&t.part, (n + CHECK_CHUNK - 1) / CHECK_CHUNK * sizeof(float)), "cudaMalloc");
    check_cuda(cudaMalloc((void **)&t.out, sizeof(float)), "cudaMalloc");
    check_cuda(cudaMemcpy(t.device_x, t.x, n * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    if (fresh) check_fresh(&t, launches[0]);
    for (const check_launch &l : launches) {
        float y = check_run(&t, l);
        check_value(&t, y, l);
        check_shares(&t, l);
        check_order(&t, y, l);
        if (&l == launches) first = y;
        if (check_bits(y) == check_bits(first)) continue;
        lab_wrong(
            "with n %zu the norm is %a for grid %u and block %u, and %a for grid %u and block %u: which numbers are "
            "added to which must depend on n alone",
            n, (double)first, launches[0].grid, launches[0].block, (double)y, l.grid, l.block);
    }
    cudaFree(t.device_x);
    cudaFree(t.part);
    cudaFree(t.out);
    free(t.x);
}

int main(void) {
    static const size_t sizes[] = {1024, 1, 31, 255, 257, 3000, 10000, 0, 70001};
    lab_begin();
    for (size_t n : sizes)
        check_size(n, false);
    check_state = (uint32_t)time(nullptr);
    check_size(3000, true);
    lab_passed(
        "%d sizes, each with 6 launches in 3 orders of threads, and one result", (int)(sizeof sizes / sizeof *sizes));
    return 0;
}
