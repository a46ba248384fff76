// What the lane puts into the cluster.

export const toyKind = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'toys.example.com' }, spec: { group: 'example.com', scope: 'Namespaced', names: { plural: 'toys', singular: 'toy', kind: 'Toy', listKind: 'ToyList' }, versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } } } }, additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }] }] } };

export const toy = (name, size) => ({ apiVersion: 'example.com/v1', kind: 'Toy', metadata: { name }, spec: { size } });

function deployment(name, replicas, selector = undefined) {
  const labels = { app: name };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels }, spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { nodeSelector: selector, containers: [{ name: 'main', image: 'nginx:1.27' }] } } } };
}

export async function workload(api) {
  for (const name of ['shop', 'billing']) await api('POST', '/api/v1/namespaces', { metadata: { name } });
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (const [namespace, name, replicas] of [['shop', 'storefront', 4], ['shop', 'cart', 2], ['shop', 'search', 3], ['billing', 'invoices', 2], ['billing', 'ledger', 1]]) await api('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, deployment(name, replicas));
  await api('POST', '/apis/apps/v1/namespaces/shop/deployments', deployment('recommender', 2, { gpu: 'true' }));
  await api('POST', '/api/v1/namespaces/shop/services', { metadata: { name: 'storefront' }, spec: { selector: { app: 'storefront' }, ports: [{ port: 80 }] } });
  await api('POST', '/api/v1/namespaces/shop/secrets', { metadata: { name: 'api-key' }, stringData: { password: 'hunter2' } });
  await api('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'hostile', annotations: { picture: '<img src=x onerror=alert(1)>', large: 'x'.repeat(200_000) } } });
  await new Promise((resolve) => setTimeout(resolve, 1500));
}

// Pods that wait for a node that there is not: they are rows, and nothing runs them.
export async function pods(api, count) {
  const one = (n) => api('POST', '/api/v1/namespaces/shop/pods', { metadata: { name: `load-${n}`, labels: { app: 'load' } }, spec: { schedulerName: 'nobody', containers: [{ name: 'main', image: 'nginx:1.27' }] } });
  for (let n = 0; n < count; n += 50) await Promise.all(Array.from({ length: Math.min(50, count - n) }, (_, m) => one(n + m)));
}

// Kinds of a group of their own, with an object each.
export async function kinds(api, count) {
  for (let n = 0; n < count; n += 1) {
    const name = `load${n}s`;
    const kind = `Load${n}`;
    await api('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { ...toyKind, metadata: { name: `${name}.load.example.com` }, spec: { ...toyKind.spec, group: 'load.example.com', names: { plural: name, singular: `load${n}`, kind, listKind: `${kind}List` } } });
  }
}
