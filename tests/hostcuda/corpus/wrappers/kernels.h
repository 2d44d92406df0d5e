#ifndef KERNELS_H
#define KERNELS_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct Model Model;
Model *model_new(int in, int out, const float *w);
int model_forward(Model *m, const float *x, float *y);
void model_free(Model *m);
extern int model_launches;
#ifdef __cplusplus
}
#endif
#endif
