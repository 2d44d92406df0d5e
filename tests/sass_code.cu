/* sass_code.cu - everything that tests/sass.c counts the machine code of. */
#include "cuda_impl.cu"
#include "naive_tail.cu"
