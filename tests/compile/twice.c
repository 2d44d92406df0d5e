/* twice.c - the header twice before the implementation, the implementation twice, the header once more. */
#include "../../amp.h"
#include "../../amp.h"
#define AMP_IMPLEMENTATION
#include "../../amp.h"
#include "../../amp.h"
#undef AMP_IMPLEMENTATION
#include "../../amp.h"

int second_file(void);
int main(void) { return !(amp_version() == AMP_VERSION && second_file() == AMP_VERSION); }
