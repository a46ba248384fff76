//! Tokens of service accounts: signed statements that are made on request and checked on every use.
//!
//! A token is a JWT signed with ECDSA over P-256. It is good as long as its time has not run out and its service
//! account, and the object it is bound to, are still there. Tokens are never kept and never printed.

mod authenticate;
pub(crate) mod claims;
mod discovery;
mod key;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use serde_json::{Value, json};

use self::claims::Claims;
use self::key::Key;
use crate::pki::PkiError;

pub(crate) use authenticate::{Accepted, TokenChecker};
pub(crate) use discovery::{configuration, keys};

/// Who signs the tokens when nobody says otherwise.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;
/// Most verified tokens that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Signs tokens and checks signatures.
pub(crate) struct Issuer {
    /// What tokens call their issuer, and the audience that the server itself is.
    pub(crate) name: String,
    key: Key,
    /// Claims of tokens whose signature was found good, by the hash of the token: checking a signature costs as much
    /// as the rest of a small request. Everything that can change is checked every time.
    verified: Mutex<HashMap<[u8; SHA256_OUTPUT_LEN], Arc<Claims>>>,
}

/// Why a token is not accepted. The texts are sent to clients and never contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It is not one of this issuer's.
    #[error("invalid bearer token")]
    Foreign,
    #[error("[invalid bearer token, {0}]")]
    Invalid(String),
}

impl Refusal {
    fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }
}

impl Issuer {
    /// Makes an issuer whose key is kept in a directory, or is a new one without a directory.
    ///
    /// # Errors
    /// When the key cannot be made, read or written.
    pub(crate) fn load_or_generate(directory: Option<&Path>) -> Result<Self, PkiError> {
        Ok(Self::new(Key::load_or_generate(directory)?))
    }

    /// An issuer with this key, PEM.
    ///
    /// # Errors
    /// When the key is not one of P-256.
    pub(crate) fn of_key(pem: &str) -> Result<Self, PkiError> {
        Ok(Self::new(Key::from_pem(pem)?))
    }

    fn new(key: Key) -> Self {
        Self {
            name: ISSUER.to_owned(),
            key,
            verified: Mutex::default(),
        }
    }

    /// A token that says this.
    pub(crate) fn sign(&self, claims: &Claims) -> Option<String> {
        let header = json!({ "alg": "ES256", "kid": self.key.id() });
        let claims = serde_json::to_vec(claims).ok()?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }

    /// What a token says, if this issuer has signed it.
    fn verify(&self, token: &str) -> Result<Arc<Claims>, Refusal> {
        if token.len() > MAX_TOKEN {
            return Err(Refusal::Foreign);
        }
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(known) = self.verified.lock().get(&hash) {
            return Ok(known.clone());
        }
        let claims = Arc::new(self.read(token)?);
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_REMEMBERED {
            verified.clear();
        }
        verified.insert(hash, claims.clone());
        Ok(claims)
    }

    fn read(&self, token: &str) -> Result<Claims, Refusal> {
        let (signed, signature) = token.rsplit_once('.').ok_or(Refusal::Foreign)?;
        let (header, claims) = signed.split_once('.').ok_or(Refusal::Foreign)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Foreign);
        let header: Value =
            serde_json::from_slice(&decode(header)?).map_err(|_| Refusal::Foreign)?;
        let claims: Claims =
            serde_json::from_slice(&decode(claims)?).map_err(|_| Refusal::Foreign)?;
        if claims.issuer != self.name {
            return Err(Refusal::Foreign);
        }
        // The algorithm is ours to choose, not the token's: one that names another is forged.
        let named = header["kid"].as_str().is_none_or(|id| id == self.key.id());
        if header["alg"] != "ES256" || !named {
            return Err(Refusal::invalid("invalid signature, no keys found"));
        }
        if !self.key.verify(signed.as_bytes(), &decode(signature)?) {
            return Err(Refusal::invalid(
                "go-jose/go-jose: error in cryptographic primitive",
            ));
        }
        Ok(claims)
    }
}
