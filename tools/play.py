"""play.py NAME PAGE.html [DIGITS]    The pages of `make play` and `make figures`: examples/NAME.c and amp.h as WebAssembly, with examples/NAME.html
and NAME.js in one file.

The looks are those of the page of `make run` (examples/page_text.h). DIGITS, a native build of examples/digits.c, says with which bits its modes
end; the page of play compares its own with them. Compilers that will do, the first one found: $PLAY_CC, a whole command; zig of PyPI's ziglang; clang
with wasi-libc. Without one nothing is written, a sentence says so, and the exit status is 0."""
import base64
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
MOST = 1 << 20  # bytes of a page
FLAGS = ['-mexec-model=reactor', '-std=c99', '-Wall', '-Wextra', '-O2', '-I.', '-DPLAY_PAGE', '-DAMP_NO_THREADS', '-DAMP_NO_STDIO',
         '-Wl,-z,stack-size=1048576', '-s']
MODES = 'all,fp8-current,fp8-delayed'


def compilers():
    """The commands to try."""
    if os.environ.get('PLAY_CC'):
        yield shlex.split(os.environ['PLAY_CC'])
        return
    for python in (os.path.join(os.environ.get('BUILD', 'build'), 'tools', 'bin', 'python3'), sys.executable):
        yield [python, '-m', 'ziglang', 'cc', '-target', 'wasm32-wasi']
    yield ['clang', '--target=wasm32-wasi']


def works(compiler, folder):
    """Does it make a program at all?"""
    source = os.path.join(folder, 'try.c')
    with open(source, 'w') as f:
        f.write('#include <math.h>\n#include <stdlib.h>\nint main(void) { return abs((int)floor(1.5)); }\n')
    try:
        return subprocess.run(compiler + [source, '-o', source + '.wasm', '-lm'], capture_output=True).returncode == 0
    except OSError:
        return False


def style():
    """The CSS of page_text.h's strings."""
    with open(os.path.join(TOP, 'examples', 'page_text.h')) as f:
        text = f.read()
    css = ''
    for name in ('text_1', 'text_2', 'live', 'modes'):
        body = re.search(r'page_style_%s\[\] =\n(.*?");\n' % name, text, re.S).group(1)
        css += ''.join(s.encode().decode('unicode_escape') for s in re.findall(r'"((?:[^"\\]|\\.)*)"', body))
    return css


def native(digits, folder):
    """{network: {mode: hash}}, by digits itself."""
    hashes = {}
    for net in ('plain', 'deep'):
        words = [digits, '--ordered', '--net', net, '--mode', MODES, '--out', os.path.join(folder, net)]
        said = subprocess.run(shlex.split(os.environ.get('RUN_ENV', '')) + words, check=True, capture_output=True, text=True).stdout
        hashes[net] = dict(re.findall(r'^ +(\S+) +seed 1: ([0-9a-f]{16})$', said, re.M))
        if len(hashes[net]) != 8:
            raise SystemExit('%s: it says the bits of %d modes, not of 8' % (digits, len(hashes[net])))
    return hashes


def part(name):
    with open(os.path.join(TOP, 'examples', name)) as f:
        return f.read()


def main():
    name, page, digits = (sys.argv[1:] + [None])[:3]
    for cache in ('ZIG_GLOBAL_CACHE_DIR', 'ZIG_LOCAL_CACHE_DIR'):
        os.environ.setdefault(cache, os.path.abspath(os.path.join(os.environ.get('BUILD', 'build'), 'zig', 'cache')))
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers():
            if works(compiler, folder):
                break
        else:
            print('skipped: no compiler for WebAssembly: pip install ziglang, or PLAY_CC=a command that compiles for wasm32-wasi')
            return
        program = os.path.join(folder, 'page.wasm')
        subprocess.run(compiler + FLAGS + ['examples/%s.c' % name, '-o', program, '-lm'], check=True, cwd=TOP)
        with open(program, 'rb') as f:
            wasm = base64.b64encode(f.read()).decode()
        filled = {'STYLE': style(), 'WASM': wasm, 'NATIVE': json.dumps(native(digits, folder)) if digits else '', 'SCRIPT': part(name + '.js')}
    text = re.sub('@(%s)@' % '|'.join(filled), lambda m: filled[m.group(1)], part(name + '.html'))
    if len(text.encode()) > MOST:
        raise SystemExit('the page has %d bytes, more than %d' % (len(text.encode()), MOST))
    with open(page, 'w', encoding='utf-8') as f:
        f.write(text)
    print('Open %s in a browser: %d KB, which need no other file.' % (page, len(text.encode()) // 1024))


if __name__ == '__main__':
    main()
