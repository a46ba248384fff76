// @kubernetes/client-node: the typed client on a built-in kind, KubernetesObjectApi on a custom one, watches on both.

import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const namespace = "default";
let failed = false;

/** Runs one step and tells how it went. */
async function step(name, run) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${name}: ${String(error.message ?? error).replace(/\s+/g, " ").slice(0, 300)}`);
  }
}

function expect(what, found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${what} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  }
}

/** Follows objects of a path until one is gone; `started` is when the server has answered. */
function follow(path, name) {
  const seen = [];
  let begun;
  const started = new Promise((resolve) => (begun = resolve));
  const ended = new Promise((resolve, reject) => {
    const watch = new k8s.Watch(config);
    const late = setTimeout(() => reject(new Error(`only ${seen} came`)), 20_000);
    watch
      .watch(path, { fieldSelector: `metadata.name=${name}` }, (type) => {
        seen.push(type);
        if (type === "DELETED") {
          clearTimeout(late);
          resolve(seen);
        }
      }, (error) => error && reject(error))
      .then((controller) => {
        begun();
        ended.then(() => controller.abort(), () => controller.abort());
      }, reject);
  });
  return { started, ended };
}

async function story(ended) {
  const seen = await ended;
  expect("the story", [seen[0], seen.includes("MODIFIED"), seen.at(-1)], ["ADDED", true, "DELETED"]);
}

async function configMaps() {
  const { started, ended } = follow("/api/v1/namespaces/default/configmaps", "node");
  await started;
  await step("create ConfigMap", async () => {
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "node" }, data: { a: "1" } } });
  });
  await step("list ConfigMap", async () => {
    const list = await core.listNamespacedConfigMap({ namespace, fieldSelector: "metadata.name=node" });
    expect("count", list.items.length, 1);
  });
  await step("patch ConfigMap", async () => {
    const patch = [{ op: "add", path: "/data/b", value: "2" }];
    const patched = await core.patchNamespacedConfigMap({ namespace, name: "node", body: patch },
      k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.JsonPatch));
    expect("data", patched.data, { a: "1", b: "2" });
  });
  await step("apply ConfigMap", async () => {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "node", namespace }, data: { c: "3" } };
    const applied = await objects.patch(body, undefined, undefined, "lane", undefined, k8s.PatchStrategy.ServerSideApply);
    expect("data", applied.data, { a: "1", b: "2", c: "3" });
  });
  await step("delete ConfigMap", () => core.deleteNamespacedConfigMap({ namespace, name: "node" }));
  await step("watch ConfigMap", () => story(ended));
}

async function fruits() {
  const { started, ended } = follow("/apis/user.k8sasdb.org/v1/namespaces/default/fruits", "nashi");
  await started;
  const body = (spec) => ({ apiVersion: "user.k8sasdb.org/v1", kind: "Fruit", metadata: { name: "nashi", namespace }, spec });
  await step("create Fruit", async () => {
    const made = await objects.create(body({ weight: 180 }));
    expect("the default", made.spec.sweetness, true);
  });
  await step("list Fruit", async () => {
    const list = await objects.list("user.k8sasdb.org/v1", "Fruit", namespace);
    expect("found", list.items.some((item) => item.metadata.name === "nashi"), true);
  });
  await step("patch Fruit", async () => {
    const patched = await objects.patch(body({ weight: 181 }), undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
    expect("weight", patched.spec.weight, 181);
  });
  await step("apply Fruit", async () => {
    const applied = await objects.patch(body({ weight: 181, comment: "crisp" }), undefined, undefined, "lane", true, k8s.PatchStrategy.ServerSideApply);
    expect("comment", applied.spec.comment, "crisp");
  });
  await step("delete Fruit", () => objects.delete(body({})));
  await step("watch Fruit", () => story(ended));
}

await configMaps();
await fruits();
process.exit(failed ? 1 : 0);
