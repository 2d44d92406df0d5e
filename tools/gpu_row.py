#!/usr/bin/env python3
"""gpu_row.py CHECK-GPU.JSON [GPUS.MD [MEASURED.TXT]] - the row of a page of `make check-gpu` into docs/gpus.md, in the order of architectures
and names; a row of the same GPU, driver and commit is replaced. The shares of its kernels go to tests/expected/measured.txt (with GPUS.MD
alone they do not), from where `make sass-table` has its last column. Exit status 1, with a sentence: the file is no such page, or not one of a GPU."""
import json
import os
import sys

BEGIN, END = '<!-- rows:', '<!-- /rows -->'


def version(n):
    return '%d.%d' % (n // 1000, n % 1000 // 10)


def number(form, x):
    return form % x if isinstance(x, (int, float)) else '-'


def kernel(page, name):
    """Share of the nominal bandwidth, and the bound on it."""
    for k in page.get('kernels', []):
        if k['name'] == name and k.get('share') is not None:
            return '%.2f (%.2f%s)' % (k['share'], min(k['bound'], 1), '' if k.get('own_code') else ', code of a different GPU')
    return '-'


def step(page):
    t = page.get('training') or {}
    return number('%.1f ms', t.get('ms')) + (', %.2f' % t['ratio'] if t.get('ratio') is not None else '')


def cells(page):
    d, v, s, p = page['device'], page['versions'], page['suite'], page.get('probe')
    checks = '%d, %d failed; %s' % (s['passed'], s['failed'], 'same bits' if page.get('forty_steps_identical') else 'OTHER BITS')
    others = '%d of %d, %d, %d' % (p['differences'], p['asked'], p['news'], p['other_launches']) if p else '-'
    verdict = page['verdict'] + (': ' + page['wrong'] if page['wrong'] else '')
    return ['%s, sm_%d' % (d['name'], d['arch']), '%s, %s, %d' % (version(v['driver']), version(v['runtime']), v['cublaslt']),
            '%s, %s' % (v['amp'], page['commit']), page['date'].split()[0], verdict, checks, others, number('%.0f', page.get('copy_gb_per_s')),
            kernel(page, 'AdamW f16'), kernel(page, 'cast f32->f16'), step(page)]


def row_of(page):
    return '| ' + ' | '.join(c.replace('|', '\\|') for c in cells(page)) + ' |'


def order(row):
    gpu = row.split(' | ')[0]
    return int(gpu.rsplit('sm_', 1)[1]), gpu, row


def same(a, b):
    return a.split(' | ')[:3] == b.split(' | ')[:3]


def write(path, text):
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(path + '.new', path)


def record(path, page):
    """What its kernels reached, for the tables of counts; the latest page of a GPU stays."""
    name = page['device']['name']
    lines = [line for line in open(path, encoding='utf-8').read().splitlines() if not line.startswith(name + '\t')]
    lines += ['%s\t%s\t%.2f' % (name, k['name'], k['share']) for k in page['kernels'] if k.get('share') is not None]
    write(path, '\n'.join(lines) + '\n')


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    top = os.path.join(os.path.dirname(__file__), '..')
    path = sys.argv[2] if len(sys.argv) > 2 else os.path.join(top, 'docs', 'gpus.md')
    measured = sys.argv[3] if len(sys.argv) > 3 else os.path.join(top, 'tests', 'expected', 'measured.txt')
    try:
        page = json.load(open(sys.argv[1], encoding='utf-8'))
        if page['runs_on'] != 'GPU':
            sys.exit('%s: a page of the %s, which is no GPU' % (sys.argv[1], page['runs_on']))
        row = row_of(page)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit('%s: no page of make check-gpu: %s: %s' % (sys.argv[1], type(error).__name__, error))
    lines = open(path, encoding='utf-8').read().split('\n')
    begin = next(i for i, line in enumerate(lines) if line.startswith(BEGIN)) + 3
    end = lines.index(END)
    rows = sorted([r for r in lines[begin:end] if not same(r, row)] + [row], key=order)
    lines[begin:end] = rows
    text = '\n'.join(lines).replace(' No row yet: the CUDA code has not run on a GPU.', '')
    write(path, text)
    if len(sys.argv) != 3:
        record(measured, page)
    print(row)


main()
