/* products.c - writes docs/products.md from tests/product_table.h.
 *
 *     cc -std=c99 tools/products.c -o products && ./products
 */
#include "../tests/product_table.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name, *torch, *alpha, *x, *y, *beta, *in, *out, *calls, *code;
    int relu;
} row;

#define ROW(name, torch, alpha, x, y, beta, in, relu, out, calls, code) \
    {#name, torch, #alpha, x, y, #beta, in, out, #calls, #code, relu},
#define TEXT(code) #code
static const row rows[] = {PRODUCT_TABLE(ROW){NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0}};

static void array(const char *name, const char *letters) { /* "mk+" -> x[m,k+] */
    printf("%s", name);
    if (!*letters) return;
    printf("[%c", *letters);
    while (*++letters)
        printf(*letters == '+' ? "+" : ",%c", *letters);
    printf("]");
}

static void line(const row *r) {
    int plain = strcmp(r->alpha, "1") == 0;
    printf("| `%s` | `", r->torch);
    array("out", r->out);
    printf(r->relu ? " = relu(" : " = ");
    if (!plain) printf("%s ", r->alpha);
    array("x", r->x);
    printf(" ");
    array("y", r->y);
    if (*r->in) {
        printf(strcmp(r->beta, "1") ? " + %s " : " + ", r->beta);
        if (strcmp(r->in, "=") == 0)
            array("out", r->out);
        else
            array("in", r->in);
    }
    printf("%s` | ", r->relu ? ")" : "");
    if (strcmp(r->calls, "1") != 0) printf("%s calls, i = 0, 1, ...: ", r->calls);
    printf(*r->code ? "`%s` |\n" : "nothing more |\n", r->code);
}

static const char introduction[] = /* %s: PRODUCT_BASE */
    "# PyTorch's products by amp_gemm\n"
    "\n"
    "Made by `make docs` from `tests/product_table.h`, whose rows are also tests\n"
    "(`build/test_cpu --filter product.`); do not edit.\n"
    "\n"
    "These are the products that `torch.autocast` runs in FP16 or BF16. Each begins with\n"
    "\n"
    "```c\n"
    "amp_gemm_desc g = AMP_ZERO;\n"
    "%s;\n"
    "```\n"
    "\n";

static const char columns[] =
    "The third column is what is added before `amp_gemm(ctx, &g)`. Sizes are those of the second column; they\n"
    "give the arrays as stored, row-major and packed, and the sum goes over every letter that `out` lacks. A\n"
    "`+` after a size: the array is larger in that dimension and this is a slice of it, with `ldx`, `ldy`,\n"
    "`ldo` elements between rows and `sx` between `x[0]` and `x[1]`. `at(x, e)` is `x` from element `e` on. A\n"
    "view that PyTorch makes without copying is a transpose flag, a leading dimension or a stride here:\n"
    "nothing is copied either.\n"
    "\n"
    "| PyTorch | what it computes | fields of `g` |\n"
    "|---|---|---|\n";

static const char convolutions[] =
    "\n"
    "## Convolutions\n"
    "\n"
    "A convolution is a product with a row of patches for each window, so all of them are `amp_gemm` with two "
    "functions\n"
    "around it. `examples/conv.h` has both as code to copy, for the CPU and a GPU; `build/convnet --check` "
    "compares them\n"
    "with direct loops in double. Arrays are channels last, `[batch, size, channels]`, where a row does not say "
    "otherwise;\n"
    "the weight is PyTorch's in `memory_format=torch.channels_last`: `w[out, taps, in / groups]`, and\n"
    "`w[in, taps, out / groups]` of a transposed one.\n"
    "`p[places, groups, taps, channels / groups]`, the patches, come from the side that windows are taken from: "
    "`im2col`\n"
    "gathers them, `col2im` adds them up there. `k` is a window's elements in a group, `r` the places of all "
    "images.\n"
    "\n"
    "| PyTorch | forward | gradient of `x` | gradient of `w` |\n"
    "|---|---|---|---|\n"
    "| `conv1d`, `conv2d`, `conv3d` | `p = im2col(x)`, `y[r,out] = p w^T + bias` | `p = dy w`, `dx = col2im(p)` | "
    "`p = im2col(x)`, `dw = dy^T p` |\n"
    "| the same with 1 x 1 windows, stride 1 | `y = x w^T + bias`: a linear layer | `dx = dy w` | `dw = dy^T x` |\n"
    "| the same with `groups = g` | `g.batch = groups; g.lda = groups * k; g.stride_a = k; g.ldd = out; g.stride_d "
    "= out / groups` | as forward, with `a` and `d` exchanged | as forward, `g.ldb = groups * k; g.stride_b = k` "
    "|\n"
    "| `conv_transpose1d`, `2d`, `3d` | `p[r,k] = x w`, `y = col2im(p) + bias` | `p = im2col(dy)`, `dx = p w^T` | "
    "`p = im2col(dy)`, `dw = x^T p` |\n"
    "| `conv1d`, `2d`, `3d` channels first: `x[b,in,size]`, `w[out, in / groups, taps]`, `p[b,k,r]` | `p = im2col(x)`, "
    "`y[b,out,r] = w p + bias`: `g.stride_a = AMP_BROADCAST; g.bias_per_row = 1` | `p = w^T dy`: `g.trans_a = 1; "
    "g.stride_a = AMP_BROADCAST`, `dx = col2im(p)` | `p = im2col(x)`, `dw` = sum over `b` of `dy p^T`: `g.trans_b = 1; "
    "g.sum_batches = 1` |\n"
    "| `conv_tbc` | `conv1d` of `x[time, batch, in]`: its batch and time exchanged | | |\n"
    "| `_convolution`, `convolution` | the one of these that its arguments say | | |\n"
    "\n"
    "Stride, padding, dilation and output padding are `im2col`'s and `col2im`'s business: the products do not\n"
    "change. The gradient of the bias is `amp_column_sums` of `dy`; channels first it is the sum over `b` of `dy`\n"
    "times a column of ones, with `g.n = 1; g.stride_b = AMP_BROADCAST; g.sum_batches = 1`. A product has one bias\n"
    "for all of its batch, so groups with biases are a call each, or add it with the activation; channels first\n"
    "each group is a call. In 16 bits each element that `col2im` adds up was rounded once; the sum is in FP32.\n"
    "Convolution is here because `torch.autocast` lists it; cuDNN needs no patches in memory.\n";

static const char notes[] =
    "\n"
    "## Notes\n"
    "\n"
    "- **Vectors** are matrices with one column (`n = 1`) or one row (`m = 1`); a vector with a step has that\n"
    "  step as leading dimension (`mv(x, Y[:, 0])`).\n"
    "- **alpha**, **beta**: `amp_opt(x)` gives a number, 0 included; left out they are 1 and 0. With an\n"
    "  `alpha` of 0, `x` and `y` are not read.\n"
    "- **beta**: with 0, `in` is not read, and NaN in it is harmless, as in PyTorch. `in` has `out`'s dtype;\n"
    "  `g.bias` has any (on CUDA, with `out` in 16 bits, a bias of a different dtype is rounded to `out`'s\n"
    "  first).\n"
    "- **Broadcast of `in`**: PyTorch broadcasts it to `out`'s shape. A row with `beta=1` is a bias, the fast\n"
    "  form; any `beta` makes every row of `out` a batch of its own, which is right but slow. A matrix for\n"
    "  all batches is `stride_c = AMP_BROADCAST`. A column with `beta=1` is a bias with `bias_per_row`. A\n"
    "  scalar has no form: write it out into `out` first, as the product of itself and a row of ones with\n"
    "  `k = 1`, then leave `g.c` as it is, with `beta`.\n"
    "- **addbmm** sums over the batch: `sum_batches`, rounded once; on CUDA give it an FP32 `out`. If the\n"
    "  batches lie one after the other along `k` (`x` transposed, as for weight gradients, or `x` stored\n"
    "  `[m,b,k]`), it is one product with `k = b * k`.\n"
    "- **matmul**: leading dimensions that only one operand has fold into `m` (3-D and 2-D), or are batches\n"
    "  with `AMP_BROADCAST` for the other one. One stride tells batches apart: a second batch dimension that\n"
    "  does not continue the first one is a loop of calls.\n"
    "- **einsum** of two operands is a product if each letter is of one of four kinds: in both and in the\n"
    "  result (batch), in `x` and the result (m), in `y` and the result (n), in both and not in the result\n"
    "  (k). Letters of one kind that lie side by side in the same order in every array merge into one. The\n"
    "  letter stored last in each array has stride 1: a transpose flag says which it is. In `out` it must be\n"
    "  that of `n`; where it is that of `m`, exchange `x` and `y`.\n"
    "- **chain_matmul**, **linalg.multi_dot**: one `mm` after the other; choose the order that needs the\n"
    "  fewest multiplications.\n"
    "- **dtypes**: `x` and `y` have one dtype, `out` has any. In an `amp_autocast_begin` region FP32 operands\n"
    "  are cast as the policy says; [policy.md](policy.md).\n";

int main(void) {
    const row *r;
    printf(introduction, PRODUCT_BASE(TEXT));
    printf("%s", columns);
    for (r = rows; r->name; r++)
        line(r);
    printf("%s", convolutions);
    printf("%s", notes);
    return 0;
}
