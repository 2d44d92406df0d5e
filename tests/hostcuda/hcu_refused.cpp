/* hcu_refused.cpp - each function of CUDA's C interfaces that this runtime does not have, by name: a call
 * stops with the
 * name and the line. The names come from NVIDIA's headers (features.txt, by features.py), so no program fails to link
 * for one of them, and none gets a result from it. */
namespace hcu {
int refused(const char *what); /* hcu_sched.cpp; its header would declare the real signatures */
}
#define REFUSED(name) \
    extern "C" int name() { return hcu::refused(#name); }
#include "hcu_refused.inc"
