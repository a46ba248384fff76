//! Every function and operator, as expressions that must hold.

use crate::{EvalError, Expression, Type, Value, Variable};

/// Compiles and evaluates an expression over a few variables of no known type.
fn run(source: &str, check: impl FnOnce(Result<Value<'_>, EvalError>)) {
    let variables = [
        Variable::new("one", Type::Dyn),
        Variable::new("text", Type::Dyn),
    ];
    let expression = match Expression::compile(source, &variables) {
        Ok(expression) => expression,
        Err(error) => panic!("{source}: {error}"),
    };
    let values = vec![("one", Value::Int(1)), ("text", Value::text("abc"))];
    let (result, _) = expression.evaluate(values, 1_000_000);
    check(result);
}

#[track_caller]
fn hold(cases: &[&str]) {
    for source in cases {
        run(source, |result| {
            assert!(
                matches!(result, Ok(Value::Bool(true))),
                "{source}: {result:?}"
            );
        });
    }
}

#[track_caller]
fn failures(cases: &[(&str, &str)]) {
    for (source, expect) in cases {
        run(source, |result| match result {
            Err(EvalError::Failed(message)) => {
                assert!(message.contains(expect), "{source}: {message}");
            }
            other => panic!("{source}: {other:?}"),
        });
    }
}

#[test]
fn numbers_are_calculated() {
    hold(&[
        "1 + 2 * 3 - 4 / 2 == 5",
        "7 % 4 == 3",
        "-7 / 2 == -3",
        "2u + 3u == 5u && 7u % 4u == 3u && 6u / 2u * 2u - 1u == 5u",
        "1.5 + 1.5 == 3.0 && 1.0 / 4.0 == 0.25 && 2.0 * 3.0 - 1.0 == 5.0",
        "-(3) == -3 && -(1.5) == -1.5",
        "one == 1.0 && one == 1u && dyn(1u) == 1.0 && one != 1.5 && text != 1",
        "1 < 1.5 && 2u > 1 && 1.5 >= 1u && -1 < 0u",
        "1 != 2 && !(1 == 2)",
        "9007199254740993 > 9007199254740992.0",
        "1.0 / 0.0 > 1.0",
    ]);
    failures(&[
        ("one / 0 == 1", "division by zero"),
        ("one % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "integer overflow"),
        ("0u - 1u > 0u", "unsigned integer overflow"),
        ("one + text == 2", "no such overload"),
    ]);
}

#[test]
fn failures_give_way_to_decisions() {
    hold(&[
        "true || one / 0 == 1",
        "one / 0 == 1 || true",
        "!(false && one / 0 == 1)",
        "!(one / 0 == 1 && false)",
        "one == 1 ? true : one / 0 == 1",
        "[1, 0].exists(x, 1 / x == 1)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 2].all(x, 1 / x == 1)",
    ]);
    failures(&[
        ("false || one / 0 == 1", "division by zero"),
        ("true && one / 0 == 1", "division by zero"),
        ("[0, 1].all(x, 1 / x == 1)", "division by zero"),
        ("[1].exists_one(x, 1 / 0 == 1)", "division by zero"),
        ("text || false", "no such overload"),
    ]);
}

#[test]
fn lists_and_maps_are_read() {
    hold(&[
        "[1, 2, 3][1] == 2",
        "{'a': 1}['a'] == 1 && {'a': 1}.a == 1",
        "{1: 'x'}[dyn(1u)] == 'x' && {1: 'x'}[dyn(1.0)] == 'x'",
        "1 in [1, 2] && !(3 in [1, 2])",
        "'a' in {'a': 1} && !('b' in {'a': 1})",
        "[1, 2] + [3] == [1, 2, 3]",
        "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
        "has({'a': 1}.a) && !has({'a': 1}.b)",
        "size([1, 2]) == 2 && [1].size() == 1 && size({'a': 1}) == 1 && {}.size() == 0",
        "size('äb') == 2 && 'ab'.size() == 2 && size(b'ab') == 2 && b''.size() == 0",
        "[?optional.none(), ?optional.of(1)] == [1]",
        "{?'a': optional.none(), ?'b': optional.of(1)} == {'b': 1}",
    ]);
    failures(&[
        ("[1][1] == 1", "index out of bounds: 1"),
        ("[1][-1] == 1", "index out of bounds: -1"),
        ("{'a': 1}.b == 1", "no such key: b"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("{1: 1, 1: 2}.size() == 1", "repeated key"),
        ("one.a == 1", "no such overload"),
    ]);
}

#[test]
fn macros_go_over_ranges() {
    hold(&[
        "[1, 2].all(x, x > 0) && [].all(x, false)",
        "[1, 2].exists(x, x == 2) && ![].exists(x, true)",
        "[1, 2, 2].exists_one(x, x == 1) && ![2, 2].existsOne(x, x == 2)",
        "[1, 2].map(x, x * 2) == [2, 4]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "[1, 2, 3].filter(x, x > 1) == [2, 3]",
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])",
        "{'a': 1}.map(k, k) == ['a'] && {'a': 1}.filter(k, true) == ['a']",
        "[5, 6].all(i, v, v == i + 5)",
        "{'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "[1, 2].existsOne(i, v, v == 2)",
        "[1, 2].transformList(i, v, i * v) == [0, 2]",
        "[1, 2].transformList(i, v, i > 0, v) == [2]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb']",
        "[[1, 2], [3]].all(x, x.all(y, y > 0))",
        "[1].all(x, [2].all(x, x == 2) && x == 1)",
    ]);
    failures(&[
        (
            "{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}).size() == 1",
            "key already exists",
        ),
        ("one.all(x, true)", "no such overload"),
    ]);
}

#[test]
fn types_are_values_and_can_be_converted() {
    hold(&[
        "type(1) == int && type('a') == string && type(one) == int",
        "type(null) == null_type && type([]) == list && type({}) == map",
        "type(timestamp('2024-01-01T00:00:00Z')) == google.protobuf.Timestamp",
        "type(type(1)) == type",
        "int('42') == 42 && int(4.9) == 4 && int(3u) == 3",
        "uint(3) == 3u && uint('3') == 3u && uint(3.9) == 3u",
        "double('1.5') == 1.5 && double(2) == 2.0 && double(2u) == 2.0",
        "string(42) == '42' && string(1.5) == '1.5' && string(true) == 'true' && string(7u) == '7'",
        "string(1e21) == '1e+21' && string(100000.0) == '100000'",
        "string(b'ab') == 'ab' && bytes('ab') == b'ab'",
        "bool('true') && !bool('F') && bool(true)",
        "dyn(1) == 1",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "string(duration('90m')) == '5400s'",
        "string(timestamp('2024-01-02T03:04:05Z')) == '2024-01-02T03:04:05Z'",
    ]);
    failures(&[
        (
            "int('x') == 1",
            "type conversion error from 'string' to 'int'",
        ),
        (
            "bool('yes')",
            "type conversion error from 'string' to 'bool'",
        ),
        ("int(1e30) == 1", "integer overflow"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("string(b'\\xff') == ''", "invalid UTF-8"),
    ]);
}

#[test]
fn time_is_measured() {
    hold(&[
        "timestamp('2024-01-02T03:04:05.678Z').getFullYear() == 2024",
        "timestamp('2024-01-02T03:04:05Z').getMonth() == 0",
        "timestamp('2024-01-02T03:04:05Z').getDate() == 2",
        "timestamp('2024-01-02T03:04:05Z').getDayOfMonth() == 1",
        "timestamp('2024-01-02T03:04:05Z').getDayOfWeek() == 2",
        "timestamp('2024-02-01T03:04:05Z').getDayOfYear() == 31",
        "timestamp('2024-01-02T03:04:05Z').getHours() == 3",
        "timestamp('2024-01-02T03:04:05Z').getHours('+02:00') == 5",
        "timestamp('2024-01-02T03:04:05Z').getHours('-04:30') == 22",
        "timestamp('2024-01-02T03:04:05Z').getMinutes() == 4",
        "timestamp('2024-01-02T03:04:05Z').getSeconds() == 5",
        "timestamp('2024-01-02T03:04:05.678Z').getMilliseconds() == 678",
        "timestamp('2024-01-01T00:00:00Z') + duration('1h') == timestamp('2024-01-01T01:00:00Z')",
        "timestamp('2024-01-01T01:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('60m')",
        "timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00Z')",
        "duration('1h30m').getHours() == 1 && duration('1h30m').getMinutes() == 90",
        "duration('1.5s').getMilliseconds() == 1500 && duration('-1s').getSeconds() == -1",
        "duration('1s') < duration('2s') && duration('1s') + duration('1s') == duration('2s')",
        "timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
        "timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin') == 14",
        "timestamp('2026-01-01T12:00:00Z').getHours('Europe/Berlin') == 13",
        "timestamp('2026-01-01T03:00:00Z').getDate('America/Los_Angeles') == 31",
        "timestamp('9999-12-31T23:59:59Z').getFullYear('Asia/Tokyo') == 10000",
    ]);
    failures(&[
        ("timestamp(text) == timestamp(0)", "parsing time"),
        ("duration(text) == duration('1s')", "invalid duration"),
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1h') > timestamp(0)",
            "timestamp overflow",
        ),
        (
            "timestamp(0).getHours('Nowhere/Else') == 1",
            "unknown time zone",
        ),
    ]);
}

#[test]
fn text_is_searched_and_cut() {
    hold(&[
        "'a' + 'b' == 'ab' && 'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')",
        "'a' < 'b' && b'a' < b'b' && b'a' + b'b' == b'ab'",
        "'abc'.matches('^a.c$') && !'abc'.matches('^b') && matches('abc', 'b')",
        "'äbc'.charAt(0) == 'ä' && 'abc'.charAt(3) == ''",
        "'äbcb'.indexOf('b') == 1 && 'abcb'.indexOf('b', 2) == 3 && 'abc'.indexOf('x') == -1",
        "'abcb'.lastIndexOf('b') == 3 && 'abcb'.lastIndexOf('b', 2) == 1 && 'abcb'.lastIndexOf('b', 3) == 3",
        "'AbC'.lowerAscii() == 'abc' && 'AbC'.upperAscii() == 'ABC'",
        "'aXbX'.replace('X', '-') == 'a-b-' && 'aXbX'.replace('X', '-', 1) == 'a-bX'",
        "'ab'.replace('', '-') == '-a-b-' && 'aXb'.replace('X', '-', 0) == 'aXb'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'a,b'.split(',', 0) == [] && 'ab'.split('') == ['a', 'b'] && 'a,b'.split(',', -1) == ['a', 'b']",
        "'äbc'.substring(1) == 'bc' && 'abc'.substring(1, 2) == 'b' && 'abc'.substring(3) == ''",
        "'  a '.trim() == 'a'",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('-') == ''",
        "strings.quote('a\"\\n') == '\"a\\\\\"\\\\n\"'",
        "'abc123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
    ]);
    failures(&[
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        (
            "'abc'.substring(2, 1) == ''",
            "invalid substring range. start: 2, end: 1",
        ),
        ("'abc'.substring(0, 9) == ''", "index out of range: 9"),
        ("'abc'.indexOf('a', 9) == 0", "index out of range: 9"),
        ("'abc'.matches(text + '(')", "missing closing )"),
        ("'abc'.find(text + '(') == ''", "Illegal regex: "),
    ]);
}

#[test]
fn templates_are_filled() {
    hold(&[
        "'%s and %s'.format(['a', 1]) == 'a and 1'",
        "'%d%%'.format([5]) == '5%'",
        "'%.2f'.format([1.005]) == '1.00' && '%f'.format([1]) == '1.000000'",
        "'%b %o %x %X'.format([5, 8, 255, 255]) == '101 10 ff FF'",
        "'%x'.format(['hi']) == '6869' && '%x'.format([-255]) == '-ff'",
        "'%e'.format([1234.5]) == '1.234500e+03'",
        "'%s'.format([['a', 'b']]) == '[\"a\", \"b\"]'",
        "'%s'.format([{'b': 1, 'a': 2}]) == '{\"a\": 2, \"b\": 1}'",
        "'%s %s'.format([null, true]) == 'null true'",
        "'%s'.format([duration('1m')]) == '60s'",
    ]);
    failures(&[
        ("'%s %s'.format(['a']) == ''", "index 1 out of range"),
        ("'%d'.format(['a']) == ''", "integer clause"),
        ("'%z'.format([1]) == ''", "unrecognized formatting clause"),
        ("'%'.format([1]) == ''", "unexpected end of string"),
    ]);
}

#[test]
fn lists_and_sets_have_functions() {
    hold(&[
        "[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted() && [].isSorted()",
        "[1, 2].sum() == 3 && [1.5, 1.5].sum() == 3.0 && [1u].sum() == 1u",
        "[duration('1s'), duration('1m')].sum() == duration('61s')",
        "[3, 1, 2].min() == 1 && [3, 1].max() == 3 && ['b', 'a'].min() == 'a'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "[1, 2, 3].includes(2) && ![1, 2, 3].includes(4) && ![].includes('a')",
        "'model-a'.includes('model-a') && !'model-a'.includes('model-b')",
        "[1, 2, 3].slice(1, 3) == [2, 3]",
        "[[1], [2, 3]].flatten() == [1, 2, 3]",
        "[1, 2, 1].distinct() == [1, 2]",
        "[1, 2].reverse() == [2, 1] && [2, 1].sort() == [1, 2]",
        "[1, 2].first() == optional.of(1) && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "lists.range(3) == [0, 1, 2] && lists.range(-1) == []",
        "sets.contains([1, 2], [1]) && !sets.contains([1], [2]) && sets.contains([1], [])",
        "sets.equivalent([1, 1, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    ]);
    failures(&[
        (
            "[0].filter(x, x > 0).min() == 1",
            "min called on empty list",
        ),
        ("[1].slice(0, 2) == []", "list is length 1"),
        ("[1].slice(1, 0) == []", "start index must be less"),
    ]);
}

#[test]
fn optionals_may_be_missing() {
    hold(&[
        "optional.of(1).hasValue() && !optional.none().hasValue()",
        "optional.of(1).value() == 1 && optional.none().orValue(2) == 2 && optional.of(1).orValue(2) == 1",
        "optional.none().or(optional.of(1)).value() == 1",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue(1).hasValue()",
        "{'a': {'b': 1}}.?a.b == optional.of(1) && !{'a': {'b': 1}}.?x.b.hasValue()",
        "{'a': 1}[?'a'].value() == 1 && ![1][?5].hasValue()",
        "optional.of([1])[0].value() == 1",
        "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().optMap(x, x).hasValue()",
        "optional.of(1).optFlatMap(x, optional.of(x + 1)).value() == 2",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        "[optional.of(1)].unwrapOpt() == [1]",
        "optional.of(1) == optional.of(1) && optional.none() != optional.of(1)",
        "has({'a': {'b': 1}}.?a.b)",
    ]);
    failures(&[(
        "optional.none().value() == 1",
        "optional.none() dereference",
    )]);
}

#[test]
fn urls_are_taken_apart() {
    hold(&[
        "isURL('https://example.com:80/a?b=c') && isURL('/path') && !isURL('path') && !isURL('')",
        "!isURL('http://a b/') && !isURL('http://[::1') && !isURL('/%zz') && !isURL('http://a:b/')",
        "url('https://user@example.com:80/a/b?x=1&x=2&y=%20').getHost() == 'example.com:80'",
        "url('https://example.com:80/').getHostname() == 'example.com' && url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://example.com:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
        "url('HTTPS://example.com/').getScheme() == 'https' && url('/a').getScheme() == ''",
        "url('https://example.com/a b').getEscapedPath() == '/a%20b'",
        "url('/a?x=1&x=2&y=%20+').getQuery() == {'x': ['1', '2'], 'y': ['  ']}",
        "url('/a') == url('/a') && url('/a') != url('/b')",
    ]);
    failures(&[(
        "url('path').getHost() == ''",
        "URL parse error during conversion from string",
    )]);
}

#[test]
fn addresses_and_networks_are_understood() {
    hold(&[
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256') && !isIP('010.0.0.1')",
        "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
        "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
        "ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback() && ip('::1').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('8.8.8.8').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "string(ip('::1')) == '::1' && ip('::1') == ip('0::1')",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "!cidr('0.0.0.0/0').containsIP('::1') && cidr('0.0.0.0/0').containsIP('1.2.3.4')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').prefixLength() == 8",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('::/0').masked()) == '::/0'",
        "cidr('2001:db8::1/32').masked() == cidr('2001:db8::/32')",
    ]);
    failures(&[
        (
            "ip('x').family() == 4",
            "parse error during conversion from string",
        ),
        (
            "ip('::ffff:1.2.3.4').family() == 4",
            "IPv4-mapped IPv6 address",
        ),
        (
            "cidr('10.0.0.0').prefixLength() == 8",
            "network address parse error",
        ),
        ("cidr('10.0.0.0/8').containsIP('x')", "parse error"),
    ]);
}

#[test]
fn quantities_are_compared() {
    hold(&[
        "isQuantity('1.5Gi') && !isQuantity('1.5GG') && !isQuantity('')",
        "quantity('1Gi') == quantity('1024Mi') && quantity('1') != quantity('2')",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1').isLessThan(quantity('2'))",
        "quantity('1').compareTo(quantity('1000m')) == 0 && quantity('1').compareTo(quantity('2')) == -1",
        "quantity('50k').asInteger() == 50000 && quantity('1').isInteger() && !quantity('1500m').isInteger()",
        "quantity('1500m').asApproximateFloat() == 1.5",
        "sign(quantity('-1')) == -1 && sign(quantity('0')) == 0 && sign(quantity('1m')) == 1",
        "quantity('1').add(quantity('500m')) == quantity('1500m') && quantity('1').add(2) == quantity('3')",
        "quantity('1').sub(quantity('500m')) == quantity('500m') && quantity('3').sub(2) == quantity('1')",
    ]);
    failures(&[
        (
            "quantity('x') == quantity('1')",
            "quantities must match the regular expression",
        ),
        (
            "quantity('1500m').asInteger() == 1",
            "cannot convert value to integer",
        ),
    ]);
}

#[test]
fn versions_are_compared() {
    hold(&[
        "isSemver('1.2.3-alpha.1+build') && !isSemver('1.2') && !isSemver('v1.2.3') && !isSemver('01.2.3')",
        "isSemver('v1.2', true) && isSemver('01.2.3', true) && !isSemver('a', true)",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('2.0.0').isGreaterThan(semver('1.9.9'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0-1').isLessThan(semver('1.0.0-a'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))",
        "semver('1.0.0+a') == semver('1.0.0+b') && semver('1.0.0').compareTo(semver('1.0.1')) == -1",
        "semver('v1.2', true) == semver('1.2.0')",
    ]);
    failures(&[
        (
            "semver('1.2') == semver('1.2.0')",
            "No Major.Minor.Patch elements found",
        ),
        (
            "semver('a.b.c').major() == 1",
            "Invalid character(s) found in major number",
        ),
    ]);
}

#[test]
fn named_formats_tell_what_is_wrong() {
    hold(&[
        "!format.dns1123Label().validate('my-name').hasValue()",
        "format.dns1123Label().validate('My_Name').value().size() == 1",
        "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1035Label().validate('1a').hasValue()",
        "!format.dns1123LabelPrefix().validate('my-').hasValue() && format.dns1123Label().validate('my-').hasValue()",
        "!format.dns1123SubdomainPrefix().validate('a.b-').hasValue() && !format.dns1035LabelPrefix().validate('a-').hasValue()",
        "!format.qualifiedName().validate('example.com/name').hasValue() && !format.labelValue().validate('').hasValue()",
        "!format.uri().validate('http://example.com').hasValue() && format.uri().validate('x').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('!').value() == ['invalid base64']",
        "!format.date().validate('2024-01-01').hasValue() && format.date().validate('x').value() == ['invalid date']",
        "!format.datetime().validate('2024-01-01T00:00:00Z').hasValue()",
        "format.named('uuid').value() == format.uuid() && !format.named('x').hasValue()",
    ]);
}
