#!/usr/bin/env python3
"""walls.py [--check|--all] [ROOT] - which private names (ampi_, AMPI_) cross from one part of src/ to another, and is each defined above its uses?

Prints the names that are used above their definition, then the crossings: pairs of a name and a part, not its own, that uses it; --all lists
them. The parts that src/order calls open are everybody's: uses of their names are counted apart. --check prints only faults, and fails on one:
a forward use that src/order does not name, or names in vain, and more crossings than `crossings` in tests/limits.txt.

Read from the text, not compiled. A declaration begins in column 0, as clang-format leaves it. AMPI_F(x), and ampi_PATH_x where nothing else
is called so, is a name of >>lanes, which include themselves above: its place in the order says nothing. A macro may use what stands below
it, and an #if ask for it: shown, and no fault. What ## makes of names is not seen."""
import collections
import os
import re
import sys

sys.dont_write_bytecode = True
from density import only_code, read  # noqa: E402

PATH = re.compile(r'ampi_(?:scalar|sse2|avx2|avx512|neon)_(\w+)$')
LANE = 'AMPI_F('


def order(root):
    """The parts, and what the comments `# open:` and `# forward:` of src/order name."""
    parts, marks = [], {'open': [], 'forward': []}
    for line in open(os.path.join(root, 'src/order')):
        mark = re.match(r'# (open|forward):(.*)', line)
        if mark:
            marks[mark[1]] += mark[2].split()
        elif line.startswith(' '):
            parts.append(line.split()[0])
    return parts, marks


def names(text):
    return re.findall(r'\bAMPI_F\(\w+\)|\b(?:ampi|AMPI)_\w*[a-zA-Z0-9]\b', text)


def defined(text):
    """(Names that a declaration at file scope defines, names that it only declares)."""
    text = re.sub(r'\b__\w+__\s*(\((?:[^()]|\([^()]*\))*\))?', '', text)  # attributes
    flat, before = text, None
    while flat != before:
        before, flat = flat, re.sub(r'\{[^{}]*\}', '@', flat)
    made = re.findall(r'\b(?:struct|union|enum)\s+(\w+)\s*\{', text)
    for enum in re.findall(r'\benum\b[^{;]*\{([^}]*)\}', text):
        made += re.findall(r'(?:^|,)\s*(\w+)', enum)
    call = re.search(r'(AMPI_F\(\w+\)|\w+)\s*\(', re.split('[;=]', flat, 1)[0])
    if text.startswith('typedef'):
        name = re.search(r'\(\*(\w+)\)', flat) or call or re.search(r'(\w+)\s*(?:\[[^\]]*\])?\s*;', flat)
        return made + ([name[1]] if name else []), []
    if call:
        return (made + [call[1]], []) if '{' in text else (made, [call[1]])
    if re.match(r'(?:struct|union)\s+\w+\s*;', text):
        return [], re.findall(r'\w+(?=\s*;)', text)
    return made + re.findall(r'(\w+)\s*(?:\[[^\]]*\]\s*)*[=;,]', flat), []


class Part:
    """One file: what it defines, uses in code, and uses in macros and conditions."""

    def __init__(self, text):
        self.defines, self.code, self.macros = set(), set(), set()
        text = re.sub(r'\\\n', ' ', only_code(text))
        lines = []
        for line in text.split('\n'):
            directive = re.match(r'\s*#\s*(\w+)\s*(\w*)(.*)', line)
            if not directive:
                lines.append(line)
            elif directive[1] == 'define':
                self.defines.add(directive[2])
                self.macros.update(names(directive[3]))
            elif directive[1] not in ('error', 'undef'):
                self.macros.update(names(directive[2] + directive[3]))
        for text in re.split(r'\n(?=[A-Za-z_])', '\n'.join(lines)):
            made, said = defined(text.strip())
            self.defines.update(made)
            self.code.update(set(names(text)) - set(said))


class Walls:
    def __init__(self, root):
        self.parts, self.marks = order(root)
        self.at = [Part(read(os.path.join(root, 'src', p))) for p in self.parts]
        self.home = {}
        for i, part in enumerate(self.at):
            for name in part.defines:
                self.home.setdefault(name, i)
        for name, home in list(self.home.items()):  # what a path defines by its own name is AMPI_F's, too
            if PATH.match(name):
                self.home.setdefault(LANE + PATH.match(name)[1] + ')', home)
        self.forward, self.later, self.crossings, self.open, self.unknown = {}, {}, [], 0, set()
        for i, part in enumerate(self.at):
            for name in sorted(part.code | part.macros):
                self.used(i, part, name)

    def used(self, i, part, name):
        path = PATH.match(name)
        if path and name not in self.home:
            name = LANE + path[1] + ')'
        home = self.home.get(name)
        if home is None:
            self.unknown.add(name)
        if home is None or name in part.defines:
            return
        if home > i and not name.startswith(LANE):
            (self.forward if name in part.code else self.later).setdefault(name, []).append(i)
        if self.parts[home] in self.marks['open']:
            self.open += 1
        else:
            self.crossings.append((name, home, i))

    def faults(self, limit):
        listed = self.marks['forward']
        found = [f'{n} is used in {self.parts[u[0]]}, above its definition in {self.parts[self.home[n]]}: src/order does not say so'
                 for n, u in self.forward.items() if n not in listed]
        found += [f'src/order: forward: {n} is used nowhere above its definition' for n in listed if n not in self.forward]
        found += [f'src/order: open: {p} is no part' for p in self.marks['open'] if p not in self.parts]
        if len(self.crossings) > limit:
            found.append(f'{len(self.crossings)} crossings, at most {limit} (tests/limits.txt)')
        return found

    def report(self, everything):
        for title, uses in (('', self.forward), (', by a macro or an #if', self.later)):
            print(f'{len(uses)} names used above their definition{title}')
            for name, where in uses.items():
                print(f'    {name:32} {self.parts[self.home[name]]:28} in {", ".join(self.parts[i] for i in where)}')
        print(f'\n{len(self.crossings)} crossings, and {self.open} uses of open parts; {len(self.unknown)} names without a definition here')
        lent, taken = (collections.Counter(c[k] for c in self.crossings) for k in (1, 2))
        print(f'\n{"part":32} {"lends":>6} {"takes":>6}')
        for i, part in enumerate(self.parts):
            print(f'{part:32} {lent[i]:6} {taken[i]:6}' + ('   open' if part in self.marks['open'] else ''))
        print('\nfrom folder to folder')
        folder = [os.path.dirname(p) for p in self.parts]
        for pair, n in collections.Counter((folder[h], folder[i]) for _, h, i in self.crossings).most_common():
            print(f'{n:6} {pair[0]:18} {pair[1]}')
        for name, home, i in self.crossings if everything else []:
            print(f'{name:36} {self.parts[home]:28} {self.parts[i]}')


def main():
    roots = [a for a in sys.argv[1:] if not a.startswith('--')]
    root = roots[0] if roots else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    walls = Walls(root)
    if '--check' not in sys.argv:
        return walls.report('--all' in sys.argv)
    faults = walls.faults(int(re.search(r'^crossings\s+(\d+)', read(os.path.join(root, 'tests/limits.txt')), re.M)[1]))
    sys.stdout.write(''.join(fault + '\n' for fault in faults))
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main())
