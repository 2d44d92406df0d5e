/* convnet_check.h - convnet --check: convolutions beside plain loops in double, batch norm and pooling beside central
 * differences in double, and a short run of each mode.
 */
#ifndef CONVNET_CHECK_H
#define CONVNET_CHECK_H

/* ==== convolution beside direct loops ============================================================================= */

/* channels: in, out; then sizes, taps, stride, pad, dilation, extra of up to three dimensions, from the last one;
   pixels: of an image of y, as PyTorch says */
typedef struct conv_case {
    const char *name;
    size_t batch, in, out, groups, size[3], taps[3], stride[3], pad[3], dilation[3], extra[3];
    int transposed, bias;
    size_t pixels;
} conv_case;
static const conv_case cases[] = {
    {"conv1d, 5 taps, stride 2, padding 2", 2, 3, 4, 1, {1, 1, 11}, {1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {0}, {0}, 0, 1, 6},
    {"conv1d, dilation 3", 2, 2, 3, 1, {1, 1, 13}, {1, 1, 3}, {0}, {0}, {1, 1, 3}, {0}, 0, 0, 7},
    {"conv2d, 3 x 3", 2, 3, 5, 1, {1, 6, 7}, {1, 3, 3}, {0}, {0, 1, 1}, {0}, {0}, 0, 1, 42},
    {"conv2d, 3 x 2, stride 2 x 3, padding 1 x 0, dilation 2 x 1", 3, 4, 6, 1, {1, 9, 8}, {1, 3, 2}, {1, 2, 3},
        {0, 1, 0}, {1, 2, 1}, {0}, 0, 1, 12},
    {"conv2d, 2 groups", 2, 4, 6, 2, {1, 5, 5}, {1, 3, 3}, {0}, {0, 1, 1}, {0}, {0}, 0, 1, 25},
    {"conv2d, depthwise", 2, 35, 35, 35, {1, 5, 4}, {1, 3, 3}, {0}, {0, 1, 1}, {0}, {0}, 0, 0, 20},
    {"conv2d, 1 x 1", 2, 7, 5, 1, {1, 3, 3}, {0}, {0}, {0}, {0}, {0}, 0, 1, 9},
    {"conv3d, stride 1 x 2 x 1, padding 1", 2, 2, 3, 1, {4, 5, 3}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {0}, {0}, 0, 1, 24},
    {"conv_transpose1d, stride 2, padding 1, output padding 1", 2, 3, 2, 1, {1, 1, 5}, {1, 1, 4}, {1, 1, 2}, {0, 0, 1},
        {0}, {0, 0, 1}, 1, 1, 11},
    {"conv_transpose2d, 3 x 3, stride 2, padding 1", 2, 5, 3, 1, {1, 4, 3}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {0}, {0},
        1, 1, 35},
    {"conv_transpose2d, 2 groups, dilation 2", 2, 4, 6, 2, {1, 3, 4}, {1, 2, 3}, {0}, {0}, {1, 2, 2}, {0}, 1, 1, 40},
    {"conv_transpose3d, stride 2 x 1 x 2", 1, 2, 3, 1, {2, 3, 2}, {2, 3, 3}, {2, 1, 2}, {0, 1, 0}, {0}, {0}, 1, 0, 60},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* The arrays of a case on the host: in the dtype, as numbers in double, what the loops make of them. */
enum { X, W, BIAS, DY, Y, DX, DW, DBIAS, ARRAYS };
typedef struct conv_test {
    conv c;
    amp_dtype t;
    size_t count[ARRAYS];
    amp_array device[ARRAYS];
    double *value[ARRAYS], *bound[ARRAYS]; /* of outputs: the sum of the magnitudes, to bound the error with */
} conv_test;

/* Calls for every product x w that y is a sum of: PyTorch's definition, one sum over taps and channels of a group. */
typedef void (*conv_visit)(conv_test *e, size_t x, size_t w, size_t y);
static void conv_loops(conv_test *e, conv_visit visit) {
    const conv *c = &e->c;
    const conv_map *m = &c->map;
    size_t places = conv_volume(m->places), pixels = conv_volume(m->wide);
    size_t many = (c->transposed ? c->in : c->out) / c->groups, few = m->channels / c->groups; /* channels of a group */
    size_t n, p, i, g, a, b;
    for (n = 0; n < c->batch; n++)
        for (p = 0; p < places; p++)
            for (i = 0; i < m->n_taps; i++) {
                long z = (long)(p / m->places[2] / m->places[1] * m->stride[0] +
                             i / m->taps[2] / m->taps[1] * m->dilation[0]) -
                    (long)m->pad[0];
                long y = (long)(p / m->places[2] % m->places[1] * m->stride[1] +
                             i / m->taps[2] % m->taps[1] * m->dilation[1]) -
                    (long)m->pad[1];
                long x = (long)(p % m->places[2] * m->stride[2] + i % m->taps[2] * m->dilation[2]) - (long)m->pad[2];
                size_t pixel = (size_t)((z * (long)m->wide[1] + y) * (long)m->wide[2] + x);
                if (z < 0 || y < 0 || x < 0 || z >= (long)m->wide[0] || y >= (long)m->wide[1] || x >= (long)m->wide[2])
                    continue;
                for (g = 0; g < c->groups; g++)
                    for (a = 0; a < many; a++)
                        for (b = 0; b < few; b++) {
                            size_t place_at = ((n * places + p) * c->groups + g) * many + a;
                            size_t wide_at = ((n * pixels + pixel) * c->groups + g) * few + b;
                            size_t w = ((g * many + a) * m->n_taps + i) * few + b;
                            if (c->channels_first) {
                                place_at = ((n * c->groups + g) * many + a) * places + p;
                                wide_at = ((n * c->groups + g) * few + b) * pixels + pixel;
                                w = ((g * many + a) * few + b) * m->n_taps + i;
                            }
                            if (c->transposed)
                                visit(e, place_at, w, wide_at);
                            else
                                visit(e, wide_at, w, place_at);
                        }
            }
}
static void conv_add(conv_test *e, int array, size_t i, double a, double b) {
    e->value[array][i] += a * b;
    e->bound[array][i] += fabs(a * b);
}
static void conv_visit_all(conv_test *e, size_t x, size_t w, size_t y) {
    conv_add(e, Y, y, e->value[X][x], e->value[W][w]);
    conv_add(e, DX, x, e->value[DY][y], e->value[W][w]);
    conv_add(e, DW, w, e->value[DY][y], e->value[X][x]);
}

static size_t conv_count(const conv_test *e, int array) {
    const conv *c = &e->c;
    size_t places = c->rows * (c->transposed ? c->in : c->out), wide = conv_pixels(c) * c->map.channels;
    if (array == BIAS || array == DBIAS) return c->out;
    if (array == W || array == DW) return conv_weights(c);
    if (array == X || array == DX) return c->transposed ? places : wide;
    return c->transposed ? wide : places;
}
/* Random inputs, in context memory and in double; the seed is the case's. */
static void conv_test_create(conv_test *e, amp_ctx *ctx, const conv_case *k, amp_dtype t, int first) {
    conv *c = &e->c;
    size_t i;
    int a;
    memset(e, 0, sizeof *e);
    e->t = t;
    c->batch = k->batch;
    c->in = k->in;
    c->out = k->out;
    c->groups = k->groups;
    c->transposed = k->transposed;
    c->channels_first = first;
    memcpy(c->size, k->size, sizeof k->size);
    memcpy(c->taps, k->taps, sizeof k->taps);
    memcpy(c->stride, k->stride, sizeof k->stride);
    memcpy(c->pad, k->pad, sizeof k->pad);
    memcpy(c->dilation, k->dilation, sizeof k->dilation);
    memcpy(c->extra, k->extra, sizeof k->extra);
    conv_sizes(c);
    for (a = 0; a < ARRAYS; a++) {
        size_t n = e->count[a] = conv_count(e, a);
        void *host = allocate(n, amp_dtype_size(t)), *p;
        e->value[a] = (double *)allocate(2 * n, sizeof(double));
        e->bound[a] = e->value[a] + n;
        for (i = 0; i < n && a <= DY; i++) {
            amp_store(host, t, i, (float)(2 * uniform((uint64_t)(k - cases), (uint64_t)a, i) - 1));
            e->value[a][i] = a == BIAS && !k->bias ? 0 : (double)amp_load(host, t, i);
        }
        must(ctx, amp_alloc(ctx, &p, n * amp_dtype_size(t), "check"));
        must(ctx, amp_copy(ctx, p, host, n * amp_dtype_size(t)));
        e->device[a] = amp_arrn(p, t, n);
        free(host);
    }
    c->x = e->device[X];
    c->w = e->device[W];
    c->y = e->device[Y];
    c->dy = e->device[DY];
    c->dx = e->device[DX];
    c->dw = e->device[DW];
    if (k->bias) c->bias = e->device[BIAS];
    if (k->bias) c->dbias = e->device[DBIAS];
}
/* The largest error, as a share of what is allowed: FP32 sums of n terms; one rounding to the dtype, and one more of
   each term where columns are summed up, or (CUDA) of the sum to which a bias per row is added. */
static double conv_error(amp_ctx *ctx, conv_test *e, int array) {
    const conv *c = &e->c;
    size_t n = e->count[array], terms = c->rows + c->k + c->map.n_taps * c->in + conv_pixels(c), i;
    double half = e->t == AMP_F32 ? ldexp(1, -24) : ldexp(1, e->t == AMP_F16 ? -11 : -8), worst = 0;
    int twice = array == (c->transposed ? Y : DX) || (array == Y && c->channels_first && c->bias.data);
    double unit = (double)terms * ldexp(1, -23) + (twice ? half : 0);
    void *host = allocate(n, amp_dtype_size(e->t));
    must(ctx, amp_copy(ctx, host, e->device[array].data, n * amp_dtype_size(e->t)));
    for (i = 0; i < n; i++) {
        double error = fabs((double)amp_load(host, e->t, i) - e->value[array][i]);
        double bound = unit * e->bound[array][i] + half * fabs(e->value[array][i]) + ldexp(1, -25);
        if (!(error / bound <= worst)) worst = error / bound;
    }
    free(host);
    return worst;
}
static int check_conv(amp_ctx *ctx, const conv_case *k, amp_dtype t, int first) { /* first: channels */
    static conv_test e;
    static const int outputs[4] = {Y, DX, DW, DBIAS};
    double error[4] = {0}, worst = 0;
    void *p;
    size_t pixels, i;
    int a;
    conv_test_create(&e, ctx, k, t, first);
    must(ctx, amp_alloc(ctx, &p, conv_scratch(&e.c) * amp_dtype_size(t), "check"));
    e.c.patches = amp_arrn(p, t, conv_scratch(&e.c));
    conv_forward(ctx, &e.c);
    conv_backward(ctx, &e.c);
    conv_loops(&e, conv_visit_all);
    pixels = conv_volume(e.c.y_size);
    for (i = 0; i < e.count[Y]; i++) {
        size_t channel = (first ? i / pixels : i) % e.c.out;
        conv_add(&e, Y, i, e.value[BIAS][channel], 1);
        conv_add(&e, DBIAS, channel, e.value[DY][i], 1);
    }
    for (a = 0; a < 4; a++) {
        if (outputs[a] == DBIAS && !k->bias) continue;
        error[a] = conv_error(ctx, &e, outputs[a]);
        if (!(error[a] <= worst)) worst = error[a];
    }
    must(ctx, amp_free(ctx, p));
    for (a = 0; a < ARRAYS; a++) {
        must(ctx, amp_free(ctx, e.device[a].data));
        free(e.value[a]);
    }
    return claim(worst <= 1 && pixels == k->pixels,
        "%s%s, %s: y %.2f, dx %.2f, dw %.2f, dbias %.2f of the allowed error", k->name, first ? ", channels first" : "",
        amp_dtype_name(t), error[0], error[1], error[2], error[3]);
}

/* ==== batch norm, ReLU and pooling beside central differences ===================================================== */

enum { IMAGES = 5, SIDE = 4, COLORS = 3, PLACES = IMAGES * SIDE * SIDE, POOLED = PLACES / 4 };
enum { NX = PLACES * COLORS, NY = POOLED * COLORS, ALL = NX + 2 * COLORS };

/* y of v = x, gains, biases; with train 0 by the given mean and variance, else it writes them. */
static void ref_layer(double *y, double *mean, double *variance, const double *v, int train) {
    double all[NX];
    size_t c, r, i;
    for (c = 0; c < COLORS; c++) {
        if (train) mean[c] = variance[c] = 0;
        for (r = 0; r < PLACES && train; r++)
            mean[c] += v[r * COLORS + c] / PLACES;
        for (r = 0; r < PLACES && train; r++)
            variance[c] += (v[r * COLORS + c] - mean[c]) * (v[r * COLORS + c] - mean[c]) / PLACES;
        for (r = 0; r < PLACES; r++) {
            double z = (v[r * COLORS + c] - mean[c]) / sqrt(variance[c] + (double)NORM_EPS);
            all[r * COLORS + c] = fmax(0, z * v[NX + c] + v[NX + COLORS + c]);
        }
    }
    for (i = 0; i < NY; i++) {
        size_t place = i / COLORS, line = place / (SIDE / 2);
        const double *corner = all + (2 * line * SIDE + 2 * (place % (SIDE / 2))) * COLORS + i % COLORS;
        y[i] = fmax(fmax(corner[0], corner[COLORS]), fmax(corner[SIDE * COLORS], corner[(SIDE + 1) * COLORS]));
    }
}
static double ref_sum(const double *v, const double *dy) { /* the loss whose gradient of y is dy */
    double y[NY], mean[COLORS], variance[COLORS], sum = 0;
    size_t i;
    ref_layer(y, mean, variance, v, 1);
    for (i = 0; i < NY; i++)
        sum += y[i] * dy[i];
    return sum;
}
static double distance(const float *a, const double *b, size_t n) { /* relative to the length of b */
    double error = 0, length = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        length += b[i] * b[i];
    }
    return sqrt(error / length);
}
static int check_norm(amp_ctx *ctx) {
    enum { FLOATS = 4 * NX + 2 * NY + 8 * COLORS + (PLACES / NORM_ROWS + 1) * 2 * COLORS };
    static float host[FLOATS];
    double v[ALL], d[ALL], dy[NY], y[NY], mean[COLORS], variance[COLORS], errors[3];
    batch_norm n = AMP_ZERO;
    pool_job p = AMP_ZERO;
    float *at;
    size_t i;
    for (i = 0; i < ALL; i++)
        v[i] = (double)(float)(4 * uniform(5, 0, i) - 2 + (i < NX ? 3 : 0));
    for (i = 0; i < NY; i++)
        dy[i] = (double)(float)(2 * uniform(5, 1, i) - 1);
    for (i = 0; i < ALL; i++) {
        double was = v[i], up, down;
        v[i] = was + 1e-6;
        up = ref_sum(v, dy);
        v[i] = was - 1e-6;
        down = ref_sum(v, dy);
        v[i] = was;
        d[i] = (up - down) / 2e-6;
    }
    must(ctx, amp_alloc(ctx, (void **)&at, sizeof host, "check"));
    for (i = 0; i < FLOATS; i++) /* x, gain, bias, dy, then what is written; running means 0 and variances 1 */
        host[i] = i < ALL ? (float)v[i] : i < ALL + NY ? (float)dy[i - ALL] : i >= FLOATS - COLORS;
    must(ctx, amp_copy(ctx, at, host, sizeof host));
    n.rows = PLACES;
    n.channels = COLORS;
    n.x = amp_arr(at, AMP_F32);
    n.gain = at + NX;
    n.bias = n.gain + COLORS;
    p.dy = at + ALL;
    p.y = at + ALL + NY;
    p.x = at + ALL + 2 * NY;
    n.y = amp_arr(p.x, AMP_F32);
    p.dx = (float *)n.y.data + NX;
    n.dy = amp_arr(p.dx, AMP_F32);
    n.dx = amp_arr((float *)p.dx + NX, AMP_F32); /* its NX floats, then dgain and dbias: in the order of v */
    n.dgain = (float *)n.dx.data + NX;
    n.dbias = n.dgain + COLORS;
    n.mean = n.dbias + COLORS;
    n.rstd = n.mean + COLORS;
    n.part = n.rstd + COLORS;
    n.running_mean = at + FLOATS - 2 * COLORS;
    n.running_variance = n.running_mean + COLORS;
    p.t = AMP_F32;
    p.height = p.width = SIDE / 2;
    p.channels = COLORS;
    norm_forward(ctx, &n, 1);
    pool_rows(ctx, &p, POOLED);
    pool_back_rows(ctx, &p, POOLED);
    norm_backward(ctx, &n);
    ref_layer(y, mean, variance, v, 1);
    must(ctx, amp_copy(ctx, host, p.y, NY * sizeof *host));
    errors[0] = distance(host, y, NY);
    must(ctx, amp_copy(ctx, host, n.dx.data, ALL * sizeof *host));
    errors[1] = distance(host, d, ALL);
    for (i = 0; i < COLORS; i++) { /* the running ones have moved a tenth of the way */
        mean[i] *= (double)NORM_MOMENTUM;
        variance[i] = 1 + (double)NORM_MOMENTUM * (variance[i] * PLACES / (PLACES - 1) - 1);
    }
    norm_forward(ctx, &n, 0);
    pool_rows(ctx, &p, POOLED);
    ref_layer(y, mean, variance, v, 0);
    must(ctx, amp_copy(ctx, host, p.y, NY * sizeof *host));
    errors[2] = distance(host, y, NY);
    must(ctx, amp_free(ctx, at));
    return claim(errors[0] < 1e-6 && errors[1] < 1e-5 && errors[2] < 1e-6,
        "batch norm, ReLU and pooling: y differs from double by %.1e, gradients by %.1e, y by running means by %.1e",
        errors[0], errors[1], errors[2]);
}

/* ==== a short run ================================================================================================= */

/* A few ordered steps here and on three CPU threads: the same bits. */
static int check_bits(options o, const images *data, const images *test) {
    images few = *data, fewer = *test;
    int m, wrong = 0;
    few.count = 24;
    fewer.count = 8;
    o.ordered = 1;
    o.epochs = 1;
    o.batch = 8;
    for (m = 1; m < MODES; m++) {
        options cpu = o;
        amp_ctx *a = create_context(&o), *b;
        result here, there;
        cpu.device = "cpu";
        cpu.threads = 3;
        b = create_context(&cpu);
        progress.total = 2 * MODES;
        progress.start = seconds();
        here = train(a, &o, &modes[m], &few, &fewer, 1);
        there = train(b, &cpu, &modes[m], &few, &fewer, 1);
        wrong += claim(here.hash == there.hash, "%s, ordered: weights after 3 steps are %08lx, on 3 threads %08lx",
            modes[m].name, (unsigned long)(here.hash & 0xffffffffu), (unsigned long)(there.hash & 0xffffffffu));
        amp_ctx_destroy(a);
        amp_ctx_destroy(b);
    }
    return wrong;
}
static int check_training(amp_ctx *ctx, options o, const images *data, const images *test) {
    result r[MODES];
    int m, wrong = 0;
    o.epochs = 2;
    o.batch = 8;
    o.lr = 4e-3;
    progress.start = seconds();
    progress.total = MODES * o.epochs;
    for (m = 0; m < MODES; m++) {
        r[m] = train(ctx, &o, &modes[m], data, test, 1);
        wrong += claim(r[m].accuracy > 0.972 && fabs(r[m].loss / r[FP32].loss - 1) < 0.25,
            "%s: %.2f%% of the test images after %d epochs, more than the dense networks' 97.2%%; loss %.4f, %.3f of "
            "fp32's; %d steps skipped",
            modes[m].name, 100 * r[m].accuracy, (int)o.epochs, r[m].loss, r[m].loss / r[FP32].loss, (int)r[m].skipped);
    }
    wrong += claim(r[1].activations * 2 == r[FP32].activations && r[1].patches * 2 == r[FP32].patches,
        "fp16: %.1f KiB of activations and gradients, %.1f of patches: half of fp32's", (double)r[1].activations / 1024,
        (double)r[1].patches / 1024);
    return wrong;
}
static int check(amp_ctx *ctx, const options *o, const images *data, const images *test) {
    int wrong = 0, i;
    for (i = 0; i < N_CASES; i++) {
        wrong += check_conv(ctx, &cases[i], AMP_F32, 0);
        wrong += check_conv(ctx, &cases[i], i % 3 ? AMP_F16 : AMP_BF16, 0);
        wrong += check_conv(ctx, &cases[i], i % 3 ? AMP_F32 : AMP_F16, 1);
        wrong += check_conv(ctx, &cases[i], i % 3 == 1 ? AMP_BF16 : i % 3 ? AMP_F16 : AMP_F32, 1);
    }
    wrong += check_norm(ctx);
    progress.start = seconds();
    wrong += check_bits(*o, data, test);
    if (o->check > 1) wrong += check_training(ctx, *o, data, test);
    printf("\n%s\n", wrong ? "Some claims do not hold." : "All claims hold.");
    return wrong;
}

#endif
