//! What parses, what does not, and what keeps the parser within bounds.

use super::*;
use crate::ast::{Entry, FoldKind};

/// The tree in prefix notation.
fn shape(node: &Node) -> String {
    let all = |nodes: &[Node]| nodes.iter().map(shape).collect::<Vec<_>>().join(" ");
    match &node.kind {
        Kind::Literal(literal) => match literal {
            Literal::Int(value) => value.to_string(),
            Literal::Double(value) => format!("{value:?}"),
            Literal::Text(text) => format!("{text:?}"),
            Literal::Bool(value) => value.to_string(),
            Literal::Null => "null".to_owned(),
            Literal::Uint(value) => format!("{value}u"),
            Literal::Bytes(bytes) => format!("b{bytes:?}"),
        },
        Kind::Ident(name) => name.to_string(),
        Kind::Select(operand, field) => format!("{}.{field}", shape(operand)),
        Kind::Has(operand, field) => format!("(has {}.{field})", shape(operand)),
        Kind::OptionalSelect(operand, field) => format!("{}.?{field}", shape(operand)),
        Kind::Call(call) => {
            let target = call.target.as_deref().map(shape).into_iter();
            let args = call.args.iter().map(shape);
            let parts: Vec<String> = target.chain(args).collect();
            format!("({} {})", call.function, parts.join(" "))
        }
        Kind::And(nodes) => format!("(&& {})", all(nodes)),
        Kind::Or(nodes) => format!("(|| {})", all(nodes)),
        Kind::Conditional(nodes) => format!("(? {})", all(nodes.as_slice())),
        Kind::List(items) => {
            let items: Vec<String> = items.iter().map(|item| shape(&item.value)).collect();
            format!("[{}]", items.join(" "))
        }
        Kind::Map(entries) => {
            let entry = |entry: &Entry| format!("{}:{}", shape(&entry.key), shape(&entry.value));
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(" "))
        }
        Kind::Construct(construct) => {
            let fields = construct.fields.iter();
            let fields: Vec<String> = fields
                .map(|field| format!("{}:{}", field.name, shape(&field.value)))
                .collect();
            format!("{}{{{}}}", construct.type_name, fields.join(" "))
        }
        Kind::Fold(fold) => {
            let second = fold.second.as_deref().unwrap_or("");
            let filter = fold.filter.as_ref().map(shape).unwrap_or_default();
            format!(
                "({:?} {} {}{second} {filter}{})",
                fold.kind,
                shape(&fold.range),
                fold.variable,
                shape(&fold.body)
            )
        }
    }
}

#[test]
fn operators_bind_as_in_the_grammar() {
    let cases = [
        ("a + b * c - d", "(_-_ (_+_ a (_*_ b c)) d)"),
        ("a || b && c || d", "(|| a (&& b c) d)"),
        ("a ? b : c ? d : e", "(? a b (? c d e))"),
        ("a < b == c", "(_==_ (_<_ a b) c)"),
        ("x in [1, 2,]", "(@in x [1 2])"),
        ("!a.b", "(!_ a.b)"),
        ("!!a", "a"),
        ("-a", "(-_ a)"),
        ("--1", "1"),
        ("-1", "-1"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1 - 1", "(_-_ 1 1)"),
        ("a[0].b", "(_[_] a 0).b"),
        ("a[?0].?b", "(_[?_] a 0).?b"),
        ("{'a': 1, ?b: c}", "{\"a\":1 b:c}"),
        ("(a)", "a"),
        (".a.b", "a.b"),
        ("a.f(1).g()", "(g (f a 1))"),
        ("sets.contains(a, b)", "(sets.contains a b)"),
        ("a.sets.contains(b)", "(contains a.sets b)"),
        ("google.protobuf.Timestamp", "google.protobuf.Timestamp"),
        ("null == true", "(_==_ null true)"),
    ];
    for (source, expect) in cases {
        assert_eq!(shape(&parse(source).expect(source)), expect, "{source}");
    }
}

#[test]
fn macros_become_folds() {
    let cases = [
        ("has(a.b.c)", "(has a.b.c)"),
        ("a.all(x, x)", "(All a x x)"),
        ("a.exists(i, v, v)", "(Exists a iv v)"),
        ("a.map(x, p, x)", "(Map a x px)"),
        ("a.transformMap(k, v, v)", "(TransformMap a kv v)"),
        ("a.map(x)", "(map a x)"),
    ];
    for (source, expect) in cases {
        assert_eq!(shape(&parse(source).expect(source)), expect, "{source}");
    }
    let node = parse("a.sortBy(x, x)").expect("parses");
    assert!(matches!(node.kind, Kind::Fold(fold) if fold.kind == FoldKind::SortBy));
}

#[test]
fn syntax_errors_name_the_place() {
    let operand = format!("1:9: Syntax error: mismatched input '<EOF>' expecting {OPERAND}");
    let cases = [
        ("self.a +", operand.as_str()),
        (
            "a b",
            "1:3: Syntax error: extraneous input 'b' expecting <EOF>",
        ),
        (
            "a b c",
            "1:3: Syntax error: mismatched input 'b' expecting <EOF>",
        ),
        ("(a", "1:3: Syntax error: missing ')' at '<EOF>'"),
        (
            "a = b",
            "1:3: Syntax error: token recognition error at: '='",
        ),
        ("if", "1:1: reserved identifier: if"),
        (
            "a.in",
            "1:3: Syntax error: no viable alternative at input '.in'",
        ),
        ("has(1)", "1:5: invalid argument to has() macro"),
        ("a.all(x.y, true)", "1:8: argument must be a simple name"),
        ("9223372036854775808", "1:1: invalid int literal"),
        (
            "Foo{1: 1}",
            "1:5: Syntax error: no viable alternative at input",
        ),
        ("a.`b`", "1:3: unsupported syntax: '`'"),
    ];
    for (source, expect) in cases {
        let error = parse(source).expect_err(source).to_string();
        assert!(error.contains(expect), "{source}: {error}");
    }
}

#[test]
fn deep_and_long_expressions_are_refused_without_a_deep_stack() {
    let many = 500_000;
    let hostile = [
        "(".repeat(many),
        "[".repeat(many),
        "{1:".repeat(many),
        "f(".repeat(many),
        "a.all(x,".repeat(many / 8),
        "a?b:".repeat(many / 4),
        format!("a{}", ".a".repeat(many / 2)),
        format!("a{}", "[0]".repeat(many / 3)),
        format!("1{}", "+1".repeat(many / 2)),
        "@".repeat(many),
    ];
    for source in hostile {
        for length in [50_000, source.len()] {
            assert!(parse(&source[..length]).is_err(), "{}", &source[..10]);
        }
    }
}

#[test]
fn long_but_flat_expressions_parse() {
    for source in [
        format!("a{}", "&&a".repeat(20_000)),
        format!("[{}1]", "1,".repeat(20_000)),
        format!("{}a", "!".repeat(50_000)),
        format!("{}a", "-".repeat(50_000)),
        format!("{}1{}", "(".repeat(95), ")".repeat(95)),
        format!("1{}", "+1".repeat(95)),
    ] {
        assert!(parse(&source).is_ok(), "{}", &source[..10]);
    }
}
