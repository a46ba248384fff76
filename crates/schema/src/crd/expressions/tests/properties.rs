//! Whatever is written as a rule, and whatever objects look like, there is an answer.

use proptest::prelude::*;

use super::*;

/// Pieces that rules are made of; most combinations make no sense.
const PIECES: [&str; 54] = [
    "self",
    "oldSelf",
    ".n",
    ".s",
    ".list",
    ".map",
    ".sub",
    ".time",
    ".foo",
    "x",
    "y",
    "1",
    "0",
    "-1",
    "2u",
    "1.5",
    "'a'",
    "b'a'",
    "null",
    "true",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    ".?n",
    "[?0]",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    " in ",
    "&&",
    "||",
    "!",
    ".all(x, ",
    ".map(y, ",
    ".exists(x, y, ",
    "has(",
    "size(",
    ".matches('a')",
    ".replace('', self.s)",
    ".format([self])",
    "dyn(",
    "quantity('1')",
    "optional.of(",
];

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..12).prop_map(|p| p.concat())
}

/// Expressions that always have a type.
fn sound() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "self.n > 0",
        "self.s == 'a'",
        "self.list.size() > 1",
        "self.map.exists(k, v, v == self.n)",
        "self.list.all(x, x.matches('^[a-z]+$'))",
        "1 / self.n == 1",
        "self.list[0] == self.s",
        "self.time > timestamp('2024-01-01T00:00:00Z')",
        "self == oldSelf",
        "has(self.sub.x) && self.sub.x",
        "'%s'.format([self]).size() > 2",
        "self.list.map(x, self.list.map(y, x + y)).flatten().distinct().size() < 9",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || !({b}))")),
                (inner.clone(), inner.clone(), inner.clone())
                    .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
                inner.prop_map(|a| format!("self.list.exists(z, {a})")),
            ]
        })
}

fn schema(source: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "time": {"type": "string", "format": "date-time", "nullable": true},
            "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "sub": {"type": "object", "properties": {"x": {"type": "boolean"}}},
        },
        "x-kubernetes-validations": rule(source),
    })
}

fn specs() -> impl Strategy<Value = Value> {
    let text = "[a-z]{0,3}";
    (
        proptest::option::of(-2i64..3),
        proptest::option::of(text),
        proptest::collection::btree_set(text, 0..4),
        proptest::collection::btree_map(text, -2i64..3, 0..3),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(n, s, list, map, x)| {
            let mut spec = json!({"list": list, "map": map});
            if let Some(n) = n {
                spec["n"] = json!(n);
            }
            if let Some(s) = s {
                spec["s"] = json!(s);
            }
            if let Some(x) = x {
                spec["sub"] = json!({"x": x});
                spec["time"] = json!("2024-06-01T00:00:00Z");
            }
            spec
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_text_compiles_or_is_refused(source in "\\PC{0,40}", pieces in pieces()) {
        for source in [source, pieces] {
            let version = compile_spec(schema(&source));
            let object = json!({"spec": {"n": 1, "s": "a", "list": ["a"], "map": {"a": 1}}});
            validate(&version, &object, Some(&object), Vec::new());
        }
    }

    #[test]
    fn sound_rules_have_an_answer_for_every_object(source in sound(), new in specs(), old in specs()) {
        let version = compile_spec(schema(&source));
        let (new, old) = (json!({"spec": new}), json!({"spec": old}));
        let created = validate(&version, &new, None, Vec::new());
        let updated = validate(&version, &new, Some(&old), Vec::new());
        for error in created.iter().chain(&updated) {
            prop_assert!(!error.message.contains("compile error"), "{source}: {error}");
            prop_assert!(!error.message.contains("no such overload"), "{source}: {error}");
        }
        // An object that has not changed is never refused for rules about its own state.
        if !source.contains("oldSelf") {
            let same = validate(&version, &new, Some(&new), Vec::new());
            let broken = same.iter().filter(|error| error.message.contains("failed rule"));
            prop_assert_eq!(broken.count(), 0);
        }
    }
}
