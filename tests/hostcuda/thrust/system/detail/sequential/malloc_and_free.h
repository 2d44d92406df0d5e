/* malloc_and_free.h - in place of NVIDIA's: what a thrust::device_vector lies in is managed memory, for
 * kernels get it. */
#pragma once
#include <thrust/detail/config.h>
#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/system/detail/sequential/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace detail {
namespace sequential {
template <typename Policy> inline void *malloc(execution_policy<Policy> &, std::size_t n) {
    return hcu::thrust_alloc(n);
}
template <typename Policy, typename Pointer> inline void free(execution_policy<Policy> &, Pointer p) {
    hcu::thrust_free((void *)thrust::raw_pointer_cast(p));
}
} // namespace sequential
} // namespace detail
} // namespace system
THRUST_NAMESPACE_END
