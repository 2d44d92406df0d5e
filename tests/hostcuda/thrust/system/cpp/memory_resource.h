/* memory_resource.h - NVIDIA's, with managed memory in place of new and delete: kernels are given what lies in it. */
#ifndef HOSTCUDA_THRUST_MEMORY_RESOURCE_H
#define HOSTCUDA_THRUST_MEMORY_RESOURCE_H
#include <thrust/detail/config.h>
#include <thrust/mr/fancy_pointer_resource.h>
#include <thrust/mr/new.h>
#include <thrust/system/cpp/pointer.h>

THRUST_NAMESPACE_BEGIN
namespace mr {
class hcu_managed_resource final : public memory_resource<> {
  public:
    void *do_allocate(std::size_t bytes, std::size_t) override { return hcu::thrust_alloc(bytes); }
    void do_deallocate(void *p, std::size_t, std::size_t) override { hcu::thrust_free(p); }
};
} // namespace mr
THRUST_NAMESPACE_END
#define new_delete_resource hcu_managed_resource
#include_next <thrust/system/cpp/memory_resource.h>
#undef new_delete_resource
#endif
