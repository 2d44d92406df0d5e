/* test_params.c - parameter sets: owned and adopted arrays, where weights come from, moves, errors.
   Guards: >>params. */
#include "set.h"

#include <time.h>

static uint16_t half_of(amp_dtype type, float x) { return (uint16_t)ref_encode((double)x, type, 0); }

/* Every combination of owned and adopted master, model copy and gradient, with and without init, for every model dtype:
   the weights come from init, else from an adopted master, else from an adopted model copy, else they are zero. All in
   one set. */
static void where_weights_come_from(t_run *t) {
    static const amp_dtype models[3] = {AMP_F16, AMP_BF16, AMP_F32};
    size_t m, n = 13, i, k;
    for (m = 0; m < 3; m++) {
        amp_dtype type = models[m];
        amp_params_desc d = AMP_ZERO;
        amp_params *p = NULL;
        float *init = (float *)t_host(t, 4 * n), *master = (float *)t_host(t, 4 * n), *want = (float *)t_host(t, 4 * n),
              *got;
        uint16_t *model = (uint16_t *)t_host(t, 2 * n), *got16, want16[13];
        void *adopted_master[16], *adopted_model[16], *adopted_grad[16];
        int mode[16];
        for (i = 0; i < n; i++) {
            init[i] = t_real(t);
            master[i] = t_real(t);
            model[i] = half_of(type == AMP_F32 ? AMP_F16 : type, t_real(t));
        }
        d.model = type;
        t_note(t, "model %s", amp_dtype_name(type));
        CHECK_OK(amp_params_create(&p, t->ctx, &d));
        for (k = 0; k < 16; k++) {
            amp_param_desc e = AMP_ZERO;
            mode[k] = (int)k;
            e.count = n;
            adopted_master[k] = adopted_model[k] = adopted_grad[k] = NULL;
            if (k & 1) {
                e.master = (float *)(adopted_master[k] = t_put_at(t, master, 4 * n, 4));
            }
            if (k & 2) {
                if (type != AMP_F32)
                    e.model = amp_arr(adopted_model[k] = t_put_at(t, model, 2 * n, 2), k & 8 ? AMP_AUTO : type);
                else if (!(k & 1)) { /* an FP32 model copy is the master: adopted through either member */
                    adopted_master[k] = t_put_at(t, master, 4 * n, 4);
                    e.model = amp_arr(adopted_master[k], AMP_F32);
                } else
                    e.model = amp_arr(adopted_master[k], AMP_F32); /* or both the same */
            }
            if (k & 4) {
                e.init = init;
            }
            if (k & 8) {
                adopted_grad[k] = t_alloc_at(t, 4 * n, 4);
                e.grad = amp_arr(adopted_grad[k], AMP_F32);
            }
            CHECK_OK(amp_params_add(p, &e));
        }
        CHECK_OK(amp_params_commit(p));
        CHECK_EQ(amp_params_count(p), 16);
        for (k = 0; k < 16; k++) {
            amp_array a = amp_param_get(p, k).master, b = amp_param_model(p, k), g = amp_param_grad(p, k);
            t_note(t, "model %s,%s%s%s%s", amp_dtype_name(type), mode[k] & 1 ? " master" : "",
                mode[k] & 2 ? " model" : "", mode[k] & 4 ? " init" : "", mode[k] & 8 ? " grad" : "");
            CHECK(a.data && b.data && g.data);
            CHECK(a.dtype == AMP_F32 && b.dtype == type && a.count == n && b.count == n && g.count == n);
            if (adopted_master[k]) CHECK(a.data == adopted_master[k]);
            if (adopted_model[k]) CHECK(b.data == adopted_model[k]);
            if (adopted_grad[k])
                CHECK(g.data == adopted_grad[k] && g.dtype == AMP_F32);
            else
                CHECK(g.dtype == type);
            if (type == AMP_F32) CHECK(a.data == b.data);
            for (i = 0; i < n; i++) {
                want[i] = 0.0f;
                if (adopted_model[k]) want[i] = ref_f32(ref_decode(model[i], type));
                if (adopted_master[k]) want[i] = master[i];
                if (mode[k] & 4) want[i] = init[i];
            }
            got = (float *)set_bits(t, a, n);
            CHECK_BITS(got, want, n, 4);
            if (type != AMP_F32) {
                for (i = 0; i < n; i++)
                    want16[i] = half_of(type, want[i]);
                got16 = (uint16_t *)set_bits(t, b, n);
                CHECK_BITS(got16, want16, n, 2);
            }
            for (i = 0; i < 2; i++) {
                amp_array v = amp_param_get(p, k).moment[i];
                size_t z;
                CHECK(v.data && v.dtype == AMP_F32 && v.count == n);
                got = (float *)set_bits(t, v, n);
                for (z = 0; z < n; z++)
                    want[z] = 0.0f;
                CHECK_BITS(got, want, n, 4);
            }
            if (!adopted_grad[k]) {
                unsigned char zero[4 * 13] = {0}, *gb = (unsigned char *)set_bits(t, g, n);
                CHECK_BITS(gb, zero, n * amp_dtype_size(g.dtype), 1);
            }
        }
        amp_params_destroy(p); /* adopted arrays are left alone: the harness frees them */
        t_clear(t);
    }
}

static void masters_none(t_run *t) { /* the model copy is the only one */
    static const amp_dtype models[2] = {AMP_F16, AMP_BF16};
    float init[5] = {0.1f, -70000.0f, 1e-8f, 3.0f, 1.0004883f};
    size_t m, i;
    for (m = 0; m < 2; m++) {
        amp_params_desc d = AMP_ZERO;
        amp_param_desc e = AMP_ZERO;
        amp_params *p = NULL;
        uint16_t want[5], own[5] = {1, 2, 3, 4, 5}, *got;
        void *dev = t_put(t, own, sizeof own);
        d.model = models[m];
        d.master = AMP_MASTER_NONE;
        d.moments = AMP_NONE;
        CHECK_OK(amp_params_create(&p, t->ctx, &d));
        e.count = 5;
        e.init = init;
        CHECK_OK(amp_params_add(p, &e));
        e.init = NULL;
        e.model = amp_arr(dev, AMP_AUTO);
        CHECK_OK(amp_params_add(p, &e));
        e.model = amp_arr(NULL, AMP_AUTO);
        CHECK_OK(amp_params_add(p, &e));
        e.master = (float *)dev;
        CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add master");
        CHECK_OK(amp_params_commit(p));
        for (i = 0; i < 3; i++)
            CHECK(amp_param_get(p, i).master.data == NULL && amp_param_get(p, i).moment[0].data == NULL);
        for (i = 0; i < 5; i++)
            want[i] = half_of(models[m], init[i]);
        got = (uint16_t *)set_bits(t, amp_param_model(p, 0), 5);
        CHECK_BITS(got, want, 5, 2);
        got = (uint16_t *)set_bits(t, amp_param_model(p, 1), 5);
        CHECK_BITS(got, own, 5, 2);
        got = (uint16_t *)set_bits(t, amp_param_model(p, 2), 5);
        memset(want, 0, sizeof want);
        CHECK_BITS(got, want, 5, 2);
        CHECK_OK(amp_params_master_to_model(p)); /* nothing to move */
        CHECK_OK(amp_params_model_to_master(p));
        got = (uint16_t *)set_bits(t, amp_param_model(p, 1), 5);
        CHECK_BITS(got, own, 5, 2);
        amp_params_destroy(p);
        t_clear(t);
    }
}

static void keep_f32(t_run *t) {
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    float init[4] = {0.1f, 0.2f, 0.3f, 1e-9f}, *got;
    d.model = AMP_BF16;
    d.moments = 1;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = 4;
    e.init = init;
    e.keep_f32 = 1;
    CHECK_OK(amp_params_add(p, &e));
    e.keep_f32 = 0;
    CHECK_OK(amp_params_add(p, &e));
    e.keep_f32 = 1;
    e.model = amp_arr(init, AMP_BF16);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add model");
    CHECK_OK(amp_params_commit(p));
    CHECK(amp_param_model(p, 0).dtype == AMP_F32 && amp_param_model(p, 0).data == amp_param_get(p, 0).master.data);
    CHECK(amp_param_grad(p, 0).dtype == AMP_F32 && amp_param_grad(p, 1).dtype == AMP_BF16 &&
        amp_param_model(p, 1).dtype == AMP_BF16);
    CHECK(amp_param_get(p, 0).moment[0].data != NULL && amp_param_get(p, 0).moment[1].data == NULL);
    got = (float *)set_bits(t, amp_param_model(p, 0), 4);
    CHECK_BITS(got, init, 4, 4);
    amp_params_destroy(p);
}

static void dtypes_and_defaults(t_run *t) {
    static const struct {
        amp_dtype model, grad, want_model, want_grad;
    } c[] = {{AMP_AUTO, AMP_AUTO, AMP_F16, AMP_F16}, {AMP_BF16, AMP_AUTO, AMP_BF16, AMP_BF16},
        {AMP_F32, AMP_AUTO, AMP_F32, AMP_F32}, {AMP_F16, AMP_F32, AMP_F16, AMP_F32},
        {AMP_F16, AMP_BF16, AMP_F16, AMP_BF16}, {AMP_BF16, AMP_F8E5M2, AMP_BF16, AMP_F8E5M2},
        {AMP_F32, AMP_F8E4M3, AMP_F32, AMP_F8E4M3}};
    size_t i, k;
    for (i = 0; i < sizeof c / sizeof c[0]; i++) {
        amp_params_desc d = AMP_ZERO;
        amp_param_desc e = AMP_ZERO;
        amp_params *p = NULL;
        d.model = c[i].model;
        d.grad = c[i].grad;
        CHECK_OK(amp_params_create(&p, t->ctx, i ? &d : NULL));
        e.count = 3;
        CHECK_OK(amp_params_add(p, &e));
        for (k = 1; k < 5; k++) { /* any gradient dtype per parameter */
            e.grad.dtype = ref_dtypes[k];
            CHECK_OK(amp_params_add(p, &e));
        }
        CHECK_OK(amp_params_commit(p));
        t_note(t, "row %d", (int)i);
        CHECK_EQ(amp_param_model(p, 0).dtype, c[i].want_model);
        CHECK_EQ(amp_param_grad(p, 0).dtype, c[i].want_grad);
        for (k = 1; k < 5; k++)
            CHECK_EQ(amp_param_grad(p, k).dtype, ref_dtypes[k]);
        amp_params_destroy(p);
    }
}

static int all_zero(amp_param q) {
    static const amp_param none = AMP_ZERO;
    return memcmp(&q, &none, sizeof q) == 0;
}

static void names_and_getters(t_run *t) {
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    char name[300];
    int i;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    CHECK_EQ(amp_params_count(p), 0);
    e.count = 1;
    strcpy(name, "fc1.weight");
    e.name = name;
    CHECK_OK(amp_params_add(p, &e));
    strcpy(name, "changed"); /* it was copied */
    e.name = NULL;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_add(p, &e));
    CHECK(strcmp(amp_param_get(p, 0).name, "fc1.weight") == 0 && strcmp(amp_param_get(p, 1).name, "1") == 0 &&
        strcmp(amp_param_get(p, 2).name, "2") == 0);
    CHECK(all_zero(amp_param_get(p, 3)) && all_zero(amp_param_get(NULL, 0)));
    CHECK_EQ(amp_params_find(p, "fc1.weight"), 0);
    CHECK_EQ(amp_params_find(p, "2"), 2);
    CHECK_EQ(amp_params_find(p, "changed"), 3);
    CHECK_EQ(amp_params_find(p, ""), 3);
    e.name = "1";
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add name 1");
    e.name = "3"; /* what index 3 would be called; then that name is taken */
    CHECK_OK(amp_params_add(p, &e));
    CHECK_EQ(amp_params_count(p), 4);
    t_note(t, "getters before commit");
    CHECK(!amp_param_get(p, 0).master.data && !amp_param_model(p, 0).data && !amp_param_grad(p, 0).data &&
        !amp_param_get(p, 0).moment[0].data);
    CHECK_OK(amp_params_commit(p));
    CHECK(amp_param_get(p, 3).master.data && !amp_param_get(p, 4).master.data && !amp_param_model(p, 4).data &&
        !amp_param_grad(p, 99).data);
    CHECK(all_zero(amp_param_get(p, 4)));
    CHECK(amp_step_record_ptr(p) != NULL);
    amp_params_destroy(p);
    t_note(t, "many");
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    for (i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "layer%d", i);
        e.name = name;
        e.count = (size_t)i % 7 + 1;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    for (i = 0; i < 300; i += 23) {
        snprintf(name, sizeof name, "layer%d", i);
        CHECK_EQ(amp_params_find(p, name), i);
        CHECK_EQ(amp_param_grad(p, (size_t)i).count, i % 7 + 1);
    }
    amp_params_destroy(p);
    CHECK_EQ(amp_params_count(NULL), 0);
    amp_params_destroy(NULL);
}

/* How many bytes of a weight that nobody gave are not 0: master, model copy, gradient, moments. */
static int fresh_weight(const amp_params *p, size_t i) {
    const amp_param w = amp_param_get(p, i);
    const amp_array part[] = {w.master, w.model, w.grad, w.moment[0], w.moment[1]};
    size_t k, b;
    int set = 0;
    for (k = 0; k < sizeof part / sizeof part[0]; k++)
        for (b = 0; b < amp_dtype_size(part[k].dtype); b++)
            set += ((const uint8_t *)part[k].data)[b] != 0;
    return set;
}
/* Seconds of the processor for n parameters to be added, found, refused a second time and committed. */
static double many_names_seconds(t_run *t, amp_ctx *ctx, int n) {
    clock_t start = clock();
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    char name[32];
    int i, wrong = 0;
    e.name = name;
    e.count = 1;
    CHECK_OK(amp_params_create(&p, ctx, NULL));
    for (i = 0; i < n; i++) {
        snprintf(name, sizeof name, "expert.%d.weight", i);
        wrong += amp_params_find(p, name) != (size_t)i || amp_params_add(p, &e) != AMP_OK;
    }
    for (i = 0; i < n; i++) {
        snprintf(name, sizeof name, "expert.%d.weight", i);
        wrong += amp_params_find(p, name) != (size_t)i || strcmp(amp_param_get(p, (size_t)i).name, name) != 0;
        wrong += i % 997 == 0 && amp_params_add(p, &e) != AMP_ERR_INVALID_ARG;
    }
    CHECK_OK(amp_params_commit(p));
    for (i = 0; i < n; i += 31)
        wrong += fresh_weight(p, (size_t)i) != 0;
    CHECK_EQ(wrong, 0);
    amp_params_destroy(p);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}
/* 25 times as many names take about 25 times as long, not 625 times (a search of the list took 2,000 times). */
static void many_names(t_run *t) {
    amp_ctx *ctx = NULL;
    double few, many;
    CHECK_OK(amp_cpu_create(&ctx, NULL));
    few = many_names_seconds(t, ctx, 2000);
    many = many_names_seconds(t, ctx, 50000);
    CHECK(many < 200 * (few + 1e-4));
    amp_ctx_destroy(ctx);
}

/* Weights, gradients and moments of nobody begin at 0 also in memory of malloc that was full of something else. */
static void zeros_of_malloc(t_run *t) {
    void *used[200];
    amp_ctx *ctx = NULL;
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    size_t i;
    e.count = 100;
    for (i = 0; i < 200; i++) {
        used[i] = malloc(500 + 100 * i);
        if (used[i]) memset(used[i], 0xa5, 500 + 100 * i);
    }
    for (i = 0; i < 200; i++)
        free(used[i]);
    CHECK_OK(amp_cpu_create(&ctx, NULL));
    CHECK_OK(amp_params_create(&p, ctx, NULL));
    for (i = 0; i < 16; i++)
        CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    for (i = 0; i < 16; i++)
        CHECK_EQ(fresh_weight(p, i), 0);
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
}

static void shapes(t_run *t) { /* rows and cols, given, left out, or instead of the count */
    static const struct {
        size_t count, rows, cols;
        size_t want_rows, want_cols;
    } c[] = {{12, 0, 0, 1, 12}, {12, 3, 4, 3, 4}, {0, 4, 3, 4, 3}, {7, 7, 1, 7, 1}, {0, 1, 7, 1, 7}};
    enum { SHAPES = sizeof c / sizeof c[0] };
    amp_params *p = NULL;
    int committed;
    size_t i;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    for (i = 0; i < SHAPES; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = c[i].count;
        e.rows = c[i].rows;
        e.cols = c[i].cols;
        CHECK_OK(amp_params_add(p, &e));
    }
    for (committed = 0; committed < 2; committed++) {
        for (i = 0; i < SHAPES; i++) {
            amp_param q = amp_param_get(p, i);
            t_note(t, "parameter %d, %s commit", (int)i, committed ? "after" : "before");
            CHECK_EQ(q.rows, c[i].want_rows);
            CHECK_EQ(q.cols, c[i].want_cols);
            CHECK_EQ(q.count, c[i].want_rows * c[i].want_cols);
            CHECK_EQ(q.model.count, committed ? q.count : 0);
        }
        if (!committed) CHECK_OK(amp_params_commit(p));
    }
    amp_params_destroy(p);
}

static void init_is_copied(t_run *t) { /* one buffer, filled again for each parameter, and gone before commit */
    amp_params *p = NULL;
    float *buffer = (float *)malloc(5 * sizeof *buffer), got[5], want[5];
    size_t i, k;
    if (!CHECK(buffer != NULL)) return;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    for (i = 0; i < 3; i++) {
        amp_param_desc e = AMP_ZERO;
        for (k = 0; k < 5; k++)
            buffer[k] = (float)(10 * i + k);
        e.count = 5;
        e.init = buffer;
        CHECK_OK(amp_params_add(p, &e));
    }
    free(buffer);
    CHECK_OK(amp_params_commit(p));
    for (i = 0; i < 3; i++) {
        t_note(t, "parameter %d", (int)i);
        for (k = 0; k < 5; k++)
            want[k] = (float)(10 * i + k);
        CHECK_OK(amp_param_read(p, i, got));
        CHECK_BITS(got, want, 5, 4);
    }
    amp_params_destroy(p);
}

static amp_params *const junk = (amp_params *)(uintptr_t)8;

static void refuse_set(t_run *t, const amp_params_desc *d, amp_status status, const char *words) {
    amp_params *p = junk;
    CHECK_STATUS(amp_params_create(&p, t->ctx, d), status, words);
    CHECK(p == NULL);
}

static void errors(t_run *t) {
    amp_params_desc d = AMP_ZERO, zero = AMP_ZERO;
    amp_param_desc e = AMP_ZERO, good = AMP_ZERO;
    amp_params *p = junk;
    float w[4] = {1, 2, 3, 4};
    void *dev = t_put(t, w, sizeof w);
    amp_array dst[2];
    memset(dst, 0, sizeof dst);
    CHECK_EQ(amp_params_create(NULL, t->ctx, &d), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_params_create(&p, NULL, &d), AMP_ERR_INVALID_ARG);
    CHECK(!p);
    p = junk;
    CHECK_EQ(amp_params_create_checked(&p, t->ctx, AMP_VERSION - 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(!p);
    p = junk;
    CHECK_EQ(amp_params_create_checked(&p, t->ctx, AMP_VERSION, sizeof d - 1, &d), AMP_ERR_VERSION);
    CHECK(!p);
    d._begin = 1;
    refuse_set(t, &d, AMP_ERR_UNINIT, "amp_params_create");
    d = zero;
    d._end = 1;
    refuse_set(t, &d, AMP_ERR_UNINIT, "amp_params_create");
    d = zero;
    d.model = AMP_F8E4M3;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create model");
    d = zero;
    d.model = AMP_DTYPE_COUNT;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create model");
    d = zero;
    d.grad = AMP_DTYPE_COUNT;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create grad");
    d = zero;
    d.moments = 2;
    d.moment = AMP_F16;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create moment f16");
    d.moment = AMP_AUTO;
    d.moments = 3;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create moments");
    d = zero;
    d.moments = -2;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create moments");
    d = zero;
    d.flags = 1;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create flags");
    d = zero;
    d.label = "a label of 24 characters";
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create label");
    d = zero;
#ifndef __cplusplus
    d.master = (amp_master)9;
    refuse_set(t, &d, AMP_ERR_INVALID_ARG, "amp_params_create master");
    d = zero;
#endif
    d.label = "a label of 23 character";
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    good.count = 4;
    CHECK_EQ(amp_params_add(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_params_add(p, NULL), AMP_ERR_INVALID_ARG, "amp_params_add desc");
    e = good;
    e._begin = 1;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_UNINIT, "amp_params_add");
    e = good;
    e._end = 1;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_UNINIT, "amp_params_add");
    e = good;
    e.count = 0;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add count 0");
    e = good;
    e.count = (size_t)-1;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add count");
    e = good;
    e.rows = 2;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add desc.cols 0 desc.rows 2");
    e.cols = 3;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add count 4 rows cols 6");
    e.rows = 0;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add desc.rows 0 desc.cols 3");
    e.count = 0;
    e.rows = e.cols = (size_t)1 << (sizeof e.rows * 4); /* the product is 0 in a size_t */
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add count too large");
    e = good;
    e.group = AMP_GROUPS;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add group");
    e = good;
    e.model = amp_arr(dev, AMP_BF16);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add model");
    e = good;
    e.grad.dtype = AMP_DTYPE_COUNT;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add grad");
    e = good;
    e.grad = amp_arrn(dev, AMP_F32, 3);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add grad count 3");
    e = good;
    e.model = amp_arrn(dev, AMP_F16, 3);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add model count 3");
    CHECK_EQ(amp_params_count(p), 0);
    t_note(t, "before commit");
    CHECK_STATUS(amp_params_zero_grad(p), AMP_ERR_STAGE, "amp_params_zero_grad commit");
    CHECK_STATUS(amp_params_master_to_model(p), AMP_ERR_STAGE, "amp_params_master_to_model commit");
    CHECK_STATUS(amp_params_model_to_master(p), AMP_ERR_STAGE, "amp_params_model_to_master commit");
    CHECK_STATUS(amp_params_grads_to(p, dst, 0), AMP_ERR_STAGE, "amp_params_grads_to commit");
    CHECK_OK(amp_params_add(p, &good));
    CHECK_OK(amp_params_commit(p));
    t_note(t, "after commit");
    CHECK_STATUS(amp_params_commit(p), AMP_ERR_STAGE, "amp_params_commit");
    CHECK_STATUS(amp_params_add(p, &good), AMP_ERR_STAGE, "amp_params_add commit");
    CHECK_EQ(amp_params_count(p), 1);
    dst[0] = amp_arr(dev, AMP_F32);
    CHECK_STATUS(amp_params_grads_to(p, dst, 2), AMP_ERR_INVALID_ARG, "amp_params_grads_to n 2");
    CHECK_STATUS(amp_params_grads_to(p, NULL, 1), AMP_ERR_INVALID_ARG, "amp_params_grads_to dst");
    dst[0].count = 3;
    CHECK_STATUS(amp_params_grads_to(p, dst, 1), AMP_ERR_INVALID_ARG, "amp_params_grads_to dst count 3");
    dst[0] = amp_param_grad(p, 0);
    CHECK_OK(amp_params_grads_to(p, dst, 1)); /* in place */
    dst[0] = amp_arr(dev, AMP_DTYPE_COUNT);
    CHECK_STATUS(amp_params_grads_to(p, dst, 1), AMP_ERR_INVALID_ARG, "amp_params_grads_to dst");
    CHECK_EQ(amp_params_zero_grad(NULL), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_step_poll(p, NULL), AMP_ERR_INVALID_ARG, "amp_step_poll out");
    CHECK_EQ(amp_step_poll(NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_params_commit(NULL), AMP_ERR_INVALID_ARG);
    amp_params_destroy(p);
}

static void arenas_and_ledger(t_run *t) {           /* one arena per kind, labels in the ledger, all given back */
    static const uint64_t first[3] = {0, 512, 768}; /* in order, each padded with zeros to 256 bytes */
    float pad[28];
    size_t counts[3] = {100, 7, 1000}, i;
    amp_params_desc d = AMP_ZERO;
    amp_params *p = NULL;
    uint64_t lo = (uint64_t)-1, hi = 0, base = t_ledger(t->ctx, "total").bytes;
    d.label = "net";
    d.model = AMP_BF16;
    d.grad = AMP_F32;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < 3; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = counts[i];
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base); /* nothing in context memory before commit */
    CHECK_OK(amp_params_commit(p));
    CHECK(
        t_ledger(t->ctx, "net.master").bytes >= 4 * 1107 && t_ledger(t->ctx, "net.master").bytes <= 4 * 1107 + 3 * 256);
    CHECK(t_ledger(t->ctx, "net.model").bytes >= 2 * 1107 && t_ledger(t->ctx, "net.model").bytes <= 2 * 1107 + 3 * 256);
    CHECK(t_ledger(t->ctx, "net.grad").bytes >= 4 * 1107 && t_ledger(t->ctx, "net.grad").bytes <= 4 * 1107 + 3 * 256);
    CHECK(t_ledger(t->ctx, "net.moments").bytes >= 8 * 1107 &&
        t_ledger(t->ctx, "net.moments").bytes <= 8 * 1107 + 6 * 256);
    CHECK(t_ledger(t->ctx, "net.tables").bytes > 0);
    for (i = 0; i < 3; i++) { /* all gradients in one piece of memory */
        uint64_t at = (uint64_t)(uintptr_t)amp_param_grad(p, i).data;
        if (at < lo) lo = at;
        if (at + 4 * counts[i] > hi) hi = at + 4 * counts[i];
        CHECK_EQ(at - lo, first[i]);
    }
    t_get(t, pad, (const char *)amp_param_grad(p, 0).data + 400, sizeof pad);
    for (i = 0; i < 28; i++)
        CHECK_F32(pad[i], 0.0f);
    CHECK(hi - lo <= t_ledger(t->ctx, "net.grad").bytes);
    amp_params_destroy(p);
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base);
    CHECK_EQ(t_ledger(t->ctx, "net.master").bytes, 0);
    t_note(t, "all adopted: only tables are allocated");
    d.moments = AMP_NONE;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    {
        amp_param_desc e = AMP_ZERO;
        e.count = 5;
        e.master = (float *)t_alloc(t, 20);
        e.model = amp_arr(t_alloc(t, 10), AMP_BF16);
        e.grad = amp_arr(t_alloc(t, 20), AMP_F32);
        base = t_ledger(t->ctx, "total").bytes;
        CHECK_OK(amp_params_add(p, &e));
        CHECK_OK(amp_params_commit(p));
        CHECK_EQ(t_ledger(t->ctx, "total").bytes, base + t_ledger(t->ctx, "net.tables").bytes);
    }
    amp_params_destroy(p);
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base);
}

static void moves(t_run *t) {
    static const amp_dtype models[3] = {AMP_F16, AMP_BF16, AMP_F32};
    size_t counts[4] = {1, 9, 257, 3000}, m, g, i, k;
    for (m = 0; m < 3; m++) {
        for (g = 0; g < 5; g++) {
            amp_params *p = set_new(t, models[m], ref_dtypes[g], counts, 4);
            amp_array dst[4];
            if (t_slow(t) && (m + g) % 2) {
                amp_params_destroy(p);
                continue;
            }
            t_note(t, "model %s, gradients %s", amp_dtype_name(models[m]), amp_dtype_name(ref_dtypes[g]));
            for (i = 0; i < 4; i++) { /* masters to models and back */
                float *w = (float *)t_host(t, 4 * counts[i]);
                for (k = 0; k < counts[i]; k++)
                    w[k] = t_pattern(t);
                t_set(t, amp_param_get(p, i).master.data, w, 4 * counts[i]);
            }
            CHECK_OK(amp_params_master_to_model(p));
            for (i = 0; i < 4; i++) {
                float *w = (float *)set_bits(t, amp_param_get(p, i).master, counts[i]);
                void *got = set_bits(t, amp_param_model(p, i), counts[i]), *want = t_host(t, 4 * counts[i]);
                for (k = 0; k < counts[i] && models[m] != AMP_F32; k++)
                    ampi_store_pattern(want, models[m], k, ref_encode(ref_f32_as_f64(w[k]), models[m], 0));
                if (models[m] != AMP_F32) CHECK_BITS(got, want, counts[i], 2);
            }
            CHECK_OK(amp_params_model_to_master(p));
            for (i = 0; i < 4; i++) {
                void *model = set_bits(t, amp_param_model(p, i), counts[i]);
                uint32_t *got = (uint32_t *)set_bits(t, amp_param_get(p, i).master, counts[i]);
                for (k = 0; k < counts[i] && models[m] != AMP_F32; k++) {
                    uint16_t h;
                    memcpy(&h, (char *)model + 2 * k, 2);
                    if (got[k] != ref_decode(h, models[m])) {
                        CHECK_EQ(got[k], ref_decode(h, models[m]));
                        break;
                    }
                }
            }
            for (i = 0; i < 4; i++) { /* gradients to any dtype; one of them left out */
                amp_array a = amp_param_grad(p, i);
                size_t size = amp_dtype_size(a.dtype);
                void *host = t_host(t, counts[i] * size);
                for (k = 0; k < counts[i]; k++)
                    amp_store(host, a.dtype, k, t_range(t, -10, 8));
                t_set(t, a.data, host, counts[i] * size);
                dst[i] = i == 2 ? amp_arr(NULL, AMP_AUTO) : amp_arr(t_alloc(t, counts[i] * 4), ref_dtypes[(g + i) % 5]);
            }
            CHECK_OK(amp_params_grads_to(p, dst, 4));
            for (i = 0; i < 4; i++) {
                void *src = set_bits(t, amp_param_grad(p, i), counts[i]), *got, *want;
                if (!dst[i].data) continue;
                got = set_bits(t, dst[i], counts[i]);
                want = t_host(t, 4 * counts[i]);
                for (k = 0; k < counts[i]; k++)
                    amp_store(want, dst[i].dtype, k, amp_load(src, ref_dtypes[g], k));
                CHECK_BITS(got, want, counts[i], amp_dtype_size(dst[i].dtype));
            }
            CHECK_OK(amp_params_zero_grad(p));
            for (i = 0; i < 4; i++) {
                size_t bytes = counts[i] * amp_dtype_size(ref_dtypes[g]);
                void *got = set_bits(t, amp_param_grad(p, i), counts[i]), *zero = t_host(t, bytes);
                CHECK_BITS(got, zero, bytes, 1);
            }
            amp_params_destroy(p);
            t_clear(t);
        }
    }
}

/* Adopted arrays may touch, but no two of a set may share an element: a step would update it twice. */
static amp_status adopt_two(t_run *t, char *memory, size_t set_f32, const size_t at[6], amp_params **p) {
    static const char *const names[2] = {"embedding", "head"};
    amp_params_desc pd = AMP_ZERO;
    size_t i;
    pd.model = set_f32 ? AMP_F32 : AMP_F16;
    CHECK_OK(amp_params_create(p, t->ctx, &pd));
    for (i = 0; i < 2; i++) { /* master, model copy, gradient: 16, 8 and 8 bytes from `at` on; 0: owned */
        const size_t *from = at + 3 * i;
        amp_param_desc d = AMP_ZERO;
        d.count = 4;
        d.name = names[i];
        if (from[0]) d.master = (float *)(void *)(memory + from[0]);
        if (from[1]) d.model = amp_arr(memory + from[1], pd.model);
        if (from[2]) d.grad = amp_arr(memory + from[2], AMP_F16);
        CHECK_OK(amp_params_add(*p, &d));
    }
    return amp_params_commit(*p);
}
static void adopted_apart(t_run *t) {
    static const struct {
        size_t at[6], f32;
        const char *words; /* NULL: all are apart */
    } rows[] = {
        {{16, 0, 0, 32, 0, 0}, 0, NULL},
        {{16, 32, 40, 48, 64, 72}, 0, NULL},
        {{16, 0, 40, 48, 0, 72}, 1, NULL}, /* an FP32 model copy is the master */
        {{16, 0, 0, 16, 0, 0}, 0, "the master \"head\" overlaps master \"embedding\" tied one parameter"},
        {{20, 0, 0, 16, 0, 0}, 0, "the master \"embedding\" overlaps master \"head\""},
        {{16, 0, 0, 28, 0, 0}, 0, "the master \"head\" overlaps master \"embedding\""},
        {{0, 16, 0, 0, 16, 0}, 0, "the model copy \"head\" overlaps model copy \"embedding\""},
        {{0, 16, 0, 0, 22, 0}, 0, "the model copy \"head\" overlaps model copy \"embedding\""},
        {{0, 0, 16, 0, 0, 16}, 0, "the gradient \"head\" overlaps gradient \"embedding\""},
        {{0, 0, 22, 0, 0, 16}, 0, "the gradient \"embedding\" overlaps gradient \"head\""},
        {{16, 0, 0, 0, 0, 24}, 0, "the gradient \"head\" overlaps master \"embedding\""},
        {{0, 16, 22, 0, 0, 0}, 0, "the gradient \"embedding\" overlaps model copy \"embedding\""},
        {{0, 16, 0, 16, 0, 0}, 1, "the master \"head\" overlaps master \"embedding\""},
    };
    char *memory = (char *)t_alloc(t, 128);
    amp_ledger_row before = t_ledger(t->ctx, "params.tables");
    amp_params *p;
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        t_note(t, "row %d", (int)i);
        if (!rows[i].words) {
            CHECK_OK(adopt_two(t, memory, rows[i].f32, rows[i].at, &p));
        } else {
            CHECK_STATUS(adopt_two(t, memory, rows[i].f32, rows[i].at, &p), AMP_ERR_INVALID_ARG, rows[i].words);
            CHECK_EQ(t_ledger(t->ctx, "params.tables").bytes, before.bytes);
        }
        amp_params_destroy(p);
    }
}

static void empty_set(t_run *t) {
    amp_params *p = NULL;
    double norm = -1.0;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    CHECK_OK(amp_params_commit(p));
    CHECK_EQ(amp_params_count(p), 0);
    CHECK_OK(amp_params_zero_grad(p));
    CHECK_OK(amp_params_master_to_model(p));
    CHECK_OK(amp_params_grads_to(p, NULL, 0));
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK(norm == 0.0);
    amp_params_destroy(p);
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    amp_params_destroy(p); /* never committed */
}

const t_test t_suite_params[] = {{"params.where_weights_come_from", where_weights_come_from, T_ALL},
    {"params.masters_none", masters_none, T_ALL}, {"params.keep_f32", keep_f32, T_ALL},
    {"params.dtypes_and_defaults", dtypes_and_defaults, T_ALL}, {"params.names_and_getters", names_and_getters, T_ALL},
    {"params.many_names", many_names, T_HOST}, {"params.zeros_of_malloc", zeros_of_malloc, T_HOST},
    {"params.errors", errors, T_ALL}, {"params.shapes", shapes, T_ALL},
    {"params.init_is_copied", init_is_copied, T_ALL}, {"params.arenas_and_ledger", arenas_and_ledger, T_ALL},
    {"params.moves", moves, T_ALL}, {"params.adopted_apart", adopted_apart, T_ALL},
    {"params.empty_set", empty_set, T_ALL}, {NULL, NULL, 0}};
