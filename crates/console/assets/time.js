// The slider over the past: the page as it was at a revision, what changed since, and play.

import { h, replace, icon } from './dom.js';
import { get } from './session.js';
import { links } from './route.js';
import { clock, count } from './format.js';
import { differences, snapshots } from './snapshots.js';

export function timeBar(app) {
  let data = null; let at = null; let mark = null; let playing = null; let waiting = null; let comparing = ''; let moving = null;
  const slider = h('input', { type: 'range', 'aria-label': 'Revision', oninput: () => choose(Number(slider.value)) });
  const label = h('output', { class: 'moment', role: 'status' });
  const play = h('button', { class: 'quiet', 'aria-label': 'Play', title: 'Play', onclick: () => toggle() }, icon('play'));
  const changes = h('div', { class: 'changes' });
  const ticks = h('div', { class: 'ticks', 'aria-hidden': 'true' });
  const kept = snapshots(app);
  const element = h('section', { class: 'time-bar', 'aria-label': 'Time', hidden: true },
    h('div', { class: 'time-row' }, play,
      h('button', { class: 'quiet', 'aria-label': 'Previous change', onclick: () => step(-1) }, '‹'), h('div', { class: 'track' }, ticks, slider), h('button', { class: 'quiet', 'aria-label': 'Next change', onclick: () => step(1) }, '›'),
      label, h('button', { class: 'quiet', onclick: () => { mark = at ?? data?.newest; drawChanges(); }, title: 'Compare from here' }, 'Mark'), h('button', { class: 'quiet', onclick: () => now() }, 'Now'), h('button', { class: 'quiet', 'aria-label': 'Close time', onclick: () => close() }, icon('close'))),
    changes, kept.element);

  async function open() {
    element.hidden = false;
    kept.read();
    await read();
    // At the present, the end of the slider moves along.
    clearInterval(moving);
    moving = setInterval(() => { if (at === null && !document.hidden) read(); }, 2000);
    slider.focus();
  }

  async function read() {
    try { data = await get('/api/time'); } catch (error) { app.tell(error.message, 'bad'); return; }
    slider.min = String(data.oldest); slider.max = String(data.newest);
    slider.value = String(at ?? data.newest);
    const span = Math.max(1, data.newest - data.oldest);
    replace(ticks, data.moments.slice(-400).map((moment) => h('i', { class: moment.change, style: { left: `${((moment.revision - data.oldest) / span) * 100}%` } })));
    draw();
  }

  function draw() {
    const revision = at ?? data.newest;
    const last = data.moments.filter((moment) => moment.revision <= revision).pop();
    replace(label, at === null ? 'now' : `revision ${at.toLocaleString('en')}`, last && h('time', {}, clock(last.at)));
    element.classList.toggle('past', at !== null);
    drawChanges();
  }

  // What was seen since, or, from a mark on, what the server's history says: that is exact, whoever looked.
  function drawChanges() {
    if (!data || (at === null && mark === null)) { replace(changes); return; }
    if (mark !== null) { compareFromMark(); return; }
    const between = data.moments.filter((moment) => moment.revision > at && moment.revision <= data.newest);
    replace(changes, h('p', {}, `Since then: ${count(between.length, 'change')} seen`),
      h('ol', {}, between.slice(-60).reverse().map((moment) => {
        const [ns, name] = moment.key.includes('/') ? moment.key.split('/') : [null, moment.key];
        return h('li', { class: moment.change }, h('button', { class: 'quiet', onclick: () => choose(moment.revision) }, `${moment.revision}`), h('time', {}, clock(moment.at, true)), h('span', { class: 'change' }, moment.change), h('a', { href: links.object(moment.kind, ns, name) }, `${app.kind(moment.kind)?.kind ?? moment.kind} ${moment.key}`));
      })));
  }

  async function compareFromMark() {
    const [from, to] = [mark, at ?? data.newest].sort((a, b) => a - b);
    const heading = h('p', {}, `Between revision ${from.toLocaleString('en')} and ${to.toLocaleString('en')}: `, h('span', {}, 'reading…'), h('button', { class: 'quiet', onclick: () => { mark = null; comparing = ''; drawChanges(); } }, 'Remove the mark'));
    if (comparing === `${from} ${to}`) return;
    comparing = `${from} ${to}`;
    replace(changes, heading);
    if (from === to) { heading.children[0].textContent = 'the same moment. Move the slider.'; return; }
    try {
      const found = await get('/api/changes', { from, to });
      if (comparing !== `${from} ${to}` || mark === null) return;
      heading.children[0].textContent = `${found.added} added, ${found.changed} changed, ${found.deleted} deleted`;
      replace(changes, heading, differences(app, found, { from, to }));
    } catch (error) { replace(changes, heading, h('p', { class: 'notice bad' }, error.message)); }
  }

  function choose(revision) {
    at = revision >= data.newest ? null : Math.max(revision, data.oldest);
    slider.value = String(at ?? data.newest);
    draw();
    // A slider that is dragged passes many revisions; only where it rests is read.
    clearTimeout(waiting);
    waiting = setTimeout(() => app.setAt(at), 60);
  }

  function step(by) {
    const here = at ?? data.newest;
    const revisions = data.moments.map((moment) => moment.revision);
    // Before anything was seen, steps are single revisions.
    const next = by < 0 ? revisions.filter((r) => r < here).pop() ?? here - 1 : revisions.find((r) => r > here) ?? here + 1;
    choose(Math.min(Math.max(next, data.oldest), data.newest));
    return at !== null;
  }

  function toggle() {
    if (playing) { clearInterval(playing); playing = null; }
    else {
      if (at === null) choose(data.moments[0]?.revision ?? data.oldest);
      playing = setInterval(() => { if (!step(1)) toggle(); }, 500);
    }
    replace(play, icon(playing ? 'pause' : 'play'));
    play.setAttribute('aria-label', playing ? 'Pause' : 'Play');
  }

  function now() { mark = null; comparing = ''; choose(Infinity); read(); }
  function close() { clearInterval(moving); if (playing) toggle(); element.hidden = true; if (at !== null) { at = null; app.setAt(null); } }

  return { element, open, close, toggle: () => (element.hidden ? open() : close()), step, isOpen: () => !element.hidden };
}
