"""style.py CHECK LIMITS FILE... - the checks of tests/style.sh that need to know what is a comment and what is a string.

LIMITS is limits.txt. Prints a line "FILE:LINE: what is wrong" for each violation and last "value: N", the worst that was found. Checks:
  width, page-width, fenced, ternaries, statements, tokens, public-lines, public-functions, backend-functions, function-lines, complexity, functions
  (the last: lizard must see every function that a simple look at the text sees, or its two limits mean nothing)."""
import csv
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tools'))
from density import Source, blank, fenced, only_code, read  # noqa: E402

BANNER = re.compile(r'==== >>backend\b')


def by_line(value_of, what):
    """A check of each line: value_of(source, i) must not exceed the limit."""
    def check(path, limit):
        s, worst = Source(path), 0
        for i in range(len(s.lines)):
            n = value_of(s, i)
            worst = max(worst, n)
            if n > limit:
                print('%s:%d: %d %s, at most %g' % (path, i + 1, n, what, limit))
        return worst
    return check


def check_width(path, limit):
    """Of many files: without a look at what is code in them."""
    worst = 0
    for i, line in enumerate(read(path).split('\n')):
        worst = max(worst, len(line))
        if len(line) > limit:
            print('%s:%d: %d characters, at most %g' % (path, i + 1, len(line), limit))
    return worst


def statements_of(s, i):
    """One-line functions in a fence may have several statements."""
    whole_function = re.match(r'\S.*\{.*\}\s*$', s.code[i])
    return 1 if s.fenced[i] and whole_function else s.statements[i]


def check_fenced(path, limit):
    marks = fenced(read(path).split('\n'))
    share = 100.0 * sum(marks) / max(1, len(marks) - 1)
    if share > limit:
        print('%s:%d: %.1f %% of the lines are fenced, at most %g' % (path, marks.index(True) + 1, share, limit))
    return share


def check_tokens(path, limit):
    s = Source(path)
    if s.tokens_per_line() > limit:
        print('%s:1: %.1f tokens per code line, at most %g' % (path, s.tokens_per_line(), limit))
        worst = sorted(range(len(s.lines)), key=lambda i: -s.tokens[i])[:10]
        for i in worst:
            print('%s:%d: %d tokens, among the ten fullest lines' % (path, i + 1, s.tokens[i]))
    return s.tokens_per_line()


def check_page_width(path, limit):
    """Of README.md and CHANGELOG.md every line; of other pages the text: not tables, pictures and code."""
    whole, code, worst = os.path.basename(path) in ('README.md', 'CHANGELOG.md'), False, 0
    for i, line in enumerate(read(path).split('\n')):
        code ^= line.startswith('```')
        if not whole and (code or line.startswith(('|', '!', '<picture>', '    '))):
            continue
        worst = max(worst, len(line))
        if len(line) > limit:
            print('%s:%d: %d characters, at most %g' % (path, i + 1, len(line), limit))
    return worst


def banner_line(path):
    """The number of the banner's line; 0, and a violation, where there is none."""
    for i, line in enumerate(read(path).split('\n')):
        if BANNER.search(line):
            return i + 1
    print('%s:1: no line with "==== >>backend"' % path)
    return 0


def check_public_lines(path, limit):
    n = banner_line(path)
    if n > limit:
        print('%s:%d: the public part has %d lines, at most %g' % (path, n, n, limit))
    return n


def without_preprocessor(code):
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda m: blank(m[0]), code, flags=re.M)


def declared(path):
    """The lines of all functions declared with AMP_API: those whose declaration reaches its ";" before any "{"."""
    code = without_preprocessor(only_code(read(path)))
    return [code.count('\n', 0, m.start()) + 1 for m in re.finditer(r'\bAMP_API\b[^;{]*[;{]', code) if m[0][-1] == ';']


def check_declared(is_public):
    def check(path, limit):
        banner = banner_line(path)
        lines = [n for n in declared(path) if (n < banner) == is_public]
        if len(lines) > limit:
            print('%s:%d: %d functions are declared here, at most %g' % (path, lines[0], len(lines), limit))
        if not lines:
            print('%s:1: no AMP_API function is declared here' % path)
        return len(lines)
    return check


# AMPI_F(name) is the name of a function that is stamped once for each path.
STAMPED = re.compile(r'\bAMPI_F\((\w+)\)')
# lizard takes a macro before a function for its name: these are taken out, as are macros that stand alone on a line and __launch_bounds__.
PREFIX = re.compile(r'^((?:static |inline |extern |template <[^>\n]*> ?)*)(?:AMPI?_[A-Z0-9_]+(?:\([^()\n]*\))?[ \t]+)+(?=[A-Za-z_])', re.M)
INVOCATION = re.compile(r'^[A-Z][A-Z0-9_]+\([^;{}]*?\)[ \t]*$', re.M)
BOUNDS = re.compile(r'\b__launch_bounds__\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)')
DEFINITION = re.compile(r'^[A-Za-z_][^;{}()#=]*?\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{', re.M)


def plain(text):
    """What lizard gets: the same lines without comments, preprocessor lines and the macros that are in its way."""
    code = without_preprocessor(only_code(text))
    code = STAMPED.sub(r'ampi_\1', code)
    code = INVOCATION.sub(lambda m: blank(m[0]), BOUNDS.sub('', code))
    return PREFIX.sub(r'\1', code)


def lizard(path):
    """The functions of a file: (name, first line, lines, complexity). Three checks ask; what lizard says is kept in $LIZARD_RESULTS."""
    kept = os.environ.get('LIZARD_RESULTS') and os.path.join(os.environ['LIZARD_RESULTS'], os.path.basename(path) + '.csv')
    if kept and os.path.exists(kept):
        return functions_of(read(kept))
    with tempfile.TemporaryDirectory() as work:
        copy = os.path.join(work, 'copy.cpp')  # C too: the dialect of headers that both compile
        with open(copy, 'w', encoding='utf-8') as f:
            f.write(plain(read(path)))
        out = subprocess.run([os.environ.get('LIZARD', 'lizard'), '-l', 'cpp', '--csv', copy], stdout=subprocess.PIPE, universal_newlines=True)
    if out.returncode not in (0, 1):  # 1: something exceeds its own limits
        sys.exit('lizard: exit status %d' % out.returncode)
    if kept:
        with open(kept, 'w', encoding='utf-8') as f:
            f.write(out.stdout)
    return functions_of(out.stdout)


def functions_of(table):
    return [(row[7], int(row[9]), int(row[10]) - int(row[9]) + 1, int(row[1])) for row in csv.reader(table.split('\n')) if len(row) > 10]


def check_lizard(index, what):
    def check(path, limit):
        worst = 0
        for f in lizard(path):
            worst = max(worst, f[index])
            if f[index] > limit:
                print('%s:%d: %s: %d %s, at most %g' % (path, f[1], f[0], f[index], what, limit))
        return worst
    return check


def check_functions(path, _):
    seen = {f[0].split('::')[-1] for f in lizard(path)}
    text = plain(read(path))
    missed = [m for m in DEFINITION.finditer(text) if m[1] not in seen]
    for m in missed:
        print('%s:%d: lizard does not see %s' % (path, text.count('\n', 0, m.start(1)) + 1, m[1]))
    if not seen:
        print('%s:1: lizard sees no function' % path)
    return len(missed)


CHECKS = {
    'width': check_width,
    'page-width': check_page_width,
    'ternaries': by_line(lambda s, i: s.code[i].count('?'), 'ternaries'),
    'statements': by_line(statements_of, 'statements'),
    'fenced': check_fenced,
    'tokens': check_tokens,
    'public-lines': check_public_lines,
    'public-functions': check_declared(True),
    'backend-functions': check_declared(False),
    'function-lines': check_lizard(2, 'lines'),
    'complexity': check_lizard(3, 'as its cyclomatic complexity'),
    'functions': check_functions,
}


def limit_of(limits, name, path):
    """NAME FILE VALUE goes before NAME VALUE."""
    found = {}
    for line in read(limits).split('\n'):
        words = line.split('#')[0].split()
        if words[:1] == [name]:
            found[words[1] if len(words) == 3 else ''] = float(words[-1])
    return found[path] if path in found else found['']


def main(arguments):
    if len(arguments) < 3 or arguments[0] not in CHECKS:
        sys.exit(__doc__)
    name, limits, paths = arguments[0], arguments[1], arguments[2:]
    worst = max(CHECKS[name](path, limit_of(limits, name, path)) for path in paths)
    print('value: %s' % ('%.1f' % worst if worst != int(worst) else int(worst)))


if __name__ == '__main__':
    main(sys.argv[1:])
