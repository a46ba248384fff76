// The figures of a large cluster: many pods and kinds, how soon the page shows them, and how soon it shows a change.

import { readFileSync } from 'node:fs';
import { pause } from './browser.js';
import { kinds, pods } from './objects.js';

const resident = (pid) => { try { return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024; } catch { return 0; } };
const median = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];

export async function load({ page, browser, api, check, text }, count, pid) {
  if (!count) return;
  const before = resident(pid);
  await kinds(api, 200);
  await pods(api, count);
  await page.run("location.hash = '#/'");
  await page.until('all kinds are read', `${text('.overview')}.length > 50 && !${text('.overview')}.includes('Still reading')`, 120_000);
  const link = await page.run("location.origin + '/#/k/v1%2Fpods'");
  // A new tab with the session of the first: everything from the address to the rows.
  const bearer = await page.run("sessionStorage.getItem('kubewright.bearer')");
  const firsts = []; let tab;
  for (let n = 0; n < 5; n += 1) {
    await tab?.close();
    tab = await browser.open();
    await tab.go(new URL('/icon.svg', link).href);
    await tab.until('the origin', "location.pathname === '/icon.svg'");
    await tab.run(`sessionStorage.setItem('kubewright.bearer', '${bearer}')`);
    const began = performance.now();
    await tab.go(link);
    await tab.until('rows', "document.querySelectorAll('.row').length > 10", 60_000);
    firsts.push(performance.now() - began);
  }
  console.log(`figure  first rows of ${count} pods after ${median(firsts).toFixed(0)} ms at the median of five new tabs, ${Math.max(...firsts).toFixed(0)} ms at most`);
  console.log(`figure  first contentful paint ${await tab.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime.toFixed(0)")} ms`);
  check('the first paint takes less than a second', median(firsts) < 1000, firsts);
  await tab.until('all rows', `/${(count).toLocaleString('en')}|of ${(count).toLocaleString('en')}/.test(${text('.tally')}) || Number(${text('.tally')}.replace(/\\D/g, '')) >= ${count}`, 60_000);
  check('only visible rows are in the document', await tab.run("document.querySelectorAll('.row').length") < 200);
  // A tab behind another one draws nothing.
  await tab.call('Page.bringToFront');
  await updates({ page: tab, api, check });
  const scrolled = await tab.run("(async () => { const pane = document.querySelector('.pane'); let worst = 0; let last = performance.now(); for (let n = 0; n < 60; n += 1) { pane.scrollTop = n * 4000; await new Promise(requestAnimationFrame); const now = performance.now(); worst = Math.max(worst, now - last); last = now; } return worst; })()");
  console.log(`figure  the longest frame while scrolling ${count} rows took ${scrolled.toFixed(0)} ms`);
  const filtered = await tab.run("(async () => { const f = document.querySelector('.filter'); const began = performance.now(); f.value = 'load-77'; f.dispatchEvent(new Event('input')); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); return performance.now() - began; })()");
  console.log(`figure  a filter over ${count} rows took ${filtered.toFixed(0)} ms`);
  console.log(`figure  memory of the tab ${((await tab.run('performance.memory.usedJSHeapSize')) / 1e6).toFixed(0)} MB of JavaScript; of the server with its cluster ${resident(pid).toFixed(0)} MB, ${before.toFixed(0)} MB before the load`);
  await tab.close();
}

async function updates({ page, api, check }) {
  const times = [];
  for (let n = 0; n < 41; n += 1) {
    const label = `mark-${n}-${Date.now()}`;
    const seen = page.run(`new Promise((resolve) => { const hear = kubewright.view.hear; kubewright.view.hear = (m) => { hear(m); if (m.ops?.some((o) => o.labels?.mark === '${label}')) { kubewright.view.hear = hear; requestAnimationFrame(() => resolve(performance.timeOrigin + performance.now())); } }; setTimeout(() => resolve(Infinity), 5000); })`);
    await pause(20);
    const sent = performance.timeOrigin + performance.now();
    await api('PATCH', '/api/v1/namespaces/shop/pods/load-0', { metadata: { labels: { mark: label } } }, 'application/merge-patch+json');
    times.push(await seen - sent);
  }
  console.log(`figure  an update is drawn ${median(times).toFixed(0)} ms after it was sent at the median, ${Math.max(...times).toFixed(0)} ms at most of ${times.length}`);
  check('an update reaches the page within 100 ms at the median', median(times) < 100, times);
}
