/* hostcuda.h - the language shim: ordinary CUDA C++ as host code.
 *
 * g++ or clang++ compiles a .cu/.cuh as C++17 with this file in front (-x c++ -include hostcuda.h); nvcc never sees it.
 * Types, enums and every API prototype come from NVIDIA's own headers, so a wrong signature in the runtime is a compile
 * error.  Only the device language is supplied here.  What a source must respect to run both ways is in README.md:
 * kernels are launched with cudaLaunchKernelEx, shared memory goes through AMP_SHARED and AMP_DYN_SHARED.
 *
 * Build with -ffp-contract=off: the __f*_rn and __d*_rn operations are plain C++ arithmetic here. */
#ifndef HOSTCUDA_H
#define HOSTCUDA_H
#if defined(__CUDACC__)
#  error "hostcuda.h: for host compilers only; nvcc needs no shim"
#endif
#define AMP_HOSTCUDA 1

#define __DEVICE_LAUNCH_PARAMETERS_H__ /* it declares threadIdx and the others as constants */
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <assert.h> /* as nvcc does, so that programs do without including them: these six */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <array>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include "hostcuda_ctl.h"
#include "hostcuda_device.h"

/* ---- keywords: the toolkit defines __global__, __device__, __host__ as nothing for a host compiler --------------- */

#undef __shared__
#define __shared__ hostcuda_error_use_AMP_SHARED /* an unknown type name: the compiler stops here */
#undef __forceinline__
#define __forceinline__ inline /* a pointer to such a function is no error, as in nvcc */
#undef __inline_hint__
#define __inline_hint__
#undef __nv_pure__
#define __nv_pure__
#if !defined(__clang__)
#  define __builtin_assume(...) ((void)sizeof(!(__VA_ARGS__))) /* not evaluated */
#endif
#define __assume(...) __builtin_assume(__VA_ARGS__)
#define HCU_NOINLINE  __attribute__((noinline)) /* translate.cpp: libstdc++ has an attribute of the keyword's name */
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __cluster_dims__
#define __cluster_dims__(...) \
    _Pragma("GCC error \"hostcuda: __cluster_dims__: thread block clusters are not supported\"")
#undef __block_size__
#define __block_size__(...) _Pragma("GCC error \"hostcuda: __block_size__: thread block clusters are not supported\"")
#undef __maxnreg__
#define __maxnreg__(...)

/* Shared memory: poisoned when a block starts, with redzones (ASan) and addresses no recent block used (TSan).
 * The .cuh defines nvcc's side of the two macros under #ifndef AMP_SHARED. */
#define AMP_SHARED(T, name, n) \
    static const char name##_hcu_site = 0; \
    T(&name)[n] = *static_cast<T(*)[n]>(hcu::shared_static(&name##_hcu_site, sizeof(T[n]), alignof(T)))
#define AMP_DYN_SHARED(T, name) T *name = static_cast<T *>(hcu::shared_dynamic())

/* The quick conversions that amp_cuda.cuh has under #ifndef AMP_FROM_HALF, as the hardware makes them: of a NaN all
 * bits but the sign's are set, and FP8 is saturated. Who takes them where they are wrong gets that here, too. */
#define HCU_IS_NAN(x)       (((x) & 0x7fffffffu) > 0x7f800000u)
#define HCU_TO_HALF(x, t)   (HCU_IS_NAN(x) ? 0x7fffu : ampi_nearest_bits(x, t))
#define HCU_TO_F8(x, t)     (HCU_IS_NAN(x) ? 0x7fu : ampi_round_bits(x, t, 1))
#define AMP_FROM_HALF(h)    (((h) & 0x7fffu) > 0x7c00u ? 0x7fffffffu : ampi_decode(h, AMP_F16))
#define AMP_TO_HALVES(a, b) (HCU_TO_HALF(a, AMP_F16) | HCU_TO_HALF(b, AMP_F16) << 16)
#define AMP_TO_BF16S(a, b)  (HCU_TO_HALF(a, AMP_BF16) | HCU_TO_HALF(b, AMP_BF16) << 16)
#define AMP_TO_F8(x, t) \
    (HCU_TO_F8((x)[0], t) | HCU_TO_F8((x)[1], t) << 8 | HCU_TO_F8((x)[2], t) << 16 | HCU_TO_F8((x)[3], t) << 24)
#define AMP_FROM_F8(two, t) ampi_k_halves_of_f8(two, t) /* of the older ones, which have no such instruction */
#define AMP_F8_WHOLE(t)     0

/* What translate.cpp makes of `__shared__ T name[n];`: a typedef of hcu_type_name, and one of these. The last is for
 * `extern __shared__ T name[];` outside of functions: a pointer that the scheduler sets. */
#define HCU_SHARED_VARIABLE(name) \
    static const char name##_hcu_site = 0; \
    hcu_type_##name &name = *static_cast<hcu_type_##name *>( \
        hcu::shared_static(&name##_hcu_site, sizeof(hcu_type_##name), alignof(hcu_type_##name)));
#define HCU_SHARED_DYNAMIC(name) \
    std::remove_extent_t<hcu_type_##name> *name = \
        static_cast<std::remove_extent_t<hcu_type_##name> *>(hcu::shared_dynamic());
#define HCU_SHARED_GLOBAL(name) \
    static std::remove_extent_t<hcu_type_##name> *name; \
    static const int name##_hcu_site = hcu::shared_pointer((void **)&name);

/* What translate.cpp makes of the rest. */
#define HCU_MANAGED(name) static const int name##_hcu_known = hcu::symbol_before_main((void *)&name, sizeof name);
#define HCU_PTX \
    _Pragma( \
        "GCC error \"hostcuda: PTX in an asm statement: put it under #ifdef __CUDA_ARCH__, beside a portable branch\"")
#define HCU_LEFT_OUT \
    _Pragma("GCC error \"hostcuda: under __CUDA_ARCH__, this would be left out: it needs an #else that does the same\"")
#define HCU_CUDACC_VER_MAJOR__ (CUDART_VERSION / 1000)
#define HCU_CUDACC_VER_MINOR__ (CUDART_VERSION % 1000 / 10)

/* The caller's place, for messages: two defaulted parameters at the end of each collective operation. */
#define HCU_AT   const char *hcu_file = __builtin_FILE(), int hcu_line = __builtin_LINE()
#define HCU_HERE hcu_file, hcu_line

namespace hcu {

template <class T> using Id = typename std::common_type<T>::type; /* keeps a parameter out of template deduction */
template <class T> inline uint64_t pack(T v) {
    static_assert(sizeof(T) <= 8, "warp operations carry at most 8 bytes");
    uint64_t u = 0;
    memcpy(&u, &v, sizeof v);
    return u;
}
template <class T> inline T unpack(uint64_t u) {
    T v;
    memcpy(static_cast<void *>(&v), &u, sizeof v);
    return v;
}

/* ---- launch ---- */

/* Padding of struct parameters is cleared where the compiler can do that (gcc 11), so that stray bytes in it are not
 * taken for pointers. */
#if defined(__has_builtin)
#  if __has_builtin(__builtin_clear_padding)
#    define HCU_CLEAR_PADDING(p) __builtin_clear_padding(p)
#  endif
#endif
#if defined(HCU_CLEAR_PADDING)
template <class T> inline void *clean(T &p) {
    if constexpr (std::is_trivially_copyable_v<T>) HCU_CLEAR_PADDING(&p);
    return (void *)&p;
}
template <class T> inline constexpr bool no_padding = std::is_trivially_copyable_v<T>;
#else
template <class T> inline void *clean(T &p) { return (void *)&p; }
template <class T> inline constexpr bool no_padding = std::has_unique_object_representations_v<T>;
#endif
template <class T> inline constexpr bool to_function = std::is_function_v<std::remove_pointer_t<T>>; /* no data */
template <class T>
inline constexpr unsigned char param_kind = to_function<T> ? PARAM_OPAQUE
    : std::is_pointer_v<T>                                 ? PARAM_POINTER
    : no_padding<T>                                        ? PARAM_WORDS
                                                           : PARAM_OPAQUE;

#define HCU_UNSEEN __attribute__((no_sanitize("thread"))) /* between the scheduler and the kernel, for each thread */
template <class... P> struct Kernel {
    /* half2 has a copy constructor that copies bytes: not "trivially copyable", and a good parameter */
    static_assert((std::is_trivially_destructible_v<P> && ...), "kernel parameters are copied bytewise");
    static inline const std::array<size_t, sizeof...(P) + 1> size{sizeof(P)..., 0};
    static inline const std::array<unsigned char, sizeof...(P) + 1> kind{param_kind<P>..., 0};
    template <size_t... I> HCU_UNSEEN static void call(const void *f, void **a, std::index_sequence<I...>) {
        (void)a;
        reinterpret_cast<void (*)(P...)>(const_cast<void *>(f))(*static_cast<std::remove_reference_t<P> *>(a[I])...);
    }
    HCU_UNSEEN static void invoke(const void *f, void **a) { call(f, a, std::index_sequence_for<P...>{}); }
    static inline const KernelDesc desc{&invoke, size.data(), kind.data(), int(sizeof...(P))};
};
template <class... P> inline const void *registered(void (*kernel)(P...)) {
    const void *f = reinterpret_cast<const void *>(kernel);
    register_kernel(f, &Kernel<P...>::desc);
    return f;
}
} // namespace hcu

template <class... P, class... A>
inline cudaError_t hcu_launch_ex(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args) {
    const void *f = hcu::registered(kernel);
    auto coerced = [&](P... p) {
        void *v[sizeof...(P) + 1] = {hcu::clean(p)..., nullptr};
        return ::cudaLaunchKernelExC(config, f, v);
    };
    return coerced(std::forward<A>(args)...);
}
template <class... P>
inline cudaError_t hcu_launch_ex_c(const cudaLaunchConfig_t *config, void (*kernel)(P...), void **args) {
    return ::cudaLaunchKernelExC(config, hcu::registered(kernel), args);
}
inline cudaError_t hcu_launch_ex_c(const cudaLaunchConfig_t *config, const void *kernel, void **args) {
    return ::cudaLaunchKernelExC(config, kernel, args); /* works once the kernel was seen with its type */
}
template <class... P>
inline cudaError_t hcu_launch(
    void (*kernel)(P...), dim3 g, dim3 b, void **args, size_t smem = 0, cudaStream_t s = nullptr) {
    return ::cudaLaunchKernel(hcu::registered(kernel), g, b, args, smem, s);
}
inline cudaError_t hcu_launch(
    const void *kernel, dim3 g, dim3 b, void **args, size_t smem = 0, cudaStream_t s = nullptr) {
    return ::cudaLaunchKernel(kernel, g, b, args, smem, s); /* works once the kernel was seen with its type */
}
/* Where the API takes a `const void *` and nvcc a kernel by its name. */
#define HCU_ASK_KERNEL(function, Answer) \
    template <class... P> inline cudaError_t function(Answer *answer, void (*kernel)(P...)) { \
        return ::function(answer, hcu::registered(kernel)); \
    }
#define HCU_SET_KERNEL(function, Choice) \
    template <class... P> inline cudaError_t function(void (*kernel)(P...), Choice choice) { \
        return ::function(hcu::registered(kernel), choice); \
    }
HCU_ASK_KERNEL(cudaFuncGetAttributes, cudaFuncAttributes)
HCU_ASK_KERNEL(cudaFuncGetName, const char *)
HCU_ASK_KERNEL(cudaGetFuncBySymbol, cudaFunction_t)
HCU_ASK_KERNEL(cudaGetKernel, cudaKernel_t)
HCU_SET_KERNEL(cudaFuncSetCacheConfig, cudaFuncCache)
HCU_SET_KERNEL(cudaFuncSetSharedMemConfig, cudaSharedMemConfig)
#undef HCU_ASK_KERNEL
#undef HCU_SET_KERNEL
template <class... P> inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute a, int value) {
    return ::cudaFuncSetAttribute(hcu::registered(kernel), a, value);
}
#define cudaLaunchKernelEx  hcu_launch_ex
#define cudaLaunchKernelExC hcu_launch_ex_c
#define cudaLaunchKernel    hcu_launch

/* ---- <<< >>>, from translate.cpp: kernel<<<g, b>>>(x) becomes HCU_LAUNCH(kernel)(hcu::config(g, b))(x) ----------- */

#ifndef cudaStreamTailLaunch /* streams of a kernel's own launches */
#  define cudaStreamTailLaunch    ((cudaStream_t)3)
#  define cudaStreamFireAndForget ((cudaStream_t)4)
#endif
namespace hcu {
inline cudaLaunchConfig_t config(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) {
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = block;
    c.dynamicSmemBytes = shared;
    c.stream = stream;
    return c;
}
/* A template, overloads, or arguments by default: a call chooses. `site` calls the kernel and holds nothing. */
template <class Site, class... A> inline void call_site(A... a) {
    alignas(Site) static const char nothing[sizeof(Site)] = {};
    (*reinterpret_cast<const Site *>(nothing))(a...);
}
/* A kernel whose type is known: its arguments are converted as in a call. */
template <class Site, class... P> struct TypedLaunch {
    void (*kernel)(P...);
    const char *name;
    cudaLaunchConfig_t c;
    void operator()(P... p) const {
        void *v[sizeof...(P) + 1] = {clean(p)..., nullptr};
        const void *f = registered(kernel);
        name_kernel(f, name);
        launch_result(::cudaLaunchKernelExC(&c, f, v), name);
    }
    template <class... A> std::enable_if_t<(sizeof...(A) < sizeof...(P))> operator()(A... a) const {
        by_default(std::index_sequence_for<A...>{}, a...);
    }
    template <size_t... I, class... A> void by_default(std::index_sequence<I...>, A... a) const {
        using All = std::tuple<P...>;
        TypedLaunch<Site, std::tuple_element_t<I, All>...>{&call_site<Site, std::tuple_element_t<I, All>...>, name, c}(
            a...);
    }
};
template <class Site> struct TakeKernel {
    const char *name;
    template <class... P> TypedLaunch<Site, P...> operator()(void (*k)(P...)) const { return {k, name, {}}; }
};
template <class Site> struct DeducedLaunch {
    const char *name;
    cudaLaunchConfig_t c;
    template <class... A> void operator()(A... a) const {
        TypedLaunch<Site, A...>{&call_site<Site, A...>, name, c}(a...);
    }
};
template <class Launch> struct Unconfigured {
    Launch launch;
    Launch operator()(const cudaLaunchConfig_t &c) {
        launch.c = c;
        return launch;
    }
};
template <class Direct, class Site> inline auto launcher(Direct direct, Site, const char *name) {
    using Take = TakeKernel<Site>;
    if constexpr (std::is_invocable_v<Direct, Take>)
        return Unconfigured<decltype(direct(Take{}))>{direct(Take{name})};
    else
        return Unconfigured<DeducedLaunch<Site>>{{name, {}}};
}
} // namespace hcu
#define HCU_LAUNCH(...) \
    hcu::launcher([&](auto hcu_take) -> decltype(hcu_take(__VA_ARGS__)) { return hcu_take(__VA_ARGS__); }, \
        [&](auto... hcu_a) { __VA_ARGS__(hcu_a...); }, #__VA_ARGS__)

template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(
    void (*kernel)(P...), dim3 g, dim3 b, void **args, size_t shared = 0, cudaStream_t s = nullptr) {
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t c = hcu::config(g, b, shared, s);
    c.attrs = &together;
    c.numAttrs = 1;
    return ::cudaLaunchKernelExC(&c, hcu::registered(kernel), args);
}
/* ---- __device__ and __constant__ variables: plain globals, which kernels read where they lie --------------------- */

template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *src, size_t n, size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t s = nullptr) {
    return hcu::symbol_copy((void *)&symbol, sizeof symbol, (void *)src, n, offset, kind, s, true);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t n, size_t offset = 0,
    cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t s = nullptr) {
    return hcu::symbol_copy((void *)&symbol, sizeof symbol, dst, n, offset, kind, s, false);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbol(
    T &symbol, const void *src, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    cudaError_t e = cudaMemcpyToSymbolAsync(symbol, src, n, offset, kind);
    return e != cudaSuccess ? e : hcu::symbol_copied();
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(
    void *dst, const T &symbol, size_t n, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    cudaError_t e = cudaMemcpyFromSymbolAsync(dst, symbol, n, offset, kind);
    return e != cudaSuccess ? e : hcu::symbol_copied();
}
/* ---- the API's templates ---- */

template <class... P>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(
    int *min_grid, int *block, void (*kernel)(P...), size_t shared = 0, int limit = 0) {
    (void)kernel;
    (void)shared;
    *block = limit > 0 && limit < 1024 ? limit / 32 * 32 ? limit / 32 * 32 : limit : 1024;
    return ::cudaDeviceGetAttribute(min_grid, cudaDevAttrMultiProcessorCount, 0);
}
template <class P, class T> inline cudaError_t cudaGetSymbolAddress(P **out, const T &symbol) {
    *out = static_cast<P *>((void *)&symbol);
    return hcu::symbol_register((void *)&symbol, sizeof symbol);
}
template <class T> inline cudaError_t cudaGetSymbolSize(size_t *out, const T &symbol) {
    *out = sizeof symbol;
    return cudaSuccess;
}

/* ---- barriers and fences ----------------------------------------------------------------------------------------- */

inline void __syncthreads(HCU_AT) { hcu::block_barrier(0, hcu::BARRIER_PLAIN, HCU_HERE); }
inline int __syncthreads_or(int p, HCU_AT) { return hcu::block_barrier(p, hcu::BARRIER_OR, HCU_HERE); }
inline int __syncthreads_and(int p, HCU_AT) { return hcu::block_barrier(p, hcu::BARRIER_AND, HCU_HERE); }
inline int __syncthreads_count(int p, HCU_AT) { return hcu::block_barrier(p, hcu::BARRIER_COUNT, HCU_HERE); }
inline void __syncwarp(unsigned mask = 0xffffffffu, HCU_AT) {
    hcu::exchange_done(hcu::warp_exchange(mask, 0, hcu::WARP_SYNC, HCU_HERE));
}
inline unsigned __isShared(const void *p) { return hcu::in_shared(p); }
inline unsigned __isGlobal(const void *p) { return hcu::in_global(p); }
inline unsigned __isLocal(const void *p) { return !hcu::in_shared(p) && !hcu::in_global(p); }
inline void __threadfence() { hcu::fence(); }
inline void __threadfence_block() { hcu::fence(); }
inline void __threadfence_system() { hcu::fence(); }
inline void cudaGridDependencySynchronize() {} /* the kernel before this one has ended, whatever its launch allowed */
inline void cudaTriggerProgrammaticLaunchCompletion() {}

/* ---- shuffles, votes, reductions --------------------------------------------------------------------------------- */

namespace hcu {
/* Out of the segment: the lane's own value, as in CUDA.  From a lane that does not take part: undefined in CUDA, all
 * ones (a NaN) here. */
template <class T> inline T shfl(unsigned mask, T v, unsigned source, bool in_segment, HCU_AT) {
    Exchange *x = warp_exchange(mask, pack(v), WARP_SHFL, HCU_HERE);
    uint64_t r = !in_segment ? pack(v) : (x->mask >> source & 1) ? x->value[source] : ~0ull;
    exchange_done(x);
    return unpack<T>(r);
}
inline unsigned vote(unsigned mask, int p, WarpOp op, HCU_AT) {
    Exchange *x = warp_exchange(mask, p != 0, op, HCU_HERE);
    unsigned ballot = 0, all = x->mask;
    for (unsigned i = 0; i < 32; i++)
        if ((all >> i & 1) && x->value[i]) ballot |= 1u << i;
    exchange_done(x);
    return op == WARP_BALLOT ? ballot : op == WARP_ANY ? ballot != 0 : ballot == all;
}
template <class T, class F> inline T reduce(unsigned mask, T v, F combine, HCU_AT) {
    Exchange *x = warp_exchange(mask, pack(v), WARP_REDUCE, HCU_HERE);
    T acc{};
    bool first = true;
    for (unsigned i = 0; i < 32; i++)
        if (x->mask >> i & 1) {
            T e = unpack<T>(x->value[i]);
            acc = first ? e : combine(acc, e);
            first = false;
        }
    exchange_done(x);
    return acc;
}
template <class T> inline unsigned match_any(unsigned mask, T v, HCU_AT) {
    Exchange *x = warp_exchange(mask, pack(v), WARP_MATCH, HCU_HERE);
    unsigned same = 0;
    for (unsigned i = 0; i < 32; i++)
        if ((x->mask >> i & 1) && x->value[i] == pack(v)) same |= 1u << i;
    exchange_done(x);
    return same;
}
} // namespace hcu

inline unsigned __activemask(HCU_AT) { return hcu::coalesced_lanes(HCU_HERE); }
inline unsigned __ballot_sync(unsigned m, int p, HCU_AT) { return hcu::vote(m, p, hcu::WARP_BALLOT, HCU_HERE); }
inline int __any_sync(unsigned m, int p, HCU_AT) { return int(hcu::vote(m, p, hcu::WARP_ANY, HCU_HERE)); }
inline int __all_sync(unsigned m, int p, HCU_AT) { return int(hcu::vote(m, p, hcu::WARP_ALL, HCU_HERE)); }
template <class T> inline unsigned __match_any_sync(unsigned m, T v, HCU_AT) { return hcu::match_any(m, v, HCU_HERE); }

template <class T> inline unsigned __match_all_sync(unsigned m, T v, int *all, HCU_AT) {
    unsigned same = hcu::match_any(m, v, HCU_HERE), live = m & hcu::warp_live_mask();
    *all = same == live;
    return *all ? m : 0;
}

template <class T> inline T __shfl_sync(unsigned m, T v, int source, int width = 32, HCU_AT) {
    unsigned base = hcu::lane() & ~unsigned(width - 1);
    return hcu::shfl(m, v, base + (unsigned(source) & unsigned(width - 1)), true, HCU_HERE);
}
template <class T> inline T __shfl_xor_sync(unsigned m, T v, int lane_mask, int width = 32, HCU_AT) {
    unsigned l = hcu::lane(), s = l ^ unsigned(lane_mask), base = ~unsigned(width - 1);
    return hcu::shfl(m, v, s & 31u, (s & base) <= (l & base), HCU_HERE);
}
template <class T> inline T __shfl_down_sync(unsigned m, T v, unsigned delta, int width = 32, HCU_AT) {
    unsigned l = hcu::lane(), s = l + (delta & 31u); /* five bits of it count */
    return hcu::shfl(m, v, s & 31u, s < (l & ~unsigned(width - 1)) + unsigned(width), HCU_HERE);
}
template <class T> inline T __shfl_up_sync(unsigned m, T v, unsigned delta, int width = 32, HCU_AT) {
    unsigned l = hcu::lane(), base = l & ~unsigned(width - 1), d = delta & 31u;
    return hcu::shfl(m, v, (l - d) & 31u, l - base >= d, HCU_HERE);
}

#define HCU_REDUCE(name, T, expression) \
    inline T name(unsigned m, T v, HCU_AT) { \
        return hcu::reduce(m, v, [](T a, T b) -> T { return expression; }, HCU_HERE); \
    }
HCU_REDUCE(__reduce_add_sync, unsigned, a + b)
HCU_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
HCU_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
HCU_REDUCE(__reduce_add_sync, int, int(unsigned(a) + unsigned(b)))
HCU_REDUCE(__reduce_min_sync, int, a < b ? a : b)
HCU_REDUCE(__reduce_max_sync, int, a > b ? a : b)
HCU_REDUCE(__reduce_and_sync, unsigned, a &b)
HCU_REDUCE(__reduce_or_sync, unsigned, a | b)
HCU_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef HCU_REDUCE

/* ---- atomics: relaxed, as in CUDA; real atomics, so that TSan models them ---------------------------------------- */

namespace hcu {
template <size_t Bytes> struct Word {
    static_assert(Bytes == 0, "hostcuda: atomics of 128 bits are not supported, only of 16, 32 and 64");
    using type = uint64_t;
};
template <> struct Word<2> { typedef uint16_t __attribute__((may_alias)) type; };
template <> struct Word<4> { typedef uint32_t __attribute__((may_alias)) type; };
template <> struct Word<8> { typedef uint64_t __attribute__((may_alias)) type; };

template <class T, class F> inline T atomic_update(T *p, F next) {
    using W = typename Word<sizeof(T)>::type;
    atomic_hook(p);
    W *word = reinterpret_cast<W *>(p), old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T before = unpack<T>(old), after = next(before);
        W wanted = W(pack(after));
        if (__atomic_compare_exchange_n(word, &old, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return before;
    }
}
} // namespace hcu
/* Of floats in global memory, a denormal counts as 0, and is 0 as a sum; in shared memory it is not. */
namespace hcu {
template <class T> inline void vector_in_global(T *p, HCU_AT) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T)) misaligned(p, sizeof(T), HCU_HERE);
    if (in_shared(p)) misuse("atomicAdd of float2 or float4 in shared memory: only in global memory", HCU_HERE);
}
template <class T> inline T atomic_sum(T *, T old, T v) { return T(old + v); }
inline float atomic_sum(float *p, float old, float v) {
    return in_shared(p) ? old + v : flushed(flushed(old) + flushed(v));
}
} // namespace hcu
#define HCU_ATOMIC(name, expression) \
    template <class T> inline T name(T *p, hcu::Id<T> v) { \
        return hcu::atomic_update(p, [&](T old) -> T { return T(expression); }); \
    }
HCU_ATOMIC(atomicAdd, hcu::atomic_sum(p, old, v))
/* Of sm_90: each element is added by itself. */
inline float2 atomicAdd(float2 *p, float2 v, HCU_AT) {
    hcu::vector_in_global(p, HCU_HERE);
    return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)};
}
inline float4 atomicAdd(float4 *p, float4 v, HCU_AT) {
    hcu::vector_in_global(p, HCU_HERE);
    return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}
HCU_ATOMIC(atomicSub, old - v)
HCU_ATOMIC(atomicMin, v < old ? v : old)
HCU_ATOMIC(atomicMax, old < v ? v : old)
HCU_ATOMIC(atomicAnd, old &v)
HCU_ATOMIC(atomicOr, old | v)
HCU_ATOMIC(atomicXor, old ^ v)
HCU_ATOMIC(atomicExch, ((void)old, v))
#undef HCU_ATOMIC
inline unsigned atomicInc(unsigned *p, unsigned v) {
    return hcu::atomic_update(p, [&](unsigned old) { return old >= v ? 0u : old + 1u; });
}
inline unsigned atomicDec(unsigned *p, unsigned v) {
    return hcu::atomic_update(p, [&](unsigned old) { return old == 0 || old > v ? v : old - 1u; });
}
template <class T>
inline T atomicCAS(T *p, hcu::Id<T> compare, hcu::Id<T> v) { /* compares bits, as the hardware does */
    return hcu::atomic_update(p, [&](T old) -> T { return hcu::pack(old) == hcu::pack(T(compare)) ? T(v) : old; });
}

/* ---- loads and stores with a cache hint: alignment is checked here; UBSan and PTX check plain ones ---- */

namespace hcu {
template <class T> inline T *aligned(T *p, HCU_AT) {
    if (reinterpret_cast<uintptr_t>(p) % alignof(T)) misaligned(p, alignof(T), HCU_HERE);
    return p;
}
} // namespace hcu
#define HCU_LOAD(name) \
    template <class T> inline T name(const T *p, HCU_AT) { return *hcu::aligned(p, HCU_HERE); }
#define HCU_STORE(name) \
    template <class T> inline void name(T *p, hcu::Id<T> v, HCU_AT) { *hcu::aligned(p, HCU_HERE) = v; }
HCU_LOAD(__ldg)
HCU_LOAD(__ldca)
HCU_LOAD(__ldcg)
HCU_LOAD(__ldcs)
HCU_LOAD(__ldlu)
HCU_LOAD(__ldcv)
HCU_STORE(__stwb)
HCU_STORE(__stcg)
HCU_STORE(__stcs)
HCU_STORE(__stwt)
#undef HCU_LOAD
#undef HCU_STORE

/* ---- bits ---------------------------------------------------------------------------------------------------- */

inline float __int_as_float(int v) { return hcu::unpack<float>(uint32_t(v)); }
inline float __uint_as_float(unsigned v) { return hcu::unpack<float>(v); }
inline int __float_as_int(float v) { return int(uint32_t(hcu::pack(v))); }
inline unsigned __float_as_uint(float v) { return unsigned(hcu::pack(v)); }
inline double __longlong_as_double(long long v) { return hcu::unpack<double>(uint64_t(v)); }
inline long long __double_as_longlong(double v) { return (long long)hcu::pack(v); }
inline int __double2hiint(double v) { return int(hcu::pack(v) >> 32); }
inline int __double2loint(double v) { return int(uint32_t(hcu::pack(v))); }
inline double __hiloint2double(int hi, int lo) {
    return hcu::unpack<double>(uint64_t(uint32_t(hi)) << 32 | uint32_t(lo));
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned long long __brevll(unsigned long long v) {
    unsigned long long r = 0;
    for (int i = 0; i < 64; i++)
        r |= (v >> i & 1) << (63 - i);
    return r;
}
inline unsigned __brev(unsigned v) { return unsigned(__brevll(v) >> 32); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= unsigned(bytes >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return unsigned((uint64_t(hi) << 32 | lo) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return unsigned((uint64_t(hi) << 32 | lo) >> (n & 31));
}
inline int __mulhi(int a, int b) { return int((int64_t(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
namespace hcu {
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;
} // namespace hcu
inline long long __mul64hi(long long a, long long b) { return (long long)(hcu::Int128(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(hcu::Uint128(a) * b >> 64);
}

/* ---- arithmetic with explicit rounding (to nearest even) --------------------------------------------------------- */

namespace hcu { /* a GPU's arithmetic gives one NaN, whichever went in */
inline float one_nan(float v) { return v == v ? v : unpack<float>(0x7fffffffu); }
inline double one_nan(double v) { return v; } /* not looked at on a GPU */
} // namespace hcu
inline float __fadd_rn(float a, float b) { return hcu::one_nan(a + b); }
inline float __fsub_rn(float a, float b) { return hcu::one_nan(a - b); }
inline float __fmul_rn(float a, float b) { return hcu::one_nan(a * b); }
inline float __fdiv_rn(float a, float b) { return hcu::one_nan(a / b); }
inline float __frcp_rn(float a) { return hcu::one_nan(1.0f / a); }
inline float __fsqrt_rn(float a) { return hcu::one_nan(sqrtf(a)); }
inline float __fmaf_rn(float a, float b, float c) { return hcu::one_nan(fmaf(a, b, c)); }
inline float __fmaf_ieee_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

#include "hostcuda_math.h"
/* approximate functions: exact here, documented ulp bounds on the GPU; compare with a tolerance */
inline float __frsqrt_rn(float a) { return rsqrtf(a); }
inline float __fdividef(float a, float b) {                       /* by a reciprocal that is 0 for the largest */
    const float size = fabsf(b), huge = 8.507059173023461586e37f; /* 2^126 */
    return size > huge && size <= 3.402823466e38f ? a * copysignf(0.0f, b) : a / b;
}
inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }
#define __expf(x)    expf(x) /* macros: glibc declares functions of these names */
#define __logf(x)    logf(x)
#define __log2f(x)   log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)

/* ---- conversions: saturating; NaN gives 0, or the sign bit alone where a 64-bit type takes part ------------------ */

namespace hcu {
template <class I, class F> inline I to_integer(F rounded) {
    constexpr I lowest = I(std::is_signed_v<I> ? I(1) << (8 * sizeof(I) - 2) : I(0)) * I(-2);
    constexpr I highest = I(~lowest);
    if (rounded != rounded) return sizeof(I) == 8 || sizeof(F) == 8 ? I(uint64_t(1) << (8 * sizeof(I) - 1)) : I(0);
    if (rounded >= F(highest)) return highest;
    return rounded <= F(lowest) ? lowest : I(rounded);
}
} // namespace hcu
#define HCU_TO_INTEGER(from, F, to, I) \
    inline I __##from##2##to##_rn(F v) { return hcu::to_integer<I>(F(nearbyint(v))); } \
    inline I __##from##2##to##_rz(F v) { return hcu::to_integer<I>(F(trunc(v))); } \
    inline I __##from##2##to##_rd(F v) { return hcu::to_integer<I>(F(floor(v))); } \
    inline I __##from##2##to##_ru(F v) { return hcu::to_integer<I>(F(ceil(v))); }
HCU_TO_INTEGER(float, float, int, int)
HCU_TO_INTEGER(float, float, uint, unsigned)
HCU_TO_INTEGER(float, float, ll, long long)
HCU_TO_INTEGER(float, float, ull, unsigned long long)
HCU_TO_INTEGER(double, double, int, int)
HCU_TO_INTEGER(double, double, uint, unsigned)
HCU_TO_INTEGER(double, double, ll, long long)
HCU_TO_INTEGER(double, double, ull, unsigned long long)
#undef HCU_TO_INTEGER
inline float __double2float_rn(double v) { return float(v); }
inline float __int2float_rn(int v) { return float(v); }
inline float __uint2float_rn(unsigned v) { return float(v); }
inline float __ll2float_rn(long long v) { return float(v); }
inline float __ull2float_rn(unsigned long long v) { return float(v); }
inline double __int2double_rn(int v) { return double(v); }
inline double __uint2double_rn(unsigned v) { return double(v); }
inline double __ll2double_rn(long long v) { return double(v); }
inline double __ull2double_rn(unsigned long long v) { return double(v); }

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>) return hcu::smaller(C(a), C(b));
    return C(b) < C(a) ? C(b) : C(a);
}
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>) return hcu::larger(C(a), C(b));
    return C(a) < C(b) ? C(b) : C(a);
}
inline long long clock64() { return hcu::clock_ns(); }
inline void __nanosleep(unsigned) {}
#define __trap() hcu::device_trap(__FILE__, __LINE__)

#include "hostcuda_half.h"
#include "hostcuda_groups.h"
#endif
