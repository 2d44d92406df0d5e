/* product_table.h - the products that PyTorch casts under autocast, each by amp_gemm. One list, three readers: the
   tests run every row (test_product_table.c), docs/products.md is printed from it (tools/products.c), and
   tests/install.sh compares that file with it.

   X(name, PyTorch, alpha, x, y, beta, in, relu, out, calls, code)
     x y in out   a letter for each dimension, as stored, row-major: out = relu(alpha * sum x y + beta * in), the sum
                  over the letters that out lacks. "+" after a letter: the array is larger in that dimension, this is a
                  slice of it. in "=": what was in out before
     calls, code  for (i = 0; i < calls; i++) { g as PRODUCT_BASE says; code; amp_gemm(ctx, &g); }
   What code may use: the sizes m n k b c; ldx ldy ldo, elements between rows; sx, elements between x[0] and x[1];
   alpha, beta, i; and at(x, e), which is x from element e on. */
#ifndef PRODUCT_TABLE_H
#define PRODUCT_TABLE_H

#define PRODUCT_BASE(X) X(g.m = m; g.n = n; g.k = k; g.a = x; g.b = y; g.d = out)

#define PRODUCT_TABLE(X) \
    X(mm, "mm(x, y)", 1, "mk", "kn", 0, "", 0, "mn", 1, ) \
    X(mm_xt, "mm(x.t(), y)", 1, "km", "kn", 0, "", 0, "mn", 1, g.trans_a = 1) \
    X(mm_yt, "mm(x, y.t()), einsum('mk,nk->mn')", 1, "mk", "nk", 0, "", 0, "mn", 1, g.trans_b = 1) \
    X(mm_slices, "mm(X[:, :k], Y[:, :n], out=O[:, :n])", 1, "mk+", "kn+", 0, "", 0, "mn+", 1, g.lda = ldx; \
        g.ldb = ldy; g.ldd = ldo) \
    X(addmm, "addmm(in, x, y, beta=beta, alpha=alpha)", alpha, "mk", "kn", beta, "mn", 0, "mn", 1, \
        g.alpha = amp_opt(alpha); \
        g.beta = amp_opt(beta); g.c = in) \
    X(addmm_in_place, "out.addmm_(x, y, beta=beta, alpha=alpha)", alpha, "mk", "kn", beta, "=", 0, "mn", 1, \
        g.alpha = amp_opt(alpha); \
        g.beta = amp_opt(beta)) \
    X(addmm_alpha_0, "addmm(in, x, y, beta=beta, alpha=0)", 0, "mk", "kn", beta, "mn", 0, "mn", 1, \
        g.alpha = amp_opt(0); \
        g.beta = amp_opt(beta); g.c = in) \
    X(addmm_row, "addmm(in, x, y, alpha=alpha), in 1-D", alpha, "mk", "kn", 1, "n", 0, "mn", 1, \
        g.alpha = amp_opt(alpha); \
        g.bias = in) \
    X(addmm_row_beta, "addmm(in, x, y, beta=beta, alpha=alpha), in 1-D", alpha, "mk", "kn", beta, "n", 0, "mn", 1, \
        g.m = 1; \
        g.batch = m; g.stride_b = AMP_BROADCAST; g.c = in; g.stride_c = AMP_BROADCAST; g.alpha = amp_opt(alpha); \
        g.beta = amp_opt(beta)) \
    X(addmm_column, "addmm(in, x, y, alpha=alpha), in [m,1]", alpha, "mk", "kn", 1, "m1", 0, "mn", 1, \
        g.alpha = amp_opt(alpha); \
        g.bias = in; g.bias_per_row = 1) \
    X(baddbmm_column, "baddbmm(in, x, y), in [m,1]: channels first", 1, "mk", "bkn", 1, "m1", 0, "bmn", 1, \
        g.stride_a = AMP_BROADCAST; \
        g.batch = b; g.bias = in; g.bias_per_row = 1) \
    X(addmm_relu, "_addmm_activation(in, x, y, alpha=alpha)", alpha, "mk", "kn", 1, "n", 1, "mn", 1, \
        g.alpha = amp_opt(alpha); \
        g.bias = in; g.act = AMP_RELU) \
    X(linear, "linear(x, y, in)", 1, "mk", "nk", 1, "n", 0, "mn", 1, g.trans_b = 1; g.bias = in) \
    X(linear_1d, "linear(x, y), x 1-D", 1, "k", "nk", 0, "", 0, "n", 1, g.m = 1; g.trans_b = 1) \
    X(linear_3d, "linear(x, y, in), x 3-D", 1, "bmk", "nk", 1, "n", 0, "bmn", 1, g.m = b * m; g.trans_b = 1; \
        g.bias = in) \
    X(mv, "mv(x, y), matmul of 2-D and 1-D", 1, "mk", "k", 0, "", 0, "m", 1, g.n = 1) \
    X(mv_xt, "mv(x.t(), y)", 1, "km", "k", 0, "", 0, "m", 1, g.trans_a = 1; g.n = 1) \
    X(mv_column, "mv(x, Y[:, 0])", 1, "mk", "k1+", 0, "", 0, "m", 1, g.n = 1; g.ldb = ldy) \
    X(addmv, "addmv(in, x, y, beta=beta, alpha=alpha)", alpha, "mk", "k", beta, "m", 0, "m", 1, g.n = 1; \
        g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(addr, "addr(in, x, y, beta=beta, alpha=alpha)", alpha, "m", "n", beta, "mn", 0, "mn", 1, g.k = 1; \
        g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(outer, "outer(x, y)", 1, "m", "n", 0, "", 0, "mn", 1, g.k = 1) \
    X(dot, "dot(x, y), matmul of 1-D and 1-D", 1, "k", "k", 0, "", 0, "", 1, g.m = 1; g.n = 1) \
    X(vecdot, "linalg.vecdot(x, y)", 1, "bk", "bk", 0, "", 0, "b", 1, g.m = 1; g.n = 1; g.batch = b) \
    X(bmm, "bmm(x, y), matmul of 3-D and 3-D", 1, "bmk", "bkn", 0, "", 0, "bmn", 1, g.batch = b) \
    X(bmm_yt, "bmm(x, y.transpose(1, 2))", 1, "bmk", "bnk", 0, "", 0, "bmn", 1, g.trans_b = 1; g.batch = b) \
    X(bmm_slices, "bmm(X[:, :m, :k], y)", 1, "bm+k+", "bkn", 0, "", 0, "bmn", 1, g.lda = ldx; g.stride_a = sx; \
        g.batch = b) \
    X(baddbmm, "baddbmm(in, x, y, beta=beta, alpha=alpha)", alpha, "bmk", "bkn", beta, "bmn", 0, "bmn", 1, \
        g.batch = b; \
        g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(baddbmm_2d, "baddbmm(in, x, y, beta=beta, alpha=alpha), in 2-D", alpha, "bmk", "bkn", beta, "mn", 0, "bmn", 1, \
        g.batch = b; \
        g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in; g.stride_c = AMP_BROADCAST) \
    X(addbmm, "addbmm(in, x, y, beta=beta, alpha=alpha)", alpha, "bmk", "bkn", beta, "mn", 0, "mn", 1, g.batch = b; \
        g.sum_batches = 1; g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(addbmm_xt, "addbmm(in, x.transpose(1, 2), y, beta=beta, alpha=alpha)", alpha, "bkm", "bkn", beta, "mn", 0, "mn", \
        1, g.k = b * k; \
        g.trans_a = 1; g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(addbmm_mbk, "addbmm(in, x.transpose(0, 1), y, beta=beta, alpha=alpha)", alpha, "mbk", "bkn", beta, "mn", 0, \
        "mn", 1, g.k = b * k; \
        g.alpha = amp_opt(alpha); g.beta = amp_opt(beta); g.c = in) \
    X(matmul_1_2, "matmul of 1-D and 2-D", 1, "k", "kn", 0, "", 0, "n", 1, g.m = 1) \
    X(matmul_1_3, "matmul of 1-D and 3-D", 1, "k", "bkn", 0, "", 0, "bn", 1, g.m = 1; g.stride_a = AMP_BROADCAST; \
        g.batch = b) \
    X(matmul_2_3, "matmul of 2-D and 3-D", 1, "mk", "bkn", 0, "", 0, "bmn", 1, g.stride_a = AMP_BROADCAST; \
        g.batch = b) \
    X(matmul_3_1, "matmul of 3-D and 1-D", 1, "bmk", "k", 0, "", 0, "bm", 1, g.m = b * m; g.n = 1) \
    X(matmul_3_2, "matmul of 3-D and 2-D", 1, "bmk", "kn", 0, "", 0, "bmn", 1, g.m = b * m) \
    X(matmul_3_2_gap, "matmul of X[:, :m] and 2-D", 1, "bm+k", "kn", 0, "", 0, "bmn", 1, g.stride_a = sx; \
        g.stride_b = AMP_BROADCAST; g.batch = b) \
    X(matmul_4_4, "matmul of 4-D and 4-D", 1, "cbmk", "cbkn", 0, "", 0, "cbmn", 1, g.batch = c * b) \
    X(matmul_4_3, "matmul of 4-D and 3-D", 1, "cbmk", "bkn", 0, "", 0, "cbmn", c, g.a = at(x, i * b * m * k); \
        g.d = at(out, i * b * m * n); g.batch = b) \
    X(matmul_41_3, "matmul of [c,1,m,k] and 3-D", 1, "cmk", "bkn", 0, "", 0, "cbmn", c, g.a = at(x, i * m * k); \
        g.stride_a = AMP_BROADCAST; g.d = at(out, i * b * m * n); g.batch = b) \
    X(attention_scores, "einsum('cmbk,cnbk->cbmn', x, y)", 1, "cmbk", "cnbk", 0, "", 0, "cbmn", c, \
        g.a = at(x, i * m * b * k); \
        g.lda = b * k; g.stride_a = k; g.b = at(y, i * n * b * k); g.ldb = b * k; g.stride_b = k; g.trans_b = 1; \
        g.d = at(out, i * b * m * n); g.batch = b) \
    X(attention_values, "einsum('cbmk,ckbn->cmbn', x, y)", 1, "cbmk", "ckbn", 0, "", 0, "cmbn", c, \
        g.a = at(x, i * b * m * k); \
        g.b = at(y, i * k * b * n); g.ldb = b * n; g.stride_b = n; g.d = at(out, i * m * b * n); g.ldd = b * n; \
        g.stride_d = n; g.batch = b)

#endif
