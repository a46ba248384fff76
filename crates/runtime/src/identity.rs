//! Who this program is to servers: the name of its field manager, its User-Agent and its events.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::header::{HeaderName, HeaderValue, USER_AGENT};

/// The longest name of a field manager that a server takes.
const LONGEST_FIELD_MANAGER: usize = 128;

/// The name of the program.
pub(crate) fn program_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let path = std::env::current_exe().unwrap_or_default();
        let name = path.file_stem().map(|name| name.to_string_lossy());
        let name = name.filter(|name| !name.is_empty() && name.len() <= LONGEST_FIELD_MANAGER);
        name.map_or_else(|| "kubewright".to_owned(), Cow::into_owned)
    })
}

/// The header by which servers know a program, as client-go writes it, for [`kube::Config::headers`]. Servers take what is before
/// the slash for the field manager of writes that name none.
pub fn user_agent(name: &str, version: &str) -> Option<(HeaderName, HeaderValue)> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let ours = env!("CARGO_PKG_VERSION");
    let value = format!("{name}/{version} ({os}/{arch}) kubewright/{ours}");
    Some((USER_AGENT, HeaderValue::try_from(value).ok()?))
}
