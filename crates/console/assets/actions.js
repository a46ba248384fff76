// What can be done with an object, where the user's rights allow it: scale, restart, cordon, drain, delete.

import { h, replace } from './dom.js';
import { get, post, open } from './session.js';
import { lines } from './stream.js';
import { links } from './route.js';
import { count, plural } from './format.js';

// Draws the buttons. What the user may not do is not there.
export function actionBar(app, place, choose) {
  const element = h('div', { class: 'actions', role: 'group', 'aria-label': 'Actions' });
  const target = { kind: place.kind, ns: place.ns, name: place.name };
  let allowed = null; let message = null;

  get('/api/rights', { kind: place.kind, ns: place.ns, name: place.name })
    .then((rights) => { allowed = rights.actions; draw(); choose.allowed(allowed); })
    .catch((error) => { if (error.status !== 401) app.tell(error.message, 'bad'); });

  function draw() {
    const object = message?.object;
    // The past cannot be changed.
    if (!allowed || !object || app.at !== null) { replace(element); return; }
    const off = Boolean(object.spec?.unschedulable);
    const may = (name) => allowed.includes(name);
    replace(element,
      may('edit') && h('button', { onclick: () => choose.tab('edit') }, 'Edit'),
      may('exec') && h('button', { onclick: () => choose.tab('terminal') }, 'Terminal'),
      may('scale') && h('button', { onclick: () => scale(app, target, object) }, 'Scale'),
      may('restart') && h('button', { onclick: () => restart(app, target) }, 'Restart'),
      may('cordon') && h('button', { onclick: () => act(app, off ? 'Takes pods again' : 'Takes no new pods', '/api/cordon', { ...target, unschedulable: !off }) }, off ? 'Uncordon' : 'Cordon'),
      may('drain') && h('button', { onclick: () => drain(app, target) }, 'Drain'),
      may('delete') && h('button', { class: 'danger', onclick: () => remove(app, place, object) }, 'Delete'));
  }

  return { element, hear(heard) { message = heard; draw(); } };
}

async function act(app, done, path, body) {
  try { await post(path, body); app.tell(`${done}.`, 'good'); return true; } catch (error) { app.tell(error.message, 'bad'); return false; }
}

// A dialog that is removed when it is closed.
function dialog(title, content, buttons) {
  const element = h('dialog', { class: 'action', 'aria-label': title, onclose: () => element.remove(), onclick: (event) => { if (event.target === element) element.close(); } },
    h('h2', {}, title), h('div', { class: 'content' }, content), h('div', { class: 'buttons' }, h('button', { onclick: () => element.close() }, 'Cancel'), buttons));
  document.body.append(element);
  element.showModal();
  return element;
}

function scale(app, target, object) {
  const now = object.spec?.replicas ?? 1;
  const input = h('input', { type: 'number', min: '0', max: '10000', value: String(now), 'aria-label': 'Replicas', onkeydown: (event) => { if (event.key === 'Enter') go(); } });
  const step = (by) => { input.value = String(Math.max(0, Number(input.value) + by)); };
  const element = dialog(`Scale ${target.name}`, [h('p', {}, `It has ${count(now, 'replica')} now.`), h('div', { class: 'stepper' }, h('button', { 'aria-label': 'One less', onclick: () => step(-1) }, '−'), input, h('button', { 'aria-label': 'One more', onclick: () => step(1) }, '+'))], h('button', { class: 'primary', onclick: () => go() }, 'Scale'));
  input.select();
  async function go() { if (await act(app, `Scaled to ${input.value}`, '/api/scale', { ...target, replicas: Number(input.value) })) element.close(); }
}

function restart(app, target) {
  const element = dialog(`Restart ${target.name}`, h('p', {}, 'Its pods are replaced one after another, as its strategy says.'), h('button', { class: 'primary', onclick: async () => { if (await act(app, 'A new rollout has begun', '/api/restart', target)) element.close(); } }, 'Restart'));
}

async function remove(app, place, object) {
  const going = h('div', { class: 'going', role: 'status' }, h('p', { class: 'empty' }, 'Looking for what goes with it…'));
  const orphan = h('input', { type: 'checkbox' });
  const keep = h('label', { class: 'check', hidden: true }, orphan, ' Keep what it owns');
  const element = dialog(`Delete ${place.name}?`, [going, keep], h('button', { class: 'danger', onclick: async () => {
    const body = { kind: place.kind, ns: place.ns, name: place.name, uid: object.metadata.uid, propagation: orphan.checked ? 'Orphan' : 'Background' };
    if (await act(app, `${place.name} is deleted`, '/api/delete', body)) { element.close(); location.hash = links.table(place.kind); }
  } }, 'Delete'));
  try {
    const found = await get('/api/dependents', { kind: place.kind, ns: place.ns, name: place.name });
    const byKind = Object.entries(found.counts).sort((a, b) => b[1] - a[1]);
    replace(going,
      found.count === 0 ? h('p', {}, 'Nothing else goes with it.') : [h('p', {}, 'With it go ', h('strong', {}, count(found.count, 'object')), ': ', byKind.map(([kind, n]) => `${n} ${n === 1 ? kind : plural(kind)}`).join(', '), '.'),
        h('ul', { class: 'going-list' }, found.objects.slice(0, 30).map((one) => h('li', {}, h('span', { class: 'kind' }, one.kind), ' ', one.ns && one.ns !== place.ns ? `${one.ns}/` : '', one.name)), found.count > 30 && h('li', { class: 'kind' }, `and ${found.count - 30} more`))],
      found.stays.length > 0 && h('p', {}, `${count(found.stays.length, 'object')} stay, because somebody else owns them too.`),
      found.finalizers?.length > 0 && h('p', {}, 'It waits for ', found.finalizers.map((name, n) => [n > 0 && ', ', h('code', {}, name)]), ' before it goes.'));
    keep.hidden = found.count === 0 || place.kind === 'v1/namespaces' || /customresourcedefinitions$/.test(place.kind);
  } catch (error) { replace(going, h('p', { class: 'notice bad' }, error.message)); }
}

function drain(app, target) {
  const steps = h('ol', { class: 'steps', role: 'log', 'aria-label': 'Progress', tabIndex: 0 });
  const begin = h('button', { class: 'primary', onclick: () => go() }, 'Drain');
  const element = dialog(`Drain ${target.name}`, [h('p', {}, 'The node takes no new pods, and its pods are evicted. Those of DaemonSets stay; disruption budgets are kept.'), steps], begin);
  async function go() {
    begin.disabled = true;
    try {
      const answer = await open('/api/drain', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(target) });
      await lines(answer.body, (line) => {
        const step = JSON.parse(line);
        const words = { evicted: 'is evicted', stays: `stays: ${step.why}`, waits: `waits: ${step.why}`, failed: `failed: ${step.why}` };
        steps.append(h('li', { class: step.step }, step.step === 'done' ? h('strong', {}, `Done: ${count(step.evicted, 'pod')} evicted${step.failed ? `, ${step.failed} failed` : ''}.`) : [h('code', {}, step.pod), ' ', words[step.step]]));
        steps.scrollTop = steps.scrollHeight;
      });
    } catch (error) { steps.append(h('li', { class: 'failed' }, error.message)); }
    begin.remove();
    element.querySelector('.buttons button').textContent = 'Close';
  }
}
