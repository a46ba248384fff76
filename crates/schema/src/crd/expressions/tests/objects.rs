//! What rules say about objects.

use super::*;

/// Validates a spec, against an old one on an update.
#[track_caller]
fn check(schema: Value, spec: Value, old: Option<Value>, expect: &[&str]) {
    let version = compile_spec(schema);
    let object = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    let old = old.map(object);
    let found = validate(&version, &object(spec), old.as_ref(), Vec::new());
    assert_eq!(lines(&found), expect);
}

fn number(rules: Value) -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": rules})
}

#[test]
fn objects_and_lists_are_not_printed_but_scalars_are() {
    let list = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rule("self.size() < 2")});
    check(number(rule("self.n < 10")), json!({"n": 3}), None, &[]);
    check(
        number(rule("self.n < 10")),
        json!({"n": 50}),
        None,
        &["spec: Invalid value: failed rule: self.n < 10"],
    );
    check(
        list,
        json!(["a", "b"]),
        None,
        &["spec: Invalid value: failed rule: self.size() < 2"],
    );
    let text = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'x'", "message": " must be x "}]});
    check(
        text,
        json!("y"),
        None,
        &["spec: Invalid value: \"y\": must be x"],
    );
    let either = json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": rule("type(self) == int")});
    check(
        either,
        json!("50%"),
        None,
        &["spec: Invalid value: \"50%\": failed rule: type(self) == int"],
    );
}

#[test]
fn reasons_and_field_paths_shape_the_error() {
    let with = |more: Value| {
        let mut entry = json!({"rule": "self.n < 10", "message": "too big"});
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        number(json!([entry]))
    };
    let cases = [
        (
            json!({"reason": "FieldValueInvalid"}),
            "spec: Invalid value: too big",
        ),
        (
            json!({"reason": "FieldValueForbidden"}),
            "spec: Forbidden: too big",
        ),
        (
            json!({"reason": "FieldValueRequired"}),
            "spec: Required value: too big",
        ),
        (
            json!({"reason": "FieldValueDuplicate"}),
            "spec: Duplicate value",
        ),
        (json!({"fieldPath": ".n"}), "spec.n: Invalid value: too big"),
        (
            json!({"fieldPath": "['n']"}),
            "spec.n: Invalid value: too big",
        ),
        (
            json!({"messageExpression": "'%d is too big'.format([self.n])"}),
            "spec: Invalid value: 50 is too big",
        ),
        (
            json!({"messageExpression": "''"}),
            "spec: Invalid value: too big",
        ),
        (
            json!({"messageExpression": "'a\\nb'"}),
            "spec: Invalid value: too big",
        ),
        (
            json!({"messageExpression": "string(1 / (self.n - 50))"}),
            "spec: Invalid value: too big",
        ),
    ];
    for (more, expect) in cases {
        check(with(more), json!({"n": 50}), None, &[expect]);
    }
}

#[test]
fn failing_evaluations_are_errors() {
    check(
        number(rule("self.n < 10")),
        json!({}),
        None,
        &["spec: Invalid value: \"object\": no such key: n evaluating rule: self.n < 10"],
    );
    check(
        number(json!([{"rule": "1 / self.n == 1", "message": "be one"}])),
        json!({"n": 0}),
        None,
        &["spec: Invalid value: \"object\": division by zero evaluating rule: be one"],
    );
    let either =
        json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": rule("self < 5")});
    check(
        either,
        json!("a"),
        None,
        &[
            "spec: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function \
           or macro signature for rule: self < 5",
        ],
    );
}

#[test]
fn values_have_the_types_of_their_schema() {
    let typed = |ty: Value, source: &str| {
        let mut schema = ty;
        schema["x-kubernetes-validations"] = rule(source);
        json!({"type": "object", "properties": {"v": schema}})
    };
    let cases = [
        (json!({"type": "number"}), "self == 2.0", json!(2)),
        (json!({"type": "boolean"}), "self", json!(true)),
        (
            json!({"type": "string", "format": "date-time"}),
            "self.getFullYear() == 2024",
            json!("2024-01-01T00:00:00Z"),
        ),
        (
            json!({"type": "string", "format": "date"}),
            "self < timestamp('2025-01-01T00:00:00Z')",
            json!("2024-01-01"),
        ),
        (
            json!({"type": "string", "format": "duration"}),
            "self == duration('90s')",
            json!("1m30s"),
        ),
        (
            json!({"type": "string", "format": "byte"}),
            "self == b'hi'",
            json!("aGk="),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "self.all(k, k.startsWith('a') && self[k] > 0)",
            json!({"a1": 1, "a2": 2}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            "self == ['b', 'a']",
            json!(["a", "b"]),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "self != ['b', 'a']",
            json!(["a", "b"]),
        ),
        (
            json!({"type": "object", "properties": {"a-b": {"type": "integer"}, "namespace": {"type": "integer"}}}),
            "self.a__dash__b == 1 && self.__namespace__ == 2",
            json!({"a-b": 1, "namespace": 2}),
        ),
        (
            json!({"type": "object", "properties": {"namespace": {"type": "string"}, "if": {"type": "integer"}}}),
            "has(self.namespace) && self.namespace == 'x' && self.if == 1 && self.__if__ == 1",
            json!({"namespace": "x", "if": 1}),
        ),
        (
            json!({"type": "object", "properties": {"n": {"type": "string", "nullable": true}}}),
            "dyn(self.n) == null",
            json!({"n": null}),
        ),
    ];
    for (ty, source, value) in cases {
        check(typed(ty, source), json!({"v": value}), None, &[]);
    }
}

#[test]
fn rules_apply_on_every_level() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": rule("self > 0")}},
            "map": {
                "type": "object",
                "additionalProperties": {"type": "integer", "x-kubernetes-validations": rule("self > 1")},
            },
        },
        "x-kubernetes-validations": rule("has(self.list)"),
    });
    check(
        schema,
        json!({"map": {"b": 1, "a": 2}, "list": [1, 0]}),
        None,
        &[
            "spec.list[1]: Invalid value: 0: failed rule: self > 0",
            "spec.map[b]: Invalid value: 1: failed rule: self > 1",
        ],
    );
}

#[test]
fn root_sees_its_name_and_kind_and_nothing_else_of_metadata() {
    let crd = |source: &str| {
        let schema = json!({"type": "object", "x-kubernetes-validations": rule(source)});
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
    };
    let object =
        json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "a", "labels": {}}});
    let source = "self.metadata.name == 'a' && self.kind == 'K' && self.apiVersion == 'a/v1'";
    let found = validate(&compile(&crd(source)), &object, None, Vec::new());
    assert_eq!(lines(&found), [] as [&str; 0]);
    let found = validate(
        &compile(&crd("self.metadata.name == 'b'")),
        &object,
        None,
        Vec::new(),
    );
    assert_eq!(
        lines(&found),
        ["<nil>: Invalid value: failed rule: self.metadata.name == 'b'"]
    );
    let found = validate(
        &compile(&crd("has(self.metadata.labels)")),
        &object,
        None,
        Vec::new(),
    );
    assert!(lines(&found)[0].contains("undefined field 'labels'"));
}

#[test]
fn transition_rules_need_an_old_value() {
    let grows = || number(rule("self.n >= oldSelf.n"));
    check(grows(), json!({"n": 1}), None, &[]);
    check(grows(), json!({"n": 3}), Some(json!({"n": 2})), &[]);
    check(
        grows(),
        json!({"n": 1}),
        Some(json!({"n": 2})),
        &["spec: Invalid value: failed rule: self.n >= oldSelf.n"],
    );
    let optional = |source: &str| number(json!([{"rule": source, "optionalOldSelf": true}]));
    let source = "oldSelf.hasValue() || self.n == 0";
    check(optional(source), json!({"n": 0}), None, &[]);
    check(
        optional(source),
        json!({"n": 1}),
        None,
        &["spec: Invalid value: failed rule: oldSelf.hasValue() || self.n == 0"],
    );
    check(
        optional("oldSelf.orValue(self).n <= self.n"),
        json!({"n": 1}),
        Some(json!({"n": 2})),
        &["spec: Invalid value: failed rule: oldSelf.orValue(self).n <= self.n"],
    );
}

#[test]
fn items_correlate_by_their_keys() {
    let list = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            "x-kubernetes-validations": rule("self.v == oldSelf.v"),
        },
    });
    check(
        list,
        json!([{"k": "new", "v": 9}, {"k": "b", "v": 2}, {"k": "a", "v": 5}]),
        Some(json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}])),
        &["spec[2]: Invalid value: failed rule: self.v == oldSelf.v"],
    );
    let map = json!({
        "type": "object",
        "additionalProperties": {"type": "integer", "x-kubernetes-validations": rule("self == oldSelf")},
    });
    check(
        map,
        json!({"a": 2, "b": 1}),
        Some(json!({"a": 1})),
        &["spec[a]: Invalid value: 2: failed rule: self == oldSelf"],
    );
}

#[test]
fn what_has_not_changed_is_not_held_against_an_update() {
    let schema = || {
        json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "x-kubernetes-validations": rule("self < 10")},
                "m": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": rule("self < 10")}},
            },
        })
    };
    let old = || Some(json!({"n": 50, "m": 1, "list": [20, 1]}));
    check(
        schema(),
        json!({"n": 50, "m": 2, "list": [20, 1]}),
        old(),
        &[],
    );
    check(
        schema(),
        json!({"n": 51, "m": 1, "list": [20, 2]}),
        old(),
        &[
            "spec.list[0]: Invalid value: 20: failed rule: self < 10",
            "spec.n: Invalid value: 51: failed rule: self < 10",
        ],
    );
}

#[test]
fn invalid_objects_are_not_evaluated() {
    let version = compile_spec(number(rule("self.n < 10")));
    let found = validate(&version, &json!({"spec": {"n": "x"}}), None, Vec::new());
    let lines = lines(&found);
    assert!(
        lines[1].starts_with("<nil>: Invalid value: null: some validation rules were not checked")
    );
    assert_eq!(lines.len(), 2);
}

#[test]
fn a_rule_that_runs_away_is_stopped() {
    let nested = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))";
    let list = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule(nested)});
    let items: Vec<u32> = (0..200).collect();
    check(
        list,
        json!(items),
        None,
        &[&format!(
            "spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation \
             rules will be run due to call cost exceeds limit for rule: {nested}"
        )],
    );
}

#[test]
fn all_rules_together_share_a_budget() {
    let costly = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, true)))";
    let list = json!({
        "type": "array",
        "items": {"type": "integer", "x-kubernetes-validations": rule(costly)},
    });
    let items: Vec<u32> = (0..20_000).collect();
    let version = compile_spec(list);
    let found = validate(&version, &json!({"spec": items}), None, Vec::new());
    let lines = lines(&found);
    assert_eq!(lines.len(), 1);
    let expect = "]: Invalid value: \"integer\": validation failed due to running out of cost budget, no further \
                  validation rules will be run";
    assert!(lines[0].ends_with(expect), "{}", lines[0]);
}

#[test]
fn texts_do_not_grow_without_bound() {
    let sources = [
        "self.replace('', self).replace('', self).replace('', self) == ''",
        &format!(
            "[self]{}.all(a, '%s'.format([a]) == '')",
            ".map(a, [a, a])".repeat(15)
        ),
        "lists.range(1000000).map(a, lists.range(1000000)).size() == 0",
        "(self + self + self + self).split('').map(c, self).join('') == ''",
    ];
    for source in sources {
        let text = json!({"type": "string", "x-kubernetes-validations": rule(source)});
        let version = compile_spec(text);
        let found = validate(
            &version,
            &json!({"spec": "x".repeat(20_000)}),
            None,
            Vec::new(),
        );
        let lines = lines(&found);
        let stopped = lines[0].contains("cost limit exceeded") || lines[0].contains("cost budget");
        assert!(stopped, "{source}: {lines:?}");
    }
}
