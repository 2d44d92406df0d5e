/* A processor with SSE2 and without AVX: ../hidden.h. */
#pragma GCC system_header
#include_next <cpuid.h>
#define HIDDEN_FROM  AMP_SIMD_AVX2
#define HIDDEN_1_ECX (1u << 12 | 1u << 28 | 1u << 29) /* FMA AVX F16C */
#define HIDDEN_7_EBX (1u << 5 | 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31) /* AVX2 AVX-512 */
#include "../hidden.h"
