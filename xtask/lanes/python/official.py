"""The client `kubernetes`: typed on a built-in kind, by CustomObjectsApi and the dynamic client on a custom one."""

from kubernetes import client, config, dynamic, watch

from step import FRUIT, expect, expect_story, finish, step

GROUP = ("user.k8sasdb.org", "v1", "default", "fruits")


def config_maps(core):
    version = core.list_namespaced_config_map("default").metadata.resource_version
    with step("create ConfigMap"):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="python", labels={"lane": "python"}), data={"a": "1"})
        core.create_namespaced_config_map("default", body)
    with step("list ConfigMap"):
        found = core.list_namespaced_config_map("default", label_selector="lane=python", limit=1)
        expect("names", [item.metadata.name for item in found.items], ["python"])
    with step("patch ConfigMap"):
        expect("data", core.patch_namespaced_config_map("python", "default", {"data": {"b": "2"}}).data, {"a": "1", "b": "2"})
    with step("apply ConfigMap"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "python"}, "data": {"c": "3"}}
        applied = core.patch_namespaced_config_map(
            "python", "default", body, field_manager="lane", _content_type="application/apply-patch+yaml")
        expect("data", applied.data, {"a": "1", "b": "2", "c": "3"})
    with step("delete ConfigMap"):
        core.delete_namespaced_config_map("python", "default")
    with step("watch ConfigMap"):
        seen = []
        stream = watch.Watch().stream(core.list_namespaced_config_map, "default", label_selector="lane=python",
                                      resource_version=version, timeout_seconds=20)
        for event in stream:
            seen.append(event["type"])
            if seen[-1] == "DELETED":
                break
        expect_story(seen)


def nodes(core):
    with step("list Nodes"):
        core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="python")))
        expect("names", [node.metadata.name for node in core.list_node().items], ["python"])


def fruits(api):
    version = api.list_namespaced_custom_object(*GROUP)["metadata"]["resourceVersion"]
    with step("create Fruit"):
        made = api.create_namespaced_custom_object(*GROUP, {**FRUIT, "metadata": {"name": "plum"}, "spec": {"weight": 60}})
        expect("the default", made["spec"]["sweetness"], True)
    with step("invalid Fruit"):
        try:
            api.create_namespaced_custom_object(*GROUP, {**FRUIT, "metadata": {"name": "air"}, "spec": {"weight": 0}})
            expect("the answer", "created", "refused")
        except client.ApiException as error:
            expect("status", error.status, 422)
    with step("list Fruit"):
        found = api.list_namespaced_custom_object(*GROUP, field_selector="metadata.name=plum")
        expect("count", len(found["items"]), 1)
    with step("patch Fruit"):
        expect("weight", api.patch_namespaced_custom_object(*GROUP, "plum", {"spec": {"weight": 61}})["spec"]["weight"], 61)
    with step("status Fruit"):
        changed = api.patch_namespaced_custom_object_status(*GROUP, "plum", {"status": {"eaten": True}})
        expect("eaten", changed["status"]["eaten"], True)
    with step("delete Fruit"):
        api.delete_namespaced_custom_object(*GROUP, "plum")
    with step("watch Fruit"):
        seen = []
        for event in watch.Watch().stream(api.list_namespaced_custom_object, *GROUP, field_selector="metadata.name=plum",
                                          resource_version=version, timeout_seconds=20):
            seen.append(event["type"])
            if seen[-1] == "DELETED":
                break
        expect_story(seen)


def by_discovery(cluster):
    with step("discover Fruit"):
        resource = cluster.resources.get(api_version="user.k8sasdb.org/v1", kind="Fruit")
        expect("plural", resource.name, "fruits")
    with step("apply Fruit"):
        body = {**FRUIT, "metadata": {"name": "quince"}, "spec": {"weight": 200}}
        applied = resource.server_side_apply(body=body, name="quince", namespace="default", field_manager="lane")
        expect("weight", applied.spec.weight, 200)
        resource.delete(name="quince", namespace="default")


config.load_kube_config()
config_maps(client.CoreV1Api())
nodes(client.CoreV1Api())
fruits(client.CustomObjectsApi())
by_discovery(dynamic.DynamicClient(client.ApiClient()))
finish()
