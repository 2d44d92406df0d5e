/* contest.h - rounds between contestants, and the table of their results with its CSV file; a peer in another process.
   C99 and C++.

   The contestants of a row take turns inside each round. A row's ratio is the median over rounds of (their time for the
   same work / our time), with its 10% and 90% quantiles; "bests" is the ratio of each one's best round. Speed never
   changes the exit status, a wrong result does. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H
#include "common.h"
#include <signal.h>
#include <unistd.h>

typedef struct contest { /* one contestant */
    const char *name;
    void (*fn)(const struct contest *); /* one call */
    /* Seconds of this many calls; NULL: the host's, until amp_sync(ctx). */
    double (*clock)(const struct contest *, int calls);
    void (*before)(const struct contest *); /* before each timing, not timed; NULL: nothing */
    double work;                            /* of one call: bytes or operations; 1 where the row is a time */
    int most;                               /* calls per timing at most; 0: a million */
    amp_ctx *ctx;
    /* Whatever fn wants. */
    void *dst;
    const void *src;
    size_t n, bytes;
    amp_dtype to, from;
    void *x;
    char key[120];    /* of a peer */
    int failed;       /* the peer cannot: no rows with it */
    double t[ROUNDS]; /* seconds per call */
} contest;

static struct bench {       /* the table being written */
    const char *part, *out; /* out: folder, or NULL */
    FILE *csv;
    int tiny; /* sizes of the test: everything runs once or twice */
    int rows, met, missed, checked, wrong, skipped;
    FILE *to_peer, *from_peer;
    char peer[256]; /* what it calls itself */
} bench;

/* ---- results ---- */

AMP_UNUSED
static int right(int ok, const char *what) { /* counts a check of results; ok: 1 if they are right */
    bench.checked++;
    if (ok) return 1;
    bench.wrong++;
    printf("WRONG: %s\n", what);
    return 0;
}
AMP_UNUSED
static int fine(amp_ctx *ctx, amp_status s, const char *what) { /* 1 if a call succeeded */
    if (s == AMP_OK) return 1;
    bench.wrong++;
    printf("WRONG: %s: %s: %s\n", what, amp_strerror(s), amp_last_error(ctx));
    return 0;
}
AMP_UNUSED
static void skip(const char *work, const char *why) {
    bench.skipped++;
    printf("  skipped: %s: %s\n", work, why);
}

/* ---- rounds ---- */

static double host_clock(const contest *r, int calls) {
    double t = now();
    int i;
    for (i = 0; i < calls; i++)
        r->fn(r);
    if (r->ctx && amp_sync(r->ctx) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_sync");
    return now() - t;
}
static double timing(contest *r, int calls) {
    double s;
    if (r->failed) return 1;
    if (r->before) r->before(r);
    s = r->clock ? r->clock(r, calls) : host_clock(r, calls);
    if (s < 0) r->failed = 1;
    return s > 0 ? s : 1e-9; /* 0: shorter than the clock sees */
}
/* All contestants, `rounds` times in turn; each timing is of as many calls as take about `slice` seconds. */
AMP_UNUSED
static void compete(contest *r, int n, int rounds, double slice) {
    int i, k, calls[16];
    for (i = 0; i < n; i++) {
        int most = r[i].most ? r[i].most : 1 << 20;
        (void)timing(&r[i], 1); /* the first loads code and finds plans */
        calls[i] = 1;
        while (!bench.tiny && calls[i] < most && !r[i].failed && timing(&r[i], calls[i]) < slice / 2)
            calls[i] *= 2;
        if (calls[i] > most) calls[i] = most;
    }
    for (k = 0; k < rounds; k++)
        for (i = 0; i < n; i++)
            r[i].t[k] = timing(&r[i], calls[i]) / calls[i];
}
AMP_UNUSED
static int rounds_of(int many) { return bench.tiny ? 2 : many; }
AMP_UNUSED
static double median(const contest *r, int rounds) { return quantile(r->t, rounds, 0.5); }

/* ---- the table ---- */

typedef enum unit { GB_S, TFLOP_S, MICROSECONDS, MILLISECONDS } unit;
static const char *const unit_name[] = {"GB/s", "TFLOP/s", "us", "ms"};
static double in_unit(unit u, double seconds, double work) {
    switch (u) {
    case GB_S: return work * 1e-9 / seconds;
    case TFLOP_S: return work * 1e-12 / seconds;
    case MICROSECONDS: return seconds * 1e6;
    case MILLISECONDS: break;
    }
    return seconds * 1e3;
}
AMP_UNUSED
static void head(const char *title) {
    printf("\n%s\n  %-38s %-22s %10s %-8s %10s %7s %7s %7s  %-7s %s\n", title, "work", "size", "ours", "", "anchor",
        "ratio", "bests", "target", "", "spread of the ratio, anchor");
}
static void csv_head(void) {
    if (bench.csv)
        fprintf(bench.csv, "part,work,size,ours,unit,anchor,anchor value,ratio,bests,target,met,ratio p10,ratio p90\n");
}
static void line_out(const char *work, const char *size, double ours, const char *u, double theirs, const char *anchor,
    double ratio, double bests, double target, int met, double p10, double p90) {
    const char *answer = ""; /* no target */
    printf("  %-38s %-22s %10.3f %-8s %10.3f %7.3f %7.3f ", work, size, ours, u, theirs, ratio, bests);
    if (target != 0) {
        printf("%s%6.2f  %s", target < 0 ? "<" : " ", fabs(target), met ? "met    " : "MISSED ");
        answer = met ? "yes" : "no";
        bench.met += met != 0;
        bench.missed += met == 0;
    } else
        printf("%7s  %7s", "-", "");
    printf(" %.3f..%.3f  %s\n", p10, p90, anchor);
    if (bench.csv)
        fprintf(bench.csv, "%s,\"%s\",\"%s\",%.4f,%s,\"%s\",%.4f,%.4f,%.4f,%.2f,%s,%.4f,%.4f\n", bench.part, work, size,
            ours, u, anchor, theirs, ratio, bests, target, answer, p10, p90);
    bench.rows++;
    fflush(stdout);
}
/* Contestant r against the best of the anchors a[0 .. n); returns the ratio, or 0 without an anchor. target > 0: the
   ratio is at least that. target < 0: r's time is at most -target microseconds longer, and "ratio" is that difference.
   0: none. */
AMP_UNUSED
static double row(
    const char *work, const char *size, unit u, const contest *r, const contest *a, int n, int rounds, double target) {
    double x[ROUNDS], m, bests, mine, theirs;
    int k, i, top = -1, quickest = -1;
    if (r->failed) return 0;
    for (i = 0; i < n; i++) {
        if (a[i].failed) continue;
        if (top < 0 || median(&a[i], rounds) < median(&a[top], rounds)) top = i;
        if (quickest < 0 || quantile(a[i].t, rounds, 0) < quantile(a[quickest].t, rounds, 0)) quickest = i;
    }
    if (top < 0) return 0;
    for (k = 0; k < rounds; k++)
        x[k] = target < 0 ? (r->t[k] - a[top].t[k]) * 1e6 : a[top].t[k] * r->work / (a[top].work * r->t[k]);
    m = quantile(x, rounds, 0.5);
    mine = quantile(r->t, rounds, 0);
    theirs = quantile(a[quickest].t, rounds, 0);
    bests = target < 0 ? (mine - theirs) * 1e6 : theirs * r->work / (a[quickest].work * mine);
    line_out(work, size, in_unit(u, median(r, rounds), r->work), unit_name[u],
        in_unit(u, median(&a[top], rounds), a[top].work), a[top].name, m, bests, target,
        target < 0 ? m <= -target : m >= target, quantile(x, rounds, 0.1), quantile(x, rounds, 0.9));
    return m;
}
/* Two numbers that were not timed, e.g. bytes: ratio = theirs / ours. */
AMP_UNUSED
static void row_of(
    const char *work, const char *size, const char *u, double ours, double theirs, const char *anchor, double target) {
    double ratio = ours > 0 ? theirs / ours : 0;
    line_out(work, size, ours, u, theirs, anchor, ratio, ratio, target, ratio >= target, ratio, ratio);
}

/* ---- a peer in another process, e.g. peers_gpu.py ----
   A line is a question, a line "ok NUMBER" or "no REASON" the answer. */

AMP_UNUSED
static void peer_open(const char *command) { /* before CUDA is touched. Its first line is its name, or "no REASON" */
    int down[2], up[2];
    char line[256] = "";
    if (!command || !*command) return;
    signal(SIGPIPE, SIG_IGN);
    if (pipe(down)) return;
    if (pipe(up)) {
        close(down[0]);
        close(down[1]);
        return;
    }
    fflush(NULL);
    if (fork() == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]);
        close(down[1]);
        close(up[0]);
        close(up[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    bench.to_peer = fdopen(down[1], "w");
    bench.from_peer = fdopen(up[0], "r");
    if (!bench.from_peer || !fgets(line, sizeof line, bench.from_peer))
        snprintf(line, sizeof line, "no answer from: %.200s", command);
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "no ", 3)) {
        snprintf(bench.peer, sizeof bench.peer, "%.250s", line);
        return;
    }
    printf("skipped: PyTorch's rows: %s\n", line);
    if (bench.to_peer) fclose(bench.to_peer);
    if (bench.from_peer) fclose(bench.from_peer);
    bench.to_peer = bench.from_peer = NULL;
}
AMP_UNUSED
static void peer_close(void) {
    if (bench.to_peer) fclose(bench.to_peer); /* the end of its input ends it */
    if (bench.from_peer) fclose(bench.from_peer);
    bench.to_peer = bench.from_peer = NULL;
}
static double peer_ask(const char *verb, const char *key, int calls) { /* -1: it cannot, and has said why */
    char line[512] = "no answer";
    if (!bench.to_peer) return -1;
    fprintf(bench.to_peer, "%s %d %s\n", verb, calls, key);
    if (fflush(bench.to_peer)) return -1;
    while (fgets(line, sizeof line, bench.from_peer)) {
        if (!strncmp(line, "ok ", 3)) return atof(line + 3);
        if (!strncmp(line, "no ", 3)) break;
    }
    line[strcspn(line, "\n")] = 0;
    skip(key, !strncmp(line, "no ", 3) ? line + 3 : line);
    return -1;
}
static double peer_clock(const contest *r, int calls) { return peer_ask("time", r->key, calls); }
AMP_UNUSED
static void peer_forget(void) { /* it frees what it has made */
    if (bench.to_peer) (void)peer_ask("forget", "", 0);
}
/* A contestant in the peer's process; failed if there is no peer. */
AMP_UNUSED
static contest peer_contest(const char *name, const char *key, double work) {
    contest r;
    memset(&r, 0, sizeof r);
    r.name = name;
    r.clock = peer_clock;
    r.work = work;
    snprintf(r.key, sizeof r.key, "%s", key);
    r.failed = !bench.to_peer;
    return r;
}

/* ---- beginning and end ---- */

AMP_UNUSED
static void table_begin(const char *part, const char *prefix) {
    bench.part = part;
    if (bench.out) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s%s.csv", bench.out, prefix, part);
        bench.csv = fopen(path, "w");
        if (!bench.csv) {
            printf("WRONG: cannot write %s\n", path);
            bench.wrong++;
        }
    }
    csv_head();
}
AMP_UNUSED
static int table_end(void) { /* the exit status */
    if (bench.csv && (ferror(bench.csv) | fclose(bench.csv))) {
        puts("WRONG: the CSV file could not be written");
        bench.wrong++;
    }
    bench.csv = NULL;
    printf("\n%d rows: %d targets met, %d missed; %d results checked, %d wrong; %d skipped\n", bench.rows, bench.met,
        bench.missed, bench.checked, bench.wrong, bench.skipped);
    return bench.wrong != 0;
}
#endif
