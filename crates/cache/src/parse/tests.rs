use serde_json::{Value as Json, json};

use super::*;

fn pod() -> Json {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "namespace": "shop", "uid": "u1", "resourceVersion": "42", "generation": 7,
            "labels": {"app": "web", "quo\"te": "b\\s"},
            "annotations": {"note": "hello"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {"x": ["}", "\"]"]}}}],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "o", "controller": true}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    })
}

fn parsed(json: &Json, shape: &Shape) -> Arc<Object> {
    parse(json.to_string().as_bytes(), shape, None).expect("it is an object")
}

fn body(object: &Object) -> Json {
    serde_json::from_slice(object.json()).expect("the body is JSON")
}

#[test]
fn metadata_is_read_without_decoding() {
    let object = parsed(&pod(), &Shape::default());
    assert_eq!(object.key(), &Key::new("shop", "web-0"));
    assert_eq!(object.resource_version(), "42");
    assert_eq!(object.uid(), "u1");
    assert_eq!(object.generation(), Some(7));
    assert_eq!(object.label("app").as_deref(), Some("web"));
    assert_eq!(object.label("quo\"te").as_deref(), Some("b\\s"));
    assert_eq!(object.label("none"), None);
    assert_eq!(object.labels().len(), 2);
    assert_eq!(object.annotation("note").as_deref(), Some("hello"));
    assert!(!object.is_terminating());
    let owner = &object.owners()[0];
    assert_eq!(
        (owner.group(), &*owner.kind, owner.controller),
        ("apps", "ReplicaSet", true)
    );
}

#[test]
fn managed_fields_are_cut_and_nothing_else() {
    let mut expected = pod();
    let object = parsed(&expected, &Shape::default());
    expected["metadata"]
        .as_object_mut()
        .expect("an object")
        .remove("managedFields");
    assert_eq!(body(&object), expected);
    let kept = parsed(&pod(), &Shape::default().with_managed_fields());
    assert_eq!(body(&kept), pod());
}

#[test]
fn fields_are_cut_wherever_they_stand() {
    let cases = [
        (
            r#"{"metadata":{"managedFields":[],"name":"a"}}"#,
            r#"{"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a","managedFields":[]}}"#,
            r#"{"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{ "status" : {} , "metadata" : { "name" : "a" } , "spec" : 1 }"#,
            r#"{"metadata":{"name":"a"},"spec":1}"#,
        ),
        (
            r#"{"metadata":{"name":"a","annotations":{}},"status":{}}"#,
            r#"{"metadata":{"name":"a"}}"#,
        ),
    ];
    let shape = Shape::default()
        .without("status")
        .without("metadata.annotations");
    for (given, expected) in cases {
        let object = parse(given.as_bytes(), &shape, None).expect("it is an object");
        assert_eq!(String::from_utf8_lossy(object.json()), expected);
    }
}

#[test]
fn list_items_get_the_kind_that_their_list_says() {
    let types = TypeMeta {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
    };
    let given = br#"{"metadata":{"name":"a"}}"#;
    let object = parse(given, &Shape::default(), Some(&types)).expect("it is an object");
    assert_eq!(
        body(&object),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    );
}

#[test]
fn transform_sees_the_object_first_and_may_refuse_it() {
    let shape = Shape::default().transform(|object| {
        let image = object.pointer("/spec/containers/0/image").cloned();
        object["spec"] = json!({"image": image});
        if object["metadata"]["name"] == "bad" {
            Err("bad name".to_owned())
        } else {
            Ok(())
        }
    });
    assert_eq!(body(&parsed(&pod(), &shape))["spec"], json!({"image": "i"}));
    let refused = parse(br#"{"metadata":{"name":"bad"}}"#, &shape, None);
    assert!(matches!(refused, Err(ParseError::Transform(why)) if why == "bad name"));
}

#[test]
fn bytes_that_are_no_named_object_are_refused() {
    for bytes in [
        "",
        "[]",
        "{",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"name":""}}"#,
        r#"{"metadata":{"name":1}}"#,
        r#"{"metadata":{"name":"a"}} x"#,
        r#"{"metadata":"a"}"#,
    ] {
        assert!(
            parse(bytes.as_bytes(), &Shape::default(), None).is_err(),
            "{bytes:?}"
        );
    }
}

#[test]
fn five_kilobyte_pod_takes_at_most_five_and_a_half() {
    let mut pod = pod();
    pod["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"] = json!("x".repeat(1_300));
    pod["spec"]["filler"] = json!("y".repeat(3_300));
    let size = pod.to_string().len();
    assert!((4_900..5_400).contains(&size), "{size}");
    let object = parsed(&pod, &Shape::default());
    assert!(object.heap_size() < 4_300, "{}", object.heap_size());
}

#[test]
fn transform_that_panics_refuses_the_object() {
    let shape = Shape::default().transform(|_| panic!("on purpose"));
    let refused = parse(br#"{"metadata":{"name":"a"}}"#, &shape, None);
    assert!(matches!(refused, Err(ParseError::Transform(_))));
}
