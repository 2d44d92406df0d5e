/* sass_bound.h - from instructions per element, as tests/expected/sass.txt has them, to the share of a GPU's nominal
   memory bandwidth that they allow at most, if nothing ever waits. For tests/sass.c and bench/check_gpu.cu; C99 and
   C++. */
#ifndef SASS_BOUND_H
#define SASS_BOUND_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns of tests/expected/sass.txt after the sum of all; as hcu_pipe. */
enum {
    SASS_ALU,
    SASS_FMA,
    SASS_IMAD,
    SASS_FP64,
    SASS_CVT64,
    SASS_XU,
    SASS_LSU,
    SASS_BRANCH,
    SASS_UNIFORM,
    SASS_OTHER,
    SASS_PIPES
};

/* Results per clock and SM. None of these numbers was measured, and none was looked up for this table:
   - alu, fma, imad, fp64, xu: recalled from "Throughput of Native Arithmetic Instructions" in NVIDIA's CUDA C++
     Programming Guide (integer add, compare, logic, shift; FP32 add, multiply, multiply-add; 32-bit integer
     multiply-add; FP64; approximations), which says them by compute capability; those of 10.0 and 12.0 are taken to be
     those of 9.0 and 8.9.
   - cvt64, conversions from and to 64 bits: from the same table; that on chips with few FP64 units they use the same
     units is an assumption. bench/check_gpu.cu asks the GPU.
   - lsu, SMs, boost clock, bandwidth: recalled from NVIDIA's architecture papers and data sheets.
   Each of an SM's four schedulers issues one instruction per clock. That IMAD.WIDE, whose result has 64 bits, costs no
   more than IMAD is an assumption, too: Philox consists of it. */
typedef struct gpu {
    const char *name;
    int arch, sms;
    double ghz, gb_per_s;
    double alu, fma, imad, fp64, cvt64, xu, lsu;
    int fp64_shared;
} gpu;
static const gpu gpus[] = {
    /* name    arch  SMs   GHz   GB/s  alu  fma imad fp64 cvt64 xu lsu shared */
    {"T4", 75, 40, 1.350, 320, 64, 64, 64, 2, 2, 16, 16, 1},
    {"A100", 80, 108, 1.410, 2039, 64, 64, 64, 32, 16, 16, 32, 0},
    {"H100", 90, 132, 1.755, 3350, 64, 128, 64, 64, 16, 16, 32, 0},
    {"H200", 90, 132, 1.755, 4800, 64, 128, 64, 64, 16, 16, 32, 0},
    {"B200", 100, 148, 1.965, 8000, 64, 128, 64, 64, 16, 16, 32, 0},
    {"3060", 86, 28, 1.777, 360, 64, 128, 64, 2, 2, 16, 16, 1},
    {"3090", 86, 82, 1.695, 936, 64, 128, 64, 2, 2, 16, 16, 1},
    {"4090", 89, 128, 2.520, 1008, 64, 128, 64, 2, 2, 16, 16, 1},
    {"5070", 120, 48, 2.512, 672, 64, 128, 64, 2, 2, 16, 16, 1},
    {"5090", 120, 170, 2.407, 1792, 64, 128, 64, 2, 2, 16, 16, 1},
};
#define GPUS (sizeof gpus / sizeof *gpus)

/* The share of nominal bandwidth that the counts allow; *limit: what it is limited by. */
static double sass_bound(const gpu *g, const double *pipe, double all, double bytes, const char **limit) {
    double worst = 0, fp64 = pipe[SASS_FP64] / g->fp64, cvt64 = pipe[SASS_CVT64] / g->cvt64;
    const char *name[] = {"issue", "ALU", "FMA", "IMAD", "FP64", "XU", "LSU"};
    double clocks[7];
    size_t i;
    clocks[0] = all / 128;
    clocks[1] = pipe[SASS_ALU] / g->alu;
    clocks[2] = (pipe[SASS_FMA] + pipe[SASS_IMAD]) / g->fma;
    clocks[3] = pipe[SASS_IMAD] / g->imad;
    clocks[4] = g->fp64_shared ? fp64 + cvt64 : fp64 > cvt64 ? fp64 : cvt64;
    clocks[5] = pipe[SASS_XU] / g->xu;
    clocks[6] = pipe[SASS_LSU] / g->lsu;
    for (i = 0; i < 7; i++)
        if (clocks[i] > worst) {
            worst = clocks[i];
            *limit = name[i];
        }
    return worst > 0 ? bytes / worst / (g->gb_per_s / (g->sms * g->ghz)) : INFINITY;
}

/* What FILE says of a row, by pipe, too; 0: nothing. */
static double sass_recorded(const char *path, int arch, const char *row, const char *data, double *pipe) {
    char line[256], want[128];
    double count = 0;
    FILE *f = fopen(path, "r");
    size_t n;
    int p;
    if (!f) return 0;
    snprintf(want, sizeof want, "%d\t%s\t%s\t", arch, row, data);
    n = strlen(want);
    while (fgets(line, sizeof line, f)) {
        char *at = line + n;
        if (strncmp(line, want, n) != 0) continue;
        count = strtod(at, &at);
        for (p = 0; p < SASS_PIPES; p++)
            pipe[p] = strtod(at, &at);
    }
    fclose(f);
    return count;
}
#endif
