//! Certificates for those who ask with a CertificateSigningRequest: what a request says, and the signature of the cluster's
//! authority on it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose as Extended, Issuer,
    KeyPair, KeyUsagePurpose as Usage, PublicKeyData, SanType, SignatureAlgorithm,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use super::{Authority, CLOCK_SKEW, PkiError, authority_params, making};

/// What a request for a certificate says, once it is known to be signed by the key that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateRequest {
    /// The user that a client certificate is of.
    pub common_name: String,
    /// The groups of that user.
    pub organizations: Vec<String>,
    /// The names of hosts.
    pub dns_names: Vec<String>,
    /// The addresses of hosts.
    pub ip_addresses: Vec<IpAddr>,
    /// The addresses of people.
    pub emails: Vec<String>,
    /// Identifiers such as those of SPIFFE.
    pub uris: Vec<String>,
    key: RequestKey,
}

/// Why a text cannot be read as a request for a certificate, or why it cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateRequestError {
    /// The text is not PEM, or is of another kind.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotRequest,
    /// The request is not well-formed.
    #[error("x509: malformed certificate request")]
    Malformed,
    /// The request is not signed by the key that it is for.
    #[error("x509: the signature does not match the public key")]
    Signature,
    /// The key is of a kind that the authority cannot certify: RSA, P-256, P-384 and Ed25519 keys can be.
    #[error("x509: unsupported public key: use RSA, P-256, P-384 or Ed25519")]
    Key,
    /// A usage does not exist.
    #[error("unrecognized usage: {0}")]
    Usage(String),
    /// The certificate could not be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

/// The public key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestKey {
    bytes: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
}

impl PublicKeyData for RequestKey {
    fn der_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl CertificateRequest {
    /// Reads a request, PEM, and checks its signature (helpers.go: `ParseCSR`).
    ///
    /// # Errors
    /// When it is not a request, or not signed by its own key.
    pub fn parse(pem: &[u8]) -> Result<Self, CertificateRequestError> {
        let blocks = Pem::iter_from_buffer(pem).next();
        let block = blocks.and_then(Result::ok);
        let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
        let block = block.ok_or(CertificateRequestError::NotRequest)?;
        let parsed = X509CertificationRequest::from_der(&block.contents);
        let (_, parsed) = parsed.map_err(|_| CertificateRequestError::Malformed)?;
        let verified = parsed.verify_signature();
        verified.map_err(|_| CertificateRequestError::Signature)?;
        let info = &parsed.certification_request_info;
        let text = |found: Option<&str>| found.map(str::to_owned);
        let names = info.subject.iter_common_name();
        let organizations = info.subject.iter_organization();
        let mut request = Self {
            common_name: names
                .filter_map(|name| text(name.as_str().ok()))
                .next()
                .unwrap_or_default(),
            organizations: organizations
                .filter_map(|name| text(name.as_str().ok()))
                .collect(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            emails: Vec::new(),
            uris: Vec::new(),
            key: request_key(&parsed).ok_or(CertificateRequestError::Key)?,
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(alternatives) = extension {
                for name in &alternatives.general_names {
                    request.add(name);
                }
            }
        }
        Ok(request)
    }

    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_owned()),
            GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let sixteen = <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
                self.ip_addresses.extend(four.or(sixteen));
            }
            _ => {}
        }
    }

    /// The names besides the subject's.
    fn alternatives(&self) -> Result<Vec<SanType>, PkiError> {
        let making = making("certificate for a request");
        let text = |name: &String| name.as_str().try_into().map_err(&making);
        let mut names = Vec::new();
        for name in &self.dns_names {
            names.push(SanType::DnsName(text(name)?));
        }
        for name in &self.emails {
            names.push(SanType::Rfc822Name(text(name)?));
        }
        for name in &self.uris {
            names.push(SanType::URI(text(name)?));
        }
        names.extend(self.ip_addresses.iter().copied().map(SanType::IpAddress));
        Ok(names)
    }
}

fn request_key(request: &X509CertificationRequest<'_>) -> Option<RequestKey> {
    let info = &request.certification_request_info.subject_pki;
    let algorithm = match info.parsed().ok()? {
        PublicKey::RSA(_) => &rcgen::PKCS_RSA_SHA256,
        PublicKey::EC(point) if point.key_size() == 256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        PublicKey::EC(point) if point.key_size() == 384 => &rcgen::PKCS_ECDSA_P384_SHA384,
        PublicKey::Unknown(key) if key.len() == 32 => &rcgen::PKCS_ED25519,
        _ => return None,
    };
    Some(RequestKey {
        bytes: info.subject_public_key.data.to_vec(),
        algorithm,
    })
}

/// Signs certificates as the authority that the server and its clients trust. The key is never printed.
#[derive(Clone)]
pub struct CertificateSigner(Arc<(String, String)>);

impl fmt::Debug for CertificateSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateSigner")
    }
}

impl CertificateSigner {
    pub(crate) fn new(authority: &Authority) -> Self {
        let (certificate, key) = (&authority.0.certificate, &authority.0.key);
        Self(Arc::new((certificate.clone(), key.clone())))
    }

    /// Signs a request for these usages, as they stand in a CertificateSigningRequest, PEM (authority.go: `Sign` with
    /// `PermissiveSigningPolicy`). Times are those of the system's clock, because that is what TLS libraries go by.
    ///
    /// # Errors
    /// When a usage does not exist, or the key cannot be certified.
    pub fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        lifetime: Duration,
    ) -> Result<String, CertificateRequestError> {
        let what = "certificate for a request";
        let key = KeyPair::from_pem(&self.0.1).map_err(making("certificate authority's key"))?;
        let issuer = Issuer::new(authority_params(), key);
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for organization in &request.organizations {
            let kind = DnType::OrganizationName;
            params.distinguished_name.push(kind, organization.as_str());
        }
        let name = request.common_name.as_str();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = request.alternatives()?;
        for usage in usages {
            match known_usage(usage) {
                Some(Known::Key(usage)) => params.key_usages.push(usage),
                Some(Known::Extended(usage)) => params.extended_key_usages.push(usage),
                None => return Err(CertificateRequestError::Usage(usage.clone())),
            }
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = rcgen::date_time_ymd(1970, 1, 1) + now.unwrap_or_default();
        params.not_before = now - CLOCK_SKEW;
        params.not_after = now + lifetime;
        let signed = params.signed_by(&request.key, &issuer);
        Ok(signed.map_err(making(what))?.pem())
    }
}

/// A usage of a key, in one of the two places where certificates say it.
enum Known {
    Key(Usage),
    Extended(Extended),
}

/// The usage of this name (policies.go: `keyUsageDict`, `extKeyUsageDict`).
fn known_usage(name: &str) -> Option<Known> {
    Some(match name {
        "signing" | "digital signature" => Known::Key(Usage::DigitalSignature),
        "content commitment" => Known::Key(Usage::ContentCommitment),
        "key encipherment" => Known::Key(Usage::KeyEncipherment),
        "key agreement" => Known::Key(Usage::KeyAgreement),
        "data encipherment" => Known::Key(Usage::DataEncipherment),
        "cert sign" => Known::Key(Usage::KeyCertSign),
        "crl sign" => Known::Key(Usage::CrlSign),
        "encipher only" => Known::Key(Usage::EncipherOnly),
        "decipher only" => Known::Key(Usage::DecipherOnly),
        "any" => Known::Extended(Extended::Any),
        "server auth" => Known::Extended(Extended::ServerAuth),
        "client auth" => Known::Extended(Extended::ClientAuth),
        "code signing" => Known::Extended(Extended::CodeSigning),
        "email protection" => Known::Extended(Extended::EmailProtection),
        "timestamping" => Known::Extended(Extended::TimeStamping),
        "ocsp signing" => Known::Extended(Extended::OcspSigning),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::User;

    fn request(key: &KeyPair, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name = super::super::distinguished_name("jane", &["dev".to_owned()]);
        let request = params.serialize_request(key).expect("a request");
        request.pem().expect("PEM")
    }

    #[test]
    fn request_is_read_and_signed_for_the_user_that_it_names() {
        let key = KeyPair::generate().expect("a key");
        let pem = request(&key, &["host.example", "192.0.2.1"]);
        let read = CertificateRequest::parse(pem.as_bytes()).expect("a request");
        assert_eq!(
            (read.common_name.as_str(), &*read.organizations),
            ("jane", &["dev".to_owned()][..])
        );
        assert_eq!(read.dns_names, ["host.example"]);
        assert_eq!(
            read.ip_addresses,
            ["192.0.2.1".parse::<IpAddr>().expect("an address")]
        );
        let signer = CertificateSigner::new(&Authority::generate().expect("an authority"));
        let usages = ["client auth", "digital signature"].map(str::to_owned);
        let signed = signer
            .sign(&read, &usages, Duration::from_secs(3_600))
            .expect("a certificate");
        let (_, block) = x509_parser::pem::parse_x509_pem(signed.as_bytes()).expect("PEM");
        let user = User::of_certificate(&block.contents).expect("a user");
        assert_eq!(
            (user.name.as_str(), user.groups[0].as_str()),
            ("jane", "dev")
        );
        let unknown = signer.sign(&read, &["flying".to_owned()], Duration::from_secs(1));
        assert_eq!(
            unknown.expect_err("it is refused").to_string(),
            "unrecognized usage: flying"
        );
    }

    #[test]
    fn text_that_is_not_a_signed_request_is_refused() {
        let key = KeyPair::generate().expect("a key");
        let good = request(&key, &[]);
        let other = good.replace("CERTIFICATE REQUEST", "CERTIFICATE");
        for (pem, expected) in [
            ("", "PEM block type must be CERTIFICATE REQUEST"),
            (&*other, "PEM block type must be CERTIFICATE REQUEST"),
            (
                "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
                "x509: malformed certificate request",
            ),
        ] {
            let refused = CertificateRequest::parse(pem.as_bytes()).expect_err("it is refused");
            assert_eq!(refused.to_string(), expected, "{pem}");
        }
    }
}
