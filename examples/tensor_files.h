/* tensor_files.h - safetensors files, and .npy of numpy, read and written: FP32, FP16, BF16, FP8; .npy: the first two.
 * A file from elsewhere may hold anything: nothing is believed before it is checked, and the first fault ends the
 * program with a sentence. A file is written under a temporary name, so that its own is always whole, old or new.
 */
#ifndef TENSOR_FILES_H
#define TENSOR_FILES_H

#include "program.h"

#include <limits.h>

enum { TENSORS = 1000, DIMS = 8 };
typedef struct tensor {
    char name[100]; /* "" in .npy */
    amp_dtype dtype;
    size_t dims, shape[DIMS], count, place[2]; /* where it begins and ends among the bytes of all tensors */
    unsigned char *data;                       /* at any address */
} tensor;
typedef struct tensor_file {
    char path[300], *header, *at; /* the header, and what of it comes next; 0 behind it */
    unsigned char *all, *data;
    size_t bytes, used, n; /* of data; of them those of tensors; the number of tensors */
    tensor t[TENSORS];
} tensor_file;

static int is_npy(const char *path) { return strlen(path) > 4 && !strcmp(path + strlen(path) - 4, ".npy"); }
static const char *kind(int npy, amp_dtype t) { /* as files say it; "" if they cannot */
    static const char *const in_npy[AMP_DTYPE_COUNT] = {"", "<f4", "<f2", "", "", ""};
    static const char *const in_safetensors[AMP_DTYPE_COUNT] = {"", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"};
    return npy ? in_npy[t] : in_safetensors[t];
}
static void little_endian(tensor *t) { /* as files have it, and back: nothing to do on most machines */
    static const uint16_t one = 1;
    size_t size = amp_dtype_size(t->dtype), i;
    unsigned char old[4];
    for (i = 0; !*(const unsigned char *)&one && i < t->count * size; i++) {
        if (i % size == 0) memcpy(old, t->data + i, size);
        t->data[i] = old[size - 1 - i % size];
    }
}

/* ---- the words of a header: JSON, into which that of .npy is turned ---- */
static void check(int good, const tensor_file *f, const char *sentence) {
    if (!good) fail("%s: %s (byte %ld of the header)", f->path, sentence, (long)(f->at - f->header));
}
static void skip_spaces(tensor_file *f) { f->at += strspn(f->at, " \t\r\n"); }
static int next_is(tensor_file *f, int c) { /* and is stepped over */
    skip_spaces(f);
    if (*f->at != c) return 0;
    f->at++;
    return 1;
}
static void take(tensor_file *f, int c, const char *sentence) { check(next_is(f, c), f, sentence); }
static int one_more(tensor_file *f, size_t n, int end) { /* of a list, behind n others; Python: (2,) */
    if (next_is(f, end)) return 0;
    if (n > 0) take(f, ',', "a comma is expected, or the end");
    return !is_npy(f->path) || !next_is(f, end);
}
static const char *take_string(tensor_file *f) { /* with its backslashes */
    char *begin;
    take(f, '"', "a string is expected");
    for (begin = f->at; (unsigned char)*f->at >= ' ' && *f->at != '"'; f->at++)
        if (f->at[0] == '\\' && f->at[1]) f->at++;
    check(*f->at == '"', f, "a string has no end, or a control character");
    *f->at++ = 0;
    return begin;
}
static size_t take_list(tensor_file *f, size_t *out, size_t most) { /* [2, 3] */
    size_t n;
    take(f, '[', "a list is expected");
    for (n = 0; one_more(f, n, ']'); n++) {
        unsigned long long x;
        check(n < most, f, "a list is too long");
        skip_spaces(f);
        check(*f->at >= '0' && *f->at <= '9', f, "a number is expected");
        x = strtoull(f->at, &f->at, 10);
        out[n] = (size_t)x;
        check(x < ULLONG_MAX && out[n] == x, f, "a number is too large");
    }
    return n;
}

/* ---- tensors ---- */
static void fit(tensor_file *f, tensor *t) { /* dtype, shape and place: with the bytes that there are, and each other */
    size_t i, size = amp_dtype_size(t->dtype);
    check(size > 0 && t->dims <= DIMS, f, "a tensor without a dtype, or without a shape");
    for (t->count = 1, i = 0; i < t->dims; t->count *= t->shape[i++])
        check(!t->shape[i] || t->count <= f->bytes / t->shape[i], f, "a shape of more elements than there are bytes");
    check(t->place[0] <= t->place[1] && t->place[1] <= f->bytes, f, "data behind the end of the file");
    check(t->place[1] - t->place[0] == t->count * size, f, "dtype and shape need another number of bytes");
    for (i = 0; i < f->n; i++) {
        check(strcmp(f->t[i].name, t->name) != 0, f, "a name twice");
        check(t->place[1] <= f->t[i].place[0] || f->t[i].place[1] <= t->place[0], f, "tensors overlap");
    }
    t->data = f->data + t->place[0];
    f->used += t->count * size;
    f->n++;
    little_endian(t);
}
/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, or {"descr": "<f4", "fortran_order": False, ...} */
static void take_tensor(tensor_file *f, tensor *t, int npy) {
    size_t n;
    int k;
    t->dims = DIMS + 1;
    t->place[1] = f->bytes; /* .npy: all */
    take(f, '{', "'{' is expected");
    for (n = 0; one_more(f, n, '}'); n++) {
        const char *key = take_string(f), *word;
        take(f, ':', "':' is expected");
        if (!strcmp(key, "shape")) {
            t->dims = take_list(f, t->shape, DIMS);
        } else if (!npy && !strcmp(key, "data_offsets")) {
            check(take_list(f, t->place, 2) == 2, f, "two offsets are expected");
        } else if (npy && !strcmp(key, "fortran_order")) {
            for (word = "False"; *word; word++)
                take(f, *word, "an array stored by columns");
        } else {
            check(!strcmp(key, npy ? "descr" : "dtype"), f, "an unknown field");
            for (word = take_string(f), k = AMP_F32; k < AMP_DTYPE_COUNT; k++)
                if (*word && !strcmp(word, kind(npy, (amp_dtype)k))) t->dtype = (amp_dtype)k;
            check(t->dtype != AMP_AUTO, f, "a dtype that is not F32, F16, BF16, F8_E4M3 or F8_E5M2 (.npy: <f4 or <f2)");
        }
    }
    fit(f, t);
}
static void take_tensors(tensor_file *f) { /* {"name": {...}, ..., "__metadata__": {"word": "word", ...}} */
    size_t n, i;
    take(f, '{', "'{' is expected");
    for (n = 0; one_more(f, n, '}'); n++) {
        const char *name = take_string(f);
        take(f, ':', "':' is expected");
        if (strcmp(name, "__metadata__")) {
            check(f->n < TENSORS, f, "too many tensors");
            check(strlen(name) < sizeof f->t->name && !strchr(name, '\\'), f, "a name too long, or with a backslash");
            strcpy(f->t[f->n].name, name);
            take_tensor(f, &f->t[f->n], 0);
            continue;
        }
        take(f, '{', "'{' is expected");
        for (i = 0; one_more(f, i, '}'); i++) {
            take_string(f);
            take(f, ':', "':' is expected");
            take_string(f);
        }
    }
}

/* ---- files ---- */
static tensor_file *read_tensors(const char *path) {
    tensor_file *f = (tensor_file *)allocate(1, sizeof *f);
    int npy = is_npy(path);
    FILE *in = fopen(path, "rb");
    long size = in && !fseek(in, 0, SEEK_END) ? ftell(in) : -1;
    size_t at, begin = npy ? 8 : 0, end = npy ? 10 : 8; /* of the header's length, and then that begins */
    uint64_t length = 0;
    unsigned char *all;
    char *c;
    if (size < 0 || fseek(in, 0, SEEK_SET)) fail("%s cannot be read", path);
    f->all = all = (unsigned char *)allocate((size_t)size + 12, 1);
    if (fread(all, 1, (size_t)size, in) != (size_t)size || fclose(in)) fail("%s cannot be read", path);
    if (npy && (memcmp(all, "\x93NUMPY", 6) || all[6] < 1 || all[6] > 3)) fail("%s: it is no .npy", path);
    if (npy && all[6] > 1) end = 12;
    if ((size_t)size < end) fail("%s: it is too short", path);
    for (at = end; at-- > begin;)
        length = length << 8 | all[at];
    if (length > (size_t)size - end) fail("%s: the header is longer than the file", path);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->data = all + end + length;
    f->bytes = (size_t)size - end - (size_t)length;
    f->header = f->at = (char *)memmove(all + end - 1, all + end, (size_t)length); /* so that a 0 can follow */
    f->header[length] = 0;
    if (npy) {
        for (c = f->at; *c; c++) {
            if (*c == '\'') *c = '"';
            if (*c == '(') *c = '[';
            if (*c == ')') *c = ']';
        }
        take_tensor(f, f->t, 1);
    } else {
        take_tensors(f);
    }
    skip_spaces(f);
    check(f->at == f->header + length, f, "text behind the header");
    check(f->used == f->bytes, f, "bytes that no tensor has");
    return f;
}
static void free_tensors(tensor_file *f) {
    free(f->all);
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
static void print_header(FILE *out, const tensor *t, size_t n, int npy) {
    long begin = npy ? 10 : 8, length;
    unsigned long at = 0;
    size_t i;
    fwrite(npy ? "\x93NUMPY\1\0__{" : "________{", 1, (size_t)begin + 1, out);
    for (i = 0; i < n && !npy; i++) {
        fprintf(out, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": ", i ? ", " : "", t[i].name, kind(0, t[i].dtype));
        print_shape(out, &t[i], "[]", "");
        fprintf(out, ", \"data_offsets\": [%lu, ", at);
        at += (unsigned long)(t[i].count * amp_dtype_size(t[i].dtype));
        fprintf(out, "%lu]}", at);
    }
    if (npy) {
        fprintf(out, "'descr': '%s', 'fortran_order': False, 'shape': ", kind(1, t->dtype));
        print_shape(out, t, "()", ",");
    }
    fprintf(out, "}%*s", (int)(127 - ftell(out) % 64), npy ? "\n" : ""); /* data begins at a multiple of 64 */
    length = ftell(out) - begin;
    fseek(out, npy ? 8 : 0, SEEK_SET);
    for (i = npy ? 2 : 8; i > 0; i--, length >>= 8)
        putc((int)(length & 255), out);
    fseek(out, 0, SEEK_END);
}
static int larger_first(const void *a, const void *b) { /* elements, so that all are aligned */
    const tensor *x = (const tensor *)a, *y = (const tensor *)b;
    int d = (int)amp_dtype_size(y->dtype) - (int)amp_dtype_size(x->dtype);
    return d ? d : strcmp(x->name, y->name);
}
/* By the name of the file: .npy takes one tensor. Afterwards they and their data are in the order of the file. */
static void write_tensors(const char *path, tensor *t, size_t n) {
    char temporary[300];
    FILE *out;
    size_t i;
    int wrong;
    if (is_npy(path) && (n != 1 || !*kind(1, t->dtype))) fail("%s: one tensor, FP32 or FP16, fits into .npy", path);
    for (i = 0; i < n; i++)
        if (strpbrk(t[i].name, "\"\\\n")) fail("%s: a name that JSON would have to escape", t[i].name);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    out = fopen(temporary, "wb");
    if (!out) fail("%s cannot be written", temporary);
    qsort(t, n, sizeof *t, larger_first);
    print_header(out, t, n, is_npy(path));
    for (i = 0; i < n; i++) {
        little_endian(&t[i]);
        fwrite(t[i].data, amp_dtype_size(t[i].dtype), t[i].count, out);
    }
    wrong = ferror(out);
    if (fclose(out) || wrong) fail("%s cannot be written", temporary);
#ifdef _WIN32
    remove(path);
#endif
    if (rename(temporary, path)) fail("%s cannot be renamed to %s", temporary, path);
}
#endif
