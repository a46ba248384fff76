//! What rules make of a CRD.

use super::*;

fn crd(spec: Value) -> Value {
    json!({
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
            "conversion": {"strategy": "None"},
        },
        "status": {"storedVersions": ["v1"]},
    })
}

const AT: &str = "spec.validation.openAPIV3Schema.properties[spec]";

#[track_caller]
fn check(spec: Value, expect: &[&str]) {
    let found = lines(&validate_definition(&crd(spec)));
    let expect: Vec<String> = expect.iter().map(|line| line.replace("AT", AT)).collect();
    assert_eq!(found, expect);
}

fn fields(rules: Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string", "maxLength": 10},
            "list": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
            "sub": {"type": "object", "properties": {"x": {"type": "boolean"}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "either": {"x-kubernetes-int-or-string": true},
            "9": {"type": "string"},
        },
        "x-kubernetes-validations": rules,
    })
}

#[test]
fn sound_rules_are_accepted() {
    for source in [
        "self.n > 0 && self.s.size() < 5",
        "self.list.all(x, x.startsWith('a'))",
        "has(self.sub) && has(self.sub.x) && self.sub.x",
        "self.either == 5 || self.either == '5'",
        "self.?sub.?x.orValue(false)",
        "self.list.map(x, size(x)).sum() > 3",
        "self == oldSelf",
    ] {
        check(fields(rule(source)), &[]);
    }
}

#[test]
fn rules_that_do_not_compile_are_refused() {
    let cases = [
        ("self.foo > 1", 5, "undefined field 'foo'"),
        ("self.sub.foo", 9, "undefined field 'foo'"),
        ("has(self.foo)", 4, "undefined field 'foo'"),
        ("self.any == 1", 5, "undefined field 'any'"),
        (
            "self.list.all(x, x.y)",
            19,
            "type 'string' does not support field selection",
        ),
        (
            "self.n == 'a'",
            8,
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "self.n.size() > 1",
            12,
            "found no matching overload for 'size' applied to 'int.()'",
        ),
        (
            "self.s.startsWith()",
            18,
            "found no matching overload for 'startsWith' applied to 'string.()'",
        ),
        (
            "nothing(self.n)",
            8,
            "undeclared reference to 'nothing' (in container '')",
        ),
        (
            "other.n == 1",
            1,
            "undeclared reference to 'other' (in container '')",
        ),
        (
            "self.n.all(x, true)",
            5,
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "self.list.all(x, x)",
            18,
            "expected type 'bool' but found 'string'",
        ),
        ("self.n && true", 5, "expected type 'bool' but found 'int'"),
        (
            "self.n in [1, 'a']",
            15,
            "expected type 'int' but found 'string'",
        ),
        ("self.s.matches('(')", 16, "invalid matches argument"),
        (
            "self.n ? true : false",
            8,
            "found no matching overload for '_?_:_' applied to '(int, bool, bool)'",
        ),
    ];
    for (source, column, message) in cases {
        let found = lines(&validate_definition(&crd(fields(rule(source)))));
        let printed = json!(source).to_string();
        let printed = printed.replace('>', "\\u003e").replace('&', "\\u0026");
        let start = format!(
            "{AT}.x-kubernetes-validations[0].rule: Invalid value: {{\"Rule\":{printed},\"Message\":\"\",\
             \"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: compilation \
             failed: ERROR: <input>:1:{column}: {message}\n | {source}\n | "
        );
        assert!(found[0].starts_with(&start), "{}\n{start}", found[0]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
    let result = "AT.x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.n\",\"Message\":\"\",\
                  \"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel \
                  expression must evaluate to a bool";
    check(fields(rule("self.n")), &[result]);
}

#[test]
fn messages_must_compile_to_text() {
    let with = |message: &str| {
        let found = validate_definition(&crd(fields(
            json!([{"rule": "true", "messageExpression": message}]),
        )));
        lines(&found)
    };
    assert_eq!(with("'%d is wrong'.format([self.n])"), [] as [&str; 0]);
    // How long the text of a number is, is not estimated by the API server either.
    assert!(with("'a' + string(self.n)")[0].contains("estimated messageExpression cost exceeds"));
    assert!(with("self.n")[0].ends_with(": messageExpression must evaluate to a string"));
    let broken = &with("self.foo")[0];
    assert!(broken.contains("x-kubernetes-validations[0].messageExpression: Invalid value: "));
    assert!(broken.contains(
        "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'foo'"
    ));
}

#[test]
fn old_values_must_be_possible_to_find() {
    let items = json!({"type": "string", "maxLength": 5, "x-kubernetes-validations": rule("self == oldSelf")});
    let mut list = json!({"type": "array", "maxItems": 5, "items": items});
    check(
        list.clone(),
        &[
            "AT.items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the \
           uncorrelatable portion of the schema within AT",
        ],
    );
    list["x-kubernetes-list-type"] = json!("set");
    assert_eq!(validate_definition(&crd(list)).len(), 1);
    check(
        fields(json!([{"rule": "self.n > 1", "optionalOldSelf": true}])),
        &[
            "AT.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in \
           rule",
        ],
    );
    check(
        fields(json!([{"rule": "oldSelf.hasValue()", "optionalOldSelf": true}])),
        &[],
    );
}

#[test]
fn expensive_rules_are_refused() {
    let list = |source: &str, limit: Option<u32>| {
        let mut list = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rule(source)});
        if let Some(limit) = limit {
            list["maxItems"] = json!(limit);
            list["items"]["maxLength"] = json!(64);
        }
        list
    };
    let nested = "self.all(x, self.all(y, x == y))";
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                strings are declared)";
    let each = format!(
        "AT.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than \
         100x {hint}"
    );
    let total = [
        "AT.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit \
         for entire OpenAPIv3 schema"
            .to_owned(),
        format!(
            "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
             OpenAPIv3 schema exceeds budget by factor of more than 100x {hint}"
        ),
    ];
    check(list(nested, None), &[&each, &total[0], &total[1]]);
    check(list(nested, Some(100)), &[]);
    check(list("self.all(x, x != '')", None), &[]);
    // An update may keep what it has.
    let mut old = crd(list(nested, None));
    old["status"] = json!({"storedVersions": ["v1"]});
    let found = lines(&validate_definition_update(&old, &old));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|line| !line.contains("[0].rule: Forbidden: estimated rule cost"))
    );
}

#[test]
fn defaults_must_keep_the_rules() {
    let mut schema = fields(json!([]));
    schema["properties"]["n"]["default"] = json!(5);
    schema["properties"]["n"]["x-kubernetes-validations"] = rule("self > 10");
    check(
        schema,
        &["AT.properties[n].default: Invalid value: 5: failed rule: self > 10"],
    );
}

#[test]
fn rules_on_values_without_a_type_are_refused() {
    let any = json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": rule("true")});
    let found = lines(&validate_definition(&crd(any)));
    assert!(found[0].starts_with(&format!("{AT}.x-kubernetes-validations: Internal error: ")));
}
