/* test_state.c - saving and loading.  Guards: >>state. */
#include "set.h"

/* ---- files ---- */

static unsigned char *slurp(t_run *t, const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    unsigned char *b;
    *n = 0;
    if (!f) return NULL;
    b = (unsigned char *)t_host(t, 4u << 20);
    *n = fread(b, 1, 4u << 20, f);
    fclose(f);
    return b;
}
static void spit(const char *path, const unsigned char *b, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b, 1, n, f) != n) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(2);
    }
    fclose(f);
}
static int exists(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* ---- a run with everything in it ---- */

#define MAX_SETS 3u

typedef struct run {
    amp_params *p[MAX_SETS];
    amp_scaler *s[2];
    size_t n_params, n_scalers;
    unsigned char user[37];
    amp_state_desc state;
} run;

static const size_t counts[3][3] = {{5, 130, 2049}, {1, 7, 64}, {300, 2, 3}};

static amp_params *new_set(t_run *t, amp_dtype model, amp_dtype grad, amp_master master, const size_t *n, int names) {
    static const char *const name[3] = {"embedding", "fc.weight", "fc.bias"};
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    size_t i, k;
    d.model = model;
    d.grad = grad;
    d.master = master;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < 3; i++) {
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, 4 * n[i]);
        for (k = 0; k < n[i]; k++)
            w[k] = t_real(t);
        e.count = n[i];
        e.init = w;
        e.name = names ? name[i] : NULL;
        e.keep_f32 = i == 2;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}

static void new_run(t_run *t, run *r, int kind) {
    amp_scaler_desc d = AMP_ZERO;
    size_t i;
    memset(r, 0, sizeof *r);
    r->p[0] = new_set(t, AMP_F16, AMP_AUTO, AMP_MASTER_F32, counts[0], 1);
    r->n_params = 1;
    r->n_scalers = 1;
    if (kind > 0) {
        r->p[1] = new_set(t, AMP_BF16, AMP_F32, AMP_MASTER_NONE, counts[1], 0);
        r->p[2] = new_set(t, AMP_F32, AMP_AUTO, AMP_MASTER_F32, counts[2], 1);
        r->n_params = 3;
        r->n_scalers = 2;
    }
    d.scale = 1000;
    d.growth_interval = 7;
    d.hysteresis = 2;
    d.min_scale = 3;
    d.max_scale = 12345;
    d.growth_factor = 3;
    d.backoff_factor = .3f;
    CHECK_OK(amp_scaler_create(&r->s[0], t->ctx, &d));
    if (kind > 0) CHECK_OK(amp_scaler_create(&r->s[1], t->ctx, NULL));
    for (i = 0; i < sizeof r->user; i++)
        r->user[i] = (unsigned char)t_u32(t);
    r->state.params = r->p;
    r->state.n_params = r->n_params;
    r->state.scalers = r->s;
    r->state.n_scalers = r->n_scalers;
    r->state.user = r->user;
    r->state.user_bytes = sizeof r->user;
}

static void train(t_run *t, run *r, int steps) {
    amp_step_desc d = AMP_ZERO;
    size_t i, k;
    int step;
    d.lr = 0.01f;
    d.weight_decay = 0.1f;
    for (step = 0; step < steps; step++) {
        for (i = 0; i < r->n_params; i++) {
            amp_scaler *s = r->n_scalers > 1 ? r->s[i % 2] : r->s[0];
            for (k = 0; k < 3; k++) {
                amp_array g = amp_param_grad(r->p[i], k);
                void *host = t_host(t, g.count * 4);
                t_fill_real(t, host, g.dtype, g.count, 100.0f);
                t_set(t, g.data, host, g.count * amp_dtype_size(g.dtype));
            }
            if (t_below(t, 4) == 0) set_grad_bits(t, r->p[i], 0, 0, set_inf(amp_param_grad(r->p[i], 0).dtype));
            CHECK_OK(amp_step(r->p[i], s, &d));
        }
    }
}

static void free_run(run *r) {
    size_t i;
    for (i = 0; i < MAX_SETS; i++)
        amp_params_destroy(r->p[i]);
    for (i = 0; i < 2; i++)
        amp_scaler_destroy(r->s[i]);
}

/* Everything that a file must bring back (gradients are not in it), as one block of bytes. */
static t_blob picture(t_run *t, run *r) {
    t_blob b = AMP_ZERO;
    size_t i, k;
    for (i = 0; i < r->n_params; i++) {
        amp_step_record rec = set_poll(t, r->p[i]);
        for (k = 0; k < 3; k++) {
            amp_array a[4];
            size_t j;
            a[0] = amp_param_get(r->p[i], k).master;
            a[1] = amp_param_model(r->p[i], k);
            a[2] = amp_param_get(r->p[i], k).moment[0];
            a[3] = amp_param_get(r->p[i], k).moment[1];
            for (j = 0; j < 4; j++)
                if (a[j].data) t_blob_dev(t, &b, a[j].data, a[j].count * amp_dtype_size(a[j].dtype));
        }
        t_blob_add(&b, &rec.steps, sizeof rec.steps);
        t_blob_add(&b, &rec.skipped, sizeof rec.skipped);
    }
    for (i = 0; i < r->n_scalers; i++) {
        amp_scaler_info info = set_info(t, r->s[i]);
        t_blob_add(&b, &info, sizeof info);
    }
    t_blob_add(&b, r->user, sizeof r->user);
    return b;
}

static void same_picture(t_run *t, run *a, run *b, int equal) {
    t_blob x = picture(t, a), y = picture(t, b);
    CHECK_EQ(x.bytes, y.bytes);
    if (equal && x.bytes == y.bytes) CHECK_BITS(x.data, y.data, x.bytes, 1);
    if (!equal) CHECK(memcmp(x.data, y.data, x.bytes) != 0);
    free(x.data);
    free(y.data);
}

/* ---- round trips ---- */

static void round_trip(t_run *t) {
    const char *path = t_file("round.state");
    int kind;
    for (kind = 0; kind < 2; kind++) {
        run a, b;
        uint64_t rng;
        t_note(t, "kind %d", kind);
        new_run(t, &a, kind);
        train(t, &a, 6);
        CHECK_OK(amp_state_save(t->ctx, path, &a.state));
        new_run(t, &b, kind);
        train(t, &b, 2);
        same_picture(t, &a, &b, 0);
        CHECK_OK(amp_state_load(t->ctx, path, &b.state));
        same_picture(t, &a, &b, 1);
        /* and both go on alike: bias correction, growth tracker, hysteresis, rule of the scaler */
        rng = t->rng;
        train(t, &a, 12);
        t->rng = rng;
        train(t, &b, 12);
        same_picture(t, &a, &b, 1);
        t_note(t, "kind %d, over an old file", kind);
        CHECK_OK(amp_state_save(t->ctx, path, &b.state));
        train(t, &a, 1);
        CHECK_OK(amp_state_load(t->ctx, path, &a.state));
        same_picture(t, &a, &b, 1);
        free_run(&a);
        free_run(&b);
        t_clear(t);
    }
}

/* A section that takes more than one piece of a save's buffer, 1 MiB, and does not fill the last one. */
static void past_the_buffer(t_run *t) {
    const size_t n = ((size_t)1 << 20) + 77;
    const char *path = t_file("large.state");
    unsigned char *bytes = (unsigned char *)t_host(t, n), *want = (unsigned char *)t_host(t, n);
    amp_state_desc st = AMP_ZERO;
    size_t i;
    for (i = 0; i < n; i++)
        want[i] = bytes[i] = (unsigned char)(i * 7 + (i >> 8));
    st.user = bytes;
    st.user_bytes = n;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    memset(bytes, 0, n);
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    CHECK_BITS(bytes, want, n, 1);
}

static void only_parts(t_run *t) { /* only a scaler, only bytes, only a set, nothing */
    const char *path = t_file("part.state");
    amp_state_desc st = AMP_ZERO;
    amp_scaler *a = NULL, *b = NULL;
    amp_scaler_desc d = AMP_ZERO, e = AMP_ZERO;
    amp_scaler_info i;
    amp_scaler *list[1];
    unsigned char bytes[3] = {1, 2, 3};
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    st.user = bytes;
    st.user_bytes = 3;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load user");
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    memset(bytes, 0, 3);
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3);
    st.user_bytes = 2;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load user");
    st.user = NULL;
    st.user_bytes = 0;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load user");
    t_note(t, "P18: the state of one scaler into another");
    d.scale = 3;
    d.growth_factor = 4;
    d.backoff_factor = .5f;
    d.growth_interval = 2;
    e.scale = 6;
    e.growth_factor = 7;
    e.backoff_factor = .8f;
    e.growth_interval = 1;
    CHECK_OK(amp_scaler_create(&a, t->ctx, &d));
    CHECK_OK(amp_scaler_create(&b, t->ctx, &e));
    list[0] = a;
    st.scalers = list;
    st.n_scalers = 1;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    list[0] = b;
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    i = set_info(t, b);
    CHECK_F32(i.scale, 3.0f);
    CHECK_EQ(i.growth_tracker, 0);
    {
        amp_params *p = set_one(t, 2, AMP_F32);
        amp_step_desc sd = t_rate_0();
        set_grad(t, p, 0, 2, 1.0f);
        CHECK_OK(amp_step(p, b, &sd));
        CHECK_F32(t_scale(b), 3.0f); /* interval 2 came with it */
        CHECK_OK(amp_step(p, b, &sd));
        CHECK_F32(t_scale(b), 12.0f); /* and growth factor 4 */
        set_grad_bits(t, p, 0, 0, 0x7f800000);
        CHECK_OK(amp_step(p, b, &sd));
        CHECK_F32(t_scale(b), 6.0f); /* and backoff factor .5 */
        amp_params_destroy(p);
    }
    amp_scaler_destroy(a);
    amp_scaler_destroy(b);
}

static void stochastic_copies(t_run *t) { /* model copies that masters do not give are saved too */
    const char *path = t_file("sr.state");
    size_t n = 500, with, without;
    uint64_t rng = t->rng;
    amp_params *p = set_one(t, n, AMP_F32), *q;
    amp_params *list[1];
    amp_step_desc d = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    amp_snapshot before;
    uint16_t *a, *b;
    t->rng = rng + 1;
    q = set_one(t, n, AMP_F32);
    d.lr = 0.01f;
    d.stochastic = 1;
    d.seed = 9;
    set_grad(t, p, 0, n, 0.7f);
    CHECK_OK(amp_step(p, NULL, &d));
    list[0] = p;
    st.params = list;
    st.n_params = 1;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    (void)slurp(t, path, &with);
    list[0] = q;
    CHECK_OK(amp_snapshot_take(t->ctx, &before, NULL, NULL));
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &before), AMP_ERR_STAGE, "amp_snapshot_begin weights");
    a = (uint16_t *)set_bits(t, amp_param_model(p, 0), n);
    b = (uint16_t *)set_bits(t, amp_param_model(q, 0), n);
    CHECK_BITS(b, a, n, 2);
    t_note(t, "and a file without model copies gives rounded masters, also to a set that was stochastic");
    CHECK_OK(amp_params_master_to_model(p));
    list[0] = p;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    (void)slurp(t, path, &without);
    CHECK(without + 2 * n <= with);
    list[0] = q;
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    a = (uint16_t *)set_bits(t, amp_param_model(p, 0), n);
    b = (uint16_t *)set_bits(t, amp_param_model(q, 0), n);
    CHECK_BITS(b, a, n, 2);
    t_note(t, "nor has one after masters were made of the copies");
    CHECK_OK(amp_step(q, NULL, &d));
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    (void)slurp(t, path, &with);
    CHECK_OK(amp_params_model_to_master(q));
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    (void)slurp(t, path, &without);
    CHECK(without + 2 * n <= with);
    amp_params_destroy(p);
    amp_params_destroy(q);
}

static void other_context(t_run *t) { /* a file written on one context is read on a different one */
    const char *path = t_file("other.state");
    run a, b;
    t_blob x, y;
    new_run(t, &a, 1);
    train(t, &a, 3);
    CHECK_OK(amp_state_save(t->ctx, path, &a.state));
    x = picture(t, &a);
    t_reference(t, 1);
    new_run(t, &b, 1);
    CHECK_OK(amp_state_load(t->ctx, path, &b.state));
    y = picture(t, &b);
    CHECK_EQ(x.bytes, y.bytes);
    CHECK_BITS(y.data, x.data, x.bytes, 1);
    CHECK_OK(amp_state_save(t->ctx, t_file("other2.state"), &b.state)); /* and the files are the same, byte by byte */
    {
        size_t na, nb;
        unsigned char *fa = slurp(t, path, &na), *fb = slurp(t, t_file("other2.state"), &nb);
        CHECK(fa && fb && na == nb && na > 100);
        if (fa && fb && na == nb) CHECK_BITS(fb, fa, na, 1);
    }
    t_reference(t, 0);
    free(x.data);
    free(y.data);
    free_run(&a);
    free_run(&b);
}

/* ---- damage ---- */

/* A small state, so that every byte can be tried. */
typedef struct tiny {
    amp_params *p;
    amp_scaler *s;
    amp_params *ps[1];
    amp_scaler *ss[1];
    uint32_t user;
    amp_state_desc st;
    size_t n[2];
} tiny;

static void new_tiny(t_run *t, tiny *r) {
    memset(r, 0, sizeof *r);
    r->n[0] = 3;
    r->n[1] = 2;
    r->p = set_new(t, AMP_F16, AMP_AUTO, r->n, 2);
    CHECK_OK(amp_scaler_create(&r->s, t->ctx, NULL));
    r->user = t_u32(t);
    r->ps[0] = r->p;
    r->ss[0] = r->s;
    r->st.params = r->ps;
    r->st.n_params = 1;
    r->st.scalers = r->ss;
    r->st.n_scalers = 1;
    r->st.user = &r->user;
    r->st.user_bytes = 4;
}
static t_blob tiny_picture(t_run *t, tiny *r) {
    t_blob b = AMP_ZERO;
    amp_step_record rec = set_poll(t, r->p);
    amp_scaler_info info = set_info(t, r->s);
    set_blob(t, &b, r->p, r->n, 2);
    t_blob_add(&b, &rec, sizeof rec);
    t_blob_add(&b, &info, sizeof info);
    t_blob_add(&b, &r->user, 4);
    return b;
}
static void free_tiny(tiny *r) {
    amp_params_destroy(r->p);
    amp_scaler_destroy(r->s);
}

static void every_byte_flipped(t_run *t) {
    const char *path = t_file("flip.state");
    tiny a, b;
    size_t n, i;
    unsigned char *file;
    t_blob before, after;
    new_tiny(t, &a);
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    new_tiny(t, &b);
    before = tiny_picture(t, &b);
    file = slurp(t, path, &n);
    CHECK(file && n > 200 && n < 4000);
    for (i = 0; file && i < n; i += t_slow(t) || t_twin(t) ? 7u : 1u) {
        unsigned char keep = file[i];
        amp_status st;
        file[i] ^= (unsigned char)(1u << (i % 8));
        spit(path, file, n);
        t_note(t, "byte %d of %d", (int)i, (int)n);
        st = amp_state_load(t->ctx, path, &b.st);
        t_check(t, st == AMP_ERR_FORMAT, __FILE__, __LINE__, "loading gives %d: %s", (int)st, amp_last_error(t->ctx));
        CHECK(strstr(amp_last_error(t->ctx), "amp_state_load") && strstr(amp_last_error(t->ctx), path));
        if (i % 16 == 0 || st == AMP_OK) {
            after = tiny_picture(t, &b);
            CHECK_BITS(after.data, before.data, before.bytes, 1);
            free(after.data);
        }
        file[i] = (unsigned char)(keep ^ 0xffu);
        spit(path, file, n);
        CHECK_STATUS(amp_state_load(t->ctx, path, &b.st), AMP_ERR_FORMAT, "amp_state_load");
        file[i] = keep;
    }
    after = tiny_picture(t, &b);
    CHECK_BITS(after.data, before.data, before.bytes, 1); /* nothing has changed */
    free(after.data);
    free(before.data);
    if (file) {
        spit(path, file, n);
        CHECK_OK(amp_state_load(t->ctx, path, &b.st)); /* the good file still loads */
    }
    free_tiny(&a);
    free_tiny(&b);
}

static void every_length(t_run *t) { /* truncated anywhere, or with something after its end */
    const char *path = t_file("cut.state");
    tiny a, b;
    size_t n, i;
    unsigned char *file;
    t_blob before, after;
    new_tiny(t, &a);
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    new_tiny(t, &b);
    before = tiny_picture(t, &b);
    file = slurp(t, path, &n);
    for (i = 0; file && i < n; i += t_slow(t) || t_twin(t) ? 7u : 1u) {
        spit(path, file, i);
        t_note(t, "%d of %d bytes", (int)i, (int)n);
        CHECK_STATUS(amp_state_load(t->ctx, path, &b.st), AMP_ERR_FORMAT, "amp_state_load");
    }
    if (file) {
        file[n] = 0;
        spit(path, file, n + 1);
        CHECK_STATUS(amp_state_load(t->ctx, path, &b.st), AMP_ERR_FORMAT, "amp_state_load");
        memmove(file + n, file, n);
        spit(path, file, 2 * n); /* the file twice */
        CHECK_STATUS(amp_state_load(t->ctx, path, &b.st), AMP_ERR_FORMAT, "amp_state_load");
    }
    after = tiny_picture(t, &b);
    CHECK_BITS(after.data, before.data, before.bytes, 1);
    free(after.data);
    free(before.data);
    free_tiny(&a);
    free_tiny(&b);
}

static void random_damage(t_run *t) { /* several bytes at once, blocks moved, other files */
    const char *path = t_file("damage.state");
    tiny a, b;
    size_t n, i;
    unsigned char *file, *bad;
    int round;
    new_tiny(t, &a);
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    new_tiny(t, &b);
    file = slurp(t, path, &n);
    bad = (unsigned char *)t_host(t, 2 * n + 1);
    for (round = 0; file && round < (t_slow(t) ? 30 : 300); round++) {
        size_t len = n, times = 1 + t_below(t, 5);
        memcpy(bad, file, n);
        if (round % 3 == 0)
            for (i = 0; i < times; i++)
                bad[t_below(t, (uint32_t)n)] ^= (unsigned char)(1 + t_below(t, 255));
        else if (round % 3 == 1) { /* a block copied elsewhere */
            size_t size = 1 + t_below(t, (uint32_t)n / 2), from = t_below(t, (uint32_t)(n - size)),
                   to = t_below(t, (uint32_t)(n - size));
            memmove(bad + to, file + from, size);
        } else { /* noise, maybe after a good header */
            len = t_below(t, (uint32_t)(2 * n));
            t_fill_bits(t, bad, len);
            if (round % 2) memcpy(bad, file, len < 24 ? len : 24);
        }
        if (len == n && memcmp(bad, file, n) == 0) continue;
        spit(path, bad, len);
        t_note(t, "round %d", round);
        CHECK_STATUS(amp_state_load(t->ctx, path, &b.st), AMP_ERR_FORMAT, "amp_state_load");
    }
    free_tiny(&a);
    free_tiny(&b);
}

/* ---- files that do not fit ---- */

static void does_not_fit(t_run *t) {
    const char *path = t_file("fit.state");
    run a;
    amp_params *other[MAX_SETS];
    amp_state_desc st;
    size_t n[3];
    int i;
    t_blob before, after;
    new_run(t, &a, 1);
    CHECK_OK(amp_state_save(t->ctx, path, &a.state));
    before = picture(t, &a);
    t_note(t, "fewer and more sets and scalers");
    st = a.state;
    st.n_params = 2;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load set");
    st = a.state;
    st.n_params = 0;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load set");
    st = a.state;
    st.n_scalers = 1;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load scaler");
    st = a.state;
    st.n_scalers = 0;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load scaler");
    other[0] = a.p[0];
    other[1] = a.p[1];
    other[2] = a.p[2];
    t_note(t, "the wrong order of sets");
    other[0] = a.p[2];
    other[2] = a.p[0];
    st = a.state;
    st.params = other;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load");
    other[0] = a.p[0];
    other[2] = a.p[2];
    for (i = 0; i < 6; i++) { /* a different count, name, model dtype, masters, number of moments, longer name */
        static const char *const words[6] = {
            "fc.weight", "fc.weighT|fc.weight", NULL, "embedding", "moments", "fc.weight2"};
        const char *names[3] = {"embedding", "fc.weight", "fc.bias"};
        amp_params_desc d = AMP_ZERO;
        amp_params *q = NULL;
        size_t k;
        d.model = i == 2 ? AMP_BF16 : AMP_F16;
        d.master = i == 3 ? AMP_MASTER_NONE : AMP_MASTER_F32;
        d.moments = i == 4 ? 1 : 0;
        if (i == 1) names[1] = "fc.weighT";
        if (i == 5) names[1] = "fc.weight2";
        CHECK_OK(amp_params_create(&q, t->ctx, &d));
        for (k = 0; k < 3; k++) {
            amp_param_desc e = AMP_ZERO;
            e.count = counts[0][k] + (i == 0 && k == 1);
            e.name = names[k];
            e.keep_f32 = k == 2;
            CHECK_OK(amp_params_add(q, &e));
        }
        CHECK_OK(amp_params_commit(q));
        other[0] = q;
        t_note(t, "difference %d", i);
        if (i == 2) /* the file holds masters and moments, and the copies are made from the masters */
            CHECK_OK(amp_state_load(t->ctx, path, &st));
        else
            CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, words[i]);
        amp_params_destroy(q);
    }
    t_note(t, "a different number of parameters");
    n[0] = 5;
    n[1] = 130;
    other[0] = set_new(t, AMP_F16, AMP_AUTO, n, 2);
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "parameters");
    amp_params_destroy(other[0]);
    after = picture(t, &a);
    CHECK_BITS(after.data, before.data, before.bytes, 1);
    free(before.data);
    free(after.data);
    free_run(&a);
}

/* ---- errors ---- */

static void file_errors(t_run *t) {
    const char *path = t_file("error.state"), *gone = t_file("no-such-dir");
    char bad[300];
    tiny a;
    size_t n = 0, m = 0;
    unsigned char *file, *again;
    new_tiny(t, &a);
    CHECK_STATUS(amp_state_load(t->ctx, gone, &a.st), AMP_ERR_IO, "amp_state_load no-such-dir");
    snprintf(bad, sizeof bad, "%s/x.state", gone);
    CHECK_STATUS(amp_state_save(t->ctx, bad, &a.st), AMP_ERR_IO, "amp_state_save no-such-dir");
    CHECK_STATUS(amp_state_load(t->ctx, bad, &a.st), AMP_ERR_IO, "amp_state_load no-such-dir");
    CHECK(!exists(bad));
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    file = slurp(t, path, &n);
    t_note(t, "arguments");
    CHECK_EQ(amp_state_save(NULL, path, &a.st), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_state_load(NULL, path, &a.st), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_state_save(t->ctx, NULL, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save path");
    CHECK_STATUS(amp_state_load(t->ctx, NULL, &a.st), AMP_ERR_INVALID_ARG, "amp_state_load path");
    CHECK_STATUS(amp_state_save(t->ctx, path, NULL), AMP_ERR_INVALID_ARG, "amp_state_save state");
    a.st._begin = 1;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_UNINIT, "amp_state_save");
    a.st._begin = 0;
    a.st._end = 1;
    CHECK_STATUS(amp_state_load(t->ctx, path, &a.st), AMP_ERR_UNINIT, "amp_state_load");
    a.st._end = 0;
    a.st.flags = 1;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save flags");
    a.st.flags = 0;
    a.st.params = NULL;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save params");
    a.st.params = a.ps;
    a.st.scalers = NULL;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save scalers");
    a.st.scalers = a.ss;
    a.st.user = NULL;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save user");
    a.st.user = &a.user;
    a.ps[0] = NULL;
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_INVALID_ARG, "amp_state_save state.params[0]");
    a.ps[0] = a.p;
    t_note(t, "a set that is not committed");
    {
        amp_params *raw = NULL;
        CHECK_OK(amp_params_create(&raw, t->ctx, NULL));
        a.ps[0] = raw;
        CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_STAGE, "amp_state_save state.params[0] commit");
        a.ps[0] = a.p;
        amp_params_destroy(raw);
    }
    again = slurp(t, path, &m); /* the old file has survived all this */
    CHECK(file && again && n == m && memcmp(file, again, n) == 0);
    free_tiny(&a);
}

static void in_the_middle(t_run *t) { /* S14: between unscale and update there is nothing to save */
    const char *path = t_file("middle.state");
    tiny a;
    amp_step_desc d = t_rate_0();
    new_tiny(t, &a);
    set_grad(t, a.p, 0, 3, 1.0f);
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    CHECK_OK(amp_scaler_unscale(a.s, a.p));
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_STAGE, "amp_state_save");
    CHECK_STATUS(amp_state_load(t->ctx, path, &a.st), AMP_ERR_STAGE, "amp_state_load");
    CHECK_OK(t_update(a.p, a.s, &d, AMP_SGD));
    CHECK_STATUS(amp_state_save(t->ctx, path, &a.st), AMP_ERR_STAGE, "amp_state_save");
    CHECK_OK(amp_scaler_update(a.s));
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    CHECK_OK(amp_state_load(t->ctx, path, &a.st));
    CHECK_OK(amp_step(a.p, a.s, &d));
    CHECK_OK(amp_state_save(t->ctx, path, &a.st));
    free_tiny(&a);
}

/* What a scaler remembers of a set, and a snapshot of a scaler, ends with a load: the weights and the scale change. */
static void a_load_begins_anew(t_run *t) {
    const char *path = t_file("anew.state");
    tiny a;
    amp_state_desc set_only, scaler_only;
    amp_snapshot snapshot;
    amp_step_desc d = t_rate_0();
    new_tiny(t, &a);
    set_only = scaler_only = a.st;
    set_only.n_scalers = scaler_only.n_params = 0;
    set_only.user_bytes = scaler_only.user_bytes = 0;
    set_only.user = scaler_only.user = NULL;
    t_note(t, "a set that was stepped can be stepped again");
    CHECK_OK(amp_state_save(t->ctx, path, &set_only));
    set_grad(t, a.p, 0, 3, 1.0f);
    CHECK_OK(amp_scaler_unscale(a.s, a.p));
    CHECK_OK(t_update(a.p, a.s, &d, AMP_SGD));
    CHECK_STATUS(t_update(a.p, a.s, &d, AMP_SGD), AMP_ERR_STAGE, "amp_update");
    CHECK_OK(amp_state_load(t->ctx, path, &set_only));
    CHECK_OK(t_update(a.p, a.s, &d, AMP_SGD));
    CHECK_OK(amp_scaler_update(a.s));
    t_note(t, "a snapshot of before is refused");
    CHECK_OK(amp_state_save(t->ctx, path, &scaler_only));
    CHECK_OK(amp_snapshot_take(t->ctx, &snapshot, NULL, a.s));
    CHECK_OK(amp_snapshot_begin(t->ctx, NULL, &snapshot));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_state_load(t->ctx, path, &scaler_only));
    CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &snapshot), AMP_ERR_STAGE, "amp_snapshot_begin");
    CHECK_OK(amp_autocast_release(t->ctx));
    free_tiny(&a);
}

/* ---- the format does not drift: files of today must load tomorrow, on any machine ---- */

/* XXH64 once more, over a whole buffer, as its specification puts it. */
#define P1 0x9e3779b185ebca87u
#define P2 0xc2b2ae3d27d4eb4fu
#define P3 0x165667b19e3779f9u
#define P4 0x85ebca77c2b2ae63u
#define P5 0x27d4eb2f165667c5u
static uint64_t rotl(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }
static uint64_t word(const unsigned char *b, int bytes) {
    uint64_t w = 0;
    while (bytes--)
        w = w << 8 | b[bytes];
    return w;
}
static uint64_t seal(const unsigned char *b, size_t n) {
    uint64_t acc[4] = {P1 + P2, P2, 0, 0u - P1}, h = P5;
    size_t i, left = n;
    if (n >= 32) {
        for (; left >= 32; left -= 32)
            for (i = 0; i < 4; i++, b += 8)
                acc[i] = rotl(acc[i] + word(b, 8) * P2, 31) * P1;
        h = rotl(acc[0], 1) + rotl(acc[1], 7) + rotl(acc[2], 12) + rotl(acc[3], 18);
        for (i = 0; i < 4; i++)
            h = (h ^ (rotl(acc[i] * P2, 31) * P1)) * P1 + P4;
    }
    h += n;
    for (; left >= 8; left -= 8, b += 8)
        h = rotl(h ^ (rotl(word(b, 8) * P2, 31) * P1), 27) * P1 + P4;
    if (left >= 4) {
        h = rotl(h ^ (word(b, 4) * P1), 23) * P2 + P3;
        left -= 4;
        b += 4;
    }
    for (; left; left--, b++)
        h = rotl(h ^ (*b * P5), 11) * P1;
    h = (h ^ (h >> 33)) * P2;
    h = (h ^ (h >> 29)) * P3;
    return h ^ (h >> 32);
}
static void xxh64(t_run *t) { /* published values, and pieces of any size */
    static const struct {
        const char *text;
        uint64_t sum;
    } known[] = {{"", 0xef46db3751d8e999u}, {"a", 0xd24ec4f1a98c6e5bu}, {"abc", 0x44bc2cf5ad770999u},
        {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1u}};
    unsigned char b[300];
    size_t i, k, n;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        ampi_xxh h = ampi_xxh_begin();
        ampi_xxh_add(&h, known[i].text, strlen(known[i].text));
        CHECK(ampi_xxh_end(&h) == known[i].sum);
        CHECK(seal((const unsigned char *)known[i].text, strlen(known[i].text)) == known[i].sum);
    }
    t_fill_bits(t, b, sizeof b);
    for (n = 0; n <= sizeof b; n++) {
        ampi_xxh h = ampi_xxh_begin();
        for (i = 0; i < n; i += k) {
            k = t_below(t, 70);
            if (k > n - i) k = n - i;
            ampi_xxh_add(&h, b + i, k);
        }
        CHECK(ampi_xxh_end(&h) == seal(b, n));
    }
}

/* A file made by hand, byte by byte. */
typedef struct hand {
    unsigned char b[1024];
    size_t n, section, scaler; /* bytes; where the last section begins, and the scaler's */
} hand;
static void put(hand *h, uint64_t x, int bytes) {
    for (; bytes--; x >>= 8)
        h->b[h->n++] = (unsigned char)x;
}
static void put_at(hand *h, size_t at, uint64_t x, int bytes) {
    size_t n = h->n;
    h->n = at;
    put(h, x, bytes);
    h->n = n;
}
static void put_bytes(hand *h, const void *from, size_t n) {
    memcpy(h->b + h->n, from, n);
    h->n += n;
}
static void open_section(hand *h, const char *tag, uint64_t index) {
    h->section = h->n;
    put_bytes(h, tag, 4);
    put(h, index, 4);
    put(h, 0, 8);
}
static void close_section(hand *h) { put_at(h, h->section + 8, h->n - h->section - 16, 8); }
static void head(hand *h, uint64_t sections) {
    memset(h, 0, sizeof *h);
    put_bytes(h, "AMPSTATE", 8);
    put(h, 2, 4); /* the version */
    put(h, sections, 4);
}
static void seal_and_spit(hand *h, const char *path) { /* h itself stays open */
    size_t n = h->n;
    put(h, seal(h->b, h->n), 8);
    spit(path, h->b, h->n);
    h->n = n;
}

/* A set of two weights after two steps, a new scaler with the default rule, and three user bytes. */
static void golden_bytes(hand *h) {
    static const uint64_t scaler[14] = {0x47800000, 0x40000000, 0x3f000000, 0x3f800000, 0x7f7fffff, 2000, 0, 1, 1, 0, 0,
        10, 0, 0}; /* scale, factors, floor, ceiling; interval, tracker, hysteresis, its tracker; mode, no_check, ... */
    int i;
    head(h, 4);
    open_section(h, "SET ", 0);
    put(h, 1, 4);
    put(h, 0, 4);
    put(h, 2, 8);
    put(h, 0, 8);
    close_section(h);
    open_section(h, "PRM ", 0);
    put(h, 0, 4);
    put(h, 0, 4);
    put(h, AMP_F32, 4);
    put(h, 3, 4);
    put(h, 2, 8);
    put_bytes(h, "fc1\0\0\0\0\0", 8);
    put(h, 0x3fc00000, 4);
    put(h, 0xc0000000, 4);
    close_section(h);
    open_section(h, "SCL ", 0);
    h->scaler = h->section;
    for (i = 0; i < 14; i++)
        put(h, scaler[i], 4);
    for (i = 0; i < 6; i++)
        put(h, 0, 8); /* counters */
    close_section(h);
    open_section(h, "USER", 0);
    put_bytes(h, "\xaa\xbb\xcc", 3);
    close_section(h);
}

/* What such a file is read into. */
typedef struct golden {
    amp_params *p;
    amp_scaler *s;
    unsigned char user[3];
    amp_state_desc st;
} golden;
static void golden_new(t_run *t, amp_ctx *ctx, golden *g) {
    static const float w[2] = {1.5f, -2.0f};
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    memset(g, 0, sizeof *g);
    pd.moments = AMP_NONE;
    CHECK_OK(amp_params_create(&g->p, ctx, &pd));
    e.name = "fc1";
    e.count = 2;
    e.init = w;
    CHECK_OK(amp_params_add(g->p, &e));
    CHECK_OK(amp_params_commit(g->p));
    CHECK_OK(amp_scaler_create(&g->s, ctx, NULL));
    memcpy(g->user, "\xaa\xbb\xcc", 3);
    g->st.params = &g->p;
    g->st.n_params = 1;
    g->st.scalers = &g->s;
    g->st.n_scalers = 1;
    g->st.user = g->user;
    g->st.user_bytes = 3;
}
static void golden_free(golden *g) {
    amp_params_destroy(g->p);
    amp_scaler_destroy(g->s);
}
static void golden_steps(t_run *t, golden *g, int steps) {
    amp_step_desc d = t_rate_0(); /* the weights stay */
    d.optimizer = AMP_SGD;
    while (steps--)
        CHECK_OK(amp_step(g->p, NULL, &d));
}
static void golden_loads(t_run *t, golden *g, const char *path) {
    float zero[2] = {0, 0}, *weights;
    uint16_t *h;
    t_set(t, amp_param_get(g->p, 0).master.data, zero, 8);
    golden_steps(t, g, 1);
    memset(g->user, 0, 3);
    CHECK_OK(amp_state_load(t->ctx, path, &g->st));
    weights = (float *)set_bits(t, amp_param_get(g->p, 0).master, 2);
    CHECK_F32(weights[0], 1.5f);
    CHECK_F32(weights[1], -2.0f);
    CHECK(memcmp(g->user, "\xaa\xbb\xcc", 3) == 0);
    CHECK_EQ(set_poll(t, g->p).steps, 2);
    h = (uint16_t *)set_bits(t, amp_param_model(g->p, 0), 2); /* made from the masters */
    CHECK_EQ(h[0], 0x3e00);
    CHECK_EQ(h[1], 0xc000);
}
static void golden_file(t_run *t) {
    const char *path = t_file("golden.state");
    unsigned char *got;
    golden g;
    hand h;
    size_t n;
    golden_bytes(&h);
    golden_new(t, t->ctx, &g);
    golden_steps(t, &g, 2);
    CHECK_OK(amp_state_save(t->ctx, path, &g.st));
    got = slurp(t, path, &n);
    CHECK_EQ(n, h.n + 8);
    if (got && n == h.n + 8) {
        CHECK_BITS(got, h.b, h.n, 1);
        CHECK(word(got + h.n, 8) == seal(h.b, h.n));
    }
    t_note(t, "and the hand-made file loads");
    seal_and_spit(&h, path);
    golden_loads(t, &g, path);
    golden_free(&g);
}
/* Every checksum is right, so each sentence must say what is wrong. */
static void wrong(t_run *t, golden *g, const char *path, const char *words) {
    CHECK_STATUS(amp_state_load(t->ctx, path, &g->st), AMP_ERR_FORMAT, words);
    CHECK(strstr(amp_last_error(t->ctx), "checksum") == NULL);
}
static void sealed_but_wrong(t_run *t) {
    static const uint64_t bad[6] = {0x7fc00000, 0x7f800000, 0, 0x80000000, 0xbf800000, 1};
    const char *path = t_file("sealed.state");
    size_t i;
    size_t user;
    golden g;
    hand h;
    golden_new(t, t->ctx, &g);
    t_note(t, "a section that stands there twice is refused, and one that is missing");
    golden_bytes(&h);
    user = h.section;
    put_bytes(&h, h.b + user, h.n - user);
    put_at(&h, 12, 5, 4);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load duplicated");
    h.n = user;
    put_at(&h, 12, 3, 4);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load missing");
    t_note(t, "a section that nobody knows is refused by name");
    golden_bytes(&h);
    memcpy(h.b + user, "NEXT", 4);
    close_section(&h);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load NEXT");
    t_note(t, "something after the last section");
    golden_bytes(&h);
    put(&h, seal(h.b, h.n), 8);
    put(&h, 7, 8);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load trailing");
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t_note(t, "a scale of bits %llx", (unsigned long long)bad[i]);
        golden_bytes(&h);
        put_at(&h, h.scaler + 16, bad[i], 4);
        seal_and_spit(&h, path);
        wrong(t, &g, path, "amp_state_load scale");
    }
    t_note(t, "S15: the state of a scaler that was off");
    golden_bytes(&h);
    put_at(&h, h.scaler + 16 + 36, AMP_SCALER_OFF, 4);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load off");
    t_note(t, "a version of the future is refused");
    golden_bytes(&h);
    put_at(&h, 8, 3, 4);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load version 3");
    t_note(t, "as is the one before the first release, and what is no state");
    golden_bytes(&h);
    put_at(&h, 8, 1, 4);
    seal_and_spit(&h, path);
    wrong(t, &g, path, "amp_state_load version 1");
    golden_bytes(&h);
    h.b[7] = 'F';
    seal_and_spit(&h, path);
    CHECK_STATUS(amp_state_load(t->ctx, path, &g.st), AMP_ERR_FORMAT, "amp_state_load not amp state");
    golden_free(&g);
}

/* It is as it was saved, and the next overflow lowers the scale. */
static void spent_tracker(t_run *t, golden *g, int32_t want) {
    amp_step_desc d = t_rate_0();
    amp_scaler_info info = set_info(t, g->s);
    const float scale = info.scale;
    CHECK_EQ(info.hysteresis_tracker, want);
    d.optimizer = AMP_SGD;
    set_grad_bits(t, g->p, 0, 0, 0x7c00u);
    CHECK_OK(amp_step(g->p, g->s, &d));
    info = set_info(t, g->s);
    CHECK_F32(info.scale, scale / 2);
    CHECK_EQ(info.hysteresis_tracker, want > INT32_MIN ? want - 1 : want);
}
/* What load takes is what create and steps can make, though the checksum is right: one number of a scaler's section. */
static void sealed_rules(t_run *t) {
    static const struct {
        size_t at; /* in the section */
        uint64_t bits;
        const char *words; /* NULL: it loads */
    } rows[] = {
        {4, 0xc0000000, "growth_factor > 1 -2"},
        {4, 0x3f800000, "growth_factor > 1"},
        {4, 0x7fc00000, "growth_factor"},
        {4, 0x3f800001, NULL},
        {8, 0x7fc00000, "backoff_factor (0, 1)"},
        {8, 0x7f800000, "backoff_factor"},
        {8, 0x40400000, "backoff_factor 3"},
        {8, 0xbf000000, "backoff_factor -0.5"},
        {8, 0x3f7fffff, NULL},
        {12, 0x7fc00000, "min_scale"},
        {12, 0x7149f2ca, "min_scale above the scale"},
        {12, 0, "min_scale"},
        {12, 0x47800000, NULL}, /* the scale */
        {16, 0xbf800000, "max_scale -1"},
        {16, 0x477fffff, "max_scale below the scale"},
        {16, 0x47800000, NULL},
        {20, 0xfffffffe, "growth_interval"},
        {20, 0xffffffff, NULL}, /* AMP_NONE */
        {24, 0x80000000, "counts"},
        {28, 0x80000000, "hysteresis"},
        {32, 2, "counts"},
        {32, 0, NULL},
        {32, 0xfffffffb, NULL}, /* -5, after overflows beyond the rule's */
        {32, 0x80000000, NULL},
        {36, 3, "mode 3"},
        {36, AMP_SCALER_STATIC, NULL},
        {48, 8, "counts"},
    };
    const char *path = t_file("rules.state");
    size_t i;
    golden g;
    hand h;
    golden_new(t, t->ctx, &g);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        t_note(t, "row %d", (int)i);
        golden_bytes(&h);
        put_at(&h, h.scaler + 16 + rows[i].at, rows[i].bits, 4);
        seal_and_spit(&h, path);
        if (rows[i].words)
            wrong(t, &g, path, rows[i].words);
        else
            CHECK_OK(amp_state_load(t->ctx, path, &g.st));
        if (rows[i].at == 32 && !rows[i].words) spent_tracker(t, &g, (int32_t)(uint32_t)rows[i].bits);
    }
    golden_free(&g);
}
/* The same of an amp_fp8 with 2 tensors, histories of 4: a state has inverse, amax, window, place, scale. */
static void sealed_fp8(t_run *t) {
    static const struct {
        size_t at; /* in the words of the section */
        uint64_t bits;
        const char *words;
    } rows[] = {
        {16, 0x7fc00000, "FP8 scale"},
        {16, 0xbf800000, "FP8 scale"},
        {48, 0, "FP8 scale"},
        {32, 0x7f800000, "FP8 scale"},
        {16, 0x40000000, NULL},
        {4, 0x7fc00000, "FP8 tensor"},
        {4, 0x7f800000, NULL}, /* an Inf was cast */
        {40, 0x80000000, "FP8 tensor"},
        {12, 4, "FP8 tensor"},
        {44, 0xffffffff, "FP8 tensor"},
        {12, 3, NULL},
        {20, 1, "FP8 tensor"},
        {24, 1, "FP8 tensor"},
        {64, 0x7fc00000, "FP8 history"},
        {92, 0xbf800000, "FP8 history"},
        {92, 0x3f800000, NULL},
    };
    const char *path = t_file("fp8.state");
    const float tiny[16] = {1e-37f, -1e-37f};
    const amp_array none = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f = NULL;
    void *x;
    unsigned char *b;
    size_t i, k, n = 0;
    d.tensors = 2;
    d.history = 4;
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d));
    st.fp8 = &f;
    st.n_fp8 = 1;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        t_note(t, "row %d", (int)i);
        CHECK_OK(amp_state_save(t->ctx, path, &st));
        b = slurp(t, path, &n);
        CHECK(memcmp(b + 16, "FP8 ", 4) == 0 && n == 40 + 96 + 8);
        for (k = 0; k < 4; k++)
            b[40 + rows[i].at + k] = (unsigned char)(rows[i].bits >> 8 * k);
        for (k = 0; k < 8; k++)
            b[n - 8 + k] = (unsigned char)(seal(b, n - 8) >> 8 * k);
        spit(path, b, n);
        if (rows[i].words)
            CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, rows[i].words);
        else
            CHECK_OK(amp_state_load(t->ctx, path, &st));
    }
    t_note(t, "a tensor of next to nothing has the largest scale, whose inverse has none");
    amp_fp8_destroy(f);
    d.history = 0;
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d));
    x = t_put(t, tiny, sizeof tiny);
    CHECK_OK(amp_quantize(f, 0, amp_arr(t_alloc(t, 16), AMP_F8E4M3), none, amp_arr(x, AMP_F32), 4, 4, 0));
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    b = slurp(t, path, &n);
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    CHECK_BITS(slurp(t, path, &k), b, n, 1);
    CHECK_EQ(k, n);
    amp_fp8_destroy(f);
}

/* A file whose bytes the system refuses to give: its reason, and no word about the format. */
static void unreadable(t_run *t) {
    static const char memory[] = "/proc/self/mem"; /* nothing lies at address 0 */
    amp_params *p;
    amp_state_desc st = AMP_ZERO;
    FILE *f = fopen(memory, "rb");
    if (!f) {
        t_skip(t, "needs /proc/self/mem");
        return;
    }
    fclose(f);
    p = set_one(t, 4, AMP_F32);
    st.params = &p;
    st.n_params = 1;
    CHECK_STATUS(amp_state_load(t->ctx, memory, &st), AMP_ERR_IO, "amp_state_load /proc/self/mem read failed");
    amp_params_destroy(p);
}

/* ---- what hardware does: the same bit of an even number of words ---- */

static void even_flips(t_run *t) {
    const char *path = t_file("flips.state");
    amp_params *p = set_one(t, 1000, AMP_F32);
    amp_state_desc st = AMP_ZERO;
    unsigned char *file;
    size_t n = 0, i, k;
    int bit, accepted = 0;
    st.params = &p;
    st.n_params = 1;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    file = slurp(t, path, &n);
    for (bit = 0; file && bit < 64; bit += t_slow(t) ? 21 : 1)
        for (k = 2; k <= 16; k *= 2) {
            size_t at[16];
            for (i = 0; i < k; i++) { /* different words, in a row of 500 */
                at[i] = 96 + 8 * (i * 31 + t_below(t, 31)) + (size_t)bit / 8;
                file[at[i]] ^= (unsigned char)(1u << bit % 8);
            }
            spit(path, file, n);
            accepted += amp_state_load(t->ctx, path, &st) != AMP_ERR_FORMAT;
            for (i = 0; i < k; i++)
                file[at[i]] ^= (unsigned char)(1u << bit % 8);
        }
    CHECK_EQ(accepted, 0);
    amp_params_destroy(p);
}
static void exchanged_sections(t_run *t) { /* the weights of one save with the moments of the next */
    const char *path = t_file("mixed.state"), *path2 = t_file("mixed2.state");
    amp_params *p = set_one(t, 50, AMP_F32);
    amp_state_desc st = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    unsigned char *a, *b;
    size_t n = 0, m = 0, i, size, tried = 0;
    d.lr = 0.1f;
    st.params = &p;
    st.n_params = 1;
    set_grad(t, p, 0, 50, 1.0f);
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_state_save(t->ctx, path2, &st));
    a = slurp(t, path, &n);
    b = slurp(t, path2, &m);
    if (!CHECK(a && b && n == m)) return;
    for (i = 16; i + 8 < n; i += size) { /* each section of the second save alone */
        unsigned char keep[512];
        size = 16 + (size_t)word(a + i + 8, 8);
        if (!CHECK(i + size <= n && size <= sizeof keep)) return;
        memcpy(keep, a + i, size);
        if (memcmp(keep, b + i, size) == 0) continue;
        t_note(t, "the section at %d", (int)i);
        memcpy(a + i, b + i, size);
        spit(path, a, n);
        CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_state_load checksum");
        memcpy(a + i, keep, size);
        tried++;
    }
    CHECK_EQ(tried, 4); /* steps, weights, two moments */
    spit(path, a, n);
    CHECK_OK(amp_state_load(t->ctx, path, &st));
    amp_params_destroy(p);
}

const t_test t_suite_state[] = {{"state.round_trip", round_trip, T_ALL},
    {"state.past_the_buffer", past_the_buffer, T_ALL}, {"state.only_parts", only_parts, T_ALL},
    {"state.stochastic_copies", stochastic_copies, T_ALL}, {"state.other_context", other_context, T_ALL},
    {"state.every_byte_flipped", every_byte_flipped, T_ALL}, {"state.every_length", every_length, T_ALL},
    {"state.random_damage", random_damage, T_ALL}, {"state.does_not_fit", does_not_fit, T_ALL},
    {"state.file_errors", file_errors, T_ALL}, {"state.in_the_middle", in_the_middle, T_ALL},
    {"state.a_load_begins_anew", a_load_begins_anew, T_ALL}, {"state.xxh64", xxh64, T_HOST},
    {"state.golden_file", golden_file, T_ALL}, {"state.sealed_but_wrong", sealed_but_wrong, T_ALL},
    {"state.sealed_rules", sealed_rules, T_ALL}, {"state.sealed_fp8", sealed_fp8, T_ALL},
    {"state.unreadable", unreadable, T_ALL}, {"state.even_flips", even_flips, T_ALL},
    {"state.exchanged_sections", exchanged_sections, T_ALL}, {NULL, NULL, 0}};
