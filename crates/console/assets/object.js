// One object: its state, conditions, events, owners, YAML, who wrote which field, logs.

import { h, replace, dot } from './dom.js';
import { links, adjust } from './route.js';
import { get } from './session.js';
import { age, plural } from './format.js';
import * as yaml from './yaml.js';
import { tree } from './tree.js';
import { logs } from './logs.js';
import { terminal } from './terminal.js';
import { editor } from './editor.js';
import { actionBar } from './actions.js';

const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

export function object(app, place) {
  const kind = app.kind(place.kind);
  let tab = place.parameters.tab ?? 'summary';
  let message = null; let full = null; let revealed = false; let open = null; let allowed = []; let loading = '';
  const panel = h('div', { class: 'panel', role: 'tabpanel', tabIndex: -1 });
  const tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Parts of the object' });
  const state = h('div', { class: 'state', role: 'status' });
  app.revealed = false;
  const actions = actionBar(app, place, { tab: (id) => choose(id), allowed(names) { allowed = names; if (message) draw(true); } });
  const element = h('div', { class: 'object' }, h('div', { class: 'object-head' }, state, actions.element), tabs, panel);
  const isPod = place.kind === 'v1/pods';
  const isSecret = place.kind === 'v1/secrets';

  const all = () => [
    ['summary', 'Summary'], ['tree', 'Owners'], ['yaml', 'YAML'], ['fields', 'Who wrote it'],
    ...(message?.object?.metadata?.annotations?.[APPLIED] ? [['applied', 'Last applied']] : []),
    ...(isPod ? [['logs', 'Logs']] : []),
    ...(allowed.includes('exec') && app.at === null ? [['terminal', 'Terminal']] : []),
    ...(allowed.includes('edit') && app.at === null ? [['edit', 'Edit']] : []),
  ];

  function drawTabs() {
    replace(tabs, all().map(([id, label]) => h('button', { role: 'tab', id: `tab-${id}`, 'aria-selected': String(tab === id), tabIndex: tab === id ? 0 : -1, onclick: () => choose(id), onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const ids = all().map(([name]) => name);
      choose(ids[(ids.indexOf(tab) + step + ids.length) % ids.length]);
      tabs.querySelector('[aria-selected=true]').focus();
    } }, label)));
    panel.setAttribute('aria-labelledby', `tab-${tab}`);
  }

  function choose(id) {
    if (tab !== id) { tab = id; adjust({ tab: id === 'summary' ? '' : id }); }
    draw(true);
  }

  function draw(changed) {
    if (!message) { replace(panel, h('p', { class: 'empty' }, 'Reading…')); return; }
    if (message.refused) { replace(state); replace(panel, h('p', { class: 'notice bad' }, 'You may not see this object. ', h('span', { class: 'why' }, message.refused))); return; }
    if (!message.object) { drawGone(); return; }
    drawState();
    drawTabs();
    if (changed) tabs.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    if (open && open.tab !== tab) { open.close(); open = null; }
    if (tab === 'summary') replace(panel, summary(message, app));
    else if (tab === 'tree') replace(panel, tree(message.tree, message.object.metadata.uid));
    else if (tab === 'yaml') drawYaml();
    else if (tab === 'fields') drawFields(changed);
    else if (tab === 'applied') replace(panel, applied(message.object));
    else if (tab === 'logs') keep(() => logs(place.ns, place.name, containerNames()));
    else if (all().some(([id]) => id === tab)) keep(() => (tab === 'edit' ? editor(app, place) : terminal(place.ns, place.name, containerNames())));
    else replace(panel, h('p', { class: 'empty' }, app.at === null ? 'You may not do this here.' : 'The past cannot be changed.'));
  }

  // Parts that are more than a picture of the object stay as they are while it changes.
  function keep(make) {
    if (open) return;
    open = { ...make(), tab };
    replace(panel, open.element);
    open.start();
  }

  function containerNames() {
    const spec = message.object.spec ?? {};
    return [...(spec.containers ?? []), ...(tab === 'logs' ? spec.initContainers ?? [] : [])].map((container) => container.name);
  }

  function drawGone() {
    replace(state, dot('none'), h('span', {}, app.at ? 'This object was not there at this moment.' : 'This object is not there.'));
    replace(tabs);
    replace(panel, h('p', { class: 'empty' }, app.at ? 'Move through time to see it.' : 'It may have been deleted. ', !app.at && h('button', { class: 'quiet', onclick: () => app.openTime() }, 'Look at the past'), ' ', h('a', { href: links.table(place.kind) }, `All ${kind ? plural(kind.kind) : 'objects'}`)));
  }

  function drawState() {
    const words = { good: 'Healthy', busy: 'In progress', bad: 'Failing', none: 'No state of its own' };
    const metadata = message.object.metadata;
    replace(state, dot(message.health, message.why), h('strong', { class: message.health }, words[message.health]), message.why && h('span', { class: 'why' }, message.why),
      h('span', { class: 'facts' }, metadata.namespace && h('span', {}, metadata.namespace), h('time', { dateTime: metadata.creationTimestamp, title: metadata.creationTimestamp }, `${age(metadata.creationTimestamp)} old`), metadata.generation && h('span', {}, `generation ${metadata.generation}`)));
  }

  function drawYaml() {
    const isCurrent = full && (revealed || full.metadata.resourceVersion === message.object.metadata.resourceVersion);
    const source = isCurrent ? full : message.object;
    // The stream has no managed fields; they are read once for each version that is shown.
    if (!isCurrent && app.at === null && loading !== message.object.metadata.resourceVersion) { loading = message.object.metadata.resourceVersion; load(revealed); }
    replace(panel, h('div', { class: 'toolbar' },
      isSecret && !app.at && h('button', { class: 'quiet', 'aria-pressed': String(revealed), onclick: async () => { revealed = !revealed; app.revealed = revealed; full = null; await load(revealed); } }, revealed ? 'Hide values' : 'Show values'),
      h('button', { class: 'quiet', onclick: () => navigator.clipboard?.writeText(yaml.text(order(source))) }, 'Copy')),
    isSecret && !revealed && h('p', { class: 'notice' }, 'Values are masked until you ask for them.'),
    yaml.view(order(source), ['managedFields']));
  }

  async function load(reveal) {
    try {
      full = await get('/api/object', { kind: place.kind, ns: place.ns, name: place.name, reveal: reveal ? '1' : '' });
    } catch (error) { app.tell(error.message, 'bad'); }
    if (tab === 'yaml') draw();
  }

  async function drawFields(changed) {
    if (app.at) { replace(panel, h('p', { class: 'empty' }, 'Managed fields of the past are not kept here. Return to now to see them.')); return; }
    if (changed || !full || full.metadata.resourceVersion !== message.object.metadata.resourceVersion) {
      try { full = await get('/api/object', { kind: place.kind, ns: place.ns, name: place.name }); } catch (error) { replace(panel, h('p', { class: 'notice bad' }, error.message)); return; }
    }
    if (tab === 'fields') replace(panel, fields(full));
  }

  const ticking = setInterval(() => { if (message?.object) drawState(); }, 5000);
  return {
    title: place.name,
    subtitle: kind ? `${kind.kind} · ${kind.group || 'core'}/${kind.version}` : place.kind,
    back: links.table(place.kind),
    topics: [{ topic: 'object', kind: place.kind, ns: place.ns, name: place.name }],
    element,
    close() { clearInterval(ticking); open?.close(); },
    hear(heard) {
      if (heard.t === 'past') { replace(panel, h('p', { class: 'notice bad' }, heard.refused.message)); return; }
      if (heard.t !== 'object' || heard.kind !== place.kind) return;
      const first = !message;
      message = heard;
      draw(first);
      actions.hear(heard);
    },
    redraw: () => draw(),
    keys: Object.fromEntries([['s', 'summary'], ['o', 'tree'], ['y', 'yaml'], ['f', 'fields'], ...(isPod ? [['l', 'logs'], ['x', 'terminal']] : []), ['e', 'edit']].map(([key, id]) => [key, () => choose(id)])),
  };
}

// The order of fields that people expect.
export function order(object) {
  const { apiVersion, kind, metadata, spec, status, ...rest } = object;
  return Object.fromEntries(Object.entries({ apiVersion, kind, metadata, spec, ...rest, status }).filter(([, value]) => value !== undefined));
}

function summary(message, app) {
  const { object: value, events } = message;
  const conditions = value.status?.conditions ?? [];
  const metadata = value.metadata;
  return [
    conditions.length > 0 && h('section', {}, h('h2', {}, 'Conditions'), h('ul', { class: 'conditions' }, conditions.map((condition) => h('li', {},
      dot(tone(condition)), h('strong', {}, condition.type), h('span', { class: 'status' }, condition.status), h('span', { class: 'why' }, [condition.reason, condition.message].filter(Boolean).join(': ')),
      h('time', { dateTime: condition.lastTransitionTime }, condition.lastTransitionTime ? age(condition.lastTransitionTime) : ''))))),
    h('div', { class: 'columns' },
      h('section', {}, h('h2', {}, 'Owners and owned'), tree(message.tree, metadata.uid)),
      h('section', {}, h('h2', {}, 'Events'), events.length
        ? h('ol', { class: 'events' }, events.slice(-30).reverse().map((event) => h('li', { class: event.type === 'Warning' ? 'bad' : '' }, h('time', { dateTime: event.last }, age(event.last)), h('strong', {}, event.reason), event.count > 1 && h('span', { class: 'times' }, `×${event.count}`), h('span', { class: 'why' }, event.message))))
        : h('p', { class: 'empty' }, 'No events.'))),
    pairs('Labels', metadata.labels, (name, text) => links.table(app.place.kind, { q: `${name}=${text}` })),
    pairs('Annotations', metadata.annotations),
    containers(value),
  ];
}

function tone(condition) {
  const bad = /(Pressure|Failed|Failure|Degraded|Stalled|Unavailable)$/.test(condition.type);
  if (condition.status === 'Unknown') return 'busy';
  return (condition.status === 'True') === bad ? 'bad' : 'good';
}

function pairs(title, map, link) {
  const entries = Object.entries(map ?? {}).filter(([name]) => name !== APPLIED);
  if (!entries.length) return null;
  return h('section', {}, h('h2', {}, title), h('ul', { class: 'chips' }, entries.map(([name, text]) => {
    const shown = String(text).length > 120 ? `${String(text).slice(0, 120)}…` : text;
    const chip = [h('span', { class: 'key' }, name), h('span', {}, shown)];
    return h('li', {}, link ? h('a', { class: 'chip', href: link(name, text) }, chip) : h('span', { class: 'chip', title: String(text).slice(0, 2000) }, chip));
  })));
}

function containers(value) {
  const list = value.spec?.containers ?? value.spec?.template?.spec?.containers;
  if (!Array.isArray(list) || !list.length) return null;
  const states = Object.fromEntries((value.status?.containerStatuses ?? []).map((status) => [status.name, status]));
  return h('section', {}, h('h2', {}, 'Containers'), h('ul', { class: 'conditions' }, list.map((container) => {
    const status = states[container.name];
    const [word, detail] = Object.entries(status?.state ?? {})[0] ?? ['', {}];
    return h('li', {}, dot(status ? (status.ready ? 'good' : detail?.reason ? 'bad' : 'busy') : 'none'), h('strong', {}, container.name), h('code', {}, container.image), h('span', { class: 'why' }, [word, detail?.reason, status?.restartCount ? `${status.restartCount} restarts` : ''].filter(Boolean).join(', ')));
  })));
}

// Who manages which fields: the leaves of every manager's set.
export function leaves(set, path = '') {
  const names = Object.keys(set).filter((name) => name !== '.');
  if (!names.length) return [path];
  return names.flatMap((name) => {
    const step = name.startsWith('f:') ? `.${name.slice(2)}` : name.startsWith('k:') ? `[${Object.entries(JSON.parse(name.slice(2))).map(([k, v]) => `${k}=${v}`).join(',')}]` : `[${name.slice(2)}]`;
    return leaves(set[name], path + step);
  });
}

function fields(object) {
  const managed = object.metadata.managedFields ?? [];
  if (!managed.length) return h('p', { class: 'empty' }, 'The server keeps no account of who wrote what.');
  const rows = managed.flatMap((entry) => leaves(entry.fieldsV1 ?? {}).map((path) => ({ path, entry }))).sort((a, b) => (a.path < b.path ? -1 : 1));
  return h('div', { class: 'fields' },
    h('ul', { class: 'chips' }, managed.map((entry) => h('li', {}, h('span', { class: 'chip' }, h('span', { class: 'key' }, entry.manager), `${entry.operation}${entry.subresource ? ` of ${entry.subresource}` : ''}, ${age(entry.time)} ago`)))),
    h('table', {}, h('caption', { class: 'hidden' }, 'Fields and their managers'),
      h('thead', {}, h('tr', {}, ['Field', 'Manager', 'How', 'When'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map(({ path, entry }) => h('tr', {}, h('td', {}, h('code', {}, path.replace(/^\./, ''))), h('td', {}, entry.manager), h('td', {}, entry.operation), h('td', {}, h('time', { dateTime: entry.time, title: entry.time }, `${age(entry.time)} ago`)))))));
}

// What differs between what was applied and what is there, for the fields that were applied.
function applied(object) {
  let wanted;
  try { wanted = JSON.parse(object.metadata.annotations[APPLIED]); } catch { return h('p', { class: 'notice bad' }, 'What was last applied cannot be read.'); }
  return [h('p', { class: 'notice' }, 'What was applied (−) and what is there now (+), for the fields that were applied.'), yaml.diffView(yaml.text(order(wanted)), yaml.text(order(like(wanted, object))))];
}

function like(wanted, there) {
  if (Array.isArray(wanted)) return Array.isArray(there) ? there.map((item, n) => (n < wanted.length ? like(wanted[n], item) : item)) : there;
  if (wanted === null || typeof wanted !== 'object') return there;
  if (there === null || typeof there !== 'object') return there;
  return Object.fromEntries(Object.keys(wanted).filter((name) => name in there).map((name) => [name, name === 'annotations' ? Object.fromEntries(Object.entries(there[name]).filter(([k]) => k in wanted[name])) : like(wanted[name], there[name])]));
}
