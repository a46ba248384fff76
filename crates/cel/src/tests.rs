//! Expressions as a whole: their types, what they cost, and what keeps them within bounds.

use super::*;

fn compiled(source: &str) -> Result<Expression, CompileError> {
    let variables = [
        Variable::new("number", Type::Int),
        Variable::new("text", Type::String),
        Variable::new("texts", Type::List(Arc::new(Type::String))),
        Variable::new("open", Type::Dyn),
    ];
    Expression::compile(source, &variables)
}

#[test]
fn expressions_have_types() {
    let cases = [
        ("1", "int"),
        ("number + 1", "int"),
        ("open + 1", "int"),
        ("open + open", "dyn"),
        ("[]", "list(dyn)"),
        ("[] + [1]", "list(int)"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("texts.map(x, size(x))", "list(int)"),
        ("texts.filter(x, x == '')", "list(string)"),
        ("texts.transformMap(i, v, v + '!')", "map(int, string)"),
        ("texts[0]", "string"),
        ("texts[?0]", "optional_type(string)"),
        ("texts[?0].optMap(x, size(x))", "optional_type(int)"),
        ("texts[?0].orValue('')", "string"),
        ("true ? [] : texts", "list(string)"),
        ("number > 1 ? 'a' : text", "string"),
        ("type(1)", "type"),
        ("url('/').getQuery()", "map(string, list(string))"),
        ("quantity('1').add(1)", "kubernetes.Quantity"),
        ("open.a.b", "dyn"),
        ("optional.none()", "optional_type(dyn)"),
        ("optional.none().orValue(1)", "int"),
        (
            "format.named('uuid')",
            "optional_type(kubernetes.NamedFormat)",
        ),
    ];
    for (source, expect) in cases {
        let expression = compiled(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(expression.ty().to_string(), expect, "{source}");
    }
}

#[test]
fn mistakes_are_named_once_each() {
    let cases = [
        ("missing.a.b.c", vec!["undeclared reference to 'missing'"]),
        (
            "a + b",
            vec!["undeclared reference to 'a'", "undeclared reference to 'b'"],
        ),
        ("text.nothing()", vec!["undeclared reference to 'nothing'"]),
        (
            "[1, 'a', 2.0]",
            vec!["expected type 'int' but found 'string'"],
        ),
        (
            "{'a': 1, 'b': 'c'}",
            vec!["expected type 'int' but found 'string'"],
        ),
        (
            "[?1]",
            vec!["expected type 'optional_type(int)' but found 'int'"],
        ),
        (
            "text.optMap(x, x)",
            vec!["found no matching overload for 'hasValue' applied to 'string.()'"],
        ),
        (
            "true ? 1 : 'a'",
            vec!["found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
        ),
        (
            "texts.all(x, x > 1)",
            vec!["found no matching overload for '_>_' applied to '(string, int)'"],
        ),
        ("timestamp('yesterday')", vec!["invalid timestamp argument"]),
        ("duration('1 day')", vec!["invalid duration argument"]),
    ];
    for (source, expect) in cases {
        let error = compiled(source).expect_err(source).to_string();
        let found: Vec<&str> = error
            .lines()
            .filter(|line| line.starts_with("ERROR"))
            .collect();
        assert_eq!(found.len(), expect.len(), "{error}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{found}");
        }
    }
}

#[test]
fn variables_of_macros_hide_others() {
    let cases = [
        ("number > 1", true),
        ("texts.all(number, number == '')", false),
        ("texts.all(x, number > 1)", true),
        ("[number].all(number, number > 1)", true),
        ("texts.exists(i, number, number == text)", false),
    ];
    for (source, expect) in cases {
        let expression = compiled(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(expression.mentions("number"), expect, "{source}");
    }
}

/// The numbers are those that the API server counts.
#[test]
fn evaluating_costs_what_it_does_in_the_api_server() {
    let cases = [
        ("true", 0),
        ("number", 1),
        ("number > 0", 2),
        ("number + number", 3),
        ("[1, 2]", 10),
        ("{'a': 1}", 30),
        ("has({'a': 1}.a)", 30),
        ("'abcdefghij' == 'abcdefghij'", 1),
        ("'abcdefghijk' + 'a' == ''", 2),
        ("[1, 2].all(x, x > 0)", 10 + 2 * (3 + 2)),
        ("[1, 2].exists(x, x > 5)", 10 + 2 * (4 + 2)),
        ("1 in [1, 2, 3]", 10 + 3),
        ("true || number > 0", 0),
        ("false || number > 0", 2),
        ("true ? number : 1", 1),
    ];
    for (source, expect) in cases {
        let expression = compiled(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let (result, spent) = expression.evaluate(vec![("number", Value::Int(1))], 1000);
        assert!(result.is_ok(), "{source}: {result:?}");
        assert_eq!(spent, expect, "{source}");
    }
}

#[test]
fn the_limit_is_not_passed() {
    let expression = compiled("texts.all(a, texts.all(b, a == b || true))").expect("compiles");
    let texts = Value::list((0..1000).map(|_| Value::text("a")).collect());
    let (result, spent) = expression.evaluate(vec![("texts", texts)], 10_000);
    assert!(matches!(result, Err(EvalError::Budget)));
    assert!(spent < 10_100, "{spent}");
}

#[test]
fn deep_expressions_fit_on_a_stack() {
    let deep = 95;
    let sources = [
        format!("{}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("{}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("{}1{}", "{1:".repeat(deep), "}".repeat(deep)),
        format!("{}1{}", "dyn(".repeat(deep), ")".repeat(deep)),
        format!("{}1", "true?1:".repeat(deep)),
        format!("1{}", "+1".repeat(deep)),
        format!("open{}", ".a".repeat(deep)),
        format!("{}true{}", "[1].all(x,".repeat(deep), ")".repeat(deep)),
        format!("[1]{}", ".map(x,x)".repeat(deep)),
        format!("{}1{}", "optional.of(".repeat(deep), ")".repeat(deep)),
        format!(
            "{}true{}",
            "false||(true&&".repeat(deep / 2),
            ")".repeat(deep / 2)
        ),
    ];
    for source in sources {
        let expression = compiled(&source).unwrap_or_else(|error| panic!("{error}"));
        let same = format!("({source}) == ({source})");
        let _ = expression.evaluate(vec![("open", Value::Int(1))], 1_000_000);
        if let Ok(same) = compiled(&same) {
            let _ = same.evaluate(vec![("open", Value::Int(1))], 1_000_000);
        }
    }
}

#[test]
fn types_do_not_grow_without_bound() {
    let doubling = format!("[text]{}", ".map(a, {a: {a: a}})".repeat(90));
    let _ = compiled(&doubling);
    let lists = format!("[text]{}", ".map(a, [[a], [a]])".repeat(90));
    assert!(compiled(&lists).is_ok());
    let many = format!("[{}[]]", "[],".repeat(10_000));
    assert!(compiled(&many).is_ok());
    let calls = format!("true{}", " && [] + [] == []".repeat(3_000));
    assert!(compiled(&calls).is_ok());
}

fn mutation(source: &str, object: &serde_json::Value) -> Result<serde_json::Value, String> {
    let variables = [Variable::new("object", Type::Dyn)];
    let expression =
        Expression::compile_mutation(source, &variables).map_err(|error| error.to_string())?;
    let (result, _) = expression.evaluate(vec![("object", Value::dynamic(object))], 10_000);
    result
        .and_then(|value| value.to_json())
        .map_err(|error| error.to_string())
}

#[test]
fn mutations_construct_objects_and_patches() {
    let object = serde_json::json!({"spec": {"replicas": 2, "half": 0.5, "list": [1, null]}});
    for (source, expect) in [
        (
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
            serde_json::json!({"spec": {"replicas": 3}}),
        ),
        (
            "Object{metadata: Object.metadata{?labels: object.?metadata.?labels}}",
            serde_json::json!({"metadata": {}}),
        ),
        (
            "Object{spec: Object.spec{list: [Object.spec.list{a: 1}]}}",
            serde_json::json!({"spec": {"list": [{"a": 1}]}}),
        ),
        (
            "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y~z'), value: object.spec.half}]",
            serde_json::json!([{"op": "add", "path": "/a/x~1y~0z", "value": 0.5}]),
        ),
        ("object.spec.list", serde_json::json!([1, null])),
    ] {
        assert_eq!(mutation(source, &object), Ok(expect), "{source}");
    }
}

#[test]
fn what_cannot_be_constructed_does_not_compile() {
    let object = serde_json::json!({});
    for (source, expect) in [
        (
            "Other{}",
            "undeclared reference to 'Other' (in container '')",
        ),
        ("JSONPatch{operation: 'add'}", "undefined field 'operation'"),
        (
            "Object{spec: Object.status{}}",
            "unexpected type name \"Object.status\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
    ] {
        let found = mutation(source, &object).unwrap_err();
        assert!(found.contains(expect), "{found}");
    }
    for source in ["Object{}", "jsonpatch.escapeKey('a')"] {
        assert!(Expression::compile(source, &[]).is_err(), "{source}");
    }
}

#[test]
fn results_fail_when_they_are_used() {
    let rule = "has(variables.good) && variables.good == 1 && (variables.bad == 1 || true)";
    let rule = Expression::compile(rule, &[Variable::new("variables", Type::Dyn)]).unwrap();
    assert_eq!(rule.fields_of("variables"), ["good", "good", "bad"]);
    let results = std::collections::BTreeMap::from([
        ("good".into(), Ok(Value::Int(1))),
        ("bad".into(), Err(EvalError::Failed("broken".into()))),
    ]);
    let (result, _) = rule.evaluate(vec![("variables", Value::results(results))], 1000);
    assert!(matches!(result, Ok(Value::Bool(true))));
}

struct Breakglass;

impl Authority for Breakglass {
    fn decide(&self, question: &Question) -> Verdict {
        let account = question.service_account.clone().unwrap_or_default().1;
        let path = question.path.as_deref().unwrap_or("");
        let asked = [&question.group, &question.resource, &question.subresource];
        let asked = asked.map(String::as_str).join("/");
        let place = format!("{}/{}", question.namespace, question.name);
        let reason = format!("{account}:{path}:{asked}:{place}:{}", question.verb);
        Verdict {
            allowed: question.verb == "breakglass",
            reason,
        }
    }
}

#[test]
fn expressions_ask_who_may_do_what() {
    let request = Question {
        resource: "pods".into(),
        namespace: "n".into(),
        ..Question::default()
    };
    let variables = [Variable::new(
        "authorizer",
        Type::Opaque(Opaque::Authorizer),
    )];
    for (source, expect) in [
        (
            "authorizer.group('g').resource('r').subresource('s').namespace('ns').name('x').check('get').reason()",
            "::g/r/s:ns/x:get",
        ),
        (
            "authorizer.path('/healthz').check('get').reason()",
            ":/healthz://:/:get",
        ),
        (
            "authorizer.requestResource.check('delete').reason()",
            "::/pods/:n/:delete",
        ),
        (
            "authorizer.serviceAccount('ns', 'sa').requestResource.check('get').reason()",
            "sa::/pods/:n/:get",
        ),
        (
            "string(authorizer.requestResource.check('breakglass').allowed())",
            "true",
        ),
    ] {
        let expression = Expression::compile(source, &variables).expect(source);
        let inquiry = Inquiry::new(&Breakglass, request.clone());
        let (result, spent) =
            expression.evaluate(vec![("authorizer", Value::Inquiry(inquiry))], 1_000_000);
        assert!(
            matches!(&result, Ok(Value::Text(text)) if **text == *expect),
            "{source}"
        );
        assert!(spent >= 350_000, "asking is dear");
    }
    for source in [
        "authorizer.check('get')",
        "authorizer.group('g').check('get')",
        "authorizer.none",
    ] {
        assert!(Expression::compile(source, &variables).is_err(), "{source}");
    }
}
