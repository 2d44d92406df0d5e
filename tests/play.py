"""play.py BROWSER PAGE.html DIGITS PLAY    What `make play` promises, in a real browser (Chromium, headless), from file://.

Nothing on the console and nothing cut at 360 and 1280 pixels, light and dark; it trains; the bits of the weights are those of DIGITS and PLAY,
native builds of examples/digits.c and play.c; a page whose bits are others says so; it can be stopped; all is reached by keyboard. --shots FOLDER
as last words: also pictures of it, to look at. Last line: N passed, N failed, N skipped. Exit status 3: the browser did not answer."""
import os
import re
import subprocess
import sys
import tempfile
import time

from page import CONTRAST, NAMES, WIDTH, Browser, check, counts

KINDS = ((360, False), (360, True), (1280, False), (1280, True))


def ready(b):
    """The choices come from the program, by a worker."""
    return until(b, "document.getElementById('train').disabled === false", 60)


def until(b, expression, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if b.value(expression):
            return True
        time.sleep(0.2)
    return False


def choose(b, **choices):
    for name, value in choices.items():
        if name == 'net':
            b.value("document.querySelector('[name=net][value=\"%s\"]').click()" % value)
        else:
            b.value("(function (e) { e.value = '%s'; e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })"
                    "(document.getElementById('%s'))" % (value, name))


def trained(b):
    """Presses Train by keyboard; the hash after the last step."""
    b.value("document.getElementById('train').focus()")
    b.key('Enter', 13)
    check(until(b, "/^[0-9a-f]{16}$/.test(document.getElementById('hash').textContent)", 300), 'a run does not end: %s' % said(b, 'said'))
    return said(b, 'hash')


def said(b, name):
    return b.value("document.getElementById('%s').textContent" % name)


def native(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def looks(b, when, width, dark):
    name = '%s, %d pixels, %s' % (when, width, 'dark' if dark else 'light')
    w = b.value(WIDTH)
    check(w['client'] == width and w['scroll'] <= w['client'] and not w['out'], '%s: cut: %s' % (name, w))
    c = b.value(CONTRAST)
    check(c['n'] > 50 and not c['bad'], '%s: contrast of %d texts: %s' % (name, c['n'], c['bad'][:8]))
    names = b.value(NAMES)
    check(not names, '%s: %s' % (name, names[:5]))
    check(not b.complaints(), '%s: the console says %s' % (name, b.complaints()))


def modes(b, digits, folder):
    """Two modes of digits: its bits, and the page knows that they are."""
    for net, number, mode in (('deep', 1, 'amp-dynamic'), ('plain', 0, 'fp16-pure')):
        choose(b, net=number, mode=mode)
        out = native(digits, '--ordered', '--net', net, '--mode', mode, '--out', folder)
        want = re.search(r'seed 1: ([0-9a-f]{16})$', out, re.M).group(1)
        got = trained(b)
        check(got == want, '%s, %s: the weights are %s in the browser, %s here' % (net, mode, got, want))
        check('the same bits' in said(b, 'same') and 'differs' not in b.value("document.getElementById('same').className"),
              '%s, %s: the page does not say that the bits are the same: %s' % (net, mode, said(b, 'same')))
        steps, last = int(said(b, 'now-step')), int(said(b, 'now-steps').split()[1])
        check(steps == last > 100, '%s: it ends after step %d of %d' % (net, steps, last))
        drawn = b.value("['loss', 'scale', 'lost'].map(function (n) { return document.querySelector('#chart-' + n + ' path:last-child').getAttribute('d').length; })")
        check(min(drawn) > 300, '%s, %s: a picture is empty: %s' % (net, mode, drawn))
        bars = b.value("[].filter.call(document.querySelectorAll('#hist i'), function (e) { return parseFloat(e.style.height) > 1; }).length")
        check(bars > 5, '%s, %s: the histogram has %d bars' % (net, mode, bars))
    check(float(said(b, 'now-updates').split('\u202f')[0]) > 50, 'FP16 without masters loses only %s of its updates' % said(b, 'now-updates'))
    check(b.value("document.getElementById('runs').children.length") == 2, 'the table has not both runs')


def own(b, play):
    """Choices that no mode of digits has: the command that the page shows gives the same bits."""
    choose(b, net=1, format=2, masters=0, scaling=1, scale=12, lr=7)
    got = trained(b)
    words = re.search(r'&& build/play (.*)$', said(b, 'command'))
    check(words and words.group(1) == 'deep bf16 none static 12 0.002 1', 'the page shows the command %s' % said(b, 'command'))
    want = native(play, *words.group(1).split()).split()[1].rstrip(',')
    check(got == want, '%s: the weights are %s in the browser, %s here' % (words.group(1), got, want))
    check('no other hash' in said(b, 'same'), 'of choices of my own the page says %s' % said(b, 'same'))


def stops(b):
    choose(b, net=0, mode='bf16')
    b.value("document.getElementById('train').click()")
    check(until(b, "document.getElementById('now-steps').textContent === 'of 5016 steps' && Number(document.getElementById('now-step').textContent) < 5016", 60), 'it does not train')
    b.value("document.getElementById('stop').click()")
    at = said(b, 'now-step')
    time.sleep(0.5)
    check(said(b, 'now-step') == at and said(b, 'said') == 'Stopped.' and ready(b), 'it does not stop')


def keyboard(b):
    want = b.value("[].filter.call(document.querySelectorAll('a[href], button, input, select'), function (e) { return e.getClientRects().length && !e.disabled; }).length")
    b.value("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(3 * want):
        b.key('Tab', 9)
        seen.add(b.value("""(function () { var e = document.activeElement, s = getComputedStyle(e);
            return e === document.body ? '' : (e.id || e.name || e.className) + (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 ? '' : ' unmarked'); })()"""))
    seen.discard('')
    check(len(seen) >= want - 1, 'by keyboard %d of %d are reached: %s' % (len(seen), want, sorted(seen)))  # two radio buttons are one stop
    check(not [s for s in seen if s.endswith('unmarked')], 'the focus is not marked: %s' % sorted(seen))


def other_bits(b, page, folder):
    """A page that was told other bits says that they differ."""
    with open(page, encoding='utf-8') as f:
        text = f.read()
    planted = re.sub(r'("amp-dynamic": ")[0-9a-f]', r'\1x', text)
    check(planted != text, 'the page has no hash to change')
    other = os.path.join(folder, 'other.html')
    with open(other, 'w', encoding='utf-8') as f:
        f.write(planted)
    b.open('file://' + other, 1280)
    ready(b)
    choose(b, net=1, mode='amp-dynamic')
    trained(b)
    check('these bits differ' in said(b, 'same') and said(b, 'same').count('x') > 0, 'other bits are not noticed: %s' % said(b, 'same'))


def main():
    program, page, digits, play = sys.argv[1:5]
    shots = sys.argv[6] if sys.argv[5:6] == ['--shots'] else None
    url = 'file://' + os.path.abspath(page)
    check(os.path.getsize(page) <= 1 << 20, 'the page has %d bytes' % os.path.getsize(page))
    with open(page, encoding='utf-8') as f:
        check(not re.search(r'(?:src|href)="(?!#)|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)', f.read()), 'the page asks for something from elsewhere')
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(program, os.path.join(folder, 'home'))
        for width, dark in KINDS:
            b.open(url, width, dark)
            check(ready(b), 'at %d pixels it does not start: %s' % (width, said(b, 'said')))
            looks(b, 'before a run', width, dark)
            if (width, dark) == (1280, False):
                keyboard(b)
        modes(b, digits, folder)
        looks(b, 'after two runs', width, dark)
        if shots:
            b.shot(shots + '/1280_dark.png')
        b.open(url, 360)
        ready(b)
        own(b, play)
        looks(b, 'after a run', 360, False)
        if shots:
            b.shot(shots + '/360_light.png')
        stops(b)
        other_bits(b, page, folder)
        b.end()
    print('%d passed, %d failed, 0 skipped' % (counts[True], counts[False]))
    return counts[False] > 0


if __name__ == '__main__':
    sys.exit(main())
