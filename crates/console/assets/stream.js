// One stream for all that a view shows. It is opened anew when the view changes or the connection breaks.

import { open } from './session.js';

let current = null;

export function subscribe(topics, at, hear, state) {
  current?.abort();
  const end = new AbortController();
  current = end;
  run(topics, at, hear, state, end.signal);
  return () => end.abort();
}

async function run(topics, at, hear, state, signal) {
  let pause = 250;
  while (!signal.aborted) {
    try {
      const answer = await open('/api/stream', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ topics, at }), signal });
      state('live');
      pause = 250;
      await lines(answer.body, (line) => { if (!signal.aborted) hear(JSON.parse(line)); });
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) { state('over'); return; }
    }
    if (signal.aborted) return;
    state('lost');
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5000);
  }
}

export async function lines(body, hear) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = value.split('\n');
    if (parts.length === 1) { rest.push(value); continue; }
    hear(rest.join('') + parts[0]);
    for (let at = 1; at < parts.length - 1; at += 1) hear(parts[at]);
    rest = [parts[parts.length - 1]];
  }
}
