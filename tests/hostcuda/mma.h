/* mma.h - warp matrices for the host runtime: nvcuda::wmma on 16 x 16 x 16 tiles of half or bfloat16, FP32
 * accumulators; of half also half ones.
 *
 * It stands in for NVIDIA's header of that name, which is empty for a host compiler.  A fragment of another shape or
 * type is refused by the compiler.  All 32 lanes must come to each operation but fill_fragment, with the same
 * arguments and the documented alignment; a fragment that nobody filled holds NaN; an operation orders no memory
 * between lanes (__syncwarp does). */
#ifndef HOSTCUDA_MMA_H
#define HOSTCUDA_MMA_H
#include "hostcuda.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };

namespace precision { /* refused, too */
struct tf32;
struct u4;
struct s4;
struct b1;
} // namespace precision
inline float __float_to_tf32(float v) { return v; }
template <class Use, int m, int n, int k, class T, class Layout = void> class fragment {
    static_assert(m < 0,
        "hostcuda: nvcuda::wmma has 16 x 16 x 16 of half or bfloat16 alone, with sums of float or (of "
        "half) half");

  public:
    enum { num_elements = 1 };
    float x[1];
};

/* num_elements as on the GPU: half operands hold each element twice */
template <class T, int n> struct hcu_fragment {
    enum { num_elements = n };
    T x[n];
    hcu_fragment() { memset(static_cast<void *>(x), 0xff, sizeof x); }
};
#define HCU_OPERAND(Use, T, n) \
    template <> class fragment<Use, 16, 16, 16, T, row_major> : public hcu_fragment<T, n> {}; \
    template <> class fragment<Use, 16, 16, 16, T, col_major> : public hcu_fragment<T, n> {};
HCU_OPERAND(matrix_a, __half, 16)
HCU_OPERAND(matrix_b, __half, 16)
HCU_OPERAND(matrix_a, __nv_bfloat16, 8)
HCU_OPERAND(matrix_b, __nv_bfloat16, 8)
#undef HCU_OPERAND
template <> class fragment<accumulator, 16, 16, 16, float> : public hcu_fragment<float, 8> {};
template <> class fragment<accumulator, 16, 16, 16, __half> : public hcu_fragment<__half, 8> {};

/* where element e of a matrix with that leading dimension lies */
inline size_t hcu_at(unsigned e, unsigned ldm, layout_t layout) {
    return layout == mem_row_major ? size_t(e / 16) * ldm + e % 16 : size_t(e % 16) * ldm + e / 16;
}
template <class F, class T> inline void hcu_load(F &f, const T *p, unsigned ldm, layout_t layout, HCU_AT) {
    hcu::wmma_access("load_matrix_sync", p, ldm, sizeof(T), layout, HCU_HERE);
    for (unsigned i = 0; i < F::num_elements; i++)
        f.x[i] = p[hcu_at(hcu::wmma_element(hcu::lane(), i % 8), ldm, layout)];
}
template <class Use, class T>
inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, row_major> &f, const T *p, unsigned ldm, HCU_AT) {
    hcu_load(f, p, ldm, mem_row_major, HCU_HERE);
}
template <class Use, class T>
inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, col_major> &f, const T *p, unsigned ldm, HCU_AT) {
    hcu_load(f, p, ldm, mem_col_major, HCU_HERE);
}
template <class T>
inline void load_matrix_sync(
    fragment<accumulator, 16, 16, 16, T> &f, const hcu::Id<T> *p, unsigned ldm, layout_t layout, HCU_AT) {
    hcu_load(f, p, ldm, layout, HCU_HERE);
}
template <class T>
inline void store_matrix_sync(
    hcu::Id<T> *p, const fragment<accumulator, 16, 16, 16, T> &f, unsigned ldm, layout_t layout, HCU_AT) {
    hcu::wmma_access("store_matrix_sync", p, ldm, sizeof(T), layout, HCU_HERE);
    for (unsigned i = 0; i < 8; i++)
        p[hcu_at(hcu::wmma_element(hcu::lane(), i), ldm, layout)] = f.x[i];
}
template <class T, int n> inline void fill_fragment(hcu_fragment<T, n> &f, const hcu::Id<T> &v) {
    for (T &x : f.x)
        x = v;
}
/* Both copies of an element must be equal: a loop over a fragment goes up to num_elements. */
template <class T, int n> inline const unsigned short *hcu_bits(const hcu_fragment<T, n> &f, HCU_AT) {
    if (n == 16 && memcmp(f.x, f.x + n - 8, sizeof(T[8])))
        hcu::misuse("mma_sync: only a part of a fragment's num_elements was changed", HCU_HERE);
    return reinterpret_cast<const unsigned short *>(f.x);
}
template <class T, class LA, class LB>
inline void mma_sync(fragment<accumulator, 16, 16, 16, float> &d, const fragment<matrix_a, 16, 16, 16, T, LA> &a,
    const fragment<matrix_b, 16, 16, 16, T, LB> &b, const fragment<accumulator, 16, 16, 16, float> &c, HCU_AT) {
    const hcu::WmmaLane mine = {
        hcu_bits(a, HCU_HERE), hcu_bits(b, HCU_HERE), c.x, d.x, std::is_same_v<T, __nv_bfloat16>};
    hcu::wmma_mma(mine, HCU_HERE);
}
/* Half sums: rounded once per operation here, which the documentation leaves open. */
template <class LA, class LB>
inline void mma_sync(fragment<accumulator, 16, 16, 16, __half> &d, const fragment<matrix_a, 16, 16, 16, __half, LA> &a,
    const fragment<matrix_b, 16, 16, 16, __half, LB> &b, const fragment<accumulator, 16, 16, 16, __half> &c, HCU_AT) {
    fragment<accumulator, 16, 16, 16, float> sum;
    for (int i = 0; i < 8; i++)
        sum.x[i] = __half2float(c.x[i]);
    mma_sync(sum, a, b, sum, HCU_HERE);
    for (int i = 0; i < 8; i++)
        d.x[i] = __float2half(sum.x[i]);
}

} // namespace wmma
} // namespace nvcuda
#endif
