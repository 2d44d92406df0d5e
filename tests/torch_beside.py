#!/usr/bin/env python3
"""torch_beside.py SCRIPT ARGUMENT... [, SCRIPT ARGUMENT...]... - runs each script in a child of its own, with PyTorch imported once before them all.

Prints what they print, without their last lines, and the sum of those: N passed, N failed, N skipped. A script that ends badly without a counted failure is one.
Exit status 77: PyTorch cannot be imported."""
import os
import re
import runpy
import sys
import tempfile
import traceback

try:
    import torch  # noqa: F401 - for the scripts
except (ImportError, OSError) as error:
    print(error, file=sys.stderr)
    sys.exit(77)


def run_here(words):
    """The exit status of a script, as it would be of a process of its own."""
    sys.argv = words
    sys.path[0] = os.path.dirname(words[0])
    try:
        runpy.run_path(words[0], run_name='__main__')
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return int(end.code or 0) if not isinstance(end.code, str) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run(words):
    """Its exit status, and the lines it printed."""
    with tempfile.TemporaryFile() as out:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            status = run_here(words)
            sys.stdout.flush()
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        out.seek(0)
        return status, out.read().decode().splitlines()


def scripts(words):
    one = []
    for word in words + [',']:
        if word != ',':
            one.append(word)
            continue
        if one:
            yield one
        one = []


def main():
    total = [0, 0, 0]
    for words in scripts(sys.argv[1:]):
        status, lines = run(words)
        last = re.fullmatch(r'(\d+) passed, (\d+) failed, (\d+) skipped', lines[-1] if lines else '')
        counts = [int(x) for x in last.groups()] if last else [0, 0, 0]
        print(*lines[:-1], sep='\n')
        if not last or (status != 0 and counts[1] == 0) or sum(counts) == 0:
            print('FAIL %s: exit status %d, last line %r' % (os.path.basename(words[0]), status, lines[-1:]))
            counts[1] += 1
        total = [a + b for a, b in zip(total, counts)]
    print('%d passed, %d failed, %d skipped' % tuple(total))
    return total[1] != 0


sys.exit(main())
