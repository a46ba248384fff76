//! Continue tokens: where the next page of a list starts, and at which version.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use base64::{alphabet, engine::DecodePaddingMode};
use serde::{Deserialize, Serialize};

use crate::status::ApiError;

/// Reads what Go's decoder reads: stray bits at the end do not matter.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const VERSION: &str = "meta.k8s.io/v1";
/// Longest token that is read: a key is at most a namespace and a name.
const MAX_TOKEN: usize = 4 * 1024;

/// A continue token. `revision` is absent when the client accepts a page of the newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) revision: Option<u64>,
    /// Key of the last object sent, relative to the namespace asked for.
    pub(crate) after: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl Token {
    /// As it is sent: the first key of the next page is the successor of the last key sent.
    pub(crate) fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |r| r as i64);
        let wire = Wire {
            v: VERSION.into(),
            rv,
            start: format!("{}\0", self.after),
        };
        let json = serde_json::to_string(&wire).expect("a token is plain data");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Reads a token that a client sent.
    pub(crate) fn decode(text: &str) -> Result<Self, ApiError> {
        if text.len() > MAX_TOKEN {
            return Err(invalid("continue key is too long"));
        }
        let json = LENIENT
            .decode(text)
            .map_err(|e| invalid(&format!("continue key is not valid: {e}")))?;
        let wire: Wire =
            serde_json::from_slice(&json).map_err(|e| invalid(&parse_error(&json, &e)))?;
        if wire.v != VERSION {
            return Err(invalid(&format!(
                "server does not recognize this encoded version \"{}\"",
                wire.v
            )));
        }
        let after = wire.start.strip_suffix('\0').unwrap_or(&wire.start);
        let traverses = after
            .split('/')
            .any(|part| part.is_empty() || part == "." || part == "..");
        if traverses || after.split('/').count() > 2 {
            return Err(invalid(&format!("continue key is not valid: {after}")));
        }
        let revision = match wire.rv {
            -1 => None,
            rv if rv > 0 => Some(rv as u64),
            _ => {
                return Err(invalid(
                    "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                ));
            }
        };
        Ok(Self {
            revision,
            after: after.to_owned(),
        })
    }
}

/// The message about a token that is not JSON, in the API's words.
fn parse_error(json: &[u8], error: &serde_json::Error) -> String {
    match json.first() {
        Some(b) if *b != b'{' => {
            format!(
                "continue key is not valid: invalid character '{}' looking for beginning of value",
                char::from(*b)
            )
        }
        Some(_) => format!("continue key is not valid: {error}"),
        None => "continue key is not valid: unexpected end of JSON input".to_owned(),
    }
}

fn invalid(why: &str) -> ApiError {
    ApiError::bad_request(format!("invalid continue token: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back() {
        for token in [
            Token {
                revision: Some(5551),
                after: "d2".into(),
            },
            Token {
                revision: None,
                after: "ns/name".into(),
            },
        ] {
            assert_eq!(Token::decode(&token.encode()).expect("reads"), token);
        }
        let token = Token {
            revision: Some(5551),
            after: "d2".into(),
        };
        assert_eq!(
            token.encode(),
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NTU1MSwic3RhcnQiOiJkMlx1MDAwMCJ9"
        );
    }

    #[test]
    fn bad_tokens_are_bad_requests() {
        let tampered =
            URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../secrets/x"}"#);
        let zero = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#);
        for text in [
            "zzz",
            "",
            "!!!!",
            tampered.as_str(),
            zero.as_str(),
            &"A".repeat(10_000),
        ] {
            let error = Token::decode(text).expect_err(text);
            assert_eq!(error.code(), 400);
        }
        assert_eq!(
            Token::decode("zzz").expect_err("not JSON").message(),
            "invalid continue token: continue key is not valid: invalid character 'Ï' looking for beginning of value"
        );
    }
}
