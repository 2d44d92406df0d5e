/* ==== >>sums =====================================================================================================
   How numbers are added up, on every device.   tests: step.norm_error, step.norm_ranges (tests/test_step.c)

   The rule of sums, for floats x[0..n). What is not there is 0; to halve y[0..2h) is y[j] += y[j+h] for all j < h, then
   the same with h/2, ..., 1.
       part    2048 of them, in FP32:  lane[j] = (((0 + x[j]) + x[j+256]) + ...) + x[j+1792], j < 256;  halve the lanes
       chunk   32 parts, in double from here on:  halve the sums of its parts
       array   lane[j] = (((0 + c[j]) + c[j+256]) + ...), j < 256, for the sums c of its chunks;  halve the lanes
   A set of parameters: its chunks as amp_param_table numbers them. A column of a matrix: parts of 32 rows in order, in
   FP32; part p is added, in order, to lane p % 8, in double; halve the lanes.
   Squares: x = u * u rounded to FP32. A part whose sum is not finite or below 2^-100 is added up again with u * 2^-96
   or u * 2^96 in place of u, and its sum taken by 2^192 or 2^-192 in double: the sum is finite if every u is.
   Error: a term goes through at most 16 roundings of 2^-24 (its square, 7 additions, 8 halvings), those of a column
   through 31, and for 2^31 terms through 141 of 2^-53: together below 2^-19 of the sum of magnitudes, where that of
   each part is below 2^127 or they are squares. */
