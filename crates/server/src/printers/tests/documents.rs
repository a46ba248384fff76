//! Whole documents, compared byte for byte with what the real server sent.

use serde_json::{Value, json};

use super::at;
use crate::printers::column::NAME;
use crate::printers::table::IncludeObject;
use crate::printers::view::since;
use crate::printers::{
    Column, Headers, ListMetadata, MetaVersion, Options, PartialList, Printer, Row, Table,
    partial_metadata,
};

const GOLDEN: &str = include_str!("../../../tests/golden/kube-apiserver-1.35.txt");

/// The answers' bodies of the exchanges of one name, compact.
fn golden(name: &str) -> Vec<String> {
    let heading = format!("### {name}\n");
    let exchanges = GOLDEN
        .split("\n\n###")
        .map(|text| format!("###{}", text.trim_start_matches("###")));
    exchanges
        .filter(|exchange| exchange.starts_with(&heading))
        .map(|exchange| {
            let (_, body) = exchange.split_once("\n\n").expect("an answer has a body");
            compact(body)
        })
        .collect()
}

/// Takes out the white space between the tokens of JSON.
fn compact(text: &str) -> String {
    let (mut out, mut in_string, mut escaped) = (String::new(), false, false);
    for character in text.chars() {
        if in_string || !character.is_whitespace() {
            out.push(character);
        }
        if character == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && character == '\\' && !escaped;
    }
    out
}

/// Rebuilds objects from the metadata in the rows of a table.
fn objects(table: &str, specs: &[Value]) -> Vec<Value> {
    let table: Value = serde_json::from_str(table).expect("the golden file holds JSON");
    let rows = table["rows"].as_array().expect("a table has rows");
    assert_eq!(rows.len(), specs.len());
    rows.iter()
        .zip(specs)
        .map(|(row, spec)| json!({"metadata": row["object"]["metadata"], "spec": spec}))
        .collect()
}

#[track_caller]
fn check_table(printer: &Printer, objects: &[Value], revision: &str, now: &str, expect: &str) {
    let metadata = ListMetadata {
        resource_version: revision,
        ..ListMetadata::default()
    };
    let mut table = Table::new(
        printer,
        Options::default(),
        Headers::Shown,
        &metadata,
        at(now),
    );
    for object in objects {
        table.row(object, b"");
    }
    assert_eq!(text(table.finish()), expect);
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("documents are UTF-8")
}

fn services() -> Vec<Value> {
    let service = |address: &str, port: i64, selector: Value| {
        json!({"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address],
            "ports": [{"port": port, "protocol": "TCP"}], "selector": selector})
    };
    objects(
        &golden("table")[0],
        &[
            service("10.0.0.28", 80, json!({"app": "d2"})),
            service("10.0.0.53", 80, json!({"a": "b"})),
            service("10.0.0.1", 443, json!(null)),
        ],
    )
}

/// When the golden tables of services were asked for.
const ASKED: &str = "2026-11-15T19:18:21Z";

#[test]
fn table_of_services_matches_the_real_server() {
    let printer = Printer::builtin("", "Service");
    check_table(&printer, &services(), "5551", ASKED, &golden("table")[0]);
}

#[test]
fn watch_describes_columns_in_its_first_event_only() {
    let printer = Printer::builtin("", "Service");
    let mut headers = Headers::Shown;
    let mut events = String::new();
    for service in services() {
        let row = Row {
            object: &service,
            bytes: b"",
        };
        let table = printer.single(Options::default(), headers, row, at(ASKED));
        events += &format!("{{\"type\":\"ADDED\",\"object\":{}}}", text(table));
        headers = Headers::Omitted;
    }
    assert_eq!(events, golden("table watch")[0]);
}

fn column(name: &'static str, type_: &'static str) -> Column {
    Column {
        name: name.into(),
        type_: type_.into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
    }
}

#[test]
fn tables_of_custom_resources_match_the_real_server() {
    let expect = golden("CR table");
    let age = Printer::new(vec![NAME, column("Age", "date")], |object, now| {
        let created = object["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap_or_default();
        vec![
            object["metadata"]["name"].clone(),
            since(created, now).into(),
        ]
    });
    let foos = objects(&expect[0], &[json!({}), json!({})]);
    check_table(&age, &foos, "5554", "2026-11-15T19:18:22Z", &expect[0]);

    let number = Printer::new(vec![NAME, column("Num", "integer")], |object, _| {
        vec![
            object["metadata"]["name"].clone(),
            object["spec"]["num"].clone(),
        ]
    });
    let bars = objects(&expect[1], &[json!({"num": 6}), json!({})]);
    check_table(&number, &bars, "5571", "2026-11-15T19:18:22Z", &expect[1]);
}

#[test]
fn partial_metadata_matches_the_real_server() {
    let object: Value =
        serde_json::from_str(&golden("partial")[0]).expect("the golden file holds JSON");
    let partial = partial_metadata(&object, MetaVersion::V1);
    assert_eq!(text(partial), golden("partial")[0]);
}

#[test]
fn empty_metadata_is_left_out() {
    let object = json!({"kind": "Pod", "spec": {"a": 1}, "metadata": {
        "name": "x", "creationTimestamp": null, "generation": 0, "labels": {}, "finalizers": [],
        "deletionGracePeriodSeconds": 0, "selfLink": "",
        "ownerReferences": [{"uid": "u", "name": "o", "kind": "K", "controller": false, "apiVersion": "v1"}]}});
    assert_eq!(
        text(partial_metadata(&object, MetaVersion::V1Beta1)),
        r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"x","deletionGracePeriodSeconds":0,"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"u","controller":false}]}}"#
    );
}

#[test]
fn partial_list_holds_metadata_of_each_object() {
    let metadata = ListMetadata {
        resource_version: "7",
        continue_token: "abc",
        remaining_item_count: Some(3),
    };
    let mut list = PartialList::new(&metadata, MetaVersion::V1);
    list.item(&json!({"metadata": {"name": "a"}}));
    list.item(&json!({}));
    assert_eq!(
        text(list.finish()),
        r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}},{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}]}"#
    );
    let empty = PartialList::new(&ListMetadata::default(), MetaVersion::V1).finish();
    assert!(text(empty).ends_with(r#""metadata":{},"items":null}"#));
}

/// The rows of a table of one object.
fn row(kind: &str, include: IncludeObject, object: &Value, bytes: &[u8]) -> String {
    let options = Options {
        version: MetaVersion::V1Beta1,
        include,
    };
    let row = Row { object, bytes };
    let table = Printer::builtin("", kind).single(options, Headers::Omitted, row, super::now());
    let table = text(table);
    let start = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{},"columnDefinitions":null,"rows":["#;
    let rows = table
        .strip_prefix(start)
        .and_then(|rows| rows.strip_suffix("]}"));
    rows.expect("a table of one object has one row").to_owned()
}

#[test]
fn rows_carry_what_was_asked_for() {
    let object = json!({"metadata": {"name": "x"}});
    let served = b" {\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"x\"}}\n";
    let cells = r#"{"cells":["x","\u003cunknown\u003e"],"object":"#;
    let row = |include| row("ServiceAccount", include, &object, served);
    assert_eq!(row(IncludeObject::None), format!("{cells}null}}"));
    assert_eq!(
        row(IncludeObject::Metadata),
        format!(
            r#"{cells}{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{{"name":"x"}}}}}}"#
        )
    );
    assert_eq!(
        row(IncludeObject::Object),
        format!(r#"{cells}{{"kind":"ServiceAccount","metadata":{{"name":"x"}}}}}}"#)
    );
}

#[test]
fn end_of_initial_events_is_reported_even_without_objects() {
    let end = json!({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    let row = row("ServiceAccount", IncludeObject::None, &end, b"{}");
    assert!(row.contains("PartialObjectMetadata"), "{row}");
}

#[test]
fn rows_of_ended_pods_say_so() {
    let pod = json!({"metadata": {"name": "x"}, "status": {"phase": "Failed"}});
    let failed = row("Pod", IncludeObject::None, &pod, b"{}");
    let condition = r#","conditions":[{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}],"object":null}"#;
    assert!(failed.ends_with(condition), "{failed}");
}

#[test]
fn table_without_rows_depends_on_the_printer() {
    let rows = |printer: &Printer| {
        let metadata = ListMetadata::default();
        let table = Table::new(
            printer,
            Options::default(),
            Headers::Omitted,
            &metadata,
            super::now(),
        );
        text(table.finish())
    };
    assert!(rows(&Printer::builtin("", "Pod")).ends_with(r#""rows":[]}"#));
    assert!(rows(&Printer::builtin("", "LimitRange")).ends_with(r#""rows":null}"#));
}

#[test]
fn unknown_include_object_is_refused() {
    assert_eq!("".parse(), Ok(IncludeObject::Metadata));
    assert_eq!("Object".parse(), Ok(IncludeObject::Object));
    let refused = "All"
        .parse::<IncludeObject>()
        .map_err(|error| error.to_string());
    assert_eq!(
        refused,
        Err("Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty".to_owned())
    );
}
