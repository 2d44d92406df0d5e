/* gpt_rows.h - the layers of gpt.c that amp does not have: embedding, layer norm, causal softmax, rows to heads.
 *
 * A function per layer, for one row of it, as rows.h says, which makes a loop of the CPU and a kernel of the GPU of it.
 */
#ifndef GPT_ROWS_H
#define GPT_ROWS_H

#include "rows.h" /* ROW, ROWS, team_sum */

#include <math.h>

#define TWO_PI 6.283185307179586

/* ---- small things ------------------------------------------------------------------------------------------------ */

static double uniform_open(uint64_t seed, uint64_t stream, uint64_t index) { /* (0, 1) */
    return ((double)amp_random(seed, stream, index) + 0.5) / 4294967296.0;
}
static double normal(uint64_t seed, uint64_t stream, uint64_t index) { /* Box and Muller */
    return sqrt(-2 * log(uniform_open(seed, stream, 2 * index))) *
        cos(TWO_PI * uniform_open(seed, stream, 2 * index + 1));
}

enum { GROUP = 32 }; /* rows of a partial sum in the gradients of a norm's gain and bias */
#define NORM_EPS 1e-5f

ROW float square(float x) { return amp_mul(x, x); }

/* x[row] = wte[token of the row] + wpe[place of the row] */
typedef struct embed_job {
    amp_dtype t;
    size_t width, context;
    const int32_t *token;
    const void *wte, *wpe;
    void *x;
} embed_job;
ROW void embed(const embed_job *j, size_t row, amp_dtype t, team w) {
    size_t token = (size_t)j->token[row] * j->width, place = row % j->context * j->width, c;
    for (c = w.lane; c < j->width; c += w.lanes)
        amp_store(j->x, t, row * j->width + c, amp_load(j->wte, t, token + c) + amp_load(j->wpe, t, place + c));
}
ROWS(embed)

/* The gradient of an embedding: to[row] is the sum of those rows of dx that read it, plus what is there already if the
   head has the same weights. order[first[row] .. first[row + 1]] are their numbers. */
typedef struct gather_job {
    amp_dtype t;
    size_t width;
    const int32_t *order, *first;
    const void *dx;
    amp_array to; /* of the gradients' dtype */
    int add;
} gather_job;
ROW void gather(const gather_job *j, size_t row, amp_dtype t, team w) {
    int32_t from = j->first[row], end = j->first[row + 1], i;
    size_t c;
    if (j->add && from == end) return;
    for (c = w.lane; c < j->width; c += w.lanes) {
        float sum = j->add ? amp_load(j->to.data, j->to.dtype, row * j->width + c) : 0.0f;
        for (i = from; i < end; i++)
            sum += amp_load(j->dx, t, (size_t)j->order[i] * j->width + c);
        amp_store(j->to.data, j->to.dtype, row * j->width + c, sum);
    }
}
ROWS(gather)

/* y = (x - mean) / sqrt(variance + eps) * gain + bias, if it has one; mean and rstd are kept for backward */
typedef struct norm_job {
    amp_dtype t;
    size_t width;
    const void *x;
    void *y;
    const float *gain, *bias;
    float *mean, *rstd;
} norm_job;
ROW void norm_in(const norm_job *j, size_t row, amp_dtype t, team w, amp_dtype in) { /* in: the dtype of its inside */
    size_t at = row * j->width, c;
    float sum, squares, mean, rstd;
    TEAM_SUM_IN(in, sum, w, i, j->width, amp_load(j->x, t, at + i));
    mean = kept(sum / (float)j->width, in);
    TEAM_SUM_IN(in, squares, w, i, j->width, kept(square(kept(amp_load(j->x, t, at + i) - mean, in)), in));
    rstd = kept(amp_div(1.0f, amp_sqrt(kept(squares / (float)j->width + NORM_EPS, in))), in);
    for (c = w.lane; c < j->width; c += w.lanes) {
        float x = kept((amp_load(j->x, t, at + c) - mean) * rstd, in);
        amp_store(j->y, t, at + c, amp_mul(x, j->gain[c]) + (j->bias ? j->bias[c] : 0.0f));
    }
    if (w.lane == 0) {
        j->mean[row] = mean;
        j->rstd[row] = rstd;
    }
}
ROW void norm(const norm_job *j, size_t row, amp_dtype t, team w) { norm_in(j, row, t, w, AMP_F32); }
ROWS(norm)
ROW void norm_f16(const norm_job *j, size_t row, amp_dtype t, team w) { norm_in(j, row, t, w, AMP_F16); }
ROWS_OF(norm_f16, norm_job) /* as if it were not of class F32: --norm fp16 */

/* dx += the gradient of x, or = if it is the first that arrives there */
typedef struct norm_back_job {
    amp_dtype t;
    size_t width;
    const void *x, *dy;
    const float *gain, *mean, *rstd;
    void *dx;
    int add;
} norm_back_job;
ROW void norm_back(const norm_back_job *j, size_t row, amp_dtype t, team w) {
    size_t at = row * j->width, c;
    float sum, dot, mean = j->mean[row], rstd = j->rstd[row];
    TEAM_SUM(sum, w, i, j->width, amp_mul(amp_load(j->dy, t, at + i), j->gain[i]));
    TEAM_SUM(dot, w, i, j->width,
        amp_mul(amp_load(j->dy, t, at + i) * j->gain[i], (amp_load(j->x, t, at + i) - mean) * rstd));
    sum /= (float)j->width;
    dot /= (float)j->width;
    for (c = w.lane; c < j->width; c += w.lanes) {
        float d = amp_mul(amp_load(j->dy, t, at + c), j->gain[c]);
        float x = (amp_load(j->x, t, at + c) - mean) * rstd;
        float dx = amp_mul(d - sum - amp_mul(x, dot), rstd);
        amp_store(j->dx, t, at + c, j->add ? amp_load(j->dx, t, at + c) + dx : dx);
    }
}
ROWS(norm_back)

/* Gradients of gain and bias, in two steps: sums over groups of rows, [group][2][width]; then over the groups. */
typedef struct norm_part_job {
    amp_dtype t;
    size_t width, rows;
    const void *x, *dy;
    const float *mean, *rstd;
    float *part;
} norm_part_job;
ROW void norm_part(const norm_part_job *j, size_t group, amp_dtype t, team w) {
    size_t end = (group + 1) * GROUP < j->rows ? (group + 1) * GROUP : j->rows, r, c;
    float *part = j->part + group * 2 * j->width;
    for (c = w.lane; c < j->width; c += w.lanes) {
        float gain = 0, bias = 0;
        for (r = group * GROUP; r < end; r++) {
            float dy = amp_load(j->dy, t, r * j->width + c);
            gain += amp_mul(dy * (amp_load(j->x, t, r * j->width + c) - j->mean[r]), j->rstd[r]);
            bias += dy;
        }
        part[c] = gain;
        part[j->width + c] = bias;
    }
}
ROWS(norm_part)

typedef struct norm_total_job {
    amp_dtype t;
    size_t width, groups;
    const float *part;
    float *gain, *bias;
} norm_total_job;
ROW void norm_total(const norm_total_job *j, size_t column, amp_dtype t, team w) { /* gains, then biases */
    float sum;
    (void)t;
    TEAM_SUM(sum, w, i, j->groups, j->part[i * 2 * j->width + column]);
    if (w.lane) return;
    if (column < j->width)
        j->gain[column] = sum;
    else
        j->bias[column - j->width] = sum;
}
ROWS(norm_total)

/* Scores to probabilities, in place: row i of a sequence sees places 0 .. i. And back: dp = p (dp - sum p dp). */
typedef struct softmax_job {
    amp_dtype t;
    size_t context;
    void *p;
} softmax_job;
ROW void softmax_in(const softmax_job *j, size_t row, amp_dtype t, team w, amp_dtype in) {
    size_t at = row * j->context, seen = row % j->context + 1, c;
    float top = amp_load(j->p, t, at), sum;
    for (c = w.lane; c < seen; c += w.lanes) {
        float x = amp_load(j->p, t, at + c);
        if (x > top) top = x;
    }
    top = team_max(w, top);
    TEAM_SUM_IN(in, sum, w, i, seen, kept(amp_exp(kept(amp_load(j->p, t, at + i) - top, in)), in));
    sum = kept(1.0f / sum, in);
    for (c = w.lane; c < j->context; c += w.lanes) {
        float e = kept(amp_exp(kept(amp_load(j->p, t, at + c) - top, in)), in);
        amp_store(j->p, t, at + c, c < seen ? e * sum : 0.0f);
    }
}
ROW void softmax(const softmax_job *j, size_t row, amp_dtype t, team w) { softmax_in(j, row, t, w, AMP_F32); }
ROWS(softmax)
ROW void softmax_f16(const softmax_job *j, size_t row, amp_dtype t, team w) { softmax_in(j, row, t, w, AMP_F16); }
ROWS_OF(softmax_f16, softmax_job) /* as if it were not of class F32: --softmax fp16 */

typedef struct softmax_back_job {
    amp_dtype t;
    size_t context;
    const void *p;
    void *dp;
} softmax_back_job;
ROW void softmax_back(const softmax_back_job *j, size_t row, amp_dtype t, team w) {
    size_t at = row * j->context, seen = row % j->context + 1, c;
    float sum;
    TEAM_SUM(sum, w, i, seen, amp_mul(amp_load(j->p, t, at + i), amp_load(j->dp, t, at + i)));
    for (c = w.lane; c < j->context; c += w.lanes) {
        float d = c < seen ? amp_load(j->p, t, at + c) * (amp_load(j->dp, t, at + c) - sum) : 0.0f;
        amp_store(j->dp, t, at + c, d);
    }
}
ROWS(softmax_back)

/* Between rows, [batch * context][parts * width], and heads, [parts][batch][heads][context][width / heads]: one product
   then does all heads of all sequences. Bits are copied. */
typedef struct swap_job {
    amp_dtype t;
    size_t width, heads, context, rows, parts;
    void *joined, *apart;
    int join;
} swap_job;
ROW void swap(const swap_job *j, size_t row, amp_dtype t, team w) {
    size_t size = j->width / j->heads, h, c;
    size_t sequence = row / j->context, place = row % j->context;
    for (h = 0; h < j->parts * j->heads; h++) {
        size_t part = h / j->heads * j->rows * j->width, head = sequence * j->heads + h % j->heads;
        size_t a = part + (head * j->context + place) * size, b = row * j->parts * j->width + h * size;
        for (c = w.lane; c < size; c += w.lanes) {
            if (t == AMP_F32 && j->join)
                ((float *)j->joined)[b + c] = ((float *)j->apart)[a + c];
            else if (t == AMP_F32)
                ((float *)j->apart)[a + c] = ((float *)j->joined)[b + c];
            else if (j->join)
                ((amp_any16 *)j->joined)[b + c] = ((amp_any16 *)j->apart)[a + c];
            else
                ((amp_any16 *)j->apart)[a + c] = ((amp_any16 *)j->joined)[b + c];
        }
    }
}
ROWS(swap)

#endif
