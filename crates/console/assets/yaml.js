// Objects as YAML: text for editing, and lines with colours and folds for reading.

import { h } from './dom.js';

const PLAIN = /^[A-Za-z_./][\w ./@%+,=()-]*$/;
const SPECIAL = /^(true|false|null|yes|no|on|off|y|n|~|\.nan|[-+]?\.inf|[-+]?(0x[\da-f]+|0o?[0-7]+|[\d_]+(\.\d*)?(e[-+]?\d+)?|\.\d+)|\d{4}-\d\d-\d\d.*)$/i;
const LONGEST = 2000;

function scalar(value) {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null';
  if (PLAIN.test(value) && !SPECIAL.test(value) && !value.endsWith(' ') && !/ #|: |:$/.test(value)) return value;
  return JSON.stringify(value);
}

function key(text) {
  return PLAIN.test(text) && !SPECIAL.test(text) ? text : JSON.stringify(text);
}

function block(value) {
  return typeof value === 'string' && value.includes('\n') && value.length < 100_000
    // eslint-disable-next-line no-control-regex
    && !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufeff]|[ \t]\n|^\s/.test(value);
}

const isEmpty = (value) => value !== null && typeof value === 'object' && Object.keys(value).length === 0;

// Lines as {indent, dash, key, value, path}: `value` is a scalar's text, or null where a block follows.
export function linesOf(object) {
  const lines = [];
  const put = (indent, dash, name, value, path) => {
    const line = { indent, dash, key: name, value: null, raw: undefined, path };
    lines.push(line);
    if (block(value)) {
      line.value = value.endsWith('\n') ? '|' : '|-';
      const step = indent + (dash && name !== null ? 4 : 2);
      for (const text of value.replace(/\n$/, '').split('\n')) lines.push({ indent: step, dash: false, key: null, value: text, raw: '', text: true, path });
    } else if (value === null || typeof value !== 'object' || isEmpty(value)) {
      line.value = Array.isArray(value) ? '[]' : isEmpty(value) ? '{}' : scalar(value);
      line.raw = value;
    } else if (name === null) {
      // A list in a list is rare, and valid in one line.
      line.value = JSON.stringify(value);
    } else {
      walk(value, indent + (dash ? 2 : 0), path, false);
    }
  };
  const walk = (value, indent, path, top) => {
    if (Array.isArray(value)) {
      // Lists are not indented below their key, as kubectl writes them.
      const place = indent;
      value.forEach((item, n) => {
        const here = `${path}[${n}]`;
        if (item !== null && typeof item === 'object' && !Array.isArray(item) && !isEmpty(item)) {
          Object.entries(item).forEach(([name, v], m) => put(m === 0 ? place : place + 2, m === 0, name, v, `${here}.${name}`));
        } else put(place, true, null, item, here);
      });
    } else {
      for (const [name, v] of Object.entries(value)) put(top ? indent : indent + 2, false, name, v, `${path}.${name}`);
    }
  };
  walk(object, 0, '', true);
  return lines;
}

export function text(object) {
  return linesOf(object).map((line) => {
    const start = ' '.repeat(line.indent) + (line.dash ? '- ' : '');
    if (line.key === null) return start + (line.value ?? '');
    return `${start}${key(line.key)}:${line.value === null ? '' : ` ${line.value}`}`;
  }).join('\n') + '\n';
}

// The lines as elements; blocks of more than one line fold.
export function view(object, folded = []) {
  const lines = linesOf(object);
  const rows = lines.map((line, at) => row(line, at, lines));
  rows.forEach(({ button }, at) => { if (button && folded.includes(lines[at].key)) button.click(); });
  return h('div', { class: 'yaml', role: 'group', 'aria-label': 'YAML', tabIndex: 0 }, rows.map((r) => r.element));

  function row(line, at) {
    // What a key holds is deeper than the key, but for lists, whose dashes are below it.
    const depth = line.indent + (line.dash ? 2 : 0);
    const isInside = (next) => next.indent > depth || (next.indent === depth && next.dash);
    let last = at;
    while (last + 1 < lines.length && isInside(lines[last + 1])) last += 1;
    const folds = line.value === null && last > at;
    const element = h('div', { class: 'line' });
    let button = null;
    if (folds) {
      button = h('button', { class: 'fold', 'aria-label': `fold ${line.key ?? 'item'}`, 'aria-expanded': 'true', onclick: () => {
        const open = button.getAttribute('aria-expanded') === 'true';
        button.setAttribute('aria-expanded', String(!open));
        element.classList.toggle('folded', open);
        for (let n = at + 1; n <= last; n += 1) {
          rows[n].element.classList.toggle(`within-${at}`, open);
          rows[n].element.hidden = rows[n].element.className.includes('within-');
        }
      } });
      element.append(button);
    }
    element.append(' '.repeat(line.indent) + (line.dash ? '- ' : ''));
    if (line.key !== null) element.append(h('span', { class: 'key' }, key(line.key)), ':', line.value === null ? '' : ' ');
    if (line.value !== null) element.append(value(line));
    return { element, button };
  }
}

function value(line) {
  const kind = line.text || typeof line.raw === 'string' ? 'string' : typeof line.raw === 'number' ? 'number' : 'word';
  const shown = line.value.length > LONGEST ? line.value.slice(0, LONGEST) : line.value;
  const element = h('span', { class: kind }, shown);
  if (shown.length === line.value.length) return element;
  const rest = line.value.length - LONGEST;
  const more = h('button', { class: 'more', onclick: () => { more.remove(); element.textContent = line.value; } }, `… ${rest.toLocaleString('en')} more characters`);
  return h('span', {}, element, more);
}

// A diff of two texts by lines: [' ' | '-' | '+', line].
export function diff(before, after) {
  const a = before.split('\n'); const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const x = a.slice(start, a.length - end); const y = b.slice(start, b.length - end);
  const out = a.slice(0, start).map((line) => [' ', line]);
  if (x.length * y.length > 4_000_000) out.push(...x.map((l) => ['-', l]), ...y.map((l) => ['+', l]));
  else out.push(...middle(x, y));
  return out.concat(a.slice(a.length - end).map((line) => [' ', line]));
}

function middle(x, y) {
  const width = y.length + 1;
  const common = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = x[i] === y[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0; let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push([' ', x[i]]); i += 1; j += 1; }
    else if (i < x.length && (j === y.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) { out.push(['-', x[i]]); i += 1; }
    else { out.push(['+', y[j]]); j += 1; }
  }
  return out;
}

// The diff with three lines around each change.
export function diffView(before, after) {
  const all = diff(before, after);
  const near = all.map((_, at) => all.slice(Math.max(0, at - 3), at + 4).some(([sign]) => sign !== ' '));
  const rows = [];
  let gap = false;
  all.forEach(([sign, line], at) => {
    if (!near[at]) { gap = true; return; }
    if (gap && rows.length) rows.push(h('div', { class: 'line gap' }, '⋯'));
    gap = false;
    rows.push(h('div', { class: `line ${sign === '+' ? 'plus' : sign === '-' ? 'minus' : ''}` }, `${sign} ${line}`));
  });
  if (!rows.length) return h('p', { class: 'empty' }, 'No difference.');
  return h('div', { class: 'yaml diff', role: 'group', 'aria-label': 'difference', tabIndex: 0 }, rows);
}
