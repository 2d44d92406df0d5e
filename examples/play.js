// play.js - the page of `make play`: a worker trains with play.c's WebAssembly, the page shows what it says.
'use strict';
function get(id) { return document.getElementById(id); }
function make(parent, tag, name, text) {
  var e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return parent.appendChild(e);
}

// ---- the worker: this function's text, started from a Blob, so that it also works from file:// ----
function work() {
  var STEP = 0, STEPS = 1, LOSS = 2, SCALE = 3, SKIPPED = 4, UPDATES = 5, UPDATES_LOST = 6, LOST = 7, LOST_UNSCALED = 8,
      ACCURACY = 9, BYTES = 10, GRADIENTS = 11;
  var c, said = '';

  function text(at) { // a C string
    var bytes = new Uint8Array(c.memory.buffer), end = at;
    while (bytes[end]) end++;
    return new TextDecoder().decode(bytes.slice(at, end));
  }
  // What the program asks of a system: a place for the sentence with which it fails, and an end.
  var system = {
    fd_write: function (fd, list, n, written) {
      var memory = new DataView(c.memory.buffer), all = 0;
      for (var i = 0; i < n; i++) {
        var at = memory.getUint32(list + 8 * i, true), length = memory.getUint32(list + 8 * i + 4, true);
        said += new TextDecoder().decode(new Uint8Array(c.memory.buffer, at, length));
        all += length;
      }
      memory.setUint32(written, all, true);
      return 0;
    },
    proc_exit: function () { throw new Error(said || 'the program ended'); }
  };
  function load(bytes) {
    var module = new WebAssembly.Module(bytes), needs = {};
    WebAssembly.Module.imports(module).forEach(function (f) {
      needs[f.name] = system[f.name] || function () { return 52; }; // 52: there is no such function
    });
    c = new WebAssembly.Instance(module, { wasi_snapshot_preview1: needs }).exports;
    c._initialize();
  }
  function train(choice) {
    var begin = performance.now(), told = begin, loss = [], scale = [], going = 1, sum = 0, n = 0;
    var steps = c.play_start(choice.net, choice.format, choice.masters, choice.scaling, choice.scale, choice.lr, choice.seed);
    var now = new Float64Array(c.memory.buffer, c.play_now(), GRADIENTS + 255);
    var every = Math.floor(steps / 60) + 1, bin = Math.floor(steps / 300) + 1;
    while (going) {
      var at = now[STEP], looking = at % every === 0 || at === steps - 1;
      going = c.play_step(looking ? 1 : 0);
      if (now.length === 0) now = new Float64Array(c.memory.buffer, c.play_now(), GRADIENTS + 255); // memory has grown
      sum += now[LOSS];
      n++;
      if (n === bin || !going) {
        loss.push([now[STEP], sum / n]);
        scale.push([now[STEP], now[SCALE]]);
        sum = n = 0;
      }
      var look = looking ? { updates: now[UPDATES] ? now[UPDATES_LOST] / now[UPDATES] : 0, lost: now[LOST],
        unscaled: now[LOST_UNSCALED], gradients: Array.from(now.subarray(GRADIENTS, GRADIENTS + 255)) } : null;
      if (look || !going || performance.now() - told > 100) {
        told = performance.now();
        postMessage({ step: now[STEP], steps: steps, last: now[LOSS], scaleNow: now[SCALE], skipped: now[SKIPPED], loss: loss, scale: scale, look: look });
        loss = [];
        scale = [];
      }
    }
    var hash = text(c.play_hash());
    now = new Float64Array(c.memory.buffer, c.play_now(), GRADIENTS + 255);
    postMessage({ hash: hash, accuracy: now[ACCURACY], bytes: now[BYTES], skipped: now[SKIPPED], seconds: (performance.now() - begin) / 1000 });
    c.play_end();
  }
  onmessage = function (m) {
    try {
      load(m.data.bytes);
      if (m.data.choice) train(m.data.choice);
      else postMessage({ choices: JSON.parse(text(c.play_choices())) });
    } catch (e) {
      postMessage({ error: String(e.message || e) });
    }
  };
}

// ---- the page ----
(function () {
  var bytes = Uint8Array.from(atob(get('wasm').textContent), function (ch) { return ch.charCodeAt(0); });
  var native = JSON.parse(get('native').textContent);
  var source = URL.createObjectURL(new Blob(['(' + work + ')()'], { type: 'text/javascript' }));
  var rates = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1], seed = 1;
  var words = { net: ['plain', 'deep'], format: ['f32', 'f16', 'bf16', 'fp8-current', 'fp8-delayed'], masters: ['none', 'f32'], scaling: ['dynamic', 'static', 'off'] };
  var choices, worker = null, run = null, before = null, drawn = 0;
  var still = matchMedia('(prefers-reduced-motion: reduce)');

  function percent(x) { return x > 0 && x < 0.0005 ? '<0.1\u202f%' : (100 * x).toFixed(1) + '\u202f%'; }
  function power(e) {
    return '2' + String(e).replace('-', '\u207b').replace(/\d/g, function (d) { return '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'[d]; });
  }
  function scaleText(s) { return s === 1 ? '1' : power(Math.round(Math.log2(s))); }
  function small(x) { return isFinite(x) ? x.toPrecision(3) : String(x); }
  function decimal(x) { return x.toFixed(6).replace(/0+$/, ''); }
  function ask(message, answer) {
    var w = new Worker(source);
    w.onmessage = function (m) { answer(m.data, w); };
    w.onerror = function (e) { answer({ error: e.message }, w); };
    w.postMessage(message);
    return w;
  }

  // -- choices --
  function net() { return Number(document.querySelector('[name=net]:checked').value); }
  function choice() {
    return { net: net(), format: Number(get('format').value), masters: Number(get('masters').value), scaling: Number(get('scaling').value),
      scale: Number(get('scaling').value) === 2 ? 0 : Number(get('scale').value), lr: rates[get('lr').value], seed: seed };
  }
  function firstScale(n, scaling) { return scaling === 1 ? n.staticScale : n.firstScale; }
  function rateIndex(lr) {
    return rates.reduce(function (best, r, i) { return Math.abs(r - lr) < Math.abs(rates[best] - lr) ? i : best; }, 0);
  }
  // The mode of digits that these choices are, or undefined.
  function known(c) {
    var n = choices.nets[c.net];
    return choices.modes.find(function (m) {
      return m.format === c.format && m.masters === c.masters && m.scaling === c.scaling && rates.indexOf(c.lr) === rateIndex(n.lr) &&
        (c.scaling === 2 || c.scale === firstScale(n, c.scaling));
    });
  }
  function showChoice() {
    var c = choice(), m;
    get('masters').disabled = c.format === 0;
    if (c.format === 0 && !c.masters) { get('masters').value = '1'; c.masters = 1; }
    get('scale').disabled = c.scaling === 2;
    get('scale-at').textContent = c.scaling === 2 ? 'none' : power(c.scale);
    get('scale').setAttribute('aria-valuetext', '2 to the power of ' + c.scale);
    get('lr-at').textContent = decimal(c.lr);
    get('lr').setAttribute('aria-valuetext', decimal(c.lr));
    get('what').textContent = choices.nets[c.net].what + '.' + (c.net ? ' Its gradients are made small, as if the loss were a mean over 65,536 places.' : '');
    m = known(c);
    get('mode').value = m ? m.name : '';
  }
  function takeMode() {
    var m = choices.modes.find(function (x) { return x.name === get('mode').value; }), n = choices.nets[net()];
    if (!m) return;
    get('format').value = m.format;
    get('masters').value = m.masters;
    get('scaling').value = m.scaling;
    get('scale').value = firstScale(n, m.scaling);
    get('lr').value = rateIndex(n.lr);
    showChoice();
  }
  function takeNet() {
    var n = choices.nets[net()];
    get('lr').value = rateIndex(n.lr);
    get('scale').value = firstScale(n, Number(get('scaling').value));
    showChoice();
  }

  // -- pictures --
  function svg(parent, tag, attributes, text) {
    var e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    Object.keys(attributes).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    if (text !== undefined) e.textContent = text;
    return parent.appendChild(e);
  }
  // lines: [class, [[step, value], ...]]; ticks: [value, label]; values between low and high.
  function chart(id, steps, low, high, ticks, lines) {
    var e = get(id), left = 52, right = 432, top = 8, bottom = 194;
    function x(s) { return left + (right - left) * s / steps; }
    function y(v) { return bottom - (bottom - top) * (Math.min(Math.max(v, low), high) - low) / (high - low); }
    e.textContent = '';
    ticks.forEach(function (t) {
      svg(e, 'line', { 'class': 'grid', x1: left, x2: right, y1: y(t[0]), y2: y(t[0]) });
      svg(e, 'text', { x: left - 6, y: y(t[0]) + 4, 'text-anchor': 'end' }, t[1]);
    });
    svg(e, 'text', { x: left, y: 213 }, '0');
    svg(e, 'text', { x: right, y: 213, 'text-anchor': 'end' }, steps + ' steps');
    lines.forEach(function (l) {
      var pen = 'M', d = '';
      l[1].forEach(function (p) {
        if (!isFinite(p[1])) { pen = 'M'; return; }
        d += pen + x(p[0]).toFixed(1) + ' ' + y(p[1]).toFixed(1);
        pen = 'L';
      });
      svg(e, 'path', { 'class': l[0], d: d });
    });
  }
  function logs(points) { return points.map(function (p) { return [p[0], Math.log10(p[1])]; }); }
  function stretched(r, steps) { return r ? r.loss.map(function (p) { return [p[0] * steps / r.steps, p[1]]; }) : []; }

  var FIRST = -60, LAST = 24; // powers of two in the histogram
  function fate(e) { return e < -25 ? 0 : e < -14 ? 1 : e < 16 ? 2 : 3; }
  function histogram(look, scale) {
    var shift = Math.round(Math.log2(scale)), bars = new Array(LAST - FIRST + 1).fill(0), sums = [0, 0, 0, 0], most = 0, i;
    look.gradients.forEach(function (share, k) {
      var e = k - 127 + shift;
      sums[fate(e)] += share;
      bars[Math.min(Math.max(e, FIRST), LAST) - FIRST] += share;
    });
    most = Math.max.apply(null, bars) || 1;
    for (i = 0; i < bars.length; i++) {
      var bar = get('hist').children[i];
      bar.style.height = 100 * bars[i] / most + '%';
    }
    sums.forEach(function (s, k) { get('fate-' + k).textContent = percent(s); });
  }
  function prepare() {
    for (var e = FIRST; e <= LAST; e++) make(get('hist'), 'i', ['lost', 'sub', 'good', 'over'][fate(e)]);
    [-50, -25, -14, 0, 16].forEach(function (e) {
      make(get('axis'), 'span', '', power(e)).style.left = 100 * (e - FIRST) / (LAST - FIRST + 1) + '%';
    });
  }
  function draw() {
    var top = 8, scales = run.scale.map(function (p) { return [p[0], Math.log2(p[1])]; });
    scales.forEach(function (p) { top = Math.max(top, p[1]); });
    drawn = performance.now();
    get('now-step').textContent = run.step;
    get('now-steps').textContent = 'of ' + run.steps + ' steps';
    get('now-loss').textContent = small(run.last);
    get('now-scale').textContent = scaleText(run.scaleNow);
    get('now-skipped').textContent = run.skipped;
    chart('chart-loss', run.steps, -2, 1, [[-2, '0.01'], [-1, '0.1'], [0, '1'], [1, '10']],
      [['before', logs(stretched(before, run.steps))], ['now', logs(run.loss)]]);
    top = 8 * Math.ceil(top / 8);
    chart('chart-scale', run.steps, 0, top, [0, top / 4, top / 2, 3 * top / 4, top].map(function (v) { return [v, power(v)]; }), [['now', scales]]);
    chart('chart-lost', run.steps, 0, 1, [0, 0.25, 0.5, 0.75, 1].map(function (v) { return [v, 100 * v + '\u202f%']; }), [['now', run.updates], ['second', run.lost]]);
    if (!run.look) return;
    histogram(run.look, run.lookScale);
    get('now-updates').textContent = percent(run.look.updates);
    get('now-gradients').textContent = percent(run.look.lost);
  }

  // -- a run --
  function running(yes) {
    get('train').disabled = yes;
    get('stop').disabled = !yes;
    if (!yes) worker = null;
  }
  function end(m) {
    var c = run.choice, mode = known(c), hash = mode && native[words.net[c.net]][mode.name], row = make(get('runs'), 'tr');
    draw();
    get('hash').textContent = m.hash;
    get('same').className = hash && hash !== m.hash ? 'differs' : '';
    get('same').textContent = !hash ? 'For these choices this page knows no other hash: run the command below.' :
      hash === m.hash ? 'digits --ordered, on the machine that made this page, ended with the same bits.' :
      'digits --ordered, on the machine that made this page, ended with ' + hash + ': these bits differ, and should not. Please report it.';
    get('command').textContent = mode ? 'make build/digits && build/digits --ordered --net ' + words.net[c.net] + ' --mode ' + mode.name :
      'make build/play && build/play ' + [words.net[c.net], words.format[c.format], words.masters[c.masters], words.scaling[c.scaling], c.scale, decimal(c.lr), seed].join(' ');
    get('command-is').hidden = false;
    make(row, 'th', '', words.net[c.net] + ', ' + (mode ? mode.name : [words.format[c.format], 'masters ' + words.masters[c.masters],
      'scaling ' + words.scaling[c.scaling] + (c.scaling === 2 ? '' : ' ' + power(c.scale))].join(', '))).scope = 'row';
    [decimal(c.lr), percent(m.accuracy), m.skipped, percent(run.look.updates), m.bytes.toLocaleString('en'), m.seconds.toFixed(1), m.hash].forEach(function (t) {
      make(row, 'td', '', t);
    });
    get('said').textContent = 'Test accuracy ' + percent(m.accuracy) + ' after ' + run.steps + ' steps.';
    reach();
  }
  function heard(m, from) {
    if (from !== worker) return;
    if (m.error) {
      get('said').textContent = 'It failed: ' + m.error;
      running(false);
      return;
    }
    if (m.hash) {
      end(m);
      from.terminate();
      running(false);
      return;
    }
    ['step', 'steps', 'last', 'scaleNow', 'skipped'].forEach(function (k) { run[k] = m[k]; });
    run.loss = run.loss.concat(m.loss);
    run.scale = run.scale.concat(m.scale);
    if (m.look) {
      run.look = m.look;
      run.lookScale = m.scaleNow;
      run.updates.push([m.step, m.look.updates]);
      run.lost.push([m.step, m.look.lost]);
    }
    if (performance.now() - drawn > (still.matches ? 1000 : 80)) draw();
  }
  function start() {
    if (run && run.loss.length) before = run;
    run = { choice: choice(), loss: [], scale: [], updates: [], lost: [], look: null };
    get('said').textContent = 'Training \u2026';
    get('same').textContent = '';
    get('hash').textContent = '\u2026';
    get('command-is').hidden = true;
    running(true);
    worker = ask({ bytes: bytes, choice: run.choice }, heard);
    get('stop').focus();
  }
  function stop() {
    if (!worker) return;
    worker.terminate();
    running(false);
    get('said').textContent = 'Stopped.';
    get('hash').textContent = 'the run was stopped';
    get('train').focus();
  }
  // What is wider than its place can be reached by keyboard.
  function reach() {
    document.querySelectorAll('.scroll').forEach(function (e) {
      if (e.scrollWidth <= e.clientWidth) { e.removeAttribute('tabindex'); return; }
      e.tabIndex = 0;
      e.setAttribute('role', 'group');
      e.setAttribute('aria-label', 'Scrolls sideways');
    });
  }

  function ready(m, from) {
    from.terminate();
    if (m.error) { get('said').textContent = 'It cannot start: ' + m.error; return; }
    choices = m.choices;
    choices.nets.forEach(function (n, i) {
      var label = make(get('nets'), 'label'), input = make(label, 'input');
      input.type = 'radio';
      input.name = 'net';
      input.value = i;
      input.checked = i === 0;
      label.appendChild(document.createTextNode(n.name));
      input.onchange = takeNet;
    });
    choices.modes.forEach(function (x) { make(get('mode'), 'option', '', x.name).value = x.name; });
    make(get('mode'), 'option', '', 'my own').value = '';
    get('mode').value = 'fp16-pure';
    takeMode();
    get('mode').onchange = takeMode;
    get('scaling').onchange = function () {
      get('scale').value = firstScale(choices.nets[net()], Number(get('scaling').value));
      showChoice();
    };
    ['format', 'masters', 'scale', 'lr'].forEach(function (id) { get(id).oninput = showChoice; });
    get('train').onclick = start;
    get('stop').onclick = stop;
    get('train').disabled = false;
    reach();
  }
  prepare();
  ask({ bytes: bytes }, ready);
  addEventListener('resize', reach);
})();
