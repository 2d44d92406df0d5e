/* torch_muon.c - 100 steps of the Muon of docs/recipes.md, which tests/torch.sh takes out of that page into a file with
   the name RECIPE, written to standard output for tests/torch_programs.py: a line of text with rows, columns and steps,
   then floats: weights before, gradients of all steps (which BF16 has), weights after. */
#define main recipe_main
#include RECIPE
#undef main

enum { STEPS = 100, SIZE = N * M };

int main(void) {
    amp_ctx *ctx;
    amp_params *p;
    amp_scaler *s;
    static float w[SIZE], all[STEPS][SIZE], momentum[SIZE], u[SIZE];
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc d = AMP_ZERO;
    amp_scaler_info now;
    int i, k, wrong = 0;
    for (i = 0; i < SIZE; i++)
        w[i] = (float)amp_random(1, 0, (uint64_t)i) / 4294967296.0f - 0.5f;
    for (i = 0; i < STEPS * SIZE; i++)
        all[i / SIZE][i % SIZE] =
            amp_f32_from_bf16(amp_bf16_from_f32((float)amp_random(2, 0, (uint64_t)i) / 4294967296.0f - 0.5f));
    pd.model = AMP_BF16;
    d.rows = N;
    d.cols = M;
    d.init = w;
    wrong += amp_cpu_create(&ctx, NULL) != AMP_OK || amp_scaler_create(&s, ctx, NULL) != AMP_OK;
    wrong += amp_params_create(&p, ctx, &pd) != AMP_OK || amp_params_add(p, &d) != AMP_OK;
    wrong += amp_params_commit(p) != AMP_OK;
    printf("%d,%d,%d\n", N, M, STEPS);
    fwrite(w, sizeof w, 1, stdout);
    fwrite(all, sizeof all, 1, stdout);
    for (i = 0; i < STEPS; i++) {
        amp_array g = amp_param_grad(p, 0);
        wrong += amp_scaler_get(s, &now) != AMP_OK;
        for (k = 0; k < SIZE; k++)
            amp_store(g.data, g.dtype, (size_t)k, all[i][k] * now.scale);
        muon(ctx, p, s, momentum, u);
    }
    wrong += amp_param_read(p, 0, w) != AMP_OK;
    fwrite(w, sizeof w, 1, stdout);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
    amp_ctx_destroy(ctx);
    (void)recipe_main;
    return fflush(stdout) != 0 || wrong;
}
