//! Names that are accepted and refused, with the texts of the API server.

use super::*;

type NameRule = fn(&str) -> Vec<String>;

#[track_caller]
fn accepts(rule: NameRule, names: &[&str]) {
    for name in names {
        assert_eq!(rule(name), Vec::<String>::new(), "{name:?}");
    }
}

/// Each name breaks the rule, and the first message starts as given.
#[track_caller]
fn refuses(rule: NameRule, cases: &[(&str, &str)]) {
    for (name, start) in cases {
        let errors = rule(name);
        let first = errors.first().map_or("", String::as_str);
        assert!(
            first.starts_with(start) && !first.is_empty(),
            "{name:?}: {errors:?}"
        );
    }
}

#[test]
fn subdomain_text_is_the_one_of_the_api_server() {
    let expect = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    assert_eq!(dns1123_subdomain("A_b"), [expect]);
}

#[test]
fn texts_with_several_examples_join_them_with_or() {
    let expect = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    assert_eq!(dns1035_label("1a"), [expect]);
    let expect = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    assert_eq!(label_value("-"), [expect]);
}

#[test]
fn dns_labels_and_subdomains() {
    let label = "a".repeat(63);
    let long = "a".repeat(64);
    accepts(dns1123_label, &["a", "0", "a-b", "1-2", &label]);
    refuses(
        dns1123_label,
        &[
            ("a.b", "must not contain dots"),
            (&long, "must be no more than 63 characters"),
            ("", "a lowercase RFC 1123 label"),
            ("-a", "a lowercase"),
            ("a-", "a lowercase"),
            ("A", "a lowercase"),
            ("a_b", "a lowercase"),
            ("ä", "a lowercase"),
        ],
    );
    let domain = vec!["a"; 127].join(".");
    accepts(dns1123_subdomain, &["a", "a.b.c", "0.1", &domain]);
    let longer = format!("{domain}.a");
    refuses(
        dns1123_subdomain,
        &[
            (&longer, "must be no more than 253 characters"),
            (".a", "a lowercase RFC 1123 subdomain"),
            ("a..b", "a lowercase RFC 1123 subdomain"),
            ("a.-b", "a lowercase RFC 1123 subdomain"),
            ("", "a lowercase RFC 1123 subdomain"),
        ],
    );
    accepts(dns1035_label, &["a", "a1", "a-1"]);
    refuses(dns1035_label, &[("1a", "a DNS-1035 label"), ("", "a DNS")]);
    accepts(wildcard_dns1123_subdomain, &["*.a.b"]);
    refuses(
        wildcard_dns1123_subdomain,
        &[("*", "a wildcard"), ("*.*.a", "a wildcard"), ("a.b", "a")],
    );
}

#[test]
fn qualified_names() {
    let long = "a".repeat(64);
    accepts(
        qualified_name,
        &["a", "A_b.c-D", "example.com/a", "kubernetes.io/os", "1"],
    );
    refuses(
        qualified_name,
        &[
            ("", "name part must be non-empty"),
            ("/a", "prefix part must be non-empty"),
            ("a/", "name part must be non-empty"),
            ("A/b", "prefix part a lowercase RFC 1123 subdomain"),
            ("a/b/c", "a valid label key must consist of"),
            ("-a", "name part must consist of alphanumeric"),
            (&long, "name part must be no more than 63 bytes"),
        ],
    );
    assert_eq!(qualified_name("a b").len(), 1);
    assert_eq!(qualified_name("").len(), 2);
}

#[test]
fn label_values() {
    let long = "a".repeat(64);
    accepts(label_value, &["", "a", "A_b.c", "0"]);
    refuses(
        label_value,
        &[
            ("a b", "a valid label must be"),
            ("a/b", "a valid label must be"),
            (".a", "a valid label must be"),
            (&long, "must be no more than 63 bytes"),
        ],
    );
}

#[test]
fn identifiers_and_environment_variables() {
    accepts(c_identifier, &["a", "_", "A1"]);
    refuses(c_identifier, &[("1a", "a valid C identifier"), ("", "a")]);
    accepts(env_var_name, &["a", "_A.b-c", ".a", "-"]);
    refuses(
        env_var_name,
        &[
            ("1a", "a valid environment variable name must consist of"),
            ("", "a valid environment variable name"),
            (".", "must not be '.'"),
            ("..", "must not be '..'"),
            ("..a", "must not start with '..'"),
            ("é", "a valid environment variable name"),
        ],
    );
    accepts(relaxed_env_var_name, &["1 a", "a-b/c"]);
    refuses(
        relaxed_env_var_name,
        &[
            ("", "environment variable name must be non-empty"),
            ("a=b", "a valid environment variable name must consist only"),
            ("a\n", "a valid environment variable name must consist only"),
        ],
    );
}

#[test]
fn config_keys() {
    let long = "a".repeat(254);
    accepts(config_map_key, &["a", "A_b.c-d", ".a", "game.properties"]);
    refuses(
        config_map_key,
        &[
            ("", "a valid config key must consist of"),
            ("a/b", "a valid config key"),
            ("..", "must not be '..'"),
            (&long, "must be no more than 253 characters"),
        ],
    );
}

#[test]
fn port_names() {
    accepts(port_name, &["http", "a", "p-1", "123456789012-ab"]);
    refuses(
        port_name,
        &[
            ("", "must contain only alpha-numeric"),
            ("1234567890123456", "must be no more than 15 characters"),
            ("123", "must contain at least one letter"),
            ("a--b", "must not contain consecutive hyphens"),
            ("-a", "must not begin or end with a hyphen"),
            ("a-", "must not begin or end with a hyphen"),
            ("A", "must contain only alpha-numeric"),
        ],
    );
    assert_eq!(port_name("").len(), 2);
}

#[test]
fn header_names_and_percentages() {
    accepts(http_header_name, &["X-Header-Name", "a", "-"]);
    let expect = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
    refuses(http_header_name, &[("", expect), ("a b", expect)]);
    accepts(percent, &["0%", "120%"]);
    let expect = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    let cases = ["%", "1", "1.5%", "-1%"].map(|text| (text, expect));
    refuses(percent, &cases);
}

#[test]
fn addresses() {
    accepts(ip_address, &["10.0.0.1", "::1"]);
    let expect = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let cases = ["", "10.0.0", "010.0.0.1"].map(|text| (text, expect));
    refuses(ip_address, &cases);
}

#[test]
fn port_numbers_stay_within_sixteen_bits() {
    for port in [1, 80, 65535] {
        assert_eq!(port_number(port), Vec::<String>::new());
    }
    for port in [i64::MIN, 0, 65536] {
        let expect = "must be between 1 and 65535, inclusive";
        assert_eq!(port_number(port), [expect]);
    }
}

#[test]
fn path_segments() {
    accepts(path_segment_name, &["", "a", "A:b", "...", "a b"]);
    refuses(
        path_segment_name,
        &[
            (".", "may not be '.'"),
            ("..", "may not be '..'"),
            ("a/b", "may not contain '/'"),
            ("a%b", "may not contain '%'"),
        ],
    );
    accepts(path_segment_prefix, &[".", ".."]);
}
