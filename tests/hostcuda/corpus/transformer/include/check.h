#pragma once
#include <cstdio>
#include <cstdlib>
#define CUDA_CHECK(x) check((x), #x, __FILE__, __LINE__)
template <typename T> inline void check(T result, const char *what, const char *file, int line) {
    if (!result) return;
    fprintf(stderr, "%s:%d: %s: %d\n", file, line, what, (int)result);
    exit(EXIT_FAILURE);
}
