/* impl.c - the implementation, compiled once. */
#define AMP_IMPLEMENTATION
#include "../amp.h"
