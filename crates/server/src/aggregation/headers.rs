//! The headers of a request that is passed on: who its caller is, and nothing that its caller says of itself.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::auth::User;

const USER: &str = "x-remote-user";
const GROUP: &str = "x-remote-group";
const UID: &str = "x-remote-uid";
const EXTRA: &str = "x-remote-extra-";

/// What `extension-apiserver-authentication` says of these headers, so that other servers know them.
pub(crate) const REQUEST_HEADERS: [(&str, &str); 5] = [
    ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
    (
        "requestheader-extra-headers-prefix",
        r#"["X-Remote-Extra-"]"#,
    ),
    ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
    ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
    ("requestheader-username-headers", r#"["X-Remote-User"]"#),
];

/// The headers of a client's request as they are passed on to another server.
pub(super) fn passed_on(headers: &HeaderMap, user: &User, host: &str) -> HeaderMap {
    let is_claim = |name: &HeaderName| {
        let name = name.as_str();
        name.starts_with("x-remote-") || name.starts_with("impersonate-") || name == AUTHORIZATION
    };
    let kept = headers.iter().filter(|(name, _)| !is_claim(name));
    let mut passed: HeaderMap = kept.map(|(n, v)| (n.clone(), v.clone())).collect();
    // The body is whole, so its length is known anew.
    passed.remove(CONTENT_LENGTH);
    remove_hop_by_hop(&mut passed);
    let mut add = |name: &str, value: &str| {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            passed.append(name, value);
        }
    };
    add(HOST.as_str(), host);
    add(USER, &user.name);
    for group in &user.groups {
        add(GROUP, group);
    }
    if !user.uid.is_empty() {
        add(UID, &user.uid);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        values.iter().for_each(|value| add(&name, value));
    }
    passed
}

/// Removes what is about one connection alone.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let own = [
        CONNECTION,
        HOST,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in named.iter().chain(&own) {
        headers.remove(name);
    }
}

/// A key as part of the name of a header (`transport.headerKeyEscape`).
fn escaped(key: &str) -> String {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(b);
    let escape = |byte: u8| match byte {
        byte if is_token(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    key.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_who_the_server_says_and_not_who_they_say() {
        let claims = [
            ("authorization", "Bearer secret"),
            ("x-remote-user", "system:admin"),
            ("x-remote-group", "system:masters"),
            ("impersonate-user", "root"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("accept", "application/json"),
        ];
        let claims = claims.map(|(name, value)| {
            let value = HeaderValue::from_static(value);
            (HeaderName::from_static(name), value)
        });
        let mut user = User::new("bob", ["team", "system:authenticated"]);
        let key = "example.com/pod name".to_owned();
        user.extra.insert(key, vec!["p".to_owned()]);
        let passed = passed_on(&HeaderMap::from_iter(claims), &user, "s.n.svc:443");
        let all = |name: &str| {
            let values = passed.get_all(name).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            values.collect::<Vec<_>>()
        };
        assert_eq!(all(USER), ["bob"]);
        assert_eq!(all(GROUP), ["team", "system:authenticated"]);
        assert_eq!(all("x-remote-extra-example.com%2fpod%20name"), ["p"]);
        assert_eq!(all("accept"), ["application/json"]);
        assert_eq!(all("host"), ["s.n.svc:443"]);
        for gone in ["authorization", "impersonate-user", "connection", "x-hop"] {
            assert!(all(gone).is_empty(), "{gone} was passed on");
        }
    }
}
