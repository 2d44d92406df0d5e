/* hcu_wmma.cpp - what warp matrices (mma.h) need of the whole warp.
 *
 * In a file of the runtime, not in the header, because one lane reads the fragments of the others: that is the
 * hardware's doing, no race, and TSan does not instrument the runtime. */
#include "hcu_core.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstring>

namespace hcu {

/* Meets the other 31 lanes with a value; the same rule as for shuffles: nothing is said about the order of memory. */
static Exchange *meet(uint64_t value, const char *file, int line) {
    Exchange *x = warp_exchange(~0u, value, WARP_MMA, file, line);
    if (x->mask != ~0u && lane() == unsigned(__builtin_ctz(x->mask)))
        bug("wmma at %s:%d: only the lanes 0x%08x of the warp are there, all 32 are needed", file, line, x->mask);
    return x;
}

/* Before a load or a store: all lanes with the same pointer, leading dimension and layout; the alignment that the CUDA
 * documentation asks for (hardware takes less in places, and fails in others). */
void wmma_access(
    const char *what, const void *p, unsigned ldm, unsigned element, unsigned layout, const char *file, int line) {
    const uint64_t mine[2] = {uint64_t(uintptr_t(p)), uint64_t(ldm) << 8 | layout};
    for (uint64_t value : mine) {
        Exchange *x = meet(value, file, line);
        unsigned other = 32;
        for (unsigned i = 0; i < 32; i++)
            if ((x->mask >> i & 1) && x->value[i] != value) other = i;
        if (other < 32 && lane() == 0)
            bug("%s at %s:%d: lane %u comes with other arguments than lane 0", what, file, line, other);
        exchange_done(x);
    }
    if (lane()) return;
    if (uintptr_t(p) % 32) bug("%s at %s:%d: address %p is not a multiple of 32 bytes", what, file, line, p);
    if (uint64_t(ldm) * element % 16)
        bug("%s at %s:%d: leading dimension %u is not a multiple of 16 bytes", what, file, line, ldm);
}

void misuse(const char *what, const char *file, int line) {
    bug("%s (%s:%d), block %u thread %u", what, file, line, blockIdx.x, threadIdx.x);
}

static long g_products; /* one OS thread runs kernels */

static float number(unsigned short bits, bool bf16) {
    if (!bf16) return __half2float(__half(__half_raw{bits}));
    uint32_t wide = uint32_t(bits) << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}
/* The first lane computes for all. Products of two 16-bit numbers are exact in FP32; sums are rounded after each of
 * them, in the order of k (hardware adds several at once, and cuts off: compare with a tolerance). */
void wmma_mma(const WmmaLane &mine, const char *file, int line) {
    Exchange *x = meet(uint64_t(uintptr_t(&mine)), file, line);
    if (x->mask == ~0u && lane() == 0) {
        g_products++;
        float a[256], b[256], d[256];
        for (unsigned e = 0; e < 256; e++) {
            const WmmaLane *l = reinterpret_cast<const WmmaLane *>(uintptr_t(x->value[wmma_lane(e)]));
            a[e] = number(l->a[e / 32], l->bf16);
            b[e] = number(l->b[e / 32], l->bf16);
            d[e] = l->c[e / 32];
        }
        for (unsigned i = 0; i < 16; i++)
            for (unsigned k = 0; k < 16; k++)
                for (unsigned j = 0; j < 16; j++)
                    d[16 * i + j] += a[16 * i + k] * b[16 * k + j];
        for (unsigned e = 0; e < 256; e++)
            reinterpret_cast<const WmmaLane *>(uintptr_t(x->value[wmma_lane(e)]))->d[e / 32] = d[e];
    }
    exchange_done(x);
    exchange_done(meet(0, file, line)); /* nobody's fragments change before they were read */
}
} // namespace hcu

extern "C" long hcu_warp_products(void) { return hcu::g_products; }
