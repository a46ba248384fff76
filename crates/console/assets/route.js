// Where the page is: everything is in the fragment, so that links can be copied and back works.

export function parse() {
  const [path, query] = location.hash.replace(/^#/, '').split('?');
  const parts = path.split('/').slice(1).map(decode);
  const parameters = Object.fromEntries(new URLSearchParams(query ?? ''));
  if (parts[0] === 'k' && parts[1]) return { view: 'table', kind: parts[1], parameters };
  if (parts[0] === 'o' && parts[3]) return { view: 'object', kind: parts[1], ns: parts[2] === '-' ? null : parts[2], name: parts[3], parameters };
  if (parts[0] === 'mind') return { view: 'mind', parameters };
  if (parts[0] === 'access') return { view: 'access', parameters };
  return { view: 'overview', parameters };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const escape = encodeURIComponent;

export const links = {
  overview: () => '#/',
  mind: () => '#/mind',
  access: () => '#/access',
  table: (kind, parameters) => `#/k/${escape(kind)}${query(parameters)}`,
  object: (kind, ns, name, parameters) => `#/o/${escape(kind)}/${ns ? escape(ns) : '-'}/${escape(name)}${query(parameters)}`,
};

function query(parameters) {
  const entries = Object.entries(parameters ?? {}).filter(([, value]) => value);
  return entries.length ? `?${new URLSearchParams(entries)}` : '';
}

// Changes parameters of the present place without another step in the history.
export function adjust(change) {
  const place = parse();
  const parameters = { ...place.parameters, ...change };
  const [path] = location.hash.split('?');
  history.replaceState(null, '', `${path || '#/'}${query(parameters)}`);
}
