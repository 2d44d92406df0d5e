/* gpt_text.h - what a gpt reads and writes: characters of a text as numbers, batches of them, samples.
 */
#ifndef GPT_TEXT_H
#define GPT_TEXT_H

#include "gpt_net.h"

#include <errno.h>

typedef struct text { /* of numbered characters; or, without characters, a vocabulary of random tokens */
    int32_t *token;
    size_t n, train, vocab; /* the first `train` are to learn from, the rest is to validate */
    int letter[256];        /* of a number */
} text;

static text number_text(const unsigned char *chars, size_t n) {
    text t = AMP_ZERO;
    int number[256];
    memset(number, -1, sizeof number);
    t.token = (int32_t *)allocate(n, sizeof *t.token);
    for (t.n = 0; t.n < n; t.n++) {
        int c = chars[t.n];
        if (number[c] < 0) {
            t.letter[t.vocab] = c;
            number[c] = (int)t.vocab++;
        }
        t.token[t.n] = number[c];
    }
    t.train = n / 10 * 9;
    return t;
}
static text read_text(const char *path) {
    text t;
    unsigned char *chars = NULL;
    size_t n = 0, room = 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        fail("%s: %s. The plays of Shakespeare: `make build/shakespeare.txt`, or gzip -dc examples/shakespeare.txt.gz",
            path, strerror(errno));
    do {
        if (room >> 28) fail("%s: more than 256 MiB; is it a device?", path);
        room += 1 << 20;
        chars = (unsigned char *)realloc(chars, room);
        if (!chars) fail("%s: no memory for %lu bytes", path, (unsigned long)room);
        n += fread(chars + n, 1, room - n, f);
    } while (n == room);
    if (ferror(f) | fclose(f)) fail("%s: could not be read", path);
    t = number_text(chars, n);
    free(chars);
    return t;
}
/* A batch: for each sequence a window of the training part that begins anywhere, and its next characters. */
static void draw_batch(gpt *g, const text *t, uint64_t seed, size_t step) {
    size_t n = g->s.context, b, i;
    int32_t *tokens = (int32_t *)allocate(2 * g->rows, sizeof *tokens), *labels = tokens + g->rows;
    for (b = 0; b < g->batch; b++) {
        size_t at = t->n ? (size_t)(uniform_open(seed, 1000000 + step, b) * (double)(t->train - n)) : 0;
        for (i = 0; i < n; i++) {
            uint64_t index = (step * g->batch + b) * n + i;
            tokens[b * n + i] = t->n ? t->token[at + i] : (int32_t)(amp_random(seed, 1, index) % t->vocab);
            labels[b * n + i] = t->n ? t->token[at + i + 1] : (int32_t)(amp_random(seed, 2, index) % t->vocab);
        }
    }
    gpt_input(g, tokens, labels);
    free(tokens);
}
static double validate(gpt *g, const text *t) { /* the loss over the whole rest of the text, window after window */
    size_t n = g->s.context, windows = (t->n - t->train - 1) / n, at, batch;
    double sum = 0;
    for (at = 0; at < windows; at += batch) {
        int32_t *labels;
        batch = windows - at < g->s.batch ? windows - at : g->s.batch;
        gpt_set_batch(g, batch);
        labels = t->token + t->train + at * n + 1;
        gpt_input(g, labels - 1, labels);
        gpt_forward(g, 0);
        sum += gpt_loss(g) * (double)batch;
    }
    gpt_set_batch(g, g->s.batch);
    return sum / (double)windows;
}
/* Text that the network makes, a character at a time: from the probabilities of the next one, sharpened a little. */
PROGRAM_FN char *write_sample(gpt *g, const text *t, size_t length, uint64_t seed) {
    size_t n = g->s.context, v = g->s.vocab, filled = 1, i, c;
    int32_t *tokens = (int32_t *)allocate(n, sizeof *tokens); /* begins with the text's first character */
    void *logits = allocate(v, amp_dtype_size(g->t));
    char *written = (char *)allocate(length + 1, 1);
    double temperature = 0.8;
    gpt_set_batch(g, 1);
    for (i = 0; i < length; i++) {
        double sum = 0, draw = uniform_open(seed, 3, i), top = -1e30;
        size_t row = filled - 1, at = row % g->head.rows * v, next = 0;
        gpt_input(g, tokens, NULL);
        gpt_forward(g, 0);
        must(g->ctx, amp_copy(g->ctx, logits, from(g->head.y, at).data, v * amp_dtype_size(g->t)));
        for (c = 0; c < v; c++)
            if ((double)amp_load(logits, g->t, c) > top) top = (double)amp_load(logits, g->t, c);
        for (c = 0; c < v; c++)
            sum += exp(((double)amp_load(logits, g->t, c) - top) / temperature);
        for (next = 0; next + 1 < v; next++) {
            draw -= exp(((double)amp_load(logits, g->t, next) - top) / temperature) / sum;
            if (draw < 0) break;
        }
        written[i] = (char)t->letter[next];
        if (filled == n) memmove(tokens, tokens + 1, --filled * sizeof *tokens);
        tokens[filled++] = (int32_t)next;
    }
    gpt_set_batch(g, g->s.batch);
    free(tokens);
    free(logits);
    return written;
}

/* A few lines, for runs that are only to show that a mode learns. */
static const char lines[] =
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date;\n"
    "Sometime too hot the eye of heaven shines,\nAnd often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\nBy chance or nature's changing course untrimm'd;\n"
    "But thy eternal summer shall not fade,\nNor lose possession of that fair thou ow'st;\n"
    "Nor shall death brag thou wander'st in his shade,\nWhen in eternal lines to time thou grow'st:\n"
    "So long as men can breathe or eyes can see,\nSo long lives this, and this gives life to thee.\n";

#endif
