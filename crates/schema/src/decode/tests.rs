use proptest::prelude::*;
use serde_json::json;

use super::*;

fn type_of(name: &str) -> TypeId {
    Table::builtin().named(name).expect(name)
}

const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";
const SECRET: &str = "io.k8s.api.core.v1.Secret";
const EVENT: &str = "io.k8s.api.core.v1.Event";

fn decode_as(name: &str, text: &str, format: Format) -> Result<Decoded, DecodeError> {
    decode(Table::builtin(), type_of(name), text.as_bytes(), format)
}

fn strict(decoded: &Decoded) -> Vec<String> {
    decoded.strict.iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_and_duplicate_fields_come_in_document_order() {
    let json = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","foo":1},"data":{"a":"1","a":"2"},"bar":1}"#;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, foo: 1}\ndata:\n  a: '1'\n  a: '2'\nbar: 1\n";
    for (body, format) in [
        (json, Format::Json),
        (json, Format::Yaml),
        (yaml, Format::Yaml),
    ] {
        let decoded = decode_as(CONFIG_MAP, body, format).expect("well-typed");
        assert_eq!(
            strict(&decoded),
            [
                r#"unknown field "metadata.foo""#,
                r#"duplicate field "data.a""#,
                r#"unknown field "bar""#,
            ]
        );
        assert_eq!(
            decoded.value,
            json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"2"}})
        );
    }
}

#[test]
fn strict_paths_name_list_items_and_map_keys() {
    let body = r#"{"spec":{"containers":[{"name":"a"},{"foo":1,"resources":{"limits":{"cpu":"1","cpu":"2"}},"name":"b","name":"c"}]},"spec":{"containers":[]}}"#;
    let decoded = decode_as(POD, body, Format::Json).expect("well-typed");
    assert_eq!(
        strict(&decoded),
        [
            r#"unknown field "spec.containers[1].foo""#,
            r#"duplicate field "spec.containers[1].resources.limits.cpu""#,
            r#"duplicate field "spec.containers[1].name""#,
            r#"duplicate field "spec""#,
        ]
    );
    assert_eq!(decoded.value, json!({"spec":{"containers":[]}}));
}

#[test]
fn field_names_are_case_sensitive() {
    let decoded = decode_as(CONFIG_MAP, r#"{"Data":{"a":"b"}}"#, Format::Json).expect("well-typed");
    assert_eq!(strict(&decoded), [r#"unknown field "Data""#]);
}

#[test]
fn strict_errors_are_neither_repeated_nor_endless() {
    let items: Vec<String> = (0..300).map(|i| format!("\"k{i}\":1,\"k{i}\":2")).collect();
    let decoded = decode_as(
        CONFIG_MAP,
        &format!("{{{}}}", items.join(",")),
        Format::Json,
    );
    assert_eq!(decoded.expect("well-typed").strict.len(), 100);
}

#[test]
fn values_that_do_not_fit_are_refused_in_the_words_of_go() {
    let cases = [
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":"x"}}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":1.0}}"#,
            "json: cannot unmarshal number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":2147483648}}"#,
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"metadata":{"generation":18446744073709551615}}"#,
            "json: cannot unmarshal number 18446744073709551615 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":[1,[2]]}"#,
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"template":{"spec":{"containers":[{"ports":[{"containerPort":true}]}]}}}}"#,
            "json: cannot unmarshal bool into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"template":{"spec":{"containers":{"a":1}}}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            CONFIG_MAP,
            r#"{"data":{"a":1}}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            CONFIG_MAP,
            r#"{"data":"a"}"#,
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            CONFIG_MAP,
            r#"{"immutable":"yes"}"#,
            "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
        ),
        (
            CONFIG_MAP,
            "[]",
            "json: cannot unmarshal array into Go value of type v1.ConfigMap",
        ),
        (
            CONFIG_MAP,
            "3",
            "json: cannot unmarshal number into Go value of type v1.ConfigMap",
        ),
        (
            SECRET,
            r#"{"data":{"a":"!!"}}"#,
            "illegal base64 data at input byte 0",
        ),
        (
            POD,
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            POD,
            r#"{"metadata":{"creationTimestamp":"x"}}"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"abc"}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":{}}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}"#,
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ];
    for (name, body, expected) in cases {
        let error = decode_as(name, body, Format::Json).expect_err(body);
        assert!(!error.is_parse(), "{body}");
        assert_eq!(error.to_string(), expected, "{body}");
        let mut value: Value = serde_json::from_str(body).expect(body);
        let error = conform(Table::builtin(), type_of(name), &mut value).expect_err(body);
        assert_eq!(error.to_string(), expected, "conform {body}");
    }
}

#[test]
fn malformed_json_is_refused_in_the_words_of_go() {
    let cases = [
        (
            r#"{"apiVersion":"v1","kind":"#,
            "unexpected end of JSON input",
        ),
        ("", "unexpected end of JSON input"),
        ("{}x", "invalid character 'x' after top-level value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("x", "invalid character 'x' looking for beginning of value"),
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (
            r#"{"a":1 "b"}"#,
            "invalid character '\"' after object key:value pair",
        ),
        (
            "{a:1}",
            "invalid character 'a' looking for beginning of object key string",
        ),
        (
            r#"{"a":[1 2]}"#,
            "invalid character '2' after array element",
        ),
        (
            r#"{"a":1,}"#,
            "invalid character '}' looking for beginning of object key string",
        ),
    ];
    for (body, expected) in cases {
        let error = parse(body.as_bytes(), Format::Json).expect_err(body);
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

#[test]
fn malformed_document_counts_more_than_a_value_that_does_not_fit() {
    let error = decode_as(DEPLOYMENT, r#"{"spec":{"replicas":"x"},"#, Format::Json);
    assert!(error.expect_err("truncated").is_parse());
}

#[test]
fn null_means_absent() {
    let body = r#"{"metadata":null,"spec":{"replicas":null,"template":{"spec":{"containers":[null,{"args":["a",null]}],"nodeSelector":{"a":null}}}}}"#;
    let expected = json!({"spec":{"template":{"spec":{"containers":[{},{"args":["a",""]}],"nodeSelector":{"a":""}}}}});
    let decoded = decode_as(DEPLOYMENT, body, Format::Json).expect("well-typed");
    assert_eq!(decoded.value, expected);
    assert!(decoded.strict.is_empty());
    let mut value: Value = serde_json::from_str(body).expect("JSON");
    let strict = conform(Table::builtin(), type_of(DEPLOYMENT), &mut value).expect("well-typed");
    assert_eq!((value, strict), (expected, vec![]));
    let decoded = decode_as(DEPLOYMENT, "null", Format::Json).expect("null is an empty object");
    assert_eq!(decoded.value, json!({}));
}

#[test]
fn scalars_become_canonical() {
    let cases = [
        (
            POD,
            json!({"metadata":{"creationTimestamp":"2020-01-01T01:00:00.5+02:00"}}),
            json!({"metadata":{"creationTimestamp":"2019-12-31T23:00:00Z"}}),
        ),
        (
            EVENT,
            json!({"eventTime":"2020-01-01T00:00:00.25Z"}),
            json!({"eventTime":"2020-01-01T00:00:00.250000Z"}),
        ),
        (
            EVENT,
            json!({"eventTime":"2020-01-01T00:00:00Z"}),
            json!({"eventTime":"2020-01-01T00:00:00.000000Z"}),
        ),
        (
            SECRET,
            json!({"data":{"a":"aGVs\nbG8="}}),
            json!({"data":{"a":"aGVsbG8="}}),
        ),
        (
            POD,
            json!({"spec":{"overhead":{"cpu":2}}}),
            json!({"spec":{"overhead":{"cpu":"2"}}}),
        ),
        (
            POD,
            json!({"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"http"}}},{"livenessProbe":{"httpGet":{"port":8}}}]}}),
            json!({"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"http"}}},{"livenessProbe":{"httpGet":{"port":8}}}]}}),
        ),
    ];
    for (name, body, expected) in cases {
        let decoded = decode_as(name, &body.to_string(), Format::Json).expect("well-typed");
        assert_eq!(decoded.value, expected);
    }
}

#[test]
fn times_follow_go() {
    let cases = [
        (
            "2020-02-30T00:00:00Z",
            r#"parsing time "2020-02-30T00:00:00Z": day out of range"#,
        ),
        (
            "2020-13-01T00:00:00Z",
            r#"parsing time "2020-13-01T00:00:00Z": month out of range"#,
        ),
        (
            "2020-01-01T24:00:00Z",
            r#"parsing time "2020-01-01T24:00:00Z": hour out of range"#,
        ),
        (
            "2020-01-01T00:00:00Zx",
            r#"parsing time "2020-01-01T00:00:00Zx": extra text: "x""#,
        ),
        (
            "2020-01-01",
            r#"parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
        ),
        (
            "2020-01-01T00:00:00+1",
            r#"parsing time "2020-01-01T00:00:00+1" as "2006-01-02T15:04:05Z07:00": cannot parse "+1" as "Z07:00""#,
        ),
    ];
    for (text, expected) in cases {
        let error = time::seconds(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
    let before_epoch = time::seconds("1960-01-01T00:00:00.9Z");
    assert_eq!(before_epoch.as_deref(), Ok("1960-01-01T00:00:00Z"));
}

#[test]
fn the_whole_of_the_years_0_to_9999_can_be_written() {
    let cases = [
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59"),
        ("9999-12-31T23:59:59+23:00", "9999-12-31T00:59:59"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00"),
    ];
    for (text, utc) in cases {
        let seconds = time::seconds(text);
        assert_eq!(seconds, Ok(format!("{utc}Z")), "{text}");
        let micros = time::micros(text);
        assert_eq!(micros, Ok(format!("{utc}.000000Z")), "{text}");
    }
    for text in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"] {
        let expected = format!("parsing time {text:?}: year out of range");
        let error = time::seconds(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn raw_values_keep_what_they_hold() {
    let crd = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let body = r#"{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"a":{"default":{"x":null,"y":[1.5,-1]},"x-kubernetes-preserve-unknown-fields":true,"minimum":1}}}}}]}}"#;
    let decoded = decode_as(crd, body, Format::Json).expect("well-typed");
    assert_eq!(
        decoded.value,
        serde_json::from_str::<Value>(body).expect("JSON")
    );
    assert!(decoded.strict.is_empty());
}

#[test]
fn schemas_within_schemas_are_typed_but_never_strict() {
    let crd = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let around = |schema: &str| {
        format!("{{\"spec\":{{\"versions\":[{{\"schema\":{{\"openAPIV3Schema\":{schema}}}}}]}}}}")
    };
    let body =
        around(r#"{"items":{"foo":1,"type":"a","type":"b"},"additionalProperties":false,"bar":1}"#);
    let expected = around(r#"{"items":{"type":"b"},"additionalProperties":false}"#);
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    let decoded = decode_as(crd, &body, Format::Json).expect("well-typed");
    assert_eq!(decoded.value, expected);
    let path = "spec.versions[0].schema.openAPIV3Schema.bar";
    assert_eq!(decoded.strict, [StrictError::Unknown(path.to_owned())]);
    let mut value: Value = serde_json::from_str(&body).expect("JSON");
    let strict = conform(Table::builtin(), type_of(crd), &mut value).expect("well-typed");
    assert_eq!((value, strict), (expected, decoded.strict));
    assert!(decode_as(crd, &around(r#"{"items":{"maxLength":"x"}}"#), Format::Json).is_err());
}

#[test]
fn parse_reports_duplicates_and_keeps_the_rest() {
    let json = r#"{"spec":{"num":5,"zz":null,"num":6,"list":[{"a":1},{"a":1,"a":2}]}}"#;
    let yaml = "spec:\n  num: 5\n  zz:\n  num: 6\n  list:\n  - a: 1\n  - a: 1\n    a: 2\n";
    for (body, format) in [
        (json, Format::Json),
        (json, Format::Yaml),
        (yaml, Format::Yaml),
    ] {
        let parsed = parse(body.as_bytes(), format).expect("well-formed");
        assert_eq!(parsed.duplicates, ["spec.num", "spec.list[1].a"]);
        assert_eq!(
            parsed.value,
            json!({"spec":{"num":6,"zz":null,"list":[{"a":1},{"a":2}]}})
        );
    }
}

#[test]
fn numbers_never_wrap() {
    let cases = [
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        (
            "18446744073709551615",
            json!(18446744073709551615_u64 as f64),
        ),
        ("1180591620717411303424", json!(1180591620717411303424_f64)),
        ("1.5", json!(1.5)),
    ];
    for (text, expected) in cases {
        for format in [Format::Json, Format::Yaml] {
            let parsed = parse(format!("{{\"a\":{text}}}").as_bytes(), format).expect(text);
            assert_eq!(parsed.value["a"], expected, "{text} as {format:?}");
        }
    }
    for format in [Format::Json, Format::Yaml] {
        assert!(parse(b"{\"a\": 1e999}", format).is_err());
    }
}

#[test]
fn yaml_scalars_follow_yaml_1_1() {
    let text = "octal: 0644\nyes: on\nquoted: \"1\"\nempty:\n1: one\nmerged: &m {a: 1}\nother:\n  <<: *m\n  b: 2\n";
    let parsed = parse(text.as_bytes(), Format::Yaml).expect("well-formed");
    assert_eq!(
        parsed.value,
        json!({"octal":420,"yes":true,"quoted":"1","empty":null,"1":"one","merged":{"a":1},"other":{"a":1,"b":2}})
    );
}

#[test]
fn yaml_takes_one_document_with_string_keys() {
    for text in [
        "a: 1\n---\nb: 2\n",
        "? [a, b]\n: 1\n",
        "? {a: b}\n: 1\n",
        "a: [1\n",
        "a: *missing\n",
        "\u{1}: 2",
    ] {
        let error = parse(text.as_bytes(), Format::Yaml).expect_err(text);
        assert!(
            error
                .to_string()
                .starts_with("error converting YAML to JSON: yaml: ")
        );
    }
    assert!(parse(b"---\na: 1\n", Format::Yaml).is_ok());
    assert!(parse(b"a: \xff\n", Format::Yaml).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    let size = 1_500_000;
    for format in [Format::Json, Format::Yaml] {
        for text in [
            "[".repeat(size),
            "[".repeat(size) + &"]".repeat(size),
            "{\"a\":".repeat(size / 5),
        ] {
            assert!(parse(text.as_bytes(), format).is_err(), "{format:?}");
            assert!(decode_as(POD, &text, format).is_err(), "{format:?}");
        }
        let inside = |name: &str| format!("{{\"{name}\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(parse(inside("a").as_bytes(), format).is_err(), "{format:?}");
        let shallow = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(parse(shallow.as_bytes(), format).is_ok(), "{format:?}");
    }
    let lines: String = (0..2000)
        .map(|i| format!("{}a:\n", " ".repeat(i)))
        .collect();
    assert!(parse(lines.as_bytes(), Format::Yaml).is_err());
}

// Found by fuzzing: YAML was taken one level deeper than the JSON that it becomes.
#[test]
fn all_forms_are_taken_to_the_same_depth() {
    let name = "io.k8s.api.apps.v1.ControllerRevision";
    for (levels, fits) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        let text = format!("{{\"data\": {open}1{close}}}");
        for format in [Format::Json, Format::Yaml] {
            assert_eq!(parse(text.as_bytes(), format).is_ok(), fits, "{format:?}");
            assert_eq!(decode_as(name, &text, format).is_ok(), fits, "{format:?}");
        }
        let mut value = (1..levels).fold(json!(1), |inner, _| json!([inner]));
        value = json!({ "data": value });
        let conformed = conform(Table::builtin(), type_of(name), &mut value);
        assert_eq!(conformed.is_ok(), fits, "{levels}");
    }
}

#[test]
fn yaml_nested_to_the_limit_does_not_need_the_stack_of_the_caller() {
    let inside = |text: &str| format!("a: {}{text}{}", "[".repeat(120), "]".repeat(120));
    let parsed = parse(inside("").as_bytes(), Format::Yaml);
    assert!(parsed.is_ok());
    let mut schema = "spec: {versions: [schema: {openAPIV3Schema: ".to_owned();
    schema.push_str(&"{not: ".repeat(115));
    schema.push_str("{type: a}");
    schema.push_str(&"}".repeat(116));
    schema.push_str("]}");
    let crd = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let decoded = decode_as(crd, &schema, Format::Yaml);
    assert!(decoded.expect("well-typed").strict.is_empty());
}

#[test]
fn deep_nesting_in_an_unknown_field_is_skipped_in_json() {
    let body = format!(
        "{{\"x\":{}{}}}",
        "[".repeat(1_000_000),
        "]".repeat(1_000_000)
    );
    let decoded = decode_as(POD, &body, Format::Json).expect("dropped");
    assert_eq!(strict(&decoded), [r#"unknown field "x""#]);
}

#[test]
fn deep_value_does_not_conform() {
    let mut value = json!(1);
    for _ in 0..200 {
        value = json!([value]);
    }
    let mut list = json!({ "items": [value.clone()] });
    let name = "io.k8s.api.apps.v1.ControllerRevision";
    assert!(
        conform(Table::builtin(), type_of(POD), &mut list).is_ok(),
        "items is unknown"
    );
    let mut revision = json!({ "data": value });
    assert!(conform(Table::builtin(), type_of(name), &mut revision).is_err());
    let mut flat = json!({ "data": {"a": [1, {"b": null}]} });
    assert!(conform(Table::builtin(), type_of(name), &mut flat).is_ok());
    assert_eq!(flat, json!({ "data": {"a": [1, {"b": null}]} }));
}

#[test]
fn alias_bomb_is_refused() {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, inner) in ('b'..='j').zip('a'..) {
        let items = vec![format!("*{inner}"); 9].join(",");
        text.push_str(&format!("{name}: &{name} [{items}]\n"));
    }
    let error = parse(text.as_bytes(), Format::Yaml).expect_err("a bomb");
    assert!(error.to_string().contains("yaml"), "{error}");
}

#[test]
fn conform_drops_unknown_fields() {
    let mut value = json!({"metadata":{"foo":1,"name":"a"},"data":{"a":"b"},"bar":{}});
    let strict = conform(Table::builtin(), type_of(CONFIG_MAP), &mut value).expect("well-typed");
    assert_eq!(value, json!({"metadata":{"name":"a"},"data":{"a":"b"}}));
    let texts: Vec<String> = strict.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [r#"unknown field "bar""#, r#"unknown field "metadata.foo""#]
    );
}

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// What a schema is decoded as; `conform` says the same of the value that is already there.
fn check_schema(body: Value, expected: Result<Value, &str>) {
    let decoded = decode_as(SCHEMA, &body.to_string(), Format::Json);
    let found = decoded.map(|decoded| {
        assert_eq!(decoded.strict, [], "{body}");
        decoded.value
    });
    let in_words = |error: DecodeError| error.to_string();
    let expected = expected.map_err(str::to_owned);
    assert_eq!(found.map_err(in_words), expected, "{body}");
    let mut value = body.clone();
    let conformed = conform(Table::builtin(), type_of(SCHEMA), &mut value);
    assert_eq!(
        conformed.map(|_| value).map_err(in_words),
        expected,
        "{body}"
    );
}

#[test]
fn values_that_do_not_fit_are_refused_in_the_words_of_the_converter() {
    let cases = [
        (
            CONFIG_MAP,
            json!({"data": "a"}),
            "cannot restore map from string",
        ),
        (
            CONFIG_MAP,
            json!({"data": {"a": 1}}),
            "cannot convert int64 to string",
        ),
        (
            CONFIG_MAP,
            json!({"immutable": "yes"}),
            "unrecognized type: bool",
        ),
        (
            DEPLOYMENT,
            json!({"spec": [1]}),
            "cannot restore struct from: slice",
        ),
        (
            DEPLOYMENT,
            json!({"spec": {"replicas": "x"}}),
            "unrecognized type: int32",
        ),
        (
            DEPLOYMENT,
            json!({"spec": {"replicas": 1.5}}),
            "cannot convert float64 to int32",
        ),
        (
            POD,
            json!({"spec": {"containers": {}}}),
            "cannot restore slice from map",
        ),
        (
            POD,
            json!({"metadata": {"creationTimestamp": 5}}),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ];
    for (ty, mut value, expected) in cases {
        let error =
            conform(Table::builtin(), type_of(ty), &mut value).expect_err("it does not fit");
        assert_eq!(error.in_words_of_converter(), expected);
    }
}

#[test]
fn a_value_that_is_one_of_several_types_is_read_as_the_one_that_it_is() {
    let same = |value: Value| check_schema(value.clone(), Ok(value));
    same(json!({"items": {"type": "string"}}));
    same(json!({"items": [{"type": "string"}, {}]}));
    same(json!({"additionalProperties": true, "additionalItems": {"type": "string"}}));
    same(json!({"dependencies": {"a": ["b", "c"], "d": {"type": "string"}}}));
    // Unknown fields are dropped in silence, here as in Go.
    check_schema(
        json!({"items": [{"type": "string", "more": 1}, null]}),
        Ok(json!({"items": [{"type": "string"}, {}]})),
    );
    check_schema(
        json!({"dependencies": {"a": {"type": "string", "more": 1}}}),
        Ok(json!({"dependencies": {"a": {"type": "string"}}})),
    );
}

#[test]
fn a_value_that_is_none_of_several_types_is_absent_or_refused() {
    for none in [json!([]), json!("a"), json!(1), json!(true), json!(null)] {
        check_schema(json!({"items": none}), Ok(json!({})));
    }
    for none in [json!([]), json!("a"), json!(1)] {
        check_schema(
            json!({"additionalProperties": none}),
            Err("boolean or JSON schema expected"),
        );
    }
}

// Found by fuzzing: the list was taken as it was, and its protobuf did not read back.
#[test]
fn a_list_of_schemas_holds_nothing_else() {
    check_schema(
        json!({"items": [{}, "a"]}),
        Err("json: cannot unmarshal string into Go value of type v1.JSONSchemaProps"),
    );
    check_schema(
        json!({"dependencies": {"a": ["b", {}]}}),
        Err("json: cannot unmarshal object into Go value of type string"),
    );
    check_schema(
        json!({"properties": {"p": {"items": {"type": 1}}}}),
        Err(
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.type of type string",
        ),
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Documents with damage anywhere are decoded or refused, and what is decoded has nothing left to drop.
    #[test]
    fn damaged_documents_do_no_harm(
        at in 0_usize..2000,
        length in 0_usize..20,
        damage in prop::collection::vec(any::<u8>(), 0..6),
        json: bool,
    ) {
        let text = include_str!("../../tests/data/deployment.yaml");
        let mut document = text.as_bytes().to_vec();
        if json {
            let parsed = parse(&document, Format::Yaml).expect("well-formed");
            document = parsed.value.to_string().into_bytes();
        }
        let start = at.min(document.len());
        let end = (start + length).min(document.len());
        document.splice(start..end, damage);
        let format = if json { Format::Json } else { Format::Yaml };
        let ty = type_of(DEPLOYMENT);
        if let Ok(decoded) = decode(Table::builtin(), ty, &document, format) {
            let mut again = decoded.value.clone();
            prop_assert_eq!(conform(Table::builtin(), ty, &mut again), Ok(vec![]));
            prop_assert_eq!(again, decoded.value);
        }
    }
}
