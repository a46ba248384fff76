// Who may do this: everybody whom roles and bindings allow a request, and by which of them.

import { h, replace } from './dom.js';
import { get } from './session.js';
import { links, adjust } from './route.js';
import { count } from './format.js';

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'impersonate', 'bind', 'escalate'];

export function access(app, place) {
  const chosen = { verb: 'delete', kind: 'v1/pods', sub: '', ns: app.namespace || 'default', name: '', ...place.parameters };
  const result = h('div', { class: 'access-result', role: 'status' });
  const verb = h('select', { 'aria-label': 'Verb', onchange: () => choose('verb', verb.value) }, VERBS.map((name) => h('option', { selected: name === chosen.verb }, name)));
  const kind = h('select', { 'aria-label': 'Kind', onchange: () => choose('kind', kind.value) });
  const sub = h('select', { 'aria-label': 'Subresource', onchange: () => choose('sub', sub.value) });
  const ns = h('select', { 'aria-label': 'In namespace', onchange: () => choose('ns', ns.value) });
  const name = h('input', { type: 'text', class: 'filter plain', placeholder: 'any name', 'aria-label': 'Name', value: chosen.name, spellcheck: 'false', onchange: () => choose('name', name.value.trim()) });
  const element = h('div', { class: 'access' },
    h('form', { class: 'toolbar sentence', onsubmit: (event) => { event.preventDefault(); ask(); } }, h('span', {}, 'Who may'), verb, kind, sub, h('span', {}, 'named'), name, h('span', {}, 'in'), ns, h('span', {}, '?')), result);
  let asked = 0;

  function fill() {
    replace(kind, app.kinds.map((one) => h('option', { value: one.id, selected: one.id === chosen.kind }, one.group ? `${one.plural}.${one.group}` : one.plural)));
    const known = app.kind(chosen.kind);
    replace(sub, h('option', { value: '' }, '(the object)'), (known?.subresources ?? []).map((one) => h('option', { value: one, selected: one === chosen.sub }, `/${one}`)));
    const names = [...new Set([...(app.names ?? []), chosen.ns, 'default'].filter(Boolean))].sort();
    replace(ns, h('option', { value: '' }, 'all namespaces'), names.map((one) => h('option', { value: one, selected: one === chosen.ns }, one)));
    ns.disabled = known ? !known.namespaced : false;
  }

  function choose(field, value) {
    chosen[field] = value;
    if (field === 'kind') chosen.sub = '';
    adjust({ [field]: value, ...(field === 'kind' ? { sub: '' } : {}) });
    fill();
    ask();
  }

  async function ask() {
    const own = asked += 1;
    try {
      const found = await get('/api/access', { verb: chosen.verb, kind: chosen.kind, subresource: chosen.sub, ns: chosen.ns, name: chosen.name });
      if (own === asked) replace(result, answer(found));
    } catch (error) { if (own === asked) replace(result, h('p', { class: 'notice bad' }, error.message)); }
  }

  function answer(found) {
    const role = (one) => links.object(`rbac.authorization.k8s.io/v1/${one.role.kind === 'Role' ? 'roles' : 'clusterroles'}`, one.role.kind === 'Role' ? one.binding.ns : null, one.role.name);
    const binding = (one) => links.object(`rbac.authorization.k8s.io/v1/${one.binding.kind.toLowerCase()}s`, one.binding.ns, one.binding.name);
    return [
      found.notRead.length > 0 && h('p', { class: 'notice bad' }, 'Not everything could be read, so there may be more: ', h('span', { class: 'why' }, found.notRead.map((one) => one.why).join('; '))),
      found.who.length === 0 ? h('p', { class: 'empty' }, found.notRead.length ? 'Nobody is known.' : 'Nobody, as far as roles and bindings say.')
        : h('div', { class: 'table-box' }, h('table', {}, h('caption', { class: 'hidden' }, 'Subjects and why they may'),
          h('thead', {}, h('tr', {}, ['Who', 'By binding', 'To role', 'Which allows'].map((text) => h('th', { scope: 'col' }, text)))),
          h('tbody', {}, found.who.map((one) => h('tr', {}, h('td', {}, h('strong', {}, one.namespace ? `${one.namespace}/${one.name}` : one.name), ' ', h('span', { class: 'kind' }, one.kind)),
            h('td', {}, h('a', { href: binding(one) }, one.binding.name), ' ', h('span', { class: 'kind' }, one.binding.ns ? `in ${one.binding.ns}` : 'everywhere')), h('td', {}, h('a', { href: role(one) }, one.role.name)), h('td', {}, h('code', {}, one.rule))))))),
      h('p', { class: 'faint' }, found.who.length > 0 ? `${count(found.who.length, 'subject')}. ` : '', 'Members of system:masters may do everything. Authorizers other than RBAC are not asked.'),
    ];
  }

  fill();
  if (app.kinds.length) ask();
  return { title: 'Access', subtitle: 'who may do this', topics: [{ topic: 'overview' }], element, hear(message) { if (message.t === 'overview' && ns.options.length <= 2) fill(); }, redraw: fill, keys: { '/': () => kind.focus() } };
}
