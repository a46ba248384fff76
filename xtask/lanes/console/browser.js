// A browser over the DevTools protocol: pages, keys, screenshots, and what went over the network.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIMIT = 30_000;

export async function launch(program) {
  const profile = mkdtempSync(join(tmpdir(), 'console-lane-'));
  const child = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--font-render-hinting=none', 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const address = await new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (data) => { said += data; const found = /ws:\/\/\S+/.exec(said); if (found) resolve(found[0]); });
    child.on('exit', () => reject(new Error(`the browser ended: ${said.slice(-500)}`)));
  });
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
  let number = 0;
  const waiting = new Map();
  const listeners = new Map();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
    } else listeners.get(message.sessionId)?.(message);
  };
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    number += 1;
    waiting.set(number, { resolve, reject });
    socket.send(JSON.stringify({ id: number, method, params, sessionId }));
  });
  return {
    open: (options) => page(send, listeners, options),
    pid: child.pid,
    close() { socket.close(); child.kill(); setTimeout(() => rmSync(profile, { recursive: true, force: true }), 300); },
  };
}

async function page(send, listeners, { width = 1280, height = 820, dark = false, scale = 1, phone = false } = {}) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  const errors = []; const requests = [];
  listeners.set(sessionId, ({ method, params }) => {
    if (method === 'Runtime.exceptionThrown') errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') errors.push(params.args.map((a) => a.value ?? a.description).join(' '));
    if (method === 'Log.entryAdded' && params.entry.level === 'error') errors.push(`${params.entry.text} ${params.entry.url ?? ''}`);
    if (method === 'Network.requestWillBeSent') requests.push(params.request.url);
  });
  await Promise.all(['Page.enable', 'Runtime.enable', 'Network.enable', 'Log.enable'].map((method) => call(method)));
  const size = (w, h, s = scale, mobile = phone) => call('Emulation.setDeviceMetricsOverride', { width: w, height: h, deviceScaleFactor: s, mobile });
  await size(width, height);
  const paint = (isDark) => call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }] });
  await paint(dark);

  async function run(expression) {
    const result = await call('Runtime.evaluate', { expression: `(async () => (${expression}))()`, awaitPromise: true, returnByValue: true });
    if (result.exceptionDetails) throw new Error(`${expression}: ${result.exceptionDetails.exception?.description}`);
    return result.result.value;
  }

  async function until(what, expression, limit = LIMIT) {
    const end = Date.now() + limit;
    let last;
    while (Date.now() < end) {
      try { last = await run(expression); if (last) return last; } catch (error) { last = error.message; }
      await pause(40);
    }
    const text = await run('document.body.innerText.slice(0, 600)').catch(() => '');
    throw new Error(`never: ${what}; last: ${JSON.stringify(last)}; the page: ${text}`);
  }

  const CODES = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowUp: 38, ArrowLeft: 37, ArrowRight: 39, Tab: 9 };
  async function key(name, modifiers = 0) {
    const code = CODES[name] ?? name.toUpperCase().charCodeAt(0);
    const text = name === 'Enter' ? '\r' : name.length === 1 && !modifiers ? name : undefined;
    await call('Input.dispatchKeyEvent', { type: 'keyDown', key: name, text, windowsVirtualKeyCode: code, modifiers });
    await call('Input.dispatchKeyEvent', { type: 'keyUp', key: name, windowsVirtualKeyCode: code, modifiers });
  }

  return {
    call, run, until, key, errors, requests, size, paint,
    async keys(...names) { for (const name of names) await key(name); },
    type: (text) => call('Input.insertText', { text }),
    go: (url) => call('Page.navigate', { url }),
    async shot() { return Buffer.from((await call('Page.captureScreenshot', { format: 'png' })).data, 'base64'); },
    async close() { await send('Target.closeTarget', { targetId }); },
  };
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
