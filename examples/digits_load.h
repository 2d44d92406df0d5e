/* digits_load.h - images for digits.c: the built-in digits, or IDX files (MNIST and the like). Host memory only.
   A bad file ends the program with one line that says what is wrong with it. */
#ifndef DIGITS_LOAD_H
#define DIGITS_LOAD_H

#include "digits_data.h"
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double uniform(uint64_t seed, uint64_t stream, uint64_t index) { /* [0, 1) */
    return (double)amp_random(seed, stream, index) / 4294967296.0;
}

static void shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t stream) { /* Fisher and Yates */
    size_t i, j;
    for (i = n; i > 1; i--) {
        uint32_t t = order[i - 1];
        j = (size_t)(uniform(seed, stream, i) * (double)i);
        order[i - 1] = order[j];
        order[j] = t;
    }
}

typedef struct images {
    size_t count, rows, cols, pixels; /* pixels = rows * cols */
    float *x;                         /* [count, pixels], 0 .. 1 */
    int32_t *label;
} images;

static images images_new(size_t count, size_t rows, size_t cols) {
    images m;
    m.count = count;
    m.rows = rows;
    m.cols = cols;
    m.pixels = rows * cols;
    m.x = (float *)allocate(count * m.pixels, sizeof *m.x);
    m.label = (int32_t *)allocate(count, sizeof *m.label);
    return m;
}

static void images_free(images *m) {
    free(m->x);
    free(m->label);
}

/* The 1,797 digits in digits_data.h: one fixed shuffle, then four fifths for training and the rest for the test. */
static void load_builtin(images *train, images *test) {
    const size_t pixels = DIGITS_SIDE * DIGITS_SIDE, n_train = DIGITS_COUNT * 4 / 5;
    uint32_t order[DIGITS_COUNT];
    size_t i, k;
    for (i = 0; i < DIGITS_COUNT; i++)
        order[i] = (uint32_t)i;
    shuffle(order, DIGITS_COUNT, 1998, 0);
    *train = images_new(n_train, DIGITS_SIDE, DIGITS_SIDE);
    *test = images_new(DIGITS_COUNT - n_train, DIGITS_SIDE, DIGITS_SIDE);
    for (i = 0; i < DIGITS_COUNT; i++) {
        const char *text = digits_data[order[i]];
        images *m = i < n_train ? train : test;
        size_t at = i < n_train ? i : i - n_train;
        m->label[at] = text[0] - '0';
        for (k = 0; k < pixels; k++)
            m->x[at * pixels + k] = (float)(strchr(DIGITS_INK, text[2 + k]) - DIGITS_INK) / 16.0f;
    }
}

#define MOST_BYTES ((size_t)1 << (sizeof(size_t) > 4 ? 33 : 31))

/* An IDX file: 0, 0, type 8 (unsigned byte), number of dimensions; each dimension as a big-endian 32-bit number; the
   bytes. */
static unsigned char *read_idx(const char *path, unsigned dims, size_t size[3]) {
    unsigned char head[16], *data;
    size_t n = 4 + 4 * dims, got, total = 1, i;
    FILE *f = fopen(path, "rb");
    if (!f) fail("%s: %s", path, strerror(errno));
    got = fread(head, 1, n, f);
    if (ferror(f)) fail("%s: %s", path, strerror(errno));
    if (got < 4) fail("%s: truncated, only %lu bytes", path, (unsigned long)got);
    if (head[0] || head[1] || head[2] != 8 || head[3] != dims)
        fail("%s: not an IDX file of %s: its first 4 bytes are %02x%02x%02x%02x, expected 000008%02x", path,
            dims == 3 ? "images" : "labels", (unsigned)head[0], (unsigned)head[1], (unsigned)head[2], (unsigned)head[3],
            dims);
    if (got < n) fail("%s: truncated inside its header", path);
    for (i = 0; i < dims; i++) {
        const unsigned char *b = head + 4 + 4 * i;
        size[i] = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | (size_t)b[3];
        if (size[i] == 0) fail("%s: %s", path, i == 0 ? "zero items" : "images with zero pixels");
        if (size[i] > (size_t)1 << 31 || total > MOST_BYTES / size[i])
            fail("%s: its header announces too much data", path);
        total *= size[i];
    }
    if (fseek(f, 0, SEEK_END) == 0) { /* compare before allocating what a damaged header asks for */
        long end = ftell(f);
        if (end >= 0 && (size_t)end < n + total)
            fail("%s: truncated: %lu bytes, its header announces %lu", path, (unsigned long)end,
                (unsigned long)(n + total));
        if (end >= 0 && (size_t)end > n + total)
            fail("%s: longer than its header says: %lu bytes, expected %lu", path, (unsigned long)end,
                (unsigned long)(n + total));
    }
    if (fseek(f, (long)n, SEEK_SET)) fail("%s: %s", path, strerror(errno));
    data = (unsigned char *)allocate(total, 1);
    if (fread(data, 1, total, f) != total) fail("%s: truncated", path);
    fclose(f);
    return data;
}

PROGRAM_FN images load_idx(const char *dir, const char *images_file, const char *labels_file) {
    size_t size[3], labels[3], i, length = strlen(dir) + strlen(images_file) + strlen(labels_file) + 2;
    char *path = (char *)allocate(2 * length, 1), *label_path = path + length;
    unsigned char *x, *t;
    images m;
    sprintf(path, "%s/%s", dir, images_file);
    sprintf(label_path, "%s/%s", dir, labels_file);
    x = read_idx(path, 3, size);
    t = read_idx(label_path, 1, labels);
    if (labels[0] != size[0])
        fail("%s: %lu labels, but %s has %lu images", label_path, (unsigned long)labels[0], path,
            (unsigned long)size[0]);
    m = images_new(size[0], size[1], size[2]);
    for (i = 0; i < m.count * m.pixels; i++)
        m.x[i] = (float)x[i] / 255.0f;
    for (i = 0; i < m.count; i++)
        m.label[i] = t[i];
    free(x);
    free(t);
    free(path);
    return m;
}

#endif
