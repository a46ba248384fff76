// Builds elements. Text only ever becomes text nodes: nothing from the cluster is parsed as HTML.

export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else if (name === 'style') for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else if (name in element && name !== 'list' && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(printable(String(child))));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Control and bidirectional characters could make a name look like another one; they are shown as symbols.
export function printable(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const SVG = 'http://www.w3.org/2000/svg';
const PATHS = {
  search: 'M10.5 10.5 14 14M6.75 12a5.25 5.25 0 1 1 0-10.5 5.25 5.25 0 0 1 0 10.5Z',
  menu: 'M2 4h12M2 8h12M2 12h12',
  clock: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 4.5V8l2.5 1.5',
  moon: 'M13.5 9.5A5.75 5.75 0 0 1 6.5 2.5a5.75 5.75 0 1 0 7 7Z',
  play: 'M4.5 2.5v11l9-5.5-9-5.5Z',
  pause: 'M5 2.5v11M11 2.5v11',
  back: 'M9.5 3 4.5 8l5 5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  keyboard: 'M1.5 4h13v8.5h-13V4ZM4 7h.01M6.7 7h.01M9.3 7h.01M12 7h.01M5 10h6',
  mind: 'M5 2.5v3a3 3 0 0 0 3 3 3 3 0 0 1 3 3v2M11 2.5v3a3 3 0 0 1-3 3M5 13.5v-2M5 2.5h.01M11 2.5h.01M5 13.5h.01M11 13.5h.01',
  home: 'M2.5 7.5 8 2.5l5.5 5M4 6.5v7h8v-7',
  key: 'M6 9a3.5 3.5 0 1 1 1-1l6.5 6M11 12l1.5-1.5',
};

export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', PATHS[name]);
  svg.append(path);
  return svg;
}

const WORDS = { good: 'healthy', busy: 'in progress', bad: 'failing', none: 'no state' };

export function dot(health, title) {
  const word = WORDS[health] ?? 'no state';
  return h('span', { class: `dot ${health}`, role: 'img', 'aria-label': title ? `${word}: ${printable(title)}` : word, title: title ? printable(title) : word });
}
