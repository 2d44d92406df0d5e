/* selftest.c - the harness itself (main.c) with tests whose verdict is known: the name of each says it.
   tests/selftest.sh compares. */
#include "t.h"
#undef T_SUITES
#define T_SUITES(X)     X(mutants)
#define T_DECLARE(name) extern const t_test t_suite_##name[];
T_SUITES(T_DECLARE)
#undef T_DECLARE
#include "main.c"

static void checks_nothing(t_run *t) { (void)t; }

static void only_copies(t_run *t) {
    char word[8] = "copied";
    void *dev = t_put(t, word, sizeof word);
    t_get(t, word, dev, sizeof word);
}

static void wrong(t_run *t) { CHECK(1 + 1 == 3); }

static void wrong_status(t_run *t) { CHECK_OK(amp_free(t->ctx, t)); }

static void wrong_words(t_run *t) { CHECK_STATUS(amp_free(t->ctx, t), AMP_ERR_INVALID_ARG, "zebra"); }

static void writes_behind(t_run *t) {
    char byte = 0;
    char *dev = (char *)t_alloc(t, 8);
    CHECK_OK(amp_copy(t->ctx, dev + 8, &byte, 1));
}

static void leaks(t_run *t) {
    void *lost = NULL;
    CHECK_OK(amp_alloc(t->ctx, &lost, 8, "lost"));
}

static void differs(t_run *t, t_blob *b, const void *arg) {
    int reference = t->ctx == t->ref;
    (void)arg;
    t_blob_add(b, &reference, sizeof reference);
}
static void not_the_same(t_run *t) { t_same_everywhere(t, differs, NULL); }

static void right(t_run *t) { CHECK(1 + 1 == 2); }

static void names_its_file(t_run *t) {
    const char *file = t_file("of_its_own");
    CHECK(file[0]);
    if (!options.verbose) printf("file %s\n", file);
}

static void cannot_run(t_run *t) { t_skip(t, "it says so"); }

const t_test t_suite_mutants[] = {
    {"fails.checks_nothing_host", checks_nothing, T_HOST},
    {"fails.checks_nothing", checks_nothing, T_ALL},
    {"fails.only_copies", only_copies, T_ALL},
    {"fails.wrong", wrong, T_ALL},
    {"fails.wrong_status", wrong_status, T_ALL},
    {"fails.wrong_words", wrong_words, T_ALL},
    {"fails.writes_behind", writes_behind, T_ALL},
    {"fails.leaks", leaks, T_ALL},
    {"fails.not_the_same", not_the_same, T_ALL},
    {"passes.right_host", right, T_HOST},
    {"passes.right", right, T_ALL},
    {"passes.names_its_file", names_its_file, T_HOST},
    {"skips.cannot_run", cannot_run, T_ALL},
    {NULL, NULL, 0},
};
