// What the lane changes from the page: edit, scale, restart, delete, cordon, drain, a terminal, snapshots; and who may.

const DEPLOYMENT = '#/o/apps%2Fv1%2Fdeployments/shop/';
const button = (label, within = 'main') => `[...document.querySelectorAll(${JSON.stringify(`${within} button`)})].find((b) => b.innerText === ${JSON.stringify(label)})`;
const click = (page, label, within) => page.until(`the button ${label}`, `(() => { const b = ${button(label, within)}; b?.click(); return Boolean(b); })()`);
// Goes to an object and waits until its page is there.
async function visit(page, hash, name) {
  await page.run(`location.hash = '${hash}'`);
  await page.until(`the page of ${name}`, `document.querySelector('h1').innerText === '${name}' && document.querySelector('.state')?.innerText.includes('old')`);
}
const dialog = 'dialog.action[open]';

export async function edit({ page, holds, check, text, api, save }) {
  await visit(page, `${DEPLOYMENT}cart`, 'cart');
  await holds(page, 'actions are offered to an administrator', `${text('.actions')}.includes('Scale') && ${text('.actions')}.includes('Delete')`);
  await page.run('document.activeElement.blur()');
  await page.key('e');
  await holds(page, 'e opens the editor', "document.querySelector('.code')?.value.includes('replicas: 2')");
  const type = (from, to) => page.run(`(() => { const a = document.querySelector('.code'); a.value = a.value.replace(${JSON.stringify(from)}, ${JSON.stringify(to)}); a.dispatchEvent(new Event('input')); })()`);
  await type('replicas: 2', 'replicas: -2');
  await holds(page, 'an edit that validation refuses shows the field', `${text('.edit-message')}.includes('spec.replicas') && document.querySelector('.field-note')?.innerText.includes('greater than or equal to 0')`);
  check('and marks its line', await page.run("(() => { const n = [...document.querySelectorAll('.gutter span')].findIndex((s) => s.classList.contains('bad')); return document.querySelector('.code').value.split('\\n')[n]?.trim() === 'replicas: -2'; })()"));
  await save(page, 'edit');
  await type('replicas: -2', 'replicas: 2\n  replicsa: 3');
  await holds(page, 'an unknown field is refused by name', `document.querySelector('.field-note')?.innerText.includes('no such field')`);
  await type('replicas: 2\n  replicsa: 3', 'replicas: 3');
  await holds(page, 'a dry run shows what would change', `${text('.review')}.includes('+   replicas: 3') && ${text('.review')}.includes('-   replicas: 2')`);
  check('and nothing is written by it', (await api('GET', '/apis/apps/v1/namespaces/shop/deployments/cart')).spec.replicas === 2);
  await click(page, 'Save');
  await page.until('it is saved', "document.querySelector('.toast.good')");
  check('an edit is saved', (await api('GET', '/apis/apps/v1/namespaces/shop/deployments/cart')).spec.replicas === 3);
  await page.until('the editor begins anew', `${text('.edit-message')}.includes('is shown here')`);
  await type('replicas: 3', 'replicas: [3');
  await holds(page, 'text that is not YAML is refused at its line', "document.querySelector('.field-note') && document.querySelector('.gutter .bad')");
}

export async function scale({ page, holds, check, text, api }) {
  await visit(page, `${DEPLOYMENT}search`, 'search');
  await click(page, 'Scale');
  await page.until('the dialog', `document.querySelector('${dialog} input')`);
  await page.run(`(() => { document.querySelector('${dialog} input').value = '5'; })()`);
  await click(page, 'Scale', dialog);
  await holds(page, 'a deployment scales, and the tree grows without a reload', "document.querySelectorAll('.tree [aria-level=\"3\"]').length === 5");
  await click(page, 'Restart');
  await click(page, 'Restart', dialog);
  await holds(page, 'a restart rolls out a second ReplicaSet', "document.querySelectorAll('.tree [aria-level=\"2\"]').length === 2");
  check('with the annotation of kubectl', Boolean((await api('GET', '/apis/apps/v1/namespaces/shop/deployments/search')).spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt']));
  await visit(page, '#/o/apps%2Fv1%2Fdeployments/billing/ledger', 'ledger');
  await click(page, 'Delete');
  await holds(page, 'a deletion names what goes with it', `${text('.going')}.includes('2 objects') && ${text('.going')}.includes('1 ReplicaSet') && ${text('.going')}.includes('1 Pod')`);
  await click(page, 'Delete', dialog);
  await holds(page, 'and goes back to the table', `${text('h1')} === 'Deployments' && ![...document.querySelectorAll('.row')].some((r) => r.innerText.includes('ledger'))`);
}

export async function nodes({ page, holds, check, text, api }) {
  const [node] = (await api('GET', '/api/v1/nodes')).items.map((one) => one.metadata.name);
  await visit(page, `#/o/v1%2Fnodes/-/${node}`, node);
  await click(page, 'Cordon');
  await holds(page, 'a node is cordoned', button('Uncordon'));
  await click(page, 'Drain');
  await click(page, 'Drain', dialog);
  await holds(page, 'a drain shows each pod and its end', `/Done: \\d+ pods? evicted\\./.test(${text('.steps')})`);
  const left = (await api('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`)).items.filter((pod) => !pod.metadata.deletionTimestamp);
  check('and leaves the node empty', left.length === 0, left.map((pod) => pod.metadata.name));
  await page.run(`document.querySelector('${dialog}').close()`);
  await click(page, 'Uncordon');
  await holds(page, 'and can be uncordoned', button('Cordon'));
}

export async function terminal({ page, holds, check, text, api, save }) {
  const pods = (await api('GET', '/api/v1/namespaces/shop/pods?labelSelector=app%3Dstorefront')).items;
  const pod = pods.find((one) => one.status.phase === 'Running' && !one.metadata.deletionTimestamp).metadata.name;
  await visit(page, `#/o/v1%2Fpods/shop/${pod}`, pod);
  await page.until('the pod', `${text('.tabs')}.includes('Terminal')`);
  await page.run('document.activeElement.blur()');
  await page.key('x');
  await holds(page, 'x opens a terminal with a prompt', `${text('.terminal-text')}.includes('#') && document.activeElement.className === 'terminal-field'`);
  await page.type("echo 'marked by the lane' && hostname");
  await page.key('Enter');
  await holds(page, 'what is typed reaches the container', `${text('.terminal-text')}.split('marked by the lane').length === 3 && ${text('.terminal-text')}.includes('${pod}')`);
  await save(page, 'terminal');
  await page.type('exit');
  await page.key('Enter');
  await holds(page, 'the terminal says how the command ended', `${text('.terminal-box .tally')}.includes('ended')`);
  const bytes = await page.run(`new TextEncoder().encode(document.querySelector('.terminal-text').innerText).length`);
  check('the screen is plain text', bytes > 20);
}

export async function access({ page, holds, text, save }) {
  await page.run('document.activeElement.blur()');
  await page.keys('g', 'a');
  await holds(page, 'g a shows who may do this', `${text('h1')} === 'Access' && ${text('.access-result')}.includes('system:masters')`);
  await page.run("location.hash = '#/access?verb=list&kind=v1%2Fconfigmaps&ns=shop'");
  await holds(page, 'a subject is named with its binding and rule', `${text('.access-result')}.includes('shop/viewer') && ${text('.access-result')}.includes('viewers') && ${text('.access-result')}.includes('list')`);
  await save(page, 'access');
}

export async function snapshots({ page, holds, text, api, browser, check }) {
  await page.run("location.hash = '#/k/v1%2Fconfigmaps'");
  await page.run('document.activeElement.blur()');
  await page.key('t');
  await page.until('the bar', "!document.querySelector('.snapshot-box')?.hidden");
  await page.run("document.querySelector('.snapshot-box input').value = 'before'");
  await click(page, 'Take', '.snapshot-box');
  await holds(page, 'a snapshot is taken and named', `${text('.snapshots')}.includes('before')`);
  await api('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'after-the-snapshot' } });
  await click(page, 'Compare with now', '.snapshot-box');
  await holds(page, 'and compared with the present', `${text('.snapshot-box .changes')}.includes('added') && ${text('.snapshot-box .changes')}.includes('after-the-snapshot')`);
  await click(page, 'Fork', '.snapshot-box');
  const link = await page.until('the fork', "document.querySelector('.snapshots a')?.href");
  const other = await browser.open();
  await other.go(link);
  await other.until('the fork', "document.querySelector('.tile')");
  await other.run("location.hash = '#/k/v1%2Fconfigmaps'");
  await holds(other, 'and forked into a second cluster', "[...document.querySelectorAll('.row')].some((r) => r.innerText.includes('hostile'))");
  check('which does not have what came later', !(await other.run("document.body.innerText.includes('after-the-snapshot')")));
  await other.close();
  await page.run("document.querySelector('[aria-label=\"Close time\"]').click()");
}

export async function between({ page, holds, text, api }) {
  await page.run("location.hash = '#/k/v1%2Fconfigmaps'");
  await page.run('document.activeElement.blur()');
  await page.key('t');
  await page.until('the bar', "Number(document.querySelector('.time-bar input').max) > 100");
  await page.run("[...document.querySelectorAll('.time-bar button')].find((b) => b.innerText === 'Mark').click()");
  await api('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'between' }, data: { a: '1' } });
  await holds(page, 'what changed between two moments is listed', `${text('.time-bar .changes')}.includes('ConfigMap shop/between')`);
  await page.run("document.querySelector('[aria-label=\"Close time\"]').click()");
}
