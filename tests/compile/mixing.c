/* mixing.c - must not compile, one line at a time (-DLINE=n): the storage types are there to stop this. LINE 0 must.
   They are in the public part; without the implementation each takes a tenth of the time. */
#include "../../amp.h"
int main(void) {
    amp_f16 h = amp_f16_from_f32(1.0f);
    amp_bf16 b = amp_bf16_from_f32(1.0f);
#if LINE == 1
    h = b;
#elif LINE == 2
    h = h + h;
#elif LINE == 3
    return amp_f32_from_f16(b) > 0;
#elif LINE == 4
    float f = h;
    return f > 0;
#elif LINE == 5
    amp_params *p = (amp_scaler *)0;
    amp_params_destroy(p);
#endif
    return (h.bits == 0) | (b.bits == 0);
}
