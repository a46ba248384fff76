//! The authorities that Mozilla trusts, in PEM: the same on every machine, unlike those of a distribution.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters in a line of PEM.
const LINE: usize = 64;

/// All of them, one after the other.
pub(super) fn pem() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            text.extend([line, "\n"]);
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
