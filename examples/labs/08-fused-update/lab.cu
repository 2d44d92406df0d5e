/* Lab 8: the update of mixed-precision training as one pass over memory: unscale, look for overflow, Adam on FP32
 * masters, new FP16 weights. The page is README.md; `make lab N=8` builds, runs and checks. */
#include <cuda_fp16.h>
#include "lab.h"

struct adam { float lr, beta1, beta2, eps; };

/* One per training run, in device memory. The host never reads it, so no step waits for the GPU. */
struct record {
    int overflow; /* 0; inspect makes it 1 if a gradient is Inf or NaN, decide makes it 0 again */
    int skip;     /* of this step: decide writes it, update reads it */
    int steps;    /* how many were taken; a skipped one does not count */
};

/* All arrays have n elements, in device memory. */
struct weights {
    size_t n;
    const __half *gradient; /* times the loss scale */
    float *master, *m, *v;  /* FP32: the weights, and Adam's two means */
    __half *model;          /* FP16: the master, rounded; the next forward pass reads it */
};

static __global__ void inspect(weights w, record *r) {
    /* YOUR PART: look at each gradient. Many threads may find one at the same time. */
    (void)w, (void)r;
}

static __global__ void decide(record *r) { /* one thread, between the two others */
    /* YOUR PART: skip, steps, and overflow for the next step. */
    (void)r;
}

static __global__ void update(weights w, const record *r, adam a, float inverse_scale) {
    /* YOUR PART: nothing if the step is skipped. Else for each element the formula of README.md, with t = r->steps. */
    (void)w, (void)r, (void)a, (void)inverse_scale;
}

/* The checker calls this for each step. The grid is smaller than n, so a thread takes more than one element. */
void lab_step(weights w, record *r, adam a, float inverse_scale) {
    LAB_TODO("the body of inspect, of decide and of update"); /* remove this line then */
    inspect<<<2, 64>>>(w, r);
    decide<<<1, 1>>>(r);
    update<<<2, 64>>>(w, r, a, inverse_scale);
}
