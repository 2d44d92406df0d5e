
/* ==== >>cpu-pick =================================================================================================
   Which paths there are, and which one this machine gets.  tests: tests/test_context.c, tests/test_arrays.c */

/* Least first: each starts from the table of the one before it and replaces what it does better. */
#if defined(AMPI_X86)
#  define AMPI_PATHS(X) X(scalar, SCALAR) X(sse2, SSE2) X(avx2, AVX2) X(avx512, AVX512)
#elif defined(AMPI_NEON)
#  define AMPI_PATHS(X) X(scalar, SCALAR) X(neon, NEON)
#else
#  define AMPI_PATHS(X) X(scalar, SCALAR)
#endif

typedef struct ampi_cpuid {
    amp_simd best;
    int32_t bf16; /* AVX512_BF16 */
    int32_t amd;
} ampi_cpuid;
#if defined(AMPI_X86)
/* CPUID and XGETBV ourselves: __builtin_cpu_supports does not know "f16c" in older compilers. */
#  define AMPI_CPUID_AVX2_C   (1u << 27 | 1u << 28 | 1u << 29 | 1u << 12) /* leaf 1, ECX: OSXSAVE AVX F16C FMA */
#  define AMPI_CPUID_AVX2_B   (1u << 5)                                   /* leaf 7, EBX */
#  define AMPI_CPUID_AVX512_B (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* leaf 7, EBX: F DQ BW VL */
static int ampi_has_all(unsigned word, unsigned bits) { return (word & bits) == bits; }
static ampi_cpuid ampi_cpuid_read(void) {
    ampi_cpuid is = {AMP_SIMD_SSE2, 0, 0};
    unsigned a, b, c, d, saved_by_os, high;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return is;
    is.amd = b == 0x68747541u; /* "Auth"enticAMD */
    if (!__get_cpuid(1, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(c, AMPI_CPUID_AVX2_C)) return is;
    __asm__ volatile("xgetbv" : "=a"(saved_by_os), "=d"(high) : "c"(0));
    if (!ampi_has_all(saved_by_os, 0x06u)) return is;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(b, AMPI_CPUID_AVX2_B)) return is;
    is.best = AMP_SIMD_AVX2;
    if (!ampi_has_all(saved_by_os, 0xe6u) || !ampi_has_all(b, AMPI_CPUID_AVX512_B)) return is;
    is.best = AMP_SIMD_AVX512;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) is.bf16 = (int32_t)(a >> 5) & 1;
    return is;
}
#else
static ampi_cpuid ampi_cpuid_read(void) {
    ampi_cpuid is = {AMP_SIMD_SCALAR, 0, 0};
#  ifdef AMPI_NEON
    is.best = AMP_SIMD_NEON;
#  endif
    return is;
}
#endif
/* Tables of kernels are filled by code: a const table of addresses would be writable data in PIC. */
static int ampi_pick_kernels(ampi_kernels *k, amp_simd want) { /* 0: not here */
    const ampi_cpuid is = ampi_cpuid_read();
    if (want == AMP_SIMD_AUTO) want = is.best;
    memset(k, 0, sizeof *k);
#define AMP_X(path, NAME) \
    if (want >= AMP_SIMD_##NAME) { \
        ampi_##path##_use(k); \
        k->simd = AMP_SIMD_##NAME; \
        k->name = #path; \
    }
    AMPI_PATHS(AMP_X)
#undef AMP_X
#ifdef AMPI_HAS_BF16
    if (want == AMP_SIMD_AVX512 && is.bf16) k->narrow[AMP_BF16] = ampi_avx512_narrow_bf16_hw;
#endif
    /* f32->f16, GB/s: Zen 5 45 with one page, 30 with 4; Granite Rapids 17 and 20 (bench/NOTES.md) */
    k->pages = is.amd ? 1 : 4;
    return k->simd == want && want <= is.best;
}
