//! The key that tokens are signed with.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};

use crate::pki::PkiError;
use crate::private_file::write_private;

const WHAT: &str = "service account key";

/// A P-256 key pair. Never printed.
pub(super) struct Key {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// Hash of the public key, by which tokens name it.
    id: String,
}

impl Key {
    /// Reads the key of a directory, or makes it there if it is missing. Without a directory the key is a new one.
    pub(super) fn load_or_generate(directory: Option<&Path>) -> Result<Self, PkiError> {
        let pem = match directory.map(|d| d.join("service-account.key")) {
            None => generate()?,
            Some(path) => {
                let failed = |source| PkiError::File {
                    path: path.display().to_string(),
                    source,
                };
                match fs::read_to_string(&path) {
                    Ok(pem) => pem,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {
                        let pem = generate()?;
                        write_private(&path, &pem).map_err(failed)?;
                        pem
                    }
                    Err(e) => return Err(failed(e)),
                }
            }
        };
        Self::from_pem(&pem)
    }

    /// The key of a PEM text.
    pub(super) fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let parsed =
            KeyPair::from_pem(pem).map_err(|source| PkiError::Make { what: WHAT, source })?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            parsed.serialized_der(),
            &random,
        )
        .map_err(|_| PkiError::Unusable { what: WHAT })?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &parsed.subject_public_key_info()));
        Ok(Self { pair, random, id })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The signature, or nothing when the system has no randomness to offer.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.pair.sign(&self.random, message).ok()?;
        Some(signature.as_ref().to_vec())
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let public = self.pair.public_key().as_ref();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(message, signature)
            .is_ok()
    }

    /// The two coordinates of the public key.
    pub(super) fn coordinates(&self) -> (String, String) {
        // An uncompressed point: the byte 4 and two numbers of 32 bytes.
        let point = &self.pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(point.len() / 2);
        (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
    }
}

fn generate() -> Result<String, PkiError> {
    let key = KeyPair::generate().map_err(|source| PkiError::Make { what: WHAT, source })?;
    Ok(key.serialize_pem())
}
