#!/usr/bin/env python3
"""alternate.py - the CPU's ratios of two trees, run in turn on one machine: what became slower?

usage: python3 bench/alternate.py OLD NEW [ROUNDS] [BENCH ARGUMENTS...]

OLD, NEW: folders in which `make build/bench/bench` has run. Each of ROUNDS (5) runs OLD's build/bench/bench --quick --cpu-time, then
NEW's. Prints the median of NEW / OLD over all ratios of bench.csv (medians of the rounds), and the rows below 0.97.
"""
import csv
import os
import statistics
import subprocess
import sys
import tempfile


def ratios(tree, arguments, found):
    with tempfile.TemporaryDirectory() as out:
        command = [os.path.join(tree, 'build/bench/bench'), '--quick', '--cpu-time', '--out', out] + arguments
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # a missed target is no failure here
        with open(os.path.join(out, 'bench.csv'), newline='', encoding='utf-8') as file:
            for row in csv.DictReader(file):
                key = (row['work'], row['path'], row['bytes'], row['anchor'])
                try:
                    found.setdefault(key, []).append(float(row['ratio']))
                except (TypeError, ValueError):  # tables of another shape follow the first
                    pass


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    old, new = {}, {}
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        ratios(sys.argv[1], sys.argv[4:], old)
        ratios(sys.argv[2], sys.argv[4:], new)
    median = statistics.median
    both = sorted((median(new[k]) / median(old[k]), k) for k in old if new.get(k) and old[k] and median(old[k]) > 0)
    print('%d ratios, median %.3f, %d at 0.97 or more' % (len(both), median([b[0] for b in both]), sum(b[0] >= 0.97 for b in both)))
    for ratio, key in both:
        if ratio < 0.97:
            print('%.2f  %s' % (ratio, ', '.join(key)))


if __name__ == '__main__':
    main()
