// The page: the frame around the views, and what they share.

import { h, replace, icon } from './dom.js';
import { begin, get } from './session.js';
import { subscribe } from './stream.js';
import { parse, links } from './route.js';
import { plural } from './format.js';
import { listen } from './keys.js';
import { palette, help } from './palette.js';
import { overview } from './overview.js';
import { table } from './table.js';
import { object } from './object.js';
import { mind } from './mind.js';
import { access } from './access.js';
import { timeBar } from './time.js';

const VIEWS = { overview, table, object, mind, access };
const SECTIONS = [
  ['Workloads', ['pods', 'deployments', 'statefulsets', 'daemonsets', 'replicasets', 'jobs', 'cronjobs', 'horizontalpodautoscalers', 'poddisruptionbudgets']],
  ['Network', ['services', 'endpointslices', 'ingresses', 'networkpolicies', 'ingressclasses']],
  ['Configuration', ['configmaps', 'secrets', 'resourcequotas', 'limitranges', 'priorityclasses']],
  ['Storage', ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses']],
  ['Cluster', ['nodes', 'namespaces', 'events', 'customresourcedefinitions', 'leases']],
  ['Access', ['serviceaccounts', 'roles', 'rolebindings', 'clusterroles', 'clusterrolebindings']],
];
const BUILT_IN = /^$|^[a-z]+$|\.k8s\.io$/;

const app = {
  kinds: [], namespace: '', at: null, view: null, place: null, about: {},
  kind: (id) => app.kinds.find((kind) => kind.id === id),
  setNamespace(namespace) { app.namespace = namespace; namespaces(); app.view?.redraw?.(); },
  setAt(revision) { app.at = revision; document.body.classList.toggle('past', revision !== null); resubscribe(); },
  openTime: () => app.time.open(),
  tell(text, tone) {
    const toast = h('div', { class: `toast ${tone ?? ''}`, role: tone === 'bad' ? 'alert' : 'status' }, text);
    toasts.append(toast);
    if (toasts.childElementCount > 3) toasts.firstElementChild.remove();
    setTimeout(() => toast.remove(), tone === 'bad' ? 8000 : 4000);
  },
  // The kind of a resource as operators name it, such as deployments.apps.
  resource: (name) => { const [plural_, ...group] = name.split('.'); return app.kinds.find((kind) => kind.plural === plural_ && kind.group === group.join('.')); },
  kindOf: (group, kind) => app.kinds.find((known) => known.group === group && known.kind === kind) ?? app.kinds.find((known) => known.kind === kind),
};
globalThis.kubewright = app;

const nav = h('nav', { class: 'side', 'aria-label': 'Kinds' });
const title = h('h1', {});
const subtitle = h('span', { class: 'subtitle' });
const back = h('a', { class: 'back', 'aria-label': 'Back', hidden: true }, icon('back'));
const connection = h('span', { class: 'connection', role: 'status' });
const choice = h('select', { 'aria-label': 'Namespace', onchange: () => app.setNamespace(choice.value) });
const main = h('main', { id: 'main', tabIndex: -1 });
const toasts = h('div', { class: 'toasts', 'aria-live': 'polite' });
const who = h('span', { class: 'who' });

function frame() {
  app.palette = palette(app);
  app.help = help();
  app.time = timeBar(app);
  const menu = h('button', { class: 'quiet menu', 'aria-label': 'Menu', 'aria-expanded': 'false', onclick: () => { const open = document.body.classList.toggle('menu-open'); menu.setAttribute('aria-expanded', String(open)); } }, icon('menu'));
  replace(document.getElementById('app'),
    h('header', { class: 'top' }, menu, h('a', { class: 'brand', href: links.overview(), 'aria-label': 'Kubewright: overview' }, h('img', { src: '/icon.svg', alt: '', width: '22', height: '22' }), h('span', {}, 'Kubewright')), who,
      h('span', { class: 'grow' }), connection, choice,
      h('button', { class: 'quiet go', onclick: () => app.palette.open(), title: 'Go to (Ctrl K)' }, icon('search'), h('span', {}, 'Go to'), h('kbd', {}, 'Ctrl K')),
      h('button', { class: 'quiet', 'aria-label': 'Time', title: 'Time (t)', onclick: () => app.time.toggle() }, icon('clock')),
      h('button', { class: 'quiet', 'aria-label': 'Light or dark', title: 'Light or dark', onclick: theme }, icon('moon')),
      h('button', { class: 'quiet keys', 'aria-label': 'Keys', title: 'Keys (?)', onclick: () => app.help.showModal() }, icon('keyboard'))),
    nav, h('div', { class: 'stage' }, h('div', { class: 'heading' }, back, h('div', {}, title, subtitle)), main, app.time.element), app.palette.element, app.help, toasts);
  namespaces();
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('kubewright.theme', document.documentElement.dataset.theme);
}

function namespaces() {
  const names = [...new Set([...(app.names ?? []), app.namespace].filter(Boolean))].sort();
  replace(choice, h('option', { value: '' }, 'All namespaces'), names.map((name) => h('option', { value: name, selected: name === app.namespace }, name)));
  choice.value = app.namespace;
}

function side() {
  const used = new Set();
  const item = (kind) => {
    used.add(kind.id);
    return h('li', {}, h('a', { href: links.table(kind.id), 'aria-current': app.place?.kind === kind.id ? 'page' : null, title: kind.id }, plural(kind.kind)));
  };
  const find = (name) => app.kinds.find((kind) => kind.plural === name && BUILT_IN.test(kind.group) && !kind.group.startsWith('events'));
  const custom = new Map();
  for (const kind of app.kinds) if (!BUILT_IN.test(kind.group)) custom.set(kind.group, [...(custom.get(kind.group) ?? []), kind]);
  const part = (name, kinds, open) => kinds.length > 0 && h('details', { open: open || kinds.some((kind) => kind.id === app.place?.kind) }, h('summary', {}, name), h('ul', {}, kinds.map(item)));
  replace(nav,
    h('ul', { class: 'first' }, h('li', {}, h('a', { href: links.overview(), 'aria-current': app.place?.view === 'overview' ? 'page' : null }, icon('home'), 'Overview')), h('li', {}, h('a', { href: links.mind(), 'aria-current': app.place?.view === 'mind' ? 'page' : null }, icon('mind'), 'Operators')), h('li', {}, h('a', { href: links.access(), 'aria-current': app.place?.view === 'access' ? 'page' : null }, icon('key'), 'Access'))),
    [...custom.entries()].map(([group, kinds]) => part(group, kinds, custom.size <= 6)),
    SECTIONS.map(([name, plurals], n) => part(name, plurals.map(find).filter(Boolean), n < 2)),
    part('Other', app.kinds.filter((kind) => !used.has(kind.id) && BUILT_IN.test(kind.group) && !kind.group.startsWith('events')), false));
}

function hear(message) {
  if (message.t === 'kinds') {
    const first = app.kinds.length === 0;
    app.kinds = message.kinds;
    if (message.trouble) app.tell(message.trouble, 'bad');
    side();
    // The first view was made before its kind was known.
    if (first && app.kinds.length) show(false);
    return;
  }
  if (message.t === 'overview') { app.names = Object.keys(message.namespaces); namespaces(); }
  app.view?.hear(message);
}

function resubscribe() {
  subscribe([{ topic: 'kinds' }, ...app.view.topics], app.at, hear, (state) => {
    connection.textContent = { live: app.at === null ? 'live' : 'past', lost: 'reconnecting…', over: 'ended' }[state];
    connection.className = `connection ${state}`;
  });
}

function show(focus = true) {
  const place = parse();
  app.view?.close?.();
  app.place = place;
  app.view = (VIEWS[place.view] ?? overview)(app, place);
  title.textContent = app.view.title;
  document.title = `${app.view.title} · ${app.about.cluster ?? 'Kubewright'}`;
  subtitle.textContent = app.view.subtitle ?? '';
  back.hidden = !app.view.back;
  if (app.view.back) back.href = app.view.back;
  main.replaceChildren(app.view.element);
  main.className = `view-${place.view}`;
  document.body.classList.remove('menu-open');
  side();
  resubscribe();
  if (focus) main.focus({ preventScroll: true });
}

function over() {
  replace(document.getElementById('app'), h('div', { class: 'door' }, h('img', { src: '/icon.svg', alt: '', width: '48', height: '48' }), h('h1', {}, 'Kubewright console'),
    h('p', {}, 'This tab has no session. Open the link that the console printed in the terminal; it begins with ', h('code', {}, `${location.origin}/#ticket=`), '.')));
}

async function start() {
  const kept = localStorage.getItem('kubewright.theme');
  if (kept) document.documentElement.dataset.theme = kept;
  addEventListener('session-over', over);
  if (!await begin()) { over(); return; }
  frame();
  listen(app);
  addEventListener('hashchange', () => { if (/^#ticket=/.test(location.hash)) location.reload(); else show(); });
  show(false);
  try {
    app.about = await get('/api/about');
    replace(who, h('span', { class: 'cluster' }, app.about.cluster), app.about.user && h('span', { class: 'user' }, app.about.user), app.about.readOnly && h('span', { class: 'badge' }, 'read-only'));
    who.title = `Kubernetes ${app.about.version ?? ''}`;
    document.title = `${app.view.title} · ${app.about.cluster}`;
  } catch (error) { if (error.status !== 401) app.tell(error.message, 'bad'); }
}

start();
