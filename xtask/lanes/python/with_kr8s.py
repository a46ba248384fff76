"""The client `kr8s`, which finds out everything by discovery."""

import threading

import kr8s
from kr8s.objects import ConfigMap, new_class

from step import FRUIT, expect, expect_story, finish, step

Fruit = new_class(kind="Fruit", version="user.k8sasdb.org/v1", namespaced=True)


def story(kind, name, seen, ready):
    """Follows one object until it is gone."""
    ready.set()
    for event, found in kr8s.watch(kind, namespace="default", field_selector=f"metadata.name={name}"):
        seen.append(event)
        if event == "DELETED":
            return


def steps(kind, label, body, change):
    seen, ready = [], threading.Event()
    follower = threading.Thread(target=story, args=(kind, body["metadata"]["name"], seen, ready), daemon=True)
    made = {"ConfigMap": ConfigMap, "Fruit": Fruit}[label](body)
    with step(f"create {label}"):
        made.create()
        expect("exists", made.exists(), True)
    follower.start()
    ready.wait()
    with step(f"list {label}"):
        names = [item.name for item in kr8s.get(kind, namespace="default")]
        expect("found", body["metadata"]["name"] in names, True)
    with step(f"patch {label}"):
        while not seen and follower.is_alive():
            follower.join(0.05)
        made.patch(change)
        made.refresh()
        for field, value in change.items():
            for key, expected in value.items():
                expect(key, made.raw[field][key], expected)
    with step(f"label {label}"):
        made.label({"lane": "kr8s"})
        expect("labels", dict(made.labels)["lane"], "kr8s")
    with step(f"delete {label}"):
        made.delete()
        made.wait("delete", timeout=20)
    with step(f"watch {label}"):
        follower.join(20)
        expect_story(seen)


steps("configmaps", "ConfigMap",
      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kr8s", "namespace": "default"}, "data": {"a": "1"}},
      {"data": {"b": "2"}})
steps("fruits.user.k8sasdb.org", "Fruit",
      {**FRUIT, "metadata": {"name": "kiwi", "namespace": "default"}, "spec": {"weight": 70}},
      {"spec": {"weight": 71}})
finish()
