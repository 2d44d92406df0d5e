/* conv.h - what convnet.c needs and amp does not have: convolution by amp_gemm, batch norm with ReLU, max pooling.
 *
 * One routine for convolutions of 1, 2 and 3 dimensions and transposed ones, with stride, padding, dilation and groups.
 * Arrays are channels last: x is [batch, size[0], size[1], size[2], in], and the weight is PyTorch's in its format of
 * that name: [out, taps, in / groups], and [in, taps, out / groups] of a transposed one; or, with channels_first,
 * PyTorch's usual [batch, in, size[0], size[1], size[2]] and [out, in / groups, taps], [in, out / groups, taps]. Two
 * sides of a layer are told apart by what a window does with them. The wide side is where windows are taken from: x of
 * a convolution, y of a transposed one. The other side has one place per window. With a row of patches per place, the
 * elements of its window, products do all of the work (im2col and col2im: K. Chellapilla, S. Puri, P. Simard, 2006):
 *
 *     places  = patches w^T        patches gathered from the wide side: im2col
 *     dw      = places^T patches   of the same patches
 *     patches = places w           summed up into the wide side: col2im
 *
 * In a convolution these are y, dw and dx; in a transposed one dx, dw and y. Groups are the batch of each product.
 * Channels first, the images are the batch, patches have a column per place, and of each image n
 *
 *     places_n  = w patches_n            with a bias per row of the product (bias_per_row)
 *     dw        = sum of places_n patches_n^T            over the images (sum_batches)
 *     patches_n = w^T places_n
 *     dbias     = sum of dy_n times ones                 the same
 */
#ifndef CONV_H
#define CONV_H

#include "rows.h" /* ROW, ROWS, team */

/* ==== convolution ================================================================================================= */

typedef struct conv_map {            /* how windows lie on the wide side */
    size_t groups, channels, n_taps; /* channels: of the wide side */
    size_t wide[3], places[3], taps[3], stride[3], pad[3], dilation[3];
} conv_map;

typedef struct conv {                       /* one layer: 1-d and 2-d ones leave the first sizes 0 */
    size_t batch, in, out, groups;          /* groups 0 => 1 */
    size_t size[3];                         /* of x; 0 => 1 */
    size_t taps[3], stride[3], dilation[3]; /* 0 => 1 */
    size_t pad[3];
    size_t extra[3]; /* transposed: output_padding, at the end */
    int transposed, channels_first;
    amp_array x, w, y, bias;     /* bias: [out] of any dtype, or data NULL; all else has one dtype */
    amp_array dy, dx, dw, dbias; /* dx, dbias: data NULL if not wanted */
    amp_array patches;           /* scratch of conv_scratch(c) elements, which layers may share */
    /* filled by conv_sizes */
    conv_map map;
    size_t y_size[3], rows, k; /* rows: places of all images; k: elements of a group's window */
} conv;

/* Element i of an array [.., size[0], size[1], size[2]]: its place in each; returns the number of the image. */
ROW size_t conv_at(size_t i, const size_t size[3], size_t at[3]) {
    at[2] = i % size[2];
    i /= size[2];
    at[1] = i % size[1];
    i /= size[1];
    at[0] = i % size[0];
    return i / size[0];
}
/* Between a channel of the wide side and its element in a row of patches: groups lie one after the other there. */
ROW size_t conv_column(const conv_map *m, size_t tap, size_t channel) {
    size_t width = m->channels / m->groups, group = m->groups > 1 ? channel / width : 0;
    return group * (m->n_taps - 1) * width + tap * width + channel;
}

/* The pixel that a window at `place` has under `tap`; 0: it is outside. Unsigned: what is before the first one is a
   very large number. Both functions go on from the number of the image. */
ROW int conv_pixel_of(const conv_map *m, const size_t place[3], const size_t tap[3], size_t *pixel) {
    size_t d;
    int inside = 1;
    for (d = 0; d < 3; d++) {
        size_t p = place[d] * m->stride[d] + tap[d] * m->dilation[d] - m->pad[d];
        inside &= p < m->wide[d];
        *pixel = *pixel * m->wide[d] + p;
    }
    return inside;
}
/* The place whose window has the pixel `at` under `tap`; 0: there is none. */
ROW int conv_place_of(const conv_map *m, const size_t at[3], const size_t tap[3], size_t *place) {
    size_t d;
    int read = 1;
    for (d = 0; d < 3; d++) {
        size_t p = at[d] + m->pad[d] - tap[d] * m->dilation[d];
        read &= p % m->stride[d] == 0 && p / m->stride[d] < m->places[d];
        *place = *place * m->places[d] + p / m->stride[d];
    }
    return read;
}
ROW size_t conv_volume(const size_t size[3]) { return size[0] * size[1] * size[2]; }
ROW void conv_copy(void *to, size_t i, const void *from, size_t k, int inside, amp_dtype t) { /* bits, or zero */
    if (t == AMP_F32)
        ((float *)to)[i] = inside ? ((const float *)from)[k] : 0.0f;
    else
        ((amp_any16 *)to)[i].bits = inside ? ((const amp_any16 *)from)[k].bits : 0;
}

/* patches[row] = the window of place `row`; zeros where it is outside. Bits are copied. */
typedef struct im2col_job {
    amp_dtype t;
    conv_map map;
    const void *wide;
    void *patches;
} im2col_job;
ROW void im2col(const im2col_job *j, size_t row, amp_dtype t, team w) {
    const conv_map *m = &j->map;
    size_t place[3], tap[3], i, c, image = conv_at(row, m->places, place), at = row * m->n_taps * m->channels;
    for (i = 0; i < m->n_taps; i++) {
        size_t pixel = image;
        int inside = (conv_at(i, m->taps, tap), conv_pixel_of(m, place, tap, &pixel));
        for (c = w.lane; c < m->channels; c += w.lanes)
            conv_copy(j->patches, at + conv_column(m, i, c), j->wide, pixel * m->channels + c, inside, t);
    }
}
ROWS(im2col)
/* Channels first: patches[row], a row for each image, channel and tap; its element of each place. */
ROW void im2col_first(const im2col_job *j, size_t row, amp_dtype t, team w) {
    const conv_map *m = &j->map;
    size_t place[3], tap[3], i, places = conv_volume(m->places);
    conv_at(row % m->n_taps, m->taps, tap);
    for (i = w.lane; i < places; i += w.lanes) {
        size_t pixel = row / m->n_taps; /* the number of image and channel */
        int inside = (conv_at(i, m->places, place), conv_pixel_of(m, place, tap, &pixel));
        conv_copy(j->patches, row * places + i, j->wide, pixel, inside, t);
    }
}
ROWS_OF(im2col_first, im2col_job)

/* wide[pixel] = bias + the sum of those elements of all patches that are of this pixel, in FP32, tap after tap. */
enum { CHANNELS_AT_ONCE = 8 };
typedef struct col2im_job {
    amp_dtype t;
    conv_map map;
    const void *patches;
    amp_array bias;
    void *wide;
} col2im_job;
ROW void col2im(const col2im_job *j, size_t row, amp_dtype t, team w) {
    const conv_map *m = &j->map;
    size_t at[3], tap[3], first, i, c, d, image = conv_at(row, m->wide, at);
    for (first = w.lane; first < m->channels; first += CHANNELS_AT_ONCE * w.lanes) {
        float sum[CHANNELS_AT_ONCE] = {0};
        size_t end =
            first + CHANNELS_AT_ONCE * w.lanes < m->channels ? first + CHANNELS_AT_ONCE * w.lanes : m->channels;
        for (i = 0; i < m->n_taps; i++) {
            size_t place = image;
            conv_at(i, m->taps, tap);
            if (!conv_place_of(m, at, tap, &place)) continue;
            for (c = first, d = 0; c < end; c += w.lanes, d++)
                sum[d] += amp_load(j->patches, t, place * m->n_taps * m->channels + conv_column(m, i, c));
        }
        for (c = first, d = 0; c < end; c += w.lanes, d++) {
            float b = j->bias.data ? amp_load(j->bias.data, j->bias.dtype, c) : 0.0f;
            amp_store(j->wide, t, row * m->channels + c, sum[d] + b);
        }
    }
}
ROWS(col2im)
/* Channels first: wide[row], the pixels of one channel of one image. */
ROW void col2im_first(const col2im_job *j, size_t row, amp_dtype t, team w) {
    const conv_map *m = &j->map;
    size_t at[3], tap[3], pixels = conv_volume(m->wide), places = conv_volume(m->places), i, k;
    float bias = j->bias.data ? amp_load(j->bias.data, j->bias.dtype, row % m->channels) : 0.0f;
    for (i = w.lane; i < pixels; i += w.lanes) {
        float sum = 0;
        conv_at(i, m->wide, at);
        for (k = 0; k < m->n_taps; k++) {
            size_t place = 0;
            conv_at(k, m->taps, tap);
            if (!conv_place_of(m, at, tap, &place)) continue;
            sum += amp_load(j->patches, t, (row * m->n_taps + k) * places + place);
        }
        amp_store(j->wide, t, row * pixels + i, sum + bias);
    }
}
ROWS_OF(col2im_first, col2im_job)
/* A column of ones: what sums up the rows of a matrix. */
ROW void ones_first(const im2col_job *j, size_t row, amp_dtype t, team w) {
    if (!w.lane) amp_store(j->patches, t, row, 1.0f);
}
ROWS_OF(ones_first, im2col_job)

/* The sizes that follow from those given: of y, of the wide side, of the patches. */
static void conv_sizes(conv *c) {
    conv_map *m = &c->map;
    size_t d;
    if (!c->groups) c->groups = 1;
    if (c->in % c->groups || c->out % c->groups)
        fail("convolution: %d groups of %d -> %d channels", (int)c->groups, (int)c->in, (int)c->out);
    m->groups = c->groups;
    m->channels = c->transposed ? c->out : c->in;
    m->n_taps = 1;
    c->rows = c->batch;
    for (d = 0; d < 3; d++) {
        size_t x = c->size[d] ? c->size[d] : 1, taps = c->taps[d] ? c->taps[d] : 1, reach, padded;
        m->taps[d] = taps;
        m->stride[d] = c->stride[d] ? c->stride[d] : 1;
        m->dilation[d] = c->dilation[d] ? c->dilation[d] : 1;
        m->pad[d] = c->pad[d];
        m->n_taps *= taps;
        reach = (taps - 1) * m->dilation[d] + 1;
        padded = c->transposed ? (x - 1) * m->stride[d] + reach + c->extra[d] : x + 2 * c->pad[d];
        if (c->transposed ? padded <= 2 * c->pad[d] : padded < reach) fail("convolution: nothing is left of an image");
        c->y_size[d] = c->transposed ? padded - 2 * c->pad[d] : (padded - reach) / m->stride[d] + 1;
        m->wide[d] = c->transposed ? c->y_size[d] : x;
        m->places[d] = c->transposed ? x : c->y_size[d];
        c->rows *= m->places[d];
    }
    c->k = m->n_taps * m->channels / c->groups;
}
static size_t conv_pixels(const conv *c) { /* of the wide side, all images */
    return c->batch * c->map.wide[0] * c->map.wide[1] * c->map.wide[2];
}
static size_t conv_weights(const conv *c) { return (c->transposed ? c->in : c->out) * c->k; }
static size_t conv_patches(const conv *c) { return c->rows * c->groups * c->k; }
static size_t conv_scratch(const conv *c) { /* ones take the place of patches, of which there may be fewer */
    size_t pixels = conv_volume(c->y_size), patches = conv_patches(c);
    return c->channels_first && pixels > patches ? pixels : patches;
}

static void conv_gather(amp_ctx *ctx, const conv *c, amp_array wide) {
    im2col_job j = AMP_ZERO;
    j.t = wide.dtype;
    j.map = c->map;
    j.wide = wide.data;
    j.patches = c->patches.data;
    if (c->channels_first)
        im2col_first_rows(ctx, &j, c->batch * c->map.channels * c->map.n_taps);
    else
        im2col_rows(ctx, &j, c->rows);
}
static void conv_scatter(amp_ctx *ctx, const conv *c, amp_array wide, amp_array bias) {
    col2im_job j = AMP_ZERO;
    j.t = wide.dtype;
    j.map = c->map;
    j.patches = c->patches.data;
    j.bias = bias;
    j.wide = wide.data;
    if (c->channels_first)
        col2im_first_rows(ctx, &j, c->batch * c->map.channels);
    else
        col2im_rows(ctx, &j, conv_pixels(c));
}
static amp_array conv_from(amp_array a, size_t element) {
    a.data = (char *)a.data + element * amp_dtype_size(a.dtype);
    a.count = 0;
    return a;
}
/* Of the side that is not wide: a group's channels; the places of an image. */
static size_t conv_narrow(const conv *c) { return (c->transposed ? c->in : c->out) / c->groups; }
static size_t conv_places(const conv *c) { return conv_volume(c->map.places); }

/* ---- channels first: the products of one group, over all images ---- */
static void conv_to_places_first(amp_ctx *ctx, const conv *c, amp_array places, amp_array bias) {
    size_t narrow = conv_narrow(c), n = conv_places(c), i;
    amp_gemm_desc g = AMP_ZERO;
    g.batch = c->batch;
    g.m = narrow;
    g.n = n;
    g.k = c->k;
    g.stride_a = AMP_BROADCAST;
    g.stride_b = c->groups * c->k * n;
    g.stride_d = c->groups * narrow * n;
    g.bias_per_row = 1;
    for (i = 0; i < c->groups; i++) {
        g.a = conv_from(c->w, i * narrow * c->k);
        g.b = conv_from(c->patches, i * c->k * n);
        g.d = conv_from(places, i * narrow * n);
        if (bias.data) g.bias = conv_from(bias, i * narrow);
        must(ctx, amp_gemm(ctx, &g));
    }
}
static void conv_to_patches_first(amp_ctx *ctx, const conv *c, amp_array places) {
    size_t narrow = conv_narrow(c), n = conv_places(c), i;
    amp_gemm_desc g = AMP_ZERO;
    g.batch = c->batch;
    g.m = c->k;
    g.n = n;
    g.k = narrow;
    g.trans_a = 1;
    g.stride_a = AMP_BROADCAST;
    g.stride_b = c->groups * narrow * n;
    g.stride_d = c->groups * c->k * n;
    for (i = 0; i < c->groups; i++) {
        g.a = conv_from(c->w, i * narrow * c->k);
        g.b = conv_from(places, i * narrow * n);
        g.d = conv_from(c->patches, i * c->k * n);
        must(ctx, amp_gemm(ctx, &g));
    }
}
static void conv_to_weights_first(amp_ctx *ctx, const conv *c, amp_array places) {
    size_t narrow = conv_narrow(c), n = conv_places(c), i;
    amp_gemm_desc g = AMP_ZERO;
    g.batch = c->batch;
    g.m = narrow;
    g.n = c->k;
    g.k = n;
    g.trans_b = 1;
    g.sum_batches = 1;
    g.stride_a = c->groups * narrow * n;
    g.stride_b = c->groups * c->k * n;
    for (i = 0; i < c->groups; i++) {
        g.a = conv_from(places, i * narrow * n);
        g.b = conv_from(c->patches, i * c->k * n);
        g.d = conv_from(c->dw, i * narrow * c->k);
        must(ctx, amp_gemm(ctx, &g));
    }
}
static void conv_to_bias_first(amp_ctx *ctx, const conv *c) { /* dbias: the scratch has ones in it */
    im2col_job ones = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    g.batch = c->batch;
    g.m = c->out;
    g.n = 1;
    g.k = conv_volume(c->y_size);
    g.sum_batches = 1;
    g.stride_b = AMP_BROADCAST;
    g.a = c->dy;
    g.b = c->patches;
    g.d = c->dbias;
    ones.t = c->patches.dtype;
    ones.patches = c->patches.data;
    ones_first_rows(ctx, &ones, g.k);
    must(ctx, amp_gemm(ctx, &g));
}

/* ---- channels last ----
   places = patches w^T + bias. A product has one bias, so that groups with biases are a call each. */
static void conv_to_places(amp_ctx *ctx, const conv *c, amp_array places, amp_array bias) {
    size_t channels = conv_narrow(c), calls = bias.data ? c->groups : 1, i;
    amp_gemm_desc g = AMP_ZERO;
    if (c->channels_first) {
        conv_to_places_first(ctx, c, places, bias);
        return;
    }
    g.m = c->rows;
    g.n = channels;
    g.k = g.stride_a = c->k;
    g.trans_b = 1;
    g.lda = c->groups * c->k;
    g.ldd = c->groups * channels;
    g.stride_d = channels;
    g.batch = c->groups / calls;
    for (i = 0; i < calls; i++) {
        g.a = conv_from(c->patches, i * c->k);
        g.b = conv_from(c->w, i * channels * c->k);
        g.d = conv_from(places, i * channels);
        if (bias.data) g.bias = conv_from(bias, i * channels);
        must(ctx, amp_gemm(ctx, &g));
    }
}
static void conv_to_patches(amp_ctx *ctx, const conv *c, amp_array places) { /* patches = places w */
    amp_gemm_desc g = AMP_ZERO;
    if (c->channels_first) {
        conv_to_patches_first(ctx, c, places);
        return;
    }
    g.k = g.stride_a = conv_narrow(c);
    g.m = c->rows;
    g.n = g.stride_d = c->k;
    g.lda = c->groups * g.k;
    g.ldd = c->groups * c->k;
    g.batch = c->groups;
    g.a = places;
    g.b = c->w;
    g.d = c->patches;
    must(ctx, amp_gemm(ctx, &g));
}
static void conv_to_weights(amp_ctx *ctx, const conv *c, amp_array places) { /* dw = places^T patches */
    amp_gemm_desc g = AMP_ZERO;
    if (c->channels_first) {
        conv_to_weights_first(ctx, c, places);
        return;
    }
    g.m = g.stride_a = conv_narrow(c);
    g.k = c->rows;
    g.n = g.stride_b = c->k;
    g.trans_a = 1;
    g.lda = c->groups * g.m;
    g.ldb = c->groups * c->k;
    g.batch = c->groups;
    g.a = places;
    g.b = c->patches;
    g.d = c->dw;
    must(ctx, amp_gemm(ctx, &g));
}
static void conv_forward(amp_ctx *ctx, const conv *c) {
    const amp_array none = AMP_ZERO;
    if (c->transposed) {
        conv_to_patches(ctx, c, c->x);
        conv_scatter(ctx, c, c->y, c->bias);
        return;
    }
    conv_gather(ctx, c, c->x);
    conv_to_places(ctx, c, c->y, c->bias.data ? c->bias : none);
}
static void conv_backward(amp_ctx *ctx, const conv *c) { /* dw, dbias and dx of dy */
    const amp_array none = AMP_ZERO;
    size_t places = c->batch * conv_volume(c->y_size);
    if (c->dbias.data && c->channels_first)
        conv_to_bias_first(ctx, c);
    else if (c->dbias.data)
        must(ctx, amp_column_sums(ctx, c->dbias, c->dy, places, c->out, 0, 0));
    conv_gather(ctx, c, c->transposed ? c->dy : c->x); /* again, rather than kept: layers share the scratch */
    conv_to_weights(ctx, c, c->transposed ? c->x : c->dy);
    if (!c->dx.data) return;
    if (c->transposed) {
        conv_to_places(ctx, c, c->dx, none);
        return;
    }
    conv_to_patches(ctx, c, c->dy);
    conv_scatter(ctx, c, c->dx, none);
}

/* ==== batch norm and ReLU: an FP32 island ========================================================================= */

enum { NORM_ROWS = 64 }; /* of a partial sum */
#define NORM_EPS      1e-5f
#define NORM_MOMENTUM 0.1f /* of the running mean and variance, PyTorch's default */

/* y = relu((x - mean) / sqrt(variance + eps) * gain + bias), over the rows of all images, channel by channel */
typedef struct batch_norm {
    size_t rows, channels;
    amp_array x, y;                         /* [rows, channels] */
    amp_array dy, dx;                       /* may be one array */
    const float *gain, *bias;               /* [channels], as all that follow */
    float *dgain, *dbias;                   /* carry the loss scale, as all gradients */
    float *mean, *rstd;                     /* of the last forward */
    float *running_mean, *running_variance; /* for the test */
    float *part;                            /* scratch: [rows / NORM_ROWS + 1, 2, channels] */
} batch_norm;

typedef struct norm_job {
    amp_dtype t;
    batch_norm n;
    int train; /* 0: with the running mean and variance */
} norm_job;

/* For each channel the mean and the sum of squared differences from it: of NORM_ROWS rows, then of all of them
   (T. Chan, G. Golub, R. LeVeque, 1979). */
ROW size_t norm_count(const norm_job *j, size_t part) {
    size_t left = j->n.rows - part * NORM_ROWS;
    return left < NORM_ROWS ? left : (size_t)NORM_ROWS;
}
ROW void norm_part(const norm_job *j, size_t part, amp_dtype t, team w) {
    size_t channels = j->n.channels, n = norm_count(j, part), c, r;
    size_t first = part * NORM_ROWS * channels, end = first + n * channels;
    for (c = w.lane; c < channels; c += w.lanes) {
        float mean = 0, squares = 0;
        for (r = first + c; r < end; r += channels)
            mean += amp_load(j->n.x.data, t, r);
        mean = amp_div(mean, (float)n);
        for (r = first + c; r < end; r += channels) {
            float d = amp_load(j->n.x.data, t, r) - mean;
            squares += amp_mul(d, d);
        }
        j->n.part[2 * part * channels + c] = mean;
        j->n.part[(2 * part + 1) * channels + c] = squares;
    }
}
ROWS_OF(norm_part, norm_job)
ROW float norm_squares(const norm_job *j, size_t part, size_t c, float mean) { /* from the mean of all */
    float d = j->n.part[2 * part * j->n.channels + c] - mean;
    return j->n.part[(2 * part + 1) * j->n.channels + c] + amp_mul(amp_mul(d, d), (float)norm_count(j, part));
}
ROW void norm_total(const norm_job *j, size_t c, amp_dtype t, team w) { /* a row is a channel */
    size_t channels = j->n.channels, parts = (j->n.rows + NORM_ROWS - 1) / NORM_ROWS;
    float mean = j->n.running_mean[c], variance = j->n.running_variance[c], n = (float)j->n.rows;
    (void)t;
    if (j->train) {
        float sum, squares;
        TEAM_SUM(sum, w, i, parts, amp_mul(j->n.part[2 * i * channels + c], (float)norm_count(j, i)));
        mean = amp_div(sum, n);
        TEAM_SUM(squares, w, i, parts, norm_squares(j, i, c, mean));
        variance = amp_div(squares, n);
    }
    if (w.lane) return;
    j->n.mean[c] = mean;
    j->n.rstd[c] = amp_div(1.0f, amp_sqrt(variance + NORM_EPS));
    if (!j->train) return;
    variance = amp_div(amp_mul(variance, n), n > 1 ? n - 1 : 1);
    j->n.running_mean[c] += amp_mul(NORM_MOMENTUM, mean - j->n.running_mean[c]);
    j->n.running_variance[c] += amp_mul(NORM_MOMENTUM, variance - j->n.running_variance[c]);
}
ROWS_OF(norm_total, norm_job)
ROW void norm_apply(const norm_job *j, size_t row, amp_dtype t, team w) {
    size_t channels = j->n.channels, c;
    for (c = w.lane; c < channels; c += w.lanes) {
        float x = (amp_load(j->n.x.data, t, row * channels + c) - j->n.mean[c]) * j->n.rstd[c];
        float y = amp_mul(x, j->n.gain[c]) + j->n.bias[c];
        amp_store(j->n.y.data, t, row * channels + c, y < 0 ? 0.0f : y); /* NaN stays NaN */
    }
}
ROWS_OF(norm_apply, norm_job)

/* The gradients of bias and gain, sums of d and of d * normalised x, where d is dy through ReLU; in two steps, too. */
ROW float norm_gradient(const norm_job *j, size_t i, amp_dtype t) {
    return amp_load(j->n.y.data, t, i) <= 0 ? 0.0f : amp_load(j->n.dy.data, t, i);
}
ROW void norm_back_part(const norm_job *j, size_t part, amp_dtype t, team w) {
    size_t channels = j->n.channels, c, r;
    size_t first = part * NORM_ROWS * channels, end = first + norm_count(j, part) * channels;
    for (c = w.lane; c < channels; c += w.lanes) {
        float bias = 0, gain = 0;
        for (r = first + c; r < end; r += channels) {
            float d = norm_gradient(j, r, t);
            bias += d;
            gain += amp_mul(d * (amp_load(j->n.x.data, t, r) - j->n.mean[c]), j->n.rstd[c]);
        }
        j->n.part[2 * part * channels + c] = bias;
        j->n.part[(2 * part + 1) * channels + c] = gain;
    }
}
ROWS_OF(norm_back_part, norm_job)
ROW void norm_back_total(const norm_job *j, size_t c, amp_dtype t, team w) {
    size_t channels = j->n.channels, parts = (j->n.rows + NORM_ROWS - 1) / NORM_ROWS;
    float bias, gain;
    (void)t;
    TEAM_SUM(bias, w, i, parts, j->n.part[2 * i * channels + c]);
    TEAM_SUM(gain, w, i, parts, j->n.part[(2 * i + 1) * channels + c]);
    if (w.lane) return;
    j->n.dbias[c] = bias;
    j->n.dgain[c] = gain;
}
ROWS_OF(norm_back_total, norm_job)
ROW void norm_back(const norm_job *j, size_t row, amp_dtype t, team w) {
    size_t channels = j->n.channels, c;
    float n = (float)j->n.rows;
    for (c = w.lane; c < channels; c += w.lanes) {
        size_t i = row * channels + c;
        float x = (amp_load(j->n.x.data, t, i) - j->n.mean[c]) * j->n.rstd[c];
        float d = norm_gradient(j, i, t) - amp_div(j->n.dbias[c], n) - amp_div(amp_mul(x, j->n.dgain[c]), n);
        amp_store(j->n.dx.data, t, i, d * j->n.gain[c] * j->n.rstd[c]);
    }
}
ROWS_OF(norm_back, norm_job)

static void norm_forward(amp_ctx *ctx, const batch_norm *n, int train) {
    norm_job j = AMP_ZERO;
    j.t = n->x.dtype;
    j.n = *n;
    j.train = train;
    if (train) norm_part_rows(ctx, &j, (n->rows + NORM_ROWS - 1) / NORM_ROWS);
    norm_total_rows(ctx, &j, n->channels);
    norm_apply_rows(ctx, &j, n->rows);
}
static void norm_backward(amp_ctx *ctx, const batch_norm *n) { /* after a forward with train */
    norm_job j = AMP_ZERO;
    j.t = n->x.dtype;
    j.n = *n;
    norm_back_part_rows(ctx, &j, (n->rows + NORM_ROWS - 1) / NORM_ROWS);
    norm_back_total_rows(ctx, &j, n->channels);
    norm_back_rows(ctx, &j, n->rows);
}

/* ==== max pooling: windows of 2 x 2 that do not overlap =========================================================== */

typedef struct pool_job {
    amp_dtype t;
    size_t height, width, channels; /* of y, so that x has twice the height and width */
    const void *x;
    void *y;
    const void *dy;
    void *dx;
} pool_job;
ROW size_t pool_corner(const pool_job *j, size_t row) { /* the first of the four elements of x, of channel 0 */
    size_t line = row / j->width;                       /* height of all images together */
    return (2 * line * 2 * j->width + 2 * (row % j->width)) * j->channels;
}
ROW size_t pool_winner(const pool_job *j, size_t at, amp_dtype t) { /* the first of the largest; NaN is larger */
    size_t line = 2 * j->width * j->channels, best = at, i;
    float most = amp_load(j->x, t, at);
    for (i = 1; i < 4; i++) {
        size_t k = at + i % 2 * j->channels + i / 2 * line;
        float x = amp_load(j->x, t, k);
        if (x <= most || amp_is_nan(most)) continue;
        most = x;
        best = k;
    }
    return best;
}
ROW void pool(const pool_job *j, size_t row, amp_dtype t, team w) {
    size_t corner = pool_corner(j, row), c;
    for (c = w.lane; c < j->channels; c += w.lanes)
        amp_store(j->y, t, row * j->channels + c, amp_load(j->x, t, pool_winner(j, corner + c, t)));
}
ROWS(pool)
ROW void pool_back(const pool_job *j, size_t row, amp_dtype t, team w) {
    size_t corner = pool_corner(j, row), line = 2 * j->width * j->channels, c, i;
    for (c = w.lane; c < j->channels; c += w.lanes) {
        size_t best = pool_winner(j, corner + c, t);
        for (i = 0; i < 4; i++) {
            size_t k = corner + c + i % 2 * j->channels + i / 2 * line;
            amp_store(j->dx, t, k, k == best ? amp_load(j->dy, t, row * j->channels + c) : 0.0f);
        }
    }
}
ROWS_OF(pool_back, pool_job)

#endif
