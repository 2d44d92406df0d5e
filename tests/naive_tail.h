/* naive_tail.h - see naive_tail.cu. All pointers are of device memory. */
#ifndef NAIVE_TAIL_H
#define NAIVE_TAIL_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct naive_state {
    float scale, squares; /* squares: the sum of them */
    unsigned long long steps, good;
    int found;
} naive_state;
typedef struct naive_arrays {
    const void *g; /* F16 */
    float *u, *w, *m, *v;
    void *copy; /* F16 */
} naive_arrays;
/* One step; *next becomes what *s is for the step after it. 1: it ran. */
int naive_step(const naive_arrays *a, size_t n, float lr, float max_norm, naive_state *s, naive_state *next);
#ifdef __cplusplus
}
#endif
#endif
