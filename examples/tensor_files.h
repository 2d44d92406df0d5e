/* tensor_files.h - safetensors files, and .npy of numpy, read and written: FP32, FP16, BF16, FP8; .npy: the first two.
 * A file from elsewhere may hold anything: nothing is believed before it is checked, and the first fault ends the
 * program with a sentence. A file is written under a temporary name, so that its own is always whole, old or new.
 */
#ifndef TENSOR_FILES_H
#define TENSOR_FILES_H

#include "program.h"

enum { TENSORS = 1000, DIMS = 8 };
typedef struct tensor {
    char name[100]; /* "" in .npy */
    amp_dtype dtype;
    size_t dims, shape[DIMS], count, place[2]; /* where it begins and ends among the bytes of all tensors */
    unsigned char *data;                       /* at any address */
} tensor;
typedef struct tensor_file {
    char path[300];
    unsigned char *bytes, *at, *data, *end; /* the header lies before data */
    int npy;
    size_t n;
    tensor t[TENSORS];
} tensor_file;
/* clang-format off */
static const char *const tensor_kinds[2][AMP_DTYPE_COUNT] = {
    {"", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}, /* safetensors */
    {"", "<f4", "<f2", "", "", ""}};                  /* .npy */
/* clang-format on */

static int is_npy(const char *path) { return strlen(path) > 4 && !strcmp(path + strlen(path) - 4, ".npy"); }
static void little_endian(tensor *t) { /* as files have it, and back: nothing to do on most machines */
    static const uint16_t one = 1;
    size_t size = amp_dtype_size(t->dtype), i;
    unsigned char old[4];
    for (i = 0; !*(const unsigned char *)&one && i < t->count * size; i++) {
        if (i % size == 0) memcpy(old, t->data + i, size);
        t->data[i] = old[size - 1 - i % size];
    }
}

/* ---- words of a header: of JSON, or of Python ---- */
static void check(int good, const tensor_file *f, const char *sentence) {
    if (!good) fail("%s: %s (byte %lu)", f->path, sentence, (unsigned long)(f->at - f->bytes));
}
static int peek(tensor_file *f) { /* the next character that is no space; 0: the header ends */
    while (f->at < f->data && (*f->at == ' ' || (*f->at >= '\t' && *f->at <= '\r')))
        f->at++;
    return f->at < f->data ? *f->at : 0;
}
static int next_is(tensor_file *f, int c) { /* steps over it */
    int found = peek(f) == c;
    f->at += found;
    return found;
}
static void take(tensor_file *f, int c, const char *sentence) { check(next_is(f, c), f, sentence); }
static void take_comma(tensor_file *f, int end) { /* or the end follows; in Python both may */
    if (next_is(f, ','))
        check(f->npy || peek(f) != end, f, "a comma too many");
    else
        check(peek(f) == end, f, "a comma is expected, or the end");
}
static void take_string(tensor_file *f, int quote, char *out, size_t room) { /* out NULL: steps over it */
    size_t n = 0;
    take(f, quote, "a string is expected");
    for (; f->at < f->data && *f->at != quote; f->at++) {
        if (!out && *f->at == '\\' && f->data - f->at > 1) f->at++;
        if (!out) continue;
        check(*f->at >= ' ' && *f->at != '\\', f, "a name with a backslash or a control character");
        check(n + 1 < room, f, "a name is too long");
        out[n++] = (char)*f->at;
    }
    if (out) out[n] = 0;
    take(f, quote, "a string has no end");
}
static size_t take_number(tensor_file *f) {
    size_t x = 0;
    check(peek(f) >= '0' && peek(f) <= '9', f, "a number is expected");
    for (; f->at < f->data && *f->at >= '0' && *f->at <= '9'; f->at++) {
        check(x < (size_t)-1 / 20, f, "a number is too large");
        x = 10 * x + (size_t)(*f->at - '0');
    }
    return x;
}
static size_t take_list(
    tensor_file *f, const char *brackets, size_t *out, size_t most) { /* [2, 3], or Python's (2, 3) */
    size_t n = 0;
    take(f, brackets[0], "a list is expected");
    while (!next_is(f, brackets[1])) {
        check(n < most, f, "a list is too long");
        out[n++] = take_number(f);
        take_comma(f, brackets[1]);
    }
    return n;
}

/* ---- tensors ---- */
static void take_dtype(tensor_file *f, tensor *t) {
    char word[16];
    int k;
    take_string(f, f->npy ? '\'' : '"', word, sizeof word);
    for (k = AMP_F32; k < AMP_DTYPE_COUNT; k++)
        if (*word && !strcmp(word, tensor_kinds[f->npy][k])) t->dtype = (amp_dtype)k;
    check(t->dtype != AMP_AUTO, f, "a dtype that is not F32, F16, BF16, F8_E4M3 or F8_E5M2 (.npy: <f4 or <f2)");
}
static void take_false(tensor_file *f) {
    check(peek(f) == 'F' && f->data - f->at >= 5 && !memcmp(f->at, "False", 5), f, "an array stored by columns");
    f->at += 5;
}
static void fit(tensor_file *f, tensor *t) { /* dtype and shape beside the bytes that there are */
    size_t i, bytes = (size_t)(f->end - f->data), size = amp_dtype_size(t->dtype);
    check(size != 0 && t->dims <= DIMS, f, "a tensor without a dtype, or without a shape");
    for (t->count = 1, i = 0; i < t->dims; t->count *= t->shape[i++])
        check(!t->shape[i] || t->count <= bytes / t->shape[i], f, "a shape of more elements than the file has bytes");
    check(t->place[0] <= t->place[1] && t->place[1] <= bytes, f, "data behind the end of the file");
    check(t->place[1] - t->place[0] == t->count * size, f, "dtype and shape need another number of bytes");
    t->data = f->data + t->place[0];
    little_endian(t);
}
/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, or {'descr': '<f4', 'fortran_order': False, ...} */
static void take_tensor(tensor_file *f, tensor *t) {
    char key[16];
    t->dims = DIMS + 1;
    take(f, '{', "a tensor's '{' is expected");
    while (!next_is(f, '}')) {
        take_string(f, f->npy ? '\'' : '"', key, sizeof key);
        take(f, ':', "':' is expected");
        if (!strcmp(key, f->npy ? "descr" : "dtype"))
            take_dtype(f, t);
        else if (!strcmp(key, "shape"))
            t->dims = take_list(f, f->npy ? "()" : "[]", t->shape, DIMS);
        else if (!strcmp(key, "data_offsets"))
            check(take_list(f, "[]", t->place, 2) == 2, f, "two offsets are expected");
        else if (!strcmp(key, "fortran_order"))
            take_false(f);
        else
            check(0, f, "an unknown field");
        take_comma(f, '}');
    }
}
static void take_metadata(tensor_file *f) { /* {"word": "word", ...}, for people */
    take(f, '{', "'{' is expected");
    while (!next_is(f, '}')) {
        take_string(f, '"', NULL, 0);
        take(f, ':', "':' is expected");
        take_string(f, '"', NULL, 0);
        take_comma(f, '}');
    }
}
static void take_tensors(tensor_file *f) { /* {"name": {...}, "__metadata__": {...}} */
    size_t i;
    take(f, '{', "'{' is expected");
    while (!next_is(f, '}')) {
        tensor *t = &f->t[f->n];
        check(f->n < TENSORS, f, "too many tensors");
        take_string(f, '"', t->name, sizeof t->name);
        for (i = 0; i < f->n; i++)
            check(strcmp(f->t[i].name, t->name) != 0, f, "a name twice");
        take(f, ':', "':' is expected");
        if (!strcmp(t->name, "__metadata__"))
            take_metadata(f);
        else {
            take_tensor(f, t);
            fit(f, t);
            f->n++;
        }
        take_comma(f, '}');
    }
}

/* ---- files ---- */
static int by_place(const void *a, const void *b) {
    const size_t *x = ((const tensor *)a)->place, *y = ((const tensor *)b)->place;
    size_t k = x[0] == y[0];
    return (x[k] > y[k]) - (x[k] < y[k]);
}
static void take_length(tensor_file *f, int bytes) { /* of the header */
    uint64_t length = 0;
    int i;
    check(f->end - f->at >= bytes, f, "it is too short");
    for (i = bytes; i-- > 0;)
        length = length << 8 | f->at[i];
    f->at += bytes;
    check(length <= (uint64_t)(f->end - f->at), f, "the header is longer than the file");
    f->data = f->at + length;
}
static tensor_file *read_tensors(const char *path) {
    tensor_file *f = (tensor_file *)allocate(1, sizeof *f);
    FILE *in = fopen(path, "rb");
    size_t i, at = 0;
    long size = in && !fseek(in, 0, SEEK_END) ? ftell(in) : -1;
    if (size < 0 || fseek(in, 0, SEEK_SET)) fail("%s cannot be read", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->bytes = f->at = f->data = (unsigned char *)allocate((size_t)size, 1);
    f->end = f->bytes + fread(f->bytes, 1, (size_t)size, in);
    if (ferror(in) || fclose(in)) fail("%s cannot be read", path);
    f->npy = is_npy(path);
    if (f->npy) {
        check(size >= 10 && !memcmp(f->bytes, "\x93NUMPY", 6) && f->bytes[6] >= 1 && f->bytes[6] <= 3, f,
            "it is no .npy");
        f->at += 8;
        take_length(f, f->bytes[6] == 1 ? 2 : 4);
        take_tensor(f, f->t);
        f->t->place[1] = (size_t)(f->end - f->data);
        fit(f, f->t);
        f->n = 1;
    } else {
        take_length(f, 8);
        take_tensors(f);
    }
    check(!peek(f) && f->at == f->data, f, "text behind the header");
    qsort(f->t, f->n, sizeof *f->t, by_place);
    for (i = 0; i < f->n; at = f->t[i++].place[1])
        check(f->t[i].place[0] == at, f, "tensors overlap, or there are bytes between them");
    check(at == (size_t)(f->end - f->data), f, "bytes that no tensor has");
    return f;
}
static void free_tensors(tensor_file *f) {
    free(f->bytes);
    free(f);
}
static tensor *find_tensor(tensor_file *f, const char *name) {
    size_t i;
    for (i = 0; i < f->n; i++)
        if (!strcmp(f->t[i].name, name)) return &f->t[i];
    fail("%s has no %s", f->path, name);
    return NULL;
}

static void print_shape(FILE *out, const tensor *t, const char *brackets, const char *after_one) {
    size_t i;
    putc(brackets[0], out);
    for (i = 0; i < t->dims; i++)
        fprintf(out, i ? ", %lu" : "%lu", (unsigned long)t->shape[i]);
    fprintf(out, "%s%c", t->dims == 1 ? after_one : "", brackets[1]);
}
static void print_length(FILE *out, long at, int bytes) { /* what was printed since, at that place */
    unsigned long length = (unsigned long)(ftell(out) - at - bytes);
    fseek(out, at, SEEK_SET);
    for (; bytes; bytes--, length >>= 8)
        putc((int)(length & 255), out);
    fseek(out, 0, SEEK_END);
}
static void print_npy(FILE *out, const tensor *t) {
    fwrite("\x93NUMPY\1\0__", 1, 10, out);
    fprintf(out, "{'descr': '%s', 'fortran_order': False, 'shape': ", tensor_kinds[1][t->dtype]);
    print_shape(out, t, "()", ",");
    fprintf(out, ", }%*s\n", (int)(63 - (ftell(out) + 3) % 64), ""); /* so that data begins at a multiple of 64 */
    print_length(out, 8, 2);
}
static void print_safetensors(FILE *out, const tensor *t, size_t n) { /* the largest elements first: all are aligned */
    unsigned long at = 0, bytes;
    size_t size, i;
    fwrite("________{", 1, 9, out);
    for (size = 4; size; size /= 2)
        for (i = 0; i < n; i++) {
            if (amp_dtype_size(t[i].dtype) != size) continue;
            bytes = (unsigned long)(t[i].count * size);
            fprintf(out, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": ", ftell(out) > 9 ? ", " : "", t[i].name,
                tensor_kinds[0][t[i].dtype]);
            print_shape(out, &t[i], "[]", "");
            fprintf(out, ", \"data_offsets\": [%lu, %lu]}", at, at + bytes);
            at += bytes;
        }
    fprintf(out, "}%*s", (int)(7 - ftell(out) % 8), "");
    print_length(out, 0, 8);
}
/* By the name of the file: .npy takes one tensor. Their data is in the order of a file afterwards. */
static void write_tensors(const char *path, tensor *t, size_t n) {
    char temporary[300];
    FILE *out;
    size_t size, i;
    int wrong;
    for (i = 0; i < n; i++)
        if (t[i].name[strcspn(t[i].name, "\"\\\n")]) fail("%s: a name that JSON would have to escape", t[i].name);
    if (is_npy(path) && (n != 1 || !*tensor_kinds[1][t->dtype]))
        fail("%s: one tensor, FP32 or FP16, fits into .npy", path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    out = fopen(temporary, "wb");
    if (!out) fail("%s cannot be written", temporary);
    if (is_npy(path))
        print_npy(out, t);
    else
        print_safetensors(out, t, n);
    for (size = 4; size; size /= 2)
        for (i = 0; i < n; i++) {
            if (amp_dtype_size(t[i].dtype) != size) continue;
            little_endian(&t[i]);
            fwrite(t[i].data, size, t[i].count, out);
        }
    wrong = ferror(out);
    if (fclose(out) || wrong) fail("%s cannot be written", temporary);
#ifdef _WIN32
    remove(path);
#endif
    if (rename(temporary, path)) fail("%s cannot be renamed to %s", temporary, path);
}
#endif
