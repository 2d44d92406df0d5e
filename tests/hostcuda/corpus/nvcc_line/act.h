#ifndef ACT_H
#define ACT_H
void gelu(float *device, int n);
void silu(float *device, int n);
#endif
