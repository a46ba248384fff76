//! The files that flags name: certificates, and tokens with their users.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use kubewright_server::{Certificates, Tokens, User};

use super::in_cert_dir;
use crate::flags::Flags;

/// A file as text.
pub(crate) fn read(path: impl AsRef<Path>) -> anyhow::Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// What clients are shown, and whose clients are known. Without `--tls-cert-file` it is `apiserver.crt` in
/// `--cert-dir`, which is made when it is not there.
pub(crate) fn certificates(flags: &Flags, address: IpAddr) -> anyhow::Result<Certificates> {
    let mut certificates = Certificates::default();
    if let Some(path) = flags.value("client-ca-file") {
        certificates = certificates.client_authorities(read(path)?);
    }
    let files = (
        flags.value("tls-cert-file"),
        flags.value("tls-private-key-file"),
    );
    let (chain, key) = match files {
        (Some(chain), Some(key)) => (read(chain)?, read(key)?),
        (None, None) => from_cert_dir(flags, address)?,
        _ => bail!("--tls-cert-file and --tls-private-key-file go together"),
    };
    Ok(certificates.serving(chain, key))
}

fn from_cert_dir(flags: &Flags, address: IpAddr) -> anyhow::Result<(String, String)> {
    let chain_path = in_cert_dir(flags, "apiserver.crt");
    let key_path = in_cert_dir(flags, "apiserver.key");
    if chain_path.exists() && key_path.exists() {
        return Ok((read(chain_path)?, read(key_path)?));
    }
    let (chain, key) = Certificates::generate(&[address])?;
    write(&chain_path, &chain, 0o644)?;
    write(&key_path, &key, 0o600)?;
    Ok((chain, key))
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let written = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(path)?;
        file.write_all(text.as_bytes())
    };
    written().with_context(|| format!("{} cannot be written", path.display()))
}

/// The tokens of `--token-auth-file`.
pub(crate) fn tokens(flags: &Flags) -> anyhow::Result<Tokens> {
    let mut tokens = Tokens::default();
    if let Some(path) = flags.value("token-auth-file") {
        for (at, line) in read(path)?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let (token, user) = token(line).with_context(|| {
                format!("{path} is not token,user,uid,\"groups\" in line {}", at + 1)
            })?;
            tokens.insert(token, user);
        }
    }
    Ok(tokens)
}

/// One line: token, user, uid, and groups in quotes if there are several.
fn token(line: &str) -> Option<(String, User)> {
    let mut columns = columns(line).into_iter();
    let (token, name, uid) = (columns.next()?, columns.next()?, columns.next()?);
    if token.is_empty() || name.is_empty() {
        return None;
    }
    let groups = columns.next().unwrap_or_default();
    let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty());
    let mut user = User::new(name, groups);
    user.uid = uid;
    Some((token, user))
}

/// The columns of a line; within double quotes a comma is a character as any other.
fn columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match (c, columns.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => columns.push(String::new()),
            (c, Some(column)) => column.push(c),
            (_, None) => {}
        }
    }
    for column in &mut columns {
        *column = column.trim().to_owned();
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_token_and_its_user() {
        let parsed =
            |line| token(line).map(|(token, user)| (token, user.name, user.uid, user.groups));
        let groups = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        for (line, expected) in [
            ("t,bob,7", Some(("t", "bob", "7", groups(&[])))),
            ("t,bob,7,a", Some(("t", "bob", "7", groups(&["a"])))),
            (
                "t, bob, 7, \"a,b\"",
                Some(("t", "bob", "7", groups(&["a", "b"]))),
            ),
            ("t,bob", None),
            (",bob,7", None),
        ] {
            let expected =
                expected.map(|(t, n, u, g)| (t.to_owned(), n.to_owned(), u.to_owned(), g));
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn certificates_are_made_once_and_found_again() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let line = format!("--cert-dir={}", folder.path().join("certs").display());
        let flags = Flags::parse([line]);
        let address = "127.0.0.1".parse().expect("an address");
        let made = from_cert_dir(&flags, address).expect("certificates can be made");
        assert_eq!(
            from_cert_dir(&flags, address).expect("they are there"),
            made
        );
    }
}
