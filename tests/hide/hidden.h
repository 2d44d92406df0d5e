/* hidden.h - a processor with less than this one has: make test HIDE=avx512, or HIDE=avx2, which leaves SSE2.
   amp.h asks the processor by <cpuid.h>. HIDE puts a folder beside this file before the compilers' own headers, by
   C_INCLUDE_PATH and CPLUS_INCLUDE_PATH, so for every compiler that any script calls; its cpuid.h clears bits in what
   CPUID says. The library then goes the way that it goes on such a processor, without a word about tests in it.
   The folder's cpuid.h defines, before this file:
       HIDDEN_FROM     the first amp_simd that is not there
       HIDDEN_1_ECX    bits of leaf 1, ECX       HIDDEN_7_EBX    bits of leaf 7, EBX
   Not hidden: code compiled for this processor (-march=native), and /proc/cpuinfo, whose readers look at $HIDE. */
static __inline int hidden_get_cpuid(unsigned leaf, unsigned *eax, unsigned *ebx, unsigned *ecx, unsigned *edx) {
    int known = __get_cpuid(leaf, eax, ebx, ecx, edx);
    if (leaf == 1) *ecx &= ~HIDDEN_1_ECX;
    return known;
}
static __inline int hidden_get_cpuid_count(
    unsigned leaf, unsigned subleaf, unsigned *eax, unsigned *ebx, unsigned *ecx, unsigned *edx) {
    int known = __get_cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
    if (leaf == 7 && subleaf == 0) *ebx &= ~HIDDEN_7_EBX;
    return known;
}
#define __get_cpuid       hidden_get_cpuid
#define __get_cpuid_count hidden_get_cpuid_count
