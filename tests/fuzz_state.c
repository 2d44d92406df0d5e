/* fuzz_state.c - state files that were changed, with the checksums made to fit again: what fuzz.h says.
   A good file of one of several layouts is made, changed as the bytes say (or replaced by them), sealed with the
   checksum of its version, and loaded. A load that is refused leaves every byte as it was and says why; one that is
   taken gives a state that can be saved, loaded and stepped. A file that was changed and not sealed is always
   refused, and one that was not changed is taken. Guards: >>front-state. */
#include "fuzz.h"

#if !defined(_WIN32)
#  include <unistd.h>
#endif

/* ---- a state ---- */

#define N_LAYOUTS 8
typedef struct world {
    amp_ctx *ctx;
    amp_params *set[2];
    amp_scaler *scaler[2];
    amp_fp8 *fp8; /* of layout 6 */
    unsigned char user[16];
    amp_state_desc d;
} world;

static void must(const world *w, amp_status st, const char *what) {
    if (st != AMP_OK) fuzz_fail("%s: %s", what, amp_last_error(w->ctx));
}
static amp_params_desc layout_of(int layout, int set) {
    static const amp_master masters[N_LAYOUTS] = {AMP_MASTER_F32, AMP_MASTER_SPLIT, AMP_MASTER_KAHAN, AMP_MASTER_F32,
        AMP_MASTER_NONE, AMP_MASTER_F32, AMP_MASTER_F32, AMP_MASTER_SPLIT8};
    amp_params_desc d = AMP_ZERO;
    d.model = layout == 0 || layout == 6 ? AMP_F16 : AMP_BF16;
    d.master = layout == 3 && set ? AMP_MASTER_NONE : masters[layout];
    if (layout == 2) d.moment = AMP_BF16;
    if (layout == 1 || layout == 7) d.moment = AMP_MOMENT_8BIT;
    if (layout == 4) d.moments = 1;
    return d;
}
static void add_set(world *w, int layout, int set) {
    static const float init[9] = {1, 2, 3, 4, 5, -6, 7, 0.5f, 9};
    amp_params_desc d = layout_of(layout, set);
    amp_param_desc a = AMP_ZERO, b = AMP_ZERO;
    must(w, amp_params_create(&w->set[set], w->ctx, &d), "create");
    a.name = "a.weight";
    a.count = 5;
    a.init = b.init = init;
    b.name = "b";
    b.count = 9;
    b.keep_f32 = 1;
    must(w, amp_params_add(w->set[set], &a), "add");
    must(w, amp_params_add(w->set[set], &b), "add");
    must(w, amp_params_commit(w->set[set]), "commit");
}
static void add_scaler(world *w, int layout, int k) {
    amp_scaler_desc d = AMP_ZERO;
    if (layout == 4 && k) d.mode = AMP_SCALER_OFF;
    if (layout == 3) d.mode = AMP_SCALER_STATIC;
    must(w, amp_scaler_create(&w->scaler[k], w->ctx, &d), "scaler");
}
static void add_fp8(world *w) { /* with a history that has something in it */
    static const float x[4] = {1, -2, 3, 0.5f};
    unsigned char out[4];
    amp_fp8_desc d = AMP_ZERO;
    amp_array none = AMP_ZERO;
    d.history = 3;
    must(w, amp_fp8_create(&w->fp8, w->ctx, &d), "scales");
    must(w, amp_quantize(w->fp8, 1, amp_arr(out, AMP_F8E4M3), none, amp_arr(x, AMP_F32), 2, 2, 0), "quantize");
    w->d.fp8 = &w->fp8;
    w->d.n_fp8 = 1;
}
static void world_new(world *w, int layout) {
    static const size_t n_sets[N_LAYOUTS] = {1, 1, 1, 2, 1, 0, 1, 1}, n_scalers[N_LAYOUTS] = {1, 1, 0, 1, 2, 1, 1, 1};
    static const size_t user_bytes[N_LAYOUTS] = {0, 11, 0, 0, 3, 16, 0, 0};
    amp_cpu_desc c = AMP_ZERO;
    int i;
    memset(w, 0, sizeof *w);
    c.threads = 1;
    c.simd = AMP_SIMD_SCALAR;
    if (amp_cpu_create(&w->ctx, &c) != AMP_OK) fuzz_fail("no context");
    for (i = 0; i < (int)n_sets[layout]; i++)
        add_set(w, layout, i);
    for (i = 0; i < (int)n_scalers[layout]; i++)
        add_scaler(w, layout, i);
    for (i = 0; i < 16; i++)
        w->user[i] = (unsigned char)i;
    if (layout == 6) add_fp8(w);
    w->d.params = w->set;
    w->d.n_params = n_sets[layout];
    w->d.scalers = w->scaler;
    w->d.n_scalers = n_scalers[layout];
    w->d.user = w->user;
    w->d.user_bytes = user_bytes[layout];
}
static void world_free(world *w) {
    amp_ledger_row row = AMP_ZERO;
    size_t i;
    for (i = 0; i < w->d.n_params; i++)
        amp_params_destroy(w->set[i]);
    for (i = 0; i < w->d.n_scalers; i++)
        amp_scaler_destroy(w->scaler[i]);
    amp_fp8_destroy(w->fp8);
    if (amp_ledger(w->ctx, &row, 1, "total") && row.bytes) fuzz_fail("the ledger has %llu bytes", AMPI_ULL(row.bytes));
    amp_ctx_destroy(w->ctx);
}
static uint64_t hash_array(uint64_t h, amp_array a) {
    return a.data ? fuzz_hash(h, a.data, a.count * amp_dtype_size(a.dtype)) : h;
}
static uint64_t world_hash(const world *w) {
    uint64_t h = 1;
    size_t i, k;
    for (i = 0; i < w->d.n_params; i++) {
        h = fuzz_hash(h, amp_step_record_ptr(w->set[i]), sizeof(amp_step_record));
        for (k = 0; k < 2; k++) {
            amp_param e = amp_param_get(w->set[i], k);
            h = hash_array(h, e.master);
            h = hash_array(h, e.model);
            h = hash_array(h, e.low);
            h = hash_array(h, e.grad);
            h = hash_array(h, e.moment[0]);
            h = hash_array(h, e.moment[1]);
            h = hash_array(h, e.moment_scale[0]);
            h = hash_array(h, e.moment_scale[1]);
        }
    }
    for (i = 0; i < w->d.n_scalers; i++) {
        amp_scaler_info info;
        memset(&info, 0, sizeof info);
        must(w, amp_scaler_get(w->scaler[i], &info), "get");
        h = fuzz_hash(h, &info, sizeof info);
    }
    for (i = 0; w->fp8 && i < 3; i++) {
        amp_fp8_info info;
        must(w, amp_fp8_get(w->fp8, i, &info), "get");
        h = fuzz_hash(h, &info, sizeof info);
    }
    return fuzz_hash(h, w->user, sizeof w->user);
}
static amp_status step(world *w, size_t set) {
    amp_step_desc d = AMP_ZERO;
    d.lr = 0.001f;
    d.optimizer = amp_param_get(w->set[set], 0).moment[1].data ? AMP_ADAMW : AMP_LION;
    return amp_update(w->set[set], w->d.n_scalers ? w->scaler[0] : NULL, &d);
}

/* ---- files ---- */

#define ROOM 65536u
typedef struct file {
    uint8_t b[ROOM];
    size_t n;
} file;

static const char *path_of(const char *name) {
    static char path[3][200];
    static int next;
    const char *dir = getenv("FUZZ_DIR");
    char *to = path[next = (next + 1) % 3];
#if defined(_WIN32)
    int pid = 0;
#else
    int pid = (int)getpid();
#endif
    snprintf(to, sizeof path[0], "%.150s/fuzz_state.%d.%s", dir ? dir : ".", pid, name);
    return to;
}
static void file_write(const file *f, const char *path) {
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(f->b, 1, f->n, to) != f->n || fclose(to) != 0) fuzz_fail("%s cannot be written", path);
}
static void file_read(file *f, const char *path) {
    FILE *from = fopen(path, "rb");
    if (!from) fuzz_fail("%s cannot be read", path);
    f->n = fread(f->b, 1, ROOM, from);
    (void)fclose(from);
}

/* The good file of each layout, after a step; made once. */
static const file *good_file(int layout) {
    static file made[N_LAYOUTS];
    world w;
    size_t i;
    if (made[layout].n) return &made[layout];
    world_new(&w, layout);
    for (i = 0; i < w.d.n_params; i++)
        must(&w, step(&w, i), "step");
    if (w.d.n_params && w.d.n_scalers) must(&w, amp_scaler_update(w.scaler[0]), "update");
    must(&w, amp_state_save(w.ctx, path_of("good"), &w.d), "save");
    file_read(&made[layout], path_of("good"));
    (void)remove(path_of("good"));
    world_free(&w);
    return &made[layout];
}

/* ---- checksums ---- */

#define HEAD 16u /* bytes of the file's head and of a section's */

static void put(uint8_t *to, uint64_t x, int bytes) {
    int i;
    for (i = 0; i < bytes; i++)
        to[i] = (uint8_t)(x >> (8 * i));
}
static void seal(file *f) {
    ampi_xxh h = ampi_xxh_begin();
    if (f->n < HEAD + 8) return;
    ampi_xxh_add(&h, f->b, f->n - 8);
    put(f->b + f->n - 8, ampi_xxh_end(&h), 8);
}

/* ---- changes ---- */

#define MAX_SECTIONS 32u
/* Where the sections begin, and where the last one ends. */
static size_t sections_of(const file *f, size_t begin[MAX_SECTIONS + 1]) {
    size_t at = HEAD, n = 0;
    while (n < MAX_SECTIONS && f->n >= at + HEAD + 8) {
        uint64_t bytes = ampi_get(f->b + at + 8, 8);
        if (bytes > f->n - 8 - at - HEAD) break;
        begin[n++] = at;
        at += HEAD + (size_t)bytes;
    }
    begin[n] = at;
    return n;
}
static void cut(file *f, size_t at, size_t bytes) {
    memmove(f->b + at, f->b + at + bytes, f->n - at - bytes);
    f->n -= bytes;
}
static void paste(file *f, size_t at, const uint8_t *from, size_t bytes) {
    static uint8_t copy[ROOM];
    if (bytes > ROOM - f->n) return;
    memcpy(copy, from, bytes);
    memmove(f->b + at + bytes, f->b + at, f->n - at);
    memcpy(f->b + at, copy, bytes);
    f->n += bytes;
}
static size_t some_at(const file *f) { return f->n ? fuzz_u32() % f->n : 0; }
static void change_section(file *f, int how) { /* 0 drop, 1 double, 2 move; the count in the head follows, mostly */
    size_t begin[MAX_SECTIONS + 1], n = sections_of(f, begin), i = fuzz_below((uint32_t)n), k, bytes;
    int more = how == 1 ? 1 : how - 1;
    uint8_t copy[1024];
    if (n == 0) return;
    bytes = begin[i + 1] - begin[i];
    k = fuzz_below((uint32_t)n);
    if (bytes > sizeof copy) return;
    memcpy(copy, f->b + begin[i], bytes);
    if (how == 1) paste(f, begin[k], copy, bytes);
    if (how == 0) cut(f, begin[i], bytes);
    if (how == 2) {
        cut(f, begin[i], bytes);
        n = sections_of(f, begin);
        paste(f, begin[fuzz_below((uint32_t)n + 1)], copy, bytes);
        more = 0;
    }
    if (fuzz_percent(80)) put(f->b + 12, ampi_get(f->b + 12, 4) + (uint64_t)(int64_t)more, 4);
}
static void change_field(file *f) { /* a word of a section's head or of its first fields */
    static const uint64_t words[] = {0, 1, 2, 3, 4, 5, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000, 0x7f800000,
        0x4b525020, 0x20434c53, 0x20544553, 0x52455355};
    size_t begin[MAX_SECTIONS + 1], n = sections_of(f, begin), at, i = fuzz_below((uint32_t)n);
    if (n == 0) return;
    at = begin[i] + 4 * (size_t)fuzz_below(24);
    if (at + 4 > f->n) return;
    if (fuzz_percent(50))
        put(f->b + at, words[fuzz_below(16)], 4);
    else
        put(f->b + at, ampi_get(f->b + at, 4) + fuzz_below(5) - 2u, 4);
}
static void change_length(file *f) { /* of a section, with as many bytes more or less, or without */
    size_t begin[MAX_SECTIONS + 1], n = sections_of(f, begin), i = fuzz_below((uint32_t)n), by = 1 + fuzz_below(16);
    static const uint8_t zeros[16] = {0};
    if (n == 0) return;
    if (fuzz_percent(50)) {
        put(f->b + begin[i] + 8, ampi_get(f->b + begin[i] + 8, 8) + by, 8);
        if (fuzz_percent(70)) paste(f, begin[i + 1], zeros, by);
    } else {
        put(f->b + begin[i] + 8, ampi_get(f->b + begin[i] + 8, 8) - by, 8);
        if (fuzz_percent(70) && begin[i + 1] - begin[i] > HEAD + by) cut(f, begin[i + 1] - by, by);
    }
}
static void change(file *f) {
    uint8_t bytes[16];
    size_t at = some_at(f), i, n;
    if (f->n < HEAD) return;
    switch (fuzz_below(11)) {
    case 0: f->b[at] ^= (uint8_t)(1u << fuzz_below(8)); return;
    case 1: f->b[at] = (uint8_t)fuzz_byte(); return;
    case 2: change_section(f, 0); return;
    case 3: change_section(f, 1); return;
    case 4: change_section(f, 2); return;
    case 5:
    case 6: change_field(f); return;
    case 7: change_length(f); return;
    case 8: f->n = at; return;
    case 9: put(f->b + 8 + 4 * (size_t)fuzz_below(2), fuzz_percent(70) ? fuzz_below(20) : fuzz_u32(), 4); return;
    default:
        n = fuzz_below(16);
        for (i = 0; i < n; i++)
            bytes[i] = (uint8_t)fuzz_byte();
        paste(f, at, bytes, n);
    }
}

/* ---- a run ---- */

static struct { unsigned long taken, refused; } counts;

static void check_refused(world *w, amp_status st, uint64_t before) {
    static const char name[] = "amp_state_load: ";
    const char *text = amp_last_error(w->ctx);
    counts.refused++;
    if (st != AMP_ERR_FORMAT) fuzz_fail("it was refused with %s: %s", amp_strerror(st), text);
    if (strncmp(text, name, sizeof name - 1) != 0 || !text[sizeof name]) fuzz_fail("the sentence is \"%s\"", text);
    if (world_hash(w) != before) fuzz_fail("it was refused, and something has changed: %s", text);
}
static void check_taken(world *w) { /* saved and loaded again it is the same, and it can be stepped */
    uint64_t after = world_hash(w);
    const char *path = path_of("again");
    amp_scaler_info info;
    size_t i;
    counts.taken++;
    must(w, amp_state_save(w->ctx, path, &w->d), "save after load");
    must(w, amp_state_load(w->ctx, path, &w->d), "load after save");
    (void)remove(path);
    if (world_hash(w) != after) fuzz_fail("saved and loaded it is different");
    for (i = 0; i < w->d.n_params; i++)
        must(w, step(w, i), "step after load");
    if (!w->d.n_params || !w->d.n_scalers) return;
    must(w, amp_scaler_update(w->scaler[0]), "update after load");
    must(w, amp_scaler_get(w->scaler[0], &info), "get");
    if (!amp_is_finite(info.scale) || !(info.scale > 0.0f)) fuzz_fail("then the scale is %g", (double)info.scale);
}
/* 1: by what was done it must be taken, -1: refused, 0: either */
static int make_file(file *f, const file *good) {
    int changes, sealed;
    size_t i;
    if (fuzz_percent(4)) { /* any bytes */
        f->n = fuzz_below(256);
        for (i = 0; i < f->n; i++)
            f->b[i] = (uint8_t)fuzz_byte();
        return -1;
    }
    *f = *good;
    for (changes = (int)fuzz_below(4); changes > 0; changes--)
        change(f);
    sealed = fuzz_percent(85);
    if (sealed) seal(f);
    if (f->n == good->n && memcmp(f->b, good->b, f->n) == 0) return 1;
    return sealed ? 0 : -1;
}
static void one_file(void) {
    static file f;
    const char *path = path_of("in");
    int layout = (int)fuzz_below(N_LAYOUTS), goal;
    uint64_t before;
    amp_status st;
    world w;
    goal = make_file(&f, good_file(layout));
    fuzz_where("a file of %d bytes for layout %d", (int)f.n, layout);
    file_write(&f, path);
    world_new(&w, layout);
    before = world_hash(&w);
    st = amp_state_load(w.ctx, path, &w.d);
    if (st != AMP_OK && goal > 0) fuzz_fail("a good file is refused: %s", amp_last_error(w.ctx));
    if (st == AMP_OK && goal < 0) fuzz_fail("a file that was changed is taken");
    if (st == AMP_OK)
        check_taken(&w);
    else
        check_refused(&w, st, before);
    (void)remove(path);
    world_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_begin(data, n);
    do
        one_file();
    while (fuzz_left());
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static void print_counts(void) { fprintf(stderr, "%lu files taken, %lu refused\n", counts.taken, counts.refused); }
int main(int argc, char **argv) {
    if (atexit(print_counts) != 0) return 2;
    return fuzz_main(argc, argv, 512);
}
#endif
