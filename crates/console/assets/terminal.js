// A terminal in a container: keys go to its process, what it writes is shown. Nothing of it is kept.

import { h, replace, printable } from './dom.js';
import { socketProtocols } from './session.js';
import { screen } from './screen.js';

const [INPUT, OUTPUT, ERRORS, STATUS, SIZE] = [0, 1, 2, 3, 4];
const KEYS = {
  Enter: '\r', Backspace: '\u007f', Tab: '\t', Escape: '\u001b', ArrowUp: '\u001b[A', ArrowDown: '\u001b[B', ArrowRight: '\u001b[C', ArrowLeft: '\u001b[D',
  Home: '\u001b[H', End: '\u001b[F', Delete: '\u001b[3~', PageUp: '\u001b[5~', PageDown: '\u001b[6~',
};

export function terminal(namespace, name, containers) {
  let socket = null; let view = null; let frame = 0; let size = [80, 24];
  const encoder = new TextEncoder();
  const text = h('div', { class: 'terminal-text', 'aria-live': 'off' });
  // A field takes the keys, so that telephones show their keyboard and text can be pasted.
  const field = h('textarea', { class: 'terminal-field', 'aria-label': 'Terminal input; Shift Tab leaves it', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', rows: '1',
    onkeydown: key, oninput: () => { send(INPUT, field.value); field.value = ''; } });
  const box = h('div', { class: 'terminal', role: 'group', 'aria-label': 'Terminal', onclick: () => { if (!getSelection().toString()) field.focus(); } }, text, field);
  const status = h('span', { class: 'tally', role: 'status' });
  const choice = h('select', { 'aria-label': 'Container', onchange: () => start() }, containers.map((container) => h('option', {}, container)));
  const command = h('input', { type: 'text', class: 'filter command', value: 'sh', 'aria-label': 'Command', spellcheck: 'false', onkeydown: (event) => { if (event.key === 'Enter') start(); } });
  const element = h('div', { class: 'terminal-box' }, h('div', { class: 'toolbar' }, choice, command, h('button', { class: 'quiet', onclick: () => start() }, 'Start anew'), status), box);
  const observer = new ResizeObserver(() => fit());

  function send(channel, content) {
    if (socket?.readyState !== WebSocket.OPEN) return;
    const bytes = encoder.encode(content);
    const message = new Uint8Array(bytes.length + 1);
    message[0] = channel;
    message.set(bytes, 1);
    socket.send(message);
  }

  function key(event) {
    if (event.key === 'Tab' && event.shiftKey) return;
    if (event.isComposing) return;
    let code = KEYS[event.key];
    if (event.ctrlKey && !event.altKey && !event.metaKey && /^[a-z@[\\\]^_]$/i.test(event.key)) {
      // What is selected is copied, as everywhere.
      if (event.key === 'c' && getSelection().toString()) return;
      if (event.key === 'v') return;
      code = String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
    } else if (event.altKey && event.key.length === 1) code = `\u001b${event.key}`;
    else if (event.ctrlKey || event.metaKey) return;
    if (code === undefined) return;
    event.preventDefault();
    send(INPUT, code);
  }

  function fit() {
    const probe = h('span', { class: 'probe' }, 'M'.repeat(20));
    text.append(probe);
    const { width, height } = probe.getBoundingClientRect();
    probe.remove();
    if (!width) return;
    const next = [Math.max(20, Math.floor((box.clientWidth - 28) / (width / 20))), Math.max(5, Math.floor((box.clientHeight - 20) / height))];
    if (view && next[0] === size[0] && next[1] === size[1]) return;
    size = next;
    view?.resize(...size);
    send(SIZE, JSON.stringify({ Width: size[0], Height: size[1] }));
    draw();
  }

  function draw() {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (!view) return;
      replace(text, view.lines().map((runs) => h('div', { class: 'terminal-line' }, runs.map((run) => (run.style ? h('span', { class: run.style }, run.text) : run.text)))));
      box.scrollTop = box.scrollHeight;
    });
  }

  function start() {
    stop();
    view = screen(...size);
    fit();
    const decoder = new TextDecoder();
    const query = new URLSearchParams({ ns: namespace, name, container: choice.value, command: command.value || 'sh' });
    const own = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/exec?${query}`, socketProtocols('v5.channel.k8s.io'));
    socket = own;
    own.binaryType = 'arraybuffer';
    status.textContent = 'connecting…';
    own.onopen = () => { status.textContent = 'connected'; send(SIZE, JSON.stringify({ Width: size[0], Height: size[1] })); field.focus(); };
    own.onmessage = ({ data }) => {
      if (own !== socket) return;
      const bytes = new Uint8Array(data);
      const content = bytes.subarray(1);
      if (bytes[0] === OUTPUT || bytes[0] === ERRORS) { view.write(decoder.decode(content, { stream: true })); draw(); }
      if (bytes[0] === STATUS) ended(new TextDecoder().decode(content));
    };
    own.onclose = () => { if (own === socket && /^con/.test(status.textContent)) status.textContent = status.textContent === 'connected' ? 'the connection has ended' : 'the terminal could not be opened; this pod may not run, or exec is not served'; };
  }

  function ended(content) {
    let message = content;
    try { const status_ = JSON.parse(content); message = status_.status === 'Success' ? 'the command has ended' : status_.message; } catch { /* It is shown as it is. */ }
    status.textContent = printable(message);
  }

  function stop() { const old = socket; socket = null; old?.close(); }

  return { element, start() { observer.observe(box); start(); }, close() { observer.disconnect(); stop(); cancelAnimationFrame(frame); }, text: () => view?.text() ?? '' };
}
