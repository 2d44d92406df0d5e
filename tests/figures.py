"""figures.py BROWSER PAGE.html FIGURES    What `make figures` promises, in a real browser (Chromium, headless), from file://.

Nothing on the console and nothing cut at 360 and 1280 pixels, light and dark; each figure says what FIGURES, a native build of
examples/figures.c, says of the same choices, with the same hash of all its numbers; what is drawn are these numbers; sliders, keys and the mouse
move them; what is no number is refused; all is reached by keyboard. --shots FOLDER as last words: also pictures of it, to look at. Last line:
N passed, N failed, N skipped. Exit status 3: the browser did not answer."""
import os
import re
import subprocess
import sys
import tempfile

from page import Browser, check, counts
from play import KINDS, keyboard, looks, until

NAMES = ('half', 'sums', 'autocast', 'scale', 'scaler', 'masters')

# Choices of a figure by their place, and what its sentence or its drawing must say: from the labs' pages.
KNOWN = (
    ('half', {1: '2049'}, 'The one whose last bit is 0 is 2048'),
    ('half', {1: '2051'}, 'The one whose last bit is 0 is 2052'),
    ('half', {1: '65519'}, 'The nearer one is 65504'),
    ('half', {1: '65520'}, 'it becomes Inf'),
    ('half', {1: '-2.98e-8'}, 'it becomes -0'),
    ('half', {1: '2.99e-8'}, 'The nearer one is 5.96046448e-08'),
    ('half', {0: 'e4m3', 1: '465'}, 'it becomes NaN'),
    ('half', {0: 'e5m2', 1: '0.3'}, 'The nearer one is 0.3125'),
    ('half', {0: 'bf16', 1: '0.1'}, 'between 0.0996'),
    ('sums', {}, 'it stands still after 2048 of 4096'),
    ('sums', {0: 'bf16'}, 'it stands still after 256 of 4096'),
    ('sums', {0: 'f16', 2: '0.01', 3: '8192', 4: '5000'}, 'In order: 32,'),
    ('sums', {1: 'falling', 2: '1'}, 'it stands still after 512 of 8192'),
    ('sums', {1: 'rising'}, 'In order: 9.796875'),
    ('sums', {1: 'random', 3: '1024', 4: '700'}, 'In pairs'),
    ('sums', {1: 'same', 2: '1000', 3: '8192'}, 'In order: Inf'),
    ('sums', {2: '1', 4: '5'}, 'In order: 2048'),
    ('autocast', {}, 'gelu gives f16, linear gives f16, add gives f32'),
    ('autocast', {1: 'f16', 3: 'matmul', 4: 'softmax'}, 'matmul gives f16, softmax gives f32'),
    ('autocast', {0: 'bf16'}, 'Refused: amp_autocast_input: add has'),
    ('autocast', {0: 'off', 1: 'f32'}, 'matmul gives f32'),
    ('scale', {4: '0'}, '0 keep all bits'),
    ('scale', {4: '20'}, '2^20'),
    ('scale', {3: 'outlier', 2: '12'}, 'amp suggests the scale 2^10'),
    ('scale', {0: 'bf16', 4: '0'}, '4096 keep all bits'),
    ('scaler', {}, 'Step 1: 0.0668567 times 2^24 is Inf in FP16'),
    ('scaler', {0: '40', 2: '8', 3: '2', 5: '121'}, 'steps are skipped'),
    ('scaler', {3: '60', 4: '3', 5: '200'}, 'of 60.'),
    ('masters', {}, '1000 of 1000 updates are lost: the weight ends at 0.600097656'),
    ('masters', {1: '0.5'}, 'Without a master 0 of 1000'),
    ('masters', {0: 'bf16', 1: '1', 2: '0.003', 3: '-0.4'}, 'BF16 copy'),
    ('masters', {0: 'f16', 2: '0.1', 3: '1000'}, 'the weight ends at -Inf'),
)
SUPERSCRIPTS = str.maketrans('\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079', '-0123456789')


def ready(b):
    return until(b, "document.body.dataset.ready === 'yes'", 60)


def said(b, name):
    text = b.value("document.querySelector('#%s .said').textContent" % name)
    return re.sub('[\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+', lambda m: '^' + m.group(0).translate(SUPERSCRIPTS), text)


def choose(b, name, choices):
    for place, value in choices.items():
        b.value("(function (e) { e.value = '%s'; e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })"
                "(document.querySelectorAll('#%s [data-word]')[%d])" % (value, name, place))


def same(b, program, name, what):
    """The figure's sentence and hash are those of the command that it shows."""
    words = b.value("document.querySelector('#%s .command code').textContent" % name).split()
    check(words[:2] == ['build/figures', str(1 + NAMES.index(name))], '%s: the command is %s' % (what, words))
    out = subprocess.run([program] + words[1:], capture_output=True, text=True)
    lines = out.stdout.splitlines() or ['', out.stderr]
    native = ' '.join(line.strip() for line in lines[:-1])[2:]
    shown, number = said(b, name), b.value("document.querySelector('#%s .hash').textContent" % name)
    check(shown == native, '%s: the page says "%s", the program "%s"' % (what, shown, native))
    check(re.fullmatch('[0-9a-f]{16}', number) and number == lines[-1], '%s: hash %s on the page, %s here' % (what, number, lines[-1]))
    return shown


def known(b, program):
    for name, choices, want in KNOWN:
        choose(b, name, choices)
        what = '%s, %s' % (name, choices)
        check(want in same(b, program, name, what), '%s: no "%s" in "%s"' % (what, want, said(b, name)))


def drawn(b):
    """What is drawn are the numbers, where a drawing says more than the sentence."""
    choose(b, 'half', {0: 'f16', 1: '2049'})
    rows = b.value("[].map.call(document.querySelectorAll('#half-bits dd'), function (e) { return [].map.call(e.querySelectorAll('i'), function (i) { return i.textContent; }).join(' '); })")
    check(rows[0] == '0 10001010 0000000000 1000000000000' and rows[1] == '0 11010 0000000000', 'the bits of 2049 are %s' % rows)
    labels = b.value("[].map.call(document.querySelectorAll('#half svg text'), function (e) { return e.textContent; })")
    check([t for t in labels if t in ('2048', '2050', '2052', 'x = 2049')] == ['2048', '2050', '2052', 'x = 2049'], 'the line says %s' % labels)
    choose(b, 'half', {1: '65520'})
    check(b.value("document.querySelectorAll('#half svg .missing').length") == 1, 'the number after 65504 is drawn as if it were there')
    choose(b, 'autocast', {0: 'f16', 1: 'f32', 2: 'layer_norm', 3: 'linear', 4: 'gelu', 5: 'linear', 6: 'add'})
    chain = b.value("[].map.call(document.querySelectorAll('#chain .out b'), function (e) { return e.textContent; })")
    check(chain == ['f32', 'f16', 'f16', 'f16', 'f32'], 'the chain is %s' % chain)
    choose(b, 'scale', {0: 'f16', 1: '-26', 2: '5', 3: 'even', 4: '0'})
    fates = b.value("[].map.call(document.querySelectorAll('#scale .fates b'), function (e) { return Number(e.textContent.replace(',', '')); })")
    check(sum(fates) == 4096 and said(b, 'scale').startswith('Of 4096 gradients times 2^0, FP16 makes %d zero and %d subnormal' % tuple(fates[:2])), 'the fates are %s' % fates)
    bars = b.value("['lost', 'sub', 'good', 'over'].map(function (f) { return document.querySelectorAll('#scale .bar-' + f).length; })")
    check(bars[0] > 5 and bars[1] > 5 and bars[2] == 0 and bars[3] == 0, 'bars by fate: %s' % bars)
    b.value("document.getElementById('scale-suggest').click()")
    check('times 2^32, FP16 makes 0 zero' in said(b, 'scale'), 'with the suggested scale it says %s' % said(b, 'scale'))
    choose(b, 'scaler', {0: '24', 1: '0', 2: '3', 3: '20', 4: '1', 5: '1'})
    crosses = b.value("document.querySelectorAll('#scaler .skip-mark').length")
    check(said(b, 'scaler').startswith('%d of 200 steps' % crosses), '%d crosses; it says %s' % (crosses, said(b, 'scaler')))
    choose(b, 'masters', {1: '0.6', 2: '0.001', 3: '0.2'})
    curves = b.value("['sums', 'scaler', 'masters'].map(function (n) { return [].map.call(document.querySelectorAll('#' + n + ' polyline'), function (p) { return p.points.length; }); })")
    check(curves == [[257] * 4, [402, 400], [65] * 3], 'points of the curves: %s' % curves)


def moved(b, program):
    """By slider, by a key, by the mouse: each gives another number, and the program's bits for it."""
    choose(b, 'half', {0: 'f16', 1: '2049'})
    number = "document.querySelectorAll('#half [data-word]')[1].value"
    b.value("document.getElementById('half-move').focus()")
    b.key('ArrowRight', 39)
    check(b.value(number) == '2049.03125', 'a key moves 2049 to %s' % b.value(number))
    check('The nearer one is 2050' in same(b, program, 'half', 'after a key'), 'after a key it says %s' % said(b, 'half'))
    b.value("document.querySelector('#half svg').scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = b.value("(function () { var r = document.querySelector('#half svg').getBoundingClientRect(); return [r.left, r.top, r.width]; })()")
    for kind, share in (('mousePressed', 0.3), ('mouseMoved', 0.8), ('mouseReleased', 0.8)):
        b.call('Input.dispatchMouseEvent', type=kind, x=box[0] + share * box[2], y=box[1] + 78, button='left', buttons=0 if kind == 'mouseReleased' else 1, clickCount=1)
    check(2051 < float(b.value(number)) < 2052, 'the mouse moves it to %s' % b.value(number))
    same(b, program, 'half', 'after the mouse')
    choose(b, 'half', {1: 'x'})
    check(said(b, 'half') == 'A number from -3.4e+38 to 3.4e+38, please.', 'of x it says %s' % said(b, 'half'))
    choose(b, 'sums', {2: '0'})
    check(said(b, 'sums').startswith('A number from'), 'of a sum of 0 it says %s' % said(b, 'sums'))
    choose(b, 'half', {1: '0.1'})
    choose(b, 'sums', {2: '1'})


def main():
    program, page, native = sys.argv[1:4]
    shots = sys.argv[5] if sys.argv[4:5] == ['--shots'] else None
    url, native = 'file://' + os.path.abspath(page), os.path.abspath(native)
    check(os.path.getsize(page) <= 1 << 20, 'the page has %d bytes' % os.path.getsize(page))
    with open(page, encoding='utf-8') as f:
        check(not re.search(r'(?:src|href)="(?!#)|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)', f.read()), 'the page asks for something from elsewhere')
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(program, os.path.join(folder, 'home'))
        for width, dark in KINDS:
            b.open(url, width, dark)
            check(ready(b), 'at %d pixels it does not start: %s' % (width, b.value("document.getElementById('failed').textContent")))
            if width == 1280 and not dark:
                keyboard(b)
                known(b, native)
                drawn(b)
                moved(b, native)
            looks(b, 'figures', width, dark)
            if shots:
                b.shot('%s/figures_%d_%s.png' % (shots, width, 'dark' if dark else 'light'))
        b.call('Emulation.setDeviceMetricsOverride', width=360, height=800, deviceScaleFactor=1, mobile=True)  # a window that gets narrow
        until(b, "document.querySelector('#half svg').getAttribute('data-width') < 360", 10)
        looks(b, 'figures, after they got narrow', 360, True)
        b.end()
    print('%d passed, %d failed, 0 skipped' % (counts[True], counts[False]))
    return counts[False] > 0


if __name__ == '__main__':
    sys.exit(main())
