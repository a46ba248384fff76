// The owner tree: nested lists with lines between owners and what they own.

import { h, dot } from './dom.js';
import { links } from './route.js';
import { age } from './format.js';

export function tree(data, selected) {
  if (!data) return h('p', { class: 'empty' }, 'Not known.');
  return h('div', { class: 'tree-box' },
    data.missing.map((owner) => h('p', { class: 'notice' }, `Its owner ${owner.kind} ${owner.name} is not there, or you may not see it.`)),
    h('ul', { class: 'tree', role: 'tree', 'aria-label': 'Owners and what they own' }, node(data.root, selected, 1)),
    data.more && h('p', { class: 'notice' }, 'There are more objects than are shown here.'));
}

function node(item, selected, level) {
  const isSelected = item.uid === selected;
  return h('li', { role: 'treeitem', 'aria-level': String(level), 'aria-selected': String(isSelected), 'aria-expanded': item.children.length ? 'true' : null },
    h('a', { class: isSelected ? 'leaf selected' : 'leaf', href: links.object(item.id, item.ns, item.name) },
      dot(item.health, item.why), h('span', { class: 'kind' }, item.kind), h('span', { class: 'name' }, item.name),
      item.why && h('span', { class: 'why' }, item.why), h('time', { dateTime: item.created }, age(item.created))),
    item.children.length > 0 && h('ul', { role: 'group' }, item.children.map((child) => node(child, selected, level + 1))));
}
