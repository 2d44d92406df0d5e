/* hcu_blas1.cpp - cuBLAS on vectors (levels 1 and 2) for float and double, products of double, and products by
 * arrays of
 * pointers. Sums go from the first element to the last one, in double: a GPU's differ in the last bits. */
#include <cmath>
#include <cstring>
#include "hcu_blas.h"
using namespace hcu;

namespace {

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Element i of n, inc apart; a negative inc begins at the end, as in BLAS. */
template <class T> struct Vector {
    T *p;
    int n, inc;
    T &at(int i) const { return p[(inc < 0 ? long(1 - n) * inc : 0) + long(i) * inc]; }
    size_t bytes() const { return (size_t(n - 1) * size_t(abs(inc)) + 1) * sizeof(T); }
};
template <class T> struct Matrix { /* by columns */
    T *p;
    int rows, cols, ld;
    T &at(int i, int j) const { return p[size_t(j) * size_t(ld) + size_t(i)]; }
    size_t bytes() const { return (size_t(cols - 1) * size_t(ld) + size_t(rows)) * sizeof(T); }
};
/* TSan does not see this file's own accesses: element by element where there are others between. */
template <class T> void touch(const Vector<T> &v, bool write) {
    if (!HCU_HAS_TSAN) return;
    for (int i = 0; i < v.n; i++)
        write ? hb_write(const_cast<void *>(static_cast<const void *>(&v.at(i))), sizeof(T))
              : hb_read(&v.at(i), sizeof(T));
}
template <class T> void touch(const Matrix<T> &m, bool write) {
    if (!HCU_HAS_TSAN) return;
    for (int j = 0; j < m.cols; j++)
        touch(Vector<T>{&m.at(0, j), m.rows, 1}, write);
}
struct Call1 { /* one call: its handle, its name, and what became of its checks */
    cublasHandle_t h;
    const char *api;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    Call1(cublasHandle_t handle_, const char *name) : h(handle_), api(name) {
        if (!handle(h)) status = CUBLAS_STATUS_NOT_INITIALIZED;
    }
    bool host_scalars() const { return h->h.pointer_mode == CUBLAS_POINTER_MODE_HOST; }
    int device() const { return stream_device(h->h.stream); }
    Call1 &require(bool good) {
        if (!status && !good) status = CUBLAS_STATUS_INVALID_VALUE;
        return *this;
    }
    template <class O> Call1 &operand(const char *what, const O &o) {
        if (!status && !need_device(api, what, o.p, o.bytes(), device())) status = CUBLAS_STATUS_INVALID_VALUE;
        return *this;
    }
    /* alpha: read now, or by the work if it lies on the device */
    template <class T> Call1 &scalar(const char *what, const T *p) {
        require(p);
        if (!status && !host_scalars()) need_device(api, what, p, sizeof(T), device());
        return *this;
    }
    template <class T> std::function<T()> value(const T *p) const {
        if (!host_scalars())
            return [p] {
                hb_read(p, sizeof(T));
                return *p;
            };
        T v = *p;
        return [v] { return v; };
    }
    cublasStatus_t run(std::function<void()> work) {
        if (status) return status;
        cudaError_t e = enqueue(h->h.stream, Work{api, kNoGroup, std::move(work)});
        return e ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
    }
    /* A number as result: the host waits for it, or it is written on the device. */
    template <class R> cublasStatus_t result(R *out, std::function<R()> work) {
        if (!status && !out) status = CUBLAS_STATUS_MAPPING_ERROR;
        if (status) return status;
        bool host = host_scalars();
        if (!host && !need_device(api, "result", out, sizeof(R), device())) return CUBLAS_STATUS_INVALID_VALUE;
        R *kept = new R{};
        status = run([=] {
            *kept = work();
            if (host) return;
            hb_write(out, sizeof(R));
            *out = *kept;
        });
        if (!status && host && cudaStreamSynchronize(h->h.stream)) status = CUBLAS_STATUS_EXECUTION_FAILED;
        if (host) { /* else the work still needs it: a few bytes per call are kept */
            if (!status) *out = *kept;
            delete kept;
        }
        return status;
    }
};

/* ---- level 1 ----------------------------------------------------------------------------------------------------- */

template <class T>
cublasStatus_t axpy(cublasHandle_t h, int n, const T *alpha, const T *x, int incx, T *y, int incy, const char *api) {
    Call1 c(h, api);
    if (!c.status && n <= 0) return c.status;
    Vector<const T> X{x, n, incx};
    Vector<T> Y{y, n, incy};
    c.scalar("alpha", alpha).operand("x", X).operand("y", Y);
    if (c.status) return c.status;
    auto a = c.value(alpha);
    return c.run([=] {
        T v = a();
        touch(X, false);
        touch(Y, true);
        for (int i = 0; i < n; i++)
            Y.at(i) += v * X.at(i);
    });
}
template <class T> cublasStatus_t scal(cublasHandle_t h, int n, const T *alpha, T *x, int incx, const char *api) {
    Call1 c(h, api);
    if (!c.status && (n <= 0 || incx <= 0)) return c.status;
    Vector<T> X{x, n, incx};
    c.scalar("alpha", alpha).operand("x", X);
    if (c.status) return c.status;
    auto a = c.value(alpha);
    return c.run([=] {
        T v = a();
        touch(X, true);
        for (int i = 0; i < n; i++)
            X.at(i) *= v;
    });
}
template <class T> cublasStatus_t copy(cublasHandle_t h, int n, const T *x, int incx, T *y, int incy, const char *api) {
    Call1 c(h, api);
    if (!c.status && n <= 0) return c.status;
    Vector<const T> X{x, n, incx};
    Vector<T> Y{y, n, incy};
    return c.operand("x", X).operand("y", Y).run([=] {
        touch(X, false);
        touch(Y, true);
        for (int i = 0; i < n; i++)
            Y.at(i) = X.at(i);
    });
}
template <class T> cublasStatus_t swap(cublasHandle_t h, int n, T *x, int incx, T *y, int incy, const char *api) {
    Call1 c(h, api);
    if (!c.status && n <= 0) return c.status;
    Vector<T> X{x, n, incx}, Y{y, n, incy};
    return c.operand("x", X).operand("y", Y).run([=] {
        touch(X, true);
        touch(Y, true);
        for (int i = 0; i < n; i++)
            std::swap(X.at(i), Y.at(i));
    });
}
template <class T>
cublasStatus_t dot(cublasHandle_t h, int n, const T *x, int incx, const T *y, int incy, T *out, const char *api) {
    Call1 c(h, api);
    Vector<const T> X{x, n > 0 ? n : 0, incx}, Y{y, n > 0 ? n : 0, incy};
    if (n > 0) c.operand("x", X).operand("y", Y);
    return c.result<T>(out, [=] {
        double sum = 0;
        touch(X, false);
        touch(Y, false);
        for (int i = 0; i < X.n; i++)
            sum += double(X.at(i)) * double(Y.at(i));
        return T(sum);
    });
}
/* One number of one vector. */
template <class T, class R, class F>
cublasStatus_t over(cublasHandle_t h, int n, const T *x, int incx, R *out, const char *api, F f) {
    Call1 c(h, api);
    Vector<const T> X{x, n > 0 && incx > 0 ? n : 0, incx};
    if (X.n) c.operand("x", X);
    return c.result<R>(out, [=] {
        touch(X, false);
        return R(f(X));
    });
}
template <class T> double sum_of_sizes(const Vector<const T> &x) {
    double sum = 0;
    for (int i = 0; i < x.n; i++)
        sum += std::fabs(double(x.at(i)));
    return sum;
}
template <class T> double length_of(const Vector<const T> &x) {
    double most = 0, sum = 0;
    for (int i = 0; i < x.n; i++)
        most = std::fmax(most, std::fabs(double(x.at(i))));
    if (!(most > 0) || std::isinf(most)) return most;
    for (int i = 0; i < x.n; i++)
        sum += double(x.at(i)) / most * (double(x.at(i)) / most);
    return most * std::sqrt(sum);
}
template <class T> int place_of_extreme(const Vector<const T> &x, bool largest) { /* counted from 1; 0: no vector */
    int best = 0;
    for (int i = 1; i < x.n; i++) {
        T a = std::fabs(x.at(i)), b = std::fabs(x.at(best));
        if (largest ? a > b : a < b) best = i;
    }
    return x.n ? best + 1 : 0;
}
template <class T>
cublasStatus_t rot(
    cublasHandle_t h, int n, T *x, int incx, T *y, int incy, const T *cosine, const T *sine, const char *api) {
    Call1 c(h, api);
    if (!c.status && n <= 0) return c.status;
    Vector<T> X{x, n, incx}, Y{y, n, incy};
    c.scalar("c", cosine).scalar("s", sine).operand("x", X).operand("y", Y);
    if (c.status) return c.status;
    auto get_c = c.value(cosine), get_s = c.value(sine);
    return c.run([=] {
        T co = get_c(), si = get_s();
        touch(X, true);
        touch(Y, true);
        for (int i = 0; i < n; i++) {
            T a = X.at(i), b = Y.at(i);
            X.at(i) = co * a + si * b;
            Y.at(i) = co * b - si * a;
        }
    });
}

/* The rotation that makes (a, b) to (r, 0); a becomes r, b what the rotation can be made of again. */
template <class T> void make_rotation(T *a, T *b, T *cosine, T *sine) {
    const T x = *a, y = *b, larger = std::fabs(x) > std::fabs(y) ? x : y;
    if (larger == 0) {
        *a = *b = *sine = 0;
        *cosine = 1;
        return;
    }
    const T r = std::copysign(T(std::hypot(double(x), double(y))), larger);
    *cosine = x / r;
    *sine = y / r;
    *a = r;
    *b = std::fabs(x) > std::fabs(y) ? *sine : *cosine != 0 ? 1 / *cosine : T(1);
}
template <class T> cublasStatus_t rotg(cublasHandle_t h, T *a, T *b, T *cosine, T *sine, const char *api) {
    Call1 c(h, api);
    c.require(a && b && cosine && sine);
    if (c.status) return c.status;
    if (c.host_scalars()) return make_rotation(a, b, cosine, sine), CUBLAS_STATUS_SUCCESS;
    T *const all[] = {a, b, cosine, sine};
    for (T *p : all)
        c.require(need_device(api, "a number", p, sizeof(T), c.device()));
    return c.run([=] {
        for (T *p : all)
            hb_write(p, sizeof(T));
        make_rotation(a, b, cosine, sine);
    });
}

/* ---- level 2 ----------------------------------------------------------------------------------------------------- */

template <class T>
cublasStatus_t gemv(cublasHandle_t h, cublasOperation_t op, int m, int n, const T *alpha, const T *a, int lda,
    const T *x, int incx, const T *beta, T *y, int incy, const char *api) {
    Call1 c(h, api);
    c.require(m >= 0 && n >= 0 && lda >= std::max(1, m) && incx && incy);
    if (c.status || !m || !n) return c.status;
    bool t = op != CUBLAS_OP_N;
    Matrix<const T> A{a, m, n, lda};
    Vector<const T> X{x, t ? m : n, incx};
    Vector<T> Y{y, t ? n : m, incy};
    c.scalar("alpha", alpha).scalar("beta", beta).operand("A", A).operand("x", X).operand("y", Y);
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha), get_beta = c.value(beta);
    return c.run([=] {
        T al = get_alpha(), be = get_beta();
        touch(A, false);
        touch(X, false);
        touch(Y, true);
        for (int i = 0; i < Y.n; i++) {
            double sum = 0;
            for (int k = 0; k < X.n; k++)
                sum += double(t ? A.at(k, i) : A.at(i, k)) * double(X.at(k));
            Y.at(i) = be == T(0) ? al * T(sum) : al * T(sum) + be * Y.at(i);
        }
    });
}
template <class T>
cublasStatus_t ger(cublasHandle_t h, int m, int n, const T *alpha, const T *x, int incx, const T *y, int incy, T *a,
    int lda, const char *api) {
    Call1 c(h, api);
    c.require(m >= 0 && n >= 0 && lda >= std::max(1, m) && incx && incy);
    if (c.status || !m || !n) return c.status;
    Matrix<T> A{a, m, n, lda};
    Vector<const T> X{x, m, incx}, Y{y, n, incy};
    c.scalar("alpha", alpha).operand("A", A).operand("x", X).operand("y", Y);
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha);
    return c.run([=] {
        T al = get_alpha();
        touch(X, false);
        touch(Y, false);
        touch(A, true);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                A.at(i, j) += al * X.at(i) * Y.at(j);
    });
}
template <class T>
cublasStatus_t symv(cublasHandle_t h, cublasFillMode_t fill, int n, const T *alpha, const T *a, int lda, const T *x,
    int incx, const T *beta, T *y, int incy, const char *api) {
    Call1 c(h, api);
    c.require(n >= 0 && lda >= std::max(1, n) && incx && incy);
    if (c.status || !n) return c.status;
    Matrix<const T> A{a, n, n, lda};
    Vector<const T> X{x, n, incx};
    Vector<T> Y{y, n, incy};
    c.scalar("alpha", alpha).scalar("beta", beta).operand("A", A).operand("x", X).operand("y", Y);
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha), get_beta = c.value(beta);
    return c.run([=] {
        T al = get_alpha(), be = get_beta();
        touch(A, false);
        touch(X, false);
        touch(Y, true);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = 0; k < n; k++) {
                bool stored = (fill == CUBLAS_FILL_MODE_LOWER) == (i >= k) || i == k;
                sum += double(stored ? A.at(i, k) : A.at(k, i)) * double(X.at(k));
            }
            Y.at(i) = be == T(0) ? al * T(sum) : al * T(sum) + be * Y.at(i);
        }
    });
}

/* ---- products and sums of matrices ------------------------------------------------------------------------------- */

/* C = alpha op(A) op(B) + beta C, sums in double; the pointers are of the device and are looked at by the work. */
template <class T> struct Gemm {
    bool ta, tb;
    int m, n, k, lda, ldb, ldc;
    bool known; /* both operations are */
    void run(T alpha, const T *a, const T *b, T beta, T *c) const {
        Matrix<const T> A{a, ta ? k : m, ta ? m : k, lda}, B{b, tb ? n : k, tb ? k : n, ldb};
        Matrix<T> C{c, m, n, ldc};
        touch(A, false);
        touch(B, false);
        touch(C, true);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int q = 0; q < k && alpha != T(0); q++)
                    sum += double(ta ? A.at(q, i) : A.at(i, q)) * double(tb ? B.at(j, q) : B.at(q, j));
                C.at(i, j) =
                    beta == T(0) ? T(double(alpha) * sum) : T(double(alpha) * sum + double(beta) * double(C.at(i, j)));
            }
    }
    bool valid() const {
        return known && m >= 0 && n >= 0 && k >= 0 && lda >= std::max(1, ta ? k : m) &&
            ldb >= std::max(1, tb ? n : k) && ldc >= std::max(1, m);
    }
    bool nothing() const { return !m || !n; }
};
template <class T> Call1 &operands(Call1 &c, const Gemm<T> &g, const T *A, const T *B, T *C) {
    if (g.k)
        c.operand("A", Matrix<const T>{A, g.ta ? g.k : g.m, g.ta ? g.m : g.k, g.lda})
            .operand("B", Matrix<const T>{B, g.tb ? g.n : g.k, g.tb ? g.k : g.n, g.ldb});
    return c.operand("C", Matrix<T>{C, g.m, g.n, g.ldc});
}
template <class T>
cublasStatus_t gemm_strided(Call1 &c, const Gemm<T> &g, const T *alpha, const T *A, long long sa, const T *B,
    long long sb, const T *beta, T *C, long long sc, int batch) {
    c.require(g.valid() && batch >= 0);
    if (c.status || g.nothing() || !batch) return c.status;
    c.scalar("alpha", alpha).scalar("beta", beta);
    for (int z = 0; z < batch && !c.status; z++)
        operands(c, g, A + z * sa, B + z * sb, C + z * sc);
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha), get_beta = c.value(beta);
    return c.run([=] {
        T al = get_alpha(), be = get_beta();
        for (int z = 0; z < batch; z++)
            g.run(al, A + z * sa, B + z * sb, be, C + z * sc);
    });
}
/* The three arrays of pointers lie on the device. */
template <class T>
cublasStatus_t gemm_pointers(Call1 &c, const Gemm<T> &g, const T *alpha, const T *const A[], const T *const B[],
    const T *beta, T *const C[], int batch) {
    c.require(g.valid() && batch >= 0);
    if (c.status || g.nothing() || !batch) return c.status;
    c.scalar("alpha", alpha).scalar("beta", beta);
    const void *const arrays[] = {A, B, C};
    for (const void *p : arrays)
        c.require(need_device(c.api, "array of pointers", p, size_t(batch) * sizeof(void *), c.device()));
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha), get_beta = c.value(beta);
    return c.run([=, checks = c]() mutable {
        T al = get_alpha(), be = get_beta();
        for (const void *p : arrays)
            hb_read(p, size_t(batch) * sizeof(void *));
        for (int z = 0; z < batch; z++)
            if (!operands(checks, g, A[z], B[z], C[z]).status) g.run(al, A[z], B[z], be, C[z]);
    });
}
template <class T>
cublasStatus_t geam(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T *alpha,
    const T *a, int lda, const T *beta, const T *b, int ldb, T *out, int ldc, const char *api) {
    Call1 c(h, api);
    c.require(m >= 0 && n >= 0 && ldc >= std::max(1, m));
    if (c.status || !m || !n) return c.status;
    Matrix<const T> A{a, ta ? n : m, ta ? m : n, lda}, B{b, tb ? n : m, tb ? m : n, ldb};
    Matrix<T> C{out, m, n, ldc};
    c.scalar("alpha", alpha).scalar("beta", beta).operand("C", C);
    if (c.status) return c.status;
    auto get_alpha = c.value(alpha), get_beta = c.value(beta);
    if (!c.host_scalars() || *alpha != T(0)) c.operand("A", A);
    if (!c.host_scalars() || *beta != T(0)) c.operand("B", B);
    return c.run([=] {
        T al = get_alpha(), be = get_beta();
        if (al != T(0)) touch(A, false);
        if (be != T(0)) touch(B, false);
        touch(C, true);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                T x = al == T(0) ? T(0) : al * (ta ? A.at(j, i) : A.at(i, j));
                T y = be == T(0) ? T(0) : be * (tb ? B.at(j, i) : B.at(i, j));
                C.at(i, j) = x + y;
            }
    });
}
} // namespace

cublasStatus_t gemm_double(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const double *alpha, const double *A, int lda, long long sa, const double *B, int ldb, long long sb,
    const double *beta, double *C, int ldc, long long sc, int batch, const char *api) {
    Call1 c(h, api);
    Gemm<double> g{
        ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, known_operation(ta) && known_operation(tb)};
    return gemm_strided(c, g, alpha, A, sa, B, sb, beta, C, sc, batch);
}

/* ==== the API ===================================================================================================== */

extern "C" {

#define START(name) ENTER_CUBLAS(name, kNoGroup, CUBLAS_STATUS_EXECUTION_FAILED)
#define OP          cublasOperation_t
#define HCU_BLAS_BOTH(S, I, T) \
    cublasStatus_t cublas##S##axpy(cublasHandle_t h, int n, const T *a, const T *x, int ix, T *y, int iy) { \
        START("cublas" #S "axpy"); \
        return axpy(h, n, a, x, ix, y, iy, "cublas" #S "axpy"); \
    } \
    cublasStatus_t cublas##S##scal(cublasHandle_t h, int n, const T *a, T *x, int ix) { \
        START("cublas" #S "scal"); \
        return scal(h, n, a, x, ix, "cublas" #S "scal"); \
    } \
    cublasStatus_t cublas##S##copy(cublasHandle_t h, int n, const T *x, int ix, T *y, int iy) { \
        START("cublas" #S "copy"); \
        return copy(h, n, x, ix, y, iy, "cublas" #S "copy"); \
    } \
    cublasStatus_t cublas##S##swap(cublasHandle_t h, int n, T *x, int ix, T *y, int iy) { \
        START("cublas" #S "swap"); \
        return swap(h, n, x, ix, y, iy, "cublas" #S "swap"); \
    } \
    cublasStatus_t cublas##S##dot(cublasHandle_t h, int n, const T *x, int ix, const T *y, int iy, T *out) { \
        START("cublas" #S "dot"); \
        return dot(h, n, x, ix, y, iy, out, "cublas" #S "dot"); \
    } \
    cublasStatus_t cublas##S##nrm2(cublasHandle_t h, int n, const T *x, int ix, T *out) { \
        START("cublas" #S "nrm2"); \
        return over(h, n, x, ix, out, "cublas" #S "nrm2", length_of<T>); \
    } \
    cublasStatus_t cublas##S##asum(cublasHandle_t h, int n, const T *x, int ix, T *out) { \
        START("cublas" #S "asum"); \
        return over(h, n, x, ix, out, "cublas" #S "asum", sum_of_sizes<T>); \
    } \
    cublasStatus_t cublasI##I##amax(cublasHandle_t h, int n, const T *x, int ix, int *out) { \
        START("cublasI" #I "amax"); \
        return over(h, n, x, ix, out, "cublasI" #I "amax", [](auto &v) { return place_of_extreme<T>(v, true); }); \
    } \
    cublasStatus_t cublasI##I##amin(cublasHandle_t h, int n, const T *x, int ix, int *out) { \
        START("cublasI" #I "amin"); \
        return over(h, n, x, ix, out, "cublasI" #I "amin", [](auto &v) { return place_of_extreme<T>(v, false); }); \
    } \
    cublasStatus_t cublas##S##rot(cublasHandle_t h, int n, T *x, int ix, T *y, int iy, const T *c, const T *s) { \
        START("cublas" #S "rot"); \
        return rot(h, n, x, ix, y, iy, c, s, "cublas" #S "rot"); \
    } \
    cublasStatus_t cublas##S##rotg(cublasHandle_t h, T *a, T *b, T *c, T *s) { \
        START("cublas" #S "rotg"); \
        return rotg(h, a, b, c, s, "cublas" #S "rotg"); \
    } \
    cublasStatus_t cublas##S##gemv(cublasHandle_t h, OP op, int m, int n, const T *alpha, const T *a, int lda, \
        const T *x, int ix, const T *beta, T *y, int iy) { \
        START("cublas" #S "gemv"); \
        return gemv(h, op, m, n, alpha, a, lda, x, ix, beta, y, iy, "cublas" #S "gemv"); \
    } \
    cublasStatus_t cublas##S##ger( \
        cublasHandle_t h, int m, int n, const T *alpha, const T *x, int ix, const T *y, int iy, T *a, int lda) { \
        START("cublas" #S "ger"); \
        return ger(h, m, n, alpha, x, ix, y, iy, a, lda, "cublas" #S "ger"); \
    } \
    cublasStatus_t cublas##S##symv(cublasHandle_t h, cublasFillMode_t fill, int n, const T *alpha, const T *a, \
        int lda, const T *x, int ix, const T *beta, T *y, int iy) { \
        START("cublas" #S "symv"); \
        return symv(h, fill, n, alpha, a, lda, x, ix, beta, y, iy, "cublas" #S "symv"); \
    } \
    cublasStatus_t cublas##S##geam(cublasHandle_t h, OP ta, OP tb, int m, int n, const T *alpha, const T *a, int lda, \
        const T *beta, const T *b, int ldb, T *c, int ldc) { \
        START("cublas" #S "geam"); \
        return geam(h, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc, "cublas" #S "geam"); \
    } \
    cublasStatus_t cublas##S##gemmBatched(cublasHandle_t h, OP ta, OP tb, int m, int n, int k, const T *alpha, \
        const T *const A[], int lda, const T *const B[], int ldb, const T *beta, T *const C[], int ldc, int batch) { \
        START("cublas" #S "gemmBatched"); \
        Call1 c(h, "cublas" #S "gemmBatched"); \
        Gemm<T> g{ \
            ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, known_operation(ta) && known_operation(tb)}; \
        return gemm_pointers(c, g, alpha, A, B, beta, C, batch); \
    }
HCU_BLAS_BOTH(S, s, float)
HCU_BLAS_BOTH(D, d, double)

cublasStatus_t cublasDgemm(cublasHandle_t h, OP ta, OP tb, int m, int n, int k, const double *alpha, const double *A,
    int lda, const double *B, int ldb, const double *beta, double *C, int ldc) {
    START("cublasDgemm");
    return gemm_double(h, ta, tb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1, "cublasDgemm");
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t h, OP ta, OP tb, int m, int n, int k, const double *alpha,
    const double *A, int lda, long long sa, const double *B, int ldb, long long sb, const double *beta, double *C,
    int ldc, long long sc, int batch) {
    START("cublasDgemmStridedBatched");
    return gemm_double(
        h, ta, tb, m, n, k, alpha, A, lda, sa, B, ldb, sb, beta, C, ldc, sc, batch, "cublasDgemmStridedBatched");
}

/* ---- copies of vectors and matrices: cudaMemcpy2D under another name ---- */

static cublasStatus_t moved(cudaError_t e) { return e ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMatrix(int rows, int cols, int size, const void *a, int lda, void *b, int ldb) {
    if (rows < 0 || cols < 0 || size <= 0 || lda < rows || ldb < rows) return CUBLAS_STATUS_INVALID_VALUE;
    return moved(cudaMemcpy2D(b, size_t(ldb) * size_t(size), a, size_t(lda) * size_t(size), size_t(rows) * size_t(size),
        size_t(cols), cudaMemcpyHostToDevice));
}
cublasStatus_t cublasGetMatrix(int rows, int cols, int size, const void *a, int lda, void *b, int ldb) {
    if (rows < 0 || cols < 0 || size <= 0 || lda < rows || ldb < rows) return CUBLAS_STATUS_INVALID_VALUE;
    return moved(cudaMemcpy2D(b, size_t(ldb) * size_t(size), a, size_t(lda) * size_t(size), size_t(rows) * size_t(size),
        size_t(cols), cudaMemcpyDeviceToHost));
}
cublasStatus_t cublasSetVector(int n, int size, const void *x, int incx, void *y, int incy) {
    return incx == 1 && incy == 1 ? moved(cudaMemcpy(y, x, size_t(n) * size_t(size), cudaMemcpyHostToDevice))
                                  : cublasSetMatrix(1, n, size, x, incx, y, incy);
}
cublasStatus_t cublasGetVector(int n, int size, const void *x, int incx, void *y, int incy) {
    return incx == 1 && incy == 1 ? moved(cudaMemcpy(y, x, size_t(n) * size_t(size), cudaMemcpyDeviceToHost))
                                  : cublasGetMatrix(1, n, size, x, incx, y, incy);
}
} // extern "C"
