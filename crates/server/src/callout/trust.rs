//! Which certificates are trusted: those that an authority of a bundle signed, and those that are in the bundle themselves.
//!
//! The latter is what Go does and envtest relies on: its bundle is the certificate of the webhook, not that of its
//! authority.

use std::sync::Arc;

use base64::Engine as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{self, CryptoProvider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::target::InvalidTarget;

/// Whom to trust where a Service leads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerTrust<'a> {
    /// The certificates of a bundle, which is PEM in base64.
    Bundle(&'a str),
    /// Any certificate is accepted, whoever answers.
    Anybody,
}

/// TLS that trusts the certificates of a bundle, which is PEM in base64, and no others.
pub(super) fn trust(bundle: &str) -> Result<Arc<ClientConfig>, InvalidTarget> {
    let pem = base64::engine::general_purpose::STANDARD
        .decode(bundle)
        .map_err(|e| format!("caBundle is not base64: {e}"))?;
    let mut roots = RootCertStore::empty();
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| format!("caBundle is not PEM: {e}"))?;
        let added = roots.add(certificate.clone());
        added.map_err(|e| format!("unable to load root certificates: {e}"))?;
        certificates.push(certificate);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    if certificates.is_empty() {
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        return Ok(Arc::new(config));
    }
    let authorities =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|e| format!("unable to load root certificates: {e}"))?;
    let verifier = Verifier {
        trusted: Trusted::Bundle {
            certificates,
            authorities,
        },
        provider,
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// TLS that trusts whoever answers, for those who say that this will do.
pub(super) fn trust_anybody() -> Result<Arc<ClientConfig>, InvalidTarget> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier {
            trusted: Trusted::Anybody,
            provider,
        }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Checks certificates of servers. That their holders have the keys is checked in any case.
#[derive(Debug)]
struct Verifier {
    trusted: Trusted,
    provider: Arc<CryptoProvider>,
}

/// Whose certificates are good.
#[derive(Debug)]
enum Trusted {
    /// Those of a bundle, as servers that can be named and as authorities.
    Bundle {
        certificates: Vec<CertificateDer<'static>>,
        authorities: Arc<WebPkiServerVerifier>,
    },
    Anybody,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Trusted::Bundle {
            certificates,
            authorities,
        } = &self.trusted
        else {
            return Ok(ServerCertVerified::assertion());
        };
        if !certificates.iter().any(|known| known == end_entity) {
            return authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        check_use(end_entity, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

/// Whether a certificate is valid now and made for servers, or for nothing in particular.
fn check_use(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let malformed = || Error::InvalidCertificate(CertificateError::BadEncoding);
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| malformed())?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    let usage = parsed.extended_key_usage().map_err(|_| malformed())?;
    match usage {
        Some(usage) if !usage.value.server_auth && !usage.value.any => {
            Err(CertificateError::InvalidPurpose.into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};

    use super::*;

    /// A certificate for `localhost` that somebody else signed, changed in some way.
    fn leaf(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let key = KeyPair::generate().expect("a key");
        let authority = CertificateParams::new(vec!["authority".to_owned()]).expect("a name");
        let issuer = Issuer::new(authority, key);
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &issuer).expect("it is signed");
        signed.der().clone()
    }

    fn verify(bundle: &CertificateDer<'static>, shown: &CertificateDer<'_>, name: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(bundle.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let verifier = Verifier {
            trusted: Trusted::Bundle {
                certificates: vec![bundle.clone()],
                authorities: authorities.build().expect("an authority"),
            },
            provider,
        };
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        verifier
            .verify_server_cert(shown, &[], &name, &[], now)
            .is_ok()
    }

    #[test]
    fn a_certificate_in_the_bundle_is_trusted_for_its_own_name_and_use() {
        let good = leaf(|_| ());
        assert!(verify(&good, &good, "localhost"));
        assert!(!verify(&good, &good, "elsewhere"));
        assert!(!verify(&good, &leaf(|_| ()), "localhost"), "another one");
        let server = leaf(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
        assert!(verify(&server, &server, "localhost"));
        let client = leaf(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert!(!verify(&client, &client, "localhost"));
        let old = leaf(|p| p.not_after = rcgen::date_time_ymd(2020, 1, 1));
        assert!(!verify(&old, &old, "localhost"));
        let early = leaf(|p| p.not_before = rcgen::date_time_ymd(2090, 1, 1));
        assert!(!verify(&early, &early, "localhost"));
    }
}
