#define AMP_NO_SIMD /* compiles faster, same bits */
#define AMP_IMPLEMENTATION
#include <amp.h>
