#!/usr/bin/env python3
"""format.py [CLANG_FORMAT] - formats the parts in src/ as tests/style.sh wants the headers: `make format`.

A part by itself is not what clang-format may read: what an #if above it opens changes what it does. So each header is cut into
the pieces that tests/style.sh reads, formatted, and what changed goes back to the parts."""
import difflib
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')


def headers():
    """{header: its parts, in order}"""
    found, parts = {}, None
    for line in open('src/order'):
        if line.startswith('#') or not line.strip():
            continue
        if line.startswith(' '):
            parts.append('src/' + line.strip())
        else:
            parts = found.setdefault(line.strip(), [])
    return found


def pieces(lines):
    """Runs of a thousand lines or more that end before a banner."""
    run = []
    for line in lines:
        if len(run) > 1000 and line.startswith('/* ==== >>'):
            yield run
            run = []
        run.append(line)
    yield run


def formatted(lines, header, clang_format, first):
    """A piece, inside of an #if as it is in the file, ended by a declaration, which keeps the empty line before it."""
    text = ([] if first else ['#ifndef AMP_H_INCLUDED\n']) + lines + ['int the_next_piece;\n']
    run = subprocess.run([clang_format, '--style=file', '--assume-filename=' + header], input=''.join(text), text=True,
                         stdout=subprocess.PIPE, check=True)
    out = run.stdout.splitlines(True)
    return out[0 if first else 1:-1]


def main():
    os.chdir(ROOT)
    clang_format = sys.argv[1] if len(sys.argv) > 1 else 'clang-format'
    for header, parts in headers().items():
        lines, owner, new = [], [], {part: [] for part in parts}
        for part in parts:
            text = open(part).readlines()
            lines += text
            owner += [part] * len(text)
        out = []
        for i, piece in enumerate(pieces(lines)):
            out += formatted(piece, header, clang_format, i == 0)
        for tag, a, b, c, d in difflib.SequenceMatcher(None, lines, out, autojunk=False).get_opcodes():
            if tag == 'equal':
                for k in range(a, b):
                    new[owner[k]].append(lines[k])
            else:
                new[owner[min(a, len(owner) - 1)]] += out[c:d]
        for part in parts:
            if ''.join(new[part]) != open(part).read():
                open(part, 'w').write(''.join(new[part]))
                print('formatted', part)


if __name__ == '__main__':
    main()
