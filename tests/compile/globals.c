/* globals.c - a program whose own globals have names that amp.h uses, too, for arguments and locals. With -Wshadow. */
struct data;
typedef int layer;
extern struct data *data, *ctx, *params;
extern int count, scale, stream, half, seed, index2, x, y, i, n, p, s, t, d;
extern float *src, *dst, *w;

#define AMP_IMPLEMENTATION
#include "../../amp.h"
#include "../../amp_cuda.cuh"

int main(void) {
    amp_precision record = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    l.record = &record;
    return amp_dtype_size(AMP_F16) != 2 || l.record->made;
}
