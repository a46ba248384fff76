// Makes screenshots small: a page has few colours, so a palette of 256 shows it as well as 16 million.

import { deflateSync, inflateSync } from 'node:zlib';

const COLOURS = 256;

export function smaller(png) {
  const { width, height, channels, pixels } = decode(png);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += channels) {
    const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = choose(counts);
  const index = new Map();
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * channels;
      const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
      let found = index.get(colour);
      if (found === undefined) { found = nearest(palette, colour); index.set(colour, found); }
      rows[y * (width + 1) + 1 + x] = found;
    }
  }
  return encode(width, height, palette, rows);
}

// The most frequent colours, but none that another chosen one already stands for.
function choose(counts) {
  const sorted = [...counts.entries()].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  for (const apart of [0, 40, 120, 300, 700, 1500]) {
    const palette = [];
    for (const colour of sorted) {
      if (palette.length === COLOURS) break;
      if (palette.every((known) => distance(known, colour) > apart)) palette.push(colour);
    }
    const worst = sorted.slice(0, 4000).reduce((most, colour) => Math.max(most, distance(palette[nearest(palette, colour)], colour)), 0);
    if (worst < 1200 || apart === 1500) return palette;
  }
  return sorted.slice(0, COLOURS);
}

function distance(a, b) {
  const [r, g, c] = [(a >> 16) - (b >> 16), ((a >> 8) & 255) - ((b >> 8) & 255), (a & 255) - (b & 255)];
  return 2 * r * r + 4 * g * g + 3 * c * c;
}

function nearest(palette, colour) {
  let best = 0; let least = Infinity;
  palette.forEach((known, n) => { const far = distance(known, colour); if (far < least) { least = far; best = n; } });
  return best;
}

function decode(png) {
  let at = 8; const data = []; let width; let height; let channels;
  while (at < png.length) {
    const length = png.readUInt32BE(at); const type = png.toString('latin1', at + 4, at + 8); const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') { width = body.readUInt32BE(0); height = body.readUInt32BE(4); channels = body[9] === 6 ? 4 : 3; }
    if (type === 'IDAT') data.push(body);
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(data));
  const line = width * channels; const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const left = x >= channels ? pixels[y * line + x - channels] : 0; const up = y ? pixels[(y - 1) * line + x] : 0; const corner = x >= channels && y ? pixels[(y - 1) * line + x - channels] : 0;
      pixels[y * line + x] = raw[y * (line + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  return { width, height, channels, pixels };
}

function paeth(a, b, c) {
  const p = a + b - c; const [x, y, z] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)];
  return x <= y && x <= z ? a : y <= z ? b : c;
}

function encode(width, height, palette, rows) {
  const chunk = (type, body) => {
    const head = Buffer.concat([Buffer.from(type, 'latin1'), body]);
    const out = Buffer.alloc(head.length + 8);
    out.writeUInt32BE(body.length); head.copy(out, 4); out.writeUInt32BE(crc(head), head.length + 4);
    return out;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0); header.writeUInt32BE(height, 4); header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', header), chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

const TABLE = Array.from({ length: 256 }, (_, n) => { let c = n; for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; return c >>> 0; });
function crc(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
