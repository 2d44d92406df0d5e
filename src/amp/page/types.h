/* ==== >>types ==================================================================================================== */

typedef enum amp_dtype {
    AMP_AUTO = 0, /* "choose for me": each place that accepts it says what it means */
    AMP_F32,      /* float */
    AMP_F16,      /* IEEE binary16:  5 exponent bits, 10 mantissa bits, max 65504, smallest 2^-24 */
    AMP_BF16,     /* bfloat16:       8 exponent bits,  7 mantissa bits, the range of float */
    AMP_F8E4M3,   /* OCP FP8 E4M3:   no Inf, one NaN, max 448, smallest 2^-9 */
    AMP_F8E5M2,   /* OCP FP8 E5M2:   Inf and NaN as IEEE, max 57344, smallest 2^-16 */
    AMP_DTYPE_COUNT,
    AMP_F64 = 64, /* double: for amp_cast, amp_all_finite, amp_watch_array, amp_dtype_size, _name: others refuse it */
    AMP_MOMENT_8BIT, /* for amp_params_desc.moment alone; amp_dtype_size is 0, as for the next one */
    AMP_MASK /* for aux of ReLU: 0 where y <= 0, else 1; column c: bit c % 8 of byte c / 8 of (columns + 7) / 8 a row */
} AMP_INT amp_dtype;

/* Storage types: one-member structs, so that mixing them up does not compile, nor does `+`. They have the size and
   layout of CUDA's __half and __nv_bfloat16: where the two meet, cast the pointer, (__half *)p. */
typedef struct amp_f16 { uint16_t bits; } amp_f16;
typedef struct amp_bf16 { uint16_t bits; } amp_bf16;
typedef struct amp_f8e4m3 { uint8_t bits; } amp_f8e4m3;
typedef struct amp_f8e5m2 { uint8_t bits; } amp_f8e5m2;
typedef struct amp_any16 { uint16_t bits; } amp_any16; /* FP16 or BF16, as an amp_dtype beside it says at run time */

/* An operand: an address and a format. `count` is the number of elements, if you know it; 0 means "as many as the verb
   needs". A verb refuses an operand whose count is too small. Write it amp_arr(ptr, AMP_F16). */
typedef struct amp_array {
    void *data; /* context memory; NULL: no operand */
    amp_dtype dtype;
    uint32_t flags; /* 0, or AMP_CACHE (>>policy) */
    size_t count;   /* elements, or 0 */
} amp_array;

/* Const pointers are accepted: a verb writes only to operands that its comment calls outputs. */
AMP_INLINE amp_array amp_arr(const void *data, amp_dtype dtype);
AMP_INLINE amp_array amp_arrn(const void *data, amp_dtype dtype, size_t count);

AMP_INLINE size_t amp_dtype_size(amp_dtype t);   /* bytes per element; 0 for AMP_AUTO and unknown numbers */
AMP_API const char *amp_dtype_name(amp_dtype t); /* "f32", "f16", ...; never NULL. Class: host. */
/* A number that may be left out, for fields where 0 is a valid value. AMP_ZERO means "not given"; amp_opt(x) gives x,
   which may be 0: .alpha = amp_opt(0.5f). A bare number (.alpha = 0.5f) is INVALID_ARG. */
typedef struct amp_optional {
    float value;
    uint32_t given;
} amp_optional;
AMP_INLINE amp_optional amp_opt(float x);
/* Zero every desc struct first: then each field has its default, which its comment gives. If it gives none: an enum's
   first name, a flag that is off, the number 0, no pointer, no operand. A verb that cannot work without a field
   (lr, classes, in, out, labels ...) returns INVALID_ARG, and the sentence names it. The first member `_begin` and the
   last, `_end`, stay 0; anything else means that the struct was not initialised: UNINIT. Where 0 is a useful value but
   not the default, AMP_NONE asks for 0, or for what the field's comment says. A getter that asks the device, or can
   fail, returns a status and fills *out; the others return the value. */
#define AMP_NONE      (-1)
#define AMP_BROADCAST ((size_t)-1) /* a batch stride: every batch uses the same matrix */

