// A table of one kind: only the rows that can be seen are in the document, however many there are.

import { h, replace, dot, icon } from './dom.js';
import { links, adjust } from './route.js';
import { age, count, plural } from './format.js';

const AROUND = 8;
const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

export function table(app, place) {
  const kind = app.kind(place.kind);
  const rows = new Map();
  let columns = []; let state = { phase: 'starting' };
  let shown = []; let at = -1; let scheduled = false; let total = 0; let sample = true;
  let filter = place.parameters.q ?? '';
  let wide = place.parameters.wide === '1';
  let sort = parseSort(place.parameters.sort);

  const input = h('input', { type: 'search', class: 'filter', placeholder: 'Filter: text, label=value, column:text, is:failing', 'aria-label': 'Filter rows', value: filter, spellcheck: 'false', autocomplete: 'off',
    oninput: () => { filter = input.value; adjust({ q: filter }); at = -1; schedule(); },
    onkeydown: (event) => { if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); input.blur(); step(1); } if (event.key === 'Escape') { input.value = filter = ''; adjust({ q: '' }); input.blur(); schedule(); } } });
  input.value = filter;
  const tally = h('span', { class: 'tally', role: 'status' });
  const wideButton = h('button', { class: 'quiet', 'aria-pressed': String(wide), title: 'More columns (w)', onclick: () => toggleWide() }, 'Wide');
  const note = h('div', {});
  const head = h('div', { class: 'thead', role: 'row' });
  const space = h('div', { class: 'space' });
  const pane = h('div', { class: 'pane', tabIndex: 0, role: 'rowgroup', 'aria-label': 'rows', onscroll: () => draw() }, space);
  const grid = h('div', { class: 'grid', role: 'table', 'aria-label': kind ? plural(kind.kind) : place.kind }, h('div', { role: 'rowgroup' }, head), pane);
  const element = h('div', { class: 'table-view' },
    h('div', { class: 'toolbar' }, h('div', { class: 'search' }, icon('search'), input), tally, wideButton), note, grid);
  const observer = new ResizeObserver(() => { measure(); draw(); });
  observer.observe(pane);

  function visibleColumns() {
    return columns.map((column, index) => ({ ...column, index })).filter((column) => wide || column.priority === 0);
  }

  function cell(row, column) {
    if (column === 'Namespace') return row.ns ?? '';
    if (column.name === 'Age') return row.created ? age(row.created) : '';
    const value = row.cells[column.index];
    if (value === null || value === undefined) return '';
    // Other ages of custom columns come as a moment.
    if (column.type === 'date' && typeof value === 'string' && !Number.isNaN(Date.parse(value)) && /^\d{4}-/.test(value)) return age(value);
    return String(value);
  }

  function sortKey(row) {
    if (sort.by === 'Namespace') return row.ns ?? '';
    if (sort.by === 'Age') return row.created;
    if (sort.by === 'Health') return { bad: '0', busy: '1', good: '2', none: '3' }[row.health];
    const index = columns.findIndex((column) => column.name === sort.by);
    return String(row.cells[index] ?? '');
  }

  function compute() {
    const keep = predicate(filter, columns);
    shown = [];
    for (const row of rows.values()) {
      if (app.namespace && row.ns && row.ns !== app.namespace) continue;
      if (keep(row)) shown.push(row);
    }
    if (sort.by) {
      const keyed = shown.map((row) => [sortKey(row), row]);
      const sign = sort.down ? -1 : 1;
      // Ages are sorted by youngest first, which is the newest moment.
      const turn = sort.by === 'Age' ? -sign : sign;
      keyed.sort((a, b) => turn * collator.compare(a[0], b[0]) || (a[1].key < b[1].key ? -1 : 1));
      shown = keyed.map((pair) => pair[1]);
    } else shown.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    const all = rows.size;
    tally.textContent = shown.length === all ? count(all, 'object') : `${shown.length.toLocaleString('en')} of ${count(all, 'object')}`;
  }

  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; compute(); measure(); drawNote(); draw(); });
  }

  let heights = 34;
  function measure() {
    const phone = pane.clientWidth < 640;
    heights = phone ? 58 : 34;
    grid.classList.toggle('phone', phone);
    if (!columns.length) return;
    const list = visibleColumns();
    const showNamespace = Boolean(kind?.namespaced) && !app.namespace;
    const names = ['', ...(showNamespace ? ['Namespace'] : []), ...list.map((column) => column.name)];
    if (sample || grid.dataset.names !== names.join('\n')) {
      // Widths follow what is there: a look at some rows is enough.
      const looked = shown.filter((_, n) => n % Math.max(1, Math.floor(shown.length / 120)) === 0);
      const longest = (column, name) => looked.reduce((most, row) => Math.max(most, cell(row, column).length), name.length + 1);
      const fit = (letters, most) => `minmax(${Math.min(Math.max(letters, 4), most) * 0.56 + 1.6}rem, ${Math.min(Math.max(letters, 4), most)}fr)`;
      const widths = ['1.6rem', ...(showNamespace ? [fit(longest('Namespace', 'Namespace'), 20)] : []), ...list.map((column) => fit(longest(column, column.name), column.name === 'Name' ? 46 : 28))];
      grid.style.setProperty('--columns', widths.join(' '));
      grid.dataset.names = names.join('\n');
      sample = shown.length < 50;
      replace(head, h('span', { role: 'columnheader', class: 'narrow' }, header('Health', true)),
        showNamespace && h('span', { role: 'columnheader', 'aria-sort': aria('Namespace') }, header('Namespace')),
        list.map((column) => h('span', { role: 'columnheader', 'aria-sort': aria(column.name), title: column.description }, header(column.name))));
    }
  }

  const aria = (name) => (sort.by === name ? (sort.down ? 'descending' : 'ascending') : null);
  function header(name, quiet) {
    const arrow = sort.by === name ? (sort.down ? ' ↓' : ' ↑') : '';
    return h('button', { 'aria-label': quiet ? `Sort by ${name}` : null, onclick: () => {
      sort = sort.by === name ? (sort.down ? { by: null } : { by: name, down: true }) : { by: name, down: false };
      adjust({ sort: sort.by ? `${sort.down ? '-' : ''}${sort.by}` : '' });
      sample = true; delete grid.dataset.names; schedule();
    } }, quiet ? arrow || '•' : name + arrow);
  }

  function draw() {
    space.style.height = `${shown.length * heights}px`;
    grid.setAttribute('aria-rowcount', String(shown.length + 1));
    const first = Math.max(0, Math.floor(pane.scrollTop / heights) - AROUND);
    const last = Math.min(shown.length, Math.ceil((pane.scrollTop + pane.clientHeight) / heights) + AROUND);
    const list = visibleColumns();
    const showNamespace = Boolean(kind?.namespaced) && !app.namespace;
    const fragment = [];
    for (let n = first; n < last; n += 1) {
      const row = shown[n];
      fragment.push(h('div', { role: 'row', class: `row ${row.health}${n === at ? ' current' : ''}${row.fresh > performance.now() - 1500 ? ' fresh' : ''}`, 'aria-rowindex': String(n + 2), style: { transform: `translateY(${n * heights}px)`, height: `${heights}px` }, onclick: (event) => { if (!event.target.closest('a') && !getSelection().toString()) { at = n; open(row); } } },
        h('span', { role: 'cell', class: 'narrow' }, dot(row.health, row.why)),
        showNamespace && h('span', { role: 'cell', class: 'ns' }, row.ns ?? ''),
        list.map((column) => h('span', { role: 'cell', class: column.name === 'Name' ? 'name' : tone(column, cell(row, column)), 'data-label': column.name },
          column.name === 'Name' ? h('a', { href: links.object(place.kind, row.ns, row.name), tabIndex: n === at ? 0 : -1 }, row.name) : cell(row, column)))));
    }
    space.replaceChildren(...fragment);
  }

  function drawNote() {
    const empty = rows.size === 0 && state.phase === 'live';
    replace(note,
      state.phase === 'starting' && h('p', { class: 'notice', role: 'status' }, 'Reading…'),
      state.phase === 'refused' && h('p', { class: 'notice bad', role: 'status' }, 'You may not see these objects. ', h('span', { class: 'why' }, state.message)),
      state.phase === 'gone' && h('p', { class: 'notice bad', role: 'status' }, 'The cluster does not serve this kind any more.'),
      state.phase === 'live' && state.namespace && h('p', { class: 'notice', role: 'status' }, `Only namespace ${state.namespace} is shown. `, h('span', { class: 'why' }, state.why)),
      empty && h('p', { class: 'empty' }, `There are no ${kind ? plural(kind.kind) : 'objects'}${app.at ? ' at this moment' : ' yet'}.`),
      !empty && rows.size > 0 && shown.length === 0 && h('p', { class: 'empty' }, 'No object matches. ', h('button', { class: 'quiet', onclick: () => { input.value = filter = ''; adjust({ q: '' }); schedule(); } }, 'Clear the filter')));
  }

  function step(by) {
    at = Math.min(Math.max(0, at + by), shown.length - 1);
    const top = at * heights;
    if (top < pane.scrollTop) pane.scrollTop = top;
    if (top + heights > pane.scrollTop + pane.clientHeight) pane.scrollTop = top + heights - pane.clientHeight;
    draw();
    space.querySelector('.current a')?.focus({ preventScroll: true });
  }

  function open(row) { location.hash = links.object(place.kind, row.ns, row.name); }
  function toggleWide() { wide = !wide; adjust({ wide: wide ? '1' : '' }); wideButton.setAttribute('aria-pressed', String(wide)); sample = true; delete grid.dataset.names; schedule(); }

  const ticking = setInterval(() => draw(), 5000);
  return {
    title: kind ? plural(kind.kind) : place.kind,
    subtitle: kind ? `${kind.group || 'core'}/${kind.version}` : '',
    topics: [{ topic: 'table', kind: place.kind }],
    element,
    close() { clearInterval(ticking); observer.disconnect(); },
    hear(message) {
      if (message.t === 'past') { state = { phase: 'refused', message: message.refused.message }; rows.clear(); schedule(); return; }
      if (message.kind !== place.kind) return;
      if (message.t === 'table') {
        if (message.reset) { rows.clear(); columns = message.columns; sample = true; }
        state = message.state; total = message.total;
        for (const row of message.rows) rows.set(row.key, row);
        schedule();
      } else if (message.t === 'changes') {
        for (const operation of message.ops) {
          if (typeof operation === 'string') rows.delete(operation);
          else { operation.fresh = performance.now(); rows.set(operation.key, operation); }
        }
        schedule();
      }
    },
    redraw: () => { sample = true; delete grid.dataset.names; schedule(); },
    keys: {
      '/': () => input.focus(), j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
      w: toggleWide, Enter: () => { if (shown[at]) open(shown[at]); },
    },
  };
}

function parseSort(text) {
  if (!text) return { by: null };
  return text.startsWith('-') ? { by: text.slice(1), down: true } : { by: text, down: false };
}

// Words that are known to be good or bad, wherever they stand.
const GOOD = /^(Running|Ready|Active|Bound|Available|True|Complete|Completed|Succeeded|Established|ready)$/;
const BAD = /(BackOff|Error|Failed|Failure|Lost|Unschedulable|NotReady|Invalid|OOMKilled|Evicted)/;
function tone(column, text) {
  if (!/status|phase|ready|state/i.test(column.name)) return '';
  const part = /^(\d+)\/(\d+)$/.exec(text);
  if (part) return part[1] === part[2] ? 'word good' : 'word busy';
  if (GOOD.test(text)) return 'word good';
  if (BAD.test(text)) return 'word bad';
  return /^(Pending|Terminating|ContainerCreating|False)/.test(text) ? 'word busy' : '';
}

const HEALTH = { failing: 'bad', bad: 'bad', busy: 'busy', progress: 'busy', healthy: 'good', good: 'good' };

// What a filter keeps: all terms must hold. `-term` turns one around.
export function predicate(text, columns) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((term) => {
    const turned = term.startsWith('-') && term.length > 1;
    const test = one(turned ? term.slice(1) : term, columns);
    return turned ? (row) => !test(row) : test;
  });
  return (row) => tests.every((test) => test(row));
}

function one(term, columns) {
  const field = /^([^:=]+):(.+)$/.exec(term);
  if (field) {
    const [, name, wanted] = field;
    if (name === 'is') return (row) => row.health === HEALTH[wanted];
    if (name === 'ns') return (row) => row.ns === wanted;
    const index = columns.findIndex((column) => column.name.toLowerCase().replace(/\s/g, '').startsWith(name.toLowerCase()));
    if (index >= 0) return (row) => String(row.cells[index] ?? '').toLowerCase().includes(wanted.toLowerCase());
  }
  const label = /^([^=!]+)(!?=)(.*)$/.exec(term);
  if (label) {
    const [, name, sign, value] = label;
    return sign === '=' ? (row) => row.labels[name] === value : (row) => row.labels[name] !== value;
  }
  const wanted = term.toLowerCase();
  return (row) => {
    row.text ??= [row.ns, row.name, ...row.cells, ...Object.entries(row.labels).map(([k, v]) => `${k}=${v}`)].join(' ').toLowerCase();
    return row.text.includes(wanted);
  };
}
