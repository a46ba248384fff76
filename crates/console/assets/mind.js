// The operator's mind: every reconcile with its causes, what it wrote, and how it ended.

import { h, replace, dot } from './dom.js';
import { links } from './route.js';
import { clock, duration, count } from './format.js';

const WORDS = {
  initial: 'was there at the start', added: 'is new', deleted: 'is gone', resync: 'time has passed', retry: 'the last run failed',
  requeue: 'it asked to run again', asked: 'somebody asked', takenOver: 'taken over from another replica',
};

export function mind(app) {
  const body = h('div', { class: 'mind' }, h('p', { class: 'empty' }, 'Asking the operators…'));
  const seen = new Map();
  let operators = []; let followed = null; let only = '';
  const draw = () => replace(body, content());

  function content() {
    if (!operators.length) {
      return h('div', { class: 'empty' }, h('p', {}, 'No operator is known.'), h('p', {}, 'Start the console with ', h('code', {}, '--operator HOST:PORT'), ', the metrics address of an operator that is built with Kubewright.'));
    }
    const all = [...seen.values()].sort((a, b) => a.started < b.started ? -1 : a.started > b.started ? 1 : a.id - b.id);
    const shown = all.filter((run) => !only || `${run.controller} ${run.key}`.includes(only));
    return [
      operators.filter((operator) => operator.error).map((operator) => h('p', { class: 'notice bad' }, `${operator.name}: ${operator.error}`)),
      h('div', { class: 'tiles' }, controllers(all).map((one) => h('button', { class: `tile ${one.failed ? 'bad' : 'plain'}`, 'aria-pressed': String(only === one.name), onclick: () => { only = only === one.name ? '' : one.name; draw(); } },
        h('span', { class: 'label' }, one.name), h('span', { class: 'number' }, String(one.runs)), h('span', { class: 'note' }, `${count(one.writes, 'write')}, ${one.failed ? count(one.failed, 'failure') : 'no failure'}, ${duration(one.middle)} in the middle`)))),
      h('div', { class: 'columns wide-first' },
        h('section', {}, h('h2', {}, 'Reconciles'), shown.length ? h('ol', { class: 'runs' }, shown.slice(-200).reverse().map((run) => line(run, all))) : h('p', { class: 'empty' }, 'None yet.')),
        h('section', {}, h('h2', {}, 'Follow a change'), followed ? story(followed, all) : h('p', { class: 'empty' }, 'Choose a reconcile to see what led to it and what followed.'))),
    ];
  }

  function line(run) {
    return h('li', { class: isBad(run) ? 'bad' : '' },
      h('button', { 'aria-pressed': String(followed === run), onclick: () => { followed = run; draw(); } },
        h('time', {}, clock(Date.parse(run.started), true)), h('span', { class: 'name' }, run.key), h('span', { class: 'because' }, because(run)),
        h('span', { class: 'outcome' }, dot(isBad(run) ? 'bad' : 'good', run.ended), run.ended.length > 60 ? `${run.ended.slice(0, 60)}…` : run.ended, h('span', { class: 'took' }, duration(run.microseconds)), run.writes.length > 0 && h('span', { class: 'writes' }, count(run.writes.length, 'write')))));
  }

  // What led to a reconcile and what came of it, one step below the other.
  function story(run, all) {
    const before = run.causes.map((cause) => all.find((other) => other !== run && written(other).some((write) => write.resourceVersion && write.resourceVersion === cause.resourceVersion)));
    const led = all.filter((other) => other !== run && other.causes.some((cause) => cause.resourceVersion && written(run).some((write) => write.resourceVersion === cause.resourceVersion)));
    return h('ol', { class: 'story' },
      run.causes.map((cause, n) => h('li', { class: 'cause' }, h('span', { class: 'label' }, 'cause'), h('div', {}, sentence(cause), app.linkOf?.(cause.kind, cause.object),
        before[n] && h('button', { class: 'quiet', onclick: () => { followed = before[n]; draw(); } }, `written by #${before[n].id} of ${before[n].controller}`)))),
      h('li', { class: isBad(run) ? 'run bad' : 'run' }, h('span', { class: 'label' }, 'reconcile'), h('div', {}, h('strong', {}, `#${run.id} ${run.key}`), h('p', { class: 'why' }, `${run.controller}, ${clock(Date.parse(run.started), true)}, took ${duration(run.microseconds)}: ${run.ended}`), run.next && h('p', { class: 'why' }, `runs again ${run.next}`))),
      written(run).map((write) => h('li', { class: 'write' }, h('span', { class: 'label' }, write.verb), h('div', {}, app.linkResource?.(write.resource, write.key) ?? `${write.resource} ${write.key}`, write.resourceVersion && app.changeOf && h('details', { ontoggle: (event) => { if (event.target.open && !event.target.dataset.read) { event.target.dataset.read = '1'; app.changeOf(write).then((view) => event.target.append(view)); } } }, h('summary', {}, `what changed, revision ${write.resourceVersion}`))))),
      led.map((other) => h('li', { class: 'run next' }, h('span', { class: 'label' }, 'led to'), h('div', {}, h('button', { class: 'quiet', onclick: () => { followed = other; draw(); } }, `#${other.id} ${other.key} of ${other.controller}`), h('p', { class: 'why' }, because(other))))),
      !led.length && h('li', { class: 'end' }, h('span', { class: 'label' }, ''), h('div', { class: 'why' }, 'Nothing else was reconciled because of it.')));
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
