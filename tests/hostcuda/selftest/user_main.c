/* user_main.c - a plain C program with a CUDA backend compiled elsewhere (user_impl.cu): how a test of the backend is
   linked. */
#include <stdio.h>
#include "hostcuda_ctl.h"
int user_double(const float *in, float *out, int n);

int main(void) {
    float in[5] = {1, 2, 3, 4, 5}, out[5] = {0};
    int status = user_double(in, out, 5), ok = status == 0 && out[0] == 2 && out[4] == 10;
    ok = ok && hcu_group_calls(HCU_LAUNCH) == 1 && hcu_leaks(1) == 0;
    printf("user_main: %d passed, %d failed\n", ok, !ok);
    return !ok;
}
