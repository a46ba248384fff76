// The operator's mind: every reconcile with its causes, what it wrote, and how it ended.

import { h, replace, dot } from './dom.js';
import { links } from './route.js';
import { clock, duration, count } from './format.js';
import { get } from './session.js';
import { order } from './object.js';
import * as yaml from './yaml.js';

const WORDS = {
  initial: 'was there at the start', added: 'is new', deleted: 'is gone', resync: 'time has passed', retry: 'the last run failed',
  requeue: 'it asked to run again', asked: 'somebody asked', takenOver: 'taken over from another replica',
};

export function mind(app) {
  const body = h('div', { class: 'mind' }, h('p', { class: 'empty' }, 'Asking the operators…'));
  const seen = new Map();
  let operators = []; let followed = null; let only = '';
  const diffs = new Map();
  const draw = () => replace(body, content());

  function content() {
    if (!operators.length) {
      return h('div', { class: 'empty' }, h('p', {}, 'No operator is known.'), h('p', {}, 'Start the console with ', h('code', {}, '--operator HOST:PORT'), ', the metrics address of an operator that is built with Kubewright. Operators that ', h('code', {}, 'kubewright deploy'), ' put into the cluster are found by their Service.'));
    }
    const all = [...seen.values()].sort((a, b) => a.started < b.started ? -1 : a.started > b.started ? 1 : a.id - b.id);
    const shown = all.filter((run) => !only || `${run.controller} ${run.key}`.includes(only));
    return [
      operators.filter((operator) => operator.error).map((operator) => h('p', { class: 'notice bad' }, `${operator.name}: ${operator.error}`)),
      operators.flatMap((operator) => operator.hot ?? []).map((loop) => h('p', { class: 'notice bad', role: 'alert' }, h('strong', {}, 'Hot loop: '), `${loop.controller} ran ${loop.key} ${count(loop.runs, 'time')} within ${loop.seconds} s; ${loop.why}.`)),
      h('div', { class: 'tiles' }, controllers(all).map((one) => h('button', { class: `tile ${one.failed ? 'bad' : 'plain'}`, 'aria-pressed': String(only === one.name), onclick: () => { only = only === one.name ? '' : one.name; draw(); } },
        h('span', { class: 'label' }, one.name), h('span', { class: 'number' }, String(one.runs)), h('span', { class: 'note' }, `${one.runs === 1 ? 'reconcile' : 'reconciles'}, ${count(one.writes, 'write')}, ${one.failed ? count(one.failed, 'failure') : 'no failure'}, ${duration(one.middle)} in the middle`), queue(one.name)))),
      h('div', { class: 'columns wide-first' },
        h('section', {}, h('h2', {}, 'Reconciles'), shown.length ? h('ol', { class: 'runs' }, shown.slice(-200).reverse().map((run) => line(run, all))) : h('p', { class: 'empty' }, 'None yet.')),
        h('section', { class: 'followed' }, h('h2', {}, 'Follow a change'), followed ? story(followed, all) : h('p', { class: 'empty' }, 'Choose a reconcile to see what led to it and what followed.'))),
    ];
  }

  function follow(run) {
    followed = run;
    diffs.clear();
    draw();
    // Where the columns are below each other, the story is far down.
    if (matchMedia('(max-width: 860px)').matches) body.querySelector('.followed')?.scrollIntoView();
  }

  // What waits in the queue of a controller, as its metrics say.
  function queue(controller) {
    const found = operators.map((operator) => operator.queues?.[controller]).find(Boolean);
    if (!found) return null;
    return h('span', { class: 'note queue' }, found.depth ? `${count(found.depth, 'key')} waiting` : 'nothing waiting', found.retries > 0 && `, ${count(found.retries, 'retry', 'retries')}`, found.longest > 1 && `, one runs since ${found.longest.toFixed(0)} s`);
  }

  function line(run, all) {
    return h('li', { class: isBad(run) ? 'bad' : '' },
      h('button', { 'aria-pressed': String(followed === run), onclick: () => { follow(run); } },
        h('time', {}, clock(Date.parse(run.started), true)), h('span', { class: 'name' }, run.key), h('span', { class: 'because' }, because(run)),
        h('span', { class: 'outcome' }, dot(isBad(run) ? 'bad' : 'good', run.ended), run.ended.length > 60 ? `${run.ended.slice(0, 60)}…` : run.ended, h('span', { class: 'took' }, duration(run.microseconds)), run.writes.length > 0 && h('span', { class: 'writes' }, count(run.writes.length, 'write')), again(run, all))));
  }

  const led = (run, all) => all.filter((other) => other !== run && other.causes.some((cause) => cause.resourceVersion && written(run).some((write) => write.resourceVersion === cause.resourceVersion)));

  // One picture: the event, the reconcile, its writes with what they changed, and the reconciles that followed from them.
  function story(run, all) {
    return h('ol', { class: 'story', 'aria-label': 'From the cause to what followed' },
      run.causes.map((cause) => {
        const before = all.find((other) => other !== run && written(other).some((write) => write.resourceVersion && write.resourceVersion === cause.resourceVersion));
        return h('li', { class: 'cause' }, h('span', { class: 'label' }, 'event'), h('div', {}, h('p', {}, sentence(cause), ' ', objectLink(cause)),
          before && h('button', { class: 'quiet link', onclick: () => { follow(before); } }, `written by #${before.id} of ${before.controller}`)));
      }),
      h('li', { class: isBad(run) ? 'run bad' : 'run' }, h('span', { class: 'label' }, 'reconcile'), h('div', {}, h('strong', {}, `#${run.id} ${run.key}`), h('p', { class: 'why' }, `${run.controller}, ${clock(Date.parse(run.started), true)}, took ${duration(run.microseconds)}: ${run.ended}`), again(run, all), reads(run))),
      written(run).map((write) => h('li', { class: 'write' }, h('span', { class: 'label' }, write.verb), h('div', {}, writeLink(write), changeOf(write)))),
      following(run, all, 0, new Set([run])));
  }

  // What followed, and what followed from that.
  function following(run, all, depth, seen) {
    const next = led(run, all).filter((other) => !seen.has(other));
    if (!next.length) return depth ? null : h('li', { class: 'end' }, h('span', { class: 'label' }, ''), h('div', { class: 'why' }, 'Nothing else was reconciled because of it.'));
    return next.slice(0, 12).map((other) => {
      seen.add(other);
      return [h('li', { class: 'run next', style: { '--depth': String(depth) } }, h('span', { class: 'label' }, depth ? 'and then' : 'led to'), h('div', {}, h('button', { class: 'quiet link', onclick: () => { follow(other); } }, `#${other.id} ${other.key} of ${other.controller}`), h('p', { class: 'why' }, `${because(other)}: ${other.ended}`, written(other).length > 0 && `, ${count(written(other).length, 'write')}`))),
        depth < 4 && following(other, all, depth + 1, seen)];
    });
  }

  function reads(run) {
    if (!run.reads?.length) return null;
    return h('p', { class: 'why' }, `read ${run.reads.slice(0, 8).join(', ')}${run.reads.length > 8 ? ` and ${run.reads.length - 8} more` : ''}`);
  }

  function objectLink(cause) {
    const kind = cause.kind && app.kinds.find((known) => known.kind === cause.kind);
    if (!kind || !cause.object) return null;
    const [ns, name] = cause.object.includes('/') ? cause.object.split('/') : [null, cause.object];
    return h('a', { href: links.object(kind.id, ns, name) }, 'open');
  }

  function writeLink(write) {
    const kind = app.resource(write.resource);
    const [ns, name] = write.key.includes('/') ? write.key.split('/') : [null, write.key];
    return kind ? h('a', { href: links.object(kind.id, ns, name) }, `${kind.kind} ${write.key}`) : `${write.resource} ${write.key}`;
  }

  // What a write changed, read from the server's history when somebody asks.
  function changeOf(write) {
    const kind = app.resource(write.resource);
    if (!kind || !write.resourceVersion) return null;
    const place = `${write.resource} ${write.key} ${write.resourceVersion}`;
    const box = h('details', { open: diffs.has(place), ontoggle: () => { if (box.open && !diffs.has(place)) read(); } }, h('summary', {}, `what it changed, revision ${write.resourceVersion}`), diffs.get(place));
    async function read() {
      const [ns, name] = write.key.includes('/') ? write.key.split('/') : [null, write.key];
      let view;
      try {
        const { before, after } = await get('/api/change', { kind: kind.id, ns, name, to: write.resourceVersion });
        view = yaml.diffView(before ? yaml.text(order(before)) : '', after ? yaml.text(order(after)) : '');
      } catch (error) { view = h('p', { class: 'notice bad' }, error.message); }
      diffs.set(place, view);
      box.append(view);
    }
    return box;
  }

  // When a key runs again by itself, unless it has since.
  function again(run, all) {
    const found = /^requeue after ([\d.]+)(ns|µs|ms|s|m|h)?/.exec(run.ended);
    if (!found) return null;
    const scale = { ns: 1e-6, 'µs': 1e-3, ms: 1, s: 1e3, m: 6e4, h: 3.6e6 }[found[2] ?? 's'];
    const at = Date.parse(run.started) + run.microseconds / 1000 + Number(found[1]) * scale;
    const since = all.some((other) => other.controller === run.controller && other.key === run.key && other.id > run.id);
    if (since || at < Date.now()) return null;
    return h('span', { class: 'again' }, `next run at ${clock(at)}`);
  }

  return {
    title: 'Operators',
    subtitle: 'why each reconcile ran',
    topics: [{ topic: 'mind' }],
    element: body,
    hear(message) {
      if (message.t !== 'mind') return;
      operators = message.operators;
      for (const operator of operators) {
        for (const [controller, runs] of Object.entries(operator.controllers ?? {})) {
          for (const run of runs) seen.set(`${operator.name}/${controller}/${run.id}/${run.started}`, { ...run, controller });
        }
      }
      if (followed) followed = [...seen.values()].find((run) => run.id === followed.id && run.controller === followed.controller) ?? followed;
      draw();
    },
    redraw: draw,
  };
}

export const written = (run) => run.written ?? run.writes.map((text) => { const [verb, resource, key] = text.split(' '); return { verb, resource, key }; });
const isBad = (run) => !/^(done|requeue)/.test(run.ended);

function controllers(runs) {
  const byName = new Map();
  for (const run of runs) {
    const one = byName.get(run.controller) ?? { name: run.controller, runs: 0, writes: 0, failed: 0, times: [] };
    one.runs += 1; one.writes += run.writes.length; one.failed += isBad(run) ? 1 : 0; one.times.push(run.microseconds);
    byName.set(run.controller, one);
  }
  return [...byName.values()].map((one) => ({ ...one, middle: one.times.sort((a, b) => a - b)[Math.floor(one.times.length / 2)] }));
}

export function because(run) {
  const [first, ...rest] = run.causes;
  if (!first) return 'no known cause';
  return sentence(first) + (rest.length ? ` and ${rest.length} more` : '');
}

export function sentence(cause) {
  const name = cause.object?.split('/').pop() ?? '';
  const of = `${cause.kind ?? ''} ${name}`.trim();
  if (cause.trigger === 'updated') return `${cause.fields.slice(0, 4).join(', ')}${cause.fields.length > 4 ? '…' : ''} of ${of} changed`;
  if (cause.trigger === 'more') return `${cause.count} more causes`;
  return of ? `${of} ${WORDS[cause.trigger] ?? cause.trigger}` : WORDS[cause.trigger] ?? cause.trigger;
}
