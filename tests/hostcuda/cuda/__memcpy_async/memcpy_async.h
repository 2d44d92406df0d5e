/* memcpy_async.h - in place of libcu++'s, which is empty for a host compiler: cuda::memcpy_async with a cuda::barrier.
 * Each thread of the group copies its part at once, before it arrives; all of them see the whole after they waited. */
#ifndef HOSTCUDA_MEMCPY_ASYNC_H
#define HOSTCUDA_MEMCPY_ASYNC_H
#include <cuda/__barrier/aligned_size.h>
#include <cuda/__barrier/async_contract_fulfillment.h>
#include <cuda/__barrier/barrier.h>
#include <stddef.h>
#include <string.h>

namespace cuda {
template <class Group, class Size, thread_scope Scope, class F>
inline async_contract_fulfillment memcpy_async(
    const Group &group, void *to, const void *from, Size bytes, barrier<Scope, F> &) {
    for (size_t i = group.thread_rank(); i < size_t(bytes); i += group.size())
        static_cast<char *>(to)[i] = static_cast<const char *>(from)[i];
    return async_contract_fulfillment::none;
}
template <class Size, thread_scope Scope, class F>
inline async_contract_fulfillment memcpy_async(void *to, const void *from, Size bytes, barrier<Scope, F> &) {
    memcpy(to, from, size_t(bytes));
    return async_contract_fulfillment::none;
}
} // namespace cuda
#endif
