/* model.h - y = w x + b in FP16, with globals of names that everybody uses. */
#ifndef MODEL_H
#define MODEL_H
#include <amp.h>

#ifdef __cplusplus
extern "C" {
#endif
extern float data[64];
extern size_t count;
extern float scale;
extern int stream;
extern const float *src;
extern float *dst;

/* The gradients of the mean squared error of `count` points, times the loss scale, into the set's FP16 gradients. */
float model_backward(amp_params *set, amp_scaler *scaler);
#ifdef __cplusplus
}
#endif
#endif
