//! Which functions there are, on which types. What they do is in [`super::functions`].

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::{Bindings, Opaque, Type};

/// One way to call a function. Type variables are numbered from zero in each.
#[derive(Debug, Clone)]
pub(crate) struct Overload {
    /// Called as `target.function(…)`; the target is the first parameter.
    pub(crate) method: bool,
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
}

/// All overloads of a function, if there is one with this name.
pub(crate) fn overloads(function: &str) -> Option<&'static [Overload]> {
    TABLE.get(function).map(Vec::as_slice)
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(table);

/// `target::method(parameters) -> result` or `function(parameters) -> result`. Capital letters are type variables.
const SIGNATURES: &str = "
    !_(bool) -> bool
    -_(int) -> int
    -_(double) -> double
    _==_(A, A) -> bool
    _!=_(A, A) -> bool
    @in(A, list<A>) -> bool
    @in(A, map<A, B>) -> bool
    _[_](list<A>, int) -> A
    _[_](map<A, B>, A) -> B
    _[_](optional<list<A>>, int) -> optional<A>
    _[_](optional<map<A, B>>, A) -> optional<B>
    _[?_](list<A>, int) -> optional<A>
    _[?_](map<A, B>, A) -> optional<B>
    _[?_](optional<list<A>>, int) -> optional<A>
    _[?_](optional<map<A, B>>, A) -> optional<B>
    _+_(int, int) -> int
    _+_(uint, uint) -> uint
    _+_(double, double) -> double
    _+_(string, string) -> string
    _+_(bytes, bytes) -> bytes
    _+_(list<A>, list<A>) -> list<A>
    _+_(duration, duration) -> duration
    _+_(timestamp, duration) -> timestamp
    _+_(duration, timestamp) -> timestamp
    _-_(int, int) -> int
    _-_(uint, uint) -> uint
    _-_(double, double) -> double
    _-_(timestamp, timestamp) -> duration
    _-_(timestamp, duration) -> timestamp
    _-_(duration, duration) -> duration
    _*_(int, int) -> int
    _*_(uint, uint) -> uint
    _*_(double, double) -> double
    _/_(int, int) -> int
    _/_(uint, uint) -> uint
    _/_(double, double) -> double
    _%_(int, int) -> int
    _%_(uint, uint) -> uint

    size(string) -> int
    size(bytes) -> int
    size(list<A>) -> int
    size(map<A, B>) -> int
    string::size() -> int
    bytes::size() -> int
    list<A>::size() -> int
    map<A, B>::size() -> int

    type(A) -> type
    dyn(A) -> dyn
    bool(bool) -> bool
    bool(string) -> bool
    bytes(bytes) -> bytes
    bytes(string) -> bytes
    double(double) -> double
    double(int) -> double
    double(uint) -> double
    double(string) -> double
    int(int) -> int
    int(uint) -> int
    int(double) -> int
    int(string) -> int
    int(timestamp) -> int
    int(duration) -> int
    uint(uint) -> uint
    uint(int) -> uint
    uint(double) -> uint
    uint(string) -> uint
    string(string) -> string
    string(bool) -> string
    string(bytes) -> string
    string(double) -> string
    string(int) -> string
    string(uint) -> string
    string(timestamp) -> string
    string(duration) -> string
    string(ip) -> string
    string(cidr) -> string
    timestamp(timestamp) -> timestamp
    timestamp(int) -> timestamp
    timestamp(string) -> timestamp
    duration(duration) -> duration
    duration(int) -> duration
    duration(string) -> duration

    string::contains(string) -> bool
    string::startsWith(string) -> bool
    string::endsWith(string) -> bool
    string::matches(string) -> bool
    matches(string, string) -> bool
    string::find(string) -> string
    string::findAll(string) -> list<string>
    string::findAll(string, int) -> list<string>
    string::charAt(int) -> string
    string::indexOf(string) -> int
    string::indexOf(string, int) -> int
    string::lastIndexOf(string) -> int
    string::lastIndexOf(string, int) -> int
    string::lowerAscii() -> string
    string::upperAscii() -> string
    string::replace(string, string) -> string
    string::replace(string, string, int) -> string
    string::split(string) -> list<string>
    string::split(string, int) -> list<string>
    string::substring(int) -> string
    string::substring(int, int) -> string
    string::trim() -> string
    string::format(list<dyn>) -> string
    strings.quote(string) -> string
    list<string>::join() -> string
    list<string>::join(string) -> string
    jsonpatch.escapeKey(string) -> string

    timestamp::getFullYear() -> int
    timestamp::getFullYear(string) -> int
    timestamp::getMonth() -> int
    timestamp::getMonth(string) -> int
    timestamp::getDate() -> int
    timestamp::getDate(string) -> int
    timestamp::getDayOfMonth() -> int
    timestamp::getDayOfMonth(string) -> int
    timestamp::getDayOfWeek() -> int
    timestamp::getDayOfWeek(string) -> int
    timestamp::getDayOfYear() -> int
    timestamp::getDayOfYear(string) -> int
    timestamp::getHours() -> int
    timestamp::getHours(string) -> int
    timestamp::getMinutes() -> int
    timestamp::getMinutes(string) -> int
    timestamp::getSeconds() -> int
    timestamp::getSeconds(string) -> int
    timestamp::getMilliseconds() -> int
    timestamp::getMilliseconds(string) -> int
    duration::getHours() -> int
    duration::getMinutes() -> int
    duration::getSeconds() -> int
    duration::getMilliseconds() -> int

    dyn::includes(dyn) -> bool
    list<A>::indexOf(A) -> int
    list<A>::lastIndexOf(A) -> int
    list<A>::slice(int, int) -> list<A>
    list<list<A>>::flatten() -> list<A>
    list<dyn>::flatten(int) -> list<dyn>
    list<A>::distinct() -> list<A>
    list<A>::reverse() -> list<A>
    list<A>::first() -> optional<A>
    list<A>::last() -> optional<A>
    lists.range(int) -> list<int>
    sets.contains(list<A>, list<A>) -> bool
    sets.equivalent(list<A>, list<A>) -> bool
    sets.intersects(list<A>, list<A>) -> bool

    optional.of(A) -> optional<A>
    optional.ofNonZeroValue(A) -> optional<A>
    optional.none() -> optional<A>
    optional.unwrap(list<optional<A>>) -> list<A>
    list<optional<A>>::unwrapOpt() -> list<A>
    optional<A>::hasValue() -> bool
    optional<A>::value() -> A
    optional<A>::or(optional<A>) -> optional<A>
    optional<A>::orValue(A) -> A

    url(string) -> url
    isURL(string) -> bool
    url::getScheme() -> string
    url::getHost() -> string
    url::getHostname() -> string
    url::getPort() -> string
    url::getEscapedPath() -> string
    url::getQuery() -> map<string, list<string>>

    ip(string) -> ip
    isIP(string) -> bool
    ip.isCanonical(string) -> bool
    ip::family() -> int
    ip::isUnspecified() -> bool
    ip::isLoopback() -> bool
    ip::isLinkLocalMulticast() -> bool
    ip::isLinkLocalUnicast() -> bool
    ip::isGlobalUnicast() -> bool
    cidr(string) -> cidr
    isCIDR(string) -> bool
    cidr::containsIP(string) -> bool
    cidr::containsIP(ip) -> bool
    cidr::containsCIDR(string) -> bool
    cidr::containsCIDR(cidr) -> bool
    cidr::ip() -> ip
    cidr::prefixLength() -> int
    cidr::masked() -> cidr

    quantity(string) -> quantity
    isQuantity(string) -> bool
    sign(quantity) -> int
    quantity::isInteger() -> bool
    quantity::asInteger() -> int
    quantity::asApproximateFloat() -> double
    quantity::isGreaterThan(quantity) -> bool
    quantity::isLessThan(quantity) -> bool
    quantity::compareTo(quantity) -> int
    quantity::add(quantity) -> quantity
    quantity::add(int) -> quantity
    quantity::sub(quantity) -> quantity
    quantity::sub(int) -> quantity

    semver(string) -> semver
    semver(string, bool) -> semver
    isSemver(string) -> bool
    isSemver(string, bool) -> bool
    semver::isGreaterThan(semver) -> bool
    semver::isLessThan(semver) -> bool
    semver::compareTo(semver) -> int
    semver::major() -> int
    semver::minor() -> int
    semver::patch() -> int

    format.named(string) -> optional<format>
    format::validate(string) -> optional<list<string>>
    format.dns1123Label() -> format
    format.dns1123Subdomain() -> format
    format.dns1035Label() -> format
    format.qualifiedName() -> format
    format.dns1123LabelPrefix() -> format
    format.dns1123SubdomainPrefix() -> format
    format.dns1035LabelPrefix() -> format
    format.labelValue() -> format
    format.uri() -> format
    format.uuid() -> format
    format.byte() -> format
    format.date() -> format
    format.datetime() -> format

    authorizer::path(string) -> pathcheck
    authorizer::group(string) -> groupcheck
    authorizer::serviceAccount(string, string) -> authorizer
    groupcheck::resource(string) -> resourcecheck
    resourcecheck::subresource(string) -> resourcecheck
    resourcecheck::namespace(string) -> resourcecheck
    resourcecheck::name(string) -> resourcecheck
    pathcheck::check(string) -> decision
    resourcecheck::check(string) -> decision
    decision::allowed() -> bool
    decision::reason() -> string
    decision::errored() -> bool
    decision::error() -> string
";

/// Types that have an order; numbers compare with each other.
const ORDERED: [&str; 8] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "duration",
    "timestamp",
];

fn table() -> HashMap<&'static str, Vec<Overload>> {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    let mut add = |name: &'static str, overload: Overload| {
        table.entry(name).or_default().push(overload);
    };
    for line in SIGNATURES
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (name, overload) = signature(line).expect("our own signatures are well formed");
        add(name, overload);
    }
    for operator in ["_<_", "_<=_", "_>_", "_>=_"] {
        for (left, right) in comparable() {
            add(operator, function(vec![left, right], Type::Bool));
        }
    }
    for item in ORDERED.map(scalar) {
        let list = Type::list(item.clone());
        add("isSorted", method(list.clone(), Type::Bool));
        add("min", method(list.clone(), item.clone()));
        add("max", method(list.clone(), item.clone()));
        add("sort", method(list.clone(), list.clone()));
        if matches!(item, Type::Int | Type::Uint | Type::Double | Type::Duration) {
            add("sum", method(list, item));
        }
    }
    table
}

fn function(parameters: Vec<Type>, result: Type) -> Overload {
    Overload {
        method: false,
        parameters,
        result,
    }
}

fn method(target: Type, result: Type) -> Overload {
    Overload {
        method: true,
        parameters: vec![target],
        result,
    }
}

fn scalar(name: &str) -> Type {
    let (ty, _) = ty(name, &mut Bindings::default()).expect("our own names of types are known");
    ty
}

fn comparable() -> Vec<(Type, Type)> {
    let numbers = ["int", "uint", "double"];
    let mut pairs: Vec<(Type, Type)> = ORDERED.map(|name| (scalar(name), scalar(name))).into();
    for left in numbers {
        for right in numbers.iter().filter(|right| **right != left) {
            pairs.push((scalar(left), scalar(right)));
        }
    }
    pairs
}

/// Reads one line of the table.
fn signature(line: &'static str) -> Option<(&'static str, Overload)> {
    let mut variables = Bindings::default();
    let (head, result) = line.rsplit_once(" -> ")?;
    let (head, arguments) = head.strip_suffix(')')?.rsplit_once('(')?;
    let mut parameters = Vec::new();
    let (target, name) = match head.rsplit_once("::") {
        Some((target, name)) => (Some(target), name),
        None => (None, head),
    };
    if let Some(target) = target {
        parameters.push(ty(target, &mut variables)?.0);
    }
    let mut rest = arguments;
    while !rest.is_empty() {
        let (parameter, after) = ty(rest, &mut variables)?;
        parameters.push(parameter);
        rest = after.trim_start_matches([',', ' ']);
    }
    let result = ty(result, &mut variables)?.0;
    let overload = Overload {
        method: target.is_some(),
        parameters,
        result,
    };
    Some((name, overload))
}

/// Reads a type, and gives what comes after it.
fn ty<'a>(text: &'a str, variables: &mut Bindings) -> Option<(Type, &'a str)> {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut parameters = Vec::new();
    while let Some(after) = rest.strip_prefix(['<', ',']) {
        if rest.starts_with(',') && parameters.is_empty() {
            break;
        }
        let (parameter, after) = ty(after.trim_start(), variables)?;
        parameters.push(parameter);
        rest = after;
        if let Some(after) = rest.strip_prefix('>') {
            rest = after;
            break;
        }
    }
    let mut parameters = parameters.into_iter();
    let ty = match name {
        "A" | "B" => {
            let number = u32::from(name == "B");
            while variables.len() <= number as usize {
                variables.fresh();
            }
            Type::Variable(number)
        }
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::Type,
        "ip" => Type::Opaque(Opaque::Ip),
        "cidr" => Type::Opaque(Opaque::Cidr),
        "url" => Type::Opaque(Opaque::Url),
        "quantity" => Type::Opaque(Opaque::Quantity),
        "semver" => Type::Opaque(Opaque::Semver),
        "format" => Type::Opaque(Opaque::Format),
        "authorizer" => Type::Opaque(Opaque::Authorizer),
        "pathcheck" => Type::Opaque(Opaque::PathCheck),
        "groupcheck" => Type::Opaque(Opaque::GroupCheck),
        "resourcecheck" => Type::Opaque(Opaque::ResourceCheck),
        "decision" => Type::Opaque(Opaque::Decision),
        "list" => Type::list(parameters.next()?),
        "optional" => Type::optional(parameters.next()?),
        "map" => Type::map(parameters.next()?, parameters.next()?),
        _ => return None,
    };
    Some((ty, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expect: &[&str]) {
        let shown: Vec<String> = overloads(name)
            .unwrap_or_default()
            .iter()
            .map(|overload| {
                let parameters: Vec<String> = overload
                    .parameters
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let style = if overload.method { "." } else { "" };
                format!("{style}({}) {}", parameters.join(", "), overload.result)
            })
            .collect();
        assert_eq!(shown, expect, "{name}");
    }

    #[test]
    fn signatures_are_read() {
        check(
            "_[_]",
            &[
                "(list(_var0), int) _var0",
                "(map(_var0, _var1), _var0) _var1",
                "(optional_type(list(_var0)), int) optional_type(_var0)",
                "(optional_type(map(_var0, _var1)), _var0) optional_type(_var1)",
            ],
        );
        check("getQuery", &[".(kubernetes.URL) map(string, list(string))"]);
        check(
            "indexOf",
            &[
                ".(string, string) int",
                ".(string, string, int) int",
                ".(list(_var0), _var0) int",
            ],
        );
        check("format.uuid", &["() kubernetes.NamedFormat"]);
        check("nothing", &[]);
    }

    #[test]
    fn numbers_of_all_kinds_compare() {
        assert_eq!(overloads("_<_").map(<[_]>::len), Some(8 + 6));
        assert_eq!(overloads("sum").map(<[_]>::len), Some(4));
    }
}
