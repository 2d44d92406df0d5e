/* roofline.c - what a GPU can do at most with a product of matrices, and with amp's own kernels: a table and a picture.
 *
 *     make build/roofline && build/roofline H100 --out build/roofline.svg        (T4, A100, H100, H200, B200, 3060 ...)
 *
 * Counted, not timed. A product of m x n x k has 2 m n k operations and reads and writes each matrix once, at best.
 * The instructions of amp's kernels were counted in their machine code: tests/expected/sass.txt, by `make sass-table`.
 * What the GPU has is its maker's nominal figure: clock, bandwidth and units of tests/sass_bound.h, whose comment says
 * where they come from. A real run is slower than these bounds.
 */
#include "../tests/sass_bound.h"

/* Operations per clock and SM of the Tensor Cores: FP16 or BF16 operands, sums in FP32, no sparsity. Recalled from
   NVIDIA's architecture papers, like the rest of the table; SMs x clock x these give the data sheets' 312 TFLOP/s of
   an A100, 71 of a 3090, 165 of a 4090. */
static double tensor_flops(int arch) {
    switch (arch) {
    case 75: return 1024;
    case 80: return 2048;
    case 90: return 4096;
    case 100: return 8192;
    default: return 512;
    }
}

typedef struct roofs { /* in operations and bytes per second */
    double bytes, fp32, fp16;
} roofs;
static roofs roofs_of(const gpu *g) {
    roofs r;
    r.bytes = g->gb_per_s * 1e9;
    r.fp32 = g->sms * g->ghz * 1e9 * 2 * g->fma;
    r.fp16 = g->sms * g->ghz * 1e9 * tensor_flops(g->arch);
    return r;
}

/* d[m, n] = a[m, k] b[k, n]: rows of activations by a square weight */
typedef struct product {
    const char *name;
    double m, n, k;
} product;
static const product products[] = {
    {"1 row", 1, 4096, 4096},
    {"64 rows", 64, 4096, 4096},
    {"1024 rows", 1024, 4096, 4096},
    {"64 wide", 1024, 64, 64},
    {"512 wide", 1024, 512, 512},
};
enum { PRODUCTS = sizeof products / sizeof *products };

static double intensity(const product *p, double size) { /* operations per byte */
    return 2 * p->m * p->n * p->k / (size * (p->m * p->k + p->k * p->n + p->m * p->n));
}
static double at_most(double per_byte, double bytes, double peak) {
    return per_byte * bytes < peak ? per_byte * bytes : peak;
}

static void print_products(const gpu *g, const roofs *r) {
    int i;
    printf("%s, nominal: %.0f GB/s; FP32 units %.1f TFLOP/s, FP16 Tensor Cores %.1f TFLOP/s. Counted, not timed.\n\n",
        g->name, r->bytes / 1e9, r->fp32 / 1e12, r->fp16 / 1e12);
    printf("a product of m x n x k      FLOP/byte      at most TFLOP/s   limited by        FP16\n");
    printf("                            fp32   fp16     fp32     fp16    fp32     fp16     over FP32\n");
    for (i = 0; i < PRODUCTS; i++) {
        const product *p = &products[i];
        double x32 = intensity(p, 4), x16 = intensity(p, 2);
        double y32 = at_most(x32, r->bytes, r->fp32), y16 = at_most(x16, r->bytes, r->fp16);
        printf("%4.0f x %4.0f x %4.0f        %7.1f %6.1f  %7.1f  %7.1f    %-8s %-8s %5.1f\n", p->m, p->n, p->k, x32,
            x16, y32 / 1e12, y16 / 1e12, y32 < r->fp32 ? "memory" : "units", y16 < r->fp16 ? "memory" : "units",
            y16 / y32);
    }
    printf("\nA product leaves the sloping roof at %.0f FLOP/byte in FP32, at %.0f in FP16.\n", r->fp32 / r->bytes,
        r->fp16 / r->bytes);
}

/* amp's kernels: bytes per element that must be moved, and the row of tests/expected/sass.txt */
typedef struct kernel {
    const char *row;
    double bytes;
    double all, share;
    const char *limit;
} kernel;
static kernel kernels[] = {
    {"cast f32->f16", 6, 0, 0, ""},
    {"unscale f16", 4, 0, 0, ""},
    {"SGD f16", 12, 0, 0, ""},
    {"AdamW f32", 28, 0, 0, ""},
    {"AdamW f16", 28, 0, 0, ""},
    {"AdamW bf16 stochastic", 22, 0, 0, ""},
    {"AdamW bf16 moments", 14, 0, 0, ""},
    {"cross-entropy f16", 4, 0, 0, ""},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* For the worse of the two kinds of data that were counted, as in docs/numbers.md. 0: the table has them all. */
static int count_kernels(const gpu *g, const char *table) {
    static const char *const data[2] = {"normal", "half subnormal"};
    const char *limit = "";
    int i, d;
    for (i = 0; i < KERNELS; i++) {
        kernel *k = &kernels[i];
        k->share = INFINITY;
        for (d = 0; d < 2; d++) {
            double pipe[SASS_PIPES] = {0}, all = sass_recorded(table, g->arch, k->row, data[d], pipe), share;
            if (!(all > 0)) {
                fprintf(stderr, "roofline: %s has no row '%s' for sm_%d\n", table, k->row, g->arch);
                return -1;
            }
            share = sass_bound(g, pipe, all, k->bytes, &limit);
            if (share >= k->share) continue;
            k->share = share;
            k->all = all;
            k->limit = limit;
        }
    }
    return 0;
}
static void print_kernels(void) {
    int i;
    printf("\namp's kernel             bytes  instructions   share of memory's bandwidth that\n");
    printf("                    per element  per element   the instructions allow at most\n");
    for (i = 0; i < KERNELS; i++) {
        const kernel *k = &kernels[i];
        printf("%-24s %5.0f  %12.1f   ", k->row, k->bytes, k->all);
        if (k->share > 1) printf("all of it: memory is the limit\n");
        if (k->share <= 1) printf("%.2f: %s is the limit\n", k->share, k->limit);
    }
}

/* ---- the picture: at the left operations per byte and per second; at the right the kernels ---- */

enum { LEFT = 90, TOP = 110, WIDE = 430, HIGH = 330, BARS = 760, BAR = 150 };
static const double X0 = -1, X1 = 3.5, Y0 = -1, Y1 = 3.5; /* powers of ten */

static double px(double flop_per_byte) { return LEFT + WIDE * (log10(flop_per_byte) - X0) / (X1 - X0); }
static double py(double flops) { return TOP + HIGH * (1 - (log10(flops / 1e12) - Y0) / (Y1 - Y0)); }

static void text(FILE *f, double x, double y, const char *more, const char *s) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, more, s);
}
static void line(FILE *f, double x0, double y0, double x1, double y1, const char *more) {
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1, more);
}
static void draw_axes(FILE *f) {
    char s[32];
    int e;
    for (e = 0; e <= 3; e++) {
        sprintf(s, "%d", (int)pow(10, e));
        line(f, px(pow(10, e)), TOP, px(pow(10, e)), TOP + HIGH, "stroke=\"#dddddd\"");
        text(f, px(pow(10, e)), TOP + HIGH + 18, "text-anchor=\"middle\"", s);
        line(f, LEFT, py(1e12 * pow(10, e)), LEFT + WIDE, py(1e12 * pow(10, e)), "stroke=\"#dddddd\"");
        text(f, LEFT - 8, py(1e12 * pow(10, e)) + 4, "text-anchor=\"end\"", s);
    }
    line(f, LEFT, TOP + HIGH, LEFT + WIDE, TOP + HIGH, "stroke=\"#222222\"");
    line(f, LEFT, TOP, LEFT, TOP + HIGH, "stroke=\"#222222\"");
    text(f, LEFT + WIDE / 2.0, TOP + HIGH + 38, "text-anchor=\"middle\"", "operations per byte that is moved");
    text(f, 24, TOP - 12, "", "TFLOP/s, at most");
}
static void draw_roofs(FILE *f, const roofs *r) {
    double low = pow(10, X0), high = pow(10, X1), edge16 = r->fp16 / r->bytes, edge32 = r->fp32 / r->bytes;
    line(f, px(low), py(low * r->bytes), px(edge16), py(r->fp16), "stroke=\"#222222\" stroke-width=\"2\"");
    line(f, px(edge16), py(r->fp16), px(high), py(r->fp16), "stroke=\"#0072B2\" stroke-width=\"3\"");
    line(f, px(edge32), py(r->fp32), px(high), py(r->fp32), "stroke=\"#D55E00\" stroke-width=\"3\"");
    text(f, px(high), py(r->fp16) - 8, "text-anchor=\"end\" fill=\"#0072B2\"", "FP16 Tensor Cores");
    text(f, px(high), py(r->fp32) - 8, "text-anchor=\"end\" fill=\"#B04000\"", "FP32 units");
    text(f, px(4) + 10, py(4 * r->bytes) + 12, "", "memory");
}
static void draw_products(FILE *f, const roofs *r) {
    int i, half;
    for (i = 0; i < PRODUCTS; i++)
        for (half = 0; half < 2; half++) {
            double x = intensity(&products[i], half ? 2 : 4), y = at_most(x, r->bytes, half ? r->fp16 : r->fp32);
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" stroke=\"white\"/>\n", px(x), py(y),
                half ? "#0072B2" : "#D55E00");
            if (half)
                text(f, px(x) + (x < 200 ? 9 : -4), py(y) + (x < 200 ? 5 : 20), "font-size=\"11\"", products[i].name);
        }
}
static void draw_kernels(FILE *f) {
    double all = BARS + BAR;
    char s[64];
    int i;
    text(f, BARS - 180, TOP - 12, "font-weight=\"bold\"", "amp's kernels: share of memory's bandwidth, at most");
    for (i = 0; i < KERNELS; i++) {
        const kernel *k = &kernels[i];
        double y = TOP + 10 + 38 * i, share = k->share < 1.5 ? k->share : 1.5;
        fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"20\" fill=\"%s\"/>\n", BARS, y, BAR * share,
            k->share < 1 ? "#D55E00" : "#0072B2");
        text(f, BARS - 8, y + 15, "text-anchor=\"end\"", k->row);
        sprintf(s, "%s%.2f", k->share < 1.5 ? "" : "&gt; ", share);
        text(f, BARS + 6, y + 15, "font-size=\"11\" fill=\"white\"", s);
        if (k->share < 1) text(f, all + 6, y + 15, "font-size=\"11\"", k->limit);
    }
    line(f, all, TOP - 2, all, TOP + 10 + 38 * KERNELS, "stroke=\"#222222\" stroke-dasharray=\"4 3\"");
    text(f, all, TOP + 30 + 38 * KERNELS, "text-anchor=\"middle\"", "1: memory is the limit");
}
static int draw(const char *path, const gpu *g, const roofs *r) {
    FILE *f = fopen(path, "w");
    char s[160];
    int bad;
    if (!f) return -1;
    fprintf(f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1010\" height=\"500\" viewBox=\"0 0 1010 500\"\n"
        "     role=\"img\" font-size=\"13\" fill=\"#222222\"\n"
        "     font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n"
        "<title>Roofline of a %s: counted, not timed</title>\n<rect width=\"1010\" height=\"500\" fill=\"white\"/>\n",
        g->name);
    sprintf(s, "What a%s %s can do at most: counted, not timed", strchr("AH", g->name[0]) ? "n" : "", g->name);
    text(f, 20, 30, "font-size=\"18\" font-weight=\"bold\"", s);
    text(f, 20, 52, "fill=\"#555555\"",
        "Products of matrices; orange in FP32, blue in FP16. Left of the bend memory decides, and half of the "
        "bytes are twice as fast;");
    text(f, 20, 70, "fill=\"#555555\"",
        "right of it the units decide, and Tensor Cores are many times as fast. Nominal clock, bandwidth and units.");
    draw_axes(f);
    draw_roofs(f, r);
    draw_products(f, r);
    draw_kernels(f);
    fprintf(f, "</svg>\n");
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

int main(int argc, char **argv) {
    const char *name = "H100", *out = NULL, *table = "tests/expected/sass.txt";
    const gpu *g = NULL;
    roofs r;
    size_t i;
    for (i = 1; i < (size_t)argc; i++) {
        if (!strcmp(argv[i], "--out") && argv[i + 1])
            out = argv[++i];
        else if (!strcmp(argv[i], "--table") && argv[i + 1])
            table = argv[++i];
        else
            name = argv[i];
    }
    for (i = 0; i < GPUS; i++)
        if (!strcmp(gpus[i].name, name)) g = &gpus[i];
    if (!g) {
        fprintf(stderr, "roofline: %s is none of", name);
        for (i = 0; i < GPUS; i++)
            fprintf(stderr, " %s", gpus[i].name);
        fprintf(stderr, "\n");
        return 1;
    }
    if (count_kernels(g, table)) return 1;
    r = roofs_of(g);
    print_products(g, &r);
    print_kernels();
    if (!out) return 0;
    if (draw(out, g, &r)) {
        fprintf(stderr, "roofline: %s: could not be written\n", out);
        return 1;
    }
    printf("\nwrote %s\n", out);
    return 0;
}
