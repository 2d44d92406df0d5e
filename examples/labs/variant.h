/* variant.h - the numbers of the labs that a class may vary. `tools/labs.sh export DIR --seed WORD` takes one of the
 * other values for each, writes it here and puts its sentence on the lab's page. The checkers read this file. Students
 * write the number of the page: names that begin with LAB1_, LAB2_ ... belong to the checker.
 *
 * A block: "lab N:", then values and their sentence, in which % is the value; below it the value that is used. */
#ifndef VARIANT_H
#define VARIANT_H

/* lab 1:
 * 1 = half_from_float rounds to nearest, but from the exact middle between two halves away from zero, not to the even
 *     one: 2^-25 becomes 2^-24, and 65520 becomes Inf.
 * 2 = half_from_float rounds to nearest, but from the exact middle between two halves towards zero, not to the even
 *     one: 2^-25 becomes 0, and 65520 becomes 65504. */
#define LAB1_TIES 0

/* lab 2:
 * 8 4 5 7 16 = sum_pairwise adds up to % numbers in order, from the first to the last; only longer arrays are split
 *     into two. (One number is its own sum, with its sign.) */
#define LAB2_BLOCK 1

/* lab 3:
 * 0.03 0.02 0.007 0.005 = The sums of questions 14 to 16 add % instead of 0.01. */
#define LAB3_ADDEND 0.01
/* lab 3:
 * 1 = The region of the questions is autocast to BF16, and in questions 12 and 13 to FP16. */
#define LAB3_BF16   0

/* lab 4:
 * 8 4 16 32 64 = suggest_scale leaves more room: the largest power of two s with |g| * s <= 65504 / %. */
#define LAB4_ROOM 2

/* lab 5:
 * 2 3 4 5 = After a bad update growth_tracker is not 0: it is divided by %, and rounded down. */
#define LAB5_DIVISOR 0

/* lab 6:
 * 2 3 4 = pure_step counts an update as lost if the gradient is not 0 and the weight moves by fewer than % halves.
 *     (0 halves: its bits stay. 1 half: it becomes the next one.) */
#define LAB6_MOVES 1

/* lab 7:
 * 4 2 0.5 0.25 = The kernel multiplies each element of y by %, after the sum: y = % * x w^T. */
#define LAB7_FACTOR 1

/* lab 8:
 * 2 3 4 5 = The update has weight decay. Before the formula, master is multiplied by 1 - lr * %. The moments do not
 *     depend on it. */
#define LAB8_DECAY 0

/* lab 9:
 * 4 2 0.5 0.25 = The result is not the norm, but % times the norm. */
#define LAB9_FACTOR 1

/* lab 10:
 * 1000 77 4096 12345 = Element e takes in step t the word amp_random(seed, t + %, e). */
#define LAB10_OFFSET 0

/* lab 11:
 * 1 0 = The scale of a block is 2^(floor(log2(amax)) - %): amax over the scale is smaller, and less is cut at 6. */
#define LAB11_SHIFT 2

/* lab 12:
 * 50 40 60 70 = The scale is doubled after % good steps in a row, not after 100. */
#define LAB12_INTERVAL 100

/* lab 13:
 * 14 20 21 22 = A gradient is also lost if it was not zero and its half is smaller than 2^-% in magnitude. */
#define LAB13_BELOW 24

/* lab 14:
 * 1 2 3 4 5 = The six runs are others than those of the public copy, and in another order (number %). */
#define LAB14_ORDER 0

#endif
