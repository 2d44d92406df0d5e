/* test_paths.c - which way a product goes, tuning, plan files, layers whose backward is done by the next one.  Guards:
   >>products. */
#include "../amp_cuda.cuh"
#include "ref.h"
#ifdef AMP_HOSTCUDA
#  include "hostcuda/hostcuda_ctl.h"
#  include <unistd.h>
#endif

/* X W^T, zeroed operands. */
static amp_gemm_desc product(t_run *t, size_t m, size_t n, size_t k, amp_dtype ab, amp_dtype d) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = m;
    g.n = n;
    g.k = k;
    g.trans_b = 1;
    g.a = amp_arr(t_put(t, t_host(t, m * k * 4), m * k * amp_dtype_size(ab)), ab);
    g.b = amp_arr(t_put(t, t_host(t, n * k * 4), n * k * amp_dtype_size(ab)), ab);
    g.d = amp_arr(t_put(t, t_host(t, m * n * 4), m * n * amp_dtype_size(d)), d);
    return g;
}

/* What each product does on a device of sm_90: words of its explanation, separated by |; a leading ! forbids one. */
typedef struct path {
    amp_dtype ab, d;
    amp_act act;
    char bias, aux, dbias;
    uint32_t flags;
    const char *words;
} path;
static const path paths[] = {
    /* bias, aux, dbias: s as d, f FP32, - none; bias b: none, backward */
    {AMP_F16, AMP_F16, AMP_ACT_NONE, '-', '-', '-', 0, "cuBLASLt|!with|!then"},
    {AMP_F16, AMP_F32, AMP_ACT_NONE, '-', '-', '-', 0, "cuBLASLt|!then"},
    {AMP_BF16, AMP_BF16, AMP_ACT_NONE, 's', '-', '-', 0, "cuBLASLt|with the bias|!then|!rounded"},
    {AMP_F16, AMP_F16, AMP_ACT_NONE, 'f', '-', '-', 0, "cuBLASLt|with the bias|bias rounded|!then"},
    {AMP_F16, AMP_F32, AMP_ACT_NONE, 'f', '-', '-', 0, "cuBLASLt|with the bias|!rounded|!then"},
    {AMP_F16, AMP_F16, AMP_RELU, 's', '-', '-', 0, "cuBLASLt|with the bias|then the epilogue"},
    {AMP_F16, AMP_F16, AMP_GELU, 's', 's', '-', 0, "cuBLASLt|with GELU|!then"},
    {AMP_F16, AMP_F16, AMP_GELU, 'f', 's', '-', 0, "cuBLASLt|with GELU|bias rounded|!then"},
    {AMP_F16, AMP_F16, AMP_GELU, 's', 'f', '-', 0, "plain kernel|aux"},
    {AMP_F16, AMP_F32, AMP_GELU, 'f', '-', '-', 0, "cuBLASLt|with the bias|then the epilogue"},
    {AMP_F16, AMP_F16, AMP_GELU, 'b', 's', '-', 0, "cuBLASLt|GELU's derivative|!then"},
    {AMP_F16, AMP_F16, AMP_GELU, 'b', 's', 's', 0, "cuBLASLt|GELU's derivative and bias gradient|!then"},
    {AMP_F16, AMP_F16, AMP_GELU, 'b', 's', 'f', 0, "cuBLASLt|GELU's derivative|!and bias|then the bias gradient"},
    {AMP_BF16, AMP_BF16, AMP_GELU, 'b', 's', 'f', 0, "cuBLASLt|GELU's derivative|!and bias|then the bias gradient"},
    {AMP_BF16, AMP_BF16, AMP_GELU, 'b', 'f', '-', 0, "cuBLASLt|then the epilogue|!derivative"},
    {AMP_BF16, AMP_BF16, AMP_RELU, 'b', 's', 's', 0, "cuBLASLt|then the epilogue|then the bias gradient"},
    {AMP_F32, AMP_F32, AMP_ACT_NONE, '-', '-', '-', 0, "cuBLASLt|!TF32"},
    {AMP_F32, AMP_F32, AMP_ACT_NONE, '-', '-', '-', AMP_GEMM_TF32, "cuBLASLt|TF32"},
    {AMP_F16, AMP_F16, AMP_ACT_NONE, '-', '-', '-', AMP_GEMM_F16_SUM, "cuBLASLt|sums in F16"},
    {AMP_F16, AMP_F32, AMP_ACT_NONE, '-', '-', '-', AMP_GEMM_F16_SUM, "cuBLASLt|!F16 sums"},
    {AMP_F16, AMP_BF16, AMP_ACT_NONE, '-', '-', '-', 0, "plain kernel|dtypes"},
    {AMP_F8E4M3, AMP_F16, AMP_ACT_NONE, 's', '-', '-', 0, "cuBLASLt|with the bias|!rounded"},
    {AMP_F8E4M3, AMP_F8E4M3, AMP_ACT_NONE, '-', '-', '-', 0, "cuBLASLt"},
    {AMP_F8E4M3, AMP_F16, AMP_RELU, '-', '-', '-', 0, "cuBLASLt|then the epilogue"},
    {AMP_F8E5M2, AMP_F16, AMP_ACT_NONE, '-', '-', '-', AMP_GEMM_EMULATE, "plain kernel|both f8e5m2"},
    {AMP_F16, AMP_F16, AMP_GELU, 's', 's', 's', AMP_GEMM_ORDERED, "plain kernel|AMP_GEMM_ORDERED|!cuBLASLt"},
    {AMP_F8E5M2, AMP_F16, AMP_ACT_NONE, '-', '-', '-', AMP_GEMM_ORDERED, "plain kernel|AMP_GEMM_ORDERED"},
};

static int has_words(const char *text, const char *words) {
    char word[64];
    size_t n;
    for (;; words += n + 1) {
        n = strcspn(words, "|");
        memcpy(word, words, n);
        word[n] = 0;
        if (word[0] == '!' ? strstr(text, word + 1) != NULL : strstr(text, word) == NULL) return 0;
        if (!words[n]) return 1;
    }
}
static amp_array like(t_run *t, char how, amp_dtype d, size_t n) {
    amp_array none = AMP_ZERO;
    amp_dtype type = how == 'f' ? AMP_F32 : d;
    return how == '-' || how == 'b' ? none : amp_arr(t_put(t, t_host(t, 4 * n), n * amp_dtype_size(type)), type);
}

static void explained(t_run *t) {
    size_t i, m = 32, n = 48, k = 64;
    char text[400];
    for (i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const path *p = &paths[i];
        amp_gemm_desc g = product(t, m, n, k, p->ab, p->d);
        unsigned char *before = (unsigned char *)t_host(t, m * n * 4), *after = (unsigned char *)t_host(t, m * n * 4);
        g.act = p->act;
        g.backward = p->bias == 'b';
        g.flags = p->flags;
        g.bias = like(t, p->bias, p->d, n);
        g.aux = like(t, p->aux, p->d, m * n);
        g.dbias = like(t, p->dbias, p->d, n);
        t_get(t, before, g.d.data, m * n * amp_dtype_size(p->d));
        t_note(t, "%s -> %s, act %d, bias %c, aux %c, dbias %c, flags %u", amp_dtype_name(p->ab), amp_dtype_name(p->d),
            (int)p->act, p->bias, p->aux, p->dbias, (unsigned)p->flags);
        if (amp_dtype_size(p->ab) == 1u && !p->flags && !ref_has_f8(t->ctx)) continue;
        if (!CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g))) continue;
        CHECK(strstr(text, "amp_gemm: [32,64] x [64,48]") != NULL);
#ifdef AMP_HOSTCUDA /* an sm_90 whose refusals are known; a GPU may know more or less */
        if (t->place->kind == T_KIND_CUDA && !getenv("HCU_ARCH"))
            t_check(t, has_words(text, p->words), __FILE__, __LINE__, "\"%s\" should say %s", text, p->words);
#endif
        if (t->place->kind == T_KIND_CPU) {
            CHECK(has_words(text, "CPU kernels, "));
            CHECK(strstr(text, strstr(amp_ctx_name(t->ctx), ": ") + 1) != NULL); /* of this path */
        }
        t_get(t, after, g.d.data, m * n * amp_dtype_size(p->d));
        CHECK_BITS(after, before, m * n * amp_dtype_size(p->d), 1); /* nothing ran */
        t_clear(t);
    }
    {
        amp_gemm_desc g = product(t, m, n, k, AMP_F32, AMP_F32);
        CHECK_STATUS(amp_gemm_explain(t->ctx, NULL, 9, &g), AMP_ERR_INVALID_ARG, "amp_gemm_explain text");
        CHECK_STATUS(amp_gemm_explain(t->ctx, text, 0, &g), AMP_ERR_INVALID_ARG, "amp_gemm_explain bytes");
        CHECK_STATUS(amp_gemm_explain(t->ctx, text, 9, NULL), AMP_ERR_INVALID_ARG, "amp_gemm_explain desc");
        CHECK_OK(amp_gemm_explain(t->ctx, text, 9, &g));
        CHECK(strlen(text) == 8);
        g.m = 0;
        CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
        CHECK(strcmp(text, "nothing to do") == 0);
    }
}

#ifdef AMP_HOSTCUDA
/* What depends on the device: FP8 from sm_89 on, in any layout on sm_100; BF16 from sm_80 on. */
static void devices(t_run *t) {
    static const int arch[4][2] = {{7, 5}, {8, 0}, {8, 9}, {10, 0}};
    amp_ctx *keep = t->ctx;
    char text[400];
    int i;
    for (i = 0; i < 4; i++) {
        amp_gemm_desc g;
        amp_status st;
        hcu_set_arch(0, arch[i][0], arch[i][1]);
        if (!CHECK_OK(t_create(t->place, &t->ctx, NULL, NULL))) break;
        t_note(t, "sm_%d%d", arch[i][0], arch[i][1]);
        g = product(t, 32, 32, 32, AMP_BF16, AMP_BF16);
        CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
        CHECK(has_words(text, i == 0 ? "plain kernel|sm_80" : "cuBLASLt"));
        g = product(t, 32, 32, 32, AMP_F8E4M3, AMP_BF16);
        st = amp_gemm(t->ctx, &g);
        if (i < 2)
            CHECK(st == AMP_ERR_UNSUPPORTED && strstr(amp_last_error(t->ctx), "sm_89") != NULL);
        else
            CHECK_OK(st);
        g.trans_b = 0;
        st = amp_gemm(t->ctx, &g);
        if (i < 3)
            CHECK_EQ(st, AMP_ERR_UNSUPPORTED);
        else
            CHECK_OK(st);
        t_clear(t);
        amp_ctx_destroy(t->ctx);
    }
    t->ctx = keep;
    hcu_set_arch(0, 9, 0);
}
#endif

/* Refusals of FP8 name what is wrong. On the CPU all of it runs. */
static void f8_refused(t_run *t) {
    static const char *const words[] = {"trans_a", "trans_b", "16", "both f8e5m2", "beta", "16 bytes", "f8e4m3"};
    size_t i;
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        static const amp_dtype ds[] = {AMP_F16, AMP_F16, AMP_F16, AMP_F16, AMP_F8E4M3, AMP_F16, AMP_F8E5M2};
        amp_gemm_desc g = product(t, 32, 32, 32, i == 3 ? AMP_F8E5M2 : AMP_F8E4M3, ds[i]);
        amp_status st;
        if (i == 0) g.trans_a = 1;
        if (i == 1) g.trans_b = 0;
        if (i == 2) g.k = 24; /* a ragged m is fine: paths.f8_any_rows */
        if (i == 4) g.beta = amp_opt(1);
        if (i == 5) g.a = amp_arr(t_put_at(t, t_host(t, 32 * 32), 32 * 32, 8), AMP_F8E4M3);
        st = amp_gemm(t->ctx, &g);
        t_note(t, "case %d", (int)i);
        if (t->place->kind == T_KIND_CPU)
            CHECK_OK(st);
        else
            CHECK(st == AMP_ERR_UNSUPPORTED && strstr(amp_last_error(t->ctx), words[i]) != NULL &&
                strstr(amp_last_error(t->ctx), "AMP_GEMM_EMULATE") != NULL);
        g.flags = AMP_GEMM_EMULATE;
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_clear(t);
    }
}

/* The last batch of an epoch has any number of rows; cuBLASLt wants multiples of 16 of the other sizes only. */
static void f8_any_rows(t_run *t) {
    size_t rows;
    for (rows = 1; rows < 40; rows += 7) {
        amp_gemm_desc g = product(t, rows, 32, 32, AMP_F8E4M3, AMP_F16);
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_note(t, "%d rows", (int)rows);
        t_clear(t);
    }
    t_note(t, "operands that begin at 16 bytes, and not at 32");
    {
        amp_gemm_desc g = product(t, 32, 32, 32, AMP_F8E4M3, AMP_F16);
        g.a.data = t_put_at(t, t_host(t, 32 * 32), 32 * 32, 16);
        g.b.data = t_put_at(t, t_host(t, 32 * 32), 32 * 32, 16);
        g.d.data = t_put_at(t, t_host(t, 32 * 64), 32 * 64, 16);
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_clear(t);
    }
}

/* One shape, one alignment: what tells the two products apart is backward alone. */
static void forward_after_backward(t_run *t) {
    amp_gemm_desc g = product(t, 16, 16, 16, AMP_F16, AMP_F16);
    uint16_t host[256], got[256];
    int i, pass;
    for (pass = 0; pass < 4; pass++) {
        for (i = 0; i < 256; i++)
            host[i] = 0x3c00; /* 1 */
        t_set(t, g.a.data, host, sizeof host);
        g.aux = amp_arr(t_put(t, host, sizeof host), AMP_F16);
        for (i = 0; i < 256; i++)
            host[i] = 0xbc00; /* -1: each sum is -16 */
        t_set(t, g.b.data, host, sizeof host);
        g.act = pass < 2 ? AMP_GELU : AMP_RELU;
        g.backward = pass % 2 == 0;
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_get(t, got, g.d.data, sizeof got);
        for (i = 0; i < 256; i++) {
            float y = amp_load(got, AMP_F16, (size_t)i);
            CHECK(g.backward ? y <= -16.0f && y > -18.0f : y > -0.01f && y <= 0.0f); /* at 1, it is 1 or 1.083 */
        }
        t_get(t, got, g.aux.data, sizeof got);
        for (i = 0; i < 256; i++)
            CHECK_EQ(got[i], g.backward ? 0x3c00 : 0xcc00);
    }
}

static void errors(t_run *t) {
    float x[64] = {0};
    void *p = t_put(t, x, sizeof x), *q = t_put(t, x, sizeof x);
    amp_gemm_desc good = product(t, 4, 4, 4, AMP_F32, AMP_F32), d;
    good.aux = amp_arr(p, AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &good));
    d = good;
    d.flags = 64;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.flags");
    d = good;
    d.scale_a = (const float *)p;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.scale_a FP8");
    d = good;
    d.scale_b = (const float *)p;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.scale_b FP8");
    d = good;
    d.scale_d = (const float *)p;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.scale_d FP8");
    d = good;
    d.amax_d = (float *)q;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm amax_d FP8");
    d = good;
    d.act = AMP_GELU;
    d.backward = 1;
    d.bias = amp_arr(q, AMP_F32);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.bias");
    d = good;
    d.act = AMP_RELU;
    d.backward = 1;
    d.aux.data = NULL;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.aux");
    d = good;
    d.dbias = amp_arr(q, AMP_F32);
    d.batch = 2;
    d.stride_a = d.stride_b = AMP_BROADCAST;
    CHECK(amp_gemm(t->ctx, &d) == AMP_ERR_INVALID_ARG);
    d = good;
    d.dbias = amp_arrn(q, AMP_F32, 3);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.dbias count 3");
    d = good;
    d.dbias = amp_arr(d.d.data, AMP_F32);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.dbias overlap");
    t_note(t, "no rows: no bias gradient");
    d = good;
    d.m = 0;
    d.aux.data = NULL;
    x[0] = 3;
    d.dbias = amp_arr(t_put(t, x, 16), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, x, d.dbias.data, 16);
    CHECK_F32(x[0], 0.0f);
}

/* Where the factors may be: beta 0 does not read C, whatever reads alpha; F16 sums and TF32 keep the bounds that their
   flags state. */
static void factors_and_flags(t_run *t) {
    float zero = 0, nan[4], got[4];
    size_t i, j, l, m = 32, n = 32, k = 64, round;
    amp_gemm_desc g = product(t, 2, 2, 2, AMP_F32, AMP_F32);
    for (i = 0; i < 4; i++)
        nan[i] = ref_f32(0x7fc00000);
    t_set(t, g.d.data, nan, sizeof nan);
    g.alpha_ptr = (const float *)t_put(t, &zero, 4);
    CHECK_OK(amp_gemm(t->ctx, &g));
    t_get(t, got, g.d.data, sizeof got);
    for (i = 0; i < 4; i++)
        CHECK(got[i] == 0);
    for (round = 0; round < 3; round++) {
        static const uint32_t flags[3] = {AMP_GEMM_TF32, AMP_GEMM_F16_SUM, AMP_GEMM_REDUCED};
        static const double each[3] = {9.8e-4 /* 2 * 2^-11 */, 64 * 4.9e-4 /* k * 2^-11 */, 2e-3};
        amp_dtype type = round ? AMP_F16 : AMP_F32;
        size_t size = amp_dtype_size(type);
        void *a = t_host(t, size * m * k), *b = t_host(t, size * n * k), *d = t_host(t, size * m * n);
        t_fill_real(t, a, type, m * k, 1.0f);
        t_fill_real(t, b, type, n * k, 1.0f);
        g = product(t, m, n, k, type, type);
        t_set(t, g.a.data, a, size * m * k);
        t_set(t, g.b.data, b, size * n * k);
        g.flags = flags[round];
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_get(t, d, g.d.data, size * m * n);
        t_note(t, "flags %u", (unsigned)g.flags);
        for (i = 0; i < m; i++)
            for (j = 0; j < n; j++) {
                double sum = 0, all = 0;
                for (l = 0; l < k; l++) {
                    double v = (double)amp_load(a, type, i * k + l) * (double)amp_load(b, type, j * k + l);
                    sum += v;
                    all += fabs(v);
                }
                CHECK_NEAR((double)amp_load(d, type, i * n + j), sum, each[round] * all + ref_half_ulp(sum, type));
            }
        t_clear(t);
    }
}

/* Sums in F16 demand factors that are halves: one that is not, after one that is, with the same shapes. */
static void factors_of_half_sums(t_run *t) {
    static const float factors[4] = {1.0f, 1.00048828125f, 1.0f, 0.5f}; /* the second one is no half */
    const size_t n = 16;
    uint16_t threes[256], ones[256], zeros[256] = {0}, got[256];
    size_t i, which, round;
    for (i = 0; i < n * n; i++) {
        threes[i] = (uint16_t)ampi_nearest(3.0f, AMP_F16);
        ones[i] = i / n == i % n ? (uint16_t)ampi_nearest(1.0f, AMP_F16) : 0; /* the unit matrix */
    }
    for (which = 0; which < 2; which++)
        for (round = 0; round < 4; round++) {
            amp_gemm_desc g = product(t, n, n, n, AMP_F16, AMP_F16);
            t_set(t, g.a.data, which ? zeros : threes, sizeof ones);
            t_set(t, g.b.data, ones, sizeof ones);
            t_set(t, g.d.data, threes, sizeof threes);
            g.flags = AMP_GEMM_F16_SUM;
            if (which) g.beta = amp_opt(factors[round]);
            if (!which) g.alpha = amp_opt(factors[round]);
            t_note(t, "%s %g", which ? "beta" : "alpha", (double)factors[round]);
            CHECK_OK(amp_gemm(t->ctx, &g));
            t_get(t, got, g.d.data, sizeof got);
            for (i = 0; i < n * n; i++)
                CHECK_EQ(got[i], ampi_nearest(3.0f * factors[round], AMP_F16));
            t_clear(t);
        }
}

/* Tuning runs nothing of the caller's, and the product afterwards is the same within the bound. */
static void tuned(t_run *t) {
    size_t m = 48, n = 64, k = 320, i;
    float *x = (float *)t_host(t, 4 * m * n), *y = (float *)t_host(t, 4 * m * n), *z = (float *)t_host(t, 4 * m * n);
    amp_gemm_desc g = product(t, m, n, k, AMP_F16, AMP_F32);
    void *a = t_host(t, 2 * m * k), *b = t_host(t, 2 * n * k);
    t_fill_real(t, a, AMP_F16, m * k, 1.0f);
    t_fill_real(t, b, AMP_F16, n * k, 1.0f);
    t_fill_real(t, x, AMP_F32, m * n, 1.0f);
    t_set(t, g.a.data, a, 2 * m * k);
    t_set(t, g.b.data, b, 2 * n * k);
    t_set(t, g.d.data, x, 4 * m * n);
    g.beta = amp_opt(1.0f);
    g.act = AMP_GELU;
    g.aux = like(t, 'f', AMP_F32, m * n);
    g.bias = like(t, 'f', AMP_F32, n);
    g.dbias = like(t, 'f', AMP_F32, n);
    CHECK_OK(amp_gemm_tune(t->ctx, &g));
    t_get(t, y, g.d.data, 4 * m * n);
    CHECK_BITS(y, x, m * n, 4);
    t_get(t, y, g.aux.data, 4 * m * n);
    for (i = 0; i < m * n && y[i] == 0; i++) {
    }
    CHECK_EQ(i, m * n);
    CHECK_OK(amp_gemm(t->ctx, &g));
    t_get(t, y, g.d.data, 4 * m * n);
    t_get(t, z, g.aux.data, 4 * m * n);
    for (i = 0; i < m * n; i++) {
        double sum = (double)x[i], size = fabs(sum);
        size_t l;
        for (l = 0; l < k; l++) {
            double v = (double)amp_load(a, AMP_F16, i / n * k + l) * (double)amp_load(b, AMP_F16, i % n * k + l);
            sum += v;
            size += fabs(v);
        }
        CHECK_NEAR((double)z[i], sum, ((double)k + 4) * 5.97e-8 * size);
        CHECK_NEAR((double)y[i], ref_gelu(sum), ((double)k + 4) * 5.97e-8 * size * 1.13 + 5e-7 * fabs(sum));
    }
}

/* A layer's products, tuned before it has run: dtypes and the record come as forward gives them; nothing is written. */
static void tuned_layer(t_run *t) {
    size_t rows = 32, in = 16, out = 48, i;
    unsigned char before[4 * 48 * 48], after[4 * 48 * 48];
    amp_precision record = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_array *const outputs[4] = {&l.y, &l.dx, &l.dw, &l.dbias};
    l.rows = rows;
    l.in = in;
    l.out = out;
    l.x = like(t, 's', AMP_F16, rows * in);
    l.w = like(t, 's', AMP_F16, out * in);
    l.y = like(t, 's', AMP_F16, rows * out);
    l.dy = like(t, 's', AMP_F16, rows * out);
    l.dx = like(t, 's', AMP_F16, rows * in);
    l.dw = like(t, 's', AMP_F16, out * in);
    l.dbias = like(t, 'f', AMP_F32, out);
    l.y.dtype = l.dy.dtype = l.dx.dtype = AMP_AUTO;
    CHECK_STATUS(amp_linear_tune(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_tune y record");
    l.record = &record;
    memset(before, 0x5a, sizeof before);
    for (i = 0; i < 4; i++)
        t_set(t, outputs[i]->data, before, 2 * out);
    CHECK_OK(amp_linear_tune(t->ctx, &l));
    CHECK(record.made);
    CHECK_EQ(record.y, AMP_F16);
    for (i = 0; i < 4; i++) {
        t_get(t, after, outputs[i]->data, 2 * out);
        CHECK_BITS(after, before, 2 * out, 1);
    }
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_OK(amp_linear_backward(t->ctx, &l));
    CHECK_EQ(amp_linear_tune(NULL, &l), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_linear_tune(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_linear_tune desc");
    l.flags = 64;
    CHECK_STATUS(amp_linear_tune(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_tune flags");
}

/* Rows that begin anywhere: which leading dimension, and which would be better. */
static void explained_alignment(t_run *t) {
    amp_gemm_desc g = product(t, 32, 130, 64, AMP_F16, AMP_F16);
    char text[400];
    g.n = 50;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, g.trans_b ? "ldd is 50|64 would do" : "ldb is 50|64 would do"));
    g.n = 130;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, g.trans_b ? "ldd is 130|192 would do" : "ldb is 130|192 would do"));
    g.n = 48;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "cuBLASLt|!faster"));
    g.a.data = (char *)g.a.data + 2;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "faster if a began"));
    g = product(t, 32, 48, 64, AMP_F16, AMP_F16); /* one row of c for all batches, of which there is one */
    g.c = amp_arr(t_put(t, t_host(t, 2 * 32 * 48), 2 * 32 * 48), AMP_F16);
    g.stride_c = AMP_BROADCAST;
    g.beta = amp_opt(1.0f);
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "cuBLASLt|!plain"));
    g.batch = 2;
    g.a = amp_arr(t_alloc(t, 2 * 2 * 32 * 64), AMP_F16); /* the operands of two */
    g.b = amp_arr(t_alloc(t, 2 * 2 * 48 * 64), AMP_F16);
    g.d = amp_arr(t_alloc(t, 2 * 2 * 32 * 48), AMP_F16);
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "plain kernel|this batch"));
}
/* Factors of FP8 at any float: cuBLASLt refuses those that are not at multiples of 16 bytes, and is still used. */
static void fp8_factors_anywhere(t_run *t) {
    const float many[8] = {0, 2, 0, 0, 0, 0, 0.5f, 0};
    const float *factors = (const float *)t_put(t, many, sizeof many);
    amp_gemm_desc g = product(t, 32, 48, 64, AMP_F8E4M3, AMP_BF16);
    float got;
    uint16_t d = 0;
    char text[400];
    uint8_t ones[64 * 48];
    memset(ones, 0x38, sizeof ones); /* 1.0 in E4M3 */
    g.a = amp_arr(t_put(t, ones, 64 * 32), AMP_F8E4M3);
    g.b = amp_arr(t_put(t, ones, 64 * 48), AMP_F8E4M3);
    g.scale_a = factors + 1;
    g.scale_b = factors + 6;
    if (amp_gemm(t->ctx, &g) == AMP_ERR_UNSUPPORTED) {
        t_skip(t, "no FP8 here");
        return;
    }
    t_get(t, &d, g.d.data, 2);
    got = amp_load(&d, AMP_BF16, 0);
    CHECK_EQ((long long)got, 64); /* terms, times 2, times 0.5 */
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "cuBLASLt|!plain"));
}
/* A part of a weight with a model copy: the explanation speaks of the copy's address. */
static void explained_slice(t_run *t) {
    amp_gemm_desc g = product(t, 32, 48, 64, AMP_F16, AMP_F16);
    amp_params *p = NULL;
    amp_param_desc weight = AMP_ZERO;
    amp_params_desc set = AMP_ZERO;
    char text[400];
    set.model = AMP_F16;
    weight.count = 48 * 64 + 16;
    CHECK_OK(amp_params_create(&p, t->ctx, &set));
    CHECK_OK(amp_params_add(p, &weight));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    g.b = amp_arr((char *)amp_param_get(p, 0).master.data + 8 * 4, AMP_F32);
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "cuBLASLt|!faster")); /* 16 bytes into it */
    g.b.data = (char *)g.b.data + 4;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(has_words(text, "faster if b began"));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_params_destroy(p);
}
/* In a scope an explanation is that of the product: its dtypes, and the refusal of a full arena. But no cast runs. */
static void explained_in_scope(t_run *t) {
    amp_gemm_desc g = product(t, 16, 16, 16, AMP_F32, AMP_F32);
    amp_autocast_desc scope = AMP_ZERO;
    amp_dtype type = AMP_F32;
    amp_policy policy;
    char text[400];
    amp_gemm_desc outside = product(t, 16, 16, 16, AMP_F16, AMP_F16);
    outside.d.dtype = AMP_AUTO;
    outside.d_dtype = &type;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &outside));
    CHECK_EQ(type, AMP_F16);
    g.d.dtype = AMP_AUTO;
    g.d_dtype = &type;
    scope.low = AMP_BF16;
    scope.arena = 4096;
    CHECK_OK(amp_autocast_begin(t->ctx, &scope));
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(strstr(text, "bf16 -> bf16") != NULL);
    CHECK_EQ(type, AMP_BF16);
    CHECK_EQ(amp_autocast_get(t->ctx).casts, 0);
    g.a.data = NULL;
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_INVALID_ARG, "amp_gemm_explain desc.a NULL");
    g.a.data = g.b.data;
    g.m = g.n = g.k = 64;
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_NO_MEMORY, "amp_gemm_explain arena");
    CHECK(strstr(text, "bf16 -> bf16") != NULL); /* as it was */
    CHECK_OK(amp_autocast_end(t->ctx));
    t_note(t, "a batch of one product is a matmul, of two a bmm: the lists tell them apart");
    CHECK_OK(amp_policy_init(t->ctx, &policy, AMP_PRESET_AMP, NULL));
    CHECK_OK(amp_policy_edit(t->ctx, &policy, AMP_OP_BMM, AMP_CLASS_F32));
    scope.policy = &policy;
    g.m = g.n = g.k = 8;
    CHECK_OK(amp_autocast_begin(t->ctx, &scope));
    for (g.batch = 0; g.batch < 3; g.batch++) {
        CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
        CHECK_EQ(type, g.batch > 1 ? AMP_F32 : AMP_BF16);
    }
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}

static int next_descriptor(void) { /* which one a file that is opened now would get; where that cannot be asked, 0 */
#ifdef AMP_HOSTCUDA
    int d = dup(0);
    (void)close(d);
    return d;
#else
    return 0;
#endif
}
/* The plan file: what one context found out serves the next; a wrong file is refused and changes nothing. */
static void plan_file(t_run *t) {
    static const size_t shapes[3][3] = {{16, 32, 64}, {40, 24, 8}, {16, 16, 512}};
    const char *path = t_file("plans");
    FILE *f;
    long bytes, i;
    unsigned char *data;
    amp_ctx *keep = t->ctx, *next = NULL;
    int s, descriptor;
    for (s = 0; s < 3; s++) {
        amp_gemm_desc g = product(t, shapes[s][0], shapes[s][1], shapes[s][2], AMP_F16, AMP_F16);
        CHECK_OK(s == 2 ? amp_gemm_tune(t->ctx, &g) : amp_gemm(t->ctx, &g));
    }
    CHECK_OK(amp_cuda_plans_save(t->ctx, path));
    CHECK_STATUS(amp_cuda_plans_save(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_cuda_plans_save path");
    CHECK_STATUS(amp_cuda_plans_load(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_cuda_plans_load path");
    CHECK_STATUS(amp_cuda_plans_save(t->ctx, "/nowhere/at/all"), AMP_ERR_IO, "amp_cuda_plans_save /nowhere/at/all");
    CHECK_STATUS(amp_cuda_plans_load(t->ctx, "/nowhere/at/all"), AMP_ERR_IO, "amp_cuda_plans_load /nowhere/at/all");
    CHECK_EQ(amp_cuda_plans_load(NULL, path), AMP_ERR_INVALID_ARG);
    if (!CHECK_OK(t_create(t->place, &next, NULL, NULL))) return;
    t->ctx = next;
    descriptor = next_descriptor();
    CHECK_OK(amp_cuda_plans_load(next, path));
    CHECK_EQ(next_descriptor(), descriptor); /* the file is closed */
#ifdef AMP_HOSTCUDA
    {
        long asked = hcu_group_calls(HCU_HEURISTIC);
        for (s = 0; s < 3; s++) {
            amp_gemm_desc g = product(t, shapes[s][0], shapes[s][1], shapes[s][2], AMP_F16, AMP_F16);
            CHECK_OK(amp_gemm(t->ctx, &g));
        }
        CHECK_EQ(hcu_group_calls(HCU_HEURISTIC), asked); /* nothing was asked again */
    }
    t_clear(t);
    t_note(t, "an algorithm that cuBLASLt does not take any more is found anew");
    CHECK_OK(amp_cuda_plans_load(next, path));
    {
        long asked = hcu_group_calls(HCU_HEURISTIC);
        amp_gemm_desc g = product(t, 16, 32, 64, AMP_F16, AMP_F16);
        hcu_fail_call("cublasLtMatmulAlgoCheck", 1, 0, 0);
        CHECK_OK(amp_gemm(t->ctx, &g));
        CHECK_EQ(hcu_group_calls(HCU_HEURISTIC), asked + 1);
    }
#endif
    t_clear(t);
    t_note(t, "a damaged file");
    f = fopen(path, "rb");
    if (!CHECK(f != NULL)) return;
    (void)fseek(f, 0, SEEK_END);
    bytes = ftell(f);
    rewind(f);
    data = (unsigned char *)t_host(t, (size_t)bytes + 1);
    CHECK(fread(data, 1, (size_t)bytes, f) == (size_t)bytes);
    (void)fclose(f);
    for (i = 0; i < bytes + 3; i += 1 + (long)t_below(t, 97)) { /* one bit, then a byte too few, one too many */
        unsigned char bit = (unsigned char)(1u << t_below(t, 8));
        long length = i < bytes ? bytes : i == bytes ? bytes - 1 : bytes + 1;
        if (i < bytes) data[i] ^= bit;
        f = fopen(path, "wb");
        if (!f) break;
        CHECK(fwrite(data, 1, (size_t)length, f) == (size_t)length);
        (void)fclose(f);
        t_note(t, "byte %ld of %ld", i, bytes);
        CHECK_STATUS(amp_cuda_plans_load(next, path), AMP_ERR_FORMAT, "amp_cuda_plans_load");
        if (i < bytes) data[i] ^= bit;
    }
    t->ctx = keep;
    amp_ctx_destroy(next);
}

/* Two layers, the first one's act and dbias done by the second one's backward: FP32 the same bits as one after the
   other; 16 bits within one more rounding. */
static void chain_of_two(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    int round;
    for (round = 0; round < 36; round++) {
        amp_dtype type = types[round % 3];
        amp_act act = (amp_act)(round / 3 % 3);
        size_t rows = 1 + t_below(t, 40), in = 1 + t_below(t, 20), mid = round & 1 ? 16 : 1 + t_below(t, 20),
               out = 1 + t_below(t, 20), size = amp_dtype_size(type), i;
        amp_linear_desc l1 = AMP_ZERO, l2 = AMP_ZERO;
        void *x = t_host(t, rows * in * size), *w1 = t_host(t, mid * in * size), *w2 = t_host(t, out * mid * size),
             *dy2 = t_host(t, rows * out * size), *dy[2];
        float *db[2], *db0 = (float *)t_host(t, 4 * mid);
        int fused;
        t_fill_real(t, x, type, rows * in, 1.0f);
        t_fill_real(t, w1, type, mid * in, 0.5f);
        t_fill_real(t, w2, type, out * mid, 0.5f);
        t_fill_real(t, dy2, type, rows * out, 1.0f);
        t_fill_real(t, db0, AMP_F32, mid, 1.0f);
        l1.rows = rows;
        l1.in = in;
        l1.out = mid;
        l1.act = act;
        l1.accumulate = t_below(t, 2);
        l1.x = amp_arr(t_put(t, x, rows * in * size), type);
        l1.w = amp_arr(t_put(t, w1, mid * in * size), type);
        l1.y = amp_arr(t_alloc(t, rows * mid * size), type);
        l1.aux = amp_arr(t_alloc(t, rows * mid * size), type);
        l1.dy = amp_arr(t_alloc(t, rows * mid * size), type);
        l1.dw = amp_arr(t_put(t, t_host(t, mid * in * size), mid * in * size), type);
        l2.rows = rows;
        l2.in = mid;
        l2.out = out;
        l2.x = l1.y;
        l2.w = amp_arr(t_put(t, w2, out * mid * size), type);
        l2.y = amp_arr(t_alloc(t, rows * out * size), type);
        l2.dx = l1.dy;
        CHECK_OK(amp_linear_forward(t->ctx, &l1));
        CHECK_OK(amp_linear_forward(t->ctx, &l2));
        for (fused = 0; fused < 2; fused++) {
            t_note(t, "round %d: %s, act %d, %d x %d x %d x %d, fused %d", round, amp_dtype_name(type), (int)act,
                (int)rows, (int)in, (int)mid, (int)out, fused);
            l2.dy = amp_arr(t_put(t, dy2, rows * out * size), type);
            l1.dbias = amp_arr(t_put(t, db0, 4 * mid), AMP_F32);
            l1.after = fused ? &l2 : NULL;
            l2.before = fused ? &l1 : NULL;
            CHECK_OK(amp_linear_backward(t->ctx, &l2));
            CHECK_OK(amp_linear_backward(t->ctx, &l1));
            dy[fused] = t_host(t, rows * mid * size);
            db[fused] = (float *)t_host(t, 4 * mid);
            t_get(t, dy[fused], l1.dy.data, rows * mid * size);
            t_get(t, db[fused], l1.dbias.data, 4 * mid);
        }
        if (type == AMP_F32) {
            CHECK_BITS(dy[1], dy[0], rows * mid, size);
            CHECK_BITS(db[1], db[0], mid, 4);
        } else {
            double *apart = (double *)t_host(t, sizeof(double) * mid); /* of a column's sum: those of its elements */
            double less = t->place->kind == T_KIND_CUDA && act == AMP_GELU ? 2e-4 : 2e-5; /* cuBLASLt's derivative */
            for (i = 0; i < rows * mid; i++) {
                double a = (double)amp_load(dy[0], type, i), b = (double)amp_load(dy[1], type, i);
                double half_ulp = fmax(ref_half_ulp(a, type), ref_half_ulp(b, type));
                CHECK_NEAR(b, a, 8 * half_ulp + less);
                apart[i % mid] += 9 * half_ulp + 1e-5 + less; /* a sum may be of gradients before they are rounded */
            }
            for (i = 0; i < mid; i++)
                CHECK_NEAR((double)db[1][i], (double)db[0][i], apart[i]);
        }
        t_clear(t);
    }
    {
        amp_linear_desc a = AMP_ZERO, b = AMP_ZERO;
        float x[16] = {0};
        a.rows = 2;
        a.in = 2;
        a.out = 2;
        a.x = a.w = a.y = a.dy = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        b = a;
        b.dx = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        t_note(t, "layers of a chain point to each other");
        b.before = &a;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before->after");
        CHECK_STATUS(amp_linear_forward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_forward before->after");
        a.after = &a;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before->after");
        CHECK_STATUS(amp_linear_backward(t->ctx, &a), AMP_ERR_INVALID_ARG, "amp_linear_backward after->before");
        a.after = &b;
        b.before = NULL;
        CHECK_STATUS(amp_linear_backward(t->ctx, &a), AMP_ERR_INVALID_ARG, "amp_linear_backward after->before");
        CHECK_STATUS(amp_linear_tune(t->ctx, &a), AMP_ERR_INVALID_ARG, "amp_linear_tune after->before");
        t_note(t, "and what one makes the other reads");
        b.before = &a;
        a.out = 3;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before [2,3] [2,2]");
        CHECK_STATUS(amp_linear_backward(t->ctx, &a), AMP_ERR_INVALID_ARG, "amp_linear_backward after [2,2] [2,3]");
        a.out = 2;
        a.rows = 1;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before [1,2] [2,2]");
        a.rows = 2;
        a._end = 1;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_UNINIT, "amp_linear_backward before");
        a._end = 0;
        b._begin = 1;
        CHECK_STATUS(amp_linear_backward(t->ctx, &a), AMP_ERR_UNINIT, "amp_linear_backward after");
        b._begin = 0;
        a.act = (amp_act)99;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before->act 99");
        a.act = AMP_ACT_NONE;
        b.dx.data = NULL;
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward dx before");
        a.act = AMP_GELU;
        b.dx = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward before->aux");
    }
}

/* Bias gradients of shapes that need several slices of rows and several stripes of columns. */
static void bias_gradients(t_run *t) {
    static const size_t shapes[][2] = {{1, 1}, {3, 300}, {700, 8}, {1000, 17}, {2050, 264}, {65, 1030}};
    size_t s, r, c;
    for (s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1];
        amp_dtype type = s & 1 ? AMP_F16 : AMP_BF16;
        amp_linear_desc l = AMP_ZERO;
        void *dy = t_host(t, 2 * rows * cols);
        double *sum = (double *)t_host(t, 8 * cols), *magnitude = (double *)t_host(t, 8 * cols);
        float *got = (float *)t_host(t, 4 * cols);
        if (t_slow(t) && rows * cols > 20000) rows = 20000 / cols;
        t_fill_real(t, dy, type, rows * cols, 1.0f);
        l.rows = rows;
        l.in = 1;
        l.out = cols;
        l.accumulate = 1;
        l.dy = amp_arr(t_put(t, dy, 2 * rows * cols), type);
        l.dbias = amp_arr(t_put(t, t_host(t, 4 * cols), 4 * cols), AMP_F32);
        t_note(t, "%d x %d", (int)rows, (int)cols);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        for (r = 0; r < rows; r++)
            for (c = 0; c < cols; c++) {
                sum[c] += 2 * (double)amp_load(dy, type, r * cols + c);
                magnitude[c] += 2 * fabs((double)amp_load(dy, type, r * cols + c));
            }
        t_get(t, got, l.dbias.data, 4 * cols);
        for (c = 0; c < cols; c++)
            CHECK_NEAR((double)got[c], sum[c], ldexp(magnitude[c], -18)); /* what the rule of sums promises */
        t_clear(t);
    }
}

/* Matrices whose elements lie further apart than 2^31: A, B and D, by their leading dimension and by their batch
   stride. */
static void past_2_31(t_run *t) {
    size_t ld = (size_t)1 << 30, bytes = 2 * ld + 64, which, i, j, l;
    char *far = NULL;
    if (!t_full()) {
        t_skip(t, "2 GiB to write: with --full");
        return;
    }
    if (sizeof(size_t) < 8 || amp_alloc(t->ctx, (void **)&far, bytes, "far") != AMP_OK) {
        t_skip(t, "no 2 GiB of memory");
        return;
    }
    for (which = 0; which < 6; which++) { /* 3 x 3 x 4, or 3 batches of 1 x 3 x 4 */
        size_t batch = which < 3 ? 1 : 3, m = batch == 1 ? 3 : 1, n = 3, k = 4, strided = which % 3;
        unsigned char a[12], b[36], d[9];
        amp_gemm_desc g = AMP_ZERO;
        for (i = 0; i < 12; i++)
            a[i] = (unsigned char)ampi_encode(ampi_bits((float)t_below(t, 5)), AMP_F8E4M3, AMP_NEAREST, 0, 0);
        for (i = 0; i < 36; i++)
            b[i] = (unsigned char)ampi_encode(ampi_bits((float)t_below(t, 5)), AMP_F8E4M3, AMP_NEAREST, 0, 0);
        g.m = m;
        g.n = n;
        g.k = k;
        g.batch = batch;
        g.trans_b = 1;
        g.flags = AMP_GEMM_EMULATE;
        g.a = amp_arr(t_put(t, a, sizeof a), AMP_F8E4M3);
        g.b = amp_arr(t_put(t, b, sizeof b), AMP_F8E4M3);
        g.d = amp_arr(t_put(t, d, sizeof d), AMP_F8E4M3);
        if (batch > 1) g.stride_b = 12;
        for (i = 0; i < 3; i++) { /* the three rows, or batches, of one operand move apart */
            size_t row = strided == 0 ? 4 : strided == 1 ? (batch > 1 ? 12 : 4) : 3;
            if (strided < 2 && amp_copy(t->ctx, far + i * ld, (strided == 0 ? a : b) + i * row, row) != AMP_OK)
                CHECK(0);
        }
        if (strided == 0) {
            g.a.data = far;
            if (batch > 1)
                g.stride_a = ld;
            else
                g.lda = ld;
        }
        if (strided == 1) {
            g.b.data = far;
            if (batch > 1)
                g.stride_b = ld;
            else
                g.ldb = ld;
        }
        if (strided == 2) {
            g.d.data = far;
            if (batch > 1)
                g.stride_d = ld;
            else
                g.ldd = ld;
        }
        t_note(t, "operand %d, %d batches", (int)strided, (int)batch);
        if (!CHECK_OK(amp_gemm(t->ctx, &g))) break;
        if (strided == 2)
            for (i = 0; i < 3; i++)
                (void)amp_copy(t->ctx, d + 3 * i, far + i * ld, 3);
        else
            t_get(t, d, g.d.data, sizeof d);
        for (i = 0; i < 3; i++)
            for (j = 0; j < 3; j++) {
                float sum = 0;
                for (l = 0; l < k; l++)
                    sum += amp_load(a, AMP_F8E4M3, 4 * i + l) *
                        amp_load(b, AMP_F8E4M3, (batch > 1 ? 12 * i : 0) + 4 * j + l);
                CHECK_EQ(d[3 * i + j], ampi_encode(ampi_bits(sum), AMP_F8E4M3, AMP_NEAREST, 0, 1));
            }
        t_clear(t);
    }
    CHECK_OK(amp_free(t->ctx, far));
}

const t_test t_suite_paths[] = {{"paths.past_2_31", past_2_31, T_ALL}, {"paths.explained", explained, T_ALL},
    {"paths.factors_of_half_sums", factors_of_half_sums, T_ALL},
#ifdef AMP_HOSTCUDA
    {"paths.devices", devices, T_CUDA},
#endif
    {"paths.f8_refused", f8_refused, T_ALL}, {"paths.f8_any_rows", f8_any_rows, T_ALL},
    {"paths.forward_after_backward", forward_after_backward, T_ALL}, {"paths.errors", errors, T_ALL},
    {"paths.factors_and_flags", factors_and_flags, T_ALL}, {"paths.tuned", tuned, T_ALL},
    {"paths.tuned_layer", tuned_layer, T_ALL}, {"paths.explained_in_scope", explained_in_scope, T_ALL},
    {"paths.explained_alignment", explained_alignment, T_CUDA}, {"paths.explained_slice", explained_slice, T_CUDA},
    {"paths.fp8_factors_anywhere", fp8_factors_anywhere, T_CUDA}, {"paths.plan_file", plan_file, T_CUDA},
    {"paths.chain_of_two", chain_of_two, T_ALL}, {"paths.bias_gradients", bias_gradients, T_ALL}, {NULL, NULL, 0}};
