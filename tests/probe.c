/* probe.c - linked to a program on tests/hostcuda: says on stderr, after main, what the program did there; and, if it
   ran machine code (HCU_SASS), what each kernel did: instructions that warps issued, all and by pipe. */
#include "hostcuda_ctl.h"

#include <stdio.h>

static void kernels(void) {
    const char *name;
    int i, p;
    for (i = 0; (name = hcu_sass_kernel(i)) != NULL; i++) {
        hcu_sass_count c = hcu_sass_counts(name);
        fprintf(stderr, "kernel: %s %ld %llu", name, c.launches, c.issued);
        for (p = 0; p < HCU_PIPES; p++)
            fprintf(stderr, " %llu", c.pipe[p]);
        fprintf(stderr, "\n");
    }
}
__attribute__((destructor)) static void probe(void) {
    if (hcu_leaks(1)) fprintf(stderr, "probe: leaks\n");
    kernels();
    fprintf(stderr, "probe: launches %ld products %ld copies %ld waits %ld\n", hcu_executed(HCU_LAUNCH),
        hcu_executed(HCU_MATMUL), hcu_executed(HCU_COPY), hcu_group_calls(HCU_SYNC));
}
