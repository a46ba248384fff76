//! Selectors: grammar, error texts, matching and limits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn label(text: &str) -> LabelSelector {
    LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn pairs(labels: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    let sorted: BTreeMap<&str, &str> = labels.iter().copied().collect();
    sorted
        .into_iter()
        .map(|(k, v)| (k.into(), v.into()))
        .collect()
}

fn invalid(text: &str) -> String {
    match LabelSelector::parse(text) {
        Err(SelectorError::Invalid(message)) => message,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn label_selectors_are_written_in_canonical_form() {
    let cases = [
        ("", ""),
        ("  ", ""),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        ("a = b ", "a=b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("b,a", "a,b"),
        ("!a", "!a"),
        ("! a , b", "!a,b"),
        ("a in (b)", "a in (b)"),
        ("a in (c,b,c)", "a in (b,c)"),
        ("a notin ( )", "a notin ()"),
        ("a in (,)", "a in ()"),
        ("a in (x,,y)", "a in (,x,y)"),
        ("a in (x,)", "a in (,x)"),
        ("a in(b)", "a in (b)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in", "notin=in"),
        ("in", "in"),
        ("!notin", "!notin"),
        ("a>1", "a>1"),
        ("a<007", "a<7"),
        ("example.com/a=b_c.d", "example.com/a=b_c.d"),
        ("a\tin\n(b)\r", "a in (b)"),
    ];
    for (text, expect) in cases {
        assert_eq!(label(text).to_string(), expect, "{text:?}");
    }
}

#[test]
fn bad_label_selectors_are_refused_with_the_words_of_kubernetes() {
    let cases = [
        (
            "a b c",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        (
            ",a",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        (
            "=a",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "!!a",
            "unable to parse requirement: found '!', expected: identifier",
        ),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        (
            "a===b",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "a=(b)",
            "unable to parse requirement: found '(', expected: identifier",
        ),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "a in (b,(",
            "unable to parse requirement: found '(', expected: ',', or identifier",
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ];
    for (text, expect) in cases {
        assert_eq!(invalid(text), expect, "{text:?}");
    }
}

#[test]
fn bad_keys_and_values_name_the_rule() {
    let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    assert_eq!(
        invalid("-a=b"),
        format!("unable to parse requirement: <nil>: Invalid value: \"-a\": name part {rule}")
    );
    let value = invalid("a=-b");
    let expect = "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of";
    assert!(value.starts_with(expect), "{value}");
    let several = invalid("a in (-b,c,-d)");
    assert!(several.starts_with("unable to parse requirement: [values[0][a]: "));
    assert!(several.contains(", values[1][a]: Invalid value: \"-d\""));
    assert!(invalid("a\0b").contains("<nil>: Invalid value"));
}

#[test]
fn requirements_look_at_one_label_each() {
    let labels = pairs(&[("app", "web"), ("tier", ""), ("size", "12")]);
    let cases = [
        ("", true),
        ("app=web", true),
        ("app=api", false),
        ("app!=api", true),
        ("other!=x", true),
        ("other=", false),
        ("tier=", true),
        ("app in (api,web)", true),
        ("app in (api,cli)", false),
        ("app notin (api,web)", false),
        ("other notin (x)", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("size>11", true),
        ("size>12", false),
        ("size<13", true),
        ("app>1", false),
        ("other<1", false),
        ("app=web,size>100", false),
    ];
    let object: serde_json::Map<String, Value> = labels
        .iter()
        .map(|(k, v)| (k.to_string(), Value::from(&**v)))
        .collect();
    for (text, expect) in cases {
        assert_eq!(label(text).matches(&labels[..]), expect, "{text:?}");
        assert_eq!(label(text).matches(&object), expect, "{text:?}");
    }
    assert!(LabelSelector::parse("").is_ok_and(|s| s.is_everything()));
    assert!(!LabelSelector::nothing().matches(&labels[..]));
    assert!(LabelSelector::nothing().is_nothing());
}

#[test]
fn large_selectors_are_refused_before_they_are_read() {
    let bytes = "a".repeat(64 * 1024 + 1);
    let requirements = vec!["a"; 1001].join(",");
    let values = format!("a in ({})", vec!["b"; 10_001].join(","));
    for text in [&bytes, &requirements, &values] {
        let error = LabelSelector::parse(text).expect_err("a selector over a limit");
        assert!(matches!(error, SelectorError::TooLarge { .. }), "{error}");
    }
    let many: Vec<String> = (0..10_000).map(|i| format!("{i}")).collect();
    let selector = label(&format!("a in ({})", many.join(",")));
    assert!(selector.matches(&pairs(&[("a", "9999")])[..]));
    let terms = vec!["a=b"; 1001].join(",");
    assert!(FieldSelector::parse(&terms).is_err());
    assert!(FieldSelector::parse(&bytes).is_err());
}

#[test]
fn object_form_selects_like_the_text_form() {
    let cases = [
        (json!({}), ""),
        (json!({"matchLabels": {"b": "1", "a": "2"}}), "a=2,b=1"),
        (
            json!({"matchLabels": {"x": "y"}, "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["c", "b"]},
                {"key": "b", "operator": "NotIn", "values": ["c"]},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist", "values": []},
            ]}),
            "a in (b,c),b notin (c),c,!d,x=y",
        ),
    ];
    for (object, expect) in cases {
        let selector = LabelSelector::from_object(&object).expect("a valid selector");
        assert_eq!(selector.to_string(), expect);
        assert!(validate_label_selector(&object, "spec.selector").is_empty());
    }
    let null = LabelSelector::from_object(&Value::Null).expect("null is a selector");
    assert!(null.is_nothing());
}

#[test]
fn bad_object_forms_are_refused() {
    let object = json!({"matchLabels": {"a": "-"}, "matchExpressions": [
        {"key": "a", "operator": "In"},
        {"key": "", "operator": "Exists", "values": ["b"]},
        {"key": "a", "operator": "Gt", "values": ["1"]},
    ]});
    let errors: Vec<String> = validate_label_selector(&object, "spec.selector")
        .iter()
        .map(ToString::to_string)
        .collect();
    let starts = [
        "spec.selector.matchLabels: Invalid value: \"-\": a valid label must be",
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        "spec.selector.matchExpressions[1].key: Invalid value: \"\": name part must be non-empty",
        "spec.selector.matchExpressions[1].key: Invalid value: \"\": name part must consist",
        "spec.selector.matchExpressions[2].operator: Invalid value: \"Gt\": not a valid selector operator",
    ];
    assert_eq!(errors.len(), starts.len(), "{errors:#?}");
    for (error, start) in errors.iter().zip(starts) {
        assert!(error.starts_with(start), "{error}");
    }
    let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]});
    let error = LabelSelector::from_object(&unknown).expect_err("an unknown operator");
    assert_eq!(
        error.to_string(),
        "\"Gt\" is not a valid label selector operator"
    );
    assert!(LabelSelector::from_object(&object).is_err());
}

#[test]
fn field_selectors_are_terms() {
    let cases = [
        ("", ""),
        (",", ""),
        ("b=1,a==2", "a=2,b=1"),
        ("a!=b", "a!=b"),
        ("a!b!=c", "a!b!=c"),
        ("a=", "a="),
        (r"a=b\,c\=d\\e", r"a=b\,c\=d\\e"),
    ];
    for (text, expect) in cases {
        let selector = FieldSelector::parse(text).expect(text);
        assert_eq!(selector.to_string(), expect, "{text:?}");
    }
    let selector = FieldSelector::parse("metadata.name=web,status.phase!=Running").expect("valid");
    assert_eq!(selector.exact("metadata.name"), Some("web"));
    assert_eq!(selector.exact("status.phase"), None);
    let phase = |phase| {
        selector.matches(|field| match field {
            "metadata.name" => Some("web"),
            _ => phase,
        })
    };
    assert!(phase(Some("Pending")));
    assert!(phase(None));
    assert!(!phase(Some("Running")));
}

#[test]
fn bad_field_selectors_are_refused_with_the_words_of_kubernetes() {
    let cases = [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (
            r"a=b\x",
            r"invalid field selector: invalid escape sequence: \x",
        ),
        (
            r"a=b\",
            r"invalid field selector: invalid escape sequence: \",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
    ];
    for (text, expect) in cases {
        let error = FieldSelector::parse(text).expect_err(text);
        assert_eq!(error.to_string(), expect, "{text:?}");
    }
}

fn requirement() -> impl Strategy<Value = String> {
    let word = "[a-zA-Z0-9]([a-z_.-]{0,3}[a-z])?|in|notin";
    (word, 0..8, proptest::collection::vec(word, 1..4)).prop_map(|(key, form, values)| {
        let list = values.join(",");
        match form {
            0 => key,
            1 => format!("!{key}"),
            2 => format!("{key}={}", values[0]),
            3 => format!("{key}!={}", values[0]),
            4 => format!("{key} in ({list})"),
            5 => format!("{key} notin (,{list})"),
            6 => format!("{key}>{}", list.len()),
            _ => format!("{key}<{}", list.len()),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn label_selectors_survive_writing_and_reading(
        requirements in proptest::collection::vec(requirement(), 0..6),
    ) {
        let selector = label(&requirements.join(","));
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn field_selectors_survive_writing_and_reading(
        terms in proptest::collection::vec(("[a-z.]{1,8}", "!=|==?", "[a-z\\\\,=é]{0,8}"), 0..6),
    ) {
        let escape = |v: &str| v.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let texts: Vec<String> =
            terms.iter().map(|(f, o, v)| format!("{f}{o}{}", escape(v))).collect();
        let selector = FieldSelector::parse(&texts.join(",")).expect("escaped values are valid");
        prop_assert_eq!(selector.terms().len(), terms.len());
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn reading_never_panics(text in "[a-z0-9 !=(),<>\\\\\\x00é-]{0,40}") {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }
}
