/* hcu_curand.cpp - the host interface of cuRAND for the generators that NVIDIA's curand_kernel.h can make:
 * XORWOW (the default),
 * MRG32k3a and Philox. The numbers are that header's. Which comes where was looked at on an H100, for the first 11,000:
 * number n is number n / ways of subsequence n mod ways, with 4,096 ways for XORWOW and 81,920 for MRG32k3a; of Philox
 * it is word n mod 4 of subsequence n / 4. Other generators are refused by name. */
#include "hostcuda.h"
#if __has_include(<curand.h>)
#  include <memory>
#  include <curand.h>
#  include <curand_kernel.h>
#  include "hcu_core.h"
using namespace hcu;

namespace {
typedef unsigned long long Index; /* in the sequence: numbers before it */
struct Stream {                   /* what a generator of any kind is */
    virtual ~Stream() {}
    virtual unsigned bits(Index n) = 0;
    virtual float uniform(Index n) = 0;
    virtual double uniform_double(Index n) = 0;
    virtual float2 normal(Index n) = 0;
    virtual double2 normal_double(Index n) = 0;
    virtual unsigned poisson(Index n, double lambda) = 0;
};
template <class State, class Where> struct StreamOf : Stream {
    Where at;
    StreamOf(Index seed, Index offset) : at(seed, offset) {}
    unsigned bits(Index n) override { return curand(at(n)); }
    float uniform(Index n) override { return curand_uniform(at(n)); }
    double uniform_double(Index n) override { return curand_uniform_double(at(n)); }
    float2 normal(Index n) override { return curand_normal2(at(n)); }
    double2 normal_double(Index n) override { return curand_normal2_double(at(n)); }
    unsigned poisson(Index n, double lambda) override { return curand_poisson(at(n), lambda); }
};
template <class State, unsigned Ways> struct InTurns { /* whatever a number is made of, the next is of the next way */
    Index seed, offset;
    std::vector<State> state; /* of the subsequences asked for so far */
    InTurns(Index seed_, Index offset_) : seed(seed_), offset(offset_) {}
    State *operator()(Index n) {
        const Index way = (n + offset) % Ways;
        while (state.size() <= way) {
            state.emplace_back();
            Index mine = state.size() - 1, skip = offset / Ways + (mine < offset % Ways);
            curand_init(seed, mine, skip, &state.back());
        }
        return &state[way];
    }
};
struct InFours { /* Philox, whose places are words, and which can begin anywhere */
    Index seed, offset;
    curandStatePhilox4_32_10_t state;
    InFours(Index seed_, Index offset_) : seed(seed_), offset(offset_) {}
    curandStatePhilox4_32_10_t *operator()(Index n) {
        curand_init(seed, (n + offset) / 4, (n + offset) % 4, &state);
        return &state;
    }
};
using OfXorwow = StreamOf<curandStateXORWOW, InTurns<curandStateXORWOW, 4096>>;
using OfMrg = StreamOf<curandStateMRG32k3a, InTurns<curandStateMRG32k3a, 81920>>;
using OfPhilox = StreamOf<curandStatePhilox4_32_10_t, InFours>;
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
    case CURAND_RNG_PSEUDO_MRG32K3A: return std::make_shared<OfMrg>(g.seed, g.offset);
    case CURAND_RNG_PSEUDO_PHILOX4_32_10: return std::make_shared<OfPhilox>(g.seed, g.offset);
    default: return std::make_shared<OfXorwow>(g.seed, g.offset);
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
    if (forbidden_in_capture()) return CURAND_STATUS_INITIALIZATION_FAILED;
    *out = new curandGenerator_st{type, host, 0, 0, 0, nullptr, nullptr};
    live_object("curand generator", *out, true);
    return CURAND_STATUS_SUCCESS;
}
bool philox(const curandGenerator_st *g) { return g->type == CURAND_RNG_PSEUDO_PHILOX4_32_10; }
/* n numbers of T, `per` at a time, which `some` puts where it is told; each time takes `words` of Philox. */
template <class T, class F>
curandStatus_t generate(curandGenerator_t g, T *out, size_t n, const char *api, size_t per, Index words, F some) {
    if (!live(g)) return CURAND_STATUS_NOT_INITIALIZED;
    if (n == 0) return CURAND_STATUS_SUCCESS;
    if (!g->numbers) g->numbers = make(*g);
    const size_t times = (n + per - 1) / per;
    const Index first = g->position, step = philox(g) ? words : 1;
    g->position += times * step;
    auto numbers = g->numbers;
    auto work = [=] {
        hb_write(out, n * sizeof(T));
        for (size_t i = 0; i < times; i++)
            some(*numbers, first + i * step, out + i * per, std::min(per, n - i * per));
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
template <class T, class F>
curandStatus_t generate_each(curandGenerator_t g, T *out, size_t n, const char *api, F one) {
    return generate(g, out, n, api, 1, sizeof(T) / 4, [=](Stream &s, Index at, T *p, size_t) { *p = one(s, at); });
}
/* Normal numbers come in pairs; Philox alone makes an odd one. */
template <class T, class Pair, class F>
curandStatus_t generate_pairs(curandGenerator_t g, T *out, size_t n, const char *api, F pair) {
    if (live(g) && n % 2 && !philox(g)) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    return generate(g, out, n, api, 2, sizeof(T) / 2, [=](Stream &s, Index at, T *p, size_t room) {
        Pair two = pair(s, at);
        p[0] = T(two.x);
        if (room > 1) p[1] = T(two.y);
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
    return generate_each(g, out, n, "curandGenerate", [](Stream &s, Index at) { return s.bits(at); });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t g, unsigned long long *, size_t) {
    return live(g) ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_NOT_INITIALIZED; /* those of 64 bits are refused above */
}
curandStatus_t curandGenerateUniform(curandGenerator_t g, float *out, size_t n) {
    ENTER("curandGenerateUniform", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_each(g, out, n, "curandGenerateUniform", [](Stream &s, Index at) { return s.uniform(at); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double *out, size_t n) {
    ENTER("curandGenerateUniformDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_each(
        g, out, n, "curandGenerateUniformDouble", [](Stream &s, Index at) { return s.uniform_double(at); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
    ENTER("curandGenerateNormal", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<float, float2>(g, out, n, "curandGenerateNormal", [=](Stream &s, Index at) {
        float2 v = s.normal(at);
        return float2{mean + deviation * v.x, mean + deviation * v.y};
    });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
    ENTER("curandGenerateNormalDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<double, double2>(g, out, n, "curandGenerateNormalDouble", [=](Stream &s, Index at) {
        double2 v = s.normal_double(at);
        return double2{mean + deviation * v.x, mean + deviation * v.y};
    });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float *out, size_t n, float mean, float deviation) {
    ENTER("curandGenerateLogNormal", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<float, float2>(g, out, n, "curandGenerateLogNormal", [=](Stream &s, Index at) {
        float2 v = s.normal(at);
        return float2{expf(mean + deviation * v.x), expf(mean + deviation * v.y)};
    });
}
curandStatus_t curandGenerateLogNormalDouble(
    curandGenerator_t g, double *out, size_t n, double mean, double deviation) {
    ENTER("curandGenerateLogNormalDouble", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_pairs<double, double2>(g, out, n, "curandGenerateLogNormalDouble", [=](Stream &s, Index at) {
        double2 v = s.normal_double(at);
        return double2{exp(mean + deviation * v.x), exp(mean + deviation * v.y)};
    });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t g, unsigned *out, size_t n, double lambda) {
    ENTER("curandGeneratePoisson", CURAND_STATUS_LAUNCH_FAILURE);
    return generate_each(
        g, out, n, "curandGeneratePoisson", [=](Stream &s, Index at) { return s.poisson(at, lambda); });
}
} // extern "C"
#endif
