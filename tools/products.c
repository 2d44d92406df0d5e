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
    "This page answers: how do I write this product of PyTorch as an `amp_gemm`?\n"
    "\n"
    "These are the products that `torch.autocast` runs in FP16 or BF16. Each begins with\n"
    "\n"
    "```c\n"
    "amp_gemm_desc g = AMP_ZERO;\n"
    "%s;\n"
    "```\n"
    "\n";

static const char columns[] =
    "Then set the fields of the third column, and call `amp_gemm(ctx, &g)`. How to read the second column:\n"
    "\n"
    "- It gives the sizes of the arrays as they are stored: row-major and packed. The sum runs over every\n"
    "  letter that `out` does not have.\n"
    "- A `+` after a size means that the array is larger in this dimension, and that the operand is a slice of\n"
    "  it. `ldx`, `ldy` and `ldo` are the elements from one row to the next, `sx` is the distance from `x[0]`\n"
    "  to `x[1]`.\n"
    "- `at(x, e)` is `x` from element `e` on.\n"
    "\n"
    "Where PyTorch makes a view without copying, amp has a transpose flag, a leading dimension or a stride, and\n"
    "does not copy either.\n"
    "\n"
    "| PyTorch | what it computes | fields of `g` |\n"
    "|---|---|---|\n";

static const char convolutions[] =
    "\n"
    "## Convolutions\n"
    "\n"
    "A convolution becomes a product if each window of the image is copied into a row first. The function\n"
    "`im2col` makes these rows, `p`; `col2im` adds such rows up into an image again. `examples/conv.h` has both\n"
    "as code to copy, for the CPU and a GPU. `build/convnet --check` compares them with direct loops in double.\n"
    "\n"
    "Arrays are channels last, `[batch, size, channels]`, unless a row says otherwise. The weight is PyTorch's\n"
    "in `memory_format=torch.channels_last`: `w[out, taps, in / groups]`, and `w[in, taps, out / groups]` if it\n"
    "is transposed. The rows are `p[places, groups, taps, channels / groups]`. `k` is the number of elements of\n"
    "a window in one group, `r` the number of places in all images.\n"
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
    "| `conv_tbc` | `conv1d` of `x[time, batch, in]`: with batch and time exchanged | | |\n"
    "| `_convolution`, `convolution` | one of these, by its arguments | | |\n"
    "\n"
    "Stride, padding, dilation and output padding concern `im2col` and `col2im` only: the products are the\n"
    "same.\n"
    "\n"
    "The gradient of the bias is `amp_column_sums` of `dy`. Channels first it is the sum over `b` of `dy` times\n"
    "a column of ones, with `g.n = 1; g.stride_b = AMP_BROADCAST; g.sum_batches = 1`. A product has one bias\n"
    "for its whole batch. So groups with biases need one call each, or add the bias with the activation;\n"
    "channels first, each group is a call. In 16 bits each element that `col2im` adds was rounded once before;\n"
    "the sum is in FP32.\n"
    "\n"
    "This section is here because `torch.autocast` lists convolutions. cuDNN needs no such rows in memory.\n";

static const char notes[] =
    "\n"
    "## Notes\n"
    "\n"
    "- **Vectors** are matrices with one column (`n = 1`) or one row (`m = 1`). If the elements of a vector are\n"
    "  not adjacent, their distance is the leading dimension (`mv(x, Y[:, 0])`).\n"
    "- **alpha**, **beta**: `amp_opt(x)` gives any number, including 0. If you do not set them, they are 1 and\n"
    "  0. With `alpha` 0, `x` and `y` are not read. With `beta` 0, `in` is not read, and NaN in it does no\n"
    "  harm, as in PyTorch.\n"
    "- **in**, **bias**: `in` has `out`'s dtype, `g.bias` may have any. On CUDA, if `out` has 16 bits, a bias\n"
    "  of another dtype is rounded to `out`'s dtype first.\n"
    "- **Broadcast of `in`**: PyTorch broadcasts it to the shape of `out`. A row with `beta=1` is a bias, which\n"
    "  is fast. With another `beta` each row of `out` is a batch of its own: right, but slow. One matrix for\n"
    "  all batches is `stride_c = AMP_BROADCAST`. A column with `beta=1` is a bias with `bias_per_row`. A\n"
    "  scalar must be written into `out` first: as the product of the scalar and a row of ones, with `k = 1`.\n"
    "  Then leave `g.c` empty and set `beta`.\n"
    "- **addbmm** sums over the batch: `sum_batches`, rounded once. On CUDA give it an FP32 `out`. If the\n"
    "  batches lie one after the other along `k` (`x` transposed, as for weight gradients, or stored as\n"
    "  `[m,b,k]`), it is one product with `k = b * k`.\n"
    "- **matmul**: if only one operand has a leading dimension, it becomes part of `m` (3-D and 2-D), or a\n"
    "  batch with `AMP_BROADCAST` for the other operand. Batches have one stride. A second batch dimension that\n"
    "  does not continue the first one needs a loop of calls.\n"
    "- **einsum** of two operands is a product if each letter is of one of four kinds: in both and in the\n"
    "  result (batch), in `x` and the result (m), in `y` and the result (n), in both and not in the result (k).\n"
    "  Letters of one kind that are adjacent and in the same order in every array become one. The letter that\n"
    "  is stored last in an array has stride 1, and the transpose flag follows from it. In `out` it must be the\n"
    "  letter of `n`; if it is that of `m`, exchange `x` and `y`.\n"
    "- **chain_matmul**, **linalg.multi_dot**: one `mm` after the other. Choose the order that needs the fewest\n"
    "  multiplications.\n"
    "- **dtypes**: `x` and `y` have one dtype, `out` may have any. In an `amp_autocast_begin` region FP32\n"
    "  operands are cast as the policy says: [policy.md](policy.md).\n";

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
