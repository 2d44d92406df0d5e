/* A processor with AVX2 and without AVX-512: ../hidden.h. */
#pragma GCC system_header
#include_next <cpuid.h>
#define HIDDEN_FROM  AMP_SIMD_AVX512
#define HIDDEN_1_ECX 0u
#define HIDDEN_7_EBX (1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31) /* AVX-512 */
#include "../hidden.h"
