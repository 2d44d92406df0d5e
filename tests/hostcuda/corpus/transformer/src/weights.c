#include "weights.h"
void fill_weights(float *w, int n, unsigned seed, float scale) {
    int i;
    for (i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = scale * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
}
