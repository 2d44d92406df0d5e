/* probe.c - linked to a program on tests/hostcuda: says on stderr, after main, what the program did there. */
#include "hostcuda_ctl.h"

#include <stdio.h>

__attribute__((destructor)) static void probe(void) {
    if (hcu_leaks(1)) fprintf(stderr, "probe: leaks\n");
    fprintf(stderr, "probe: launches %ld products %ld copies %ld waits %ld\n", hcu_executed(HCU_LAUNCH),
        hcu_executed(HCU_MATMUL), hcu_executed(HCU_COPY), hcu_group_calls(HCU_SYNC));
}
