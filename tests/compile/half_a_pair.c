/* half_a_pair.c - must not compile: AMP_MALLOC without AMP_FREE. */
#include <stdlib.h>
#define AMP_MALLOC(n) malloc(n)
#define AMP_IMPLEMENTATION
#include "../../amp.h"
int main(void) { return 0; }
