"""page.py BROWSER PAGE.html [--shots FOLDER] [PICTURE.svg ...]    The page of `make run` in a real browser (Chromium, headless), over its debugging pipe.

Nothing on the console; nothing cut at 360 pixels; contrast of all text at least 4.5 (WCAG AA), light and dark; all that can be operated has a
name and can be reached by keyboard; the parts that move say what the page's tables say; without JavaScript they are hidden and the rest is
there; one printed page is not wider than paper. Of each PICTURE, alone: its labels, as of the page's pictures. --shots: also pictures of it, to look at. Last line: N passed, N failed, N skipped. Exit status 3:
the browser did not answer for 90 seconds, which is no fault of the page.
"""
import base64
import json
import os
import select
import subprocess
import sys
import tempfile

counts = {True: 0, False: 0}


def check(holds, what):
    counts[bool(holds)] += 1
    if not holds:
        print('FAIL', what)


class Browser:
    """A tab of a browser, by the messages of its debugging pipe: JSON, each ended by a zero byte."""

    def __init__(self, program, folder):
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()
        words = [program, '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-extensions', '--disable-background-networking',
                 '--force-color-profile=srgb', '--hide-scrollbars', '--remote-debugging-pipe', '--user-data-dir=' + folder, 'about:blank']
        self.process = subprocess.Popen(['sh', '-c', 'exec "$@" 3<&%d 4>&%d' % (to_read, to_write), 'sh'] + words,
                                        pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session, self.events = b'', 0, None, []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'DOM', 'Accessibility'):
            self.call(domain + '.enable')

    def message(self):
        while b'\0' not in self.rest:
            if not select.select([self.of], [], [], 90)[0]:
                self.process.kill()
                print('the browser does not answer')
                raise SystemExit(3)
            more = os.read(self.of, 1 << 16)
            if not more:
                raise SystemExit('the browser has ended')
            self.rest += more
        text, self.rest = self.rest.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        out = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            out['sessionId'] = self.session
        os.write(self.to, json.dumps(out).encode() + b'\0')
        while True:
            m = self.message()
            if m.get('id') == self.number:
                if 'error' in m:
                    raise SystemExit('%s: %s' % (method, m['error']['message']))
                return m['result']
            self.events.append(m)

    def open(self, url, width, dark=False, script=True, media='screen'):
        self.events = []
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        self.call('Emulation.setEmulatedMedia', media=media, features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.call('Emulation.setScriptExecutionDisabled', value=not script)
        self.call('Page.navigate', url=url)
        while not any(m.get('method') == 'Page.loadEventFired' for m in self.events):
            self.events.append(self.message())

    def value(self, expression):
        r = self.call('Runtime.evaluate', expression=expression, returnByValue=True)
        if 'exceptionDetails' in r:
            raise SystemExit('%s: %s' % (expression[:80], r['exceptionDetails']['exception'].get('description', '')))
        return r['result'].get('value')

    def complaints(self):
        said = [m for m in self.events if m.get('method') in ('Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded')]
        return [json.dumps(m['params'])[:300] for m in said]

    def key(self, key, code):
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code, text='\r' if key == 'Enter' and kind == 'keyDown' else '')

    def shot(self, path, whole=True):
        size = self.call('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True, **({'clip': clip} if whole else {}))['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data))

    def end(self):
        self.session = None
        self.call('Browser.close')
        self.process.wait(20)


# Text whose contrast with what is painted under it is below 4.5, or 3 if it is large. Colours are composed over all backgrounds above the text;
# in a picture the rectangle that was painted last under the text's middle counts.
CONTRAST = r"""(function () {
  function rgba(s) { var m = s.match(/[\d.]+/g).map(Number); return s.startsWith('rgb') ? [m[0], m[1], m[2], m.length > 3 ? m[3] : 1] : null; }
  function over(a, b) { return [0, 1, 2].map(function (i) { return a[i] * a[3] + b[i] * (1 - a[3]); }).concat(1); }
  function light(c) { return c.slice(0, 3).map(function (v) { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); })
    .reduce(function (s, v, i) { return s + v * [.2126, .7152, .0722][i]; }, 0); }
  function ground(e) {
    var list = [], c = [255, 255, 255, 1];
    for (; e; e = e.parentElement) { var b = rgba(getComputedStyle(e).backgroundColor); if (b && b[3] > 0) list.push(b); }
    list.reverse().forEach(function (b) { c = over(b, c); });
    return c;
  }
  function under(e) {
    var svg = e.ownerSVGElement, c = ground(svg), t = e.getBoundingClientRect(), x = (t.left + t.right) / 2, y = (t.top + t.bottom) / 2;
    svg.querySelectorAll('rect').forEach(function (r) {
      if (!(r.compareDocumentPosition(e) & 4)) return;
      var b = r.getBoundingClientRect(), s = getComputedStyle(r), f = rgba(s.fill);
      if (f && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) { f[3] *= Number(s.fillOpacity); c = over(f, c); }
    });
    return c;
  }
  var bad = [], n = 0;
  var walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    var e = walk.currentNode.parentElement, s = getComputedStyle(e), text = walk.currentNode.textContent.trim();
    if (!text || !e.getClientRects().length || e.closest('script, style, title') || s.visibility === 'hidden') continue;
    var inside = e instanceof SVGElement, size = parseFloat(s.fontSize), large = !inside && (size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700);
    var front = rgba(inside ? s.fill : s.color), back = inside ? under(e) : ground(e);
    if (!front) continue;
    var a = light(over(front, back)), b = light(back), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    n++;
    if (ratio < (large ? 3 : 4.5)) bad.push(ratio.toFixed(2) + ': ' + text.slice(0, 40));
  }
  return { n: n, bad: bad };
})()"""

# Elements that stick out of the window or of their place, where that does not scroll.
WIDTH = r"""(function () {
  var out = [], root = document.documentElement;
  document.querySelectorAll('body *').forEach(function (e) {
    if (e.closest('.scroll, .skip, svg, .hist, [hidden]')) return;
    var r = e.getBoundingClientRect();
    if (r.width && (r.right > root.clientWidth + 0.5 || r.left < -0.5)) out.push(e.tagName + ' ' + e.className + ' ' + Math.round(r.right));
  });
  return { scroll: root.scrollWidth, client: root.clientWidth, out: out.slice(0, 5) };
})()"""

# What can be operated, without a name; targets below 24 pixels; duplicate ids; links to nowhere.
NAMES = r"""(function () {
  var bad = [];
  document.querySelectorAll('button, input, a[href], [role=img]').forEach(function (e) {
    var name = e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length && e.labels[0].textContent.trim());
    if (!name) bad.push('no name: ' + e.outerHTML.slice(0, 60));
  });
  document.querySelectorAll('button, input[type=text], input[type=range]').forEach(function (e) {
    var r = e.getBoundingClientRect();
    if (r.width < 24 || r.height < 24) bad.push('too small to press: ' + e.outerHTML.slice(0, 60) + Math.round(r.width) + 'x' + Math.round(r.height));
  });
  document.querySelectorAll('a[href^="#"]').forEach(function (e) { if (!document.getElementById(e.hash.slice(1))) bad.push('to nowhere: ' + e.hash); });
  return bad;
})()"""


# What scrolls sideways says so.
SIGNS = r"""(function () {
  var bad = [], n = 0;
  document.querySelectorAll('.scroll').forEach(function (e) {
    if (e.scrollWidth <= e.clientWidth) return;
    n++;
    if (!/Scrolls/.test(getComputedStyle(e, '::before').content)) bad.push(e.textContent.trim().slice(0, 40));
  });
  return { n: n, bad: bad };
})()"""

# Pictures whose labels stick out of their frame, lie on each other, or are smaller than `least` pixels.
LABELS = r"""(function (least) {
  var bad = [], n = 0, seen = 0;
  document.querySelectorAll('figure svg').forEach(function (e) {
    var frame = e.getBoundingClientRect(), boxes = [], figure = e.closest('figure').id;
    if (!frame.width) return;
    seen++;
    if (frame.left < 0 || frame.right > document.documentElement.clientWidth) bad.push(figure + ' is wider than the window');
    e.querySelectorAll('text').forEach(function (t) {
      var b = t.getBoundingClientRect(), text = t.textContent.slice(0, 40);
      var size = parseFloat(getComputedStyle(t).fontSize) * frame.width / e.viewBox.baseVal.width;
      if (!text) return;
      n++;
      if (b.left < frame.left || b.right > frame.right || b.top < frame.top || b.bottom > frame.bottom)
        bad.push(figure + ', outside: ' + text);
      if (size < least) bad.push(figure + ', ' + size.toFixed(1) + ' pixels: ' + text);
      boxes.forEach(function (o) {
        if (Math.min(b.right, o.b.right) - Math.max(b.left, o.b.left) > 2 && Math.min(b.bottom, o.b.bottom) - Math.max(b.top, o.b.top) > 6)
          bad.push(figure + ', on each other: ' + text + ' / ' + o.text);
      });
      boxes.push({ b: b, text: text });
    });
  });
  return { n: n, seen: seen, bad: bad };
})"""

# Text and pictures stand in the middle of a wide window: how far their middles are from the window's, at most.
MIDDLE = r"""Math.max.apply(null, [].map.call(document.querySelectorAll('header > *, section > *'), function (e) {
  var r = e.getBoundingClientRect();
  return r.width ? Math.abs((r.left + r.right) / 2 - document.documentElement.clientWidth / 2) : 0; }))"""


def widths_and_colours(b, url, shots):
    for width, dark in ((360, False), (360, True), (1280, False), (1280, True)):
        name = '%d pixels, %s' % (width, 'dark' if dark else 'light')
        b.open(url, width, dark)
        complaints = b.complaints()
        check(not complaints, '%s: the console says %s' % (name, complaints))
        w = b.value(WIDTH)
        check(w['client'] == width and w['scroll'] <= w['client'] and not w['out'], '%s: cut: %s' % (name, w))
        c = b.value(CONTRAST)
        check(c['n'] > 300 and not c['bad'], '%s: contrast of %d texts: %s' % (name, c['n'], c['bad'][:8]))
        if shots:
            b.shot('%s/%d_%s.png' % (shots, width, 'dark' if dark else 'light'))
        wide = b.value("[].filter.call(document.querySelectorAll('.scroll'), function (e) { return e.scrollWidth > e.clientWidth; }).length")
        check(width < 1000 or wide == 0, '%s: %d tables or pictures scroll, though there is room' % (name, wide))
        signs = b.value(SIGNS)
        check(not signs['bad'] and (signs['n'] >= 4) == (width < 500), '%s: cut without a sign: %s' % (name, signs))
        labels = b.value(LABELS + ('(11)' if width < 500 else '(9)'))
        check(labels['seen'] == 8 and labels['n'] > 150 and not labels['bad'], '%s: labels of pictures: %s' % (name, labels))
        check(b.value(MIDDLE) < 1, '%s: %s pixels beside the middle' % (name, b.value(MIDDLE)))
        names = b.value(NAMES) if not dark else []
        check(not names, '%s: %s' % (name, names[:5]))


def bits(b):
    """Every number of the table of bits: switched bit by bit in the part that moves, it is what C said."""
    rows = b.value("""[].map.call(document.querySelectorAll('tr.both'), function (r) {
        return [].map.call(r.children, function (c) { return c.textContent; }); })""")
    check(len(rows) >= 8, 'the table of bits has %d rows' % len(rows))
    for number, *columns in rows:
        for k, name in enumerate(('fp16', 'bf16')):
            code, want = columns[2 * k], columns[2 * k + 1]
            got = b.value("""(function () {
                document.querySelector('[value=%s]').click();
                var bits = document.querySelectorAll('#bits-row button');
                '%s'.split('').forEach(function (on, i) { if (bits[i].textContent !== on) bits[i].click(); });
                return get('bits-value').textContent; })()""" % (name, code.replace(' ', '')))
            check(near(got, want), '%s in %s: bits %s are %s, the table says %s' % (number, name, code, got, want))
            got = b.value("""(function () {
                get('bits-in').value = '%s'; get('bits-in').dispatchEvent(new Event('input'));
                return [].map.call(document.querySelectorAll('#bits-row button'), function (e) { return e.textContent; }).join(''); })()""" % (
                    1 / 3 if number == '1/3' else number))
            check(got == code.replace(' ', ''), 'the %s nearest to %s is %s, the table says %s' % (name, number, got, code))
    before = b.value("get('bits-value').textContent")
    b.value("get('bits-up').click()")
    check(b.value("get('bits-value').textContent") != before, 'the number after is the same number')


def near(a, b):
    x, y = (float(t.replace('Infinity', 'inf')) for t in (a, b))
    return x == y or abs(x - y) <= 1e-8 * abs(y)


def scale(b):
    """The slider at every scale of the table of fates."""
    rows = b.value("""[].map.call(document.querySelectorAll('tr[data-power]'), function (r) {
        return [Number(r.dataset.power)].concat([].map.call(r.querySelectorAll('td'), function (c) { return parseFloat(c.textContent); })); })""")
    check(len(rows) >= 10, 'the table of scales has %d rows' % len(rows))
    seen = set()
    for power, *want in rows:
        got = b.value("""(function () {
            get('scale-in').value = %d; get('scale-in').dispatchEvent(new Event('input'));
            return ['lost', 'sub', 'good', 'over'].map(function (n) { return get('scale-' + n).textContent; }); })()""" % power)
        seen.add(tuple(got))
        same = all((t[0] == "<" and w < 0.051) or (t[0] != "<" and abs(float(t[:-1]) - w) < 0.051) for t, w in zip(got, want))
        check(same, 'scale 2^%d: the slider says %s, the table %s' % (power, got, want))
    check(len(seen) > 5, 'the slider changes nothing: %s' % seen)
    b.value("get('scale-in').value = 10; get('scale-in').focus()")
    b.key('ArrowRight', 39)
    check(b.value("get('scale-in').value") == '11' and '2048' in b.value("get('scale-at').textContent").replace(',', ''), 'the arrow key does not move the slider')
    b.value("document.querySelector('[name=scale-net][value=plain]').click()")
    b.value("get('scale-in').value = 0; get('scale-in').dispatchEvent(new Event('input'))")
    plain = b.value("get('scale-good').textContent")
    b.value("document.querySelector('[name=scale-net][value=deep]').click()")
    check(plain != b.value("get('scale-good').textContent"), 'the other network has the same gradients')


def keyboard(b):
    """Tab reaches everything that can be operated, in the order of the page, and what has the focus is marked."""
    want = b.value("[].filter.call(document.querySelectorAll('a[href], button, input'), function (e) { return e.getClientRects().length; }).length")
    seen, marked, upward = 0, True, 0
    last = None
    for _ in range(3 * want):
        b.key('Tab', 9)
        at = b.value("""(function () { var e = document.activeElement; if (!e || e === document.body) return null;
            var s = getComputedStyle(e), all = [].slice.call(document.querySelectorAll('*'));
            return [all.indexOf(e), s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]; })()""")
        if at is None or (last is not None and at[0] < last):
            break
        seen, marked, last = seen + 1, marked and at[1], at[0]
    radios = 2  # a group of two is one stop
    check(seen >= want - radios, 'by keyboard %d of %d are reached' % (seen, want))
    check(marked, 'something with the focus is not marked')
    b.value("get('bits-in').value = '1'; get('bits-in').dispatchEvent(new Event('input')); document.querySelectorAll('#bits-row button')[0].focus()")
    b.key('Enter', 13)
    check(b.value("get('bits-value').textContent") in ('-1', '-1.9990234375') or b.value("get('bits-value').textContent").startswith('-'), 'Enter does not switch a bit')


def folded(b):
    """The table of the text's other numbers is folded, and a number of the text unfolds it."""
    shown = "document.getElementById('deep-interval').checkVisibility()"
    check(not b.value(shown), 'the table of other numbers is not folded')
    b.value("document.querySelector('a[href=\"#deep-interval\"]').click()")
    check(b.value(shown), 'a link into the folded table does not unfold it')


def without_script(b, url, shots):
    b.open(url, 360, script=False)
    tree = b.call('Accessibility.getFullAXTree')['nodes']
    names = ' '.join(n.get('name', {}).get('value', '') for n in tree if not n.get('ignored'))
    for text in ('drag the loss scale', 'the bits of a number'):
        check(text not in names, 'without JavaScript "%s" is shown' % text)
    for text in ('loss scale', 'bits in FP16', 'What to try next', 'build/digits --check', 'FP16 loses'):
        check(text in names, 'without JavaScript "%s" is missing' % text)
    if shots:
        b.shot(shots + '/360_no_script.png')


def on_paper(b, url, shots):
    b.open(url, 680, media='print')
    w = b.value(WIDTH)
    check(w['scroll'] <= w['client'], 'on paper: cut: %s' % w)
    wide = b.value("[].filter.call(document.querySelectorAll('.scroll'), function (e) { return e.scrollWidth > e.clientWidth + 1; }).length")
    check(wide == 0, 'on paper: %d tables or pictures are wider than the page' % wide)
    c = b.value(CONTRAST)
    check(not c['bad'], 'on paper: contrast: %s' % c['bad'][:5])
    pdf = base64.b64decode(b.call('Page.printToPDF', printBackground=False)['data'])
    check(pdf[:5] == b'%PDF-' and len(pdf) > 20000, 'the printed page has %d bytes' % len(pdf))
    if shots:
        with open(shots + '/print.pdf', 'wb') as f:
            f.write(pdf)


def alone(b, folder, pictures):
    """Files of pictures, those for a phone at 360 pixels."""
    around = os.path.join(folder, 'around.html')
    for path in pictures:
        phone = path.endswith('_phone.svg')
        with open(path, encoding='utf-8') as f, open(around, 'w', encoding='utf-8') as to:
            to.write('<meta charset="utf-8"><meta name="viewport" content="width=device-width"><body style="margin: 8px"><figure style="margin: 0">%s</figure>' % f.read())
        b.open('file://' + around, 360 if phone else 1100)
        labels = b.value(LABELS + ('(11)' if phone else '(9)'))
        check(labels['n'] > 5 and not labels['bad'], '%s: %s' % (path, labels))


def main():
    program, page = sys.argv[1:3]
    shots = sys.argv[4] if sys.argv[3:4] == ['--shots'] else None
    pictures = [word for word in sys.argv[3:] if word.endswith('.svg')]
    url = 'file://' + os.path.abspath(page)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(program, folder)
        widths_and_colours(b, url, shots)
        b.open(url, 1000)
        keyboard(b)
        folded(b)
        bits(b)
        scale(b)
        check(not b.complaints(), 'the console says %s' % b.complaints())
        without_script(b, url, shots)
        on_paper(b, url, shots)
        alone(b, folder, pictures)
        b.end()
    print('%d passed, %d failed, 0 skipped' % (counts[True], counts[False]))
    return counts[False] > 0


if __name__ == '__main__':
    sys.exit(main())
