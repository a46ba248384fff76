// The editor of an object: its YAML, what the server says to each field before anything is written, and the difference.

import { h, replace } from './dom.js';
import { get, post } from './session.js';
import * as yaml from './yaml.js';
import { order } from './object.js';

const HEIGHT = 20;

export function editor(app, place) {
  let original = ''; let checked = null; let timer = 0;
  const gutter = h('div', { class: 'gutter', 'aria-hidden': 'true' });
  const area = h('textarea', { class: 'code', 'aria-label': 'YAML', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', oninput: typed, onkeydown: key });
  const notes = h('div', { class: 'field-notes' });
  const message = h('div', { class: 'edit-message', role: 'status' });
  const review = h('div', { class: 'review' });
  const check = h('button', { onclick: () => dryRun() }, 'Check');
  const save = h('button', { class: 'primary', onclick: () => write() }, 'Save');
  const element = h('div', { class: 'edit' },
    h('div', { class: 'toolbar' }, save, check, h('button', { class: 'quiet', onclick: () => load() }, 'Start over'), h('span', { class: 'tally' }, 'The server checks while you type; nothing is written until you save.')),
    h('div', { class: 'edit-body' }, h('div', { class: 'editor' }, gutter, h('div', { class: 'code-box' }, area, notes)), h('div', { class: 'edit-aside' }, message, review)));

  async function load() {
    try {
      const object = await get('/api/object', { kind: place.kind, ns: place.ns, name: place.name, reveal: place.kind === 'v1/secrets' && app.revealed ? '1' : '' });
      delete object.metadata.managedFields;
      original = yaml.text(order(object));
    } catch (error) { replace(message, h('p', { class: 'notice bad' }, error.message)); return; }
    area.value = original;
    replace(message, h('p', { class: 'empty' }, 'What would change is shown here.')); replace(notes); replace(review); mark([]);
    checked = null;
    size();
    area.focus({ preventScroll: true });
    area.setSelectionRange(0, 0);
  }

  function key(event) {
    if (event.key === 's' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); write(); }
    // Tab leaves the field, as everywhere; two spaces are typed with Ctrl and ].
    if (event.key === ']' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); document.execCommand('insertText', false, '  '); }
  }

  function typed() {
    size();
    checked = null;
    clearTimeout(timer);
    timer = setTimeout(() => dryRun(true), 600);
  }

  function size() {
    const lines = area.value.split('\n');
    const longest = lines.reduce((most, line) => Math.max(most, line.length), 40);
    area.style.height = `${lines.length * HEIGHT + 16}px`;
    area.style.width = `max(100%, ${Math.min(longest + 4, 400)}ch)`;
    if (gutter.childElementCount !== lines.length) replace(gutter, lines.map((_, n) => h('span', {}, String(n + 1))));
  }

  async function dryRun(quiet) {
    const text = area.value;
    if (text === original) { replace(message, !quiet && h('p', { class: 'notice' }, 'Nothing has changed.')); replace(notes); replace(review); return false; }
    try {
      const result = await post('/api/edit', { kind: place.kind, ns: place.ns, name: place.name, yaml: text, dryRun: true });
      if (area.value !== text) return false;
      delete result.metadata.managedFields;
      replace(notes); mark([]);
      replace(message, h('p', { class: 'notice good' }, 'The server would accept this.'));
      replace(review, h('h2', {}, 'What would change'), yaml.diffView(original, yaml.text(order(result))));
      checked = text;
      return true;
    } catch (error) { if (area.value === text) refused(error); return false; }
  }

  function refused(error) {
    const lines = area.value.split('\n');
    const found = error.causes.map((cause) => ({ ...cause, line: lineOf(area.value, cause.field) }));
    if (error.line) found.push({ field: '', message: error.message, line: error.line - 1 });
    replace(notes, found.filter((cause) => cause.line !== null).map((cause) => {
      const note = h('span', { class: 'field-note' }, cause.message);
      note.style.top = `${cause.line * HEIGHT + 8}px`;
      note.style.left = `${(lines[cause.line] ?? '').length + 3}ch`;
      return note;
    }));
    mark(found.map((cause) => cause.line));
    replace(review);
    replace(message, h('div', { class: 'notice bad', role: 'alert' }, h('p', {}, error.status === 409 ? 'Somebody changed the object meanwhile. Start over to edit what is there now. ' : '', error.causes.length ? `The server refuses ${error.causes.length === 1 ? 'a field' : `${error.causes.length} fields`}:` : error.message),
      error.causes.length > 0 && h('ul', {}, found.map((cause) => h('li', {}, h('button', { class: 'quiet link', onclick: () => jump(cause.line) }, cause.field || 'object'), ' ', cause.message)))));
  }

  function mark(lines) { [...gutter.children].forEach((number, n) => number.classList.toggle('bad', lines.includes(n))); }

  function jump(line) {
    if (line === null) return;
    const start = area.value.split('\n').slice(0, line).join('\n').length + (line ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start + area.value.split('\n')[line].length);
    gutter.children[line]?.scrollIntoView({ block: 'center' });
  }

  async function write() {
    clearTimeout(timer);
    const text = area.value;
    if (checked !== text && !await dryRun()) return;
    save.disabled = true;
    try {
      await post('/api/edit', { kind: place.kind, ns: place.ns, name: place.name, yaml: text, dryRun: false });
      app.tell('Saved.', 'good');
      await load();
    } catch (error) { refused(error); }
    save.disabled = false;
  }

  return { element, start: load, close: () => clearTimeout(timer) };
}

// The line of a field, such as spec.containers[0].image, or of the nearest one above it that the text has.
export function lineOf(text, field) {
  const steps = [...String(field).matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map((found) => found[1] ?? found[2]);
  const lines = text.split('\n');
  let from = 0; let end = lines.length; let indent = 0; let best = null;
  for (const step of steps) {
    const found = child(lines, step, { from, end, indent });
    if (!found) break;
    best = found.line;
    ({ from, end, indent } = found.inside);
  }
  return best;
}

const depth = (line) => /^ */.exec(line)[0].length;

// Finds a key or the n-th item among lines of one depth.
function child(lines, step, { from, end, indent }) {
  let item = -1;
  for (let n = from; n < end; n += 1) {
    const line = lines[n];
    if (!line.trim() || line.trim().startsWith('#') || depth(line) !== indent) continue;
    const isItem = /^ *- ?/.test(line);
    if (isItem) item += 1;
    const name = /^ *(?:- )?"?([^":]+)"?:/.exec(line)?.[1];
    const hit = /^\d+$/.test(step) && isItem ? item === Number(step) : !isItem && name === step;
    if (!hit) continue;
    let last = n + 1;
    const same = (other) => depth(other) === indent && !(!isItem && /^ *- /.test(other));
    while (last < end && (!lines[last].trim() || (!same(lines[last]) && depth(lines[last]) >= indent))) last += 1;
    if (isItem) {
      // The first field of an item stands beside its dash.
      const changed = lines[n].replace('- ', '  ');
      lines[n] = changed;
      return { line: n, inside: { from: n, end: last, indent: indent + 2 } };
    }
    const next = lines.slice(n + 1, last).find((other) => other.trim());
    return { line: n, inside: { from: n + 1, end: last, indent: next === undefined ? indent + 2 : depth(next) } };
  }
  return null;
}
