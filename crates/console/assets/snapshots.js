// Snapshots of a cluster in the console's own process, and lists of what differs.

import { h, replace } from './dom.js';
import { get, post } from './session.js';
import { links } from './route.js';
import { clock } from './format.js';
import { order } from './object.js';
import * as yaml from './yaml.js';

// Objects that differ. Between two revisions of one cluster each can be opened to see its lines.
export function differences(app, found, revisions) {
  if (!found.objects.length) return h('p', { class: 'empty' }, 'Nothing differs.');
  const all = found.added + found.changed + found.deleted;
  return [h('ol', { class: 'differences' }, found.objects.map((one) => row(one, revisions))), found.objects.length < all && h('p', {}, `and ${all - found.objects.length} more`)];
}

function row(one, revisions) {
  const name = h('a', { href: links.object(one.id, one.ns, one.name) }, `${one.kind} ${one.ns ? `${one.ns}/` : ''}${one.name}`);
  const fields = one.fields.length > 0 && h('span', { class: 'why' }, one.fields.join(', '));
  if (!revisions || one.change !== 'changed') return h('li', { class: one.change }, h('span', { class: 'change' }, one.change), name, fields);
  const box = h('details', { ontoggle: async () => {
    if (!box.open || box.dataset.read) return;
    box.dataset.read = '1';
    try {
      const { before, after } = await get('/api/change', { kind: one.id, ns: one.ns, name: one.name, ...revisions });
      box.append(yaml.diffView(before ? yaml.text(order(before)) : '', after ? yaml.text(order(after)) : ''));
    } catch (error) { box.append(h('p', { class: 'notice bad' }, error.message)); }
  } }, h('summary', {}, fields || 'lines'));
  return h('li', { class: one.change }, h('span', { class: 'change' }, one.change), name, box);
}

export function snapshots(app) {
  let compared = null;
  const name = h('input', { type: 'text', class: 'filter plain', placeholder: 'a name', 'aria-label': 'Name of the snapshot', maxlength: '40', pattern: '[a-z0-9\\-]+', onkeydown: (event) => { if (event.key === 'Enter') { event.preventDefault(); take(); } } });
  const list = h('ul', { class: 'snapshots' });
  const result = h('div', { class: 'changes', role: 'status' });
  const element = h('div', { class: 'snapshot-box', hidden: true }, h('div', { class: 'time-row' }, h('strong', {}, 'Snapshots'), name, h('button', { onclick: () => take() }, 'Take'), list), result);

  async function read() {
    try { draw(await get('/api/snapshots')); } catch { element.hidden = true; }
  }

  function draw(found) {
    element.hidden = !found.available;
    replace(list, found.snapshots.map((one) => h('li', {}, h('span', { class: 'name' }, one.name), h('time', {}, clock(one.at)),
      h('button', { class: 'quiet', 'aria-pressed': String(compared === one.name), onclick: () => compare(one.name) }, 'Compare with now'),
      one.fork ? [h('a', { href: one.fork.link, target: '_blank', rel: 'noopener' }, 'Open the fork'), h('code', {}, one.fork.kubeconfig)] : h('button', { class: 'quiet', onclick: () => act('/api/snapshots/fork', one.name) }, 'Fork'))));
  }

  async function act(path, wanted) {
    try { draw(await post(path, { name: wanted })); return true; } catch (error) { app.tell(error.message, 'bad'); return false; }
  }

  async function take() { if (await act('/api/snapshots', name.value.trim())) { app.tell(`Snapshot ${name.value.trim()} is taken.`, 'good'); name.value = ''; } }

  async function compare(wanted) {
    if (compared === wanted) { compared = null; replace(result); read(); return; }
    compared = wanted;
    read();
    try {
      const found = await get('/api/snapshots/compare', { name: wanted });
      replace(result, h('p', {}, `Since ${wanted}: ${found.added} added, ${found.changed} changed, ${found.deleted} deleted`), differences(app, found, null));
    } catch (error) { replace(result, h('p', { class: 'notice bad' }, error.message)); }
  }

  return { element, read };
}
