"""The client `lightkube`: typed models, and a generic resource for the custom kind."""

from lightkube import ApiError, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

from step import FRUIT, expect, expect_story, finish, step

Fruit = create_namespaced_resource("user.k8sasdb.org", "v1", "Fruit", "fruits")


def watch(client, resource, name, version):
    seen = []
    for event, _ in client.watch(resource, namespace="default", fields={"metadata.name": name},
                                 resource_version=version, server_timeout=20):
        seen.append(event)
        if event == "DELETED":
            break
    expect_story(seen)


def version_of(client, resource):
    found = client.list(resource, namespace="default")
    list(found)
    return found.resourceVersion


def config_maps(client):
    version = version_of(client, ConfigMap)
    with step("create ConfigMap"):
        client.create(ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "1"}))
    with step("list ConfigMap"):
        names = [item.metadata.name for item in client.list(ConfigMap, namespace="default", chunk_size=1)]
        expect("found", "light" in names, True)
    with step("patch ConfigMap"):
        patched = client.patch(ConfigMap, "light", {"data": {"b": "2"}}, namespace="default", patch_type=PatchType.MERGE)
        expect("data", patched.data, {"a": "1", "b": "2"})
    with step("apply ConfigMap"):
        body = ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"c": "3"})
        expect("data", client.apply(body, field_manager="lane").data, {"a": "1", "b": "2", "c": "3"})
    with step("delete ConfigMap"):
        client.delete(ConfigMap, "light", namespace="default")
    with step("watch ConfigMap"):
        watch(client, ConfigMap, "light", version)


def fruits(client):
    version = version_of(client, Fruit)
    with step("create Fruit"):
        made = client.create(Fruit({**FRUIT, "metadata": {"name": "lime", "namespace": "default"}, "spec": {"weight": 50}}))
        expect("the default", made.spec["sweetness"], True)
    with step("invalid Fruit"):
        try:
            client.create(Fruit({**FRUIT, "metadata": {"name": "air", "namespace": "default"}, "spec": {}}))
            expect("the answer", "created", "refused")
        except ApiError as error:
            expect("reason", error.status.reason, "Invalid")
    with step("list Fruit"):
        names = [item.metadata.name for item in client.list(Fruit, namespace="default")]
        expect("found", "lime" in names, True)
    with step("patch Fruit"):
        patched = client.patch(Fruit, "lime", {"spec": {"weight": 51}}, namespace="default", patch_type=PatchType.MERGE)
        expect("weight", patched.spec["weight"], 51)
    with step("apply Fruit"):
        body = Fruit({**FRUIT, "metadata": {"name": "lime", "namespace": "default"}, "spec": {"comment": "sour", "weight": 51}})
        expect("comment", client.apply(body, field_manager="lane", force=True).spec["comment"], "sour")
    with step("delete Fruit"):
        client.delete(Fruit, "lime", namespace="default")
    with step("watch Fruit"):
        watch(client, Fruit, "lime", version)


client = Client(namespace="default")
config_maps(client)
fruits(client)
finish()
