// Plots over time zoom together: drag to choose a span, Shift and drag or two fingers to move, Ctrl and wheel to zoom, double click
// for all. What is drawn is stretched by a transform; marks keep their shape; the numbers of the axes are written anew.
(() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const plots = [...document.querySelectorAll('svg.p')].map((area) => {
    const [left, top, width, height] = area.getAttribute('viewBox').split(' ').map(Number);
    const [x0, x1] = area.dataset.x.split(' ').map(Number);
    const [y0, y1] = area.dataset.y.split(' ').map(Number);
    return {
      area, x0, x1, y0, y1, figure: area.parentNode, fit: area.dataset.fit,
      left: left + PAD, top: top + PAD, width: width - 2 * PAD, height: height - 2 * PAD,
      lines: [...area.querySelectorAll('.z')],
      marks: [...area.querySelectorAll('.m')].map((mark) => [mark, mark.getAttribute('d')]),
    };
  });
  if (!plots.length) return;
  // What all plots share: the whole span, and the one in view.
  const all = [Math.min(...plots.map((p) => p.x0)), Math.max(...plots.map((p) => p.x1))];
  let view = [...all];

  // The numbers that the server drew beside each plot: those of a row stand below the lowest plot of their figure.
  for (const p of plots) {
    const inside = (low, size, value) => value >= low - 2 && value <= low + size + 2;
    const texts = (kind) => [...p.figure.querySelectorAll('text.' + kind)];
    const place = (text, name) => Number(text.getAttribute(name));
    p.ticksX = texts('tx').filter((t) => inside(p.left, p.width, place(t, 'x')) && place(t, 'y') > p.top + p.height && place(t, 'y') < p.top + p.height + 30);
    const start = (path) => path.getAttribute('d').match(/^M(-?[\d.]+) ?(-?[\d.]+)/).slice(1).map(Number);
    const guide = (kind, test) => [...p.figure.querySelectorAll('path.' + kind)].filter((path) => test(...start(path)));
    p.gx = guide('gx', (x, y) => inside(p.left, p.width, x) && Math.abs(y - p.top - p.height) < 2);
    p.gy = guide('gy', (x, y) => Math.abs(x - p.left) < 2 && inside(p.top, p.height, y));
    p.ticksY = p.fit ? texts('ty').filter((t) => inside(p.top - 3, p.height + 12, place(t, 'y')) && place(t, 'x') < p.left) : [];
    p.notes = texts('nx').filter((t) => inside(p.left, p.width, place(t, 'x')) && inside(p.top, p.height, place(t, 'y'))).map((t) => [t, place(t, 'x')]);
    // Segments of a time-sequence diagram: the vertical axis follows those in view.
    p.bars = p.fit ? p.lines.filter((line) => line.classList.contains('b')).flatMap((line) => bars(line.getAttribute('d'))) : [];
  }

  function bars(d) {
    const found = [];
    let x = 0, y = 0;
    for (const [, kind, text] of d.matchAll(/([Mmvhl])([^Mmvhl]*)/g)) {
      const n = (text.match(/-?(\d+\.?\d*|\.\d+)/g) || []).map(Number);
      if (kind === 'M') [x, y] = n;
      else if (kind === 'm' || kind === 'l') { x += n[0]; y += n[1]; }
      else if (kind === 'h') x += n[0];
      else if (kind === 'v') { found.push([x, y, y + n[0]]); y += n[0]; }
    }
    return found;
  }

  function step(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= span / most * (1 - 1e-9));
  }

  function ticks(low, high, most) {
    const by = step(high - low, most), found = [];
    for (let n = Math.ceil(low / by - 1e-9); n * by <= high + by * 1e-9; n++) found.push(n * by);
    return found;
  }

  function rewrite(texts, low, high, most, place) {
    if (!texts.length) return texts;
    const by = step(high - low, most), digits = Math.max(0, -Math.floor(Math.log10(by) + 1e-9));
    const made = ticks(low, high, most).map((at) => {
      const text = texts[0].cloneNode();
      text.textContent = at.toFixed(digits).replace('-', '\u2212');
      place(text, at);
      return text;
    });
    made.forEach((text) => texts[0].before(text));
    texts.forEach((text) => text.remove());
    return made;
  }

  function guides(paths, places, upright) {
    for (const path of paths) {
      const [, x, y, rest] = path.getAttribute('d').match(/^M(-?[\d.]+) ?(-?[\d.]+)([hv]-?[\d.]+)/);
      path.setAttribute('d', places.map((at) => (upright ? `M${at.toFixed(2)} ${y}` : `M${x} ${at.toFixed(2)}`) + rest).join(''));
    }
  }

  function show() {
    for (const p of plots) {
      const sx = (p.x1 - p.x0) / (view[1] - view[0]);
      const tx = p.left - sx * (p.left + (view[0] - p.x0) / (p.x1 - p.x0) * p.width);
      let sy = 1, ty = 0, low = p.y0, high = p.y1;
      if (p.fit && sx > 1.001) {
        const seen = p.bars.filter(([x]) => sx * x + tx >= p.left && sx * x + tx <= p.left + p.width);
        if (seen.length) {
          const from = Math.min(...seen.map((b) => Math.min(b[1], b[2]))), until = Math.max(...seen.map((b) => Math.max(b[1], b[2])));
          const room = Math.max(until - from, 1e-3) * 0.08;
          sy = p.height / (until - from + 2 * room);
          ty = p.top - sy * (from - room);
          const value = (y) => p.y1 - (y - p.top) / p.height * (p.y1 - p.y0);
          [low, high] = [value(until + room), value(from - room)];
        }
      }
      const matrix = sx === 1 && sy === 1 ? '' : `matrix(${sx} 0 0 ${sy} ${tx} ${ty})`;
      p.lines.forEach((line) => matrix ? line.setAttribute('transform', matrix) : line.removeAttribute('transform'));
      for (const [mark, d] of p.marks) {
        mark.setAttribute('d', d.replace(/M(-?[\d.]+) ?(-?[\d.]+)/g, (_, x, y) => `M${(sx * x + tx).toFixed(2)} ${(sy * y + ty).toFixed(2)}`));
      }
      for (const [text, x] of p.notes) {
        text.setAttribute('x', sx * (x - 4) + tx + 4);
        text.style.display = sx * x + tx < p.left - 1 || sx * x + tx > p.left + p.width ? 'none' : '';
      }
      p.ticksX = rewrite(p.ticksX, view[0], view[1], 8, (text, at) => text.setAttribute('x', p.left + (at - view[0]) / (view[1] - view[0]) * p.width));
      if (p.fit) {
        const down = Number(p.ticksY[0]?.getAttribute('font-size')) * 0.35;
        p.ticksY = rewrite(p.ticksY, low, high, 6, (text, at) => text.setAttribute('y', p.top + (high - at) / (high - low) * p.height + down));
      }
      // Ticks stand below the plot, grid lines across it: paths whose parts begin at the numbers.
      guides(p.gx, ticks(view[0], view[1], 8).map((at) => p.left + (at - view[0]) / (view[1] - view[0]) * p.width), true);
      if (p.fit) guides(p.gy, ticks(low, high, 6).map((at) => p.top + (high - at) / (high - low) * p.height), false);
    }
  }

  function look(from, until) {
    const least = (all[1] - all[0]) / 5000;
    if (until - from < least) { const middle = (from + until) / 2; from = middle - least / 2; until = middle + least / 2; }
    const span = Math.min(until - from, all[1] - all[0]);
    from = Math.min(Math.max(from, all[0]), all[1] - span);
    view = span >= all[1] - all[0] ? [...all] : [from, from + span];
    show();
  }

  // The time under a pointer.
  function time(p, event) {
    const box = p.area.getBoundingClientRect(), pad = PAD * box.width / (p.width + 2 * PAD);
    return view[0] + (event.clientX - box.left - pad) / (box.width - 2 * pad) * (view[1] - view[0]);
  }

  const bar = document.createElement('div');
  bar.className = 'zoom';
  bar.innerHTML = '<span>drag to zoom</span><button title="earlier">\u2190</button><button title="closer">+</button><button title="wider">\u2212</button><button title="later">\u2192</button><button>All</button>';
  document.body.insertBefore(bar, document.querySelector('figure'));
  const by = (move, grow) => () => {
    const span = view[1] - view[0], middle = (view[0] + view[1]) / 2 + move * span;
    look(middle - span * grow / 2, middle + span * grow / 2);
  };
  [by(-0.5, 1), by(0, 0.5), by(0, 2), by(0.5, 1), () => look(...all)].forEach((act, n) => { bar.querySelectorAll('button')[n].onclick = act; });

  for (const p of plots) {
    const hold = document.createElementNS(SVG, 'rect');
    for (const [name, value] of Object.entries({ x: p.left, y: p.top, width: p.width, height: p.height, fill: 'transparent' })) hold.setAttribute(name, value);
    p.area.appendChild(hold);
    hold.style.cursor = 'crosshair';
    const chosen = hold.cloneNode();
    chosen.setAttribute('fill', 'currentColor');
    chosen.setAttribute('fill-opacity', '.12');
    chosen.style.pointerEvents = 'none';
    const fingers = new Map();
    let begin = null;
    hold.addEventListener('pointerdown', (event) => {
      if (event.button) return;
      hold.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, time(p, event));
      begin = { at: time(p, event), move: event.shiftKey || event.pointerType === 'touch', view: [...view] };
      if (event.pointerType !== 'touch') event.preventDefault();
    });
    hold.addEventListener('pointermove', (event) => {
      if (!begin || !fingers.has(event.pointerId)) return;
      if (fingers.size === 2) {
        // The times under both fingers stay under them.
        const before = [...fingers.values()], other = [...fingers.keys()].find((id) => id !== event.pointerId);
        const fixed = fingers.get(other), held = fingers.get(event.pointerId), is = time(p, event);
        const grow = (held - fixed) / (is - fixed);
        if (before.length && grow > 0.2 && grow < 5) look(fixed + (view[0] - fixed) * grow, fixed + (view[1] - fixed) * grow);
      } else if (begin.move) {
        const by = begin.at - time(p, event);
        look(view[0] + by, view[1] + by);
      } else {
        const [a, b] = [begin.at, time(p, event)].map((at) => p.left + (at - view[0]) / (view[1] - view[0]) * p.width);
        chosen.setAttribute('x', Math.min(a, b));
        chosen.setAttribute('width', Math.abs(b - a));
        p.area.appendChild(chosen);
      }
    });
    const end = (event) => {
      const from = begin;
      fingers.delete(event.pointerId);
      chosen.remove();
      if (fingers.size) return;
      begin = null;
      if (!from || from.move || event.type === 'pointercancel') return;
      const until = time(p, event);
      if (Math.abs(until - from.at) > (view[1] - view[0]) * 0.01) look(Math.min(from.at, until), Math.max(from.at, until));
    };
    hold.addEventListener('pointerup', end);
    hold.addEventListener('pointercancel', end);
    hold.addEventListener('dblclick', () => look(...all));
    hold.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      const span = view[1] - view[0];
      if (event.ctrlKey || event.metaKey) {
        const at = time(p, event), grow = Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100);
        look(at + (view[0] - at) * grow, at + (view[1] - at) * grow);
      } else {
        look(view[0] + event.deltaX / 500 * span, view[1] + event.deltaX / 500 * span);
      }
    }, { passive: false });
  }
})();
