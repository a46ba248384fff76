// The API server, as anybody else would write to it: with the kubeconfig that the cluster wrote.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';

export function cluster(kubeconfig) {
  const text = readFileSync(kubeconfig, 'utf8');
  const field = (name) => new RegExp(`"?${name}"?:\\s*"?([^"\\s]+)`).exec(text)?.[1];
  const bytes = (name) => Buffer.from(field(name), 'base64');
  const agent = new Agent({ ca: bytes('certificate-authority-data'), cert: bytes('client-certificate-data'), key: bytes('client-key-data'), keepAlive: true });
  const base = new URL(field('server'));
  return (method, path, body, type = 'application/json') => new Promise((resolve, reject) => {
    const sent = request(new URL(path, base), { method, agent, headers: body ? { 'content-type': type } : {} }, (answer) => {
      let read = '';
      answer.on('data', (data) => { read += data; });
      answer.on('end', () => (answer.statusCode < 300 ? resolve(JSON.parse(read)) : reject(new Error(`${method} ${path}: ${answer.statusCode} ${read.slice(0, 300)}`))));
    });
    sent.on('error', reject);
    sent.end(body ? JSON.stringify(body) : undefined);
  });
}

// How a kubeconfig reaches the server, for another user.
export function entry(kubeconfig) {
  const text = readFileSync(kubeconfig, 'utf8');
  const field = (name) => new RegExp(`"?${name}"?:\\s*"?([^"\\s]+)`).exec(text)?.[1];
  return { server: field('server'), 'certificate-authority-data': field('certificate-authority-data') };
}
