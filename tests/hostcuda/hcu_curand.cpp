/* hcu_curand.cpp - the host interface of cuRAND for the generators that NVIDIA's curand_kernel.h can make:
 * XORWOW (the default),
 * MRG32k3a and Philox. The numbers are that header's. Which comes where is as documented for 32-bit and uniform numbers
 * of the first two: number n is number n / 4096 of subsequence n mod 4096; for the rest NVIDIA does not say, and the
 * same rule is taken. Other generators are refused by name. */
#include "hostcuda.h"
#if __has_include(<curand.h>)
#  include <memory>
#  include <curand.h>
#  include <curand_kernel.h>
#  include "hcu_core.h"
using namespace hcu;

namespace {
constexpr unsigned kWays = 4096;
struct Stream { /* what a generator of any kind is */
    virtual ~Stream() {}
    virtual unsigned bits(unsigned way) = 0;
    virtual float uniform(unsigned way) = 0;
    virtual double uniform_double(unsigned way) = 0;
    virtual float2 normal(unsigned way) = 0;
    virtual double2 normal_double(unsigned way) = 0;
    virtual unsigned poisson(unsigned way, double lambda) = 0;
};
template <class State> struct StreamOf : Stream {
    unsigned long long seed, offset;
    std::vector<State> state; /* of the subsequences asked for so far */
    StreamOf(unsigned long long seed_, unsigned long long offset_) : seed(seed_), offset(offset_) {}
    State *at(unsigned way) {
        while (state.size() <= way) {
            state.emplace_back();
            unsigned long long mine = state.size() - 1, skip = offset / kWays + (mine < offset % kWays);
            curand_init(seed, mine, skip, &state.back());
        }
        return &state[way];
    }
    unsigned bits(unsigned way) override { return curand(at(way)); }
    float uniform(unsigned way) override { return curand_uniform(at(way)); }
    double uniform_double(unsigned way) override { return curand_uniform_double(at(way)); }
    float2 normal(unsigned way) override { return curand_normal2(at(way)); }
    double2 normal_double(unsigned way) override { return curand_normal2_double(at(way)); }
    unsigned poisson(unsigned way, double lambda) override { return curand_poisson(at(way), lambda); }
};
} // namespace

struct curandGenerator_st {
    curandRngType_t type;
    bool host;
    unsigned long long seed, offset, position;
    cudaStream_t stream;
    std::shared_ptr<Stream> numbers;
};

namespace {
std::shared_ptr<Stream> make(const curandGenerator_st &g) {
    switch (g.type) {
    case CURAND_RNG_PSEUDO_MRG32K3A: return std::make_shared<StreamOf<curandStateMRG32k3a>>(g.seed, g.offset);
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
        return std::make_shared<StreamOf<curandStatePhilox4_32_10_t>>(g.seed, g.offset);
    default: return std::make_shared<StreamOf<curandStateXORWOW>>(g.seed, g.offset);
    }
}
bool live(const curandGenerator_st *g) { return g != nullptr; }
curandStatus_t create(curandGenerator_t *out, curandRngType_t type, bool host) {
    if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
    if (type != CURAND_RNG_PSEUDO_XORWOW && type != CURAND_RNG_PSEUDO_MRG32K3A &&
        type != CURAND_RNG_PSEUDO_PHILOX4_32_10) {
        refused("curandCreateGenerator for a generator other than XORWOW, MRG32k3a and Philox");
        return CURAND_STATUS_TYPE_ERROR;
    }
    *out = new curandGenerator_st{type, host, 0, 0, 0, nullptr, nullptr};
    live_object("curand generator", *out, true);
    return CURAND_STATUS_SUCCESS;
}
/* n numbers of T; `one` gives the number at a place, `per` at a time. */
template <class T, class F> curandStatus_t generate(curandGenerator_t g, T *out, size_t n, const char *api, F one) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    if (n == 0) return CURAND_STATUS_SUCCESS;
    if (!g->numbers) g->numbers = make(*g);
    unsigned long long first = g->position + g->offset % kWays;
    g->position += n;
    auto numbers = g->numbers;
    auto work = [=] {
        hb_write(out, n * sizeof(T));
        for (size_t i = 0; i < n; i++)
            out[i] = one(*numbers, unsigned((first + i) % kWays));
    };
    if (g->host) {
        work();
        return CURAND_STATUS_SUCCESS;
    }
    int device = stream_device(g->stream);
    if (device < 0 || !need_device(api, "output", out, n * sizeof(T), device)) return CURAND_STATUS_LAUNCH_FAILURE;
    cudaError_t e = enqueue(g->stream, Work{api, HCU_FILL, work});
    return e ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS;
}
/* Normal numbers come in pairs. */
template <class T, class Pair, class F>
curandStatus_t generate_pairs(curandGenerator_t g, T *out, size_t n, const char *api, F pair) {
    if (n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    struct Two { T v[2]; };
    return generate(g, reinterpret_cast<Two *>(out), n / 2, api, [=](Stream &s, unsigned way) {
        Pair p = pair(s, way);
        return Two{{T(p.x), T(p.y)}};
    });
}
} // namespace

#  define ENTER(api, natural) \
    Call call_(api, kNoGroup, natural); \
    if (call_.error) return CURAND_STATUS_LAUNCH_FAILURE

extern "C" {
curandStatus_t curandCreateGenerator(curandGenerator_t *g, curandRngType_t type) {
    ENTER("curandCreateGenerator", CURAND_STATUS_ALLOCATION_FAILED);
    return create(g, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t *g, curandRngType_t type) {
    ENTER("curandCreateGeneratorHost", CURAND_STATUS_ALLOCATION_FAILED);
    return create(g, type, true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t g) {
    ENTER("curandDestroyGenerator", kNeverFails);
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    live_object("", g, false);
    delete g;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetVersion(int *version) {
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t g, cudaStream_t s) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    g->stream = s;
    return CURAND_STATUS_SUCCESS;
}
static curandStatus_t restart(curandGenerator_t g) {
    g->numbers = nullptr;
    g->position = 0;
    return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    g->seed = seed;
    return restart(g);
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    g->offset = offset;
    return restart(g);
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t g, curandOrdering_t order) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    bool known = order == CURAND_ORDERING_PSEUDO_DEFAULT || order == CURAND_ORDERING_PSEUDO_BEST ||
        order == CURAND_ORDERING_PSEUDO_LEGACY;
    if (!known) refused("curandSetGeneratorOrdering with another order than default, best and legacy");
    return known ? CURAND_STATUS_SUCCESS : CURAND_STATUS_TYPE_ERROR;
}
curandStatus_t curandGenerateSeeds(curandGenerator_t g) {
    return live(g) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandGenerate(curandGenerator_t g, unsigned *out, size_t n) {
    ENTER("curandGenerate", CURAND_STATUS_LAUNCH_FAILURE);
    return generate(g, out, n, "curandGenerate", [](Stream &s, unsigned way) { return s.bits(way); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t g, float *out, size_t n) {
    ENTER("curandGenerateUniform", CURAND_STATUS_LAUNCH_FAILURE);
    return generate(g, out, n, "curandGenerateUniform", [](Stream &s, unsigned way) { return s.uniform(way); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double *out, size_t n) {
    ENTER("curandGenerateUniformDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate(
        g, out, n, "curandGenerateUniformDouble", [](Stream &s, unsigned way) { return s.uniform_double(way); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
    ENTER("curandGenerateNormal", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<float, float2>(g, out, n, "curandGenerateNormal", [=](Stream &s, unsigned way) {
        float2 v = s.normal(way);
        return float2{mean + deviation * v.x, mean + deviation * v.y};
    });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
    ENTER("curandGenerateNormalDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<double, double2>(g, out, n, "curandGenerateNormalDouble", [=](Stream &s, unsigned way) {
        double2 v = s.normal_double(way);
        return double2{mean + deviation * v.x, mean + deviation * v.y};
    });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
    ENTER("curandGenerateLogNormal", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<float, float2>(g, out, n, "curandGenerateLogNormal", [=](Stream &s, unsigned way) {
        float2 v = s.normal(way);
        return float2{expf(mean + deviation * v.x), expf(mean + deviation * v.y)};
    });
}
curandStatus_t curandGenerateLogNormalDouble(
    curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
    ENTER("curandGenerateLogNormalDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<double, double2>(g, out, n, "curandGenerateLogNormalDouble", [=](Stream &s, unsigned way) {
        double2 v = s.normal_double(way);
        return double2{exp(mean + deviation * v.x), exp(mean + deviation * v.y)};
    });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t g, unsigned *out, size_t n, double lambda) {
    ENTER("curandGeneratePoisson", CURAND_STATUS_LAUNCH_FAILURE);
    return generate(
        g, out, n, "curandGeneratePoisson", [=](Stream &s, unsigned way) { return s.poisson(way, lambda); });
}
} // extern "C"
#endif
