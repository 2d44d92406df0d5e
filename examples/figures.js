// figures.js - the page of `make figures`: figures.c computes, in WebAssembly, and this draws. One function for each picture.
'use strict';
(function () {
  var c, sections = [].slice.call(document.querySelectorAll('[data-figure]'));
  function get(id) { return document.getElementById(id); }
  function make(parent, tag, name, text) {
    var e = document.createElement(tag);
    if (name) e.className = name;
    if (text !== undefined) e.textContent = text;
    return parent.appendChild(e);
  }
  function power(e) {
    return '2' + String(e).replace('-', '\u207b').replace(/\d/g, function (d) { return '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'[d]; });
  }
  function short(x) { return x !== x ? 'NaN' : isFinite(x) ? String(Number(x.toPrecision(6))) : x < 0 ? '-Inf' : 'Inf'; }

  // ---- the program ----
  function text(at) { // a C string
    var bytes = new Uint8Array(c.memory.buffer), end = at;
    while (bytes[end]) end++;
    return new TextDecoder().decode(bytes.slice(at, end));
  }
  // What the program asks of a system: an end, which comes only if a verb of amp fails. The rest: there is no such function.
  var system = new Proxy({}, { get: function (_, name) {
    return function () {
      if (name === 'proc_exit') throw new Error('the program ended');
      return 52;
    };
  } });
  // The choices of a figure: numbers for the program, words for the command.
  function choices(section) {
    var list = [].map.call(section.querySelectorAll('[data-word]'), function (e) {
      var number = Number(e.value);
      if (e.tagName === 'SELECT' && !isFinite(number)) return { number: e.selectedIndex, word: e.value };
      return { number: number, word: e.value.trim() };
    });
    if (section.id === 'half') list.push({ number: near, word: String(near) });
    return list;
  }
  function compute(n, numbers) {
    new Float64Array(c.memory.buffer, c.figures_words(), 8).set(numbers);
    var sentence = text(c.figures_draw(n));
    return { sentence: sentence, now: new Float64Array(c.memory.buffer.slice(c.figures_now(), c.figures_now() + 8 * 2048)), hash: text(c.figures_hash()) };
  }

  // ---- pictures ----
  function svg(parent, tag, attributes, words) {
    var e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    Object.keys(attributes).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    if (words !== undefined) e.textContent = words;
    return parent.appendChild(e);
  }
  function canvas(place, height, label) { // as wide as its place, so that text has one size everywhere
    var width = Math.max(240, Math.floor(place.clientWidth));
    place.textContent = '';
    return svg(place, 'svg', { viewBox: '0 0 ' + width + ' ' + height, height: height, role: 'img', 'aria-label': label, 'data-width': width });
  }
  // A stretch of numbers: points are [value, words below, is it there?]; middles lie between them, up says where each goes. From x an arrow to the result.
  function line(place, label, points, up, x, result, words) {
    var e = canvas(place, 150, label), width = Number(e.getAttribute('data-width')), left = 44, right = width - 44, y = 78;
    var first = points[0][0], last = points[points.length - 1][0];
    function at(v) { return left + (right - left) * (Math.min(Math.max(v, first), last) - first) / (last - first); }
    function put(px, py, words, name) { // in the middle above or below px, and inside the picture
      var t = svg(e, 'text', { y: py, 'class': name }, words), long = t.getComputedTextLength();
      t.setAttribute('x', Math.min(Math.max(px - long / 2, 1), width - 1 - long));
    }
    points.forEach(function (p, i) {
      var from = i ? at((points[i - 1][0] + p[0]) / 2) : left - 30, to = i < points.length - 1 ? at((points[i + 1][0] + p[0]) / 2) : right + 30;
      svg(e, 'rect', { 'class': 'zone-' + i % 2, x: from, y: y - 16, width: to - from, height: 32 });
    });
    up.forEach(function (u, i) {
      var middle = (points[i][0] + points[i + 1][0]) / 2, px = at(middle);
      svg(e, 'line', { 'class': 'middle', x1: px, x2: px, y1: y - 22, y2: y + 22 });
      svg(e, 'path', { 'class': 'arrow', d: 'M' + px + ' ' + (y + 24) + 'h' + (u ? 9 : -9) + 'm' + (u ? -4 : 4) + ' -3l' + (u ? 4 : -4) + ' 3l' + (u ? -4 : 4) + ' 3' });
    });
    svg(e, 'line', { 'class': 'axis-line', x1: left - 30, x2: right + 30, y1: y, y2: y });
    points.forEach(function (p) {
      svg(e, 'circle', { 'class': p[2] ? 'number' : 'missing', cx: at(p[0]), cy: y, r: 6 });
      put(at(p[0]), y + 44, short(p[0]), 'strong');
      put(at(p[0]), y + 61, p[1], 'soft');
    });
    var px = at(x), to = at(result), off = x > last ? ' \u2192' : '';
    svg(e, 'path', { 'class': 'arrow', d: 'M' + px + ' ' + (y - 2) + 'V' + (y - 44) });
    svg(e, 'circle', { 'class': 'head', cx: px, cy: y, r: 3.5 });
    put(px, y - 62, words + off, 'strong');
    if (Math.abs(to - px) > 3) {
      svg(e, 'path', { 'class': 'arrow', d: 'M' + px + ' ' + (y - 44) + 'Q' + to + ' ' + (y - 56) + ' ' + to + ' ' + (y - 12) });
      svg(e, 'path', { 'class': 'head', d: 'M' + to + ' ' + (y - 7) + 'l-5 -9h10z', style: 'fill: var(--ink)' });
    }
    return { svg: e, value: function (clientX) {
      var box = e.getBoundingClientRect(), px = (clientX - box.left) * width / box.width;
      return Math.min(Math.max((px - left) / (right - left), 0), 1);
    } };
  }
  // Curves: [class, [[x, y], ...]] in a frame from x 0 to most, from low to high; ticks [value, words].
  function frame(place, label, height, most, words, low, high, ticks, curves) {
    var e = canvas(place, height, label), width = Number(e.getAttribute('data-width')), left = 56, right = width - 10, top = 10, bottom = height - 26;
    function x(v) { return left + (right - left) * v / most; }
    function y(v) { return bottom - (bottom - top) * (Math.min(Math.max(v, low), high) - low) / (high - low); }
    ticks.forEach(function (t) {
      svg(e, 'line', { 'class': 'grid', x1: left, x2: right, y1: y(t[0]), y2: y(t[0]) });
      svg(e, 'text', { 'class': 'soft', x: left - 6, y: y(t[0]) + 4, 'text-anchor': 'end' }, t[1]);
    });
    svg(e, 'text', { 'class': 'soft', x: left, y: height - 6 }, '0');
    svg(e, 'text', { 'class': 'soft', x: right, y: height - 6, 'text-anchor': 'end' }, words);
    curves.forEach(function (k) {
      var finite = k[1].filter(function (p) { return isFinite(p[1]); });
      var points = finite.map(function (p) { return x(p[0]).toFixed(1) + ',' + y(p[1]).toFixed(1); });
      svg(e, 'polyline', { 'class': k[0], points: points.join(' ') });
    });
    return { svg: e, x: x, y: y, top: top, bottom: bottom };
  }
  function ticks(low, high) { // about five round numbers
    var rough = (high - low) / 5, ten = Math.pow(10, Math.floor(Math.log10(rough))), step = ten * [1, 2, 5, 10].find(function (m) { return rough / ten <= m; }), list = [], k;
    for (k = Math.ceil(low / step); k * step <= high; k++)
      list.push([k * step, short(k * step)]);
    return list;
  }

  // ---- 1 ----
  var near = 2049, ROUND = { X: 0, RESULT: 1, X_BITS: 2, BITS: 3, KIND: 4, FIRST: 5, LINE: 6, UP: 11 };
  var LAYOUT = [[5, 10, 15], [8, 7, 127], [4, 3, 7], [5, 2, 15]]; // exponent, fraction, bias
  function bits(value, count) { return ('0'.repeat(count) + Math.floor(value).toString(2)).slice(-count); }
  function pattern(list, label, parts) {
    make(list, 'dt', '', label);
    var dd = make(list, 'dd');
    parts.forEach(function (p) { if (p[1]) make(dd, 'i', 'p-' + p[0], p[1]); });
    return dd;
  }
  function drawHalf(section, r) {
    var now = r.now, l = LAYOUT[r.numbers[0]], points = [0, 1, 2].map(function (i) {
      var v = now[ROUND.LINE + 2 * i], there = bits(now[ROUND.FIRST] + i, 1 + l[0] + l[1]), over = i === 2 && beyond(now, l);
      return [v, over ? 'is not there' : '\u2026' + there.slice(-3), !over];
    });
    var size = Math.abs(now[ROUND.X]), minus = now[ROUND.X] < 0;
    var drawn = line(section.querySelector('.drawing'), 'The number between its neighbours', points, [now[ROUND.UP], now[ROUND.UP + 1]], size, Math.abs(now[ROUND.RESULT]),
      (minus ? 'size of x: ' : 'x = ') + Number(size.toPrecision(9)));
    drawn.svg.style.cursor = 'ew-resize';
    drawn.svg.onpointerdown = drawn.svg.onpointermove = function (m) {
      if (!m.buttons) return;
      moved(Math.round(128 * drawn.value(m.clientX)));
    };
    var list = get('half-bits'), x = bits(now[ROUND.X_BITS], 32), h = bits(now[ROUND.BITS], 1 + l[0] + l[1]), below = 1 - l[2] - (parseInt(x.slice(1, 9), 2) - 127);
    var kept = Math.max(0, Math.min(l[1], l[1] - Math.max(0, below))), rest = x.slice(9 + kept);
    list.textContent = '';
    pattern(list, 'FP32', [['sign', x[0]], ['exponent', x.slice(1, 9)], ['fraction', x.slice(9, 9 + kept)], ['cut', rest]]);
    pattern(list, section.querySelector('select').selectedOptions[0].textContent, [['sign', h[0]], ['exponent', h.slice(1, 1 + l[0])], ['fraction', h.slice(1 + l[0])]]);
    make(list, 'dt', 'small', '');
    make(list, 'dd', 'small', 'Sign, exponent, fraction; what is dotted is cut off. For a number in the middle that is a 1 and then only 0s.' + (below > 0 && size > 0 ? ' This one is subnormal here, and keeps fewer bits.' : ''));
  }
  function beyond(now, l) { return now[ROUND.FIRST] + 2 > Math.pow(2, l[0] + l[1]) - Math.pow(2, l[1]) - 1 + (l[0] === 4 ? 7 : 0); }
  function moved(position) { // 0 to 128, over the three neighbours
    var section = get('half'), input = section.querySelectorAll('[data-word]')[1], now = section.result.now, a = now[ROUND.LINE], b = now[ROUND.LINE + 4];
    get('half-move').value = position;
    input.value = String((now[ROUND.X] < 0 ? -1 : 1) * (a + (b - a) * position / 128));
    update(section);
  }
  function typed() { // the picture moves to the number
    var input = get('half').querySelectorAll('[data-word]')[1], v = Number(input.value);
    if (input.value.trim() && Math.abs(v) <= 3.4e38) near = v;
    if (!update(get('half'))) return;
    var now = get('half').result.now, a = now[ROUND.LINE], b = now[ROUND.LINE + 4];
    get('half-move').value = Math.round(128 * (Math.abs(v) - a) / (b - a));
  }

  // ---- 2 ----
  var SUM = { EXACT: 0, ORDER: 1, PAIRS: 2, KAHAN: 3, BEFORE: 6, NUMBER: 7, BETWEEN: 8, BELOW: 9, ABOVE: 10, AFTER: 11, CURVES: 12 };
  function drawSums(section, r) {
    var now = r.now, n = r.numbers[3], at = r.numbers[4], most = 1.06 * Math.max.apply(null, [now[0], now[1], now[2], now[3]].filter(isFinite));
    function curve(k) { return Array.from({ length: 257 }, function (_, i) { return [n * i / 256, now[SUM.CURVES + 5 * i + k]]; }); }
    [].forEach.call(section.querySelectorAll('.keys b'), function (b, k) {
      var v = now[[SUM.ORDER, SUM.PAIRS, SUM.KAHAN, SUM.EXACT][k]], off = Math.abs(v - now[SUM.EXACT]);
      b.textContent = short(v) + (off > 0 && isFinite(v) ? ', off by ' + (off < 10 ? Number(off.toPrecision(2)) : Math.round(off)) : '');
    });
    var f = frame(section.querySelector('.drawing'), 'The sum as numbers are added, in four ways', 250, n, n + ' numbers', 0, most, ticks(0, most),
      [['c-soft', curve(SUM.EXACT)], ['c-good', curve(SUM.PAIRS)], ['c-over', curve(SUM.KAHAN)], ['c-lost', curve(SUM.ORDER)]]);
    svg(f.svg, 'line', { 'class': 'cursor', x1: f.x(at), x2: f.x(at), y1: f.top, y2: f.bottom });
    var middle = (now[SUM.BELOW] + now[SUM.ABOVE]) / 2, goesUp = now[SUM.BETWEEN] > middle || now[SUM.BETWEEN] === middle && now[SUM.AFTER] === now[SUM.ABOVE];
    get('sums-line').hidden = !isFinite(now[SUM.AFTER]); // the sum has overflowed
    if (!isFinite(now[SUM.AFTER])) return;
    function words(v) { return v === now[SUM.BEFORE] ? 'the sum before' : v === now[SUM.AFTER] ? 'the sum after' : 'a neighbour'; }
    line(get('sums-line'), 'Addition ' + at, [[now[SUM.BELOW], words(now[SUM.BELOW]), true], [now[SUM.ABOVE], words(now[SUM.ABOVE]), true]], [goesUp], now[SUM.BETWEEN], now[SUM.AFTER],
      short(now[SUM.BEFORE]) + ' + ' + short(now[SUM.NUMBER]) + (now[SUM.AFTER] === now[SUM.BEFORE] ? ': swamped' : ''));
  }

  // ---- 3 ----
  var DTYPE = ['', 'f32', 'f16', 'bf16'];
  var CLASSES = ['On no list: works in the format that it gets', 'A product: on the list for 16 bits', 'Exponentials and long sums lose too much in 16 bits: on the list for FP32',
    'Computes and returns FP32, whatever it reads', 'All inputs in the widest format among them', 'Refused'];
  function drawChain(section, r) {
    var input = get('chain-input');
    input.textContent = '';
    make(input, 'span', 'pipe ' + r.input);
    make(input, 'b', '', r.input);
    [].slice.call(get('chain').children, 1).forEach(function (li, i) {
      var at = 4 * i, now = r.now, name = li.querySelector('select').value, result = DTYPE[now[at + 3]], why = li.querySelector('.why'), place = li.querySelector('.out');
      place.textContent = '';
      if (!result) {
        place.textContent = '\u2013';
        why.textContent = '';
        return;
      }
      make(place, 'span', 'pipe ' + result);
      make(place, 'b', '', result);
      why.textContent = (r.numbers[0] === 0 ? 'Nothing is cast' : CLASSES[now[at]]) + '. Reads the ' + (i ? 'result above' : 'input') + ' as ' + DTYPE[now[at + 1]] +
        (now[at + 2] ? (name === 'add' || name === 'mul' ? ', and the input again as ' : ', and its stored FP32 weights as ') + DTYPE[now[at + 2]] : '') + '.';
    });
  }

  // ---- 4 ----
  var SCALE = { FATES: 0, AMAX: 4, SUGGESTED: 5, SIZES: 6 }, FIRST = -52, LAST = 24;
  function drawScale(section, r) {
    var e = canvas(section.querySelector('.drawing'), 210, 'Gradients by power of two, and what the format makes of them'), width = Number(e.getAttribute('data-width'));
    var half = r.numbers[0] === 0, k = r.numbers[4], now = r.now, most = 1, i, bottom = 176, bar = (width - 8) / (LAST - FIRST + 1);
    function x(p) { return 4 + bar * (Math.min(Math.max(p, FIRST), LAST + 1) - FIRST); }
    function fate(p) { return !half ? 'good' : p < -25 ? 'lost' : p < -14 ? 'sub' : p < 16 ? 'good' : 'over'; }
    (half ? [[FIRST, -25, 'lost', 'become 0'], [-25, -14, 'sub', 'subnormal'], [-14, 16, 'good', 'normal'], [16, LAST + 1, 'over', 'Inf']] : [[FIRST, LAST + 1, 'good', 'normal: from 2\u207b\u00b9\u00b2\u2076 to 2\u00b9\u00b2\u2078']]).forEach(function (z) {
      svg(e, 'rect', { 'class': 'area-' + z[2], x: x(z[0]), y: 4, width: x(z[1]) - x(z[0]), height: bottom - 4 });
      if (x(z[1]) - x(z[0]) > 62 || z[3] === 'Inf') svg(e, 'text', { x: (x(z[0]) + x(z[1])) / 2, y: 20, 'text-anchor': 'middle', 'class': 'soft' }, z[3]);
    });
    for (i = 0; i < 255; i++)
      most = Math.max(most, now[SCALE.SIZES + i]);
    for (i = 0; i < 255; i++) {
      var p = i - 127 + k, n = now[SCALE.SIZES + i], h = n ? Math.max(3, 140 * n / most) : 0;
      if (n && p >= FIRST && p <= LAST) svg(e, 'rect', { 'class': 'bar-' + fate(p), x: x(p), y: bottom - h, width: Math.max(1, bar - 1), height: h });
    }
    svg(e, 'line', { 'class': 'axis-line', x1: 0, x2: width, y1: bottom, y2: bottom });
    (half ? [-50, -25, -14, 0, 16] : [-50, -40, -30, -20, -10, 0, 10, 20]).forEach(function (p) {
      svg(e, 'text', { 'class': 'soft', x: Math.max(x(p), 16), y: bottom + 19, 'text-anchor': 'middle' }, power(p));
    });
    [].forEach.call(section.querySelectorAll('.fates b'), function (b, f) { b.textContent = now[SCALE.FATES + f].toLocaleString('en'); });
    get('scale-suggest').textContent = 'Take the suggested scale, ' + power(Math.log2(now[SCALE.SUGGESTED]));
  }

  // ---- 5 ----
  var STEPS = 200, EACH = 8;
  function drawScaler(section, r) {
    var now = r.now, scale = [], limit = [], top = 8, at = r.numbers[5], low = 0, i;
    for (i = 0; i < STEPS; i++) {
      var s = Math.log2(now[EACH + 3 * i]), l = Math.log2(now[EACH + 3 * i + 1]);
      scale.push([i, s], [i + 1, s]);
      limit.push([i, l], [i + 1, l]);
      top = Math.max(top, s, l);
      low = Math.min(low, s, l);
    }
    top = 8 * Math.ceil((top + 1) / 8);
    low = 8 * Math.floor(low / 8);
    var marks = [], v;
    for (v = low; v <= top; v += 8)
      marks.push([v, power(v)]);
    var f = frame(section.querySelector('.drawing'), 'Loss scale by step, and where the gradient overflows', 260, STEPS, STEPS + ' steps', low, top, marks, [['area-over', [[0, top]].concat(limit, [[STEPS, top]])], ['c-good', scale]]);
    for (i = 0; i < STEPS; i++) {
      if (!now[EACH + 3 * i + 2]) continue;
      svg(f.svg, 'path', { 'class': 'skip-mark', d: 'M' + (f.x(i + 0.5) - 4) + ' ' + (f.y(Math.log2(now[EACH + 3 * i])) - 4) + 'l8 8m0 -8l-8 8' });
    }
    svg(f.svg, 'line', { 'class': 'cursor', x1: f.x(at - 0.5), x2: f.x(at - 0.5), y1: f.top, y2: f.bottom });
  }

  // ---- 6 ----
  var MASTER = { UPDATE: 0, BELOW: 1, FIRST: 2, ABOVE: 3, EXACT: 4, ROUNDED: 5, ALONE: 8, CURVES: 11 };
  function drawMasters(section, r) {
    var now = r.now, steps = r.numbers[4], all = [], low, high;
    function curve(k) {
      return Array.from({ length: 65 }, function (_, i) {
        all.push(now[MASTER.CURVES + 3 * i + k]);
        return [steps * i / 64, now[MASTER.CURVES + 3 * i + k]];
      });
    }
    var curves = [['c-good', curve(1)], ['c-over', curve(2)], ['c-lost', curve(0)]];
    all = all.filter(isFinite);
    low = Math.min.apply(null, all);
    high = Math.max.apply(null, all);
    if (!(high > low)) high = low + Math.abs(low || 1) / 100;
    var air = (high - low) / 12;
    frame(section.querySelectorAll('.drawing')[1], 'The weight by step, with and without a master', 250, steps, steps + ' steps', low - air, high + air, ticks(low - air, high + air), curves);
    function words(v) { return v === now[MASTER.FIRST] ? 'the weight' : 'a neighbour'; }
    var even = now[MASTER.FIRST] / (now[MASTER.ABOVE] - now[MASTER.FIRST]) % 2 === 0; // a tie goes to the even one
    line(get('masters-line'), 'The first update, between the neighbours of the weight', [MASTER.BELOW, MASTER.FIRST, MASTER.ABOVE].map(function (k) { return [now[k], words(now[k]), true]; }),
      [even, !even], now[MASTER.EXACT], now[MASTER.ROUNDED],
      short(now[MASTER.FIRST]) + (now[MASTER.UPDATE] < 0 ? ' + ' : ' \u2212 ') + short(Math.abs(now[MASTER.UPDATE])) + (now[MASTER.ROUNDED] === now[MASTER.FIRST] && now[MASTER.UPDATE] ? ': lost' : ''));
  }

  // ---- all ----
  var draw = [null, drawHalf, drawSums, drawChain, drawScale, drawScaler, drawMasters];
  var LIMITS = { half: [[1, -3.4e38, 3.4e38]], sums: [[2, 1e-6, 1000]], masters: [[1, 0.001, 1000], [3, -1000, 1000]] };
  function good(section, list) {
    return (LIMITS[section.id] || []).every(function (l) {
      var v = list[l[0]], right = v.word !== '' && v.number >= l[1] && v.number <= l[2];
      if (!right) section.querySelector('.said').textContent = 'A number from ' + l[1] + ' to ' + l[2] + ', please.';
      return right;
    });
  }
  function update(section) {
    var list = choices(section), n = Number(section.dataset.figure), r, said = section.querySelector('.said');
    if (!good(section, list)) return false;
    r = compute(n, list.map(function (w) { return w.number; }));
    r.numbers = list.map(function (w) { return w.number; });
    r.input = list[1].word;
    section.result = r;
    [].forEach.call(section.querySelectorAll('input[type=range][data-word]'), function (e) {
      var shown = e.parentNode.querySelector('[data-at]'), isPower = shown.dataset.at === 'power', words = isPower ? power(e.value) : e.value + shown.dataset.at;
      shown.textContent = words;
      e.setAttribute('aria-valuetext', isPower ? '2 to the power of ' + e.value : words);
    });
    draw[n](section, r);
    said.textContent = r.sentence.replace(/2\^(-?\d+)/g, function (_, e) { return power(e); });
    section.querySelector('.command').textContent = 'The same in a terminal: ';
    make(section.querySelector('.command'), 'code', '', 'build/figures ' + n + ' ' + list.map(function (w) { return w.word; }).join(' '));
    section.querySelector('.command').appendChild(document.createTextNode(' '));
    make(section.querySelector('.command'), 'code', 'hash', r.hash);
    return true;
  }
  function prepare() {
    ['2049', '2051', '0.1', '65519', '65520', '6e-8', '2.98e-8', '300'].forEach(function (v, i) {
      var b = make(get('half-presets'), 'button', '', v);
      b.type = 'button';
      b.id = 'half-try-' + i;
      b.onclick = function () {
        get('half').querySelectorAll('[data-word]')[1].value = v;
        typed();
      };
    });
    get('half-move').oninput = function () { moved(Number(get('half-move').value)); };
    get('half').querySelectorAll('[data-word]').forEach(function (e) { e.oninput = typed; });
    ['layer_norm', 'linear', 'gelu', 'linear', 'add'].forEach(function (first, i) {
      var li = make(get('chain'), 'li'), select = make(li, 'select');
      select.setAttribute('data-word', '');
      select.setAttribute('aria-label', 'Operation ' + (i + 1));
      text(c.figures_operations()).split(' ').forEach(function (name) { make(select, 'option', '', name).value = name; });
      select.value = first;
      make(li, 'div', 'out');
      make(li, 'div', 'why');
    });
    get('scale-suggest').onclick = function () {
      get('scale').querySelectorAll('[data-word]')[4].value = Math.log2(get('scale').result.now[SCALE.SUGGESTED]);
      update(get('scale'));
    };
    get('sums').querySelectorAll('[data-word]')[3].onchange = function (m) {
      get('sums').querySelectorAll('[data-word]')[4].max = m.target.value;
      update(get('sums'));
    };
    sections.forEach(function (s) {
      s.querySelectorAll('[data-word]').forEach(function (e, i) {
        e.name = s.id + '-' + i;
        if (s.id !== 'half') e.oninput = function () { update(s); };
      });
    });
  }
  WebAssembly.instantiate(Uint8Array.from(atob(get('wasm').textContent), function (ch) { return ch.charCodeAt(0); }), { wasi_snapshot_preview1: system }).then(function (made) {
    c = made.instance.exports;
    c._initialize();
    prepare();
    sections.forEach(update);
    var width = innerWidth;
    addEventListener('resize', function () {
      if (innerWidth === width) return;
      width = innerWidth;
      sections.forEach(update);
    });
    document.body.dataset.ready = 'yes';
  }).catch(function (e) { get('failed').textContent = 'It cannot start: ' + (e.message || e); });
})();
