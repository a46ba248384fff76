//! Makes an authority and the one certificate that it signs.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::rotation::{Issued, seconds};

/// How long before now a certificate is valid: clocks of machines differ.
const EARLIER: i64 = 300;
/// How much longer the authority is valid than what it signed.
const LONGER: i64 = 24 * 60 * 60;

/// A certificate for these names from now on, signed by a new authority. The first name is the subject's.
///
/// # Errors
/// When a name cannot be in a certificate.
pub(super) fn issue(
    names: &[String],
    now: i64,
    lifetime: Duration,
) -> Result<Issued, rcgen::Error> {
    let expires = now.saturating_add(seconds(lifetime));
    let subject = names.first().map(String::as_str).unwrap_or_default();
    let mut authority = valid(
        CertificateParams::default(),
        now,
        expires.saturating_add(LONGER),
    );
    // Two authorities of one operator are trusted at once and distinguished by their names as well.
    let name = format!("{subject} {now}");
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
    ];
    let authority_key = KeyPair::generate()?;
    let signed = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut server = valid(CertificateParams::new(names.to_vec())?, now, expires);
    server.distinguished_name.push(DnType::CommonName, subject);
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok(Issued {
        authority: signed,
        certificate: server.signed_by(&key, &issuer)?.pem(),
        key: key.serialize_pem(),
        names: names.to_vec(),
        issued: now,
        expires,
    })
}

fn valid(mut params: CertificateParams, now: i64, until: i64) -> CertificateParams {
    let since_1970 = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let origin = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = origin + since_1970(now.saturating_sub(EARLIER));
    params.not_after = origin + since_1970(until);
    params
}
