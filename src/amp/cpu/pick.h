static int ampi_pick_kernels(ampi_kernels *k, amp_simd want) { /* 0: not here */
    ampi_use_scalar(k);
#if defined(AMPI_X86)
    {
        ampi_cpuid is = ampi_cpuid_read();
        if (want == AMP_SIMD_AUTO) want = is.best;
        if (want >= AMP_SIMD_SSE2 && want <= is.best) ampi_use_sse2(k);
        if (want >= AMP_SIMD_AVX2 && want <= is.best) ampi_use_avx2(k);
        if (want == AMP_SIMD_AVX512 && want <= is.best) ampi_use_avx512(k, is.bf16);
        /* f32->f16, GB/s: Zen 5 45 with one page, 30 with 4; Granite Rapids 17 and 20 (bench/NOTES.md) */
        k->pages = is.amd ? 1 : 4;
    }
#elif defined(AMPI_NEON)
    if (want == AMP_SIMD_AUTO || want == AMP_SIMD_NEON) ampi_use_neon(k);
#endif
    return want == AMP_SIMD_AUTO || want == k->simd;
}

