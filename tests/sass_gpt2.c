/* sass_gpt2.c - the kernels of a training step of gpt.c in GPT-2's 124M shape, from what tests/probe.c said of runs on
   machine code: a table in Markdown, counted, not timed. tests/sass_gpt2.sh runs it.

       sass_gpt2 ARCH TABLE ONE TWO WIDE LONG

   ONE, TWO: 12 layers, as narrow as can be, of one step and of two: their difference is what a step launches. WIDE: a
   layer of GPT-2's width, a sequence of TOKENS; LONG: a narrow one, with a sequence of GPT-2's length. From those come
   the instructions per element of the program's own kernels; those of amp's kernels are in TABLE,
   tests/expected/sass.txt. */
#include "sass_bound.h"

enum { WIDTH = 768, TOKENS = 64, NARROW = 12, LENGTH = 1024, GROUP = 32 };

typedef struct kernel {
    const char *name;      /* a part of the mangled name */
    const char *row;       /* of TABLE; NULL: counted here */
    double bytes;          /* per element, read and written */
    double elements;       /* of a launch of WIDE or LONG */
    int is_long, launches; /* launches: of a step */
} kernel;
static kernel kernels[] = {
    {"ampi_k_updateILi0EE", "AdamW f16", 28, 0, 0, 0},
    {"ampi_k_inspect", "inspect f16", 2, 0, 0, 0},
    {"ampi_k_xentILi", "cross-entropy f16", 4, 0, 0, 0},
    {"ampi_k_xent_counts", NULL, 0, 0, 0, 0},
    {"ampi_k_bias_grad", "GELU gradient and sums f16", 6, 0, 0, 0}, /* and, in fewer instructions, column sums */
    {"ampi_k_columns", NULL, 0, 0, 0, 0},
    {"embed_kernel", NULL, 6, WIDTH * TOKENS, 0, 0},
    {"norm_kernel", NULL, 4, WIDTH * TOKENS, 0, 0},
    {"swap_kernel", NULL, 4, 2.0 * WIDTH * TOKENS, 0, 0}, /* three parts in, one out, and the same back */
    {"softmax_kernel", NULL, 3, (double)LENGTH * LENGTH, 1, 0},
    {"softmax_back_kernel", NULL, 4, (double)LENGTH * LENGTH, 1, 0},
    {"norm_back_kernel", NULL, 8, WIDTH * TOKENS, 0, 0},
    {"norm_part_kernel", NULL, 4, WIDTH * TOKENS, 0, 0},
    {"norm_total_kernel", NULL, 4, 2.0 * NARROW * LENGTH / GROUP, 1, 0},
    {"gather_kernel", NULL, 6, WIDTH * TOKENS, 0, 0},
};
#define KERNELS (sizeof kernels / sizeof *kernels)

typedef struct counts {
    long launches;
    double all, pipe[SASS_PIPES];
} counts;

/* What FILE says of a kernel; all of its instances together. */
static counts counts_of(const char *file, const kernel *k) {
    counts c = {0, 0, {0}};
    char line[512], name[256];
    FILE *f = fopen(file, "r");
    if (!f) {
        perror(file);
        exit(2);
    }
    while (fgets(line, sizeof line, f)) {
        long launches;
        int at = 0, p;
        char *rest = line;
        if (sscanf(line, "kernel: %255s %ld %n", name, &launches, &at) < 2 || !strstr(name, k->name)) continue;
        c.launches += launches;
        rest += at;
        c.all += strtod(rest, &rest);
        for (p = 0; p < SASS_PIPES; p++)
            c.pipe[p] += strtod(rest, &rest);
    }
    fclose(f);
    return c;
}

/* Kernels of FILE that the table above does not have. */
static int unknown(const char *file) {
    char line[512], name[256];
    FILE *f = fopen(file, "r");
    size_t i;
    int n = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "kernel: %255s", name) != 1 || strstr(name, "ampi_k_cast")) continue; /* casts: of the start */
        for (i = 0; i < KERNELS && !strstr(name, kernels[i].name); i++)
            continue;
        if (i < KERNELS) continue;
        printf("FAIL %s is launched and not in tests/sass_gpt2.c\n", name);
        n++;
    }
    if (f) fclose(f);
    return n;
}

/* Instructions per element by pipe; returns their sum, 0 if there are none. */
static double per_element(const kernel *k, int arch, char **files, double *pipe) {
    counts c;
    int p;
    if (k->row) return sass_recorded(files[0], arch, k->row, "normal", pipe);
    c = counts_of(files[k->is_long ? 4 : 3], k);
    if (k->elements <= 0 || !c.launches) return 0;
    for (p = 0; p < SASS_PIPES; p++)
        pipe[p] = 32 * c.pipe[p] / k->elements / (double)c.launches;
    return 32 * c.all / k->elements / (double)c.launches;
}

static void head(int arch) {
    size_t g;
    printf("| kernel | launches | counted by | bytes, instructions per element |");
    for (g = 0; g < GPUS; g++)
        if (gpus[g].arch == arch) printf(" %s |", gpus[g].name);
    printf("\n|---|---|---|---|");
    for (g = 0; g < GPUS; g++)
        if (gpus[g].arch == arch) printf("---|");
    puts("");
}
static int tell(const kernel *k, int arch, char **files) {
    double pipe[SASS_PIPES] = {0}, all = per_element(k, arch, files, pipe);
    const char *end = strchr(k->name, 'I');
    size_t g;
    printf("| %.*s | %d | %s |", (int)(end ? (size_t)(end - k->name) : strlen(k->name)), k->name, k->launches,
        k->row                ? k->row
            : k->elements > 0 ? "here"
                              : "a part of the one above");
    if (all <= 0 && (k->row || k->elements > 0)) return puts(" FAIL: no count |"), 1;
    if (all > 0)
        printf(" %g, %.1f |", k->bytes, all);
    else
        printf(" |");
    for (g = 0; g < GPUS; g++) {
        const char *limit = "";
        double share = all > 0 && gpus[g].arch == arch ? sass_bound(&gpus[g], pipe, all, k->bytes, &limit) : 0;
        if (gpus[g].arch != arch) continue;
        if (all <= 0)
            printf(" |");
        else if (share >= 2)
            printf(" > 2 |");
        else
            printf(" %.2f%s%s |", share, share < 1.15 ? " " : "", share < 1.15 ? limit : "");
    }
    puts("");
    return 0;
}

int main(int argc, char **argv) {
    int arch, failed = 0, sum = 0;
    size_t i;
    if (argc != 7) return fprintf(stderr, "usage: sass_gpt2 ARCH TABLE ONE TWO WIDE LONG\n"), 2;
    arch = atoi(argv[1]);
    for (i = 3; i < 5; i++)
        failed += unknown(argv[i]);
    head(arch);
    for (i = 0; i < KERNELS; i++) {
        kernels[i].launches =
            (int)(counts_of(argv[4], &kernels[i]).launches - counts_of(argv[3], &kernels[i]).launches);
        sum += kernels[i].launches;
        if (kernels[i].launches) failed += tell(&kernels[i], arch, argv + 2);
    }
    printf("%d launches in a step\n", sum);
    return failed != 0;
}
