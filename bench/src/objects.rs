//! The objects that benchmarks make: ConfigMaps with 1 KB of data.

use std::sync::LazyLock;

use anyhow::{Result, bail};
use bytes::Bytes;
use http::Method;
use kubewright_bench::{Connection, Reply};

/// The data of one object.
const KILOBYTE: usize = 1_024;
const JSON: &str = "application/json";

/// Letters in no order that anything could compress, so that a server which compresses is not flattered.
static DATA: LazyLock<String> = LazyLock::new(|| {
    let mut state: u32 = 1;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The high bits of such a sequence are the good ones.
        char::from(b'0' + (state >> 26) as u8)
    };
    let printable = |c: &char| c.is_ascii_alphanumeric();
    std::iter::repeat_with(&mut letter)
        .filter(printable)
        .take(KILOBYTE)
        .collect()
});

/// Where the ConfigMaps of a namespace are.
pub(crate) fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Makes a namespace.
pub(crate) async fn create_namespace(connection: &mut Connection, name: &str) -> Result<()> {
    let body =
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    expect_success(
        connection
            .send(Method::POST, "/api/v1/namespaces", JSON, body)
            .await?,
    )
}

/// The body of the ConfigMap with this number.
pub(crate) fn config_map(number: usize) -> Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"text":"{}"}}}}"#,
        name(number),
        *DATA
    )
    .into()
}

/// Its name.
pub(crate) fn name(number: usize) -> String {
    format!("object-{number:07}")
}

/// Makes a ConfigMap.
pub(crate) async fn create(connection: &mut Connection, path: &str, number: usize) -> Result<()> {
    let reply = connection.send(Method::POST, path, JSON, config_map(number));
    expect_success(reply.await?)
}

/// An answer that has to be good.
pub(crate) fn expect_success(reply: Reply) -> Result<()> {
    if !reply.status.is_success() {
        bail!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    Ok(())
}
