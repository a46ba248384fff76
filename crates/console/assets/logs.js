// Logs of a container that follow what it writes.

import { h, replace, printable } from './dom.js';
import { open } from './session.js';
import { lines } from './stream.js';

const KEPT = 5000;

export function logs(namespace, name, containers) {
  let end = null;
  let following = true;
  const text = h('pre', { class: 'log', tabIndex: 0, role: 'log', 'aria-label': 'log', onscroll: () => {
    following = text.scrollTop + text.clientHeight > text.scrollHeight - 24;
  } });
  const status = h('span', { class: 'tally', role: 'status' });
  const choice = h('select', { 'aria-label': 'Container', onchange: () => start() }, containers.map((container) => h('option', {}, container)));
  const previous = h('input', { type: 'checkbox', onchange: () => start() });
  const search = h('input', { type: 'search', class: 'filter', placeholder: 'Only lines with…', 'aria-label': 'Only lines with', oninput: () => filter() });
  const element = h('div', { class: 'logs' },
    h('div', { class: 'toolbar' }, choice, h('div', { class: 'search' }, search), h('label', { class: 'check' }, previous, ' Previous run'), status), text);

  function show(line) {
    const row = h('div', {}, line);
    row.hidden = Boolean(search.value) && !line.toLowerCase().includes(search.value.toLowerCase());
    text.append(row);
    if (text.childElementCount > KEPT) text.firstElementChild.remove();
    if (following) text.scrollTop = text.scrollHeight;
  }

  function filter() {
    const wanted = search.value.toLowerCase();
    for (const row of text.children) row.hidden = Boolean(wanted) && !row.textContent.toLowerCase().includes(wanted);
  }

  async function start() {
    end?.abort();
    const own = new AbortController();
    end = own;
    replace(text);
    status.textContent = 'following';
    const query = new URLSearchParams({ ns: namespace, name, container: choice.value, follow: previous.checked ? '' : 'true', tail: '1000', previous: previous.checked ? 'true' : '' });
    try {
      const answer = await open(`/api/logs?${query}`, { signal: own.signal });
      await lines(answer.body, (line) => { if (!own.signal.aborted) show(printable(line)); });
      if (!own.signal.aborted) status.textContent = 'the log has ended';
    } catch (error) {
      if (own.signal.aborted) return;
      status.textContent = '';
      replace(text, h('div', { class: 'notice bad' }, error.message));
    }
  }

  return { element, start, close: () => end?.abort() };
}
