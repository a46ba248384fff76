// The console in a real browser, end to end. Arguments: the browser, the console's link, a kubeconfig, where screenshots
// go, the link of the demo, where modules are, and the program under test.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { launch, pause } from './browser.js';
import { cluster, entry } from './cluster.js';
import * as changes from './changes.js';
import * as others from './restricted.js';
import { load } from './load.js';
import { smaller } from './png.js';
import { toyKind, toy, workload } from './objects.js';

const [program, link, kubeconfig, images, demoLink, modules, tested] = process.argv.slice(2);
const api = cluster(kubeconfig);
const browser = await launch(program);
const { origin } = new URL(link);
let passed = 0; const failed = [];

function check(what, holds, seen) {
  if (holds) { passed += 1; console.log(`ok    ${what}`); } else { failed.push(what); console.log(`FAIL  ${what}${seen === undefined ? '' : `: ${JSON.stringify(seen)}`}`); }
}

async function holds(page, what, expression) {
  try { await page.until(what, expression); check(what, true); } catch (error) { check(what, false, error.message); }
}

const text = (selector) => `(document.querySelector(${JSON.stringify(selector)})?.innerText ?? '')`;
const row = (name) => `[...document.querySelectorAll('.row')].find((r) => r.innerText.includes(${JSON.stringify(name)}))`;
const save = async (page, name) => {
  await page.run("document.querySelectorAll('.toast').forEach((toast) => toast.remove())");
  await pause(500);
  writeFileSync(join(images, `console-${name}.png`), smaller(await page.shot()));
};
const maps = '/api/v1/namespaces/shop/configmaps';

async function session() {
  const page = await browser.open();
  await page.go(origin);
  await holds(page, 'a tab without a session is told to open the link', `${text('.door')}.includes('Open the link')`);
  await page.go('about:blank');
  await page.go(link);
  await holds(page, 'the link opens the overview', `${text('h1')} === 'Overview' && document.querySelectorAll('.tile').length === 4`);
  check('the ticket leaves the address bar', !(await page.run('location.href')).includes('ticket'));
  await page.call('Page.reload');
  await holds(page, 'a reload keeps the session', "document.querySelectorAll('.tile').length === 4");
  return page;
}

async function overview(page) {
  await holds(page, 'what cannot be scheduled is named with its reason', `${text('.troubles')}.includes('cannot be scheduled')`);
  await holds(page, 'namespaces are listed', `${text('.bars')}.includes('shop')`);
  await holds(page, 'the user is named', `${text('.who')}.includes('kubernetes-admin')`);
  await holds(page, 'the page says that it is live', `${text('.connection')} === 'live'`);
  await save(page, 'overview');
}

async function live(page) {
  await page.run("location.hash = '#/k/v1%2Fconfigmaps?q=live'");
  await page.until('the table', "document.querySelector('.thead')");
  await api('POST', maps, { metadata: { name: 'live-one', labels: { a: 'b' } } });
  await holds(page, 'a new object appears without a reload', row('live-one'));
  await api('PATCH', `${maps}/live-one`, { data: { k: 'v' } }, 'application/merge-patch+json');
  await holds(page, 'a change is shown without a reload', `[...(${row('live-one')}?.querySelectorAll('[data-label=Data]') ?? [])].some((c) => c.innerText === '1')`);
  await api('DELETE', `${maps}/live-one`);
  await holds(page, 'a deleted object goes without a reload', `!(${row('live-one')}) && document.querySelector('.empty')`);
  await api('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', toyKind);
  await holds(page, 'a kind that is defined later appears in the menu', "[...document.querySelectorAll('.side a')].some((a) => a.innerText === 'Toys')");
  await pause(300);
  await api('POST', '/apis/example.com/v1/namespaces/shop/toys', toy('bear', 3));
  await page.run("[...document.querySelectorAll('.side a')].find((a) => a.innerText === 'Toys').click()");
  await holds(page, 'its objects are shown with its own columns', `${text('.thead')}.includes('Size') && (${row('bear')}).innerText.includes('3')`);
}

async function tables(page) {
  await page.run("location.hash = '#/'");
  await page.until('the overview', "document.querySelector('.tile')");
  await page.keys('g', 'p');
  await holds(page, 'g p goes to pods', `${text('h1')} === 'Pods' && document.querySelectorAll('.row').length > 5`);
  check('columns are those of kubectl', (await page.run(text('.thead'))).replace(/\s+/g, ' ').includes('Name Ready Status Restarts Age'), await page.run(text('.thead')));
  await save(page, 'pods');
  await page.key('/');
  check('/ goes to the filter', await page.run("document.activeElement.className === 'filter'"));
  await page.type('app=cart');
  await holds(page, 'a label filters', "document.querySelectorAll('.row').length === 2");
  await page.run("(() => { const f = document.querySelector('.filter'); f.value = 'is:failing'; f.dispatchEvent(new Event('input')); })()");
  await holds(page, 'health filters', "document.querySelectorAll('.row').length === 2 && document.querySelector('.row').innerText.includes('recommender')");
  await page.run("(() => { const f = document.querySelector('.filter'); f.value = 'status:running -storefront'; f.dispatchEvent(new Event('input')); })()");
  await holds(page, 'columns filter, and terms can be turned around', "document.querySelectorAll('.row').length > 3 && ![...document.querySelectorAll('.row')].some((r) => /storefront|Pending/.test(r.innerText))");
  await page.key('Escape');
  await holds(page, 'Esc clears the filter', "document.querySelector('.filter').value === '' && document.querySelectorAll('.row').length > 9");
  await page.keys('j', 'j', 'k');
  await holds(page, 'j and k move through rows', "[...document.querySelectorAll('.row')].findIndex((r) => r.classList.contains('current')) === 0");
  await page.run("[...document.querySelectorAll('.thead button')].find((b) => /^Name( |$)/.test(b.innerText)).click()");
  await page.run("[...document.querySelectorAll('.thead button')].find((b) => /^Name( |$)/.test(b.innerText)).click()");
  await holds(page, 'a header sorts, and again the other way', "document.querySelector('.row .name').innerText.startsWith('storefront') && document.querySelector('[aria-sort=descending]')");
  await page.key('w');
  await holds(page, 'w shows more columns', `${text('.thead')}.includes('Node')`);
  await page.key('w');
  await page.run("(() => { const s = document.querySelector('.top select'); s.value = 'billing'; s.dispatchEvent(new Event('change')); })()");
  await holds(page, 'a namespace can be chosen', "[...document.querySelectorAll('.row')].length === 3");
  await page.run("(() => { const s = document.querySelector('.top select'); s.value = ''; s.dispatchEvent(new Event('change')); })()");
}

async function objects(page) {
  await page.run("location.hash = '#/o/apps%2Fv1%2Fdeployments/shop/storefront'");
  await holds(page, 'the owner tree goes down to pods', "document.querySelectorAll('.tree [aria-level=\"3\"]').length === 4");
  await holds(page, 'conditions are shown', `${text('.conditions')}.includes('Available')`);
  await save(page, 'object');
  await page.run("document.querySelector('.tree [aria-level=\"3\"] a').click()");
  await holds(page, 'a pod shows its owners up to the deployment', `${text('h1')}.startsWith('storefront-') && ${text('.tree')}.includes('Deployment') && document.querySelector('.leaf.selected')`);
  await holds(page, 'events are shown', `${text('.events')}.includes('Scheduled')`);
  await page.key('l');
  await holds(page, 'l shows the log', `${text('.log')}.includes('started')`);
  const pods = '/api/v1/namespaces/shop/pods';
  await api('POST', pods, { metadata: { name: 'talker' }, spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', 'echo the first line; sleep 6; echo the second line; sleep 600'] }] } });
  const before = await page.run('location.hash');
  await page.run("location.hash = '#/o/v1%2Fpods/shop/talker'");
  await holds(page, 'a pod that talks is shown', `${text('h1')}.startsWith('talker')`);
  await page.key('l');
  await holds(page, 'its log has what it wrote', `${text('.log')}.includes('the first line')`);
  await holds(page, 'the log follows what it writes later', `${text('.log')}.includes('the second line')`);
  await api('DELETE', `${pods}/talker`);
  await page.run(`location.hash = ${JSON.stringify(before)}`);
  await holds(page, 'the way back leads to the other pod', `${text('h1')}.startsWith('storefront-')`);
  await page.key('y');
  await holds(page, 'y shows the YAML with managed fields folded', `${text('.yaml')}.includes('containers:') && ${text('.yaml')}.includes('managedFields') && !${text('.yaml')}.includes('fieldsV1')`);
  await page.run("[...document.querySelectorAll('.fold')].find((b) => b.getAttribute('aria-label') === 'fold managedFields').click()");
  await holds(page, 'blocks unfold', `${text('.yaml')}.includes('fieldsV1')`);
  await page.key('f');
  await holds(page, 'f shows who wrote which field', `${text('.fields')}.includes('Manager') && ${text('.fields')}.includes('spec.')`);
  await page.key('Escape');
  await holds(page, 'Esc goes back to the table', `${text('h1')} === 'Pods'`);
  await page.run("location.hash = '#/o/v1/secrets'.replace('v1/secrets', 'v1%2Fsecrets/shop/api-key') + '?tab=yaml'");
  await holds(page, 'values of a secret are masked', `${text('.yaml')}.includes('•••') && !document.body.innerText.includes('aHVudGVyMg')`);
  await page.run("[...document.querySelectorAll('.toolbar button')].find((b) => b.innerText === 'Show values').click()");
  await holds(page, 'and shown when asked for', `${text('.yaml')}.includes('aHVudGVyMg')`);
  await page.run("location.hash = '#/o/v1%2Fconfigmaps/shop/hostile'");
  await holds(page, 'a script in an annotation stays text', `${text('.chips')}.includes('<img src=x onerror=alert(1)>') && !document.querySelector('main img')`);
  await page.key('y');
  await holds(page, 'an annotation of 200 KB is cut until asked for', `${text('.yaml')}.includes('more characters')`);
}

async function past(page) {
  await api('POST', maps, { metadata: { name: 'short-lived' } });
  await page.run("location.hash = '#/k/v1%2Fconfigmaps?q=short'");
  await page.until('it is there', row('short-lived'));
  await api('DELETE', `${maps}/short-lived`);
  await page.until('it is gone', `!(${row('short-lived')})`);
  await page.run('document.activeElement.blur()');
  await page.key('t');
  await holds(page, 't opens the time bar', "!document.querySelector('.time-bar').hidden && Number(document.querySelector('.time-bar input').max) > 100");
  await page.run("document.querySelector('[aria-label=\"Previous change\"]').click()");
  await holds(page, 'one step back shows the object that is gone', `${row('short-lived')} && document.body.classList.contains('past')`);
  await holds(page, 'what changed since is listed', `${text('.changes')}.includes('deleted') && ${text('.changes')}.includes('short-lived')`);
  await save(page, 'time');
  await page.run("[...document.querySelectorAll('.time-bar button')].find((b) => b.innerText === 'Now').click()");
  await holds(page, 'now returns to the present', `!(${row('short-lived')}) && !document.body.classList.contains('past')`);
  await page.run("document.querySelector('[aria-label=\"Close time\"]').click()");
}

async function dialogs(page) {
  await page.key('k', 2);
  await holds(page, 'Ctrl K opens the palette', "document.querySelector('.palette').open");
  await page.type('deploy');
  await page.key('Enter');
  await holds(page, 'and goes to a kind', `${text('h1')} === 'Deployments'`);
  await page.key('?');
  await holds(page, '? shows the keys', "document.querySelector('.help').open");
  await page.run("document.querySelector('.help').close()");
}

async function looks(page) {
  await page.paint(true);
  await page.run("location.hash = '#/'");
  await page.until('the overview', "document.querySelector('.tile')");
  await holds(page, 'dark follows the system', "getComputedStyle(document.body).backgroundColor === 'rgb(15, 18, 24)'");
  await save(page, 'dark');
  await page.paint(false);
  await page.size(360, 740, 2, true);
  await page.run("location.hash = '#/k/v1%2Fpods'");
  await page.until('rows', "document.querySelectorAll('.row').length > 4");
  await holds(page, 'nothing is wider than a phone', 'document.documentElement.scrollWidth <= 360');
  await save(page, 'phone');
  await page.size(1280, 820, 1, false);
}

async function operators() {
  const page = await browser.open();
  await page.go(demoLink);
  await page.until('the overview', "document.querySelector('.tile')");
  await page.keys('g', 'm');
  await holds(page, 'the demo shows reconciles with their causes', `${text('.runs')}.includes('cloudmanager-sample') && /is new|was there|changed/.test(${text('.runs')})`);
  await page.run("[...document.querySelectorAll('.runs button')].find((b) => b.innerText.includes('write')).click()");
  await holds(page, 'a change can be followed from cause to writes', `${text('.story')}.includes('event') && ${text('.story')}.includes('reconcile') && document.querySelector('.story .write')`);
  await holds(page, 'a reconcile shows what it read', `${text('.story')}.includes('read list ') || ${text('.story')}.includes('read get ')`);
  await page.run("document.querySelector('.story details').open = true");
  await holds(page, 'a write is shown with what it changed', "document.querySelector('.story .yaml.diff .plus')");
  await holds(page, 'the queue of the operator is shown', `${text('.tile .queue')}.includes('waiting')`);
  await holds(page, 'a demo at rest has no hot loop', `!${text('.mind')}.includes('Hot loop')`);
  await save(page, 'operators');
  await page.run("location.hash = [...document.querySelectorAll('.side a')].find((a) => a.innerText === 'CloudManagers').getAttribute('href')");
  await holds(page, 'the CloudManager of the demo is listed', row('cloudmanager-sample'));
  check('no error in the demo', page.errors.length === 0, page.errors);
}

async function accessibility(page) {
  const [pod] = (await api('GET', '/api/v1/namespaces/shop/pods?labelSelector=app%3Dstorefront')).items;
  const axe = readFileSync(createRequire(join(modules, 'x.js')).resolve('axe-core/axe.min.js'), 'utf8');
  for (const hash of ['#/', '#/k/v1%2Fpods', '#/o/apps%2Fv1%2Fdeployments/shop/storefront', '#/mind', '#/access', '#/o/apps%2Fv1%2Fdeployments/shop/storefront?tab=edit', '#/o/v1%2Fpods/shop/STOREFRONT?tab=terminal']) {
    for (const dark of [false, true]) {
      await page.paint(dark);
      await page.run(`location.hash = '${hash.replace('STOREFRONT', pod.metadata.name)}'`);
      await pause(1200);
      await page.call('Runtime.evaluate', { expression: axe });
      const found = await page.run("(await axe.run(document, { resultTypes: ['violations'] })).violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + n.failureSummary).join('; ')}`)");
      check(`axe finds nothing serious at ${hash}${dark ? ' in the dark' : ''}`, found.length === 0, found);
    }
  }
  await page.paint(false);
}

try {
  await workload(api);
  await others.prepare(api);
  const page = await session();
  const lane = { page, browser, api, check, holds, text, row, save };
  for (const part of [overview, live, tables, objects, past, dialogs, looks]) await part(page);
  for (const part of [changes.edit, changes.scale, changes.nodes, changes.terminal, changes.access, changes.between, changes.snapshots]) await part(lane);
  await accessibility(page);
  if (tested) {
    const console_ = await others.start(tested, api, entry(kubeconfig));
    await others.restricted(lane, console_.link);
    console_.end();
  }
  if (demoLink) await operators();
  await load(lane, Number(process.env.CONSOLE_PODS ?? 0), Number(process.env.CONSOLE_PID ?? 0));
  // Answers that were refused on purpose: without a session, and of edits that the server does not accept.
  const errors = page.errors.filter((e) => !/ 40[01] | 422 |status of 40[01]|status of 422/.test(e));
  check('no error in the browser', errors.length === 0, errors);
  const hosts = [...new Set(page.requests.filter((url) => !/^(about|data):/.test(url)).map((url) => new URL(url).host))];
  check('no request to another host', hosts.length === 1 && hosts[0] === new URL(link).host, hosts);
} catch (error) {
  check('the lane comes to its end', false, error.message);
}
browser.close();
console.log(`\n${passed} passed, ${failed.length} failed`);
process.exitCode = failed.length ? 1 : 0;
