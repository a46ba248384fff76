"""An operator written with `kopf`, run in this process: handlers, finalizers, status, events."""

import asyncio
import threading
import time

import kopf
from kubernetes import client, config

from step import FRUIT, expect, finish, step

GROUP = ("user.k8sasdb.org", "v1", "default", "fruits")


@kopf.on.create("user.k8sasdb.org", "v1", "fruits")
def create(name, spec, patch, body, **_):
    core = client.CoreV1Api()
    owned = {"metadata": {"name": name}, "data": {"weight": str(spec["weight"])}}
    kopf.adopt(owned, owner=body)
    core.create_namespaced_config_map("default", owned)
    patch.status["eaten"] = False
    kopf.info(body, reason="Picked", message="The fruit was picked")


@kopf.on.update("user.k8sasdb.org", "v1", "fruits", field="spec.weight")
def weigh(name, new, **_):
    client.CoreV1Api().patch_namespaced_config_map(name, "default", {"data": {"weight": str(new)}})


@kopf.on.delete("user.k8sasdb.org", "v1", "fruits")
def delete(name, **_):
    client.CoreV1Api().delete_namespaced_config_map(name, "default")


def eventually(try_once):
    """Tries until it works or time is up."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return try_once()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def steps(core, api):
    with step("create Fruit"):
        api.create_namespaced_custom_object(*GROUP, {**FRUIT, "metadata": {"name": "medlar"}, "spec": {"weight": 30}})
    with step("handle create"):
        owned = eventually(lambda: core.read_namespaced_config_map("medlar", "default"))
        expect("owner", owned.metadata.owner_references[0].kind, "Fruit")
        found = eventually(lambda: finalized(api))
        expect("eaten", found["status"]["eaten"], False)
    with step("post event"):
        def event():
            found = core.list_namespaced_event("default", field_selector="involvedObject.name=medlar")
            expect("reasons", "Picked" in [item.reason for item in found.items], True)
        eventually(event)
    with step("handle update"):
        api.patch_namespaced_custom_object(*GROUP, "medlar", {"spec": {"weight": 31}})
        eventually(lambda: expect("weight", core.read_namespaced_config_map("medlar", "default").data["weight"], "31"))
    with step("handle delete"):
        api.delete_namespaced_custom_object(*GROUP, "medlar")
        eventually(lambda: expect("fruits", api.list_namespaced_custom_object(*GROUP)["items"], []))
        expect("owned", core.list_namespaced_config_map("default", field_selector="metadata.name=medlar").items, [])


def finalized(api):
    found = api.get_namespaced_custom_object(*GROUP, "medlar")
    expect("finalizers", len(found["metadata"].get("finalizers", [])), 1)
    found["status"]["eaten"]
    return found


def operate(ready, stop):
    kopf.configure(log_format=kopf.LogFormat.PLAIN)
    asyncio.run(kopf.operator(namespaces=["default"], standalone=True, ready_flag=ready, stop_flag=stop))


config.load_kube_config()
ready, stop = threading.Event(), threading.Event()
operator = threading.Thread(target=operate, args=(ready, stop), daemon=True)
operator.start()
with step("start operator"):
    expect("ready", ready.wait(30), True)
steps(client.CoreV1Api(), client.CustomObjectsApi())
stop.set()
with step("stop operator"):
    operator.join(30)
    expect("running", operator.is_alive(), False)
finish()
