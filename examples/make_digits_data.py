#!/usr/bin/env python3
"""Writes digits_data.h from digits.csv.gz:  python3 make_digits_data.py digits.csv.gz > digits_data.h

Input: one image per line, 64 integers 0..16 (8x8 pixels, row by row), then the label 0..9 (see the comment it writes).
"""
import gzip
import sys

if len(sys.argv) != 2:
    sys.exit("usage: make_digits_data.py digits.csv.gz > digits_data.h")

INK = "0123456789abcdefg"  # 17 characters for 17 levels of ink
rows = []
with gzip.open(sys.argv[1], "rt") as f:
    for number, line in enumerate(f, 1):
        values = [int(v) for v in line.split(",")]
        if len(values) != 65 or not all(0 <= v <= 16 for v in values[:64]) or not 0 <= values[64] <= 9:
            sys.exit("line %d: expected 64 numbers 0..16 and a label 0..9" % number)
        rows.append("%d %s" % (values[64], "".join(INK[v] for v in values[:64])))

print("""/* digits_data.h - %d handwritten digits, 8 x 8 pixels. Made by make_digits_data.py; do not edit.

   Source:   Optical Recognition of Handwritten Digits, the images of its test set
   Authors:  E. Alpaydin, C. Kaynak, 1998
   From:     UCI Machine Learning Repository, https://doi.org/10.24432/C50P49, by way of the Debian package python3-sklearn
   Licence:  Creative Commons Attribution 4.0 International (CC BY 4.0), https://creativecommons.org/licenses/by/4.0/
   Changes:  written as text, nothing else

   One string per image: the label, a space, then 64 characters, row by row: the ink in a pixel, %s for 0..16. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#define DIGITS_COUNT %d
#define DIGITS_SIDE  8
#define DIGITS_INK   "%s"

static const char digits_data[DIGITS_COUNT][67] = {""" % (len(rows), INK, len(rows), INK))
for row in rows:
    print('"%s",' % row)
print("""};

#endif""")
