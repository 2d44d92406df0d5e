/* operations.c - writes docs/operations.md from the list in amp.h; tests/impl.c is linked with it: `make docs` */
#include "amp.h"

#include <stdio.h>

static const char *cell(amp_op op, amp_system s) {
    switch (amp_op_class_of(op, s)) {
    case AMP_CLASS_LOWER: return "lower";
    case AMP_CLASS_F32: return "F32";
    case AMP_CLASS_F32_OUT: return "F32 output";
    case AMP_CLASS_WIDEST: return "widest";
    case AMP_CLASS_BANNED: return "**banned**";
    case AMP_CLASS_NONE: break;
    }
    return "";
}

/* other names that the systems list it by: each once, with the system for those that only it uses */
static void names(amp_op op) {
    int s, first = 1;
    for (s = AMP_SYSTEM_APEX; s < AMP_SYSTEM_COUNT; s++) {
        size_t k, j;
        const char *name, *seen;
        for (k = 0; (name = amp_op_listed(op, (amp_system)s, k)) != NULL; k++) {
            int twice = strcmp(name, amp_op_name(op)) == 0;
            for (j = 0; s == AMP_SYSTEM_MINDSPORE_AUTO && (seen = amp_op_listed(op, AMP_SYSTEM_MINDSPORE, j)) != NULL;
                j++)
                twice |= strcmp(seen, name) == 0;
            if (twice) continue;
            printf("%s`%s`", first ? "" : ", ", name);
            first = 0;
        }
    }
}

static int is_torch(int s) { return s == AMP_SYSTEM_PYTORCH_CUDA || s == AMP_SYSTEM_PYTORCH_CPU; }

int main(void) {
    uint32_t i;
    int s;
    printf("# Operations and their precision\n"
           "\n"
           "Made by `make docs` from `AMP_OP_LIST` in amp.h; do not edit.\n"
           "\n"
           "This page answers: in which precision does each operation run under automatic mixed precision, in amp and\n"
           "in the other systems?\n"
           "\n"
           "`amp_op_find(&op, \"name\")` finds every name on this page, also with `torch.`, `F.`, `ops.` or the like\n"
           "before it. `amp_op_class_of(op, system)` then gives the class that the table shows:\n"
           "\n"
           "- **lower**: inputs are cast to FP16 or BF16\n"
           "- **F32**: inputs are cast to FP32\n"
           "- **F32 output**: inputs stay as they are; the operation computes in FP32 and returns FP32\n"
           "- **widest**: inputs are cast to the widest dtype among them\n"
           "- **banned**: refused; the notes say why\n"
           "- (in parentheses): PyTorch's lists do not have it, but it consists of operations that they have. `make\n"
           "  check-torch` asks PyTorch itself\n"
           "- empty: not listed; it computes in the dtype of its inputs\n"
           "\n"
           "MindSpore: **lower** is its white list (level O1), **F32** its black list (level O2). The column \"auto\"\n"
           "has the lists of level `auto`. Overloads of one PyTorch function share a row.\n"
           "\n"
           "| operation | amp | PyTorch CUDA | PyTorch CPU | Apex O1 | MindSpore | MindSpore auto | also listed as "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (i = 1; i < AMP_OP_COUNT; i++) {
        printf("| `%s` |", amp_op_name((amp_op)i));
        for (s = 0; s < AMP_SYSTEM_COUNT; s++) {
            int composed = is_torch(s) && !amp_op_listed((amp_op)i, (amp_system)s, 0);
            printf(composed && *cell((amp_op)i, (amp_system)s) ? " (%s) |" : " %s |", cell((amp_op)i, (amp_system)s));
        }
        printf(" ");
        names((amp_op)i);
        printf(" |\n");
    }
    printf("\n## How many\n\n| system | lower | F32 | F32 output | widest | banned | names "
           "|\n|---|---|---|---|---|---|---|\n");
    for (s = 0; s < AMP_SYSTEM_COUNT; s++) {
        unsigned count[6] = {0, 0, 0, 0, 0, 0}, all = 0;
        for (i = 1; i < AMP_OP_COUNT; i++) {
            size_t k;
            count[amp_op_class_of((amp_op)i, (amp_system)s)]++;
            for (k = 0; amp_op_listed((amp_op)i, (amp_system)s, k); k++)
                all++;
        }
        printf("| %s | %u | %u | %u | %u | %u | %u |\n", amp_system_name((amp_system)s), count[AMP_CLASS_LOWER],
            count[AMP_CLASS_F32], count[AMP_CLASS_F32_OUT], count[AMP_CLASS_WIDEST], count[AMP_CLASS_BANNED], all);
    }
    printf("\n## Notes\n\n");
    for (i = 1; i < AMP_OP_COUNT; i++)
        if (*amp_op_note((amp_op)i)) printf("- `%s`: %s.\n", amp_op_name((amp_op)i), amp_op_note((amp_op)i));
    return 0;
}
