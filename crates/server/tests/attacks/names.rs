//! Names and paths that try to be another key than they look.

use serde_json::json;

use crate::call::Ask;
use crate::host::{
    BAD_REQUEST, CONFIG_MAPS, DEPLOYMENTS, Host, INVALID, NOT_FOUND, NOTHING_THERE, WIDGETS,
    config_map, padding, widget,
};

#[tokio::test]
async fn an_object_is_what_its_path_says() {
    let host = Host::start().await;
    let put = |body: serde_json::Value| Ask::put(format!("{CONFIG_MAPS}/victim"), body);
    let post = |body: serde_json::Value| Ask::post(CONFIG_MAPS, body);
    let named = |field: &str, value: &str| {
        let mut object = config_map("victim");
        match field {
            "name" | "namespace" => object["metadata"][field] = json!(value),
            _ => object[field] = json!(value),
        }
        object
    };
    for (attack, ask) in [
        ("another kind", post(named("kind", "Secret"))),
        ("another version", post(named("apiVersion", "v2"))),
        ("another group", post(named("apiVersion", "apps/v1"))),
        ("another namespace", post(named("namespace", "kube-system"))),
        ("update of another kind", put(named("kind", "Secret"))),
        ("update of another version", put(named("apiVersion", "v2"))),
        ("update of another name", put(named("name", "other"))),
        ("update of no name", put(json!({"data": {}}))),
        (
            "update in another namespace",
            put(named("namespace", "kube-system")),
        ),
        (
            "custom, another kind",
            Ask::post(
                WIDGETS,
                json!({"kind": "Gadget", "metadata": {"name": "a"}}),
            ),
        ),
        (
            "custom, another group",
            Ask::post(
                WIDGETS,
                json!({"apiVersion": "example.org/v1", "metadata": {"name": "a"}}),
            ),
        ),
        (
            "custom, another namespace",
            Ask::post(
                WIDGETS,
                json!({"metadata": {"name": "a", "namespace": "kube-system"}}),
            ),
        ),
    ] {
        host.refuses(attack, ask, BAD_REQUEST).await;
    }
}

#[tokio::test]
async fn names_that_are_no_names_are_invalid() {
    let host = Host::start().await;
    let long = padding(10 * 1024);
    for name in [
        ".",
        "..",
        "a/b",
        "../kube-system/x",
        "a%2fb",
        "UPPER",
        "a b",
        "-a",
        "a-",
        "ä",
        "a\u{0}",
        "a\n",
        "*",
        "a;b",
        long.as_str(),
    ] {
        for (path, mut object) in [(CONFIG_MAPS, config_map("x")), (WIDGETS, widget("x"))] {
            object["metadata"]["name"] = json!(name);
            host.refuses(name, Ask::post(path, &object), INVALID).await;
            object["metadata"]["name"] = json!("");
            object["metadata"]["generateName"] = json!(format!("{name}/"));
            host.refuses(name, Ask::post(path, &object), INVALID).await;
        }
    }
    let namespaces = "/api/v1/namespaces";
    for name in [".", "..", "a/b", "a.b", "UPPER", &padding(64)] {
        let namespace = json!({"metadata": {"name": name}});
        host.refuses(name, Ask::post(namespaces, namespace), INVALID)
            .await;
    }
}

#[tokio::test]
async fn paths_that_try_tricks_name_nothing() {
    let host = Host::start().await;
    let long = format!("{CONFIG_MAPS}/{}", padding(10 * 1024));
    for path in [
        "//api/v1/namespaces/default/configmaps/victim",
        "/api//v1/namespaces/default/configmaps/victim",
        "/api/v1/namespaces/default//configmaps/victim",
        "/api/v1/namespaces/default/configmaps/./victim",
        "/api/v1/namespaces/default/configmaps/../configmaps/victim",
        "/api/v1/namespaces/kube-system/../default/configmaps/victim",
        "/api/v1/namespaces/kube-system%2f..%2fdefault/configmaps/victim",
        "/api/v1/namespaces/default/configmaps/%2e%2e/configmaps/victim",
        "/api/v1/namespaces/default/configmaps/%2e",
        "/api/v1/namespaces/default/configmaps/a%2fvictim",
        "/api/v1/namespaces/default%2fconfigmaps%2fvictim",
        "/api/v1/namespaces/default/configmaps/victim%00",
        "/api/v1/namespaces/default/configmaps/%ff%fe",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/namespaces/default/configmaps/%",
        "/healthz/../api/v1/secrets",
        "/healthz/%2e%2e/api/v1/secrets",
        "/nothing",
        "/api/v2/configmaps",
        "/apis/none/v1/things",
        long.as_str(),
    ] {
        for method in ["GET", "DELETE"] {
            let ask = Ask::new(method, path);
            let answer = host.ask(ask).await;
            assert!(
                matches!(answer.code, 404 | 405),
                "{method} {}: {} {}",
                crate::host::shorten(path),
                answer.code,
                answer.text()
            );
            host.serves().await;
        }
        host.refuses(path, Ask::get(path), NOTHING_THERE).await;
    }
    for path in [
        "/api/v1/namespaces/default/configmaps/victim;a=b",
        "/api/v1/namespaces/default/configmaps/VICTIM",
        "/api/v1/namespaces/default/configmaps/victim%20",
        "/api/v1/namespaces/DEFAULT/configmaps/victim",
        "/api/v1/namespaces/default/things",
        "/api/v1/configmaps/victim",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/configmaps/victim/status",
        "/api/v1/namespaces/default/configmaps/victim/a/b/c",
    ] {
        host.refuses(path, Ask::get(path), NOT_FOUND).await;
    }
}

#[tokio::test]
async fn encoded_and_plain_names_are_the_same_object() {
    let host = Host::start().await;
    for path in [
        "/api/v1/namespaces/default/configmaps/%76ictim",
        "/api/v1/namespaces/%64efault/configmaps/victim",
        "/api/v1/namespaces/default/configmaps/victim/",
    ] {
        let found = host.must(Ask::get(path)).await;
        assert_eq!(found["metadata"]["name"], "victim");
    }
}

#[tokio::test]
async fn verbs_that_make_no_sense_are_refused() {
    let host = Host::start().await;
    for (method, path) in [
        ("POST", format!("{CONFIG_MAPS}/victim")),
        ("PUT", CONFIG_MAPS.to_owned()),
        ("PATCH", CONFIG_MAPS.to_owned()),
        ("TRACE", CONFIG_MAPS.to_owned()),
        ("CONNECT", CONFIG_MAPS.to_owned()),
        ("OPTIONS", CONFIG_MAPS.to_owned()),
        ("BREW", format!("{DEPLOYMENTS}/victim")),
        ("POST", "/api/v1/configmaps".to_owned()),
        ("DELETE", "/healthz".to_owned()),
        ("POST", "/version".to_owned()),
    ] {
        let ask = Ask::new(method, path).header("content-type", "application/json");
        host.refuses(method, ask, (405, "MethodNotAllowed")).await;
    }
}
