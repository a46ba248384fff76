//! `managedFields` of whole objects: entries, their order and times, and what real servers write.

use serde_json::{Value, json};

use super::super::{
    ApplyError, Entry, FieldManager, Force, Managed, OneVersion, Operation, Reset, ScaleManager,
    Set, Typed, keep_times, scale_conflicts,
};
use crate::types::Table;

const NOW: &str = "2026-01-01T00:00:00Z";

/// A write of a built-in kind.
struct Write<'a> {
    api_version: &'a str,
    kind: &'a str,
    manager: &'a str,
    now: &'a str,
    reset: Reset,
}

impl<'a> Write<'a> {
    fn of(api_version: &'a str, kind: &'a str) -> Self {
        let (manager, now) = ("curl", NOW);
        Write {
            api_version,
            kind,
            manager,
            now,
            reset: Reset::these(&[&["status"]]),
        }
    }

    fn by(self, manager: &'a str) -> Self {
        Write { manager, ..self }
    }

    fn at(self, now: &'a str) -> Self {
        Write { now, ..self }
    }

    fn run<T>(&self, act: impl FnOnce(&FieldManager<'_>) -> T) -> T {
        let (group, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", self.api_version));
        let ty = Table::builtin()
            .kind(group, version, self.kind)
            .expect("is built in");
        let versions = OneVersion {
            api_version: self.api_version,
            typed: Typed::new(Table::builtin(), ty),
        };
        act(&FieldManager {
            versions: &versions,
            api_version: self.api_version,
            kind: self.kind,
            subresource: "",
            manager: self.manager,
            now: self.now,
            reset: &self.reset,
        })
    }

    fn update(&self, live: Option<&Value>, new: &Value) -> Value {
        let mut new = new.clone();
        self.run(|manager| manager.update(live, &mut new));
        new
    }

    fn apply(&self, live: &Value, config: &Value, force: Force) -> Result<Value, ApplyError> {
        self.run(|manager| manager.apply(Some(live), config, force))
    }
}

fn config_map(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "uid": "u", "resourceVersion": "1" },
        "data": data,
    })
}

fn config(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": data })
}

fn created(data: &Value) -> Value {
    Write::of("v1", "ConfigMap").update(None, &config_map(data))
}

fn fields(object: &Value, at: usize) -> &Value {
    &object["metadata"]["managedFields"][at]["fieldsV1"]
}

#[test]
fn new_objects_belong_to_who_made_them() {
    // As a real server answered.
    let created = created(&json!({ "a": "2" }));
    let expected = json!([{
        "manager": "curl", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
        "fieldsV1": { "f:data": { ".": {}, "f:a": {} } },
    }]);
    assert_eq!(created["metadata"]["managedFields"], expected);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "gs", "namespace": "default" },
        "spec": {
            "selector": { "a": "b" }, "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        },
        "status": { "loadBalancer": {} },
    });
    let service = Write::of("v1", "Service").update(None, &service);
    let expected = json!({ "f:spec": {
        "f:internalTrafficPolicy": {}, "f:selector": {}, "f:sessionAffinity": {}, "f:type": {},
        "f:ports": { ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {
            ".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {},
        } },
    } });
    assert_eq!(*fields(&service, 0), expected);
}

#[test]
fn a_forced_apply_takes_a_field_and_comes_first() {
    let live = created(&json!({ "a": "2" }));
    let wanted = config(&json!({ "a": "9" }));
    let refused = Write::of("v1", "ConfigMap")
        .by("m2")
        .apply(&live, &wanted, Force::No);
    let refused = refused.expect_err("somebody else manages it").to_string();
    assert_eq!(
        refused,
        "Apply failed with 1 conflict: conflict with \"curl\" using v1: .data.a"
    );
    let later = "2026-01-01T00:00:05Z";
    let applied = Write::of("v1", "ConfigMap")
        .by("m2")
        .at(later)
        .apply(&live, &wanted, Force::Yes);
    let applied = applied.expect("is forced");
    let expected = json!([
        {
            "manager": "m2", "operation": "Apply", "apiVersion": "v1", "time": later, "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:a": {} } },
        },
        {
            "manager": "curl", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": {} },
        },
    ]);
    assert_eq!(applied["metadata"]["managedFields"], expected);
    assert_eq!(applied["data"], json!({ "a": "9" }));
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let live = created(&json!({ "a": "1", "b": "1" }));
    let live = Write::of("v1", "ConfigMap").by("m1").apply(
        &live,
        &config(&json!({ "b": "1" })),
        Force::No,
    );
    let live = live.expect("is the same value");
    let wanted = config(&json!({ "a": "2", "b": "2" }));
    let refused = Write::of("v1", "ConfigMap")
        .by("m2")
        .apply(&live, &wanted, Force::No);
    let expected = "Apply failed with 3 conflicts: conflicts with \"curl\" using v1:\n- .data.a\n- .data.b\nconflicts \
                    with \"m1\":\n- .data.b";
    assert_eq!(refused.expect_err("others manage it").to_string(), expected);
}

#[test]
fn configurations_are_checked() {
    let live = created(&json!({ "a": "1" }));
    let check = |config: Value, text: &str| {
        let refused = Write::of("v1", "ConfigMap").apply(&live, &config, Force::No);
        assert_eq!(refused.expect_err("is refused").to_string(), text);
    };
    check(
        json!({ "apiVersion": "apps/v1", "kind": "ConfigMap" }),
        "invalid object type: apps/v1, Kind=ConfigMap",
    );
    check(
        json!({ "apiVersion": "v1", "kind": "Secret" }),
        "invalid object type: /v1, Kind=Secret",
    );
    check(json!({}), "invalid object type: /, Kind=");
    check(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "managedFields": [] } }),
        "metadata.managedFields must be nil",
    );
    check(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "nope": 1 }),
        "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema",
    );
}

#[test]
fn times_change_with_fields_alone() {
    let later = "2026-01-02T00:00:00Z";
    let live = created(&json!({ "a": "1" }));
    let write = || Write::of("v1", "ConfigMap").at(later);
    assert_eq!(write().update(Some(&live), &live), live, "nothing changes");
    let mut fewer = live.clone();
    fewer["data"] = json!({});
    let fewer = write().update(Some(&live), &fewer);
    assert_eq!(
        fewer["metadata"]["managedFields"][0]["time"], NOW,
        "what goes has no manager"
    );
    let mut more = live.clone();
    more["data"]["b"] = json!("1");
    let more = write().update(Some(&live), &more);
    assert_eq!(more["metadata"]["managedFields"][0]["time"], later);
    let again = write()
        .apply(&live, &config(&json!({ "a": "1" })), Force::No)
        .expect("is the same");
    let same = Write::of("v1", "ConfigMap").at(NOW).apply(
        &again,
        &config(&json!({ "a": "1" })),
        Force::No,
    );
    assert_eq!(
        same.expect("is the same"),
        again,
        "an apply of the same changes nothing"
    );
}

#[test]
fn a_write_that_changes_times_alone_changes_nothing() {
    let old = created(&json!({ "a": "1" }));
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2026-02-02T00:00:00Z");
    new["metadata"]["resourceVersion"] = json!("");
    let mut changed = new.clone();
    changed["data"]["a"] = json!("2");
    let unlike = changed.clone();
    keep_times(&mut changed, &old);
    assert_eq!(changed, unlike);
    keep_times(&mut new, &old);
    assert_eq!(
        new["metadata"]["managedFields"],
        old["metadata"]["managedFields"]
    );
}

#[test]
fn clients_reset_and_rewrite_entries() {
    let live = created(&json!({ "a": "1" }));
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        let new = Write::of("v1", "ConfigMap").update(Some(&live), &new);
        assert_eq!(new["metadata"].get("managedFields"), None);
        // From then on nobody keeps account, until somebody applies.
        let mut other = new.clone();
        other["data"]["b"] = json!("1");
        let other = Write::of("v1", "ConfigMap").update(Some(&new), &other);
        assert_eq!(other["metadata"].get("managedFields"), None);
        let applied = Write::of("v1", "ConfigMap").by("m").apply(
            &other,
            &config(&json!({ "a": "1" })),
            Force::No,
        );
        let applied = applied.expect("is the same value");
        assert_eq!(
            applied["metadata"]["managedFields"][1]["manager"],
            "before-first-apply"
        );
        assert_eq!(
            *fields(&applied, 1),
            json!({ "f:data": { ".": {}, "f:a": {}, "f:b": {} } })
        );
    }
    for garbage in [json!([{ "operation": "Nope" }]), json!("x"), json!([1])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = garbage;
        assert_eq!(Write::of("v1", "ConfigMap").update(Some(&live), &new), live);
    }
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["manager"] = json!("other");
    let new = Write::of("v1", "ConfigMap").update(Some(&live), &new);
    assert_eq!(new["metadata"]["managedFields"][0]["manager"], "other");
}

#[test]
fn any_number_of_appliers_keep_their_fields() {
    let mut live = created(&json!({}));
    let entry = |n: usize| {
        let fields = json!({ "f:data": { format!("f:k{n}"): {} } });
        json!({
            "manager": format!("m{n}"), "operation": "Apply", "apiVersion": "v1", "time": NOW,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let appliers = 1000;
    live["metadata"]["managedFields"] = (0..appliers).map(entry).collect();
    live["data"] = (0..appliers)
        .map(|n| (format!("k{n}"), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let count = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array();
        entries.map_or(0, Vec::len)
    };
    for more in 1..=3 {
        let key = format!("k{}", appliers + more);
        let manager = format!("m{}", appliers + more);
        let own = config(&json!({ key: "v" }));
        let write = Write::of("v1", "ConfigMap").by(&manager);
        live = write.apply(&live, &own, Force::No).expect("no conflict");
        assert_eq!(count(&live), appliers + more);
    }
    let mut new = live.clone();
    new["data"]["updated"] = json!("v");
    let updated = Write::of("v1", "ConfigMap").update(Some(&live), &new);
    assert_eq!(count(&updated), appliers + 4);
}

#[test]
fn old_updates_are_put_together() {
    let mut live = created(&json!({}));
    for i in 0..13 {
        let (manager, now) = (format!("m{i}"), format!("2026-01-01T00:00:{i:02}Z"));
        let mut new = live.clone();
        new["data"][format!("k{i:02}")] = json!("1");
        live = Write::of("v1", "ConfigMap")
            .by(&manager)
            .at(&now)
            .update(Some(&live), &new);
    }
    let entries = live["metadata"]["managedFields"]
        .as_array()
        .expect("is a list");
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-01T00:00:03Z");
    let expected =
        json!({ "f:data": { ".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {} } });
    assert_eq!(entries[0]["fieldsV1"], expected);
}

/// What `kubectl apply` leaves behind.
fn client_side(data: &Value) -> Value {
    let applied = config(data);
    let mut object = config_map(data);
    object["metadata"]["annotations"] =
        json!({ "kubectl.kubernetes.io/last-applied-configuration": applied.to_string() });
    Write::of("v1", "ConfigMap")
        .by("kubectl-client-side-apply")
        .update(None, &object)
}

#[test]
fn kubectl_takes_over_from_itself() {
    let live = client_side(&json!({ "a": "1", "b": "1" }));
    let wanted = config(&json!({ "a": "2", "b": "1" }));
    let applied = Write::of("v1", "ConfigMap")
        .by("kubectl")
        .apply(&live, &wanted, Force::No);
    let applied = applied.expect("what was applied by the client is not a conflict");
    assert_eq!(applied["data"], json!({ "a": "2", "b": "1" }));
    let annotation =
        &applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let expected = r#"{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"c"}}"#;
    assert_eq!(annotation.as_str(), Some(&*format!("{expected}\n")));
    // Anybody else has a conflict, and so has kubectl where somebody changed what it applied.
    assert!(
        Write::of("v1", "ConfigMap")
            .by("flux")
            .apply(&live, &wanted, Force::No)
            .is_err()
    );
    let mut edited = live.clone();
    edited["data"]["a"] = json!("3");
    let edited = Write::of("v1", "ConfigMap")
        .by("editor")
        .update(Some(&live), &edited);
    let wanted = config(&json!({ "a": "2", "b": "2" }));
    let refused = Write::of("v1", "ConfigMap")
        .by("kubectl")
        .apply(&edited, &wanted, Force::No);
    let expected = "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.a";
    assert_eq!(
        refused.expect_err("somebody edited it").to_string(),
        expected
    );
}

#[test]
fn scale_manages_the_number_of_replicas() {
    let mut live = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" }, "spec": { "replicas": 1, "paused": true },
    });
    live = Write::of("apps/v1", "Deployment").update(None, &live);
    let scale = ScaleManager {
        api_version: "apps/v1",
        manager: "kubectl",
        operation: Operation::Update,
        replicas: &["spec", "replicas"],
    };
    let mut new = live.clone();
    scale.write(&live, &mut new);
    assert_eq!(new, live, "nothing changes");
    new["spec"]["replicas"] = json!(3);
    scale.write(&live, &mut new);
    // As a real server writes it: without a time, and therefore first.
    let expected = json!([
        {
            "manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": { "f:replicas": {} } }, "subresource": "scale",
        },
        {
            "manager": "curl", "operation": "Update", "apiVersion": "apps/v1", "time": NOW, "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": { "f:paused": {} } },
        },
    ]);
    assert_eq!(new["metadata"]["managedFields"], expected);
    let apply = ScaleManager {
        operation: Operation::Apply,
        manager: "flux",
        ..scale
    };
    let refused = scale_conflicts(&apply, &new, 5, Force::No).expect_err("kubectl manages it");
    let expected = "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" using \
                    autoscaling/v1: .spec.replicas";
    assert_eq!(refused.to_string(), expected);
    scale_conflicts(&apply, &new, 3, Force::No).expect("is the same number");
    scale_conflicts(&apply, &new, 5, Force::Yes).expect("is forced");
}

#[test]
fn entries_are_written_in_order() {
    let entry = |manager: &str, operation, time: Option<&str>, subresource: &str| Entry {
        manager: manager.to_owned(),
        operation,
        api_version: "v1".to_owned(),
        subresource: subresource.to_owned(),
        time: time.map(str::to_owned),
        fields: Set::new(),
    };
    let managed = Managed(vec![
        entry("b", Operation::Update, Some(NOW), ""),
        entry("a", Operation::Update, Some(NOW), "status"),
        entry("a", Operation::Update, Some(NOW), ""),
        entry("z", Operation::Update, None, ""),
        entry("y", Operation::Apply, Some("2027-01-01T00:00:00Z"), ""),
    ]);
    let mut object = json!({});
    managed.write(&mut object);
    let order: Vec<String> = object["metadata"]["managedFields"]
        .as_array()
        .expect("is a list")
        .iter()
        .map(|e| {
            format!(
                "{} {}",
                e["manager"],
                e.get("subresource").unwrap_or(&Value::Null)
            )
        })
        .collect();
    assert_eq!(
        order,
        [
            "\"y\" null",
            "\"z\" null",
            "\"a\" null",
            "\"a\" \"status\"",
            "\"b\" null"
        ]
    );
}
