/* thrust/detail/config.h - in front of NVIDIA's: thrust's algorithms run on the host, by its own back end for
 * C++, and on
 * memory that both sides reach; so work in streams is done at once, and the host may touch device memory. */
#ifndef HOSTCUDA_THRUST_CONFIG_H
#define HOSTCUDA_THRUST_CONFIG_H
#undef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include_next <thrust/detail/config.h>
static const int hcu_uses_thrust = hcu::thrust_present();
#endif
