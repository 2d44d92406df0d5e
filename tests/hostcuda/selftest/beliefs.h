/* beliefs.h - what beliefs.cu and beliefs_numbers.cu share: a question has a name, and its answer is a line
 * "name: answer". nvcc compiles them for a GPU and g++ for the host runtime; truth.sh runs both and shows where the
 * answers differ: there the host runtime is wrong, or the question is one that CUDA leaves open. */
#ifndef BELIEFS_H
#define BELIEFS_H
#include "selftest.h"
#include <stdarg.h>
#ifdef AMP_HOSTCUDA
#  include "hostcuda_ctl.h"
#endif

static inline void say(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", name);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout); /* a later question may kill the process */
    va_end(arguments);
    (void)cudaGetLastError();
}
static inline void error_is(const char *name, cudaError_t e) { say(name, "%s", cudaGetErrorName(e)); }
#endif
