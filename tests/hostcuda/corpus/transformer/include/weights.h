#ifndef WEIGHTS_H
#define WEIGHTS_H
#ifdef __cplusplus
extern "C" {
#endif
void fill_weights(float *w, int n, unsigned seed, float scale); /* the same numbers everywhere */
#ifdef __cplusplus
}
#endif
#endif
