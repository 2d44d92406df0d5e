/* hcu_ctl.cpp - the control API: what a test steers and asks (hostcuda_ctl.h). */
#include "hcu_state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
using namespace hcu;

extern "C" {
void hcu_set_mode(int mode, unsigned seed) {
    Locked l;
    sync_streams(-1, true);
    g_mode = mode;
    g_random.seed(seed);
}
void hcu_set_devices(int count) {
    Locked l;
    g_device_count = std::max(0, std::min(kMaxDevices, count));
    t_device = 0;
    for (int d = 0; d < g_device_count; d++)
        for (CUstream_st *s : {&g_device[d].legacy, &g_device[d].per_thread})
            if (!s->tsan) s->tsan = tsan_identity();
}
void hcu_set_sms(int device, int count) {
    Locked l;
    g_device[device].sms = count;
}
void hcu_set_occupancy(int blocks) {
    Locked l;
    g_occupancy = blocks;
}
void hcu_unload(int in_capture) {
    Locked l;
    for (auto *e : g_kernels.entries)
        e->value.loaded = 0;
    for (int d = 0; d < kMaxDevices; d++)
        g_device[d].in_use = false;
    g_loads_in_capture = in_capture != 0;
    g_loads = 0;
}
void hcu_kill(int device, int error) {
    Locked l;
    g_device[device].error = error;
}
void hcu_fail_start(int error, int driver) {
    Locked l;
    g_start_error = error;
    g_driver = error ? driver : CUDART_VERSION;
}
unsigned hcu_devices_in_use(void) {
    Locked l;
    unsigned bits = 0;
    for (int d = 0; d < g_device_count; d++)
        bits |= g_device[d].in_use ? 1u << d : 0u;
    return bits;
}
void hcu_set_context(void *context) {
    Locked l;
    t_context = context;
}
void *hcu_context(void) { return t_context; }
long hcu_loads(void) { return g_loads; }
long hcu_followers(void) { return g_followers; }
void hcu_set_compiled(int ptx, int driver) {
    Locked l;
    g_compiled_for = ptx;
    g_driver = driver ? driver : CUDART_VERSION;
}
size_t hcu_largest_grid(void) { return g_largest_grid; }
void hcu_set_arch(int device, int major, int minor) {
    Locked l;
    g_device[device].arch = major * 10 + minor;
}
void hcu_set_memory_limit(int device, size_t bytes) {
    Locked l;
    set_device_limit(device, bytes);
}
size_t hcu_device_bytes(int device) {
    Locked l;
    return device_used(device);
}
size_t hcu_pinned_bytes(void) {
    Locked l;
    return pinned_used();
}
void hcu_set_protect(int on) {
    Locked l;
    set_protect(on != 0);
}
void hcu_set_scan_params(int on) { g_scan_params = on != 0; }
long hcu_pending(void) {
    Locked l;
    long n = 0;
    for (auto *s : streams_of(-1))
        n += long(s->pending.size());
    return n;
}
} // extern "C"
template <class K> static int leaked(const char *kind, const Map<K, Trace> &live, int print) {
    for (auto *e : live.entries) {
        if (!print) continue;
        fprintf(stderr, "HOSTCUDA LEAK: %s, allocated at\n", kind);
        print_trace(e->value);
    }
    return int(live.entries.size());
}
extern "C" {
int hcu_leaks(int print) {
    Locked l;
    int n = memory_leaks(print != 0);
    n += leaked("stream", g_streams, print) + leaked("event", g_events, print) + leaked("graph", g_graphs, print) +
        leaked("executable graph", g_execs, print) + int(g_captures.size());
    if (print && !g_captures.empty()) fprintf(stderr, "HOSTCUDA LEAK: %zu open captures\n", g_captures.size());
    for (auto *e : g_objects.entries) {
        n++;
        if (!print) continue;
        fprintf(stderr, "HOSTCUDA LEAK: %s, allocated at\n", e->value.kind);
        print_trace(e->value.trace);
    }
    return n;
}
static int move_device(void *device, void *host, size_t n, bool to_host) {
    Locked l;
    Place at = place_of(device, n);
    if (at.where != WHERE_DEVICE) return 0;
    enter_device(at.device);
    memcpy(to_host ? host : device, to_host ? device : host, n);
    leave_device(at.device);
    return 1;
}
int hcu_peek(void *dst, const void *src, size_t n) { return move_device(const_cast<void *>(src), dst, n, true); }
int hcu_poke(void *dst, const void *src, size_t n) { return move_device(dst, const_cast<void *>(src), n, false); }

long hcu_calls(const char *api) {
    Locked l;
    long n = 0;
    for (auto *e : g_api_calls.entries)
        if (!api || !strcmp(e->key, api)) n += e->value;
    return n;
}
long hcu_group_calls(int group) { return group >= 0 && group < HCU_GROUP_COUNT ? g_group_calls[group] : 0; }
long hcu_executed(int group) { return group >= 0 && group < HCU_GROUP_COUNT ? g_executed[group] : 0; }
long hcu_failable_calls(void) { return g_failable; }
long hcu_injected(void) { return g_injected; }
const char *hcu_last_injected(void) { return g_last_injected; }
long hcu_ptx_launches(void) { return g_ptx_launches; }
void hcu_reset_counts(void) {
    Locked l;
    for (auto *e : g_api_calls.entries)
        e->value = 0;
    memset(g_group_calls, 0, sizeof g_group_calls);
    memset(g_executed, 0, sizeof g_executed);
    g_failable = g_injected = g_ptx_launches = 0;
    g_largest_grid = 0;
    g_last_injected = "";
}
void hcu_product_time(double first_ms, double more_ms) {
    Locked l;
    g_times = {true, 0, (long long)(1e6 * first_ms), (long long)(1e6 * more_ms)};
}
void hcu_fail_call(const char *api, long nth, int err, int sticky) {
    Locked l;
    snprintf(g_fail_api, sizeof g_fail_api, "%s", api ? api : "");
    g_fail_call_in = nth;
    g_fail_call_error = err;
    g_fail_call_sticky = sticky != 0;
}
void hcu_fail_exec(long nth, int err) {
    Locked l;
    g_fail_exec_in = nth;
    g_fail_exec_error = err ? err : cudaErrorIllegalAddress;
}
void hcu_reset(void) {
    Locked l;
    for (int d = 0; d < g_device_count; d++)
        if (g_device[d].error) {
            sync_streams(d, true); /* what was pending on a dead device never runs */
            g_device[d].error = 0;
        }
    while (!g_captures.empty())
        abandon_capture(g_captures.back());
    g_fail_call_in = g_fail_exec_in = 0;
    g_times = {};
    t_last_error = 0;
    t_context = nullptr;
    t_capture_mode = cudaStreamCaptureModeGlobal; /* a dead device has not let the library give it back */
    hcu_reset_counts();
}
} // extern "C"
