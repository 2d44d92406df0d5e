#!/usr/bin/env python3
"""density.py [FILE...] - how dense the text of C and CUDA files is: one column per file (default: amp.h amp_cuda.cuh).

Needs python3 only; the last row also clang-format, and is "-" without it. What is counted:

  code line     a line with something else than comments and blanks on it, preprocessor lines included; its length is that of the whole line
  statement     a `;` that is not in the head of a for loop and does not only close a type or a do loop: `} name;`, `};`, `} while (x);`
  ternary       a `?`
  one-line if   a line with `if (...)` and a statement after it
  token         a name, a number, a string or character (each as one), an operator (<<=, ->, && and the like as one), any other character.
                `#`, `##` and the backslash at the end of a macro's line are none: they say where the code is, not what it does
Strings, characters and comments are blanked out before statements, ternaries and ifs are looked for.
tests/style.py uses the functions of this file."""
import os
import re
import subprocess
import sys

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''  # a string, a character
                   r'|(?:0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|\.?\d[\d.]*(?:[eE][-+]?\d+)?)[uUlLfF]*'  # a number
                   r'|[A-Za-z_]\w*'
                   r'|>>=|<<=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::'
                   r'|[^\s#\\]')
FENCE = re.compile(r'^\s*(?://|/\*)\s*clang-format (on|off)\b')


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def blank(text):
    """As many blanks and line ends as text."""
    return re.sub(r'[^\n]', ' ', text)


def without_comments(text):
    return COMMENT_OR_TEXT.sub(lambda m: blank(m[0]) if m[0][0] == '/' else m[0], text)


def only_code(text):
    """Without comments, and strings and characters emptied: everything else stays in its column."""
    def emptied(m):
        return blank(m[0]) if m[0][0] == '/' else m[0][0] + blank(m[0][1:-1]) + m[0][-1]
    return COMMENT_OR_TEXT.sub(emptied, text)


def statements(lines):
    """How many statements end on each of these lines of code."""
    counts, open_brackets = [], []
    for line in lines:
        if line[:1].isalpha():  # a new declaration: what an #if left unbalanced is forgotten
            open_brackets = []
        n = 0
        for i, c in enumerate(line):
            if c in '({':
                open_brackets.append('for' if c == '(' and re.search(r'\bfor\s*$', line[:i]) else c)
            elif c in ')}' and open_brackets:
                open_brackets.pop()
            elif c == ';' and not (open_brackets and open_brackets[-1] == 'for'):
                n += not re.search(r'\}\s*(?:\w*|while\s*\(.*\))\s*$', line[:i])
        counts.append(n)
    return counts


def fenced(lines):
    """For each line whether the formatter is off there; the two comments themselves do not count."""
    off, marks = False, []
    for line in lines:
        fence = FENCE.match(line)
        if fence:
            off = fence[1] == 'off'
        marks.append(off and not fence)
    return marks


class Source:
    """A file, line by line: as it stands, its code alone, how many tokens and statements."""

    def __init__(self, path):
        text = read(path)
        self.lines = text.split('\n')[:-1] if text.endswith('\n') else text.split('\n')
        self.code = only_code(text).split('\n')[:len(self.lines)]
        self.is_code = [line.strip() != '' for line in self.code]
        self.tokens = [len(TOKEN.findall(line)) for line in without_comments(text).split('\n')[:len(self.lines)]]
        self.statements = statements(self.code)
        self.fenced = fenced(self.lines)

    def tokens_per_line(self):
        return sum(self.tokens) / max(1, sum(self.is_code))


def formatted_lines(path, lines):
    try:
        out = subprocess.run([os.environ.get('CLANG_FORMAT', 'clang-format'), path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return '-'
    n = out.count(b'\n')
    return '%d (%+.0f %%)' % (n, 100.0 * n / max(1, lines) - 100)


def column(path):
    """The rows of the table for one file: (what, value)."""
    s = Source(path)
    code = [i for i, yes in enumerate(s.is_code) if yes]
    n = max(1, len(code))
    lengths = sorted(len(s.lines[i]) for i in code) or [0]

    def lines_where(holds):
        return sum(1 for i in code if holds(i))

    def share(k):
        return '%d (%.1f %%)' % (k, 100.0 * k / n)
    return [
        ('lines', len(s.lines)),
        ('code lines', len(code)),
        ('average / p90 / max line', '%.0f / %d / %d' % (sum(lengths) / n, lengths[int(0.9 * len(lengths))], lengths[-1])),
        ('lines > 120', share(lines_where(lambda i: len(s.lines[i]) > 120))),
        ('lines > 140', lines_where(lambda i: len(s.lines[i]) > 140)),
        ('statements / code line', '%.2f' % (sum(s.statements) / n)),
        ('lines with >= 2 statements', lines_where(lambda i: s.statements[i] >= 2)),
        ('lines with >= 3 statements', lines_where(lambda i: s.statements[i] >= 3)),
        ('lines with >= 2 ternaries', lines_where(lambda i: s.code[i].count('?') >= 2)),
        ('one-line ifs', lines_where(lambda i: re.search(r'\bif \(.*\).*;', s.code[i]))),
        ('tokens / code line', '%.1f' % s.tokens_per_line()),
        ('macro lines (backslash)', lines_where(lambda i: s.code[i].rstrip().endswith('\\'))),
        ('fenced lines', share(sum(s.fenced))),
        ('lines after the formatter', formatted_lines(path, len(s.lines))),
    ]


def main(paths):
    if paths and paths[0].startswith('-'):
        print(__doc__)
        return 0 if paths[0] in ('-h', '--help') else 2
    columns = [column(p) for p in paths or ['amp.h', 'amp_cuda.cuh']]
    names = [os.path.basename(p) for p in paths or ['amp.h', 'amp_cuda.cuh']]
    print('%-27s' % '' + ''.join('%20s' % name for name in names))
    for rows in zip(*columns):
        print('%-27s' % rows[0][0] + ''.join('%20s' % value for _, value in rows))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
