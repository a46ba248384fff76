//! Certificate signing requests and certificates as they stand in objects: PEM in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use crate::kinds::value::text;

/// What is wrong with a PEM text. The words are those of the real server where it has its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemError {
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotRequest,
    #[error("x509: malformed certificate request")]
    MalformedRequest,
    #[error("x509: the signature does not match the public key")]
    Signature,
    #[error("must contain at least one CERTIFICATE PEM block")]
    NoCertificate,
    #[error("only CERTIFICATE PEM blocks are allowed, found {0:?}")]
    NotCertificate(String),
    #[error("x509: malformed certificate")]
    MalformedCertificate,
}

/// Checks a request and its signature, and gives the organizations of its subject (helpers.go: `ParseCSR`).
pub(crate) fn organizations(request: &Value) -> Result<Vec<String>, PemError> {
    let blocks = blocks(request);
    let request = blocks.first().filter(|b| b.label == "CERTIFICATE REQUEST");
    let request = request.ok_or(PemError::NotRequest)?;
    let parsed = X509CertificationRequest::from_der(&request.contents);
    let (_, parsed) = parsed.map_err(|_| PemError::MalformedRequest)?;
    // Algorithms that are not known here are left to whoever signs.
    if let Err(X509Error::SignatureVerificationError) = parsed.verify_signature() {
        return Err(PemError::Signature);
    }
    let subject = &parsed.certification_request_info.subject;
    let organizations = subject.iter_organization();
    let organizations = organizations.filter_map(|o| o.as_str().ok());
    Ok(organizations.map(str::to_owned).collect())
}

/// Checks the certificates of a signed request; none at all are fine (validation.go: `validateCertificate`).
pub(super) fn validate_certificates(certificate: &Value) -> Result<(), PemError> {
    if text(certificate).is_empty() {
        return Ok(());
    }
    let blocks = blocks(certificate);
    if blocks.is_empty() {
        return Err(PemError::NoCertificate);
    }
    for block in blocks {
        if block.label != "CERTIFICATE" {
            return Err(PemError::NotCertificate(block.label));
        }
        if block.parse_x509().is_err() {
            return Err(PemError::MalformedCertificate);
        }
    }
    Ok(())
}

/// What is wrong with the authorities of a bundle, which is PEM itself (validation.go: `validateTrustBundle`).
pub(super) fn trust_anchor_complaints(bundle: &str) -> Vec<String> {
    let blocks: Vec<Pem> = Pem::iter_from_buffer(bundle.as_bytes())
        .map_while(Result::ok)
        .collect();
    let mut complaints = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        if block.label != "CERTIFICATE" {
            complaints.push(format!("entry {i} has bad block type: {}", block.label));
            continue;
        }
        match block.parse_x509() {
            Err(_) => complaints.push(format!("entry {i} does not parse as X.509")),
            Ok(certificate) if !certificate.is_ca() => {
                complaints.push(format!("entry {i} does not have the CA bit set"));
            }
            Ok(_) => {}
        }
    }
    if !complaints.is_empty() {
        return complaints;
    }
    if blocks.is_empty() {
        return vec!["at least one trust anchor must be provided".to_owned()];
    }
    for (i, block) in blocks.iter().enumerate() {
        let first = blocks.iter().position(|b| b.contents == block.contents);
        if let Some(first) = first.filter(|first| *first != i) {
            complaints.push(format!("duplicate trust anchor (indices [{first} {i}])"));
        }
    }
    complaints
}

fn blocks(base64: &Value) -> Vec<Pem> {
    let bytes = STANDARD.decode(text(base64)).unwrap_or_default();
    Pem::iter_from_buffer(&bytes)
        .map_while(Result::ok)
        .collect()
}
