// The session: a ticket from the link's fragment becomes a bearer token that only this tab has.

const STORE = 'kubewright.bearer';
const JSON_TYPE = { 'Content-Type': 'application/json' };
let bearer = sessionStorage.getItem(STORE);

export async function begin() {
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1];
  if (ticket) {
    history.replaceState(null, '', location.pathname + '#/');
    const answer = await fetch('/api/session', { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ ticket }) });
    if (answer.ok) {
      bearer = (await answer.json()).bearer;
      sessionStorage.setItem(STORE, bearer);
    }
  }
  return Boolean(bearer);
}

export class Refused extends Error {
  constructor(status, body) {
    super(body.message ?? `the console answered ${status}`);
    this.status = status;
    this.causes = body.causes ?? [];
    this.line = body.line ?? null;
  }
}

export async function open(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { ...options.headers, Authorization: `Bearer ${bearer}` } });
  if (answer.ok) return answer;
  let body = {};
  try { body = await answer.json(); } catch { /* The status says enough. */ }
  if (answer.status === 401) {
    sessionStorage.removeItem(STORE);
    dispatchEvent(new Event('session-over'));
  }
  throw new Refused(answer.status, body);
}

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, v]) => v !== null && v !== undefined && v !== ''));
  return (await open(`${path}?${query}`)).json();
}

export async function post(path, body) {
  return (await open(path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })).json();
}

export function socketProtocols(...protocols) {
  return [...protocols, `bearer.${bearer}`];
}
