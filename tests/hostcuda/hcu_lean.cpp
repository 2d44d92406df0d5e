/* hcu_lean.cpp - in place of hcu_ptx*.cpp and hcu_sass*.cpp where nobody loads compiled kernels: those are more than
 * half of the library's compile time (libhostcuda-*.a in user/). */
#include "hcu_core.h"
#include <cstdio>

namespace hcu {
bool ptx_find(const char *, const KernelDesc *, const void **, KernelDesc *) { return false; }
bool sass_launch(const char *, const KernelDesc *, void **, const GridConfig &) { return false; }
} // namespace hcu

static int refused(const char *what) {
    fprintf(stderr, "hostcuda: this program is linked with a library that has no interpreter of %s\n", what);
    return -1;
}
extern "C" int hcu_ptx_load(const char *) { return refused("PTX"); }
extern "C" int hcu_sass_load(const char *) { return refused("machine code"); }
