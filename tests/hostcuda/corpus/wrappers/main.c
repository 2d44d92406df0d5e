/* A C program (C99) over kernels in a shared library: extern "C" wrappers, an opaque struct. */
#include "kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    enum { IN = 50, OUT = 70 };
    float *w = malloc(sizeof *w * IN * OUT), x[IN], y[OUT];
    double worst = 0;
    for (int i = 0; i < IN * OUT; i++)
        w[i] = (float)((i * 37 % 101) - 50) / 50;
    for (int i = 0; i < IN; i++)
        x[i] = (float)(i % 7 - 3);
    Model *m = model_new(IN, OUT, w);
    if (!m || model_forward(m, x, y)) return 1;
    for (int j = 0; j < OUT; j++) {
        double s = 0;
        for (int i = 0; i < IN; i++)
            s += (double)w[j * IN + i] * x[i];
        worst = fmax(worst, fabs((s > 0 ? s : 0.1f * s) - y[j]));
    }
    printf("wrappers: %s, worst difference %.1e\n", worst < 1e-4 && model_launches == 1 ? "ok" : "WRONG", worst);
    model_free(m);
    free(w);
    return !(worst < 1e-4);
}
