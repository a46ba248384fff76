// The overview: what needs attention first, then how namespaces and kinds are doing.

import { h, replace, dot, printable } from './dom.js';
import { links } from './route.js';
import { age, count, plural } from './format.js';

export function overview(app) {
  const body = h('div', { class: 'overview' });
  let shown = null;
  let limit = 12;
  const draw = () => { if (shown) replace(body, content(app, shown, limit, () => { limit += 50; draw(); })); };
  replace(body, h('p', { class: 'empty' }, 'Reading the cluster…'));
  return {
    title: 'Overview',
    topics: [{ topic: 'overview' }],
    element: body,
    hear(message) {
      if (message.t === 'overview') { shown = message; draw(); }
      if (message.t === 'past') replace(body, h('p', { class: 'notice bad' }, message.refused.message));
    },
    redraw: draw,
  };
}

function content(app, message, limit, more) {
  const namespace = app.namespace;
  const troubles = message.troubles.filter((t) => !namespace || t.ns === namespace);
  const bad = troubles.filter((t) => t.health === 'bad');
  const busy = troubles.filter((t) => t.health === 'busy');
  const kinds = message.kinds.filter((k) => k.counts.total > 0);
  const sum = (name) => kinds.reduce((total, kind) => total + kind.counts[name], 0);
  return [
    h('div', { class: 'tiles' },
      tile('Objects', sum('total'), `${count(kinds.length, 'kind')} in use`, 'plain'),
      tile('Healthy', sum('good'), 'as they should be', 'good'),
      tile('In progress', sum('busy'), 'on their way', 'busy'),
      tile('Failing', sum('bad'), sum('bad') ? 'need somebody' : 'nothing to do', sum('bad') ? 'bad' : 'plain')),
    message.starting > 0 && h('p', { class: 'notice', role: 'status' }, `Still reading ${count(message.starting, 'kind')}.`),
    section('Needs attention', bad.length || busy.length
      ? [h('ul', { class: 'troubles' }, bad.concat(busy).slice(0, limit).map(trouble)),
        bad.length + busy.length > limit && h('button', { class: 'quiet', onclick: more }, `Show more of ${bad.length + busy.length}`)]
      : h('p', { class: 'empty calm' }, 'Everything is as it should be.')),
    h('div', { class: 'columns' },
      section('Namespaces', bars(app, Object.entries(message.namespaces).map(([name, counts]) => ({
        name, counts, href: '#/', onclick: (event) => { event.preventDefault(); app.setNamespace(app.namespace === name ? '' : name); }, current: app.namespace === name,
      })))),
      section('Kinds', bars(app, kinds.sort((a, b) => b.counts.bad - a.counts.bad || b.counts.busy - a.counts.busy || b.counts.total - a.counts.total)
        .slice(0, 40).map((kind) => ({ name: plural(kind.kind), detail: kind.group, counts: kind.counts, href: links.table(kind.id) }))))),
    message.refused.length > 0 && section('Not shown', h('ul', { class: 'refused', tabIndex: 0, 'aria-label': 'Kinds that are not shown' }, message.refused.map((refused) => h('li', {},
      h('strong', {}, plural(refused.kind)), refused.only ? ` of other namespaces than ${refused.only}: ` : ': ', h('span', { class: 'why' }, refused.why))))),
  ];
}

function tile(label, number, note, tone) {
  return h('div', { class: `tile ${tone}` }, h('span', { class: 'label' }, label), h('span', { class: 'number' }, number.toLocaleString('en')), h('span', { class: 'note' }, note));
}

function section(title, ...children) {
  return h('section', {}, h('h2', {}, title), children);
}

function trouble(item) {
  return h('li', { class: item.health }, dot(item.health),
    h('a', { href: links.object(item.id, item.ns, item.name) }, h('span', { class: 'kind' }, item.kind), ' ', h('span', { class: 'name' }, item.name)),
    h('span', { class: 'why' }, item.why),
    h('span', { class: 'place' }, item.ns ?? '', ' ', h('time', { dateTime: item.created }, age(item.created))));
}

function bars(app, items) {
  if (!items.length) return h('p', { class: 'empty' }, 'Nothing here yet.');
  return h('ul', { class: 'bars' }, items.map((item) => h('li', {},
    h('a', { href: item.href, onclick: item.onclick, 'aria-current': item.current ? 'true' : null },
      h('span', { class: 'name' }, item.name, item.detail && h('span', { class: 'group' }, item.detail)),
      h('span', { class: 'bar', role: 'img', 'aria-label': `${item.counts.good} healthy, ${item.counts.busy} in progress, ${item.counts.bad} failing` },
        ['bad', 'busy', 'good'].map((tone) => item.counts[tone] > 0 && h('i', { class: tone, style: { 'flex-grow': String(item.counts[tone]) } })),
        h('i', { class: 'none', style: { 'flex-grow': String(item.counts.total - item.counts.good - item.counts.busy - item.counts.bad) } })),
      h('span', { class: 'total' }, item.counts.total.toLocaleString('en'))))));
}

export { printable };
