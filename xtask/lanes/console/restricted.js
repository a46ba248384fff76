// The console for somebody who may see little: a service account with a role, through a kubeconfig of its own.

import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const GROUP = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop';

export async function prepare(api) {
  await api('POST', '/api/v1/namespaces/shop/serviceaccounts', { metadata: { name: 'viewer' } });
  await api('POST', `${GROUP}/roles`, { metadata: { name: 'viewer' }, rules: [{ apiGroups: ['', 'apps'], resources: ['configmaps', 'deployments'], verbs: ['get', 'list', 'watch'] }] });
  await api('POST', `${GROUP}/rolebindings`, { metadata: { name: 'viewers' }, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'viewer' }, subjects: [{ kind: 'ServiceAccount', name: 'viewer', namespace: 'shop' }] });
}

// Starts a console with the rights of the service account; gives its link and how to end it.
export async function start(program, api, server, more = []) {
  const { status } = await api('POST', '/api/v1/namespaces/shop/serviceaccounts/viewer/token', { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} });
  const file = join(mkdtempSync(join(tmpdir(), 'console-lane-')), 'kubeconfig');
  const config = { apiVersion: 'v1', kind: 'Config', 'current-context': 'x', contexts: [{ name: 'x', context: { cluster: 'x', user: 'x', namespace: 'shop' } }], clusters: [{ name: 'x', cluster: server }], users: [{ name: 'x', user: { token: status.token } }] };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const child = spawn(program, ['console', '--kubeconfig', file, ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
  const link = await new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (data) => { said += data; const found = /http:\/\/\S+/.exec(said); if (found) resolve(found[0]); });
    child.on('exit', () => reject(new Error(`the console ended: ${said}`)));
  });
  return { link, end: () => child.kill() };
}

export async function restricted({ browser, holds, check, text, row }, link) {
  const page = await browser.open();
  await page.go(link);
  await holds(page, 'a restricted user is named', `${text('.who')}.includes('system:serviceaccount:shop:viewer')`);
  await holds(page, 'what the user may not see is not shown, and says why', `${text('.refused')}.includes('Secrets') && ${text('.refused')}.includes('cannot list')`);
  await page.run("location.hash = '#/k/v1%2Fconfigmaps'");
  await holds(page, 'one namespace is shown where the others are forbidden', `${row('hostile')} && ${text('.notice')}.includes('Only namespace shop')`);
  await page.run("location.hash = '#/o/apps%2Fv1%2Fdeployments/shop/storefront'");
  await page.until('the object', `${text('h1')} === 'storefront' && ${text('.state')}.includes('old')`);
  await new Promise((resolve) => setTimeout(resolve, 700));
  check('no action is offered to who may not do it', await page.run("document.querySelectorAll('.actions button').length === 0"));
  await page.run("location.hash = '#/o/v1%2Fsecrets/shop/api-key'");
  await holds(page, 'a secret is refused in the words of the server', `${text('.notice.bad')}.includes('cannot')`);
  await page.run("location.hash = '#/access'");
  await holds(page, 'access says that it could not read everything', `${text('.access-result')}.includes('Not everything could be read')`);
  check('no error for the restricted user', page.errors.filter((e) => !/40[13]/.test(e)).length === 0, page.errors);
  await page.close();
}
