"""ansible's collection kubernetes.core: logs, taints and drains, as playbooks use them."""

import json
import os
import subprocess
import sys
import time

from kubernetes import client, config

from step import expect, finish, step

ANSIBLE = os.path.join(os.path.dirname(sys.executable), "ansible")
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ansible"},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}


def module(module_name, /, **arguments):
    """Runs one module and gives its result."""
    command = [ANSIBLE, "localhost", "-i", "localhost,", "-c", "local", "-m", f"kubernetes.core.{module_name}", "-a",
               json.dumps(arguments), "-e", f"ansible_python_interpreter={sys.executable}"]
    environment = {**os.environ, "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1", "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{module_name} ended with {done.returncode}: {done.stdout[-400:]} {done.stderr[-200:]}")
    task = json.loads(done.stdout[done.stdout.index("{"):])["plays"][0]["tasks"][0]
    return task["hosts"]["localhost"]


def until(what, look):
    """Waits until something is so."""
    end = time.monotonic() + 30
    while not look():
        if time.monotonic() > end:
            raise AssertionError(f"timed out after 30 s waiting for {what}")
        time.sleep(0.05)


config.load_kube_config()
core = client.CoreV1Api()
with step("list Nodes"):
    nodes = core.list_node().items
    expect("nodes", bool(nodes), True)
with step("k8s"):
    result = module("k8s", state="present", namespace="default", definition=POD)
    expect("changed", result["changed"], True)
    until("the pod to run", lambda: core.read_namespaced_pod("ansible", "default").status.phase == "Running")
node = core.read_namespaced_pod("ansible", "default").spec.node_name
with step("k8s_log"):
    result = module("k8s_log", namespace="default", name="ansible")
    expect("a log", isinstance(result["log"], str), True)
with step("k8s_taint"):
    module("k8s_taint", name=node, state="present", taints=[{"key": "lane", "value": "ansible", "effect": "NoSchedule"}])
    taints = [taint.key for taint in core.read_node(node).spec.taints]
    expect("taints", taints, ["lane"])
with step("k8s_drain"):
    options = {"force": True, "delete_emptydir_data": True, "terminate_grace_period": 0, "wait_timeout": 30}
    module("k8s_drain", name=node, state="drain", delete_options=options)
    expect("cordoned", core.read_node(node).spec.unschedulable, True)
    left = core.list_namespaced_pod("default", field_selector=f"spec.nodeName={node}").items
    expect("pods", [pod.metadata.name for pod in left], [])
finish()
