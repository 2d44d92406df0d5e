#include "wave.h"
__constant__ float speed;
__device__ int updates;
__device__ float laplacian(const float *u, int i, int n) { return u[(i + n - 1) % n] - 2.0f * u[i] + u[(i + 1) % n]; }
