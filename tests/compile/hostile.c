/* hostile.c - macros that real headers (windows.h, complex.h, altivec.h, CUDA, old code) are known to define, before
   amp.h. System headers come first, as these macros would break them too. */
#include <complex.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __unix__
#  include <pthread.h>
#  include <sys/types.h>
#  include <unistd.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#  include <immintrin.h>
#endif
#if defined(__ARM_NEON)
#  include <arm_neon.h>
#endif

static size_t allocated, released;
static void *hostile_malloc(size_t n) {
    allocated++;
    return malloc(n);
}
static void hostile_free(void *p) {
    released += p != NULL;
    free(p);
}

#define malloc(n)    hostile_malloc(n)
#define free(p)      hostile_free(p)
#define calloc(a, b) amp_must_not_call_calloc
#define min(a, b)    amp_must_not_use_min
#define max(a, b)    amp_must_not_use_max
#define abs(a)       amp_must_not_use_abs
#define swap(a, b)   amp_must_not_use_swap
#define assert(x)    amp_must_not_use_assert
#define near
#define far
#define small     char
#define hyper     __int64
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define CONST        const
#define VOID         void
#define ERROR        0
#define TRUE         1
#define FALSE        0
#define NONE         0
/* what programs are told by -DBF16, and their own names of formats and optimizers */
#define F32          1
#define F16          1
#define BF16         1
#define F8E4M3       1
#define F8E5M2       1
#define SPLIT        1
#define SPLIT8       1
#define KAHAN        1
#define RELU         1
#define GELU         1
#define SGD          1
#define ADAM         1
#define ADAMW        1
#define LION         1
#define DEBUG        1
#define vector       amp_must_not_use_vector
#define pixel        amp_must_not_use_pixel
#define unix         1
#define linux        1
#define major(x)     amp_must_not_use_major
#define minor(x)     amp_must_not_use_minor
#define __noinline__ __attribute__((noinline))
#ifdef I
#  undef I
#endif
#define I      amp_must_not_use_I
#define U8     amp_must_not_use_U8
#define U32    amp_must_not_use_U32
#define BYTE   amp_must_not_use_BYTE
#define status amp_must_not_use_status_as_a_macro_would
#undef status
#define private public
#define register
#define likely(x)   (x)
#define unlikely(x) (x)
#define offsetof_   0
#define CHECK(x)    amp_must_not_use_CHECK
#define LOG(x)      amp_must_not_use_LOG
#define MIN(a, b)   amp_must_not_use_MIN
#define MAX(a, b)   amp_must_not_use_MAX

/* Functions of a program that are macros: every function that the implementation calls through a pointer, so that it
   must be called as (k->round)(...), and names that programs have. */
#define act(...)             amp_must_not_call_act
#define act_grad(...)        amp_must_not_call_act_grad
#define add(...)             amp_must_not_call_add
#define align(...)           amp_must_not_call_align
#define aligned(...)         amp_must_not_call_aligned
#define alloc(...)           amp_must_not_call_alloc
#define amax(...)            amp_must_not_call_amax
#define apply(...)           amp_must_not_call_apply
#define array(...)           amp_must_not_call_array
#define axpy(...)            amp_must_not_call_axpy
#define bias_grad(...)       amp_must_not_call_bias_grad
#define capture_id(...)      amp_must_not_call_capture_id
#define cast(...)            amp_must_not_call_cast
#define ceil(...)            amp_must_not_call_ceil
#define check(...)           amp_must_not_call_check
#define clamp(...)           amp_must_not_call_clamp
#define clip(...)            amp_must_not_call_clip
#define cold(...)            amp_must_not_call_cold
#define conclude(...)        amp_must_not_call_conclude
#define copy(...)            amp_must_not_call_copy
#define copy_async(...)      amp_must_not_call_copy_async
#define cos(...)             amp_must_not_call_cos
#define count(...)           amp_must_not_call_count
#define count_sizes(...)     amp_must_not_call_count_sizes
#define count_unchanged(...) amp_must_not_call_count_unchanged
#define cube(...)            amp_must_not_call_cube
#define debug(...)           amp_must_not_call_debug
#define destroy(...)         amp_must_not_call_destroy
#define dot(...)             amp_must_not_call_dot
#define drop(...)            amp_must_not_call_drop
#define dropout(...)         amp_must_not_call_dropout
#define each(...)            amp_must_not_call_each
#define emit(...)            amp_must_not_call_emit
#define end(...)             amp_must_not_call_end
#define error(...)           amp_must_not_call_error
#define exp(...)             amp_must_not_call_exp
#define exps(...)            amp_must_not_call_exps
#define fail(...)            amp_must_not_call_fail
#define fatal(...)           amp_must_not_call_fatal
#define fence(...)           amp_must_not_call_fence
#define filter(...)          amp_must_not_call_filter
#define find(...)            amp_must_not_call_find
#define finite(...)          amp_must_not_call_finite
#define first(...)           amp_must_not_call_first
#define fit_to(...)          amp_must_not_call_fit_to
#define floor(...)           amp_must_not_call_floor
#define fn(...)              amp_must_not_call_fn
#define format(...)          amp_must_not_call_format
#define fused(...)           amp_must_not_call_fused
#define gemm(...)            amp_must_not_call_gemm
#define gemm_explain(...)    amp_must_not_call_gemm_explain
#define gemm_tune(...)       amp_must_not_call_gemm_tune
#define get(...)             amp_must_not_call_get
#define hash(...)            amp_must_not_call_hash
#define histogram(...)       amp_must_not_call_histogram
#define info(...)            amp_must_not_call_info
#define init(...)            amp_must_not_call_init
#define insert(...)          amp_must_not_call_insert
#define inspect(...)         amp_must_not_call_inspect
#define is_bad(...)          amp_must_not_call_is_bad
#define join(...)            amp_must_not_call_join
#define key(...)             amp_must_not_call_key
#define largest(...)         amp_must_not_call_largest
#define last(...)            amp_must_not_call_last
#define launch(...)          amp_must_not_call_launch
#define leave(...)           amp_must_not_call_leave
#define length(...)          amp_must_not_call_length
#define list(...)            amp_must_not_call_list
#define load(...)            amp_must_not_call_load
#define lock(...)            amp_must_not_call_lock
#define log(...)             amp_must_not_call_log
#define loop(...)            amp_must_not_call_loop
#define map(...)             amp_must_not_call_map
#define mask(...)            amp_must_not_call_mask
#define may_wait(...)        amp_must_not_call_may_wait
#define mean(...)            amp_must_not_call_mean
#define mirror_create(...)   amp_must_not_call_mirror_create
#define mirror_destroy(...)  amp_must_not_call_mirror_destroy
#define name(...)            amp_must_not_call_name
#define next(...)            amp_must_not_call_next
#define next_scale(...)      amp_must_not_call_next_scale
#define node(...)            amp_must_not_call_node
#define none(...)            amp_must_not_call_none
#define norm(...)            amp_must_not_call_norm
#define norm2(...)           amp_must_not_call_norm2
#define ok(...)              amp_must_not_call_ok
#define pack4(...)           amp_must_not_call_pack4
#define packed(...)          amp_must_not_call_packed
#define poll(...)            amp_must_not_call_poll
#define pop(...)             amp_must_not_call_pop
#define pow(...)             amp_must_not_call_pow
#define prepare(...)         amp_must_not_call_prepare
#define printf(...)          amp_must_not_call_printf
#define probe(...)           amp_must_not_call_probe
#define push(...)            amp_must_not_call_push
#define put(...)             amp_must_not_call_put
#define quantize(...)        amp_must_not_call_quantize
#define queue(...)           amp_must_not_call_queue
#define random(...)          amp_must_not_call_random
#define range(...)           amp_must_not_call_range
#define read(...)            amp_must_not_call_read
#define reduce(...)          amp_must_not_call_reduce
#define release(...)         amp_must_not_call_release
#define repeat(...)          amp_must_not_call_repeat
#define reset(...)           amp_must_not_call_reset
#define round(...)           amp_must_not_call_round
#define rule(...)            amp_must_not_call_rule
#define run(...)             amp_must_not_call_run
#define scale(...)           amp_must_not_call_scale
#define scan(...)            amp_must_not_call_scan
#define select(...)          amp_must_not_call_select
#define send(...)            amp_must_not_call_send
#define set(...)             amp_must_not_call_set
#define set_record(...)      amp_must_not_call_set_record
#define sign(...)            amp_must_not_call_sign
#define sin(...)             amp_must_not_call_sin
#define size(...)            amp_must_not_call_size
#define softmax_shares(...)  amp_must_not_call_softmax_shares
#define sort(...)            amp_must_not_call_sort
#define square(...)          amp_must_not_call_square
#define squares(...)         amp_must_not_call_squares
#define start(...)           amp_must_not_call_start
#define step(...)            amp_must_not_call_step
#define stop(...)            amp_must_not_call_stop
#define store(...)           amp_must_not_call_store
#define stream(...)          amp_must_not_call_stream
#define sum(...)             amp_must_not_call_sum
#define sum_gradients(...)   amp_must_not_call_sum_gradients
#define sync(...)            amp_must_not_call_sync
#define tanh(...)            amp_must_not_call_tanh
#define target(...)          amp_must_not_call_target
#define task(...)            amp_must_not_call_task
#define test(...)            amp_must_not_call_test
#define trace(...)           amp_must_not_call_trace
#define trunc(...)           amp_must_not_call_trunc
#define unlock(...)          amp_must_not_call_unlock
#define unused(...)          amp_must_not_call_unused
#define update(...)          amp_must_not_call_update
#define value(...)           amp_must_not_call_value
#define var(...)             amp_must_not_call_var
#define visit(...)           amp_must_not_call_visit
#define wait(...)            amp_must_not_call_wait
#define wants(...)           amp_must_not_call_wants
#define warn(...)            amp_must_not_call_warn
#define weak(...)            amp_must_not_call_weak
#define word(...)            amp_must_not_call_word
#define write(...)           amp_must_not_call_write
#define xent(...)            amp_must_not_call_xent
#define yield(...)           amp_must_not_call_yield
#define zero(...)            amp_must_not_call_zero

#ifndef DECLARATIONS
#  define AMP_IMPLEMENTATION
#endif
#include "../../amp.h"

int main(void) {
    amp_ctx *ctx = NULL;
    void *own = malloc(1);
    float x[3] = {1, 2, 3};
    amp_f16 y[3];
    free(own);
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 1;
    if (amp_cast(ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 3, NULL) != AMP_OK) return 2;
    if (y[1].bits != 0x4000) return 3;
    amp_ctx_destroy(ctx);
    return !(allocated > 0 && allocated == released); /* its calls of malloc and free went through the macros */
}
