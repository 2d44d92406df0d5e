/* ==== >>device ======================================================================================================
   Building blocks of the kernels: eight elements at a time between memory, registers and float bits.
   tests: tests/ptx.sh, tests/test_formats.c, tests/test_arrays.c */

/* What device code (names ampi_k_*) needs beyond C++ and what CUDA and HIP spell alike (__global__, threadIdx,
   __syncthreads, atomicAdd, ...). Elsewhere in the file only the host layer (names ampi_cu_*) is NVIDIA's, so a port to
   a different kind of GPU defines AMP_SHARED and the list, all of it, and writes a host layer. */
#ifndef AMP_SHARED
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#endif
#ifndef AMP_LOAD_L2
#  define AMP_LOAD_L2(p)     __ldcg(p)                          /* past the first-level cache: other blocks wrote it */
#  define AMP_SHUFFLE(x, k)  __shfl_xor_sync(0xffffffffu, x, k) /* x of the thread k places on, of a whole warp */
#  define AMP_SYNC_TEAM()    __syncwarp()                       /* what one thread of a warp wrote, the others see */
#  define AMP_FENCE()        __threadfence()         /* writes before it come before writes after it, for the GPU */
#  define AMP_FENCE_SYSTEM() __threadfence_system()  /* and for the host, too */
#  define AMP_FMA(a, b, c)   __fmaf_ieee_rn(a, b, c) /* one rounding, subnormals kept, whatever the compiler's flags */
#  if defined(__CUDACC__)
#    define AMP_LOAD_STREAM(p) __ldcs(p) /* 128 bits that are not needed again soon: */
#    if defined(__clang__)               /* they are the first to leave the caches */
#      define AMP_STORE_STREAM(p, v) \
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" \
        : \
        : "l"(__cvta_generic_to_global(p)), "r"((v).x), "r"((v).y), "r"((v).z), "r"((v).w) \
        : "memory")
#      define AMP_STORE_128(p, v) \
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" \
        : \
        : "l"(__cvta_generic_to_global(p)), "r"((v).x), "r"((v).y), "r"((v).z), "r"((v).w) \
        : "memory")
#    else
#      define AMP_STORE_STREAM(p, v) __stcs(p, v)
#      define AMP_STORE_128(p, v)    __stwb(p, v) /* a plain store that branches share would be cut in pieces */
#    endif
/* A hint may stand for nothing. A kernel's argument is read where it is; the compiler forgets what it knows of 64 bits;
   it may believe that a place is never reached (the host runtime stops there); loops over small arrays, which stay in
   registers. */
#    define AMP_GRID_CONSTANT __grid_constant__
#    define AMP_OPAQUE(x)     asm volatile("" : "+l"(x))
#    define AMP_NEVER_HERE()  __builtin_unreachable()
#    define AMP_UNROLL        _Pragma("unroll")
#    define AMP_NO_UNROLL     _Pragma("unroll 1")
#    if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* AMP_CUDA_DEPENDENT_LAUNCH: from here on the kernel behind this one may begin; and in that kernel, which touches no
   memory but its own before: this one has ended, and all that it wrote is seen. Elsewhere it begins only then. */
#      define AMP_LET_FOLLOW() asm volatile("griddepcontrol.launch_dependents;")
#      define AMP_FOLLOW()     asm volatile("griddepcontrol.wait;" : : : "memory")
#    else
#      define AMP_LET_FOLLOW()
#      define AMP_FOLLOW()
#    endif
#  else /* AMP_HOSTCUDA */
#    define AMP_LOAD_STREAM(p)     (*(p))
#    define AMP_STORE_STREAM(p, x) (*(p) = (x))
#    define AMP_STORE_128(p, x)    (*(p) = (x))
#    define AMP_GRID_CONSTANT
#    define AMP_OPAQUE(x)
#    define AMP_NEVER_HERE() __builtin_trap()
#    define AMP_UNROLL
#    define AMP_NO_UNROLL
#    define AMP_LET_FOLLOW()
#    define AMP_FOLLOW()
#  endif
#endif

/* The whole part, of numbers that are not negative; as an integer. Under --use_fast_math the language's own flush. */
#ifndef AMP_FLOOR
#  if defined(__CUDACC__)
#    define AMP_FLOOR(x) ampi_k_floor(x)
#  else
#    define AMP_FLOOR(x) floorf(x)
#  endif
#  define AMP_TO_U32(x) ampi_k_to_u32(x)
#endif

/* Conversions by the hardware, on float bits: a half to float; two to halves, or to BF16, of a word; two bytes of FP8
   to halves; four to bytes of a word. They need to be right for numbers within the range only. */
#ifndef AMP_FROM_HALF
#  if defined(__CUDA_ARCH__)
#    define AMP_FROM_HALF(pattern) ampi_from_half(pattern)
#    define AMP_TO_HALVES(a, b)    ampi_to_halves(a, b)
#  else
#    define AMP_FROM_HALF(pattern) ampi_decode(pattern, AMP_F16)
#    define AMP_TO_HALVES(a, b)    (ampi_nearest_bits(a, AMP_F16) | ampi_nearest_bits(b, AMP_F16) << 16)
#  endif
#  if defined(AMPI_BF16_HARDWARE)
#    define AMP_TO_BF16S(a, b) ampi_to_bf16s(a, b)
#  else
#    define AMP_TO_BF16S(a, b) ampi_k_bf16s(a, b)
#  endif
#  if defined(AMPI_F8_HARDWARE)
#    define AMP_F8_WHOLE(t)     AMPI_F8_HARDWARE(t) /* 1: AMP_FROM_F8 gives the numbers; 0: as ampi_k_halves_of_f8 */
#    define AMP_FROM_F8(two, t) (AMPI_F8_HARDWARE(t) ? ampi_from_two_f8(two, t) : ampi_k_halves_of_f8(two, t))
#  else
#    define AMP_F8_WHOLE(t)     0
#    define AMP_FROM_F8(two, t) ampi_k_halves_of_f8(two, t)
#  endif
#  define AMP_TO_F8(x, t) ampi_k_bytes_of_f8(x, t)
#endif

#define AMPI_K    static __device__ __forceinline__
#define AMPI_K_AT __device__ __forceinline__ /* a member function */
#define AMPI_K_BLOCKS(n) \
    (n * 256 / AMP_BLOCK) /* so many blocks of 256 threads on a multiprocessor: their registers fit */
#define AMPI_K_APART static __device__ __attribute__((noinline)) /* with registers of its own */

#if defined(__CUDACC__)
AMPI_K float ampi_k_floor(float x) {
    float r;
    asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
AMPI_K uint32_t ampi_k_to_u32(float x) {
    uint32_t r;
    asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}
#else
AMPI_K uint32_t ampi_k_to_u32(float x) { /* as that instruction: 0 of NaN, the nearest of what does not fit */
    if (x >= 4294967296.0f) return 0xffffffffu;
    return x > 0.0f ? (uint32_t)x : 0u;
}
#endif

/* Device arrays are read and written as 8, 16, 32 and 128 bits. Only the host runtime of the tests, where a C++
   compiler sees these accesses, needs to be told that they may overlap with others. */
#if defined(__CUDACC__)
typedef uint16_t ampi_k_u16;
typedef uint32_t ampi_k_u32;
typedef uint2 ampi_k_u2;
typedef uint4 ampi_k_u4;
#else
typedef uint16_t __attribute__((__may_alias__)) ampi_k_u16;
typedef uint32_t __attribute__((__may_alias__)) ampi_k_u32;
typedef struct __attribute__((__may_alias__, __aligned__(8))) ampi_k_u2 { uint32_t x, y; } ampi_k_u2;
typedef struct __attribute__((__may_alias__, __aligned__(16))) ampi_k_u4 { uint32_t x, y, z, w; } ampi_k_u4;
#endif

/* Eight elements at a time are the vector body of every array kernel: 32 bytes of F32 (two accesses of 128 bits), 16 of
   a 16-bit format, 8 of an FP8 format. `wide` says that the address allows it; else one by one, and only the first m.
   AMPI_K_STREAM: it does, and nobody will soon want these bytes again, so that they need not drive others out of the
   caches. */
#define AMPI_K_STREAM 2
AMPI_K size_t ampi_k_unit(amp_dtype t) { return amp_dtype_size(t) == 1u ? 8u : 16u; }
AMPI_K int ampi_k_aligned(const void *p, amp_dtype t) { return ((uintptr_t)p & (ampi_k_unit(t) - 1u)) == 0; }

AMPI_K void ampi_k_unpack2(uint32_t *x, uint32_t word) {
    x[0] = word & 0xffffu;
    x[1] = word >> 16;
}
AMPI_K void ampi_k_unpack4(uint32_t *x, uint32_t word) {
    x[0] = word & 0xffu;
    x[1] = word >> 8 & 0xffu;
    x[2] = word >> 16 & 0xffu;
    x[3] = word >> 24;
}
AMPI_K ampi_k_u4 ampi_k_four(const uint32_t w[4]) {
    ampi_k_u4 v = {w[0], w[1], w[2], w[3]};
    return v;
}
AMPI_K void ampi_k_words(uint32_t w[4], ampi_k_u4 v) {
    w[0] = v.x;
    w[1] = v.y;
    w[2] = v.z;
    w[3] = v.w;
}
AMPI_K ampi_k_u4 ampi_k_ld4(const ampi_k_u4 *p, int wide) {
    if (wide == AMPI_K_STREAM) return AMP_LOAD_STREAM(p);
    return *p;
}
AMPI_K void ampi_k_st4(ampi_k_u4 *p, ampi_k_u4 a, int wide) {
    if (wide == AMPI_K_STREAM)
        AMP_STORE_STREAM(p, a);
    else
        AMP_STORE_128(p, a);
}
AMPI_K void ampi_k_put4(void *p, const uint32_t w[4], int wide) { ampi_k_st4((ampi_k_u4 *)p, ampi_k_four(w), wide); }

/* Where the vectors of some arrays begin: elements from the head on, in steps, are aligned in all that met. */
typedef struct ampi_k_ends {
    uint32_t head, step;
    int never;
} ampi_k_ends;
AMPI_K ampi_k_ends ampi_k_no_ends(void) {
    ampi_k_ends e = {0, 1, 0};
    return e;
}
/* One more array, from element i on; NULL: none. */
AMPI_K void ampi_k_meet(ampi_k_ends *e, const void *p, amp_dtype t, uint64_t i) {
    uint32_t log2 = (uint32_t)amp_dtype_size(t) >> 1, unit = (uint32_t)ampi_k_unit(t), step = unit >> log2;
    uint32_t head = ((0u - (uint32_t)((uintptr_t)p + (i << log2))) & (unit - 1u)) >> log2;
    if (!p) return;
    e->never |= ((head - e->head) & ((step < e->step ? step : e->step) - 1u)) != 0;
    e->head = step > e->step ? head : e->head;
    e->step = step > e->step ? step : e->step;
}
/* How many groups of eight n elements have from the head on; and the i-th of the elements before and after them. */
AMPI_K uint32_t ampi_k_groups(const ampi_k_ends *e, uint32_t n) {
    return e->never || e->head >= n ? 0u : (n - e->head) / 8u;
}
AMPI_K uint32_t ampi_k_outside(const ampi_k_ends *e, uint32_t groups, uint32_t i) {
    return i < e->head ? i : i + 8u * groups;
}

/* Elements of a group of eight that begins at i and ends at n. */
AMPI_K uint32_t ampi_k_group(uint64_t i, uint64_t n) {
    if (i >= n) return 0u;
    return n - i < 8u ? (uint32_t)(n - i) : 8u;
}
/* Eight elements as they lie in memory: F32 fills a and b, a 16-bit format a, an FP8 format half of a. Fetched first
   and looked at later, so that all of a thread's loads are under way together. */
typedef struct ampi_k_raw { ampi_k_u4 a, b; } ampi_k_raw;

/* One by one: from the first to the m-th, and zeros. The size is known before the loop, not in it. */
template <uint32_t size>
AMPI_K void ampi_k_gather8(ampi_k_raw *r, const void *p, size_t i, uint32_t first, uint32_t m) {
    const amp_dtype small = size == 2u ? AMP_F16 : AMP_F8E4M3;
    const amp_dtype t = size == 4u ? AMP_F32 : small;
    const uint32_t each = 4u / size;
    uint32_t w[8], k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t x = k >= first && k < m ? ampi_load_pattern(p, t, i + k) : 0u;
        if (each == 1u) w[k] = x;
        if (each == 2u) w[k / 2u] = k % 2u ? w[k / 2u] | x << 16 : x;
        if (each == 4u) w[k / 4u] = k % 4u ? w[k / 4u] | x << (8u * (k % 4u)) : x;
    }
    r->a.x = w[0];
    r->a.y = w[1];
    if (each <= 2u) r->a = ampi_k_four(w);
    if (each == 1u) r->b = ampi_k_four(w + 4);
}
AMPI_K void ampi_k_gather8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, uint32_t first, uint32_t m) {
    if (t == AMP_F32)
        ampi_k_gather8<4>(r, p, i, first, m);
    else if (amp_dtype_size(t) == 2u)
        ampi_k_gather8<2>(r, p, i, first, m);
    else
        ampi_k_gather8<1>(r, p, i, first, m);
}
AMPI_K void ampi_k_fetch8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, int wide) {
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r); /* or else g++ warns of what nobody reads */
#endif
    if (!wide) {
        ampi_k_gather8(r, p, t, i, 0, 8);
    } else if (t == AMP_F32) {
        const ampi_k_u4 *v = (const ampi_k_u4 *)((const char *)p + 4u * i);
        r->a = ampi_k_ld4(v, wide);
        r->b = ampi_k_ld4(v + 1, wide);
    } else if (amp_dtype_size(t) == 2u) {
        r->a = ampi_k_ld4((const ampi_k_u4 *)((const char *)p + 2u * i), wide);
    } else {
        ampi_k_u2 a = *(const ampi_k_u2 *)((const char *)p + i);
        r->a.x = a.x;
        r->a.y = a.y;
    }
}
/* Four from i on and four from k on, aligned. */
AMPI_K void ampi_k_fetch_fours(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, size_t k) {
    const size_t size = amp_dtype_size(t);
    const char *first = (const char *)p + size * i, *second = (const char *)p + size * k;
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r);
#endif
    if (size == 2u) {
        const ampi_k_u2 a = *(const ampi_k_u2 *)first, b = *(const ampi_k_u2 *)second;
        const uint32_t w[4] = {a.x, a.y, b.x, b.y};
        r->a = ampi_k_four(w);
    } else {
        r->a.x = *(const ampi_k_u32 *)first;
        r->a.y = *(const ampi_k_u32 *)second;
    }
}
AMPI_K void ampi_k_patterns8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    if (t == AMP_F32) {
        ampi_k_words(x, r->a);
        ampi_k_words(x + 4, r->b);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_unpack2(x, r->a.x);
        ampi_k_unpack2(x + 2, r->a.y);
        ampi_k_unpack2(x + 4, r->a.z);
        ampi_k_unpack2(x + 6, r->a.w);
    } else {
        ampi_k_unpack4(x, r->a.x);
        ampi_k_unpack4(x + 4, r->a.y);
    }
}
/* The larger one of |x| and a magnitude, all as float bits; NaN, the largest of all, may become any NaN. */
AMPI_K uint32_t ampi_k_larger_size(uint32_t x, uint32_t size) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float r;
    asm("{ .reg .f32 a; abs.f32 a, %1; max.NaN.f32 %0, a, %2; }" : "=f"(r) : "f"(ampi_float(x)), "f"(ampi_float(size)));
    return ampi_bits(r);
#else
    return (x & 0x7fffffffu) > size ? x & 0x7fffffffu : size;
#endif
}
AMPI_K uint32_t ampi_k_largest8(const uint32_t x[8]) { /* magnitude, as float bits */
    uint32_t k, largest = 0;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        largest = ampi_k_larger_size(x[k], largest);
    return largest;
}
/* Two bytes of FP8 to two halves, where the hardware has no way: moved up until the mantissa is in its place. They are
   too small then by 2^(emin - 113): E5M2 by 1, E4M3 by 256. NaN is the caller's. */
AMPI_K uint32_t ampi_k_halves_of_f8(uint32_t two, amp_dtype t) {
    const uint32_t apart = (two & 0xffu) << 8 | (two & 0xff00u) << 16, more = ampi_format_of(t).mant - 2u;
    return more == 0 ? apart : (apart & 0x80008000u) | (apart & 0x7f007f00u) >> more;
}
AMPI_K uint32_t ampi_k_bytes_of_f8(const uint32_t x[4], amp_dtype t) {
#if defined(AMPI_F8_HARDWARE)
    if (AMPI_F8_HARDWARE(t)) return ampi_to_two_f8(x[0], x[1], t) | ampi_to_two_f8(x[2], x[3], t) << 16;
#endif
    return ampi_nearest_bits(x[0], t) | ampi_nearest_bits(x[1], t) << 8 | ampi_nearest_bits(x[2], t) << 16 |
        ampi_nearest_bits(x[3], t) << 24;
}
/* To two of BF16; a NaN among them stays visible as one that is not finite. */
AMPI_K uint32_t ampi_k_bf16s(uint32_t low, uint32_t high) {
    return ampi_nearest_bits(low, AMP_BF16) | ampi_nearest_bits(high, AMP_BF16) << 16;
}
/* Is there an Inf or a NaN in these words? See ampi_exponents. */
AMPI_K uint32_t ampi_k_odd(uint32_t a, uint32_t b, amp_dtype t) {
    uint32_t e = ampi_exponents(t), sign = ampi_signs(t);
    return (((a & e) + (sign - e)) | ((b & e) + (sign - e))) & sign;
}
AMPI_K uint32_t ampi_k_odd8(const ampi_k_raw *r, amp_dtype t) {
    uint32_t odd = ampi_k_odd(r->a.x, r->a.y, t);
    if (amp_dtype_size(t) > 1u) odd |= ampi_k_odd(r->a.z, r->a.w, t);
    if (t != AMP_F32) return odd;
    return odd | ampi_k_odd(r->b.x, r->b.y, t) | ampi_k_odd(r->b.z, r->b.w, t);
}
#define AMPI_FORMAT_ODD8(T, ...) \
    if (t == AMP_##T) return ampi_k_odd8(r, AMP_##T);
AMPI_K uint32_t ampi_k_odd_any8(const ampi_k_raw *r, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_ODD8)
    return ampi_k_odd8(r, AMP_F32);
}
/* Eight elements as they lie in memory to float bits, the quick way: right but for NaN. */
AMPI_K void ampi_k_quick8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    const int f8 = amp_dtype_size(t) == 1u;
    const uint32_t short_by = ampi_format_of(t).emin - 113u;
    const uint32_t both[4] = {r->a.x & 0xffffu, r->a.x >> 16, r->a.y & 0xffffu, r->a.y >> 16};
    const uint32_t w[4] = {r->a.x, r->a.y, r->a.z, r->a.w};
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        uint32_t two = w[k];
        if (f8) two = AMP_FROM_F8(both[k], t);
        x[2u * k] = t == AMP_BF16 ? two << 16 : AMP_FROM_HALF(two & 0xffffu);
        x[2u * k + 1u] = t == AMP_BF16 ? two & 0xffff0000u : AMP_FROM_HALF(two >> 16);
    }
    if (!f8 || AMP_F8_WHOLE(t) || short_by == 0) return;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_mul(ampi_float(x[k]), ampi_float((127u + short_by) << 23)));
}
AMPI_K uint32_t ampi_k_quick(uint32_t pattern, amp_dtype t) { /* of one: NaN may become any NaN */
    if (t == AMP_F16) return AMP_FROM_HALF(pattern);
    return t == AMP_BF16 ? pattern << 16 : ampi_decode_any(pattern, t);
}
#define AMPI_FORMAT_DECODE8(T, ...) \
    if (t == AMP_##T) { \
        AMP_UNROLL \
        for (k = 0; k < 8u; k++) \
            x[k] = ampi_decode(x[k], AMP_##T); \
        return; \
    }
AMPI_K void ampi_k_decode8(uint32_t x[8], amp_dtype t) { /* patterns to float bits */
    uint32_t k;
    AMPI_FORMATS(AMPI_FORMAT_DECODE8)
}
AMPI_K void ampi_k_exact8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    ampi_k_patterns8(x, r, t);
    ampi_k_decode8(x, t);
}
/* Where the quick way met a NaN: it becomes what ampi_decode makes of it, in fewer instructions than that takes. */
AMPI_K void ampi_k_nans8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t last = ampi_has_inf(f) ? f.over : f.maxf; /* that is none */
    uint32_t b[8], k;
    ampi_k_patterns8(b, r, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        const uint32_t a = b[k] & ((1u << f.sign) - 1u);
        if (a > last) x[k] = (b[k] >> f.sign) << 31 | 0x7fc00000u | (a << (23u - f.mant) & 0x7fffffu);
    }
}
#define AMPI_FORMAT_WIDEN8(T, ...) \
case AMP_##T: \
    ampi_k_quick8(x, r, AMP_##T); \
    if (ampi_k_odd8(r, AMP_##T)) ampi_k_nans8(x, r, AMP_##T); \
    break;
/* Eight elements as they lie in memory to float bits. */
AMPI_K void ampi_k_widen8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_WIDEN8)
    default: ampi_k_patterns8(x, r, AMP_F32);
    }
}
/* The same for arithmetic: a NaN may become any NaN, as it does in what follows. (The quick way loses those of FP8.) */
AMPI_K void ampi_k_about8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    if (t == AMP_F32)
        ampi_k_patterns8(x, r, AMP_F32);
    else if (t == AMP_BF16)
        ampi_k_quick8(x, r, AMP_BF16);
    else if (t == AMP_F16)
        ampi_k_quick8(x, r, AMP_F16);
    else
        ampi_k_widen8(x, r, t);
}
/* Eight patterns of 16 bits at an address that is not aligned for them: three or four words, and what is left at both
   ends. */
AMPI_K int ampi_k_has_words(amp_dtype t, uint32_t m) { return m == 8u && amp_dtype_size(t) == 2u; }
AMPI_K void ampi_k_fetch_words(ampi_k_raw *r, const void *p, size_t i) {
    const char *at = (const char *)p + 2u * i;
    if ((uintptr_t)at & 2u) {
        const ampi_k_u32 *w = (const ampi_k_u32 *)(at + 2);
        uint32_t w0 = w[0], w1 = w[1], w2 = w[2];
        r->a.x = *(const ampi_k_u16 *)at | w0 << 16;
        r->a.y = w0 >> 16 | w1 << 16;
        r->a.z = w1 >> 16 | w2 << 16;
        r->a.w = w2 >> 16 | (uint32_t)*(const ampi_k_u16 *)(at + 14) << 16;
    } else {
        const ampi_k_u32 *w = (const ampi_k_u32 *)at;
        ampi_k_u4 v = {w[0], w[1], w[2], w[3]};
        r->a = v;
    }
}
AMPI_K void ampi_k_store_words(const uint32_t x[8], void *p, size_t i) {
    char *at = (char *)p + 2u * i;
    if ((uintptr_t)at & 2u) {
        ampi_k_u32 *w = (ampi_k_u32 *)(at + 2);
        *(ampi_k_u16 *)at = (uint16_t)x[0];
        w[0] = x[1] | x[2] << 16;
        w[1] = x[3] | x[4] << 16;
        w[2] = x[5] | x[6] << 16;
        *(ampi_k_u16 *)(at + 14) = (uint16_t)x[7];
    } else {
        ampi_k_u32 *w = (ampi_k_u32 *)at;
        w[0] = x[0] | x[1] << 16;
        w[1] = x[2] | x[3] << 16;
        w[2] = x[4] | x[5] << 16;
        w[3] = x[6] | x[7] << 16;
    }
}
/* The first m of eight, and zeros. */
AMPI_K void ampi_k_take8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    if (wide && m == 8u)
        ampi_k_fetch8(r, p, t, i, wide);
    else if (ampi_k_has_words(t, m))
        ampi_k_fetch_words(r, p, i);
    else
        ampi_k_gather8(r, p, t, i, 0, m);
}
/* The first m of eight by themselves; the dtype of floats is known before the loop, not in it. */
AMPI_K void ampi_k_store_each(const uint32_t x[8], void *p, amp_dtype t, size_t i, uint32_t m) {
    uint32_t k;
    for (k = 0; k < 8u; k++)
        if (k < m) ampi_store_pattern(p, t, i + k, x[k]);
}
/* The first m of eight elements to float bits, and zeros. */
AMPI_K void ampi_k_load8(uint32_t x[8], const void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    ampi_k_raw r;
    ampi_k_take8(&r, p, t, i, m, wide);
    ampi_k_widen8(x, &r, t);
}

/* The first m of eight patterns to memory. */
AMPI_K void ampi_k_store8(const uint32_t x[8], void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    if (!wide && ampi_k_has_words(t, m)) {
        ampi_k_store_words(x, p, i);
    } else if ((!wide || m < 8u) && t == AMP_F32) {
        ampi_k_store_each(x, p, AMP_F32, i, m);
    } else if (!wide || m < 8u) {
        ampi_k_store_each(x, p, t, i, m);
    } else if (t == AMP_F32) {
        ampi_k_u4 *v = (ampi_k_u4 *)((char *)p + 4u * i);
        ampi_k_st4(v, ampi_k_four(x), wide);
        ampi_k_st4(v + 1, ampi_k_four(x + 4), wide);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_u4 a = {x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16};
        ampi_k_st4((ampi_k_u4 *)((char *)p + 2u * i), a, wide);
    } else {
        ampi_k_u2 a = {x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24, x[4] | x[5] << 8 | x[6] << 16 | x[7] << 24};
        *(ampi_k_u2 *)((char *)p + i) = a;
    }
}

