/* execution_policy.h - NVIDIA's, and thrust::cuda::par and par_nosync: its algorithms are done at once, whatever the
 * stream. */
#ifndef HOSTCUDA_THRUST_EXECUTION_POLICY_H
#define HOSTCUDA_THRUST_EXECUTION_POLICY_H
#include <thrust/detail/config.h>
#include_next <thrust/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {
namespace detail {
struct hcu_par_t : thrust::system::cpp::detail::par_t {
    constexpr hcu_par_t() {}
    hcu_par_t on(cudaStream_t) const { return {}; }
};
} // namespace detail
inline constexpr detail::hcu_par_t par, par_nosync;
} // namespace cuda
} // namespace system
namespace cuda {
using system::cuda::par;
using system::cuda::par_nosync;
} // namespace cuda
THRUST_NAMESPACE_END
#endif
