/* recompute_plan.h - which activations of a chain to keep, and which to compute again. Public domain, needs only libc.
 *
 * A chain of n layers. Layer i saves bytes[i] for backward, needs the output of layer i-1, and uses work[i] more while
 * it runs (gradients). A layer that is not kept is freed after the next layer's forward. Before backward reaches the
 * kept layer after it, it is computed once more, together with its neighbours that are not kept either, from the kept
 * layer before them.
 *
 * With K(e) = bytes of the kept layers up to e, the peak is the largest, over every kept e and over the end of the
 * chain, of
 *     K(e) + max(bytes of the segment before e + work[e],
 *                max over i in that segment of (bytes of the segment up to i + work[i]))
 *
 * recompute_evaluate: peak and cost of any choice. recompute_sqrt: the simple rule. recompute_optimal: the cheapest
 * choice within a budget. Each takes at most RECOMPUTE_LAYERS layers, whose numbers are below 2^46.
 */
#ifndef RECOMPUTE_PLAN_H
#define RECOMPUTE_PLAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RECOMPUTE_LAYERS 65535u /* at most */
#define RECOMPUTE_POINTS 4096u  /* trade-offs that recompute_optimal remembers for one place */

typedef struct recompute_layer {
    uint64_t bytes, work;
    uint64_t cost; /* of one forward, in any unit */
} recompute_layer;

typedef struct recompute_plan {
    uint64_t peak;  /* bytes */
    uint64_t extra; /* cost of what is computed again */
    uint64_t base;  /* cost of one forward */
    uint64_t
        least;   /* the smallest peak that any choice has: set by recompute_optimal, also when the budget is below it */
    size_t kept; /* layers */
    int exact;   /* 1: no choice within the budget costs less. 0: at some place trade-offs were thinned out */
} recompute_plan;

typedef enum recompute_result {
    RECOMPUTE_OK = 0,
    RECOMPUTE_INVALID,     /* NULL, too many layers, or a number of 2^46 or more */
    RECOMPUTE_OVER_BUDGET, /* the budget is below plan.least */
    RECOMPUTE_NO_MEMORY
} recompute_result;

static uint64_t recompute_max(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int recompute_valid(const recompute_layer *layers, size_t n) {
    size_t i;
    if (n > RECOMPUTE_LAYERS || (n && !layers)) return 0;
    for (i = 0; i < n; i++)
        if ((layers[i].bytes | layers[i].work | layers[i].cost) >> 46) return 0;
    return 1;
}

/* ---- any choice -------------------------------------------------------------------------------------------------- */

/* Peak and extra cost when the layers with keep[i] != 0 are kept. */
static recompute_result recompute_evaluate(
    recompute_plan *out, const recompute_layer *layers, size_t n, const uint8_t *keep) {
    recompute_plan plan;
    uint64_t kept = 0;    /* bytes, up to here */
    uint64_t segment = 0; /* bytes of the layers since the last kept one */
    uint64_t inside = 0;  /* the most that is needed while they are computed again */
    size_t i;
    if (!out || (n && !keep) || !recompute_valid(layers, n)) return RECOMPUTE_INVALID;
    memset(&plan, 0, sizeof plan);
    for (i = 0; i <= n; i++) { /* n: the end of the chain, which is a kept place without bytes */
        uint64_t work = i < n ? layers[i].work : 0;
        if (i < n) plan.base += layers[i].cost;
        if (i < n && !keep[i]) {
            segment += layers[i].bytes;
            inside = recompute_max(inside, segment + work);
            plan.extra += layers[i].cost;
            continue;
        }
        if (i < n) {
            kept += layers[i].bytes;
            plan.kept++;
        }
        plan.peak = recompute_max(plan.peak, kept + recompute_max(inside, segment + work));
        segment = 0;
        inside = 0;
    }
    *out = plan;
    return RECOMPUTE_OK;
}

/* ---- the simple rule --------------------------------------------------------------------------------------------- */

/* Every s-th layer is kept, s = sqrt(n) rounded up, counted from the end (Chen et al., arXiv 1604.06174). */
static recompute_result recompute_sqrt(recompute_plan *out, uint8_t *keep, const recompute_layer *layers, size_t n) {
    size_t s = 1, i;
    if (!out || (n && !keep) || !recompute_valid(layers, n)) return RECOMPUTE_INVALID;
    while (s * s < n)
        s++;
    for (i = 0; i < n; i++)
        keep[i] = (n - 1 - i) % s == 0;
    return recompute_evaluate(out, layers, n, keep);
}

/* ---- the cheapest choice within a budget -------------------------------------------------------------------------
   Dynamic programming over places. A place is a kept layer, or the end of the chain (number n). What matters of
   everything before a place is a pair: bytes kept up to it, and cost of what is computed again. Of these pairs only
   those that no other beats in both are remembered: the front of the place. */

/* layers before a place that are not kept; it grows towards the front of the chain */
typedef struct recompute_segment {
    uint64_t bytes, cost;
    uint64_t inside; /* the most that is needed while they are computed again */
} recompute_segment;

static void recompute_segment_add(recompute_segment *s, const recompute_layer *l) {
    s->inside = l->bytes + recompute_max(s->inside, l->work); /* the layers after it stand on its bytes */
    s->bytes += l->bytes;
    s->cost += l->cost;
}
/* What a segment takes beside the kept layers; work is that of the place after it. */
static uint64_t recompute_segment_need(const recompute_segment *s, uint64_t work) {
    return recompute_max(s->inside, s->bytes + work);
}

/* 1: some choice has a peak within the budget. least[e], n + 1 of them, is the smallest K(e) with which place e can be
   kept. */
static int recompute_possible(uint64_t *least, const recompute_layer *layers, size_t n, uint64_t budget) {
    size_t e, i;
    for (e = 0; e <= n; e++) {
        recompute_segment s = {0, 0, 0};
        uint64_t own = e < n ? layers[e].bytes : 0;
        uint64_t work = e < n ? layers[e].work : 0;
        least[e] = UINT64_MAX;
        for (i = e;; i--) { /* the layers i .. e-1 are not kept; i-1 is, unless i is 0 */
            uint64_t before = i ? least[i - 1] : 0;
            uint64_t need = own + recompute_segment_need(&s, work);
            if (need > budget) break;
            if (before <= budget - need && before + own < least[e]) least[e] = before + own;
            if (i == 0) break;
            recompute_segment_add(&s, &layers[i - 1]);
        }
    }
    return least[n] != UINT64_MAX;
}

/* The least budget, by bisection: more is never harder. */
static uint64_t recompute_least_budget(uint64_t *least, const recompute_layer *layers, size_t n) {
    uint64_t low = 0, high = 0;
    size_t i;
    for (i = 0; i < n; i++)
        high += layers[i].bytes + layers[i].work;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (recompute_possible(least, layers, n, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

typedef struct recompute_point {
    uint64_t kept, extra;
    size_t place; /* the kept place before, plus 1; 0: none */
    size_t point; /* the point of that place's front that this one continues */
} recompute_point;

typedef struct recompute_front { /* kept rises, extra falls */
    recompute_point *points;
    size_t n;
} recompute_front;

/* to = what nothing beats in a, and in b continued by `by` with at most `limit` kept bytes. Returns how many points
   that are. */
static size_t recompute_merge(recompute_point *to, const recompute_point *a, size_t na, const recompute_front *b,
    recompute_point by, uint64_t limit) {
    size_t i = 0, j = 0, n = 0, nb = b->n;
    while (nb && b->points[nb - 1].kept + by.kept > limit)
        nb--;
    while (i < na || j < nb) {
        recompute_point p = by;
        int from_a = j == nb;
        if (j < nb) {
            p.kept += b->points[j].kept;
            p.extra += b->points[j].extra;
            p.point = j;
        }
        if (i < na && j < nb) from_a = a[i].kept < p.kept || (a[i].kept == p.kept && a[i].extra <= p.extra);
        if (from_a)
            p = a[i++];
        else
            j++;
        if (n && p.extra >= to[n - 1].extra) continue; /* beaten */
        if (n && p.kept == to[n - 1].kept) n--;
        to[n++] = p;
    }
    return n;
}

/* Every second point goes; both ends stay. */
static size_t recompute_thin(recompute_point *p, size_t n) {
    size_t k;
    for (k = 1; 2 * k < n; k++)
        p[k] = p[2 * k];
    if (n % 2 == 0) p[k++] = p[n - 1];
    return k;
}

typedef struct recompute_search {
    const recompute_layer *layers;
    size_t n;
    uint64_t budget;
    uint64_t *least;         /* n + 1: see recompute_possible */
    recompute_front *fronts; /* n + 2: that of place e is fronts[e + 1], and fronts[0] is the start: nothing kept */
    recompute_point *a, *b;  /* two scratch fronts, 2 * RECOMPUTE_POINTS each */
    int exact;
} recompute_search;

/* The front of place e, from those of the places before it. 0: no memory. */
static int recompute_place(recompute_search *s, size_t e) {
    recompute_segment segment = {0, 0, 0};
    recompute_front *front = &s->fronts[e + 1];
    uint64_t own = e < s->n ? s->layers[e].bytes : 0;
    uint64_t work = e < s->n ? s->layers[e].work : 0;
    size_t m = 0, i;
    for (i = e;; i--) { /* the layers i .. e-1 are not kept; i-1 is, unless i is 0 */
        uint64_t need = recompute_segment_need(&segment, work);
        const recompute_front *before = &s->fronts[i];
        if (own + need > s->budget) break;
        if (before->n && before->points[0].kept + own <= s->budget - need) {
            recompute_point by, *swap = s->a;
            by.kept = own;
            by.extra = segment.cost;
            by.place = i;
            by.point = 0;
            m = recompute_merge(s->b, s->a, m, before, by, s->budget - need);
            s->a = s->b;
            s->b = swap;
        }
        if (m > RECOMPUTE_POINTS) {
            m = recompute_thin(s->a, m);
            s->exact = 0;
        }
        if (i == 0) break;
        recompute_segment_add(&segment, &s->layers[i - 1]);
    }
    if (m == 0) return 1; /* this place cannot be kept */
    front->points = (recompute_point *)malloc(m * sizeof *front->points);
    if (!front->points) return 0;
    memcpy(front->points, s->a, m * sizeof *front->points);
    front->n = m;
    return 1;
}

static recompute_result recompute_run(recompute_search *s, recompute_plan *out, uint8_t *keep) {
    const recompute_point *p;
    uint64_t least = recompute_least_budget(s->least, s->layers, s->n);
    size_t e;
    out->least = least;
    if (s->budget < least) return RECOMPUTE_OVER_BUDGET;
    s->fronts[0].points = (recompute_point *)calloc(1, sizeof *s->fronts[0].points);
    if (!s->fronts[0].points) return RECOMPUTE_NO_MEMORY;
    s->fronts[0].n = 1;
    for (e = 0; e <= s->n; e++)
        if (!recompute_place(s, e)) return RECOMPUTE_NO_MEMORY;
    if (s->n) memset(keep, 0, s->n);
    p = &s->fronts[s->n + 1].points[s->fronts[s->n + 1].n - 1]; /* the cheapest end; back from there */
    for (; p->place; p = &s->fronts[p->place].points[p->point])
        keep[p->place - 1] = 1;
    (void)recompute_evaluate(out, s->layers, s->n, keep);
    out->least = least;
    out->exact = s->exact;
    return RECOMPUTE_OK;
}

/* keep[i] = 1 or 0 with the least extra cost among all choices with peak <= budget. Time: at most n^2 / 2 merges of two
   fronts of up to RECOMPUTE_POINTS points. Layers of random sizes: a fifth of a second for 400 and seconds for 1,200.
   Equal layers: less. */
static recompute_result recompute_optimal(
    recompute_plan *out, uint8_t *keep, const recompute_layer *layers, size_t n, uint64_t budget) {
    recompute_search s;
    recompute_result result = RECOMPUTE_NO_MEMORY;
    recompute_point *scratch;
    size_t e;
    if (!out || (n && !keep) || !recompute_valid(layers, n)) return RECOMPUTE_INVALID;
    s.layers = layers;
    s.n = n;
    s.budget = budget;
    s.exact = 1;
    s.least = (uint64_t *)malloc((n + 1) * sizeof *s.least);
    s.fronts = (recompute_front *)calloc(n + 2, sizeof *s.fronts);
    scratch = (recompute_point *)malloc(4 * RECOMPUTE_POINTS * sizeof *scratch);
    if (s.least && s.fronts && scratch) {
        s.a = scratch;
        s.b = scratch + 2 * RECOMPUTE_POINTS;
        result = recompute_run(&s, out, keep);
    }
    for (e = 0; s.fronts && e < n + 2; e++)
        free(s.fronts[e].points);
    free(s.fronts);
    free(s.least);
    free(scratch);
    return result;
}

#endif
