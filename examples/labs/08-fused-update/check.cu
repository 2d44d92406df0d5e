/* check.cu - the checker of lab 8. It does the same steps in double and compares all arrays after each; if one differs,
 * it does them again with each known mistake, and the one that gives what was found names itself. */
#include "lab.h"

enum { CHECK_MOST = 1000, CHECK_STEPS = 6 };
static const float check_scale = 1024.0f;

typedef struct check_state { /* on the host */
    double master[CHECK_MOST], m[CHECK_MOST], v[CHECK_MOST];
    float model[CHECK_MOST];
    int steps, called;
} check_state;

static check_state check_found; /* what the kernels left */

static void check_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess) lab_wrong("%s fails: %s", what, cudaGetErrorString(error));
}
static float check_half(float x) { return __half2float(__float2half(x)); }

/* The gradient of a step, times the loss scale. Step 2 has some Inf, one in the last element; step 4 has a NaN in
 * the middle. */
static float check_gradient(size_t n, int step, size_t i) {
    uint32_t word = (uint32_t)(i * 2654435761u + (uint32_t)step * 40503u);
    float x = ((float)(word >> 8) / 8388608.0f - 1.0f) * 8.0f;
    if (step == 2 && (i + 1 == n || i % 50 == 49)) return INFINITY;
    if (step == 4 && i == n / 2) return NAN;
    return check_half(x);
}
static bool check_overflows(int step) { return step == 2 || step == 4; }
static float check_first_weight(size_t i) { return 1.0f + (float)(i % 100) / 300.0f; }

/* ---- one step in double, right or with one mistake ---- */

enum check_mistake {
    CHECK_NONE,
    CHECK_SCALED,
    CHECK_NOT_SKIPPED,
    CHECK_NOT_SKIPPED_NOR_COUNTED,
    CHECK_ONLY_INF,
    CHECK_SKIPPED_COUNT,
    CHECK_ONE_BEHIND,
    CHECK_NO_CORRECTION,
    CHECK_FROM_MODEL,
    CHECK_EPS_INSIDE,
    CHECK_SKIPS_FOR_EVER,
    CHECK_V_SCALED,
    CHECK_OLD_MOMENTS,
    CHECK_MISTAKES
};
static const char *const check_sentences[CHECK_MISTAKES] = {
    "",
    "the gradient was not divided by the loss scale",
    "a step with an Inf or a NaN among its gradients must change nothing",
    "a step with an Inf or a NaN among its gradients must change nothing",
    "only Inf is looked for, and a NaN is an overflow, too",
    "the bias correction counts skipped steps, too: t is the number of steps that were taken",
    "the bias correction takes the number of steps before this one: t is 1 in the first step",
    "the bias correction is missing: m / (1 - beta1^t) and v / (1 - beta2^t)",
    "the update begins at the FP16 weight, where small steps are lost: it must begin at the master",
    "eps belongs after the square root, not under it",
    "after the first overflow no step is taken any more: decide must make overflow 0 again",
    "v has the square of the gradient before the loss scale was divided out",
    "the update takes m and v as they were before this step",
};

static void check_element(check_state *s, size_t i, float scaled, adam a, check_mistake mistake) {
    double g = (double)scaled / (double)check_scale, square = g * g, t = s->steps;
    double before_m = s->m[i], before_v = s->v[i], w = s->master[i], beta1 = (double)a.beta1, beta2 = (double)a.beta2;
    double m, v, lr = (double)a.lr, eps = (double)a.eps;
    if (mistake == CHECK_SCALED) g = (double)scaled;
    if (mistake == CHECK_SCALED || mistake == CHECK_V_SCALED) square = (double)scaled * (double)scaled;
    if (mistake == CHECK_SKIPPED_COUNT) t = s->called;
    if (mistake == CHECK_ONE_BEHIND) t = s->steps - 1;
    if (mistake == CHECK_FROM_MODEL) w = (double)s->model[i];
    m = s->m[i] = beta1 * before_m + (1 - beta1) * g;
    v = s->v[i] = beta2 * before_v + (1 - beta2) * square;
    if (mistake == CHECK_OLD_MOMENTS) {
        m = before_m;
        v = before_v;
    }
    if (mistake != CHECK_NO_CORRECTION) {
        m /= 1 - pow(beta1, t);
        v /= 1 - pow(beta2, t);
    }
    w -= lr * LAB8_DECAY * w;
    w -= lr * m / (mistake == CHECK_EPS_INSIDE ? sqrt(v + eps) : sqrt(v) + eps);
    s->master[i] = w;
    s->model[i] = check_half((float)w);
}
static void check_step(check_state *s, size_t n, int step, adam a, check_mistake mistake) {
    bool skip = check_overflows(step);
    s->called++;
    if (mistake == CHECK_NOT_SKIPPED || mistake == CHECK_NOT_SKIPPED_NOR_COUNTED) skip = false;
    if (mistake == CHECK_ONLY_INF && step == 4) skip = false;
    if (mistake == CHECK_SKIPS_FOR_EVER && step >= 2) skip = true;
    if (skip) return;
    if (mistake != CHECK_NOT_SKIPPED_NOR_COUNTED || !check_overflows(step)) s->steps++;
    for (size_t i = 0; i < n; i++)
        check_element(s, i, check_gradient(n, step, i), a, mistake);
}
static void check_begin(check_state *s, size_t n) {
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < n; i++) {
        s->master[i] = (double)check_first_weight(i);
        s->model[i] = check_half(check_first_weight(i));
    }
}

/* ---- comparing ---- */

static bool check_near(double x, double y, double slack) { /* Inf and NaN are near themselves */
    if (x != x || y != y) return x != x && y != y;
    return x == y || fabs(x - y) <= 4e-6 * fabs(y) + slack;
}
static const char *check_differs(const check_state *want, size_t n, size_t *at) { /* NULL: nowhere */
    for (size_t i = *at = 0; i < n; i = ++*at) {
        if (!check_near(check_found.m[i], want->m[i], 1e-9)) return "m";
        if (!check_near(check_found.v[i], want->v[i], 1e-13)) return "v";
        if (!check_near(check_found.master[i], want->master[i], 0)) return "master";
    }
    return NULL;
}
static double check_value(const check_state *s, const char *array, size_t i) {
    if (strcmp(array, "m") == 0) return s->m[i];
    return strcmp(array, "v") == 0 ? s->v[i] : s->master[i];
}
static const char *check_why(size_t n, int step, adam a) {
    static check_state s;
    for (int mistake = 1; mistake < CHECK_MISTAKES; mistake++) {
        size_t at;
        check_begin(&s, n);
        for (int k = 0; k <= step; k++)
            check_step(&s, n, k, a, (check_mistake)mistake);
        if (!check_differs(&s, n, &at)) return check_sentences[mistake];
    }
    return "compare your kernel with the formula, line by line";
}
static bool check_untouched(size_t i) {
    return check_found.master[i] == (double)check_first_weight(i) && check_found.m[i] == 0 && check_found.v[i] == 0;
}
static void check_state_after(const check_state *want, size_t n, int step, adam a) {
    size_t at;
    const char *array = check_differs(want, n, &at);
    if (array && want->steps > 0 && check_untouched(at))
        lab_wrong(
            "with n %zu, element %zu was not updated: each thread goes on by gridDim.x * blockDim.x, up to n", n, at);
    if (array)
        lab_wrong("with n %zu, after step %d, %s[%zu] must be %.7g and is %.7g: %s", n, step + 1, array, at,
            check_value(want, array, at), check_value(&check_found, array, at), check_why(n, step, a));
    for (size_t i = 0; i < n; i++) {
        float master = (float)check_found.master[i], model = check_found.model[i];
        if (model == check_half(master)) continue;
        if (model == check_half(check_first_weight(i)))
            lab_wrong(
                "with n %zu, after step %d, model[%zu] is still the first weight: the new master is rounded to it", n,
                step + 1, i);
        lab_wrong("with n %zu, after step %d, model[%zu] must be %.7g and is %.7g: the master %.7g, rounded to nearest",
            n, step + 1, i, (double)check_half(master), (double)model, (double)master);
    }
}

/* ---- running ---- */

template <class T> static T *check_array(size_t n, float (*value)(size_t i)) {
    T *device, host[CHECK_MOST];
    for (size_t i = 0; i < n; i++)
        host[i] = T(value(i));
    check_cuda(cudaMalloc((void **)&device, n * sizeof(T)), "cudaMalloc");
    check_cuda(cudaMemcpy(device, host, n * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return device;
}
static float check_zero(size_t) { return 0; }

static void check_read(const weights *w) {
    static float host[3][CHECK_MOST];
    static __half model[CHECK_MOST];
    const float *device[] = {w->master, w->m, w->v};
    for (int a = 0; a < 3; a++)
        check_cuda(cudaMemcpy(host[a], device[a], w->n * sizeof(float), cudaMemcpyDeviceToHost), "a kernel");
    check_cuda(cudaMemcpy(model, w->model, w->n * sizeof(__half), cudaMemcpyDeviceToHost), "a kernel");
    for (size_t i = 0; i < w->n; i++) {
        check_found.master[i] = (double)host[0][i];
        check_found.m[i] = (double)host[1][i];
        check_found.v[i] = (double)host[2][i];
        check_found.model[i] = __half2float(model[i]);
    }
}
static void check_size(size_t n) {
    static check_state want;
    static __half gradient[CHECK_MOST];
    const adam a = {1e-4f, 0.9f, 0.99f, 1e-3f};
    weights w;
    __half *device_gradient = check_array<__half>(n, check_zero);
    record *r;
    w.n = n;
    w.gradient = device_gradient;
    w.master = check_array<float>(n, check_first_weight);
    w.m = check_array<float>(n, check_zero);
    w.v = check_array<float>(n, check_zero);
    w.model = check_array<__half>(n, check_first_weight);
    check_cuda(cudaMalloc((void **)&r, sizeof *r), "cudaMalloc");
    check_cuda(cudaMemset(r, 0, sizeof *r), "cudaMemset");
    check_begin(&want, n);
    for (int step = 0; step < CHECK_STEPS; step++) {
        for (size_t i = 0; i < n; i++)
            gradient[i] = __float2half(check_gradient(n, step, i));
        check_cuda(cudaMemcpy(device_gradient, gradient, n * sizeof *gradient, cudaMemcpyHostToDevice), "a kernel");
        lab_doing("step %d with n %zu", step + 1, n);
        lab_step(w, r, a, 1 / check_scale);
        check_cuda(cudaGetLastError(), "a launch");
        check_step(&want, n, step, a, CHECK_NONE);
        check_read(&w);
        check_state_after(&want, n, step, a);
    }
    for (void *p : {(void *)device_gradient, (void *)w.master, (void *)w.m, (void *)w.v, (void *)w.model, (void *)r})
        cudaFree(p);
}

int main(void) {
    static const size_t sizes[] = {128, 1, 300, 1000};
    lab_begin();
    for (size_t n : sizes)
        check_size(n);
    lab_passed("%d steps with 4 sizes; two of them overflow and change nothing", CHECK_STEPS);
    return 0;
}
