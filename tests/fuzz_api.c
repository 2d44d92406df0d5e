/* fuzz_api.c - any verb, any argument, in any order: what fuzz.h says, and FUZZ_CUDA: on CUDA contexts.
   After a call that failed all context memory, all sets and scalers, the ledger and the host's outputs must have the
   bytes of before, and the context a new sentence that begins with the verb's name. Memory is freed with the sizes it
   was asked for; the ledger is 0 and nothing is left at the end. Guards: the checks of every >>front-... section. */
#include "fuzz.h"
#include "verbs.h"

#include <stddef.h>

#if !defined(_WIN32)
#  include <unistd.h>
#endif

/* ---- the allocator: knows sizes, and refuses when it is told to ---- */

#define MAX_BLOCKS 1024u
static struct {
    struct {
        void *ptr;
        size_t bytes;
        char made[60]; /* in this call */
    } block[MAX_BLOCKS];
    unsigned live, failing; /* failing: of 256 requests */
    amp_ctx *bystander;     /* its memory is the device's */
} heap;

static void *heap_take(size_t bytes, void *device) {
    void *p = NULL;
    if (bytes > (size_t)64 << 20) return NULL;
    if (heap.failing && fuzz_byte() < heap.failing) return NULL;
    if (heap.live == MAX_BLOCKS) fuzz_fail("%u blocks of memory are in use", MAX_BLOCKS);
    if (!device)
        p = malloc(bytes);
    else if (amp_alloc(heap.bystander, &p, bytes, NULL) != AMP_OK)
        p = NULL;
    if (!p) return NULL;
    if (!device) memset(p, 0xa5, bytes < 65536 ? bytes : 65536);
    heap.block[heap.live].ptr = p;
    heap.block[heap.live].bytes = bytes;
    snprintf(heap.block[heap.live].made, sizeof heap.block[0].made, "%.59s", fuzz_now.where);
    heap.live++;
    return p;
}
static void heap_give(void *p, size_t bytes, void *device) {
    unsigned i;
    for (i = 0; i < heap.live && heap.block[i].ptr != p; i++) {
    }
    if (i == heap.live) fuzz_fail("memory is freed that was not allocated");
    if (heap.block[i].bytes != bytes)
        fuzz_fail("%llu bytes were asked for and %llu are freed", AMPI_ULL(heap.block[i].bytes), AMPI_ULL(bytes));
    heap.block[i] = heap.block[--heap.live];
    if (!device)
        free(p);
    else if (amp_free(heap.bystander, p) != AMP_OK)
        fuzz_fail("free: %s", amp_last_error(heap.bystander));
}

/* ---- the world ---- */

#define N_CONTEXTS 2
#define N_SETS     4
#define N_SCALERS  3
#define N_FP8      2
#define N_POLICIES 2
#define N_RECORDS  3
#define MAX_PARAMS 6u    /* of a set */
#define SLOT       1024u /* bytes from one place for an array to the next */
#define SLOTS      64u
#define ROOM       1024u /* elements that each array could have, of up to 8 bytes */
#define MARGIN     1024u /* bytes before and after */
#define ARENA      (SLOTS * SLOT + 64u + 8u * ROOM)

static struct {
    amp_ctx *ctx[N_CONTEXTS];
    unsigned char *memory, *arena; /* context memory: the arena has margins */
    amp_params *set[N_SETS];
    amp_ctx *set_ctx[N_SETS];
    int committed[N_SETS];
    amp_scaler *scaler[N_SCALERS];
    amp_ctx *scaler_ctx[N_SCALERS];
    amp_fp8 *fp8[N_FP8];
    amp_ctx *fp8_ctx[N_FP8];
    amp_policy policy[N_POLICIES];
    int policy_made[N_POLICIES];
    amp_precision record[N_RECORDS];
    amp_snapshot snapshot;
    int snapshot_made, stepped, inspected; /* the last two: sets */
    unsigned long calls;
} w;

static struct {    /* the call that is made */
    amp_ctx *said; /* who has the sentence; NULL: nobody */
    int open;      /* an operand has no count: sizes are believed */
    int excused;   /* a hook of ours failed: the sentence may be anything */
    struct {
        const void *at;
        size_t bytes;
        unsigned char was[4096];
    } out[4];
    unsigned n_out;
} now;

/* Host memory that a failure must not change. */
static void watch(const void *at, size_t bytes) {
    if (bytes > sizeof now.out[0].was || now.n_out == 4) fuzz_fail("the fuzzer watches too much");
    now.out[now.n_out].at = at;
    now.out[now.n_out].bytes = bytes;
    memcpy(now.out[now.n_out].was, at, bytes);
    now.n_out++;
}
static void output(void *at, size_t bytes) {
    memset(at, 0x5a, bytes);
    watch(at, bytes);
}

static uint64_t hash_memory(uint64_t h, const void *memory, size_t bytes) {
    static unsigned char room[ARENA + 2 * MARGIN];
    if (bytes > sizeof room) fuzz_fail("the fuzzer looks at too much");
    return fuzz_hash(h, fuzz_look(heap.bystander, room, memory, bytes), bytes);
}
static uint64_t hash_array(uint64_t h, amp_array a) {
    return a.data ? hash_memory(h, a.data, a.count * amp_dtype_size(a.dtype)) : h;
}
static uint64_t hash_set(uint64_t h, const amp_params *p) {
    size_t i, n = amp_params_count(p);
    h = hash_memory(h, amp_step_record_ptr(p), sizeof(amp_step_record));
    for (i = 0; i < n; i++) {
        amp_param e = amp_param_get(p, i);
        h = hash_array(h, e.model);
        h = hash_array(h, e.grad);
        h = hash_array(h, e.master);
        h = hash_array(h, e.low);
        h = hash_array(h, e.accum);
        h = hash_array(h, e.moment[0]);
        h = hash_array(h, e.moment[1]);
        h = hash_array(h, e.moment_scale[0]);
        h = hash_array(h, e.moment_scale[1]);
    }
    return h;
}
static uint64_t hash_fp8(uint64_t h, amp_fp8 *f) { /* of the tensors that every one has */
    amp_fp8_info info;
    size_t i;
    for (i = 0; i < 3 && amp_fp8_inverse_ptr(f, i); i++) {
        memset(&info, 0, sizeof info);
        if (amp_fp8_get(f, i, &info) != AMP_OK) fuzz_fail("FP8 scales cannot be read");
        h = fuzz_hash(h, &info, sizeof info);
    }
    return h;
}
static uint64_t ledger_bytes(const amp_ctx *ctx, const char *label) {
    amp_ledger_row row = AMP_ZERO;
    return amp_ledger(ctx, &row, 1, label) ? row.bytes : 0;
}
static uint64_t world_hash(void) {
    unsigned failing = heap.failing, i;
    uint64_t h = 7;
    heap.failing = 0;
#ifdef FUZZ_CUDA
    for (i = 0; i < N_CONTEXTS; i++)
        if (amp_sync(w.ctx[i]) != AMP_OK) fuzz_fail("sync: %s", amp_last_error(w.ctx[i]));
#endif
    h = hash_memory(h, w.memory, ARENA + 2 * MARGIN);
    for (i = 0; i < N_SETS; i++) {
        h = fuzz_hash_u64(h, amp_params_count(w.set[i]));
        if (w.set[i] && w.committed[i]) h = hash_set(h, w.set[i]);
    }
    for (i = 0; i < N_SCALERS; i++) {
        amp_scaler_info info;
        memset(&info, 0, sizeof info);
        if (w.scaler[i] && amp_scaler_get(w.scaler[i], &info) != AMP_OK) fuzz_fail("a scaler cannot be read");
        h = fuzz_hash(h, &info, sizeof info);
    }
    for (i = 0; i < N_FP8; i++)
        if (w.fp8[i]) h = hash_fp8(h, w.fp8[i]);
    for (i = 0; i < N_CONTEXTS; i++) {
        h = fuzz_hash_u64(h, amp_autocast_get(w.ctx[i]).depth);
        h = fuzz_hash_u64(h, ledger_bytes(w.ctx[i], "total") - ledger_bytes(w.ctx[i], "autocast"));
    }
    heap.failing = failing;
    return h;
}

static void put(void *memory, const void *from, size_t bytes) {
#ifdef FUZZ_CUDA
    int i;
    for (i = 0; i < N_CONTEXTS; i++)
        (void)amp_sync(w.ctx[i]);
    if (amp_copy(heap.bystander, memory, from, bytes) != AMP_OK) fuzz_fail("%s", amp_last_error(heap.bystander));
#else
    memcpy(memory, from, bytes);
#endif
}

/* ---- arguments ---- */

static amp_ctx *some_context(void) {
    amp_ctx *ctx = w.ctx[fuzz_percent(7)];
    if (fuzz_percent(1)) ctx = NULL;
    now.said = ctx;
    return ctx;
}
/* A set that exists, mostly a committed one, or mostly one that is not; -1: there is none. */
static int some_set_index(int committed) {
    unsigned i, k = fuzz_below(N_SETS), any = fuzz_percent(15);
    for (i = 0; i < 2 * N_SETS; i++) {
        unsigned at = (i + k) % N_SETS;
        if (w.set[at] && (any || i >= N_SETS || w.committed[at] == committed)) return (int)at;
    }
    return -1;
}
static amp_params *the_set(int i) { /* and its context has the sentence */
    if (i < 0 || fuzz_percent(1)) return NULL;
    now.said = w.set_ctx[i];
    return w.set[i];
}
static amp_params *some_set(void) { return the_set(some_set_index(1)); }
static int some_scaler_index(const amp_ctx *ctx) { /* one of ctx, mostly */
    unsigned i, k = fuzz_below(N_SCALERS);
    for (i = 0; i < N_SCALERS; i++) {
        unsigned at = (i + k) % N_SCALERS;
        if (w.scaler[at] && (w.scaler_ctx[at] == ctx || fuzz_percent(3))) return (int)at;
    }
    return -1;
}
static amp_scaler *some_scaler(void) {
    int i = fuzz_percent(15) ? -1 : some_scaler_index(now.said ? now.said : w.ctx[0]);
    return i < 0 ? NULL : w.scaler[i];
}
static amp_dtype some_dtype(void) {
    static const int bad[] = {0, 6, -1, 99, 0x7fffffff, AMP_F64};
    if (fuzz_percent(5)) return (amp_dtype)bad[fuzz_below(6)];
    return (amp_dtype)(1 + fuzz_below(5));
}
static amp_dtype one_of(amp_dtype usual) { return fuzz_percent(85) ? usual : some_dtype(); }
static size_t some_side(void) { /* of a matrix */
    static const size_t sides[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 2, 3};
    return sides[fuzz_below(16)];
}
static size_t some_count(void) {
    static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 255, 256,
        257, 511, 513, 1000, 1023, 1024, 4, 6, 10, 12, 20};
    return counts[fuzz_below(32)];
}
static size_t some_huge(void) { /* no memory has as many floats */
    size_t half = (size_t)1 << (8 * sizeof(size_t) - 1);
    switch (fuzz_below(6)) {
    case 0: return (size_t)-1;
    case 1: return (size_t)-1 - fuzz_below(70);
    case 2: return half + fuzz_below(5);
    case 3: return half / 2 + fuzz_below(5);
    case 4: return half - 1 - fuzz_below(3);
    default: return half / 2 + half / 4 + 1;
    }
}
static void *some_place(void) { /* room for ROOM elements of 4 bytes */
    size_t at = (size_t)fuzz_below(SLOTS) * SLOT;
    if (fuzz_percent(10)) at += 4 * (size_t)fuzz_below(16);
    return w.arena + at;
}
/* A CPU takes any address of an operand, but a pointer to 8 bytes is aligned to them there; CUDA refuses others. */
static const int64_t *as_c_wants(const int64_t *p) {
#ifdef FUZZ_CUDA
    return p;
#else
    return (const int64_t *)(const void *)((const char *)p - (uintptr_t)p % 8u);
#endif
}
static amp_array some_array(amp_dtype t, size_t n) { /* with room for n */
    amp_array a = AMP_ZERO;
    uint32_t way = fuzz_below(10);
    unsigned char *at = (unsigned char *)some_place();
    if (fuzz_percent(8)) at += amp_dtype_size(t) % 4 * fuzz_below(2);
    a.data = fuzz_percent(2) ? NULL : at;
    a.dtype = t;
    a.count = way == 0 ? 0 : ROOM;
    if (way == 1 || way == 2) a.count = n;
    if (way == 3 && n && fuzz_percent(20)) a.count = n - 1;
    if (fuzz_percent(10)) a.flags = fuzz_percent(80) ? AMP_CACHE : fuzz_u32();
    if (a.count == 0) now.open = 1;
    return a;
}
static amp_array no_array(void) {
    amp_array a = AMP_ZERO;
    return a;
}
static const float *some_factor(void) { return fuzz_percent(10) ? (const float *)some_place() : NULL; }
static amp_optional some_option(void) {
    amp_optional o = AMP_ZERO;
    if (fuzz_percent(25)) o = amp_opt(fuzz_percent(80) ? fuzz_real() : fuzz_special());
    return o;
}
static uint32_t seldom(uint32_t percent) { return (uint32_t)fuzz_percent(percent); }

/* Sets one word of a desc to a number that is out of place; a pointer into the arena to another one, or to NULL.
   pointers: offsets of the desc's, ended by (size_t)-1. */
static void spoil(void *desc, size_t bytes, const size_t *pointers) {
    static const uint32_t bad[] = {0, 1, 2, 3, 9, 77, 1000, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000,
        0x7f800000, 0xff800000, 0xbf800000};
    unsigned char *at = (unsigned char *)desc;
    uint32_t word = bad[fuzz_below(15)];
    if (now.open || !fuzz_percent(25)) return;
    at += 4 * (size_t)fuzz_below((uint32_t)(bytes / 4));
    for (; *pointers != (size_t)-1; pointers++) {
        unsigned char *p, *slot = (unsigned char *)desc + *pointers;
        if (at < slot || at >= slot + sizeof p) continue;
        memcpy(&p, slot, sizeof p);
        if (p < w.arena || p >= w.arena + ARENA) return;
        p = fuzz_percent(50) ? NULL : (unsigned char *)some_place();
        memcpy(slot, &p, sizeof p);
        return;
    }
    memcpy(at, &word, 4);
}
#define AT(type, field)   offsetof(type, field)
#define END               ((size_t)-1)
#define SPOIL(d, offsets) spoil(&(d), sizeof(d), offsets)
static const size_t no_pointers[] = {END};

/* ---- memory ---- */

static float host_numbers[ROOM]; /* host memory for verbs that read or write it */

static amp_status try_alloc(void) {
    amp_ctx *ctx = some_context();
    size_t bytes = fuzz_percent(5) ? some_huge() : fuzz_below(5000);
    void *p = &w;
    char label[40];
    amp_status st;
    memset(label, 'a' + (int)fuzz_below(3), sizeof label);
    label[fuzz_percent(90) ? fuzz_below(4) : 30 + fuzz_below(9)] = 0;
    if (fuzz_percent(1)) return amp_alloc(ctx, NULL, bytes, label);
    st = amp_alloc(ctx, &p, bytes, fuzz_percent(50) ? label : NULL);
    if (st != AMP_OK && ctx && p) fuzz_fail("*out is not NULL");
    if (st != AMP_OK) return st;
    if (bytes == 0 && p) fuzz_fail("0 bytes have an address");
    if ((uintptr_t)p % 256) fuzz_fail("the address is not aligned to 256 bytes");
    if (amp_zero(ctx, p, bytes) != AMP_OK || amp_free(ctx, p) != AMP_OK) fuzz_fail("%s", amp_last_error(ctx));
    return AMP_OK;
}
static amp_status try_free(void) {
    amp_ctx *ctx = some_context();
    void *p = fuzz_percent(30) ? NULL : some_place();
    return amp_free(ctx, p);
}
static int apart(const void *a, const void *b, size_t bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x + bytes <= y || y + bytes <= x;
}
static amp_status copy_by(amp_status (*copy)(amp_ctx *, void *, const void *, size_t)) {
    amp_ctx *ctx = some_context();
    size_t bytes = 4 * some_count();
    void *to = some_place(), *from = some_place();
    if (fuzz_percent(20)) from = host_numbers;
    if (!apart(to, from, bytes)) bytes = 0;
    if (fuzz_percent(3)) to = NULL;
    if (fuzz_percent(3)) from = NULL;
    return copy(ctx, to, from, bytes);
}
static amp_status try_copy(void) { return copy_by(amp_copy); }
static amp_status try_copy_async(void) { return copy_by(amp_copy_async); }
static amp_status try_zero(void) {
    amp_ctx *ctx = some_context();
    size_t bytes = some_count();
    void *to = fuzz_percent(3) ? NULL : some_place();
    return amp_zero(ctx, to, bytes);
}
static amp_status try_sync(void) { return amp_sync(some_context()); }

/* New numbers in a piece of the arena: any bits, plain ones or special ones, as floats or halves. */
static amp_status try_new_numbers(void) {
    static unsigned char bytes[8 * SLOT];
    uint32_t kind = fuzz_below(5);
    size_t i, at = SLOT * (size_t)fuzz_below(SLOTS - 8);
    fuzz_random_from(fuzz_u32());
    for (i = 0; i < sizeof bytes / 4; i++) {
        uint64_t r = fuzz_random();
        float x = (float)(int64_t)(r % 1001) / 256.0f - 2.0f;
        if (kind == 1) x = ampi_float((uint32_t)r);
        if (kind == 2 && r % 50 == 0) x = ampi_float(0x7f800000u | (uint32_t)(r >> 32 & 0x80400000u));
        if (kind == 3) x = (float)(int64_t)(r % 20);
        if (kind < 4) amp_store(bytes, AMP_F32, i, x);
        if (kind == 4) amp_store(bytes, AMP_F16, 2 * i, x);
        if (kind == 4) amp_store(bytes, AMP_F16, 2 * i + 1, -x);
    }
    put(w.arena + at, bytes, sizeof bytes);
    return AMP_OK;
}
static amp_status try_new_labels(void) {
    int32_t labels[ROOM];
    size_t i;
    fuzz_random_from(fuzz_u32());
    for (i = 0; i < ROOM; i++)
        labels[i] = (int32_t)(fuzz_random() % 20) - 2;
    put(w.arena + SLOT * (size_t)fuzz_below(SLOTS), labels, sizeof labels);
    return AMP_OK;
}

/* ---- arrays ---- */

static amp_status try_cast(void) {
    amp_ctx *ctx = some_context();
    size_t n = some_count();
    amp_dtype to = some_dtype(), from = some_dtype();
    amp_cast_desc d = AMP_ZERO;
    amp_array dst = some_array(to, n), src = some_array(from, n);
    int by_desc = fuzz_percent(60);
    d.rounding = (amp_rounding)seldom(50);
    d.seed = fuzz_byte();
    d.offset = fuzz_percent(20) ? (uint64_t)-1 - fuzz_byte() : fuzz_byte();
    d.saturate = seldom(50);
    if (fuzz_percent(10)) dst.data = src.data;
    SPOIL(d, no_pointers);
    if (dst.count && src.count && fuzz_percent(5)) n = fuzz_percent(50) ? some_huge() : fuzz_u32();
    return amp_cast(ctx, dst, src, n, by_desc ? &d : NULL);
}
/* Arrays whose counts are believed. */
static size_t some_list(amp_array *list, size_t cap) {
    size_t i, n = fuzz_below((uint32_t)cap + 1);
    for (i = 0; i < n; i++) {
        size_t count = some_count();
        amp_dtype t = some_dtype();
        list[i] = some_array(t, count);
        list[i].count = count;
        if (fuzz_percent(2)) list[i].count = 0;
        if (!fuzz_percent(2)) continue;
        list[i].dtype = AMP_F32;
        list[i].count = some_huge();
    }
    return n;
}
static amp_status try_all_finite(void) {
    static amp_finite_report report;
    amp_ctx *ctx = some_context();
    amp_array list[5];
    size_t n = some_list(list, 5);
    output(&report, sizeof report);
    if (fuzz_percent(1)) return amp_all_finite(ctx, NULL, list, n);
    return amp_all_finite(ctx, &report, fuzz_percent(1) ? NULL : list, n);
}
static amp_status try_histogram(void) {
    static amp_histogram h, sum;
    amp_ctx *ctx = some_context();
    amp_array list[5];
    size_t n = some_list(list, 5);
    amp_status st;
    output(&h, sizeof h);
    if (fuzz_percent(1)) return amp_histogram_count(ctx, NULL, list, n);
    st = amp_histogram_count(ctx, &h, fuzz_percent(1) ? NULL : list, n);
    if (st != AMP_OK) return st;
    amp_histogram_add(&sum, &h);
    (void)amp_histogram_fates(&h, some_dtype(), fuzz_special());
    (void)amp_histogram_suggest_scale(&h);
    return st;
}
static amp_status try_unscale_lists(void) {
    static amp_finite_report report;
    amp_array src[4], dst[4];
    size_t i, n;
    amp_scaler *s;
    int wants, to;
    now.said = w.ctx[0];
    s = some_scaler();
    for (i = 0; i < N_SCALERS; i++)
        if (s && w.scaler[i] == s) now.said = w.scaler_ctx[i];
    if (!s) now.said = NULL;
    n = some_list(src, 4);
    for (i = 0; i < n; i++) {
        amp_dtype t = one_of(src[i].dtype);
        dst[i] = some_array(t, ROOM);
        if (fuzz_percent(30)) dst[i] = src[i];
    }
    output(&report, sizeof report);
    wants = fuzz_percent(50);
    to = fuzz_percent(50);
    return amp_unscale(s, to ? dst : NULL, wants ? &report : NULL, fuzz_percent(1) ? NULL : src, n);
}
static amp_status try_dropout(void) {
    static const size_t pointers[] = {AT(amp_dropout_desc, x.data), AT(amp_dropout_desc, y.data), END};
    amp_ctx *ctx = some_context();
    amp_dropout_desc d = AMP_ZERO;
    amp_dtype t = some_dtype();
    d.p = fuzz_percent(90) ? (float)fuzz_below(101) / 100.0f : fuzz_special();
    d.count = some_count();
    d.x = some_array(t, d.count);
    t = one_of(t);
    d.y = some_array(t, d.count);
    if (fuzz_percent(20)) d.y = d.x;
    d.rng.seed = fuzz_byte();
    d.rng.offset = fuzz_percent(90) ? fuzz_byte() : (uint64_t)-1 - fuzz_byte();
    SPOIL(d, pointers);
    return amp_dropout(ctx, fuzz_percent(1) ? NULL : &d);
}

/* ---- parameter sets ---- */

static amp_status try_params_create(void) {
    static const size_t pointers[] = {AT(amp_params_desc, label), END};
    amp_ctx *ctx = some_context();
    amp_params_desc d = AMP_ZERO;
    amp_params *p = (amp_params *)(void *)&w;
    amp_status st;
    int i = 0;
    while (i < N_SETS && w.set[i])
        i++;
    if (i == N_SETS) return AMP_OK;
    d.model = (amp_dtype)fuzz_below(4);
    if (fuzz_percent(30)) d.grad = some_dtype();
    d.master = (amp_master)fuzz_below(4);
    if (fuzz_percent(30)) d.moments = (int32_t)fuzz_below(4) - 1;
    if (fuzz_percent(30)) d.moment = fuzz_percent(40) ? AMP_BF16 : fuzz_percent(70) ? AMP_MOMENT_8BIT : some_dtype();
    d.accumulate = seldom(40);
    if (fuzz_percent(20)) d.label = fuzz_percent(80) ? "lab" : "a label that is longer than 23 characters";
    SPOIL(d, pointers);
    if (fuzz_percent(1)) return amp_params_create(NULL, ctx, &d);
    st = amp_params_create(&p, ctx, fuzz_percent(80) ? &d : NULL);
    if (st != AMP_OK && p) fuzz_fail("*out is not NULL");
    if (st != AMP_OK) return st;
    w.set[i] = p;
    w.set_ctx[i] = ctx;
    w.committed[i] = 0;
    return st;
}
static int is_plain(const amp_param_desc *d) { return !d->init && !d->master && !d->model.data && !d->grad.data; }
/* More elements than the fuzzer's own arrays have, and not so many that they are refused. */
static int is_beyond_room(const amp_param_desc *d) {
    double n = d->count ? (double)d->count : (double)d->rows * (double)d->cols;
    return n > (double)ROOM && n < 1e12;
}
static amp_status try_params_add(void) {
    static const size_t pointers[] = {AT(amp_param_desc, name), AT(amp_param_desc, init), AT(amp_param_desc, master),
        AT(amp_param_desc, model.data), AT(amp_param_desc, grad.data), END};
    amp_param_desc d = AMP_ZERO;
    int to = some_set_index(0);
    amp_params *p;
    char name[300];
    size_t i;
    if (to < 0 || (w.committed[to] && !fuzz_percent(5))) return AMP_OK;
    p = the_set(to);
    if (amp_params_count(p) >= MAX_PARAMS) return AMP_OK;
    snprintf(name, sizeof name, "p%u", (unsigned)fuzz_below(8));
    if (fuzz_percent(2)) {
        memset(name, 'x', sizeof name - 1);
        name[250 + fuzz_below(49)] = 0;
    }
    if (fuzz_percent(60)) d.name = name;
    d.count = some_count();
    d.keep_f32 = seldom(25);
    d.no_decay = seldom(50);
    d.group = fuzz_percent(97) ? fuzz_below(AMP_GROUPS) : fuzz_u32();
    if (fuzz_percent(10)) {
        d.rows = some_side();
        d.cols = some_side();
        if (fuzz_percent(70)) d.count = fuzz_percent(50) ? 0 : d.rows * d.cols;
    }
    for (i = 0; i < ROOM; i++)
        host_numbers[i] = (float)i / 100.0f - 3.0f;
    if (fuzz_percent(3)) host_numbers[3] = fuzz_special();
    if (fuzz_percent(40)) d.init = host_numbers;
    if (fuzz_percent(8)) d.grad = some_array(fuzz_percent(70) ? AMP_AUTO : some_dtype(), d.count);
    if (fuzz_percent(5)) d.model = some_array(fuzz_percent(50) ? AMP_F16 : some_dtype(), d.count);
    if (fuzz_percent(5)) d.master = (float *)some_place();
    if (is_plain(&d)) SPOIL(d, pointers);
    if (is_beyond_room(&d)) return AMP_OK;
    return amp_params_add(p, fuzz_percent(1) ? NULL : &d);
}
static amp_status try_params_commit(void) {
    int i = some_set_index(0);
    amp_status st;
    if (i < 0 || ((w.committed[i] || !amp_params_count(w.set[i])) && !fuzz_percent(15))) return AMP_OK;
    st = amp_params_commit(the_set(i));
    if (st == AMP_OK) w.committed[i] = 1;
    return st;
}
static amp_status try_params_destroy(void) {
    int i = some_set_index(1);
    if (i < 0 || fuzz_percent(50)) {
        amp_params_destroy(NULL);
        return AMP_OK;
    }
    amp_params_destroy(w.set[i]);
    w.set[i] = NULL;
    return AMP_OK;
}
static amp_status try_master_to_model(void) { return amp_params_master_to_model(some_set()); }
static amp_status try_model_to_master(void) { return amp_params_model_to_master(some_set()); }
static amp_status try_zero_grad(void) { return amp_params_zero_grad(some_set()); }
static amp_status try_grads_to(void) {
    amp_array dst[MAX_PARAMS + 2];
    amp_params *p = some_set();
    size_t i, n = amp_params_count(p);
    for (i = 0; i < MAX_PARAMS + 2; i++) {
        amp_dtype t = some_dtype();
        dst[i] = some_array(t, ROOM);
        if (fuzz_percent(15)) dst[i].data = NULL;
    }
    if (fuzz_percent(3)) n += fuzz_below(2) ? 1 : (size_t)-1;
    return amp_params_grads_to(p, fuzz_percent(2) ? NULL : dst, n);
}
static amp_status try_params_use(void) {
    uint8_t used[MAX_PARAMS];
    amp_params *p = some_set();
    size_t i;
    for (i = 0; i < MAX_PARAMS; i++)
        used[i] = (uint8_t)(fuzz_percent(70) ? 1 : fuzz_byte() % 3);
    return amp_params_use(p, fuzz_percent(30) ? NULL : used);
}
static amp_status try_set_steps(void) {
    amp_params *p = some_set();
    return amp_params_set_steps(p, fuzz_percent(80) ? fuzz_below(100) : (uint64_t)-1 - fuzz_byte());
}
static amp_status try_param_read(void) {
    amp_params *p = some_set();
    size_t i = fuzz_below(4);
    output(host_numbers, sizeof host_numbers);
    return amp_param_read(p, fuzz_percent(98) ? i : some_huge(), fuzz_percent(2) ? NULL : host_numbers);
}
static amp_status try_param_write(void) {
    amp_params *p = some_set();
    size_t i, k = fuzz_below(4);
    for (i = 0; i < ROOM; i++)
        host_numbers[i] = (float)i / 256.0f - 2.0f;
    if (fuzz_percent(20)) host_numbers[0] = fuzz_special();
    watch(host_numbers, sizeof host_numbers);
    return amp_param_write(p, fuzz_percent(98) ? k : some_huge(), fuzz_percent(2) ? NULL : host_numbers);
}
static amp_status try_new_gradients(void) {
    static unsigned char bytes[4 * ROOM];
    int i = some_set_index(1);
    size_t k, e;
    if (i < 0 || !w.committed[i]) return AMP_OK;
    for (k = 0; k < amp_params_count(w.set[i]); k++) {
        amp_array g = amp_param_grad(w.set[i], k);
        uint32_t special = fuzz_percent(10) ? fuzz_byte() : ROOM;
        float x = fuzz_real(), odd = special < ROOM ? fuzz_special() : 0.0f;
        for (e = 0; e < g.count; e++)
            amp_store(bytes, g.dtype, e, e == special ? odd : x + (float)(e % 7) / 32.0f);
        put(g.data, bytes, g.count * amp_dtype_size(g.dtype));
    }
    return AMP_OK;
}

/* ---- scalers ---- */

static amp_scaler_desc some_scaler_desc(void) {
    amp_scaler_desc d = AMP_ZERO;
    d.mode = (amp_scaler_mode)(fuzz_percent(70) ? 0 : fuzz_below(3));
    if (fuzz_percent(40)) d.scale = fuzz_percent(80) ? 1024.0f : fuzz_special();
    if (fuzz_percent(15)) d.growth_factor = fuzz_special();
    if (fuzz_percent(15)) d.backoff_factor = fuzz_special();
    if (fuzz_percent(40)) d.growth_interval = fuzz_percent(90) ? 1 + (int32_t)fuzz_below(5) : (int32_t)fuzz_u32();
    if (fuzz_percent(20)) d.hysteresis = (int32_t)fuzz_below(4);
    if (fuzz_percent(10)) d.min_scale = fuzz_special();
    if (fuzz_percent(10)) d.max_scale = fuzz_special();
    if (fuzz_percent(10)) d.dead_after = fuzz_below(5);
    d.no_check = seldom(10);
    SPOIL(d, no_pointers);
    return d;
}
static amp_status try_scaler_create(void) {
    amp_ctx *ctx = some_context();
    amp_scaler_desc d = some_scaler_desc();
    amp_scaler *s = (amp_scaler *)(void *)&w;
    amp_status st;
    int i = 0;
    while (i < N_SCALERS && w.scaler[i])
        i++;
    if (i == N_SCALERS) return AMP_OK;
    if (fuzz_percent(1)) return amp_scaler_create(NULL, ctx, &d);
    st = amp_scaler_create(&s, ctx, fuzz_percent(70) ? &d : NULL);
    if (st != AMP_OK && s) fuzz_fail("*out is not NULL");
    if (st != AMP_OK) return st;
    w.scaler[i] = s;
    w.scaler_ctx[i] = ctx;
    return st;
}
static amp_scaler *own_scaler(void) { /* and its context has the sentence */
    unsigned i = fuzz_below(N_SCALERS);
    if (!w.scaler[i]) return NULL;
    now.said = w.scaler_ctx[i];
    return w.scaler[i];
}
static amp_status try_scaler_destroy(void) {
    unsigned i = fuzz_below(N_SCALERS);
    if (fuzz_percent(50)) return AMP_OK;
    amp_scaler_destroy(w.scaler[i]);
    w.scaler[i] = NULL;
    return AMP_OK;
}
static amp_scaler_info info;
static amp_status try_scaler_get(void) {
    amp_scaler *s = own_scaler();
    output(&info, sizeof info);
    return amp_scaler_get(s, fuzz_percent(2) ? NULL : &info);
}
static amp_status try_scaler_set(void) {
    amp_scaler *s = own_scaler();
    memset(&info, 0, sizeof info);
    if (amp_scaler_get(s, &info) != AMP_OK) fuzz_fail("a scaler cannot be read");
    if (fuzz_percent(40)) info.scale = fuzz_percent(70) ? 4096.0f : fuzz_special();
    if (fuzz_percent(20)) info.growth_tracker = (int32_t)fuzz_below(9) - 2;
    if (fuzz_percent(20)) info.dead = fuzz_below(3);
    SPOIL(info, no_pointers);
    watch(&info, sizeof info);
    return amp_scaler_set(s, fuzz_percent(1) ? NULL : &info);
}
static amp_status try_set_scale(void) {
    amp_scaler *s = own_scaler();
    return amp_scaler_set_scale(s, fuzz_percent(60) ? 512.0f : fuzz_special());
}
static amp_status try_configure(void) {
    amp_scaler *s = own_scaler();
    amp_scaler_desc d = some_scaler_desc();
    if (fuzz_percent(90)) d.scale = 0;
    return amp_scaler_configure(s, fuzz_percent(1) ? NULL : &d);
}
static amp_status try_scaler_unscale(void) {
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    return amp_scaler_unscale(s, p);
}
static amp_status try_scaler_update(void) { return amp_scaler_update(own_scaler()); }

/* ---- steps ---- */

static amp_status hook_grads(amp_ctx *ctx, amp_params *p, void *user) {
    (void)ctx;
    (void)p;
    (void)user;
    if (!fuzz_percent(20)) return AMP_OK;
    now.excused = 1;
    return AMP_ERR_INVALID_ARG;
}
static amp_status hook_totals(amp_ctx *ctx, amp_totals *totals, void *user) {
    (void)totals;
    return hook_grads(ctx, NULL, user);
}
static amp_group some_group(void) {
    amp_group g = AMP_ZERO;
    g.lr = fuzz_percent(90) ? 0.01f : fuzz_special();
    g.beta1 = some_option();
    if (fuzz_percent(20)) g.momentum = fuzz_real();
    if (fuzz_percent(20)) g.weight_decay = fuzz_real();
    g.lr_ptr = some_factor();
    return g;
}
static amp_step_desc some_step(void) {
    static const size_t pointers[] = {AT(amp_step_desc, lr_ptr), AT(amp_step_desc, groups),
        AT(amp_step_desc, reduce_grads_fn), AT(amp_step_desc, reduce_totals_fn), AT(amp_step_desc, user), END};
    static amp_group groups[AMP_GROUPS];
    amp_step_desc d = AMP_ZERO;
    int i;
    d.lr = 0.001f;
    d.optimizer = (amp_optimizer)fuzz_below(AMP_OPTIMIZER_COUNT);
    if (fuzz_percent(60)) return d;
    if (fuzz_percent(20)) d.lr = fuzz_special();
    d.beta1 = some_option();
    d.beta2 = some_option();
    d.eps = some_option();
    if (fuzz_percent(20)) d.weight_decay = fuzz_percent(80) ? 0.1f : fuzz_special();
    if (fuzz_percent(30)) d.momentum = fuzz_percent(70) ? 0.9f : fuzz_special();
    if (fuzz_percent(10)) d.dampening = fuzz_real();
    d.nesterov = seldom(10);
    if (fuzz_percent(20)) d.clip_norm = fuzz_percent(50) ? 1.0f : fuzz_special();
    if (fuzz_percent(20)) d.clip_value = fuzz_percent(50) ? 0.5f : fuzz_special();
    d.stochastic = seldom(15);
    if (fuzz_percent(20)) d.micro_batches = 1 + fuzz_below(8);
    d.unscaled = seldom(20);
    d.count_lost = seldom(20);
    d.seed = fuzz_byte();
    d.lr_ptr = some_factor();
    if (fuzz_percent(5)) d.reduce_grads_fn = hook_grads;
    if (fuzz_percent(5)) d.reduce_totals_fn = hook_totals;
    if (fuzz_percent(20)) {
        d.n_groups = fuzz_below(AMP_GROUPS + 1);
        for (i = 0; i < AMP_GROUPS; i++)
            groups[i] = some_group();
        d.groups = groups;
    }
    SPOIL(d, pointers);
    return d;
}
typedef amp_status step_verb(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
static amp_status step_by(step_verb *verb) {
    int i = some_set_index(1);
    amp_params *p = the_set(i);
    amp_scaler *s = some_scaler();
    amp_step_desc d = some_step();
    w.stepped = i;
    return verb(p, s, fuzz_percent(1) ? NULL : &d);
}
static amp_status try_step(void) { return step_by(amp_step); }
static amp_status try_update(void) { return step_by(amp_update); }
static amp_status try_inspect(void) {
    amp_status st = step_by(amp_inspect);
    if (st == AMP_OK) w.inspected = w.stepped;
    return st;
}
static amp_status try_apply(void) {
    amp_params *p = the_set(w.set[w.inspected] && fuzz_percent(80) ? w.inspected : some_set_index(1));
    size_t n = amp_params_count(p), i = fuzz_below((uint32_t)n + seldom(5));
    amp_array u = some_array(fuzz_percent(95) ? AMP_F32 : some_dtype(), amp_param_get(p, i).count);
    return amp_apply(p, fuzz_percent(98) ? i : some_huge(), u, fuzz_percent(98) ? fuzz_below(2) : fuzz_u32());
}
static amp_status try_accumulate(void) {
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    return amp_accumulate(p, s, fuzz_percent(98) ? fuzz_below(2) : fuzz_u32());
}
static amp_status try_window_begin(void) {
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    return amp_window_begin(p, s);
}
static amp_status try_window_end(void) { return amp_window_end(some_set()); }
static amp_status try_grad_norm(void) {
    static double norm;
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    output(&norm, sizeof norm);
    return amp_grad_norm(p, s, fuzz_percent(1) ? NULL : &norm);
}
static amp_status try_clip(void) {
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    float norm = fuzz_percent(70) ? 1.0f : fuzz_special();
    float value = fuzz_percent(60) ? 0.0f : fuzz_special();
    return amp_clip(p, s, norm, value);
}
static amp_status try_poll(void) {
    static amp_step_record r;
    amp_params *p = some_set();
    output(&r, sizeof r);
    return amp_step_poll(p, fuzz_percent(1) ? NULL : &r);
}

static amp_status try_report(void) {
    static amp_report_row rows[MAX_PARAMS + 4];
    static const char *const names[3] = {"a", "b", NULL};
    amp_array list[3];
    amp_params *p = some_set();
    amp_scaler *s = some_scaler();
    size_t n = some_list(list, 3), cap = 1 + amp_params_count(p) + n;
    amp_status st;
    output(rows, sizeof rows[0]);
    if (fuzz_percent(5)) cap = fuzz_below((uint32_t)cap);
    if (fuzz_percent(1)) return amp_report(p, s, NULL, cap, list, names, n);
    st = amp_report(p, s, rows, cap, fuzz_percent(1) ? NULL : list, fuzz_percent(10) ? NULL : names, n);
    if (st == AMP_OK) (void)amp_report_text((char *)host_numbers, sizeof host_numbers, rows, cap);
    return st;
}
static amp_status try_watch_array(void) {
    static amp_watch found;
    amp_ctx *ctx = some_context();
    size_t n = some_count();
    amp_array a = some_array(some_dtype(), n);
    a.count = fuzz_percent(95) ? n : 0;
    if (fuzz_percent(2)) a.dtype = AMP_F32;
    if (a.dtype == AMP_F32 && fuzz_percent(3)) a.count = some_huge();
    memset(&found, 0, sizeof found);
    found.on = fuzz_percent(90) ? 1 : fuzz_u32();
    watch(&found, sizeof found);
    return amp_watch_array(ctx, fuzz_percent(1) ? NULL : &found, fuzz_percent(5) ? NULL : "x", a);
}

/* ---- policies and scopes ---- */

/* One of the texts, in memory of just its size. */
static const char *one_text(const char *const *texts, uint32_t n) {
    static char *copy[2];
    static int which;
    const char *text = texts[fuzz_below(n)];
    which = !which;
    free(copy[which]);
    copy[which] = (char *)malloc(strlen(text) + 1);
    if (!copy[which]) fuzz_fail("no memory");
    return strcpy(copy[which], text);
}
static amp_status try_policy_init(void) {
    static const char *const scales[] = {
        "dynamic", "128.0", "1", "0", "nan", "-3", "", "1e400", "0x10", " 5 ", "inf", "1e-41", "128.0x"};
    static const size_t pointers[] = {AT(amp_policy_desc, loss_scale), END};
    amp_ctx *ctx = some_context();
    amp_policy_desc d = AMP_ZERO;
    uint32_t k = fuzz_below(N_POLICIES), preset = fuzz_below(AMP_PRESET_COUNT);
    amp_status st;
    if (fuzz_percent(20)) d.low = some_dtype();
    if (fuzz_percent(10)) d.cast_model = (int32_t)some_dtype();
    if (fuzz_percent(20)) d.enabled = (int32_t)fuzz_below(4) - 2;
    if (fuzz_percent(10)) d.autocast = (int32_t)fuzz_below(4) - 2;
    if (fuzz_percent(10)) d.keep_norms = (int32_t)fuzz_below(3) - 1;
    if (fuzz_percent(10)) d.master_weights = (int32_t)fuzz_below(3) - 1;
    if (fuzz_percent(30)) d.loss_scale = one_text(scales, 13);
    if (fuzz_percent(10)) d.min_scale = fuzz_special();
    if (fuzz_percent(10)) d.max_scale = fuzz_special();
    if (fuzz_percent(10)) d.cast_outputs = some_dtype();
    if (fuzz_percent(10)) d.num_losses = fuzz_byte();
    SPOIL(d, pointers);
    watch(&w.policy[k], sizeof w.policy[k]);
    if (fuzz_percent(3)) preset = fuzz_u32();
    st = amp_policy_init(ctx, &w.policy[k], (amp_preset)(int)preset, fuzz_percent(70) ? &d : NULL);
    if (st == AMP_OK) w.policy_made[k] = 1;
    return st;
}
static amp_status try_policy_set(void) {
    static const char *const names[] = {"enabled", "cast_model_type", "patch_torch_functions", "keep_batchnorm_fp32",
        "master_weights", "cast_model_outputs", "num_losses", "min_loss_scale", "max_loss_scale", "dtype", "loss_scale",
        "x", "", "keep_norms", "autocast", "low"};
    static const char *const values[] = {"True", "False", "None", "torch.float16", "bfloat16", "f32", "1", "0", "-1",
        "1e10", "nan", "2147483647", "4294967296", "dynamic", "128", "inf", "", "1.5", "float32", "1e-41"};
    amp_ctx *ctx = some_context();
    uint32_t k = fuzz_below(N_POLICIES);
    const char *name = one_text(names, 16), *value = one_text(values, 20);
    if (!w.policy_made[k]) return AMP_OK;
    watch(&w.policy[k], sizeof w.policy[k]);
    return amp_policy_set(ctx, &w.policy[k], name, value);
}
static amp_op some_op(void) { return fuzz_percent(97) ? 1 + fuzz_below(AMP_OP_COUNT - 1) : fuzz_u32(); }
static amp_status try_policy_edit(void) {
    amp_ctx *ctx = some_context();
    uint32_t k = fuzz_below(N_POLICIES), class_ = fuzz_percent(95) ? fuzz_below(6) : fuzz_u32();
    amp_op op = some_op(), out[20];
    if (!w.policy_made[k]) return AMP_OK;
    watch(&w.policy[k], sizeof w.policy[k]);
    (void)amp_policy_list(out, 20, &w.policy[k], (amp_op_class)(int)fuzz_below(7));
    (void)amp_policy_list(NULL, 0, &w.policy[k], (amp_op_class)(int)fuzz_below(7));
    return amp_policy_edit(ctx, &w.policy[k], op, (amp_op_class)(int)class_);
}
static amp_status try_policy_custom(void) {
    amp_ctx *ctx = some_context();
    uint32_t k = fuzz_below(N_POLICIES), white = fuzz_below(4), black = fuzz_percent(70) ? 0 : fuzz_below(4);
    amp_dtype t = fuzz_percent(50) ? AMP_AUTO : some_dtype();
    amp_op ops[4];
    amp_status st;
    int i;
    for (i = 0; i < 4; i++)
        ops[i] = some_op();
    watch(&w.policy[k], sizeof w.policy[k]);
    st = amp_policy_custom(ctx, &w.policy[k], white ? ops : NULL, white, black ? ops : NULL, black, t);
    if (st == AMP_OK) w.policy_made[k] = 1;
    return st;
}
static amp_status try_autocast_begin(void) {
    static const size_t pointers[] = {AT(amp_autocast_desc, policy), END};
    amp_ctx *ctx = some_context();
    amp_autocast_desc d = AMP_ZERO;
    uint32_t k = fuzz_below(N_POLICIES);
    d.disabled = seldom(15);
    if (w.policy_made[k] && fuzz_percent(40)) d.policy = &w.policy[k];
    if (fuzz_percent(20)) d.low = some_dtype();
    if (fuzz_percent(10)) d.pin = some_dtype();
    d.if_enabled = seldom(10);
    if (fuzz_percent(30)) d.cache = (int32_t)fuzz_below(3) - 1;
    if (fuzz_percent(30)) d.arena = fuzz_percent(80) ? fuzz_below(20000) : some_huge();
    if (fuzz_percent(30)) d.entries = fuzz_percent(90) ? fuzz_below(6) : some_huge();
    SPOIL(d, pointers);
    return amp_autocast_begin(ctx, fuzz_percent(70) ? &d : NULL);
}
static amp_status try_autocast_end(void) { return amp_autocast_end(some_context()); }
static amp_status try_autocast_release(void) { return amp_autocast_release(some_context()); }
static amp_array a_weight(void) { /* master or model copy of a committed set */
    int i = some_set_index(1);
    amp_param e;
    if (i < 0 || !w.committed[i]) return no_array();
    e = amp_param_get(w.set[i], fuzz_below(3));
    return fuzz_percent(50) ? e.master : e.model;
}
static amp_status try_autocast_input(void) {
    static amp_array out[9];
    amp_ctx *ctx = some_context();
    amp_array in[9];
    size_t i, n = fuzz_percent(95) ? fuzz_below(6) : 9;
    amp_op op = some_op();
    for (i = 0; i < 9; i++) {
        size_t count = some_count();
        in[i] = some_array(some_dtype(), count);
        in[i].count = count;
        if (fuzz_percent(25)) in[i] = a_weight();
        if (fuzz_percent(1)) in[i].count = some_huge();
        if (in[i].count > ROOM) in[i].dtype = AMP_F32;
    }
    output(out, sizeof out);
    (void)amp_autocast_output(ctx, op, some_dtype());
    if (fuzz_percent(10)) amp_autocast_invalidate(ctx, in[0].data);
    return amp_autocast_input(ctx, fuzz_percent(1) ? NULL : out, op, fuzz_percent(1) ? NULL : in, n);
}
static amp_status try_snapshot_take(void) {
    static const amp_rng rng = {1, 2, 3};
    amp_ctx *ctx = some_context();
    amp_scaler *s = some_scaler();
    amp_status st;
    watch(&w.snapshot, sizeof w.snapshot);
    if (fuzz_percent(1)) return amp_snapshot_take(ctx, NULL, &rng, s);
    st = amp_snapshot_take(ctx, &w.snapshot, fuzz_percent(50) ? &rng : NULL, s);
    if (st == AMP_OK) w.snapshot_made = 1;
    return st;
}
static amp_status try_snapshot_begin(void) {
    static amp_rng rng;
    amp_ctx *ctx = some_context();
    if (!w.snapshot_made) return AMP_OK;
    output(&rng, sizeof rng);
    return amp_snapshot_begin(ctx, fuzz_percent(80) ? &rng : NULL, fuzz_percent(1) ? NULL : &w.snapshot);
}

/* ---- FP8 scales ---- */

static amp_status try_fp8_create(void) {
    amp_ctx *ctx = some_context();
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f = (amp_fp8 *)(void *)&w;
    amp_status st;
    int i = 0;
    while (i < N_FP8 && w.fp8[i])
        i++;
    if (i == N_FP8) return AMP_OK;
    d.tensors = fuzz_below(5);
    d.history = fuzz_percent(50) ? fuzz_below(20) : 0;
    d.margin = fuzz_percent(20) ? fuzz_below(8) : 0;
    d.power_of_two = seldom(30);
    if (fuzz_percent(20)) d.forward = some_dtype();
    if (fuzz_percent(20)) d.backward = some_dtype();
    SPOIL(d, no_pointers);
    if (d.tensors > 100 && d.tensors < 0x1000000) d.tensors = 100;
    if (fuzz_percent(1)) return amp_fp8_create(NULL, ctx, &d);
    st = amp_fp8_create(&f, ctx, fuzz_percent(70) ? &d : NULL);
    if (st != AMP_OK && f) fuzz_fail("*out is not NULL");
    if (st != AMP_OK) return st;
    w.fp8[i] = f;
    w.fp8_ctx[i] = ctx;
    return st;
}
static amp_status try_fp8_destroy(void) {
    unsigned i = fuzz_below(N_FP8);
    if (fuzz_percent(50)) return AMP_OK;
    amp_fp8_destroy(w.fp8[i]);
    w.fp8[i] = NULL;
    return AMP_OK;
}
static amp_fp8 *own_fp8(void) { /* and its context has the sentence */
    unsigned i = fuzz_below(N_FP8);
    if (!w.fp8[i]) return NULL;
    now.said = w.fp8_ctx[i];
    return w.fp8[i];
}
static size_t some_tensor(void) { return fuzz_percent(97) ? fuzz_below(4) : some_huge(); }
static amp_status try_fp8_get(void) {
    static amp_fp8_info found;
    amp_fp8 *f = own_fp8();
    size_t i = some_tensor();
    output(&found, sizeof found);
    return amp_fp8_get(f, i, fuzz_percent(2) ? NULL : &found);
}
static amp_status try_column_sums(void) {
    amp_ctx *ctx = some_context();
    size_t rows = some_side(), cols = some_side(), ld = fuzz_percent(50) ? 0 : cols + fuzz_below(4);
    amp_array dst = some_array(some_dtype(), cols), src = some_array(some_dtype(), rows * (cols + 4));
    if (!now.open && fuzz_percent(5)) rows = fuzz_percent(50) ? some_huge() : fuzz_u32();
    if (!now.open && fuzz_percent(5)) cols = fuzz_percent(50) ? some_huge() : fuzz_u32();
    if (!now.open && fuzz_percent(5)) ld = fuzz_percent(50) ? some_huge() : fuzz_below(8);
    return amp_column_sums(ctx, dst, src, rows, cols, ld, seldom(30));
}
static amp_status try_activation(void) {
    static const size_t pointers[] = {AT(amp_activation_desc, x.data), AT(amp_activation_desc, y.data),
        AT(amp_activation_desc, dy.data), AT(amp_activation_desc, dx.data), END};
    amp_ctx *ctx = some_context();
    amp_activation_desc d = AMP_ZERO;
    d.act = (amp_act)fuzz_below(AMP_ACT_COUNT);
    d.count = some_count();
    d.x = some_array(some_dtype(), d.count);
    d.y = fuzz_percent(20) ? d.x : some_array(some_dtype(), d.count);
    if (fuzz_percent(20)) d.y.dtype = AMP_AUTO;
    if (fuzz_percent(50)) {
        d.dy = some_array(some_dtype(), d.count);
        d.dx = fuzz_percent(20) ? d.dy : some_array(some_dtype(), d.count);
    }
    SPOIL(d, pointers);
    return amp_activation(ctx, fuzz_percent(1) ? NULL : &d);
}
static amp_status try_quantize(void) {
    amp_fp8 *f = own_fp8();
    size_t i = some_tensor(), rows = some_side(), cols = some_side();
    amp_dtype t = fuzz_percent(90) ? (amp_dtype)(AMP_F8E4M3 + fuzz_below(2)) : some_dtype();
    amp_array dst = some_array(t, rows * cols), dst_t = some_array(one_of(t), rows * cols);
    amp_array src = some_array((amp_dtype)(1 + fuzz_below(3)), rows * cols);
    uint32_t keep = fuzz_percent(97) ? fuzz_below(2) : fuzz_u32();
    if (fuzz_percent(20)) dst.data = NULL;
    if (fuzz_percent(40)) dst_t.data = NULL;
    if (!now.open && fuzz_percent(5)) rows = fuzz_percent(50) ? some_huge() : fuzz_u32();
    if (!now.open && fuzz_percent(5)) cols = fuzz_percent(50) ? some_huge() : fuzz_u32();
    return amp_quantize(f, i, dst, dst_t, src, rows, cols, keep);
}

/* ---- products ---- */

static amp_dtype chosen; /* where a product says its dtype */
static size_t some_stride(void) {
    if (!fuzz_percent(15)) return 0;
    return fuzz_percent(30) ? AMP_BROADCAST : fuzz_below(200);
}
static amp_gemm_desc some_gemm(void) {
    static const size_t pointers[] = {AT(amp_gemm_desc, a.data), AT(amp_gemm_desc, b.data), AT(amp_gemm_desc, c.data),
        AT(amp_gemm_desc, d.data), AT(amp_gemm_desc, bias.data), AT(amp_gemm_desc, aux.data),
        AT(amp_gemm_desc, dbias.data), AT(amp_gemm_desc, alpha_ptr), AT(amp_gemm_desc, beta_ptr),
        AT(amp_gemm_desc, scale_a), AT(amp_gemm_desc, scale_b), AT(amp_gemm_desc, scale_d), AT(amp_gemm_desc, amax_d),
        AT(amp_gemm_desc, d_dtype), END};
    amp_gemm_desc g = AMP_ZERO;
    amp_dtype t = some_dtype(), to;
    g.m = some_side();
    g.n = some_side();
    g.k = some_side();
    g.batch = fuzz_percent(75) ? 0 : fuzz_below(4);
    g.act = (amp_act)(fuzz_percent(60) ? 0 : fuzz_below(AMP_ACT_COUNT));
    g.backward = seldom(10);
    g.trans_a = seldom(50);
    g.trans_b = seldom(50);
    if (fuzz_percent(30)) g.flags = fuzz_below(64);
    g.a = some_array(t, g.m * g.k);
    to = one_of(t);
    g.b = some_array(to, g.k * g.n);
    to = fuzz_percent(60) ? t : some_dtype();
    g.d = some_array(to, g.m * g.n);
    if (fuzz_percent(25)) g.c = some_array(to, g.m * g.n);
    if (fuzz_percent(10)) g.c = g.d;
    if (fuzz_percent(30)) g.bias = some_array(some_dtype(), g.n);
    if (fuzz_percent(30)) g.aux = some_array(to, g.m * g.n);
    if (fuzz_percent(10)) g.dbias = some_array(some_dtype(), g.n);
    if (fuzz_percent(12)) g.lda = fuzz_below(20);
    if (fuzz_percent(12)) g.ldb = fuzz_below(20);
    if (fuzz_percent(12)) g.ldc = fuzz_below(20);
    if (fuzz_percent(12)) g.ldd = fuzz_below(20);
    if (g.batch > 1) g.stride_a = some_stride();
    if (g.batch > 1) g.stride_b = some_stride();
    if (g.batch > 1) g.stride_c = some_stride();
    if (g.batch > 1) g.stride_d = some_stride();
    g.alpha = some_option();
    g.beta = some_option();
    if (g.c.data && fuzz_percent(70)) g.beta = amp_opt(0.5f);
    g.alpha_ptr = some_factor();
    if (g.beta.given) g.beta_ptr = some_factor();
    if (t >= AMP_F8E4M3) g.scale_a = some_factor();
    if (t >= AMP_F8E4M3) g.scale_b = some_factor();
    if (to >= AMP_F8E4M3) g.scale_d = some_factor();
    if (to >= AMP_F8E4M3) g.amax_d = (float *)some_factor();
    if (fuzz_percent(20)) g.d_dtype = &chosen;
    if (fuzz_percent(5)) g.pin = some_dtype();
    if (fuzz_percent(5)) g.d.dtype = AMP_AUTO;
    SPOIL(g, pointers);
    output(&chosen, sizeof chosen);
    return g;
}
static amp_status try_gemm(void) {
    amp_ctx *ctx = some_context();
    amp_gemm_desc g = some_gemm();
    return amp_gemm(ctx, fuzz_percent(1) ? NULL : &g);
}
static amp_status try_gemm_tune(void) {
    amp_ctx *ctx = some_context();
    amp_gemm_desc g = some_gemm();
    return amp_gemm_tune(ctx, &g);
}
static amp_status try_gemm_explain(void) {
    static char text[200];
    amp_ctx *ctx = some_context();
    amp_gemm_desc g = some_gemm();
    size_t bytes = fuzz_percent(90) ? sizeof text : fuzz_below(4);
    output(text, sizeof text);
    return amp_gemm_explain(ctx, fuzz_percent(1) ? NULL : text, bytes, &g);
}

static amp_linear_desc layers[2];
static void some_layer(amp_linear_desc *l, size_t rows, size_t in, size_t out, amp_dtype t) {
    amp_dtype other = fuzz_percent(80) ? t : some_dtype();
    memset(l, 0, sizeof *l);
    l->rows = rows;
    l->in = in;
    l->out = out;
    l->act = (amp_act)fuzz_below(AMP_ACT_COUNT);
    l->x = some_array(t, rows * in);
    l->w = some_array(one_of(t), out * in);
    if (fuzz_percent(20)) l->w = a_weight();
    l->y = some_array(other, rows * out);
    l->dy = some_array(other, rows * out);
    if (fuzz_percent(60)) l->aux = some_array(other, rows * out);
    if (fuzz_percent(60)) l->dx = some_array(other, rows * in);
    if (fuzz_percent(60)) l->dw = some_array(some_dtype(), out * in);
    if (fuzz_percent(50)) l->bias = some_array(some_dtype(), out);
    if (fuzz_percent(50)) l->dbias = some_array(some_dtype(), out);
    l->accumulate = seldom(30);
    l->w_in_out = seldom(30);
    if (fuzz_percent(30)) l->flags = fuzz_below(64);
    if (fuzz_percent(50)) l->record = &w.record[fuzz_below(N_RECORDS)];
    if (fuzz_percent(20)) l->from = &w.record[fuzz_below(N_RECORDS)];
    if (l->from && fuzz_percent(50)) l->x.dtype = AMP_AUTO;
    if (l->record && fuzz_percent(30)) l->y.dtype = l->aux.dtype = l->dy.dtype = AMP_AUTO;
    if (fuzz_percent(4)) l->pin = some_dtype();
    if (!fuzz_percent(15)) return;
    l->fp8 = w.fp8[fuzz_below(N_FP8)];
    l->fp8_first = fuzz_percent(90) ? 0 : some_tensor();
    l->fp8_keep = seldom(20);
    l->scratch = some_place();
    l->scratch_bytes = fuzz_percent(90) ? 4 * ROOM : fuzz_below(2000);
}
static const amp_linear_desc *some_layers(void) {
    static const size_t pointers[] = {AT(amp_linear_desc, x.data), AT(amp_linear_desc, w.data),
        AT(amp_linear_desc, bias.data), AT(amp_linear_desc, y.data), AT(amp_linear_desc, aux.data),
        AT(amp_linear_desc, dy.data), AT(amp_linear_desc, dx.data), AT(amp_linear_desc, dw.data),
        AT(amp_linear_desc, dbias.data), AT(amp_linear_desc, record), AT(amp_linear_desc, from),
        AT(amp_linear_desc, before), AT(amp_linear_desc, after), AT(amp_linear_desc, fp8), AT(amp_linear_desc, scratch),
        END};
    amp_linear_desc *a = &layers[0], *b = &layers[1];
    size_t rows = some_side(), in = some_side(), out = some_side();
    amp_dtype t = some_dtype();
    watch(w.record, sizeof w.record);
    some_layer(a, rows, in, out, t);
    if (fuzz_percent(75)) {
        SPOIL(*a, pointers);
        return a;
    }
    some_layer(b, rows, out, some_side(), a->y.dtype);
    b->x = a->y;
    b->dx = a->dy;
    if (fuzz_percent(95)) b->before = a;
    if (fuzz_percent(95)) a->after = b;
    SPOIL(*b, pointers);
    return fuzz_percent(60) ? b : a;
}
static amp_status try_forward(void) {
    amp_ctx *ctx = some_context();
    return amp_linear_forward(ctx, some_layers());
}
static amp_status try_backward(void) {
    amp_ctx *ctx = some_context();
    return amp_linear_backward(ctx, some_layers());
}
static amp_status try_linear_tune(void) {
    amp_ctx *ctx = some_context();
    return amp_linear_tune(ctx, some_layers());
}
static amp_status try_xent(void) {
    static const size_t pointers[] = {AT(amp_xent_desc, logits.data), AT(amp_xent_desc, labels),
        AT(amp_xent_desc, labels64), AT(amp_xent_desc, labels8), AT(amp_xent_desc, targets.data),
        AT(amp_xent_desc, weights.data), AT(amp_xent_desc, loss), AT(amp_xent_desc, row_loss),
        AT(amp_xent_desc, dlogits.data), AT(amp_xent_desc, scaler), AT(amp_xent_desc, from), END};
    amp_ctx *ctx = some_context();
    amp_xent_desc d = AMP_ZERO;
    amp_dtype t = some_dtype();
    d.rows = some_side();
    d.classes = some_side();
    if (fuzz_percent(20)) d.ld = fuzz_below(24);
    d.logits = some_array(t, d.rows * d.classes);
    if (fuzz_percent(85)) d.dlogits = some_array(some_dtype(), d.rows * d.classes);
    if (fuzz_percent(25)) d.dlogits = d.logits;
    switch (fuzz_below(4)) {
    case 0: d.labels = (const int32_t *)some_place(); break;
    case 1: d.labels64 = (const int64_t *)some_place(); break;
    case 2: d.labels8 = (const uint8_t *)some_place(); break;
    case 3: d.targets = some_array(some_dtype(), d.rows * d.classes); break;
    }
    if (fuzz_percent(30)) d.weights = some_array(some_dtype(), d.classes);
    if (fuzz_percent(90)) d.row_loss = (float *)some_place();
    if (fuzz_percent(70)) d.loss = (float *)some_place();
    if (fuzz_percent(50)) d.scaler = some_scaler();
    d.factor = some_option();
    if (fuzz_percent(20)) d.smoothing = fuzz_real();
    d.sum = seldom(30);
    if (fuzz_percent(10)) {
        d.softmax = 1;
        d.labels = NULL;
        d.labels64 = NULL;
        d.labels8 = NULL;
        d.targets.data = d.weights.data = NULL;
        d.loss = d.row_loss = NULL;
        d.scaler = NULL;
        d.smoothing = 0;
    }
    SPOIL(d, pointers);
    d.labels64 = as_c_wants(d.labels64);
    return amp_softmax_cross_entropy(ctx, fuzz_percent(1) ? NULL : &d);
}

static amp_status try_vocabulary(void) {
#define LAYER(field) AT(amp_linear_xent_desc, linear.field)
#define LOSS(field)  AT(amp_linear_xent_desc, xent.field)
    static const size_t pointers[] = {LAYER(x.data), LAYER(w.data), LAYER(bias.data), LAYER(y.data), LAYER(aux.data),
        LAYER(dy.data), LAYER(dx.data), LAYER(dw.data), LAYER(dbias.data), LAYER(record), LAYER(from), LAYER(before),
        LAYER(after), LAYER(fp8), LAYER(scratch), LOSS(logits.data), LOSS(labels), LOSS(labels64), LOSS(labels8),
        LOSS(targets.data), LOSS(weights.data), LOSS(loss), LOSS(row_loss), LOSS(dlogits.data), LOSS(scaler),
        LOSS(from), AT(amp_linear_xent_desc, scratch), END};
#undef LAYER
#undef LOSS
    amp_ctx *ctx = some_context();
    amp_linear_xent_desc d = AMP_ZERO;
    size_t bytes = 0;
    d.linear = *some_layers();
    if (fuzz_percent(95)) {
        d.linear.act = AMP_ACT_NONE;
        d.linear.before = d.linear.after = NULL;
        d.linear.y.data = d.linear.aux.data = d.linear.dy.data = NULL;
    }
    d.xent.labels = (const int32_t *)some_place();
    if (fuzz_percent(80)) d.xent.row_loss = (float *)some_place();
    if (fuzz_percent(70)) d.xent.loss = (float *)some_place();
    if (fuzz_percent(50)) d.xent.scaler = some_scaler();
    d.chunk = fuzz_below(10);
    d.scratch = some_place();
    if (fuzz_percent(80) && amp_linear_cross_entropy_bytes(ctx, &bytes, &d) == AMP_OK) d.scratch_bytes = bytes;
    if (d.scratch_bytes > 4096) d.scratch = NULL;
    SPOIL(d, pointers);
    d.xent.labels64 = as_c_wants(d.xent.labels64);
    return amp_linear_cross_entropy(ctx, fuzz_percent(1) ? NULL : &d);
}

static amp_status try_vocabulary_bytes(void) {
    amp_ctx *ctx = some_context();
    amp_linear_xent_desc d = AMP_ZERO;
    size_t bytes = 0;
    d.linear = *some_layers();
    d.xent.labels = (const int32_t *)some_place();
    d.chunk = fuzz_below(10);
    return amp_linear_cross_entropy_bytes(ctx, fuzz_percent(5) ? NULL : &bytes, fuzz_percent(1) ? NULL : &d);
}

/* ---- files ---- */

static const char *some_path(uint32_t k) {
    static char path[200];
    const char *dir = getenv("FUZZ_DIR");
#if defined(_WIN32)
    int pid = 0;
#else
    int pid = (int)getpid();
#endif
    snprintf(path, sizeof path, "%.150s/fuzz_api.%d.%u", dir ? dir : ".", pid, (unsigned)k);
    return path;
}
static amp_status file_by(amp_status (*verb)(amp_ctx *, const char *, const amp_state_desc *)) {
    static amp_params *sets[3];
    static amp_scaler *scalers[3];
    static unsigned char user[32];
    amp_ctx *ctx = some_context();
    amp_state_desc d = AMP_ZERO;
    uint32_t k = fuzz_below(3);
    const char *path = some_path(k);
    int i, usual = fuzz_percent(80); /* what a file of this name has */
    for (i = 0; i < 3; i++) {
        sets[i] = w.set[usual && w.set[k] ? k : fuzz_below(N_SETS)];
        scalers[i] = w.scaler[usual ? k : fuzz_below(N_SCALERS)];
    }
    d.params = sets;
    d.n_params = usual ? 1 : fuzz_below(3);
    d.scalers = scalers;
    d.n_scalers = usual ? 1 : fuzz_below(3);
    d.user = user;
    d.user_bytes = usual ? 8 : 8 * (size_t)fuzz_below(3);
    watch(user, sizeof user);
    if (fuzz_percent(1)) d.params = NULL;
    if (fuzz_percent(1)) d.scalers = NULL;
    if (fuzz_percent(1)) d.user = NULL;
    d.fp8 = w.fp8;
    d.n_fp8 = usual ? 0 : fuzz_below(3);
    if (fuzz_percent(3)) d._end = fuzz_byte();
    if (fuzz_percent(2)) d.flags = fuzz_byte();
    if (fuzz_percent(2)) path = fuzz_percent(50) ? "" : NULL;
    return verb(ctx, path, fuzz_percent(1) ? NULL : &d);
}
static amp_status try_save(void) { return file_by(amp_state_save); }
static amp_status try_load(void) { return file_by(amp_state_load); }

/* ---- contexts, and functions without one ---- */

static amp_status try_cpu_create(void) {
    static const size_t pointers[] = {AT(amp_cpu_desc, allocator.alloc_fn), AT(amp_cpu_desc, allocator.free_fn),
        AT(amp_cpu_desc, allocator.user), AT(amp_cpu_desc, logger.fn), AT(amp_cpu_desc, logger.user), END};
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *ctx = (amp_ctx *)(void *)&w;
    amp_status st;
    d.threads = 1 + (int32_t)fuzz_below(3);
    d.simd = (amp_simd)fuzz_below(6);
    d.allocator.alloc_fn = heap_take;
    d.allocator.free_fn = heap_give;
    SPOIL(d, pointers);
    if (d.threads > 8 && d.threads <= 256) d.threads = 8;
    st = amp_cpu_create(&ctx, &d);
    if (st != AMP_OK && ctx) fuzz_fail("*out is not NULL");
    if (st == AMP_OK) amp_ctx_destroy(ctx);
    return st;
}
static amp_status try_names(void) {
    static const char *const names[] = {"matmul", "torch.nn.functional.linear", "aten::norm.Scalar", "", "F.",
        "aten::", "O1", "mindspore-O2", "O1-bf16", "O1-f16", "O9", "-bf16", "nn.Dense"};
    const char *name = one_text(names, 13);
    char any[12];
    amp_op op;
    amp_preset preset;
    amp_dtype low;
    int i;
    for (i = 0; i < 11; i++)
        any[i] = (char)fuzz_byte();
    any[11] = 0;
    (void)amp_op_find(&op, name);
    (void)amp_op_find(&op, any);
    (void)amp_preset_find(&preset, &low, name);
    (void)amp_preset_find(&preset, NULL, any);
    op = some_op();
    (void)amp_op_name(op);
    (void)amp_op_note(op);
    (void)amp_op_listed(op, (amp_system)(int)fuzz_below(8), fuzz_below(5));
    (void)amp_op_class_of(op, (amp_system)(int)fuzz_below(8));
    (void)amp_op_class_name((amp_op_class)(int)fuzz_u32());
    (void)amp_system_name((amp_system)(int)fuzz_u32());
    (void)amp_preset_name((amp_preset)(int)fuzz_u32());
    (void)amp_strerror((amp_status)(int)fuzz_u32());
    (void)amp_dtype_name((amp_dtype)(int)fuzz_u32());
    (void)amp_outcome_name((amp_outcome)(int)fuzz_u32());
    return AMP_OK;
}
static amp_status try_plan(void) {
    amp_plan_layer layer[3];
    amp_params_desc d = AMP_ZERO;
    amp_plan plan;
    int i;
    memset(layer, 0, sizeof layer);
    for (i = 0; i < 3; i++) {
        layer[i].op = some_op();
        layer[i].weight = fuzz_percent(90) ? fuzz_u32() : (uint64_t)1 << 57;
        layer[i].bias = fuzz_byte();
        layer[i].saved = fuzz_u32();
    }
    d.model = some_dtype();
    d.master = (amp_master)fuzz_below(6);
    d.moments = (int32_t)fuzz_below(5) - 2;
    (void)amp_layout_bytes(&d);
    (void)amp_plan_memory(&plan, w.policy_made[0] ? &w.policy[0] : NULL, &d, layer, 3, some_dtype());
    return AMP_OK;
}

/* ---- all of them ---- */

typedef struct call {
    const char *name; /* what the sentence begins with */
    amp_status (*fn)(void);
    unsigned weight;
} call;
static const call calls[] = {{"amp_alloc", try_alloc, 2}, {"amp_free", try_free, 1}, {"amp_copy", try_copy, 2},
    {"amp_copy_async", try_copy_async, 2}, {"amp_zero", try_zero, 1}, {"amp_sync", try_sync, 1},
    {"amp_cast", try_cast, 4}, {"amp_all_finite", try_all_finite, 3}, {"amp_histogram_count", try_histogram, 2},
    {"amp_params_create", try_params_create, 4}, {"amp_params_add", try_params_add, 10},
    {"amp_params_commit", try_params_commit, 5}, {"amp_params_destroy", try_params_destroy, 2},
    {"amp_params_master_to_model", try_master_to_model, 2}, {"amp_params_model_to_master", try_model_to_master, 2},
    {"amp_params_grads_to", try_grads_to, 2}, {"amp_params_zero_grad", try_zero_grad, 1},
    {"amp_params_use", try_params_use, 1}, {"amp_params_set_steps", try_set_steps, 1},
    {"amp_scaler_create", try_scaler_create, 3}, {"amp_scaler_destroy", try_scaler_destroy, 2},
    {"amp_scaler_get", try_scaler_get, 1}, {"amp_scaler_set_scale", try_set_scale, 2},
    {"amp_scaler_set", try_scaler_set, 2}, {"amp_scaler_configure", try_configure, 2},
    {"amp_scaler_unscale", try_scaler_unscale, 4}, {"amp_unscale", try_unscale_lists, 3},
    {"amp_scaler_update", try_scaler_update, 6}, {"amp_step", try_step, 8}, {"amp_update", try_update, 6},
    {"amp_inspect", try_inspect, 4}, {"amp_apply", try_apply, 4}, {"amp_window_begin", try_window_begin, 2},
    {"amp_window_end", try_window_end, 2}, {"amp_accumulate", try_accumulate, 5}, {"amp_param_read", try_param_read, 1},
    {"amp_param_write", try_param_write, 1}, {"amp_grad_norm", try_grad_norm, 2}, {"amp_clip", try_clip, 2},
    {"amp_step_poll", try_poll, 1}, {"amp_report", try_report, 2}, {"amp_watch_array", try_watch_array, 1},
    {"amp_autocast_begin", try_autocast_begin, 5}, {"amp_autocast_release", try_autocast_release, 1},
    {"amp_autocast_input", try_autocast_input, 3}, {"amp_snapshot_begin", try_snapshot_begin, 1},
    {"amp_dropout", try_dropout, 3}, {"amp_fp8_create", try_fp8_create, 2}, {"amp_fp8_destroy", try_fp8_destroy, 1},
    {"amp_fp8_get", try_fp8_get, 1}, {"amp_quantize", try_quantize, 4}, {"amp_column_sums", try_column_sums, 3},
    {"amp_activation", try_activation, 4}, {"amp_gemm", try_gemm, 8}, {"amp_gemm_explain", try_gemm_explain, 2},
    {"amp_gemm_tune", try_gemm_tune, 1}, {"amp_linear_forward", try_forward, 8},
    {"amp_linear_backward", try_backward, 8}, {"amp_linear_tune", try_linear_tune, 1},
    {"amp_softmax_cross_entropy", try_xent, 5}, {"amp_linear_cross_entropy", try_vocabulary, 4},
    {"amp_linear_cross_entropy_bytes", try_vocabulary_bytes, 1}, {"amp_state_save", try_save, 1},
    {"amp_state_load", try_load, 2}, {"amp_autocast_end", try_autocast_end, 4}, {"amp_policy_init", try_policy_init, 3},
    {"amp_policy_set", try_policy_set, 2}, {"amp_policy_edit", try_policy_edit, 2},
    {"amp_policy_custom", try_policy_custom, 1}, {"amp_snapshot_take", try_snapshot_take, 1},
    {"amp_cpu_create", try_cpu_create, 1}, {"names", try_names, 1}, {"plan", try_plan, 1},
    {"new numbers", try_new_numbers, 3}, {"new labels", try_new_labels, 2}, {"new gradients", try_new_gradients, 5}};
#define N_CALLS (sizeof calls / sizeof calls[0])

static struct { unsigned long taken, refused; } counts[N_CALLS];

static const call *some_call(void) {
    unsigned total = 0, at;
    size_t i;
    for (i = 0; i < N_CALLS; i++)
        total += calls[i].weight;
    at = fuzz_below(total) % total;
    for (i = 0; at >= calls[i].weight; i++)
        at -= calls[i].weight;
    return &calls[i];
}

static void check_sentence(const call *c) {
    const char *text = now.said ? amp_last_error(now.said) : NULL;
    size_t n = strlen(c->name);
    if (!text || now.excused) return;
    if (!*text) fuzz_fail("it failed without a sentence");
    if (strncmp(text, c->name, n) != 0 || (text[n] != ':' && text[n] != ' '))
        fuzz_fail("the sentence does not begin with the verb's name, or is an old one: %s", text);
}
static void check_refusal(const call *c, amp_status st, uint64_t before) {
    const char *text = now.said ? amp_last_error(now.said) : "";
    unsigned i;
    if (getenv("FUZZ_VERBOSE")) fprintf(stderr, "    %s\n", text);
    check_sentence(c);
    for (i = 0; i < now.n_out; i++)
        if (memcmp(now.out[i].at, now.out[i].was, now.out[i].bytes) != 0)
            fuzz_fail("it failed with %s, and output %u has changed: %s", amp_strerror(st), i, text);
    if (world_hash() != before) fuzz_fail("it failed with %s, and something has changed: %s", amp_strerror(st), text);
}

/* An old sentence in each context, which no call leaves there. */
static void old_sentences(void) {
    int i;
    for (i = 0; i < N_CONTEXTS; i++)
        (void)amp_fail(w.ctx[i], AMP_ERR_INVALID_ARG, "an old sentence");
}

static void one_call(void) {
    static uint64_t before;
    static int known; /* before is what the world has now */
    const call *c = some_call();
    amp_status st;
    if (w.calls++ == 0) known = 0;
    fuzz_where("call %lu, %s", w.calls, c->name);
    if (getenv("FUZZ_VERBOSE")) fprintf(stderr, "%s\n", fuzz_now.where);
    if (!known) before = world_hash();
    known = 0;
    old_sentences();
    now.said = NULL;
    now.open = now.excused = 0;
    now.n_out = 0;
    st = c->fn();
    if (st == AMP_OK) {
        counts[c - calls].taken++;
        return;
    }
    counts[c - calls].refused++;
    check_refusal(c, st, before);
    known = 1;
}

/* ---- a run ---- */

static void on_log(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)level;
    (void)status;
    (void)user;
    if (!text || !*text) fuzz_fail("an empty line in the log");
}

static amp_ctx *new_context(void) {
    amp_ctx *ctx = NULL;
    amp_status st;
#ifdef FUZZ_CUDA
    static int device;
    amp_cuda_desc d = AMP_ZERO;
    d.host.alloc_fn = heap_take;
    d.host.free_fn = heap_give;
    d.allocator.user = &device;
    d.workspace_bytes = 65536;
    if (fuzz_percent(20)) d.gemm_flags = AMP_GEMM_ORDERED;
#else
    amp_cpu_desc d = AMP_ZERO;
    d.threads = fuzz_percent(20) ? 1 + (int32_t)fuzz_below(3) : 1;
    d.simd = (amp_simd)fuzz_below(5);
    if (fuzz_percent(20)) d.gemm_flags = AMP_GEMM_ORDERED;
#endif
    d.allocator.alloc_fn = heap_take;
    d.allocator.free_fn = heap_give;
    d.logger.fn = on_log;
#ifdef FUZZ_CUDA
    st = amp_cuda_create(&ctx, &d);
#else
    st = amp_cpu_create(&ctx, &d);
    if (st == AMP_ERR_UNSUPPORTED) { /* not on this machine */
        d.simd = AMP_SIMD_AUTO;
        st = amp_cpu_create(&ctx, &d);
    }
#endif
    if (st != AMP_OK) fuzz_fail("no context: %s", amp_strerror(st));
    return ctx;
}
static void begin(void) {
    void *memory = NULL;
    int i;
    memset(&w, 0, sizeof w);
    heap.failing = 0;
    fuzz_where("begin");
    if (!heap.bystander) { /* once */
#ifdef FUZZ_CUDA
        amp_status st = amp_cuda_create(&heap.bystander, NULL);
#else
        amp_cpu_desc d = AMP_ZERO;
        amp_status st;
        d.threads = 1;
        st = amp_cpu_create(&heap.bystander, &d);
#endif
        if (st != AMP_OK) fuzz_fail("no context: %s", amp_strerror(st));
    }
    if (amp_alloc(heap.bystander, &memory, ARENA + 2 * MARGIN, NULL) != AMP_OK) fuzz_fail("no memory");
    w.memory = (unsigned char *)memory;
    w.arena = w.memory + MARGIN;
    (void)amp_zero(heap.bystander, memory, ARENA + 2 * MARGIN);
    for (i = 0; i < N_CONTEXTS; i++)
        w.ctx[i] = new_context();
    heap.failing = fuzz_percent(30) ? 10 : 0;
}
static void destroy_sets(int all) { /* a context frees those that are committed */
    int i;
    for (i = 0; i < N_SETS; i++) {
        if (!all && w.committed[i]) continue;
        amp_params_destroy(w.set[i]);
        w.set[i] = NULL;
    }
}
static void destroy_objects(void) {
    int i;
    for (i = 0; i < N_SCALERS; i++)
        amp_scaler_destroy(w.scaler[i]);
    for (i = 0; i < N_FP8; i++)
        amp_fp8_destroy(w.fp8[i]);
    for (i = 0; i < N_CONTEXTS; i++) {
        while (amp_autocast_end(w.ctx[i]) == AMP_OK) {
        }
        if (amp_autocast_release(w.ctx[i]) != AMP_OK) fuzz_fail("%s", amp_last_error(w.ctx[i]));
        if (ledger_bytes(w.ctx[i], "total")) fuzz_fail("the ledger has bytes left");
    }
}
static void end(void) {
    int i;
    fuzz_where("end");
    heap.failing = 0;
    destroy_sets(w.calls % 4 != 0);
    if (w.calls % 4) destroy_objects(); /* else they are left to the contexts */
    for (i = 0; i < N_CONTEXTS; i++)
        amp_ctx_destroy(w.ctx[i]);
    if (heap.live)
        fuzz_fail("%u blocks of memory are left, the first has %llu bytes and was made in %s", heap.live,
            AMPI_ULL(heap.block[0].bytes), heap.block[0].made);
    if (amp_free(heap.bystander, w.memory) != AMP_OK) fuzz_fail("%s", amp_last_error(heap.bystander));
    for (i = 0; i < 3; i++)
        (void)remove(some_path((uint32_t)i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_begin(data, n);
    begin();
    while (fuzz_left())
        one_call();
    end();
    return 0;
}

/* ---- main ---- */

#ifndef FUZZ_LIBFUZZER
#  define NAME(name, class_) #name,
static void missing_verbs(void) { /* of VERB_LIST: a call is to be written */
    static const char *const verbs[] = {VERB_LIST(NAME)};
    size_t i, k;
    for (i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        for (k = 0; k < N_CALLS && strcmp(verbs[i], calls[k].name) != 0; k++) {
        }
        if (k < N_CALLS) continue;
        printf("FAIL %s has no call in fuzz_api.c\n", verbs[i]);
        fuzz_now.failed++;
    }
}
static void print_counts(void) {
    unsigned long taken = 0, refused = 0;
    size_t i;
    for (i = 0; i < N_CALLS; i++) {
        taken += counts[i].taken;
        refused += counts[i].refused;
        if (getenv("FUZZ_COUNTS"))
            printf("%-28s %8lu taken, %8lu refused\n", calls[i].name, counts[i].taken, counts[i].refused);
    }
    fprintf(stderr, "%lu calls: %lu taken, %lu refused\n", taken + refused, taken, refused);
}
int main(int argc, char **argv) {
    missing_verbs();
    if (atexit(print_counts) != 0) return 2;
    return fuzz_main(argc, argv, 16384);
}
#endif
