#!/usr/bin/env python3
"""mutants.py - plants faults in amp.h and amp_cuda.cuh, one at a time, and looks whether a test notices.

usage: mutants.py [--seed N] [--count N] [--only TEXT] [--slice I/N] [--list] [--out FILE] [--quick] [--gone]

The faults: those of tests/mutants/mutants.txt, which people thought of, and --count more (default 0) that a generator makes of the
text: an operator, a comparison or a constant replaced, a statement deleted, at places drawn with --seed (default 1).
--only TEXT: whose line of the --list contains TEXT; --slice I/N: the I-th of N shares, for as many processors, each with a
WORK of its own. Each is built (one object) and run against the tests that its section's banner names, on the contexts cpu-2,
host and, for the text of vectors, cpu-scalar (the others run the same text with other widths) or, for one path's own text,
that path's, or on CUDA's; then, if none of them failed, with what else `make test` runs (--quick: not): the suite on every
context, the tests that have a copy of amp.h of their own, the fuzzers' fixed seeds, tests/process.c, the hashes of
`make fingerprint`, what digits.c and gpt.c claim, the CUDA context and tests/cuda_verbs.cpp, the section's tests with the
address sanitizer and a pattern in all that is not set, and for amp_cuda.cuh and what amp.h has for GPUs alone the counts of
tests/sass.sh 90. What each gave is appended to FILE (default
$BUILD/mutants.log) and not done again there, so that a run that was stopped goes on.

  caught     a test failed, the program died, or it took minutes, or waits for ever
  refused    the compiler did not take it: counted apart
  equal      no program can tell it from the right one: tests/mutants/mutants_equal.txt has the proof
  same       the compiler says so: with -O2 each object, with and without vectors and of the host runtime, is that of the right
             text, byte for byte. Asked if no test of the section failed
  SURVIVED   a gap

--gone plants nothing: it names the faults of mutants.txt whose text is gone, with exit status 1 if there are any.

The last line: N caught, N survived, N equal, N same, N refused. It needs the objects of `make build/test_cpu`, and for
amp_cuda.cuh those of build/hostcuda/plain/suite and tests/cuda_verbs.sh; what is missing is made.
"""
import argparse
import fcntl
import hashlib
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

BUILD = os.environ.get('BUILD', 'build')
WORK = os.environ.get('WORK', os.path.join(BUILD, 'mutants'))
MAKE = os.environ.get('MAKE', 'make')
SECONDS = 60  # of CPU time for one program
ALONE = ('process', 'fuzz_api', 'fuzz_state', 'fuzz_programs')  # programs of one object and the implementation's

# ---- the text: what is code, and which section and function a place is in ----


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def code_only(text):
    """The same text with blanks for comments, strings, characters and preprocessor lines."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)


KERNELS = ['test_formats.c', 'test_arrays.c', 'test_step.c', 'test_products.c', 'test_ordered.c']  # of the CPU's: no banner names them


def sections(text):
    """(offset, [test files]) of each banner that names its tests."""
    found = []
    for m in re.finditer(r'tests: ((?:tests/[\w.]+(?:,\s+)?)+)|==== >>(?:cpu|lanes) ', text):
        found.append((m.start(), re.findall(r'tests/([\w.]+)', m.group(1)) if m.group(1) else KERNELS))
    return found


def tests_at(text, offset):
    """The files that the banner above a place names; those of the math that all backends share, where it has none."""
    files = []
    for start, names in sections(text):
        if start <= offset:
            files = names
    if '==== >>impl ' in text and offset < text.index('==== >>impl '):
        files = files + ['test_scaler.c', 'test_promises.c', 'test_step.c', 'test_arrays.c']
    return files


VECTORS = r'X86|SSE|AVX|SIMD'  # not compiled with AMP_NO_SIMD


def lines_kept():
    """The lines of amp.h that the compiler reads here, with vectors or without."""
    kept = set()
    for flag in ('', '-DAMP_NO_SIMD'):
        said = subprocess.run('%s -std=c99 -E %s -I. tests/impl.c' % (os.environ.get('CC', 'cc'), flag),
                              shell=True, stdout=subprocess.PIPE, text=True, check=True).stdout
        name, line = '', 0
        for row in said.splitlines():
            marker = re.match(r'# (\d+) "([^"]*)"', row)
            if marker:
                name, line = os.path.basename(marker.group(2)), int(marker.group(1)) - 1
            elif name == 'amp.h' and row.strip():
                kept.add(line)
            line += 1
    return kept


def not_compiled(path, text):
    """Ranges of the branches for other processors and systems: the compiler reads none of their lines here, nor does nvcc."""
    if path != 'amp.h':
        return ranges_of(text, 'STUB|__CUDA_ARCH__')
    kept, ranges, stack = lines_kept(), [], []
    for m in re.finditer(r'^[ \t]*#[ \t]*(if|el|endif)\w*[^\n]*', text, re.M):
        if m.group(1) != 'if' and stack:
            start = stack.pop()
            first, last = (text.count('\n', 0, at) + 1 for at in (start, m.start()))
            if not any(first < line < last for line in kept) and not on_device(text, start):
                ranges.append((start, m.start()))
        if m.group(1) != 'endif':
            stack.append(m.end())
    return ranges


def ranges_of(text, which):
    """Ranges of the branches whose #if names one of `which`, with what follows until the next branch."""
    ranges, stack = [], []
    for m in re.finditer(r'^[ \t]*#[ \t]*(if\w*|else|elif|endif)\b([^\n]*)', text, re.M):
        word, condition = m.group(1), m.group(2)
        if word.startswith('if'):
            foreign = re.search(which, condition) and 'ndef' not in word
            stack.append((m.start(), bool(foreign) and '!' not in condition))
        elif word == 'endif' and stack:
            start, foreign = stack.pop()
            if foreign:
                ranges.append((start, m.end()))
        elif stack:
            start, foreign = stack.pop()
            if foreign:
                ranges.append((start, m.end()))
            stack.append((m.start(), False))
    return ranges


def needs_vectors(text, offset):
    """Is this place, or what is made of it, another thing in a build with AMP_NO_SIMD? Such a build takes half of the time."""
    return offset >= text.index('==== >>lanes ') or any(a <= offset < b for a, b in ranges_of(text, VECTORS))


def on_device(text, offset):
    """Is this place of amp.h compiled for a GPU alone? Then no program of the CPU has it."""
    return any(a <= offset < b for a, b in ranges_of(text, 'AMP_DEVICE'))


def path_of(text, offset):
    """The path of vectors ("sse2") whose own text a place is, or None."""
    path = None
    ends = r'#[ \t]*undef AMPI_F$|/\* ==== >>'  # a path's text ends where the next begins, or at a banner
    for m in re.finditer(r'^(?:#[ \t]*define AMPI_F\(name\)[ \t]+ampi_(\w+?)_##name$|%s)' % ends, text[:offset], re.M):
        path = m.group(1)
    return path if path != 'scalar' else None


# ---- faults ----


class Fault:
    def __init__(self, path, name, start, end, new, line):
        self.path, self.name, self.start, self.end, self.new, self.line = path, name, start, end, new, line


def loose(old):
    """A pattern for the text `old`, however it is broken into lines."""
    return r'\s*'.join(re.escape(token) for token in re.findall(r'\w+|[^\w\s]', old))


def named(texts):
    """tests/mutants/mutants.txt: "cpu NAME" or "cuda NAME", then lines "- old" and "+ new"."""
    faults, missing, current = [], [], None
    blocks = []
    for line in open('tests/mutants/mutants.txt'):
        line = line.rstrip('\n')
        if line.startswith(('cpu ', 'cuda ')):
            current = [line, '', '']
            blocks.append(current)
        elif line.startswith('- '):
            current[1] += line[2:] + '\n'
        elif line.startswith('+ '):
            current[2] += line[2:] + '\n'
    for title, old, new in blocks:
        path = 'amp.h' if title.startswith('cpu ') else 'amp_cuda.cuh'
        found = list(re.finditer(loose(old), texts[path]))
        if len(found) != 1:
            missing.append('%s: its text is there %d times' % (title, len(found)))
            continue
        m = found[0]
        line = texts[path].count('\n', 0, m.start()) + 1
        faults.append(Fault(path, title, m.start(), m.end(), new.rstrip('\n'), line))
    return faults, missing


OPERATORS = {'+': '-', '-': '+', '*': '+', '&&': '||', '||': '&&', '<': '<=', '<=': '<', '>': '>=', '>=': '>',
             '==': '!=', '!=': '==', '&': '|', '|': '&', '<<': '>>', '>>': '<<', '^': '|', '+=': '-=', '-=': '+=',
             '|=': '&=', '&=': '|=', '++': '--'}


# Text where nothing is planted, because no result depends on it, by the contract: hints of what to load; how much work is
# worth a second thread and how many pieces or blocks it is cut into, what instructions a processor has and how wide its tiles
# are, where in a cache line a buffer begins, which decide the speed and none of the bits; what lies past the last element;
# how long is waited; what the compiler alone is asked; and what other systems need: their byte order, va_end, mutexes and
# conditions that are destroyed. Functions that answer such a question alone, and single lines.
SPEED = ('ampi_prefetch ampi_fetch_line ampi_cu_least ampi_cu_grid ampi_cu_grid_of ampi_cu_cuts ampi_cu_inspect_cuts '
         'ampi_cu_xent_grid').split()
UNSEEN = (r'^\s+next = i|prefetch|PREFETCH|fetch_line\(|double multiplications|threads\) j->blocks_n|< threads && d->m|'
          r'n_elements > 1u << 20|ampi_cu_grid(_of)?\(|elements--; b \+= size|size / 2; i\+\+|size - 1 - i|'
          r'__get_cpuid\(|work < 65536|tiles = ampi_cu_parts|static_assert|is\.bf16 = |k->mr\[\d\] = |& 63u\)\) % 64u|memset\(x \+ n, 0, \(full|memset\(to, 0, width|'
          r'memset\(row \+ e \* depth|attempt < 100|tries < 1000000|va_end\(|pthread_(mutex|cond)_destroy')
# The same for one place in a line, by the line up to it, the text that is replaced and what follows.
UNSEEN_AT = [
    (r'\bampi_(parallel|run)\(\w[\w.>-]*, ([^,()]|\([^()]*\)|\w+\([^()]*\))+,[^,]*$', r'.', r''),  # how much work it is
    (r'\b(m|count) (==|<) $', r'8u$', r'\D'),  # groups of eight that go one by one
    (r'ampi_k_load8\([^;]*, m, $', r'1$', r'\);'),  # the same
    (r'AMP_NEAREST, $|\br \? r\[i\] : $', r'0$', r''),  # the random bits, to nearest
    (r'for \(i = 0; i \+ \w+ $', r'<=$', r' n; i \+='),  # whether the last whole step goes by itself or with the rest
]


def is_set_next(code, name_end, name):
    """Is the next use of an answer, which is declared with a value, its address? What is called sets it."""
    use = re.search(r'(&?)\b%s\b' % name, code[name_end:])
    return bool(use) and use.group(1) == '&'


def is_tie(line, operator):
    """Does the comparison choose the larger or the smaller of two? Where they are equal, either is right."""
    if operator not in ('<', '<=', '>', '>=') or 'float' in line:  # -0 and 0 are equal, and two
        return False
    chosen = re.search(r'if \(([^()&|]+) [<>]=? ([^()&|]+)\) ([^=;]+) = ([^;]+);', line)
    chosen = chosen or re.search(r'([\w.\[\]>()-]+) [<>]=? ([\w.\[\]>-]+) \? ([\w.\[\]>()-]+) : ((?:\(\w+\))?[\w.\[\]>-]+)', line)
    if not chosen:
        return False
    a, b, c, d = (re.sub(r'^(\(\w+\))?\(*', '', side.strip()) for side in chosen.groups())
    return {a, b} == {c, d}


def places(path, text):
    """Every place where the generator could plant something: (start, end, new, kind)."""
    code, skip = code_only(text), not_compiled(path, text)
    speed = [m.span() for name in SPEED for m in re.finditer(r'^(?!#)\w[^\n;=]*\b%s\([^;]*?\{.*?(?:^\}|\}$)' % name, text, re.M | re.S)]
    begin = text.index('==== >>backend ') if path == 'amp.h' else text.index('==== >>device ')
    found = []

    def add(start, end, new, kind):
        line = text[text.rindex('\n', 0, start) + 1:text.index('\n', start)]
        if re.search(UNSEEN, line) or (kind == 'operator' and is_tie(line, text[start:end])):
            return
        before = line[:start - 1 - text.rindex('\n', 0, start)]
        call = re.sub(r'\s+', ' ', re.sub(r'(?<=\()\s+', '', re.split(r'[;{}]', text[start - 300:start])[-1]))  # which may stand in two lines
        if any((re.search(a, before) or re.search(a, call)) and re.match(b, text[start:end]) and re.match(c, text[end:])
               for a, b, c in UNSEEN_AT):
            return
        if kind == 'constant' and re.search(r'memset\(&?\w+, $', text[:start][-60:]):  # to leave it out says more
            return
        if any(a <= start < b for a, b in speed):
            return
        if start >= begin and not any(a <= start < b for a, b in skip):
            found.append((start, end, new, kind))

    for m in re.finditer(r'(?<=[\w)\]] )(\+=|-=|\|=|&=|&&|\|\||<=|>=|==|!=|<<|>>|[-+*<>&|^])(?= [\w(\-~!&*])', code):
        if m.group(1) in OPERATORS and not re.search(r'\b(return|case)$', code[:m.start() - 1][-8:]):
            add(m.start(), m.end(), OPERATORS[m.group(1)], 'operator')
    for m in re.finditer(r'(?<![\w.])(\d+)(u?)(?![\w.])(?!\s*:)', code):
        before = code[code.rindex('\n', 0, m.start()) + 1:m.start()]
        size = re.match(r'\s*(?:static |const |unsigned )*\w+ [\w, \[\]*+]*\w\[[^\]]*$', before)  # of an array: a larger one is as good
        declared = re.match(r'\s*(?:int|cuda\w+) (?:\w+(?: = \d+u?)?, )*(\w+) = $', before)
        unset = m.group(1) == '0' and (re.search(r'= \{[^}]*$', before) or declared and is_set_next(code, m.end(), declared.group(1)))
        if not size and not unset and not re.search(r'(AMP_|\[\s*|case\s+)$', before[-6:]):
            value = int(m.group(1), 8 if m.group(1).startswith('0') else 10) if re.match(r'[0-7]+$', m.group(1)) else int(m.group(1))
            add(m.start(), m.end(), '%d%s' % (value + 1 if value != 1 else 0, m.group(2)), 'constant')  # a flag of 2 is one of 1
    for m in re.finditer(r'^( +)((?:\(void\))?[a-z]\w*(?:->|\.|\[[^\]\n]*\])?[\w.>\[\]-]*(?: [-+*|&^]?= [^;\n{}]+|\([^;\n{}]*\)));$', code, re.M):
        if not re.match(r'\s*(return|goto|break|continue|case|else|typedef|struct)\b', m.group(2)):
            add(m.start(2), m.end(2), '(void)0', 'statement')
    return found


def generated(texts, seed, count):
    pool = []
    for path in sorted(texts):
        pool += [(path,) + place for place in places(path, texts[path])]
    faults = []
    for path, start, end, new, kind in random.Random(seed).sample(pool, min(count, len(pool))):
        text = texts[path]
        a, b = text.rindex('\n', 0, start) + 1, text.index('\n', end)
        before, after = text[a:b].strip(), (text[a:start] + new + text[end:b]).strip()
        again = re.findall(r'^[ \t]*(.*\S)', text[:a], re.M).count(before)  # the same text further up
        key = hashlib.sha256((path + before + '>' + after + '#%d' % again * (again > 0)).encode()).hexdigest()[:8]
        line = text.count('\n', 0, start) + 1
        faults.append(Fault(path, '%s %s %s: %s => %s' % (key, path, kind, before, after), start, end, new, line))
    return faults, len(pool)


# ---- building and running ----


def run(command, seconds=SECONDS):
    """Its exit status and what it prints; killed after so many seconds of CPU time, or twice as many without an end."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    program = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limit,
                               start_new_session=True, errors='replace')
    try:
        said = program.communicate(timeout=2 * seconds)[0]
        return program.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)  # with what the shell has started
        return 124, 'timeout\n' + program.communicate()[0]


def why(output):
    """The first line that says what was noticed."""
    for line in output.splitlines():
        if re.search(r'FAILED|HOSTCUDA|ERROR|Killed|timeout', line):
            return line.strip()[:160]
    return output.strip().splitlines()[-1][:160] if output.strip() else 'no output'


class Bench:
    """The objects that no fault changes, and the commands for the one that it does."""

    def __init__(self, cuda):
        self.cc, self.cxx = os.environ.get('CC', 'cc'), os.environ.get('CXX', 'g++')
        targets = ['%s/test_cpu' % BUILD] + ['%s/tests/%s.o' % (BUILD, name) for name in ALONE + ('fingerprint',)]
        if cuda:
            plain = BUILD + '/hostcuda/plain'
            targets += [plain + '/suite', plain + '/fingerprint.c.o', plain + '/gpt', '%s/hostcuda/libhostcuda-asan.a' % BUILD]
            self.counts = shutil.which('nvcc') and shutil.which('nvdisasm')
            targets += ['%s/sass/sass' % BUILD] if self.counts else []
            if not self.counts:
                print('skipped: machine code is not looked at, for want of nvcc or nvdisasm on PATH')
        with open(BUILD + '/mutants.lock', 'w') as lock:  # for slices that begin at once
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([MAKE, '-s'] + targets)
            if cuda and done.returncode == 0:
                done = subprocess.run('tests/cuda_verbs.sh >/dev/null', shell=True)
            done = done if done.returncode else subprocess.run(self.fingerprint_right(cuda), shell=True)
        if done.returncode:
            sys.exit('mutants.py: the tests do not pass, or do not build, without a fault')
        self.cuda_home = os.environ.get('CUDA_HOME', '/usr/local/cuda')
        self.library = BUILD + '/hostcuda/libhostcuda-%s.a -lpthread -ldl -lm'
        self.simd = ''
        self.linked = ''  # the objects of the last fault's suite, but the implementation
        self.right = {}  # the right text's machine code, by command

    def fingerprint_right(self, cuda):
        """The command for the right text's program, of both kinds."""
        command = '%s %s/tests/fingerprint.o %s/tests/impl.o %s/tests/cuda_stub.o -o %s/fingerprint_right -lm -pthread' % (
            self.cc, BUILD, BUILD, BUILD, BUILD)
        if cuda:
            library = BUILD + '/hostcuda/libhostcuda-plain.a -lpthread -ldl -lm'
            command += ' && %s %s/hostcuda/plain/fingerprint.c.o %s/hostcuda/plain/cuda_impl.o %s/tests/impl.o %s -o %s/fingerprint_right_cuda' % (
                self.cxx, BUILD, BUILD, BUILD, library, BUILD)
        return command

    def objects(self, plain):
        """Those of the unit suite: of the CPU program, or of the one on the host runtime."""
        out = []
        for source in sorted(os.listdir('tests')):
            if source == 'main.c' or re.match(r'test_\w+\.c$', source):
                own = '%s/hostcuda/plain/%s.o' % (BUILD, source)
                out.append(own if plain and os.path.exists(own) else '%s/tests/%s.o' % (BUILD, source[:-2]))
        return out

    def build(self, fault, text):
        """The faulty header in a folder of its own, its object, and the programs: None, or what the compiler said."""
        os.makedirs(WORK + '/tests', exist_ok=True)
        for path in ('amp.h', 'amp_cuda.cuh'):
            with open(os.path.join(WORK, path), 'w') as out:
                out.write(text[:fault.start] + fault.new + text[fault.end:] if path == fault.path else open(path).read())
        self.link_tests()
        return self.build_cpu(fault, text) if fault.path == 'amp.h' else self.build_cuda()

    def link_tests(self):
        for name in os.listdir('tests'):
            if name.endswith(('.c', '.h', '.cu')) and not os.path.lexists('%s/tests/%s' % (WORK, name)):
                os.symlink(os.path.abspath('tests/' + name), '%s/tests/%s' % (WORK, name))
        for folder in ('examples',):
            if not os.path.lexists('%s/%s' % (WORK, folder)):
                os.symlink(os.path.abspath(folder), '%s/%s' % (WORK, folder))

    def code(self, command, path):
        """What a command makes of the headers in WORK."""
        rc, said = run('%s -o %s' % (command, path), 300)
        return hashlib.sha256(open(path, 'rb').read()).hexdigest() if rc == 0 else None

    def right_code(self, command, path):
        """The same of the right ones."""
        if command not in self.right:
            wrong = {name: open('%s/%s' % (WORK, name)).read() for name in ('amp.h', 'amp_cuda.cuh')}
            for name in wrong:
                shutil.copy(name, WORK)
            self.right[command] = self.code(command, path)
            for name in wrong:
                open('%s/%s' % (WORK, name), 'w').write(wrong[name])
        return self.right[command]

    def is_same(self, fault, text):
        """Does the compiler make the same machine code of the fault? Not asked of inline functions, which every program has."""
        if fault.path == 'amp.h' and fault.start < text.index('==== >>impl '):
            return False
        for name in ('impl.c', 'cuda_impl.cu'):
            self.copied(name)
        implementation = '%s -std=c99 -w -O2 %%s -I%s -c %s/tests/impl.c' % (self.cc, WORK, WORK)
        commands = [implementation % '-DAMP_NO_SIMD', implementation % ''] if fault.path == 'amp.h' else []
        if fault.path != 'amp.h':
            commands = ['%s -std=c++17 -w -O2 -ffp-contract=off -fno-math-errno -isystem %s/include -Itests/hostcuda -I%s '
                        '-x c++ -include hostcuda.h -c %s/tests/cuda_impl.cu' % (self.cxx, self.cuda_home, WORK, WORK)]
            if self.counts:
                commands.append('nvcc -std=c++17 -O2 -I%s -ptx -arch=compute_90 %s/tests/cuda_impl.cu' % (WORK, WORK))
        path = WORK + '/same.o'
        return all(self.code(command, path) == self.right_code(command, path) is not None for command in commands)

    def build_cpu(self, fault, text):
        self.simd = '' if needs_vectors(text, fault.start) else '-DAMP_NO_SIMD'
        compile_ = '%s -std=c99 -w -O1 %s -I%s -c %%s -o %%s' % (self.cc, self.simd, WORK)
        objects = self.objects(False)
        rc, said = run(compile_ % (self.copied('impl.c'), WORK + '/impl.o'))
        if rc:
            return said
        if fault.start < text.index('==== >>impl '):  # inline bodies: the tests have them in their own objects too
            for name in self.with_inline(text, fault.start):
                rc, said = run(compile_ % (self.copied(name + '.c'), '%s/%s.o' % (WORK, name)))
                if rc:
                    return said
                objects = ['%s/%s.o' % (WORK, name) if o.endswith('/%s.o' % name) else o for o in objects]
        self.linked = ' '.join(objects) + ' %s/tests/cuda_stub.o' % BUILD
        rc, said = run('%s %s %s/impl.o -o %s/suite -lm -pthread' % (self.cc, self.linked, WORK, WORK))
        return said if rc else None

    def with_inline(self, text, offset):
        """The tests whose objects have an inline function of their own: those that speak of it, and three that have most of them."""
        above = re.findall(r'^AMP_INLINE [^\n]*?(\w+)\(', text[:offset], re.M)
        names = ['test_formats', 'test_scaler', 'test_promises']
        for source in sorted(os.listdir('tests')):
            if above and re.match(r'test_\w+\.c$', source) and source[:-2] not in names:
                if re.search(r'\b%s\b' % above[-1], open('tests/' + source).read()):
                    names.append(source[:-2])
        return names

    def copied(self, name):
        """A copy, because a link's "../amp.h" is that of its target."""
        path = '%s/tests/%s' % (WORK, name)
        text = open('tests/' + name).read()
        if os.path.lexists(path):
            os.remove(path)
        open(path, 'w').write(text)
        for header in re.findall(r'#include "([\w.]+\.h)"', text):
            if os.path.exists('tests/' + header) and os.path.islink('%s/tests/%s' % (WORK, header)):
                self.copied(header)
        return path

    def compile_cuda(self, more, name):
        flags = '-std=c++17 -w -O1 -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -isystem %s/include ' \
                '-Itests/hostcuda -I%s %s' % (self.cuda_home, WORK, more)
        return run('%s %s -x c++ -include hostcuda.h -c %s -o %s/%s.o' %
                   (self.cxx, flags, self.copied('cuda_impl.cu'), WORK, name), 300)

    def build_cuda(self):
        rc, said = self.compile_cuda('-fsanitize=alignment -fsanitize-undefined-trap-on-error', 'cuda_impl')
        library = self.library % 'plain'
        impl = '%s/tests/impl.o' % BUILD
        if rc == 0:
            rc, said = run('%s %s %s %s/cuda_impl.o %s -o %s/suite' %
                           (self.cxx, ' '.join(self.objects(True)), impl, WORK, library, WORK))
        if rc == 0:
            rc, said = run('%s %s/hostcuda/plain/cuda_verbs.o %s/cuda_impl.o %s %s -o %s/verbs' %
                           (self.cxx, BUILD, WORK, impl, library, WORK))
        return said if rc else None

    def state_files(self):
        """The program that saves and loads under kills and changed files has an implementation of its own."""
        rc, said = run('%s -std=c99 -w -O1 -DAMP_NO_SIMD -I%s %s -o %s/state_files -lm -pthread' %
                       (self.cc, WORK, self.copied('state_files.c'), WORK))
        return said if rc else None

    def sanitized(self, fault, text, contexts, suites):
        """The section's tests once more, with the address sanitizer in the faulty object, which sees leaks, too, and with a
        pattern in all that is not set, which would often be 0 by luck."""
        check = '-fsanitize=address,undefined -fno-sanitize=enum -fno-sanitize-recover=undefined -ftrivial-auto-var-init=pattern'
        linked, verbs = self.linked, []
        if fault.path == 'amp.h':
            rc, said = run('%s -std=c99 -w -O1 %s %s -I%s -c %s -o %s/checked.o' %
                           (self.cc, check, self.simd, WORK, self.copied('impl.c'), WORK), 300)
            rest = '-lm -pthread'
            for name in self.with_inline(text, fault.start) if fault.start < text.index('==== >>impl ') else []:
                rc = rc or run('%s -std=c99 -w -O1 %s %s -I%s -c %s -o %s/checked_%s.o' %
                               (self.cc, check, self.simd, WORK, self.copied(name + '.c'), WORK, name), 300)[0]
                linked = linked.replace('%s/%s.o' % (WORK, name), '%s/checked_%s.o' % (WORK, name))
        else:
            rc, said = self.compile_cuda(check, 'checked')
            rest = '%s/tests/impl.o %s' % (BUILD, self.library % 'asan')
            linked = ' '.join(self.objects(True))
            rc = rc or run('%s %s %s/hostcuda/plain/cuda_verbs.o %s/checked.o %s -o %s/checked_verbs' %
                           (self.cxx, check, BUILD, WORK, rest, WORK))[0]
            verbs = ['%s/checked_verbs' % WORK]
        if rc == 0:
            rc, said = run('%s %s %s %s/checked.o %s -o %s/checked' % (self.cxx, check, linked, WORK, rest, WORK))
        if rc:
            return []
        environment = 'ASAN_OPTIONS=allocator_may_return_null=1 HCU_PROTECT=0 HCU_SEED=1 '
        return [environment + command for command in
                ['%s/checked --stop --seed 3 --context %s --file %s' % (WORK, context, suite)
                 for context in contexts[:3] for suite in suites] + verbs]

    def raced(self, suites):
        """The section's tests once more, with the thread sanitizer, as the matrix has them: for faults of what is locked."""
        rc, said = run('%s -std=c99 -w -O1 -g -fsanitize=thread -DAMP_NO_SIMD -I%s -c %s -o %s/raced.o && '
                       '%s -fsanitize=thread %s %s/raced.o -o %s/raced -lm -pthread' %
                       (self.cc, WORK, self.copied('impl.c'), WORK, self.cc, self.linked, WORK, WORK), 300)
        return [] if rc else ['TSAN_OPTIONS=allocator_may_return_null=1 %s/raced --stop --seed 3 --context cpu-2 --file %s' %
                              (WORK, suite) for suite in suites]

    def counted(self, other):
        """The kernels' bits and instructions once more, from machine code, with its table; `other` has the backend's object."""
        if not self.counts:
            return []
        for name in ('sass_code.cu', 'cuda_impl.cu', 'naive_tail.cu', 'naive_tail.h'):
            self.copied(name)
        rc, said = run('nvcc -std=c++17 -O2 -I%s -cubin -arch=sm_90 %s/tests/sass_code.cu -o %s/sm_90.cubin && '
                       'nvdisasm -c %s/sm_90.cubin >%s/sm_90.sass && %s %s/sass/sass.o %s/sass/naive_tail.o %s/tests/impl.o %s/cuda_impl.o %s -o %s/sass' %
                       (WORK, WORK, WORK, WORK, WORK, self.cxx, BUILD, BUILD, BUILD, other, self.library % 'plain', WORK), 300)
        return [] if rc else ['%s/sass --code %s/sm_90 --quick --table tests/expected/sass.txt' % (WORK, WORK)]

    def every_context(self):
        """The suite as `make test` runs it: with vectors, on all of the CPU's contexts."""
        if not self.simd:
            return ['%s/suite --stop --seed 2' % WORK]
        rc, said = run('%s -std=c99 -w -O1 -I%s -c %s -o %s/impl.o' % (self.cc, WORK, self.copied('impl.c'), WORK))
        rc = rc or run('%s %s %s/impl.o -o %s/suite -lm -pthread' % (self.cc, self.linked, WORK, WORK))[0]
        return [] if rc else ['%s/suite --stop --seed 2' % WORK]

    def own_copies(self):
        """The tests that are compiled with AMP_STATIC, so that they can look inside."""
        commands, objects = [], self.linked
        for name in sorted(os.listdir('tests')):
            if re.match(r'test_\w+\.c$', name) and re.search(r'^#define AMP_STATIC', open('tests/' + name).read(), re.M):
                rc, said = run('%s -std=c99 -w -O1 -DAMP_NO_SIMD -I%s -c %s -o %s/%s.o' %
                               (self.cc, WORK, self.copied(name), WORK, name[:-2]))
                objects = re.sub(r'\S+/%s\.o' % name[:-2], '%s/%s.o' % (WORK, name[:-2]), objects)
                commands += ['%s/own --stop --seed 6 --context cpu-2 --file %s' % (WORK, name[5:-2])] if rc == 0 else []
        rc, said = run('%s %s %s/impl.o -o %s/own -lm -pthread' % (self.cc, objects, WORK, WORK))
        return [] if rc else commands

    def alone(self):
        """Programs that are linked with the faulty implementation alone."""
        arguments = {'fuzz_api': ' --seed 1 --count 60', 'fuzz_state': ' --seed 1 --count 150', 'fuzz_programs': ' --seed 1 --count 6'}
        for name in ALONE:
            rc, said = run('%s %s/tests/%s.o %s/impl.o -o %s/%s -lm -pthread' % (self.cc, BUILD, name, WORK, WORK, name))
            if rc == 0:
                yield 'FUZZ_DIR=%s %s/%s%s' % (WORK, WORK, name, arguments.get(name, ''))

    def on_cuda(self):
        """The CUDA context, whose verbs are made of amp.h's too."""
        other = '%s/hostcuda/plain/' % BUILD
        if not os.path.exists(other + 'cuda_impl.o'):
            return []
        rc, said = run('%s %s %s/impl.o %scuda_impl.o %s -o %s/suite' %
                       (self.cxx, ' '.join(self.objects(True)), WORK, other, self.library % 'plain', WORK))
        rc = rc or run('%s %scuda_verbs.o %scuda_impl.o %s/impl.o %s -o %s/verbs' %
                       (self.cxx, other, other, WORK, self.library % 'plain', WORK))[0]
        host = 'HCU_PROTECT=0 HCU_SEED=1 '
        return [] if rc else [host + '%s/suite --stop --seed 4 --context cuda' % WORK, host + '%s/verbs' % WORK]

    def fingerprints(self, program, contexts):
        """What `make fingerprint` looks at: hashes of what every verb gives, beside those of the right text."""
        for context in contexts:
            right, got = '%s/fingerprint.%s' % (BUILD, context), '%s/fingerprint.txt' % WORK
            environment = 'HCU_PROTECT=0 TMPDIR=%s ' % WORK
            if not os.path.exists(right):
                one = BUILD + ('/fingerprint_right_cuda' if context == 'cuda' else '/fingerprint_right')
                rc, said = run('%s%s --context %s >%s.new && mv %s.new %s' % (environment, one, context, got, got, right), 300)
                if rc:
                    continue  # not on this machine
            yield '%s%s --context %s >%s && cmp %s %s' % (environment, program, context, got, right, got)

    def claims(self):
        """What the first two examples claim of themselves."""
        for name, arguments in (('digits', '--check --seeds 2'), ('gpt', '--check --threads 1')):
            rc, said = run('%s -std=c99 -w -O1 -DAMP_LINKED -I%s -Iexamples examples/%s.c %s/impl.o -o %s/%s -lm -pthread' %
                           (self.cc, WORK, name, WORK, WORK, name))
            if rc == 0:
                yield '%s/%s %s' % (WORK, name, arguments)

    def seen_from_outside(self):
        rc, said = run('%s %s/tests/fingerprint.o %s/impl.o %s/tests/cuda_stub.o -o %s/fingerprint -lm -pthread' %
                       (self.cc, BUILD, WORK, BUILD, WORK))
        if rc == 0:
            yield from self.fingerprints(WORK + '/fingerprint', ('cpu-scalar', 'cpu-sse2', 'cpu-avx2', 'cpu-avx512', 'cpu-2threads'))
        yield from self.claims()

    def seen_on_cuda(self):
        other, rest = '%s/hostcuda/plain/' % BUILD, '%s/cuda_impl.o %s/tests/impl.o %s' % (WORK, BUILD, self.library % 'plain')
        if run('%s %sgpt.o %sgpt.probe.o %s -o %s/gpt_cuda' % (self.cxx, other, other, rest, WORK))[0] == 0:
            yield 'HCU_PROTECT=0 HCU_SMS=4 %s/gpt_cuda --check-gradients --device cuda' % WORK
        if run('%s %sfingerprint.c.o %s -o %s/fingerprint' % (self.cxx, other, rest, WORK))[0] == 0:
            yield from self.fingerprints(WORK + '/fingerprint', ('cuda',))

    def other_programs(self, fault, text, contexts, suites):
        """What is run when the tests of the section saw nothing: commands, made when they are asked for."""
        if fault.path == 'amp.h' and on_device(text, fault.start):
            yield from self.counted(BUILD + '/hostcuda/plain')
        elif fault.path == 'amp.h':
            if 'lock(' in text[fault.start:fault.end]:
                yield from self.raced(suites)
            yield from self.own_copies()
            yield from self.sanitized(fault, text, contexts, suites)
            yield from self.every_context()
            yield from self.alone()
            yield from self.seen_from_outside()
            yield from self.on_cuda()
        else:
            yield from self.sanitized(fault, text, contexts, suites)
            yield from self.seen_on_cuda()
            yield from self.counted(WORK)

    def notice(self, fault, text, quick):
        """Runs the tests of the section, then what else there is: the verdict, and what noticed the fault."""
        files = tests_at(text, fault.start)
        suites = [re.sub(r'test_(\w+)\.c', r'\1', f) for f in files if f.startswith('test_')]
        contexts = ('cuda',)
        if fault.path == 'amp.h':
            contexts = ('cpu-2', 'host', 'cpu-scalar') if needs_vectors(text, fault.start) else ('cpu-2', 'host')
            if path_of(text, fault.start):
                contexts = ('cpu-' + path_of(text, fault.start),) + contexts
            commands = ['%s/suite --stop --seed 1 --context %s --file %s' % (WORK, context, suite)
                        for context in contexts for suite in suites]
            whole = []
            if 'state_files.c' in files and not self.state_files():
                whole = ['%s/state_files %s/state_files.tmp' % (WORK, WORK)]
        else:
            host = 'HCU_PROTECT=0 HCU_SEED=1 '
            commands = [host + '%s/suite --stop --seed 1 --context cuda --file %s' % (WORK, suite) for suite in suites]
            whole = ['HCU_SMS=1 ' + host + '%s/suite --stop --seed 2 --context cuda' % WORK, '%s/verbs' % WORK]
            if 'cuda_verbs.cpp' in files:
                commands.insert(0, whole.pop())
        for command in commands:
            rc, said = run('TMPDIR=%s %s' % (WORK, command), 3 * SECONDS)
            if rc:
                return 'caught', why(said)
        if self.is_same(fault, text):
            return 'same', ''
        for command in itertools.chain(whole, self.other_programs(fault, text, contexts, suites)) if not quick else []:
            rc, said = run('TMPDIR=%s %s' % (WORK, command), 3 * SECONDS)
            if rc:
                return 'caught', why(said)
        return 'survived', ''


def main():
    ask = argparse.ArgumentParser(usage=__doc__.split('\n\n')[1][7:])
    ask.add_argument('--seed', type=int, default=1)
    ask.add_argument('--count', type=int, default=0)
    ask.add_argument('--only', default='')
    ask.add_argument('--slice', default='1/1')
    ask.add_argument('--list', action='store_true')
    ask.add_argument('--quick', action='store_true')
    ask.add_argument('--gone', action='store_true')
    ask.add_argument('--out', default=os.path.join(BUILD, 'mutants.log'))
    asked = ask.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
    texts = {path: open(path).read() for path in ('amp.h', 'amp_cuda.cuh')}
    faults, missing = named(texts)
    if asked.gone:
        sys.exit('\n'.join('tests/mutants/mutants.txt: ' + m for m in missing) or 0)
    drawn, pool = generated(texts, asked.seed, asked.count)
    share, shares = (int(x) for x in asked.slice.split('/'))
    faults = [f for f in faults + drawn if asked.only in f.name][share - 1::shares]
    equal = {}
    for line in open('tests/mutants/mutants_equal.txt'):
        if line.strip() and not line.startswith('#'):
            key, proof = line.rstrip('\n').split(' ', 1)
            equal[key] = proof
    if asked.list:
        for f in faults:
            print('%s:%d %s' % (f.path, f.line, f.name))
        print('%d faults; the generator knows %d places; named faults whose text is gone: %d' % (len(faults), pool, len(missing)))
        return 0
    os.makedirs(BUILD, exist_ok=True)
    done = {}
    if os.path.exists(asked.out):
        for line in open(asked.out):
            if '\t' in line:
                verdict, name = line.rstrip('\n').split('\t')[:2]
                done[name] = verdict
    log = open(asked.out, 'a')
    bench = None
    counts = dict(caught=0, survived=0, equal=0, same=0, refused=0)
    for fault in faults:
        verdict, by = done.get(fault.name), ''
        if fault.name.split(' ')[0] in equal:
            verdict, by = 'equal', equal[fault.name.split(' ')[0]]
        elif verdict is None:
            bench = bench or Bench(any(f.path != 'amp.h' or on_device(texts['amp.h'], f.start) for f in faults))
            said = bench.build(fault, texts[fault.path])
            if said is not None:
                verdict, by = 'refused', why(said)
            else:
                verdict, by = bench.notice(fault, texts[fault.path], asked.quick)
            log.write('%s\t%s\t%s\n' % (verdict, fault.name, by or ''))
            log.flush()
        counts[verdict] += 1
        word = 'SURVIVED' if verdict == 'survived' else verdict
        print('%-9s %s:%d %s%s' % (word, fault.path, fault.line, fault.name, '  <- ' + by if by else ''), flush=True)
    for line in missing:
        print('STALE     ' + line)
    print(', '.join('%d %s' % (n, verdict) for verdict, n in counts.items()))
    return 1 if counts['survived'] or missing else 0


if __name__ == '__main__':
    sys.exit(main())
