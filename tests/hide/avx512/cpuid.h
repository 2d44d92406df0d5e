/* A processor with AVX2 and without AVX-512: ../hidden.h. */
#pragma GCC system_header
#include_next <cpuid.h>
#define HIDDEN_FROM  AMP_SIMD_AVX512
#define HIDDEN_1_ECX 0u
#define HIDDEN_7_EBX 0xdc230000u /* AVX-512 */
#include "../hidden.h"
