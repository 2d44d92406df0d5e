/* hcu_where.cpp - where a grid is: for messages, for whoever waits, and for whoever presses Ctrl-C; and who made the
 * two accesses of which TSan reports. */
#include "hcu_sched.h"
#include <sys/time.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hcu {

static int thread_text(char *to, size_t n) {
    return snprintf(to, n, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", L->config.name, blockIdx.x, blockIdx.y,
        blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}
void print_place() {
    char text[400];
    if (!thread_runs()) return;
    thread_text(text, sizeof text);
    fprintf(stderr, "HOSTCUDA AT: %s\n", text);
}
#if HCU_HAS_ASAN
extern "C" void __ubsan_on_report() { /* the sanitizer calls it before it prints, and has no callback at its end */
    char text[400];
    if (!thread_runs()) return;
    thread_text(text, sizeof text);
    fprintf(stderr, "HOSTCUDA UNDEFINED AT: %s\n", text);
}
#endif
static int g_progress_fd = -1, g_interval = 10, g_same_place;
static void say(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0) _exit(1);
}
/* Handlers of signals: no lock is taken, nothing is changed; at worst a number is one behind. */
static void say_where(int fd, bool all) {
    char text[600], place[400];
    if (!L) return say(fd, "hostcuda: no kernel runs\n");
    size_t blocks = size_t(L->config.grid.x) * L->config.grid.y * L->config.grid.z;
    int n = thread_runs() ? thread_text(place, sizeof place)
                          : snprintf(place, sizeof place, "kernel %s, between two threads", L->config.name);
    if (n < 0) return;
    snprintf(text, sizeof text, "hostcuda: launch %zu: %s; %zu of %zu blocks are done\n", g_launches, place,
        g_blocks_done, blocks);
    say(fd, text);
    for (size_t i = 0, shown = 0; all && i < L->threads.size() && shown < 40; i++) {
        const Thread &t = L->threads[i];
        bool waits = t.state == AT_BARRIER || t.state == AT_GRID_BARRIER || t.state == AT_WARP_OP;
        if (!waits || (i && L->threads[i - 1].state == t.state && L->threads[i - 1].line == t.line)) continue;
        size_t last = i;
        while (last + 1 < L->threads.size() && L->threads[last + 1].state == t.state &&
            L->threads[last + 1].line == t.line)
            last++;
        const uint3 &b = L->blocks[i / L->threads_per_block].index;
        snprintf(text, sizeof text, "    block (%u,%u,%u), threads %zu to %zu of the launch wait at %s:%d\n", b.x, b.y,
            b.z, i % L->threads_per_block, last % L->threads_per_block, t.file, t.line);
        say(fd, text);
        shown++;
    }
}
static void on_interrupt(int) {
    say_where(2, true);
    if (g_progress_fd >= 0) say_where(g_progress_fd, true);
    _exit(130);
}
static void on_timer(int) {
    static size_t launch, done;
    static uint3 thread;
    bool same = L && launch == g_launches && done == g_blocks_done && !memcmp(&thread, &threadIdx, sizeof thread);
    g_same_place = same ? g_same_place + 1 : 0;
    launch = g_launches;
    done = g_blocks_done;
    thread = threadIdx;
    if (!L) return;
    say_where(g_progress_fd, false);
    if (g_same_place == 3)
        say(g_progress_fd,
            "hostcuda: that thread has run for half a minute: a loop that waits for another thread or block? They take "
            "turns here only at barriers, and blocks run one after another\n");
}
static void handle(int signal, void (*handler)(int)) {
    struct sigaction before{}, action{};
    if (sigaction(signal, nullptr, &before) || before.sa_handler != SIG_DFL) return; /* the program has its own */
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
}
#if HCU_HAS_ASAN || HCU_HAS_MSAN
static void print_more() { /* after a report */
    print_place();
#  if HCU_HAS_ASAN
    const char *copy = copy_into(__asan_get_report_address());
    if (copy) fprintf(stderr, "HOSTCUDA PENDING: %s\n", copy);
#  endif
}
#endif
void report_init() {
#if HCU_HAS_ASAN || HCU_HAS_MSAN
    __sanitizer_set_death_callback(print_more);
#endif
    handle(SIGINT, on_interrupt);
    const char *fd = getenv("HCU_PROGRESS");
    if (!fd) return;
    g_progress_fd = atoi(fd);
    if (const char *seconds = getenv("HCU_PROGRESS_EVERY")) g_interval = atoi(seconds);
    handle(SIGALRM, on_timer);
    itimerval every{};
    every.it_interval.tv_sec = every.it_value.tv_sec = g_interval;
    setitimer(ITIMER_REAL, &every, nullptr);
}
} // namespace hcu

#if HCU_HAS_TSAN
/* TSan calls this after each report: who made the access is known exactly, and of the other one what its
 * identity says. */
extern "C" int __tsan_get_report_data(void *report, const char **what, int *count, int *stacks, int *mops, int *places,
    int *mutexes, int *threads, int *tids, void **sleep_trace, unsigned long trace_size);
extern "C" int __tsan_get_report_mop(void *report, unsigned long index, int *tid, void **address, int *size, int *write,
    int *atomic, void **trace, unsigned long trace_size);
extern "C" int __tsan_get_report_thread(void *report, unsigned long index, int *tid, unsigned long *os_id, int *running,
    const char **name, int *parent, void **trace, unsigned long trace_size);
extern "C" void __tsan_on_report(void *report) {
    using namespace hcu;
    int tid = -1, other = -1, size, write, atomic, running, parent, n[7] = {0}, mops = 0;
    void *address = nullptr, *trace[1];
    const char *what;
    if (!thread_runs()) return;
    __tsan_get_report_data(report, &what, &n[0], &n[1], &mops, &n[2], &n[3], &n[4], &n[5], trace, 1);
    if (mops < 2) return; /* no race: a call that is not safe in a signal's handler */
    if (!__tsan_get_report_mop(report, 1, &other, &address, &size, &write, &atomic, trace, 1)) return;
    print_place();
    const char *name = nullptr;
    for (unsigned long i = 0; i < 4; i++) {
        unsigned long os_id;
        if (__tsan_get_report_thread(report, i, &tid, &os_id, &running, &name, &parent, trace, 1) && tid == other)
            break;
        name = nullptr;
    }
    unsigned slot, level;
    bool shared = in_shared(address);
    if (!name || sscanf(name, "hcu %u %u", &level, &slot) != 2) {
        fprintf(stderr, "HOSTCUDA OTHER: the host, a copy, or another stream\n");
        return;
    }
    if (level != g_level) {
        fprintf(stderr, "HOSTCUDA OTHER: a thread of another grid, which this one does not wait for\n");
        return;
    }
    if (launch_of_identity(slot) != g_launches) {
        fprintf(stderr, "HOSTCUDA OTHER: a thread of another kernel, in a stream that this one does not wait for\n");
        return;
    }
    unsigned count = unsigned(L->threads.size()), t = slot % count % L->threads_per_block;
    const dim3 &b = L->config.block;
    bool same_half = slot / count == half_of(L->blocks[0].index);
    fprintf(stderr, "HOSTCUDA OTHER: thread (%u,%u,%u) of %s\n", t % b.x, t / b.x % b.y, t / (b.x * b.y),
        shared          ? "the same block, in shared memory"
            : same_half ? "the same block or of an earlier one"
                        : "another block");
}
#endif
