// The palette: go to any kind by a few letters; and the list of keys.

import { h, replace } from './dom.js';
import { links } from './route.js';
import { plural } from './format.js';

export function palette(app) {
  const input = h('input', { type: 'text', 'aria-label': 'Go to a kind', placeholder: 'Go to a kind, or a view…', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', autocomplete: 'off', spellcheck: 'false', oninput: () => draw(0), onkeydown: (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); draw(at + (event.key === 'ArrowDown' ? 1 : -1)); }
    if (event.key === 'Enter') { event.preventDefault(); go(found[at]); }
  } });
  const list = h('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Kinds' });
  const dialog = h('dialog', { class: 'palette', 'aria-label': 'Go to', onclick: (event) => { if (event.target === dialog) dialog.close(); } }, input, list);
  let found = []; let at = 0;

  function entries() {
    return [
      { name: 'Overview', detail: '', href: links.overview(), words: 'overview home' },
      { name: 'Operators', detail: 'reconciles and their causes', href: links.mind(), words: 'operators reconciles mind causes' },
      { name: 'Access', detail: 'who may do this', href: links.access(), words: 'access rbac who may' },
      ...app.kinds.map((kind) => ({ name: plural(kind.kind), detail: kind.group || 'core', href: links.table(kind.id), words: [kind.kind, kind.plural, kind.group, ...kind.shortNames].join(' ').toLowerCase(), short: kind.shortNames })),
    ];
  }

  function draw(next) {
    const wanted = input.value.trim().toLowerCase();
    const score = (entry) => (entry.short?.includes(wanted) ? 0 : entry.name.toLowerCase().startsWith(wanted) ? 1 : 2);
    found = entries().filter((entry) => !wanted || entry.words.includes(wanted) || entry.name.toLowerCase().includes(wanted)).sort((a, b) => score(a) - score(b)).slice(0, 12);
    at = Math.min(Math.max(0, next), Math.max(0, found.length - 1));
    replace(list, found.map((entry, n) => h('li', { role: 'option', id: `palette-${n}`, 'aria-selected': String(n === at), onclick: () => go(entry) }, h('span', {}, entry.name), h('span', { class: 'group' }, entry.detail))), !found.length && h('li', { class: 'empty' }, 'Nothing by that name.'));
    input.setAttribute('aria-activedescendant', `palette-${at}`);
  }

  function go(entry) {
    if (!entry) return;
    dialog.close();
    location.hash = entry.href;
  }

  return { element: dialog, open() { input.value = ''; draw(0); dialog.showModal(); input.focus(); } };
}

const KEYS = [
  ['/', 'Filter the table'], ['j  k', 'Next, previous row'], ['Enter', 'Open the row'], ['Esc', 'Back'], ['w', 'More columns'],
  ['g o', 'Overview'], ['g p', 'Pods'], ['g d', 'Deployments'], ['g s', 'Services'], ['g n', 'Nodes'], ['g e', 'Events'], ['g c', 'ConfigMaps'], ['g m', 'Operators and why they reconcile'], ['g a', 'Access: who may do this'],
  ['Ctrl K', 'Go to any kind'], ['t', 'Time: look at the past'], ['s o y f l', 'On an object: summary, owners, YAML, fields, logs'], ['e x', 'On an object: edit, terminal'], ['?', 'These keys'],
];

export function help() {
  const dialog = h('dialog', { class: 'help', 'aria-label': 'Keys', onclick: (event) => { if (event.target === dialog) dialog.close(); } },
    h('h2', {}, 'Keys'), h('dl', {}, KEYS.map(([key, text]) => h('div', {}, h('dt', {}, key.split(' ').filter(Boolean).map((part) => h('kbd', {}, part))), h('dd', {}, text)))),
    h('button', { onclick: () => dialog.close() }, 'Close'));
  return dialog;
}
