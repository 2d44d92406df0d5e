/* hcu_pinned.cpp - host memory that queued copies read or write.
 *
 * Until it has synchronised, the host may neither change what they read nor touch what they write: the first is noticed
 * by its hash; the second is all ones, and poisoned for ASan.  Other queued work may do both, in the order of the
 * stream: a kernel or a host function fills the source, a second copy takes the destination.  So the memory is hidden
 * only while it is the host's turn, and shown as the device left it whenever stream work runs. */
#include <cstring>
#include "hcu_state.h"
using std::vector;

namespace hcu {
namespace {
struct Range {
    OpP op;
    char *p;
    size_t n;
    bool written;      /* by the copy; otherwise it is read */
    bool hidden;       /* and kept, or hash, is what the device finds there */
    vector<char> kept; /* of what is written, until the copy has run */
    uint64_t hash;     /* of what is read */
};
vector<Range> &g_ranges = *new vector<Range>; /* in the order of the calls */
int g_shown;                                  /* stream work runs */

uint64_t content_hash(const char *p, size_t n) {
    constexpr uint64_t prime = 1099511628211ull;
    uint64_t h = 1469598103934665603ull, word;
    size_t i = 0;
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        h = (h ^ word) * prime;
    }
    for (; i < n; i++)
        h = (h ^ static_cast<unsigned char>(p[i])) * prime;
    mark_defined(&h, sizeof h); /* to copy what was never written is no decision by it */
    return h;
}
bool over(const Range &r) { return r.op->done && (r.op->visible || !r.written); }
template <class F> bool forget_if(F gone) {
    size_t before = g_ranges.size();
    for (Range &r : g_ranges)
        if (r.written && gone(r)) __asan_unpoison_memory_region(r.p, r.n);
    g_ranges.erase(std::remove_if(g_ranges.begin(), g_ranges.end(), gone), g_ranges.end());
    return g_ranges.size() != before;
}
void hide() { /* the sources first, while all is as the device left it; destinations lie on older ones */
    bool opened = forget_if(over); /* others may lie there, too */
    for (Range &r : g_ranges)
        if (!r.written && !r.hidden) r.hash = content_hash(r.p, r.n);
    for (Range &r : g_ranges)
        if (r.written && !r.hidden && !r.op->done) {
            __asan_unpoison_memory_region(r.p, r.n);
            r.kept.assign(r.p, r.p + r.n);
            memset(r.p, 0xff, r.n);
        }
    for (Range &r : g_ranges) {
        if (r.written && (opened || !r.hidden)) __asan_poison_memory_region(r.p, r.n);
        r.hidden = true;
    }
}
void show() { /* the newest first, as they were laid on each other */
    for (size_t i = g_ranges.size(); i-- > 0;) {
        Range &r = g_ranges[i];
        if (!r.written || !r.hidden) continue;
        __asan_unpoison_memory_region(r.p, r.n);
        if (!r.op->done) memcpy(r.p, r.kept.data(), r.n);
    }
    for (Range &r : g_ranges)
        if (!r.written && r.hidden && content_hash(r.p, r.n) != r.hash)
            bug("%s: the pinned source %p was modified before the copy ran", r.op->work.name, static_cast<void *>(r.p));
    for (Range &r : g_ranges)
        r.hidden = false;
}
bool hidden_under(const char *p, size_t n) {
    for (const Range &r : g_ranges)
        if (r.written && r.hidden && p < r.p + r.n && r.p < p + n) return true;
    return false;
}
} // namespace

void show_host_memory() {
    if (g_shown++ == 0) show();
}
void hide_host_memory() {
    if (--g_shown == 0) hide();
}
void watch_host_memory(const OpP &op) {
    const Work &w = op->work;
    char *from = static_cast<char *>(const_cast<void *>(w.host_src)), *to = static_cast<char *>(w.host_dst);
    if (!from && !to) return;
    bool covered = from && hidden_under(from, w.host_bytes);
    if (covered) show_host_memory();
    if (from) g_ranges.push_back({op, from, w.host_bytes, false, false, {}, 0});
    if (to) g_ranges.push_back({op, to, w.host_bytes, true, false, {}, 0});
    if (covered) return hide_host_memory();
    host_memory_seen();
}
void host_memory_seen() {
    if (g_shown == 0) hide();
}
const char *copy_into(const void *p) {
    for (const Range &r : g_ranges)
        if (r.written && p >= r.p && p < r.p + r.n) return r.op->work.name;
    return nullptr;
}
void forget_host_memory(const void *p, size_t n) {
    const char *begin = static_cast<const char *>(p);
    forget_if([=](const Range &r) { return r.p >= begin && r.p < begin + n; });
}
} // namespace hcu
