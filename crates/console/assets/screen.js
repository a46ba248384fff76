// The screen of a terminal: what a program writes becomes a grid of cells. No element, no network.

const BLANK = Object.freeze({ text: ' ', style: '' });

export function screen(columns, rows, kept = 2000) {
  let grid = []; let past = []; let x = 0; let y = 0; let saved = [0, 0]; let style = ''; let top = 0; let bottom = rows - 1;
  let other = null; let rest = ''; let wrap = false; let cursor = true;
  const pen = { bold: false, dim: false, underline: false, inverse: false, fg: '', bg: '' };
  const line = () => Array.from({ length: columns }, () => BLANK);
  const clear = () => { grid = Array.from({ length: rows }, line); };
  clear();

  function restyle() {
    style = [pen.bold && 'bold', pen.dim && 'dim', pen.underline && 'underline', pen.inverse && 'inverse', pen.fg && `fg-${pen.fg}`, pen.bg && `bg-${pen.bg}`].filter(Boolean).join(' ');
  }

  function scroll() {
    const [gone] = grid.splice(top, 1);
    if (top === 0 && !other) { past.push(gone); if (past.length > kept) past.shift(); }
    grid.splice(bottom, 0, line());
  }

  function feed() { if (y === bottom) scroll(); else if (y < rows - 1) y += 1; }
  function back() { if (y === top) { grid.splice(bottom, 1); grid.splice(top, 0, line()); } else if (y > 0) y -= 1; }

  function put(text) {
    if (wrap) { x = 0; feed(); wrap = false; }
    grid[y][x] = { text, style };
    if (x === columns - 1) wrap = true; else x += 1;
  }

  const clamp = (n, low, high) => Math.min(Math.max(n, low), high);
  function go(column, row) { x = clamp(column, 0, columns - 1); y = clamp(row, 0, rows - 1); wrap = false; }

  function erase(from, to, row) { for (let n = from; n < to; n += 1) grid[row][n] = BLANK; }

  function eraseDisplay(how) {
    if (how === 0) { erase(x, columns, y); for (let n = y + 1; n < rows; n += 1) grid[n] = line(); }
    if (how === 1) { erase(0, x + 1, y); for (let n = 0; n < y; n += 1) grid[n] = line(); }
    if (how === 2 || how === 3) { clear(); if (how === 3) past = []; }
  }

  function colours(numbers) {
    for (let n = 0; n < numbers.length; n += 1) {
      const code = numbers[n];
      if (code === 0) Object.assign(pen, { bold: false, dim: false, underline: false, inverse: false, fg: '', bg: '' });
      else if (code === 1) pen.bold = true;
      else if (code === 2) pen.dim = true;
      else if (code === 4) pen.underline = true;
      else if (code === 7) pen.inverse = true;
      else if (code === 22) { pen.bold = false; pen.dim = false; } else if (code === 24) pen.underline = false;
      else if (code === 27) pen.inverse = false;
      else if (code >= 30 && code <= 37) pen.fg = String(code - 30);
      else if (code >= 90 && code <= 97) pen.fg = String(code - 82);
      else if (code >= 40 && code <= 47) pen.bg = String(code - 40);
      else if (code >= 100 && code <= 107) pen.bg = String(code - 92);
      else if (code === 39) pen.fg = '';
      else if (code === 49) pen.bg = '';
      else if (code === 38 || code === 48) {
        // Of 256 colours the first 16 are shown, of the others the nearest of those.
        const name = code === 38 ? 'fg' : 'bg';
        if (numbers[n + 1] === 5) { pen[name] = near(numbers[n + 2] ?? 7); n += 2; } else n += 4;
      }
    }
    restyle();
  }

  const near = (number) => (number < 16 ? String(number) : number >= 244 || number % 36 > 28 ? '15' : number >= 232 ? '8' : String(9 + (number % 6)));

  function control(mark, numbers, last) {
    const n = Math.max(1, numbers[0] || 1);
    if (mark === '?') {
      const on = last === 'h';
      if (numbers.includes(25)) cursor = on;
      if (numbers.includes(1049) || numbers.includes(47)) {
        if (on && !other) { other = { grid, x, y }; clear(); go(0, 0); } else if (!on && other) { ({ grid, x, y } = other); other = null; }
      }
      return;
    }
    const act = {
      A: () => go(x, y - n), B: () => go(x, y + n), C: () => go(x + n, y), D: () => go(x - n, y), E: () => go(0, y + n), F: () => go(0, y - n),
      G: () => go(n - 1, y), d: () => go(x, n - 1), H: () => go((numbers[1] || 1) - 1, n - 1), f: () => go((numbers[1] || 1) - 1, n - 1),
      J: () => eraseDisplay(numbers[0] || 0), K: () => { const how = numbers[0] || 0; erase(how === 0 ? x : 0, how === 1 ? x + 1 : columns, y); },
      P: () => { grid[y].splice(x, n); while (grid[y].length < columns) grid[y].push(BLANK); }, X: () => erase(x, Math.min(columns, x + n), y),
      '@': () => { grid[y].splice(x, 0, ...Array.from({ length: n }, () => BLANK)); grid[y].length = columns; },
      L: () => { for (let m = 0; m < n; m += 1) { grid.splice(bottom, 1); grid.splice(y, 0, line()); } }, M: () => { for (let m = 0; m < n; m += 1) { grid.splice(y, 1); grid.splice(bottom, 0, line()); } },
      S: () => { for (let m = 0; m < n; m += 1) scroll(); }, r: () => { top = clamp(n - 1, 0, rows - 1); bottom = clamp((numbers[1] || rows) - 1, top, rows - 1); go(0, 0); },
      m: () => colours(numbers.length ? numbers : [0]), s: () => { saved = [x, y]; }, u: () => go(...saved),
    }[last];
    act?.();
  }

  // Takes one sequence off the start of a text: its length, or 0 when it has not come to its end yet.
  function sequence(text) {
    const kind = text[1];
    if (kind === undefined) return 0;
    if (kind === '[') {
      const found = /^\u001b\[([?>=!]?)([\d;:]*)[ -/]*([@-~])/.exec(text);
      if (!found) return text.length > 64 ? 1 : 0;
      control(found[1], found[2].split(/[;:]/).filter((part, n, all) => part !== '' || all.length > 1).map(Number), found[3]);
      return found[0].length;
    }
    if (kind === ']' || kind === 'P' || kind === '_' || kind === '^') {
      // Titles, links and the like are not for this screen.
      const end = /\u0007|\u001b\\/.exec(text);
      if (!end) return text.length > 4096 ? text.length : 0;
      return end.index + end[0].length;
    }
    if (kind === '(' || kind === ')' || kind === '#') return text.length < 3 ? 0 : 3;
    if (kind === '7') saved = [x, y];
    if (kind === '8') go(...saved);
    if (kind === 'M') back();
    if (kind === 'D') feed();
    if (kind === 'c') { clear(); go(0, 0); colours([0]); top = 0; bottom = rows - 1; }
    return 2;
  }

  return {
    write(text) {
      let all = rest + text;
      rest = '';
      while (all) {
        const c = all[0];
        let taken = 1;
        if (c === '\u001b') {
          taken = sequence(all);
          if (!taken) { rest = all; return; }
        } else if (c === '\n' || c === '\u000b' || c === '\u000c') { feed(); wrap = false; } else if (c === '\r') { x = 0; wrap = false; } else if (c === '\b') { x = Math.max(0, x - 1); wrap = false; } else if (c === '\t') go((Math.floor(x / 8) + 1) * 8, y);
        else if (c >= ' ' && c !== '\u007f') { const whole = String.fromCodePoint(all.codePointAt(0)); taken = whole.length; put(whole); }
        all = all.slice(taken);
      }
    },
    resize(newColumns, newRows) {
      const fit = (row) => { const out = row.slice(0, newColumns); while (out.length < newColumns) out.push(BLANK); return out; };
      columns = newColumns;
      grid = grid.map(fit);
      while (grid.length > newRows) { if (y < grid.length - 1 && grid[grid.length - 1].every((cell) => cell === BLANK)) grid.pop(); else { past.push(grid.shift()); y -= 1; } }
      rows = newRows;
      while (grid.length < rows) grid.push(line());
      if (other) other = { ...other, grid: other.grid.slice(0, rows).map(fit).concat(Array.from({ length: Math.max(0, rows - other.grid.length) }, line)) };
      top = 0; bottom = rows - 1;
      go(x, y);
    },
    // All lines that can be scrolled to, each a list of {text, style} runs; the cursor is a run of its own.
    lines() {
      const runs = (row, at) => {
        const out = [];
        row.forEach((cell, n) => {
          const own = n === at ? `${cell.style} cursor`.trim() : cell.style;
          const last = out[out.length - 1];
          if (last && last.style === own) last.text += cell.text; else out.push({ text: cell.text, style: own });
        });
        return out;
      };
      return past.map((row) => runs(row, -1)).concat(grid.map((row, n) => runs(row, cursor && n === y ? x : -1)));
    },
    text: () => past.concat(grid).map((row) => row.map((cell) => cell.text).join('').trimEnd()).join('\n').trimEnd(),
  };
}
