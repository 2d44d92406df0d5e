#!/usr/bin/env python3
"""notebook.py - examples/notebook.ipynb is a sound notebook without outputs; --run NAME: its cells do what they say.

usage: notebook.py [--run NAME [NVCC]]

Without arguments: the format (by nbformat, where Python has it), no outputs, cells that are Python once the lines of ! and % are gone.
--run: all cells in turn in the current folder, a clone of amp, as Jupyter runs them (nbclient, ipykernel, numpy), with NVCC as the
compiler for CUDA or without one; NAME is for the messages. Last line: N passed, N failed, N skipped.
"""
import importlib.util
import json
import os
import re
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'examples', 'notebook.ipynb')
RUNNERS = ('nbclient', 'ipykernel', 'nbformat', 'numpy')
passed = failed = skipped = 0


def check(good, sentence):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print('FAIL notebook:', sentence)


def skip(sentence):
    global skipped
    skipped += 1
    print('skipped: notebook:', sentence)


def missing(modules):
    return [name for name in modules if importlib.util.find_spec(name) is None]


def as_python(source):
    """What the cell is without Jupyter's own lines; its blocks keep a statement."""
    if source.startswith('%%'):
        return ''
    return re.sub(r'^(\s*)[!%].*$', r'\1pass', source, flags=re.M)


def look(notebook):
    check(notebook['nbformat'] == 4, 'its format is not version 4')
    for number, cell in enumerate(notebook['cells']):
        if cell['cell_type'] != 'code':
            continue
        source = ''.join(cell['source'])
        check(not cell['outputs'] and cell['execution_count'] is None, f'cell {number} has outputs: clear them before a commit')
        try:
            compile(as_python(source), f'cell {number}', 'exec')
            check(True, '')
        except SyntaxError as error:
            check(False, f'cell {number}: {error}')
    if missing(['nbformat']):
        skip('the python has no nbformat, so that its format was not judged')
        return
    import nbformat
    try:
        nbformat.validate(nbformat.reads(json.dumps(notebook), 4))
        check(True, '')
    except nbformat.ValidationError as error:
        check(False, f'its format: {error}')


def printed(cells):
    return ''.join(output.get('text', '') for cell in cells for output in cell.get('outputs', []))


def run(notebook, name, nvcc):
    if missing(RUNNERS):
        skip(f"{name}: the python has no {', no '.join(missing(RUNNERS))}")
        return
    import nbclient
    import nbformat
    os.environ['AMP_NVCC'] = nvcc
    if not nvcc:
        folders = os.environ['PATH'].split(os.pathsep)
        os.environ['PATH'] = os.pathsep.join(f for f in folders if not os.path.exists(os.path.join(f, 'nvcc')))
    live = nbformat.reads(json.dumps(notebook), 4)
    try:
        nbclient.NotebookClient(live, timeout=1800, kernel_name='python3').execute()
        check(True, '')
    except nbclient.exceptions.CellExecutionError as error:
        check(False, f'{name}: {error}')
        return
    text = printed(live.cells)
    pictures = sum('image/svg+xml' in output.get('data', {}) for cell in live.cells for output in cell.get('outputs', []))
    check(pictures == 4, f'{name}: {pictures} of 4 pictures')
    check('lost' in text and 'skipped steps: ' in text, f'{name}: the steps in Python say something else')
    wanted = ['stepped       w = 0.99999', 'skipped: inf  w = 0.99999', 'stepped       w = 0.99998']
    check(all(line in text for line in wanted), f'{name}: the steps in C say something else')
    check(('on the CPU: ' in text) == (nvcc == ''), f"{name}: the steps in C ran {'on the CPU' if nvcc else 'elsewhere'}")


def main():
    with open(PATH, encoding='utf-8') as file:
        notebook = json.load(file)
    if len(sys.argv) == 1:
        look(notebook)
    elif sys.argv[1] == '--run' and len(sys.argv) in (3, 4):
        run(notebook, sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else '')
    else:
        sys.exit(__doc__)
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
