//! Keys as `EC PRIVATE KEY`, the form of RFC 5915 (SEC 1) that client-go writes.
//!
//! The signing library writes PKCS #8, `PRIVATE KEY`, which says only inside what kind of key it is. fabric8, which most
//! Java programs use, takes everything for RSA unless the first line says otherwise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use x509_parser::asn1_rs::{FromDer, OctetString, Sequence};

/// Bytes of a P-256 scalar.
const SCALAR: usize = 32;
/// Bytes of an uncompressed P-256 point.
const POINT: usize = 65;
/// `[0] { OBJECT IDENTIFIER prime256v1 }`.
const CURVE: [u8; 12] = [
    0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// Most characters on a line of PEM.
const LINE: usize = 64;

/// The PEM text of a P-256 key; nothing for keys of other kinds.
pub(super) fn pem(key: &KeyPair) -> Option<String> {
    let der = der(&scalar(&key.serialize_der())?, key.public_key_raw())?;
    let text = STANDARD.encode(der);
    let mut pem = "-----BEGIN EC PRIVATE KEY-----\n".to_owned();
    for at in (0..text.len()).step_by(LINE) {
        pem.push_str(&text[at..text.len().min(at + LINE)]);
        pem.push('\n');
    }
    pem.push_str("-----END EC PRIVATE KEY-----\n");
    Some(pem)
}

/// `ECPrivateKey` with its curve, without which a reader would not know it.
fn der(scalar: &[u8; SCALAR], point: &[u8]) -> Option<Vec<u8>> {
    let point: &[u8; POINT] = point.try_into().ok()?;
    let mut body = vec![0x02, 0x01, 0x01, 0x04, SCALAR as u8];
    body.extend_from_slice(scalar);
    body.extend_from_slice(&CURVE);
    let bits = POINT as u8 + 1;
    body.extend_from_slice(&[0xa1, bits + 2, 0x03, bits, 0x00]);
    body.extend_from_slice(point);
    let mut der = vec![0x30, u8::try_from(body.len()).ok().filter(|n| *n < 0x80)?];
    der.extend_from_slice(&body);
    Some(der)
}

/// The private number in a PKCS #8 key: the octets within the octets within the outer sequence.
fn scalar(pkcs8: &[u8]) -> Option<[u8; SCALAR]> {
    let octets = |sequence: &[u8]| -> Option<Vec<u8>> {
        let (_, sequence) = Sequence::from_der(sequence).ok()?;
        let mut rest: &[u8] = &sequence.content;
        loop {
            if let Ok((_, octets)) = OctetString::from_der(rest) {
                return Some(octets.as_cow().to_vec());
            }
            rest = x509_parser::asn1_rs::Any::from_der(rest).ok()?.0;
        }
    };
    octets(&octets(pkcs8)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn the_key_is_the_same_in_both_forms() {
        let key = KeyPair::generate().expect("a key");
        let pem = pem(&key).expect("a P-256 key");
        assert!(
            pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"),
            "first line"
        );
        let read = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        assert!(matches!(read, PrivateKeyDer::Sec1(_)));
        let signing = rustls::crypto::ring::sign::any_ecdsa_type(&read).expect("a usable key");
        let public = signing.public_key().expect("a public key");
        assert!(public.ends_with(key.public_key_raw()));
    }
}
