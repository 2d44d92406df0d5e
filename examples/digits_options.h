/* digits_options.h - the command line of digits.c. Included by digits.c alone. */
#ifndef DIGITS_OPTIONS_H
#define DIGITS_OPTIONS_H

/* ==== options and main ========================================================================================== */

static const char help[] =
    "digits: trains a network on handwritten digits in several precisions and shows what each costs.\n"
    "\n"
    "  --net plain|deep|both  the network (plain). deep: 8 layers and a loss of small gradients, where scaling\n"
    "                       decides. both: one after the other\n"
    "  --mode LIST          all six (default), or some of fp32,fp16-pure,fp16-masters,amp-static,amp-dynamic,bf16,\n"
    "                       and fp8-current, fp8-delayed: BF16 whose products read FP8 with a scale per tensor\n"
    "  --seed N             random numbers of weights and order (1)\n"
    "  --seeds N            repeat with N seeds: mean and spread (1)\n"
    "  --epochs N --batch N --hidden N --lr X     instead of the network's own\n"
    "  --places N           the loss is a mean over N places per image: gradients N times smaller (plain 1,\n"
    "                       deep 65536)\n"
    "  --data DIR           IDX files instead of the built-in digits: train-images-idx3-ubyte,\n"
    "                       train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (MNIST or\n"
    "                       similar, any image size)\n"
    "  --moments fp32|bf16|8bit   how Adam's moments are kept (fp32)\n"
    "  --out DIR            folder for the pictures (out)\n"
    "  --report FILE        a page with the tables, the pictures and what they mean; with --net both, all six modes\n"
    "                       and one seed\n"
    "  --csv FILE           write every step to FILE\n"
    "  --device cpu|cuda    where (cuda if built with it and found)\n"
    "  --threads N          CPU threads (all)\n"
    "  --simd auto|scalar|sse2|avx2|avx512|neon   CPU code path (auto)\n"
    "  --ordered            products in a defined order: the same weights, to the bit, on every machine\n"
    "  --check              test the claims with 5 seeds on both networks; writes no files; exit status 1 if one\n"
    "                       fails\n"
    "  --help\n"
    "\n"
    "Built-in data: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning\n"
    "Repository, CC BY 4.0.\n";

static int is_word(const char *text, size_t length, const char *word) {
    return length == strlen(word) && !strncmp(text, word, length);
}

static void parse_modes(options *o, const char *list) {
    int m;
    memset(o->run, 0, sizeof o->run);
    for (;;) {
        size_t length = strcspn(list, ",");
        int known = 0;
        for (m = 0; m < MODES; m++)
            if ((is_word(list, length, "all") && !modes[m].fp8) || is_word(list, length, modes[m].name))
                known = o->run[m] = 1;
        if (!known) option_refuse("--mode: '%.*s' is not a mode, see --help", (int)length, list);
        if (!list[length]) return;
        list += length + 1;
    }
}

/* The options with a value. Those that name a network or modes set net_given. */
static void parse_option(options *o, const char *a, const char *v, int *net_given) {
    static const char *const nets[] = {"plain", "deep", "both"};
    static const char *const simds[] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon"};
    static const amp_simd simd[] = {
        AMP_SIMD_AUTO, AMP_SIMD_SCALAR, AMP_SIMD_SSE2, AMP_SIMD_AVX2, AMP_SIMD_AVX512, AMP_SIMD_NEON};
    if (!strcmp(a, "--net")) {
        int net = option_choice(a, v, nets, 3);
        o->nets[PLAIN] = net != DEEP;
        o->nets[DEEP] = net != PLAIN;
        *net_given = 1;
    } else if (!strcmp(a, "--mode")) {
        parse_modes(o, option_text(a, v));
        *net_given = 1;
    } else if (!strcmp(a, "--seed"))
        o->seed = (uint64_t)option_number(a, v, 0, 4294967295.0, 1);
    else if (!strcmp(a, "--seeds"))
        o->seeds = (int)option_number(a, v, 1, MAX_SEEDS, 1);
    else if (!strcmp(a, "--epochs"))
        o->epochs = (size_t)option_number(a, v, 1, 1e6, 1);
    else if (!strcmp(a, "--batch"))
        o->batch = (size_t)option_number(a, v, 1, 65536, 1);
    else if (!strcmp(a, "--hidden"))
        o->hidden = (size_t)option_number(a, v, 1, 16384, 1);
    else if (!strcmp(a, "--lr"))
        o->lr = option_number(a, v, 1e-12, 1e6, 0);
    else if (!strcmp(a, "--places"))
        o->places = (long)option_number(a, v, 1, 1e9, 1);
    else if (!strcmp(a, "--data"))
        o->data = option_text(a, v);
    else if (!strcmp(a, "--out"))
        o->out = option_text(a, v);
    else if (!strcmp(a, "--csv"))
        o->csv = option_text(a, v);
    else if (!strcmp(a, "--report"))
        o->report = option_text(a, v);
    else if (!strcmp(a, "--moments"))
        o->moment = moment_format(option_text(a, v));
    else if (!strcmp(a, "--device"))
        o->device = option_device(a, v);
    else if (!strcmp(a, "--threads"))
        o->threads = (int)option_number(a, v, 1, 256, 1);
    else if (!strcmp(a, "--simd"))
        o->simd = simd[option_choice(a, v, simds, 6)];
    else
        option_unknown(a);
}

/* The page tells the story of both networks in six modes, so nothing of it may be missing. */
static int report_is_whole(const options *o) {
    int m;
    for (m = FP32; m <= BF16; m++)
        if (!o->run[m]) return 0;
    return o->nets[PLAIN] && o->nets[DEEP] && o->seeds == 1;
}

static options parse(int argc, char **argv) {
    options o;
    int i, net_given = 0;
    memset(&o, 0, sizeof o);
    o.seed = 1;
    o.out = "out";
    o.nets[PLAIN] = 1;
    parse_modes(&o, "all");
    for (i = 1; i < argc; i++) {
        option_help(argv[i], help);
        if (!strcmp(argv[i], "--check"))
            o.check = 1;
        else if (!strcmp(argv[i], "--ordered"))
            o.ordered = 1;
        else {
            parse_option(&o, argv[i], argv[i + 1], &net_given);
            i++;
        }
    }
    if (o.check && (net_given || o.csv || o.report))
        option_refuse(
            "--check runs its own nets and modes and writes no files: leave out --net, --mode, --csv and --report");
    if (o.check) o.nets[PLAIN] = o.nets[DEEP] = 1;
    if (!o.seeds) o.seeds = o.check ? 5 : 1;
    if (o.report && !report_is_whole(&o)) option_refuse("--report needs --net both, all six modes and one seed");
    return o;
}

#endif
