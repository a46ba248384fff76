//! Objects with too much of what is allowed, or with fields that only the server sets.

use serde_json::{Map, Value, json};

use crate::call::Ask;
use crate::host::{
    CONFIG_MAPS, DEPLOYMENTS, Host, INVALID, MEMORY, WIDGETS, config_map, deployment, padding,
    peak_memory, widget,
};

fn many<T: Into<Value>>(count: usize, item: impl Fn(usize) -> (String, T)) -> Value {
    let items = (0..count).map(item).map(|(key, value)| (key, value.into()));
    Value::Object(items.collect::<Map<_, _>>())
}

#[tokio::test]
async fn annotations_hold_a_quarter_of_a_megabyte() {
    let host = Host::start().await;
    for (path, mut object) in [
        (CONFIG_MAPS, config_map("notes")),
        (WIDGETS, widget("notes")),
    ] {
        object["metadata"]["annotations"] = json!({"a": padding(256 * 1024)});
        let answer = host
            .refuses("annotations", Ask::post(path, &object), INVALID)
            .await;
        assert!(
            answer
                .message()
                .contains("metadata.annotations: Too long: may not be more than 262144 bytes"),
            "{}",
            crate::host::shorten(&answer.message())
        );
        object["metadata"]["annotations"] = json!({"a": padding(256 * 1024 - 1)});
        host.must(Ask::post(path, &object)).await;
    }
}

#[tokio::test]
async fn a_hundred_thousand_mistakes_cost_time_and_memory_in_proportion() {
    let host = Host::start().await;
    let memory = peak_memory();
    let labels = many(100_000, |i| (format!("{i}-"), "-"));
    let finalizers: Vec<String> = (0..100_000).map(|i| format!("{i}/!/")).collect();
    let owners: Vec<Value> = (0..50_000)
        .map(|i| json!({"apiVersion": "", "kind": "", "name": format!("{i}"), "uid": ""}))
        .collect();
    let data = many(100_000, |i| (format!("{i}!"), ""));
    let metadata = |field: &str, value: Value| {
        let mut object = config_map("many");
        object["metadata"][field] = value;
        object
    };
    let mut keys = config_map("many");
    keys["data"] = data;
    for (attack, object) in [
        ("labels", metadata("labels", labels.clone())),
        ("annotations", metadata("annotations", labels)),
        ("finalizers", metadata("finalizers", json!(finalizers))),
        ("owners", metadata("ownerReferences", json!(owners))),
        ("keys", keys),
    ] {
        let answer = host
            .refuses(attack, Ask::post(CONFIG_MAPS, object), INVALID)
            .await;
        assert!(
            answer.body.len() < 4 << 20,
            "{attack}: the answer has {} bytes",
            answer.body.len()
        );
    }
    assert!(peak_memory() - memory < MEMORY);
}

#[tokio::test]
async fn many_list_items_are_checked_in_proportion() {
    let host = Host::start().await;
    let container = |i: usize| json!({"name": format!("c{i}"), "image": "i", "env": [{"name": "A", "value": "$(A)"}]});
    let mut pods = deployment("many");
    pods["spec"]["template"]["spec"]["containers"] = (0..20_000).map(container).collect();
    pods["spec"]["replicas"] = json!(-1);
    host.refuses("containers", Ask::post(DEPLOYMENTS, pods), INVALID)
        .await;
    let ports: Value = (0..40_000)
        .map(|i| json!({"name": format!("p{i}"), "port": i % 65_535 + 1}))
        .collect();
    let service =
        json!({"metadata": {"name": "many"}, "spec": {"ports": ports, "sessionAffinity": "x"}});
    host.refuses(
        "ports",
        Ask::post("/api/v1/namespaces/default/services", service),
        INVALID,
    )
    .await;
}

#[tokio::test]
async fn the_server_alone_sets_what_is_its_own() {
    let host = Host::start().await;
    let claimed = json!({
        "uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 77, "selfLink": "/mine",
        "deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5,
        "managedFields": [{"manager": "me"}],
    });
    for (path, mut object) in [
        (CONFIG_MAPS, config_map("mine")),
        (DEPLOYMENTS, deployment("mine")),
        (WIDGETS, widget("mine")),
    ] {
        for (field, value) in claimed.as_object().expect("an object") {
            object["metadata"][field] = value.clone();
        }
        object["status"] = json!({"replicas": 5});
        let made = host.must(Ask::post(path, &object)).await;
        let metadata = &made["metadata"];
        assert_eq!(metadata["uid"].as_str().expect("text").len(), 36);
        assert_ne!(metadata["creationTimestamp"], "2000-01-01T00:00:00Z");
        assert_ne!(metadata["generation"], 77);
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            assert!(metadata.get(field).is_none(), "{path}: {field}");
        }
        assert!(made["status"].get("replicas").is_none(), "{path}");
    }
}

#[tokio::test]
async fn an_update_cannot_set_what_is_the_servers_own() {
    let host = Host::start().await;
    for path in [CONFIG_MAPS, DEPLOYMENTS, WIDGETS] {
        let path = format!("{path}/victim");
        let before = host.must(Ask::get(&path)).await;
        let mut object = before.clone();
        object["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
        object["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        object["metadata"]["generation"] = json!(99);
        object["status"] = json!({"replicas": 5});
        let after = host.must(Ask::put(&path, object)).await;
        for field in [
            "creationTimestamp",
            "generation",
            "uid",
            "deletionTimestamp",
        ] {
            assert_eq!(
                before["metadata"][field], after["metadata"][field],
                "{path}: {field}"
            );
        }
        assert!(after["status"].get("replicas").is_none(), "{path}");
        let mut object = after.clone();
        object["metadata"]["uid"] = json!("other");
        host.refuses("uid", Ask::put(&path, object), (409, "Conflict"))
            .await;
    }
}

#[tokio::test]
async fn a_new_object_has_no_version_yet() {
    let host = Host::start().await;
    for (path, mut object) in [(CONFIG_MAPS, config_map("v")), (WIDGETS, widget("v"))] {
        object["metadata"]["resourceVersion"] = json!("5");
        // The real server answers 500 and gives no reason.
        let answer = host
            .refuses("version", Ask::post(path, object), (500, ""))
            .await;
        assert_eq!(
            answer.message(),
            "resourceVersion should not be set on objects to be created"
        );
    }
}
