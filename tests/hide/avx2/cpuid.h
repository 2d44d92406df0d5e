/* A processor with SSE2 and without AVX: ../hidden.h. */
#pragma GCC system_header
#include_next <cpuid.h>
#define HIDDEN_FROM  AMP_SIMD_AVX2
#define HIDDEN_1_ECX (1u << 12 | 1u << 28 | 1u << 29) /* FMA AVX F16C */
#define HIDDEN_7_EBX (1u << 5 | 0xdc230000u)          /* AVX2, AVX-512 */
#include "../hidden.h"
