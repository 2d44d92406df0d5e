#pragma once
#include <cuda_runtime.h>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace expr {
struct base {};
template <class T> inline constexpr bool is_expr = std::is_base_of_v<base, std::decay_t<T>>;
template <class T> struct view : base {
    using value_type = T;
    const T *p;
    __host__ __device__ explicit view(const T *p) : p(p) {}
    __host__ __device__ T operator[](std::size_t i) const { return p[i]; }
};
template <class T> struct scalar : base {
    T v;
    __host__ __device__ explicit scalar(T v) : v(v) {}
    __host__ __device__ T operator[](std::size_t) const { return v; }
};
template <class Op, class... E> struct node;
template <class Op, class A> struct node<Op, A> : base {
    A a;
    __host__ __device__ explicit node(A a) : a(a) {}
    __host__ __device__ auto operator[](std::size_t i) const { return Op::apply(a[i]); }
};
template <class Op, class A, class B> struct node<Op, A, B> : base {
    A a;
    B b;
    __host__ __device__ node(A a, B b) : a(a), b(b) {}
    __host__ __device__ auto operator[](std::size_t i) const { return Op::apply(a[i], b[i]); }
};
#define EXPR_BINARY(NAME, OP) \
    struct NAME { \
        template <class X, class Y> static __host__ __device__ auto apply(X x, Y y) { return x OP y; } \
    }; \
    template <class A, class B, std::enable_if_t<is_expr<A> && is_expr<B>, int> = 0> \
    auto operator OP(const A &a, const B &b) { \
        return node<NAME, A, B>(a, b); \
    } \
    template <class A, std::enable_if_t<is_expr<A>, int> = 0> auto operator OP(const A &a, float b) { \
        return node<NAME, A, scalar<float>>(a, scalar<float>(b)); \
    } \
    template <class B, std::enable_if_t<is_expr<B>, int> = 0> auto operator OP(float a, const B &b) { \
        return node<NAME, scalar<float>, B>(scalar<float>(a), b); \
    }
EXPR_BINARY(add_op, +)
EXPR_BINARY(sub_op, -)
EXPR_BINARY(mul_op, *)
#undef EXPR_BINARY
struct tanh_op {
    template <class X> static __host__ __device__ auto apply(X x) { return ::tanhf(x); }
};
template <class A> auto tanh(const A &a) { return node<tanh_op, A>(a); }

namespace detail {
template <int Unroll, class T, class E> __global__ void assign(T *__restrict__ y, E e, std::size_t n) {
    std::size_t i = (std::size_t)blockIdx.x * blockDim.x * Unroll + threadIdx.x;
#pragma unroll
    for (int u = 0; u < Unroll; ++u, i += blockDim.x)
        if (i < n) y[i] = e[i];
}
template <class T, unsigned Block, class E, class Op> __global__ void fold(T *out, E e, std::size_t n, Op op, T start) {
    __shared__ T part[Block];
    T acc = start;
    for (std::size_t i = threadIdx.x; i < n; i += Block)
        acc = op(acc, e[i]);
    part[threadIdx.x] = acc;
    __syncthreads();
    for (unsigned s = Block / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] = op(part[threadIdx.x], part[threadIdx.x + s]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}
struct deleter {
    template <class T> void operator()(T *p) const { cudaFree(p); }
};
} // namespace detail
inline void check(cudaError_t e) {
    if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

template <class T> class array {
    std::unique_ptr<T[], detail::deleter> p_;
    std::size_t n_;

  public:
    explicit array(std::size_t n) : n_(n) {
        T *p = nullptr;
        check(cudaMalloc(&p, n * sizeof(T)));
        p_.reset(p);
    }
    explicit array(const std::vector<T> &v) : array(v.size()) {
        check(cudaMemcpy(p_.get(), v.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    view<T> operator()() const { return view<T>(p_.get()); }
    template <class E> array &operator=(const E &e) {
        constexpr int unroll = 4, block = 64;
        detail::assign<unroll><<<(unsigned)((n_ + unroll * block - 1) / (unroll * block)), block>>>(p_.get(), e, n_);
        check(cudaGetLastError());
        return *this;
    }
    std::vector<T> host() const {
        std::vector<T> v(n_);
        check(cudaMemcpy(v.data(), p_.get(), n_ * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
};
template <class T, class E, class Op> T reduce(const E &e, std::size_t n, Op op, T start) {
    array<T> out(1);
    detail::fold<T, 64><<<1, 64>>>(const_cast<T *>(out().p), e, n, op, start);
    check(cudaGetLastError());
    return out.host()[0];
}
} // namespace expr
